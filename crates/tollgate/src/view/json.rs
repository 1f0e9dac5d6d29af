//! The JSON form of answers and facts: field names of the wire contract, enums by their short names,
//! times as RFC 3339, durations in microseconds. Argument-free, since the contract's answers are.

use anyhow::Result;
use serde_json::{Map, Value, json};
use tollgate_client::{Answer, v1, v1::fact::Body};

use super::text::{decision_name, failure_name, outcome_name, time, verdict_name};

/// One decision.
pub(crate) fn answer_json(answer: &Answer) -> Result<String> {
    let response = answer.response();
    let value = json!({
        "decision": decision_name(response.decision()),
        "tool_call_id": response.tool_call_id,
        "invocation_id": response.invocation_id,
        "attempt": response.attempt,
        "code": response.code,
        "message": response.message,
        "hook_id": response.hook_id,
        "generation": response.generation.as_ref().map(generation),
        "valid_until": response.valid_until.as_ref().map(time),
        "sequence": response.sequence,
        "position": response.position,
        "repeat": response.repeat,
    });
    Ok(serde_json::to_string(&lean(value))?)
}

/// One recorded outcome.
pub(crate) fn completed_json(completed: &v1::CompleteResponse) -> Result<String> {
    let value = json!({
        "reported": completed.reported.as_ref().map(outcome),
        "governed": completed.governed.as_ref().map(outcome),
        "repeat": completed.repeat,
        "sequence": completed.sequence,
        "duration_us": completed.duration.as_ref().map(micros),
    });
    Ok(serde_json::to_string(&lean(value))?)
}

/// One fact of a run.
pub(crate) fn fact_json(fact: &v1::Fact) -> Result<String> {
    let (kind, body) = match &fact.body {
        Some(Body::ToolCallStarted(started)) => ("ToolCallStarted", self::started(started)),
        Some(Body::GovernanceEvaluated(evaluated)) => ("GovernanceEvaluated", self::evaluated(evaluated)),
        Some(Body::ToolCallCompleted(ended)) => ("ToolCallCompleted", self::ended(ended)),
        Some(Body::ToolCallFailed(ended)) => ("ToolCallFailed", self::ended(ended)),
        Some(Body::ToolCallCancelled(ended)) => ("ToolCallCancelled", self::ended(ended)),
        None => ("Unknown", Value::Null),
    };
    let value = json!({
        "sequence": fact.sequence,
        "position": fact.position,
        "fact": kind,
        "at": fact.at.as_ref().map(time),
        "tool_call_id": fact.tool_call_id,
        "invocation_id": fact.invocation_id,
        "attempt": fact.attempt,
        "sidecar_id": fact.sidecar_id,
        "previous_digest": fact.previous_digest,
        "digest": fact.digest,
        "body": body,
    });
    Ok(serde_json::to_string(&lean(value))?)
}

fn started(started: &v1::ToolCallStarted) -> Value {
    let runtime = started.runtime.clone().unwrap_or_default();
    json!({
        "agent": started.agent.as_ref().map(agent),
        "principal": started.principal.as_ref().map(principal),
        "tool": started.tool.as_ref().map(tool),
        "arguments_bytes": started.arguments_bytes,
        "derived_with": started.derived_with,
        "claimed_groups": started.claimed_groups,
        "claimed_approval": started.claimed_approval.as_ref().map(|approval| json!({
            "id": approval.id,
            "approver": approval.approver,
            "approved_at": approval.approved_at.as_ref().map(time),
        })),
        "claims_trusted": started.claims_trusted,
        "runtime": {
            "step_index": runtime.step_index,
            "call_index": runtime.call_index,
            "depth": runtime.depth,
            "interactive": runtime.interactive,
            "parent_run_id": runtime.parent_run_id,
            "traceparent": runtime.traceparent,
            "assistant_message_id": runtime.assistant_message_id,
            "executor": runtime.executor,
            "tool_source": runtime.tool_source,
            "execution_target": runtime.execution_target,
            "device": runtime.device,
            "correlation": runtime.correlation,
        },
    })
}

fn evaluated(evaluated: &v1::GovernanceEvaluated) -> Value {
    json!({
        "agent": evaluated.agent.as_ref().map(agent),
        "principal": evaluated.principal.as_ref().map(principal),
        "tool": evaluated.tool.as_ref().map(tool),
        "generation": evaluated.generation.as_ref().map(generation),
        "decision": decision_name(evaluated.decision()),
        "decided_by": evaluated.decided_by,
        "code": evaluated.code,
        "hooks": evaluated.hooks.iter().map(hook).collect::<Vec<_>>(),
        "valid_until": evaluated.valid_until.as_ref().map(time),
        "duration_us": evaluated.duration.as_ref().map(micros),
    })
}

fn hook(hook: &v1::HookEvaluation) -> Value {
    json!({
        "position": hook.position,
        "hook_id": hook.hook_id,
        "order": hook.order,
        "source": hook.source().as_str_name().trim_start_matches("HOOK_SOURCE_"),
        "enforcement": hook.enforcement().as_str_name().trim_start_matches("ENFORCEMENT_"),
        "resource_id": hook.resource_id,
        "resource_generation": (hook.resource_generation > 0).then_some(hook.resource_generation),
        "digest": hook.digest,
        "verdict": verdict_name(hook.verdict()),
        "code": hook.code,
        "determining_policies": hook.determining_policies,
        "erroring_policies": hook.erroring_policies,
        "duration_us": hook.duration.as_ref().map(micros),
    })
}

fn ended(ended: &v1::ToolCallEnded) -> Value {
    let notice = |notice: &v1::Notice| {
        json!({
            "hook_id": notice.hook_id,
            "result": notice.result().as_str_name().trim_start_matches("NOTICE_RESULT_"),
            "code": notice.code,
        })
    };
    json!({
        "reported": ended.reported.as_ref().map(outcome),
        "governed": ended.governed.as_ref().map(outcome),
        "notices": ended.notices.iter().map(notice).collect::<Vec<_>>(),
        "duration_us": ended.duration.as_ref().map(micros),
    })
}

fn outcome(outcome: &v1::Outcome) -> Value {
    json!({
        "kind": outcome_name(outcome.kind()),
        "failure_kind": failure_name(outcome.failure_kind()),
        "tool_error": outcome.tool_error.then_some(true),
        "code": outcome.code,
        "error_type": outcome.error_type,
        "error_message": outcome.error_message,
    })
}

fn generation(generation: &v1::GenerationRef) -> Value {
    json!({ "bundle": generation.bundle, "number": generation.number, "digest": generation.digest })
}

fn agent(agent: &v1::Agent) -> Value {
    json!({ "id": agent.id, "revision": agent.revision })
}

fn principal(principal: &v1::Principal) -> Value {
    json!({ "kind": principal.kind, "id": principal.id })
}

fn tool(tool: &v1::Tool) -> Value {
    json!({ "id": tool.id, "provider_id": tool.provider_id, "external_name": tool.external_name })
}

fn micros(duration: &super::text::Duration) -> i64 {
    duration.seconds.saturating_mul(1_000_000).saturating_add(i64::from(duration.nanos) / 1_000)
}

/// Leaves out what is absent: null, empty text, empty lists and objects.
fn lean(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let kept = members.into_iter().map(|(name, value)| (name, lean(value))).filter(|(_, value)| !is_absent(value));
            Value::Object(kept.collect::<Map<_, _>>())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(lean).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value,
    }
}

fn is_absent(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

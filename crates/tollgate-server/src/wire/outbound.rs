//! From the domain to the wire. An ALLOW is made of a [`Pass`] and of nothing else.

use tollgate_domain::{
    ActivatedHook, Agent, Approval, CallRecord, Decided, Decision, Enforcement, Evaluated, Fact, FailureKind, Finding,
    GenerationRef, HookEvaluation, InvocationState, NoticeRecord, NoticeResult, Outcome, OwnerKind, Pass, Principal, Recorded,
    Refusal, RunKey, Runtime, Source, StoredFact, Terminal, Timestamp, ToolCallSummary, ToolRef, VerdictKind,
};
use tollgate_engine::Completion;
use tollgate_proto::v1;

pub(crate) fn timestamp(at: Timestamp) -> prost_types::Timestamp {
    let micros = at.as_micros();
    let nanos = i32::try_from(micros.rem_euclid(1_000_000)).unwrap_or_default().saturating_mul(1_000);
    prost_types::Timestamp { seconds: micros.div_euclid(1_000_000), nanos }
}

fn duration(micros: u64) -> prost_types::Duration {
    std::time::Duration::from_micros(micros).try_into().unwrap_or_default()
}

pub(crate) fn run(run: &RunKey) -> v1::RunKey {
    let owner_kind = match run.owner_kind {
        OwnerKind::Run => v1::OwnerKind::Run,
        OwnerKind::Flow => v1::OwnerKind::Flow,
    };
    v1::RunKey {
        tenant: run.tenant.to_string(),
        workspace: run.workspace.to_string(),
        owner_kind: owner_kind.into(),
        owner_id: run.owner.to_string(),
        run_id: run.run.to_string(),
    }
}

/// The answer to a recorded decision.
pub(crate) fn recorded(recorded: Recorded) -> v1::EvaluateResponse {
    match recorded {
        Recorded::Allowed(pass) => allowed(&pass),
        Recorded::Refused(refusal) => refused(refusal),
    }
}

fn allowed(pass: &Pass) -> v1::EvaluateResponse {
    v1::EvaluateResponse {
        decision: v1::Decision::Allow.into(),
        valid_until: Some(timestamp(pass.valid_until())),
        ..decided(pass.decided())
    }
}

fn refused(refusal: Refusal) -> v1::EvaluateResponse {
    let decision = match refusal.decision {
        Decision::Deny => v1::Decision::Deny,
        // Whatever else a refusal may say, it is never an ALLOW.
        Decision::Failed | Decision::Allow | Decision::Mocked => v1::Decision::Failed,
    };
    v1::EvaluateResponse {
        decision: decision.into(),
        code: refusal.code.map(|code| code.to_string()).unwrap_or_default(),
        message: refusal.message.map(|message| message.tell().to_owned()).unwrap_or_default(),
        hook_id: refusal.hook.map(|hook| hook.to_string()).unwrap_or_default(),
        ..decided(&refusal.decided)
    }
}

fn decided(decided: &Decided) -> v1::EvaluateResponse {
    v1::EvaluateResponse {
        decision: v1::Decision::Unspecified.into(),
        tool_call_id: decided.tool_call.to_string(),
        invocation_id: decided.invocation.to_string(),
        attempt: decided.attempt,
        generation: Some(generation(&decided.generation)),
        sequence: decided.sequence,
        position: decided.position,
        repeat: decided.repeat,
        ..Default::default()
    }
}

pub(crate) fn completion(completion: Completion) -> v1::CompleteResponse {
    v1::CompleteResponse {
        reported: completion.reported.map(outcome),
        governed: Some(outcome(completion.governed)),
        repeat: completion.repeat,
        sequence: completion.sequence,
        duration: Some(duration(completion.duration_us)),
    }
}

pub(crate) fn generation(generation: &GenerationRef) -> v1::GenerationRef {
    v1::GenerationRef { bundle: generation.bundle.to_string(), number: generation.number, digest: generation.digest.to_string() }
}

pub(crate) fn managed_hooks(hooks: Vec<ActivatedHook>) -> Vec<v1::ManagedHook> {
    let hook = |hook: ActivatedHook| v1::ManagedHook {
        resource_id: hook.resource.to_string(),
        generation: hook.generation,
        digest: hook.digest.to_string(),
    };
    hooks.into_iter().map(hook).collect()
}

pub(crate) fn refused_generation(refused: tollgate_domain::GenerationRefused) -> v1::GenerationRefused {
    let finding = |finding: Finding| v1::Finding { code: finding.code, path: finding.path, line: finding.line };
    v1::GenerationRefused {
        revision: refused.revision.to_string(),
        code: refused.code.to_string(),
        findings_count: refused.findings_count,
        findings: refused.findings.into_iter().map(finding).collect(),
        at: Some(timestamp(refused.at)),
    }
}

/// An entry of a bundle's history; `None` for a fact that is none.
pub(crate) fn history_entry(stored: StoredFact) -> Option<v1::HistoryEntry> {
    use v1::history_entry::Event;
    let at = stored.fact.at();
    let (sidecar, event) = match stored.fact {
        Fact::GenerationActivated(fact) => {
            let activated = v1::GenerationActivated {
                generation: Some(generation(&fact.generation)),
                revision: fact.revision.to_string(),
                replaced: fact.replaced.unwrap_or_default(),
                serial: fact.serial,
                hooks: managed_hooks(fact.hooks),
            };
            (fact.sidecar, Event::Activated(activated))
        }
        Fact::GenerationRefused(fact) => (fact.sidecar.clone(), Event::Refused(refused_generation(fact))),
        Fact::ToolCallStarted(_)
        | Fact::GovernanceEvaluated(_)
        | Fact::ToolCallCompleted(_)
        | Fact::ToolCallFailed(_)
        | Fact::ToolCallCancelled(_)
        | Fact::SidecarStarted(_)
        | Fact::ConfigurationLoosened(_) => return None,
    };
    Some(v1::HistoryEntry {
        sequence: stored.sequence,
        at: Some(timestamp(at)),
        sidecar_id: sidecar.to_string(),
        event: Some(event),
    })
}

/// A fact of a run; `None` for a fact of the system.
pub(crate) fn fact(stored: StoredFact) -> Option<v1::Fact> {
    use v1::fact::Body;
    let at = stored.fact.at();
    let (sidecar, body) = match stored.fact {
        Fact::ToolCallStarted(fact) => (fact.sidecar, Body::ToolCallStarted(started(fact.call))),
        Fact::GovernanceEvaluated(fact) => (fact.sidecar.clone(), Body::GovernanceEvaluated(evaluated(fact))),
        Fact::ToolCallCompleted(fact) => (fact.sidecar.clone(), Body::ToolCallCompleted(ended(fact))),
        Fact::ToolCallFailed(fact) => (fact.sidecar.clone(), Body::ToolCallFailed(ended(fact))),
        Fact::ToolCallCancelled(fact) => (fact.sidecar.clone(), Body::ToolCallCancelled(ended(fact))),
        Fact::SidecarStarted(_) | Fact::ConfigurationLoosened(_) | Fact::GenerationActivated(_) | Fact::GenerationRefused(_) => {
            return None;
        }
    };
    Some(v1::Fact {
        sequence: stored.sequence,
        position: stored.position,
        tool_call_id: stored.tool_call.map(|id| id.to_string()).unwrap_or_default(),
        invocation_id: stored.invocation.map(|id| id.to_string()).unwrap_or_default(),
        attempt: stored.attempt,
        at: Some(timestamp(at)),
        sidecar_id: sidecar.to_string(),
        previous_digest: stored.previous.to_string(),
        digest: stored.digest.to_string(),
        body: Some(body),
    })
}

fn started(call: CallRecord) -> v1::ToolCallStarted {
    v1::ToolCallStarted {
        agent: Some(agent(&call.subject.agent)),
        principal: call.subject.principal.as_ref().map(principal),
        tool: Some(tool(&call.subject.tool)),
        arguments_bytes: call.arguments_bytes,
        derived_with: call.derived_with.map(|key| key.as_str().to_owned()).unwrap_or_default(),
        claimed_groups: call.claimed_groups.iter().map(ToString::to_string).collect(),
        claimed_approval: call.claimed_approval.as_ref().map(approval),
        claims_trusted: call.claims_trusted,
        runtime: Some(runtime(call.runtime)),
    }
}

fn agent(agent: &Agent) -> v1::Agent {
    v1::Agent { id: agent.id.to_string(), revision: agent.revision.to_string() }
}

fn principal(principal: &Principal) -> v1::Principal {
    v1::Principal { kind: principal.kind.to_string(), id: principal.id.to_string() }
}

fn tool(tool: &ToolRef) -> v1::Tool {
    v1::Tool {
        id: tool.id.to_string(),
        provider_id: tool.provider.as_ref().map(ToString::to_string).unwrap_or_default(),
        external_name: tool.external_name.as_ref().map(ToString::to_string).unwrap_or_default(),
    }
}

fn approval(approval: &Approval) -> v1::Approval {
    v1::Approval {
        id: approval.id.to_string(),
        approver: approval.approver.to_string(),
        approved_at: Some(timestamp(approval.at)),
    }
}

fn runtime(runtime: Runtime) -> v1::Runtime {
    let text = |text: Option<tollgate_domain::Correlation>| text.map(|text| text.as_str().to_owned()).unwrap_or_default();
    v1::Runtime {
        step_index: runtime.step_index,
        call_index: runtime.call_index,
        depth: runtime.depth,
        interactive: runtime.interactive,
        parent_run_id: runtime.parent_run.map(|id| id.to_string()).unwrap_or_default(),
        traceparent: text(runtime.traceparent),
        assistant_message_id: text(runtime.assistant_message_id),
        executor: text(runtime.executor),
        tool_source: text(runtime.tool_source),
        execution_target: text(runtime.execution_target),
        device: text(runtime.device),
        correlation: runtime
            .correlation
            .iter()
            .map(|(name, value)| (name.as_str().to_owned(), value.as_str().to_owned()))
            .collect(),
    }
}

fn evaluated(fact: Evaluated) -> v1::GovernanceEvaluated {
    let decision = match fact.trace.decision {
        Decision::Allow => v1::Decision::Allow,
        Decision::Deny => v1::Decision::Deny,
        Decision::Failed => v1::Decision::Failed,
        Decision::Mocked => v1::Decision::Mocked,
    };
    v1::GovernanceEvaluated {
        agent: Some(agent(&fact.subject.agent)),
        principal: fact.subject.principal.as_ref().map(principal),
        tool: Some(tool(&fact.subject.tool)),
        generation: Some(generation(&fact.generation)),
        decision: decision.into(),
        decided_by: fact.trace.decided_by.map(|hook| hook.to_string()).unwrap_or_default(),
        code: fact.trace.code.map(|code| code.to_string()).unwrap_or_default(),
        hooks: fact.trace.hooks.into_iter().map(hook).collect(),
        valid_until: fact.valid_until.map(timestamp),
        duration: Some(duration(fact.duration_us)),
    }
}

fn hook(entry: HookEvaluation) -> v1::HookEvaluation {
    let enforcement = match entry.enforcement {
        Enforcement::Enforce => v1::Enforcement::Enforce,
        Enforcement::Shadow => v1::Enforcement::Shadow,
    };
    let verdict = match entry.verdict {
        VerdictKind::Allowed => v1::Verdict::Allowed,
        VerdictKind::Denied => v1::Verdict::Denied,
        VerdictKind::Failed => v1::Verdict::Failed,
        VerdictKind::Abstained => v1::Verdict::Abstained,
    };
    let (resource_id, resource_generation) =
        entry.resource.map_or_else(Default::default, |resource| (resource.id.to_string(), resource.generation));
    v1::HookEvaluation {
        position: entry.position,
        hook_id: entry.hook.to_string(),
        order: entry.order,
        source: source(entry.source).into(),
        enforcement: enforcement.into(),
        resource_id,
        resource_generation,
        digest: entry.digest.map(|digest| digest.to_string()).unwrap_or_default(),
        verdict: verdict.into(),
        code: entry.code.map(|code| code.to_string()).unwrap_or_default(),
        determining_policies: entry.evidence.determining.iter().map(ToString::to_string).collect(),
        erroring_policies: entry.evidence.erroring.iter().map(ToString::to_string).collect(),
        duration: Some(duration(entry.duration_us)),
    }
}

fn source(source: Source) -> v1::HookSource {
    match source {
        Source::Managed => v1::HookSource::Managed,
        Source::Local => v1::HookSource::Local,
        Source::Registered => v1::HookSource::Registered,
        Source::Environment => v1::HookSource::Environment,
        Source::Builtin => v1::HookSource::Builtin,
    }
}

fn ended(terminal: Terminal) -> v1::ToolCallEnded {
    v1::ToolCallEnded {
        reported: terminal.reported.map(outcome),
        governed: Some(outcome(terminal.governed)),
        notices: terminal.notices.into_iter().map(notice).collect(),
        duration: Some(duration(terminal.duration_us)),
    }
}

fn notice(record: NoticeRecord) -> v1::Notice {
    let (result, code) = match record.result {
        NoticeResult::Notified => (v1::NoticeResult::Notified, String::new()),
        NoticeResult::NotNotified => (v1::NoticeResult::NotNotified, String::new()),
        NoticeResult::Failed(code) => (v1::NoticeResult::Failed, code.to_string()),
    };
    v1::Notice { hook_id: record.hook.to_string(), source: source(record.source).into(), result: result.into(), code }
}

fn outcome(outcome: Outcome) -> v1::Outcome {
    let code = |code: Option<tollgate_domain::Code>| code.map(|code| code.to_string()).unwrap_or_default();
    match outcome {
        Outcome::Succeeded { tool_error } => {
            v1::Outcome { kind: v1::OutcomeKind::Succeeded.into(), tool_error, ..Default::default() }
        }
        Outcome::Failed { failure, code: why, error_type, error_message } => v1::Outcome {
            kind: v1::OutcomeKind::Failed.into(),
            failure_kind: match failure {
                FailureKind::Denied => v1::FailureKind::Denied,
                FailureKind::Hook => v1::FailureKind::Hook,
                FailureKind::Provider => v1::FailureKind::Provider,
            }
            .into(),
            code: code(why),
            error_type: error_type.unwrap_or_default(),
            error_message: error_message.unwrap_or_default(),
            ..Default::default()
        },
        Outcome::Cancelled { code: why } => {
            v1::Outcome { kind: v1::OutcomeKind::Cancelled.into(), code: code(why), ..Default::default() }
        }
    }
}

pub(crate) fn tool_call(summary: ToolCallSummary) -> v1::ToolCall {
    let state = match summary.state {
        InvocationState::Absent => v1::InvocationState::Unspecified,
        InvocationState::Started => v1::InvocationState::Started,
        InvocationState::Open => v1::InvocationState::Open,
        InvocationState::Refused => v1::InvocationState::Refused,
        InvocationState::Completed => v1::InvocationState::Completed,
        InvocationState::Failed => v1::InvocationState::Failed,
        InvocationState::Cancelled => v1::InvocationState::Cancelled,
    };
    v1::ToolCall {
        tool_call_id: summary.tool_call.to_string(),
        tool_id: summary.tool.to_string(),
        latest_invocation_id: summary.latest_invocation.to_string(),
        attempts: summary.attempts,
        state: state.into(),
        started_at: Some(timestamp(summary.started_at)),
        duration: summary.duration_us.map(duration),
        governance: summary.trace.map(evaluated),
        outcome: summary.outcome.map(outcome),
    }
}

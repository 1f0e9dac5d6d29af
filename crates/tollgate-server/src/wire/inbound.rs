//! From the wire to the domain. A value that does not fit is refused with the name of its field.

use std::{collections::BTreeMap, fmt::Display};

use tollgate_domain::{
    Agent, Approval, Arguments, Call, Claims, Correlation, Decision, FactFilter, HookId, InvocationId, OwnerKind, PageLimit,
    Principal, Reported, RunKey, Runtime, Timestamp, ToolRef, VerdictKind,
    limits::{CLAIMED_GROUPS_MAX_COUNT, CORRELATION_MAX_COUNT, DEPTH_MAX, INDEX_MAX, TRACEPARENT_MAX_BYTES},
};
use tollgate_proto::v1;

/// A field of a request that does not fit the contract. Holds no value of the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InvalidField {
    pub(crate) field: &'static str,
    pub(crate) problem: String,
}

type Checked<T> = Result<T, InvalidField>;

fn invalid<T>(field: &'static str, problem: impl Display) -> Checked<T> {
    Err(InvalidField { field, problem: problem.to_string() })
}

fn present<T>(field: &'static str, value: Option<T>) -> Checked<T> {
    value.map_or_else(|| invalid(field, "is required"), Ok)
}

/// A text that must be there and fit.
pub(crate) fn required<T, E: Display>(field: &'static str, text: &str, parse: impl Fn(&str) -> Result<T, E>) -> Checked<T> {
    if text.is_empty() {
        return invalid(field, "is required");
    }
    parse(text).or_else(|problem| invalid(field, problem))
}

fn optional<T, E: Display>(field: &'static str, text: &str, parse: impl Fn(&str) -> Result<T, E>) -> Checked<Option<T>> {
    if text.is_empty() { Ok(None) } else { required(field, text, parse).map(Some) }
}

pub(crate) fn run(run: Option<v1::RunKey>) -> Checked<RunKey> {
    let run = present("run", run)?;
    Ok(RunKey {
        tenant: required("run.tenant", &run.tenant, str::parse)?,
        workspace: required("run.workspace", &run.workspace, str::parse)?,
        owner_kind: match run.owner_kind() {
            v1::OwnerKind::Unspecified => return invalid("run.owner_kind", "must be OWNER_KIND_RUN or OWNER_KIND_FLOW"),
            v1::OwnerKind::Run => OwnerKind::Run,
            v1::OwnerKind::Flow => OwnerKind::Flow,
        },
        owner: required("run.owner_id", &run.owner_id, str::parse)?,
        run: required("run.run_id", &run.run_id, str::parse)?,
    })
}

pub(crate) fn call(request: v1::EvaluateRequest) -> Checked<Call> {
    let agent = present("agent", request.agent)?;
    let tool = present("tool", request.tool)?;
    Ok(Call {
        run: run(request.run)?,
        agent: Agent {
            id: required("agent.id", &agent.id, str::parse)?,
            revision: required("agent.revision", &agent.revision, str::parse)?,
        },
        tool: ToolRef {
            id: required("tool.id", &tool.id, str::parse)?,
            provider: optional("tool.provider_id", &tool.provider_id, str::parse)?,
            external_name: optional("tool.external_name", &tool.external_name, str::parse)?,
        },
        principal: request.principal.as_ref().map(principal).transpose()?,
        tool_call: optional("tool_call_id", &request.tool_call_id, str::parse)?,
        call_key: optional("call_key", &request.call_key, str::parse)?,
        invocation: optional("invocation_id", &request.invocation_id, str::parse)?,
        arguments: Arguments::parse(&request.arguments_json).or_else(|problem| invalid("arguments_json", problem))?,
        claims: request.claims.as_ref().map(claims).transpose()?.unwrap_or_default(),
        runtime: request.runtime.as_ref().map(runtime).transpose()?.unwrap_or_default(),
    })
}

fn principal(principal: &v1::Principal) -> Checked<Principal> {
    Ok(Principal {
        kind: required("principal.kind", &principal.kind, str::parse)?,
        id: required("principal.id", &principal.id, str::parse)?,
    })
}

fn claims(claims: &v1::Claims) -> Checked<Claims> {
    if claims.groups.len() > CLAIMED_GROUPS_MAX_COUNT {
        return invalid("claims.groups", format_args!("has more than {CLAIMED_GROUPS_MAX_COUNT} entries"));
    }
    let attributes = match claims.attributes_json.as_ref() {
        [] => None,
        bytes => Some(Arguments::parse(bytes).or_else(|problem| invalid("claims.attributes_json", problem))?),
    };
    Ok(Claims {
        groups: claims.groups.iter().map(|group| required("claims.groups", group, str::parse)).collect::<Checked<_>>()?,
        attributes,
        approval: claims.approval.as_ref().map(approval).transpose()?,
    })
}

fn approval(approval: &v1::Approval) -> Checked<Approval> {
    let at = present("claims.approval.approved_at", approval.approved_at)?;
    let micros = match at.nanos {
        nanos @ 0..1_000_000_000 => {
            at.seconds.checked_mul(1_000_000).and_then(|micros| micros.checked_add(i64::from(nanos) / 1_000))
        }
        _ => None,
    };
    let Some(micros) = micros else { return invalid("claims.approval.approved_at", "is no point in time") };
    Ok(Approval {
        id: required("claims.approval.id", &approval.id, str::parse)?,
        approver: required("claims.approval.approver", &approval.approver, str::parse)?,
        at: Timestamp::from_micros(micros),
    })
}

fn runtime(runtime: &v1::Runtime) -> Checked<Runtime> {
    if runtime.depth > DEPTH_MAX {
        return invalid("runtime.depth", format_args!("is above {DEPTH_MAX}"));
    }
    if runtime.correlation.len() > CORRELATION_MAX_COUNT {
        return invalid("runtime.correlation", format_args!("has more than {CORRELATION_MAX_COUNT} entries"));
    }
    if runtime.traceparent.len() > TRACEPARENT_MAX_BYTES {
        return invalid("runtime.traceparent", format_args!("is longer than {TRACEPARENT_MAX_BYTES} bytes"));
    }
    let mut correlation = BTreeMap::new();
    for (name, value) in &runtime.correlation {
        let name = required("runtime.correlation", name, Correlation::parse)?;
        correlation.insert(name, required("runtime.correlation", value, Correlation::parse)?);
    }
    Ok(Runtime {
        step_index: index("runtime.step_index", runtime.step_index)?,
        call_index: index("runtime.call_index", runtime.call_index)?,
        depth: runtime.depth,
        interactive: runtime.interactive,
        parent_run: optional("runtime.parent_run_id", &runtime.parent_run_id, str::parse)?,
        traceparent: optional("runtime.traceparent", &runtime.traceparent, Correlation::parse)?,
        assistant_message_id: optional("runtime.assistant_message_id", &runtime.assistant_message_id, Correlation::parse)?,
        executor: optional("runtime.executor", &runtime.executor, Correlation::parse)?,
        tool_source: optional("runtime.tool_source", &runtime.tool_source, Correlation::parse)?,
        execution_target: optional("runtime.execution_target", &runtime.execution_target, Correlation::parse)?,
        device: optional("runtime.device", &runtime.device, Correlation::parse)?,
        correlation,
    })
}

fn index(field: &'static str, index: Option<u64>) -> Checked<Option<u64>> {
    if index.is_some_and(|index| index > INDEX_MAX) { invalid(field, format_args!("is above {INDEX_MAX}")) } else { Ok(index) }
}

pub(crate) fn completion(request: v1::CompleteRequest) -> Checked<(RunKey, InvocationId, Reported)> {
    Ok((run(request.run)?, required("invocation_id", &request.invocation_id, str::parse)?, reported(request.outcome)?))
}

fn reported(outcome: Option<v1::complete_request::Outcome>) -> Checked<Reported> {
    use v1::complete_request::Outcome;
    Ok(match present("outcome", outcome)? {
        Outcome::Succeeded(succeeded) => Reported::Succeeded { tool_error: succeeded.tool_error },
        Outcome::ProviderFailed(failed) if failed.error_type.is_empty() => {
            return invalid("provider_failed.error_type", "is required");
        }
        Outcome::ProviderFailed(failed) => {
            Reported::ProviderFailed { error_type: failed.error_type, error_message: failed.error_message }
        }
        Outcome::Cancelled(v1::Cancelled {}) => Reported::Cancelled,
    })
}

pub(crate) fn limit(limit: u32) -> Checked<PageLimit> {
    PageLimit::new(limit).or_else(|problem| invalid("limit", problem))
}

pub(crate) fn filter(filter: Option<v1::FactFilter>) -> Checked<FactFilter> {
    let Some(filter) = filter else { return Ok(FactFilter::default()) };
    // An enum value that this version does not know must not read as "any".
    let verdict = match v1::Verdict::try_from(filter.verdict) {
        Err(_) => return invalid("filter.verdict", "is not a verdict"),
        Ok(v1::Verdict::Unspecified) => None,
        Ok(v1::Verdict::Allowed) => Some(VerdictKind::Allowed),
        Ok(v1::Verdict::Denied) => Some(VerdictKind::Denied),
        Ok(v1::Verdict::Failed) => Some(VerdictKind::Failed),
        Ok(v1::Verdict::Abstained) => Some(VerdictKind::Abstained),
    };
    let decision = match v1::Decision::try_from(filter.decision) {
        Err(_) => return invalid("filter.decision", "is not a decision"),
        Ok(v1::Decision::Unspecified) => None,
        Ok(v1::Decision::Allow) => Some(Decision::Allow),
        Ok(v1::Decision::Deny) => Some(Decision::Deny),
        Ok(v1::Decision::Failed) => Some(Decision::Failed),
        Ok(v1::Decision::Mocked) => Some(Decision::Mocked),
    };
    Ok(FactFilter {
        tool: optional("filter.tool_id", &filter.tool_id, str::parse)?,
        hook: optional("filter.hook", &filter.hook, str::parse::<HookId>)?.map(|hook| hook.to_string()),
        verdict,
        decision,
        generation: (filter.generation > 0).then_some(filter.generation),
    })
}

/// A duration of the wire, which may be negative or out of range.
pub(crate) fn timeout(timeout: Option<prost_types::Duration>) -> Checked<Option<std::time::Duration>> {
    let positive = |timeout: prost_types::Duration| match (u64::try_from(timeout.seconds), u32::try_from(timeout.nanos)) {
        (Ok(seconds), Ok(nanos)) if nanos < 1_000_000_000 => Ok(std::time::Duration::new(seconds, nanos)),
        _ => invalid("timeout", "must be a positive duration"),
    };
    timeout.map(positive).transpose()
}

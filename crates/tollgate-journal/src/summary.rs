//! What readers are told of invocations and tool calls, once for every store.

use tollgate_domain::{
    Decision, Evaluated, Fact, GenerationActivated, InvocationId, InvocationState, LastActivated, Receipt, Started, Terminal,
    ToolCallId, ToolCallSummary, ToolId,
};

/// The place of the last fact of an invocation's decision: what its first answer told, and what a
/// repeat must tell again.
pub(crate) fn last_of_decision(
    started: Receipt,
    evaluated: Option<Receipt>,
    terminal: Option<Receipt>,
    decision: Option<&Evaluated>,
) -> Receipt {
    match decision.map(|evaluated| evaluated.trace.decision) {
        None => started,
        Some(Decision::Allow | Decision::Mocked) => evaluated.unwrap_or(started),
        Some(Decision::Deny | Decision::Failed) => terminal.or(evaluated).unwrap_or(started),
    }
}

/// The projection of a tool call: its id, tool and attempts, then its latest invocation.
pub(crate) fn tool_call_summary(
    (tool_call, tool, attempts): (ToolCallId, ToolId, u32),
    (latest_invocation, state): (InvocationId, InvocationState),
    started: &Started,
    evaluated: Option<Evaluated>,
    terminal: Option<Terminal>,
) -> ToolCallSummary {
    ToolCallSummary {
        tool_call,
        tool,
        latest_invocation,
        attempts,
        state,
        started_at: started.at,
        duration_us: terminal.as_ref().map(|terminal| terminal.duration_us),
        trace: evaluated,
        outcome: terminal.map(|terminal| terminal.governed),
    }
}

/// What a fact of an activation tells of it.
pub(crate) fn last_activated(fact: GenerationActivated) -> LastActivated {
    LastActivated { number: fact.generation.number, revision: fact.revision, serial: fact.serial }
}

/// A fact as how an invocation began, if it is that.
pub(crate) fn started(fact: Fact) -> Option<Started> {
    if let Fact::ToolCallStarted(fact) = fact { Some(fact) } else { None }
}

/// A fact as how an invocation was decided, if it is that.
pub(crate) fn evaluated(fact: Fact) -> Option<Evaluated> {
    if let Fact::GovernanceEvaluated(fact) = fact { Some(fact) } else { None }
}

/// A fact as how an invocation ended, if it is that.
pub(crate) fn terminal(fact: Fact) -> Option<Terminal> {
    if let Fact::ToolCallCompleted(fact) | Fact::ToolCallFailed(fact) | Fact::ToolCallCancelled(fact) = fact {
        Some(fact)
    } else {
        None
    }
}

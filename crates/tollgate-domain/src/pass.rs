//! The only way to an answer: out of the record.
//!
//! A [`Pass`] proves that an ALLOW is durable. Its fields are private and only [`record`] and
//! [`recall`] fill them, so that no other code can make an ALLOW, by mistake or otherwise.
//!
//! ```compile_fail
//! // A pass cannot be made,
//! let pass = tollgate_domain::Pass { decided: todo!() };
//! ```
//! ```compile_fail
//! // nor used twice.
//! fn twice(pass: tollgate_domain::Pass) { drop(pass.clone()); drop(pass) }
//! ```

use crate::{
    clock::Timestamp,
    fact::{CallRecord, Evaluated},
    generation::GenerationRef,
    ids::{Code, HookId, InvocationId, ToolCallId},
    journal::{AppendError, InvocationRecord, Receipt, Store},
    lifecycle::InvocationState,
    limits::MESSAGE_MAX_BYTES,
    sensitive::Sensitive,
    stage::{AttemptIds, Judged},
    trace::Decision,
};

/// What a hook says to the caller of a refused call. Told, never kept: it may quote arguments.
#[derive(Clone, Debug)]
pub struct Message(Sensitive<String>);

impl Message {
    /// A message, cut at [`MESSAGE_MAX_BYTES`].
    #[must_use]
    pub fn new(mut text: String) -> Self {
        text.truncate(text.floor_char_boundary(MESSAGE_MAX_BYTES));
        Self(Sensitive::new(text))
    }

    /// The text, for the answer to the caller.
    #[must_use]
    pub fn tell(&self) -> &str {
        self.0.expose()
    }
}

/// What every answer says, whatever the decision.
#[derive(Debug)]
pub struct Decided {
    /// The logical call.
    pub tool_call: ToolCallId,
    /// The attempt.
    pub invocation: InvocationId,
    /// The attempt's number among those of its tool call.
    pub attempt: u32,
    /// The generation that decided.
    pub generation: GenerationRef,
    /// The sequence of the decision's last fact in its run.
    pub sequence: u64,
    /// The store-wide position of that fact.
    pub position: u64,
    /// Whether this answer repeats an earlier one.
    pub repeat: bool,
}

/// The proof that an ALLOW is durable. Consumed by the answer that it permits.
#[derive(Debug)]
#[must_use = "an unused pass is an ALLOW that nobody was told"]
pub struct Pass {
    decided: Decided,
    valid_until: Timestamp,
}

impl Pass {
    /// What the answer says.
    #[must_use]
    pub const fn decided(&self) -> &Decided {
        &self.decided
    }

    /// Until when the tool may be started.
    #[must_use]
    pub const fn valid_until(&self) -> Timestamp {
        self.valid_until
    }
}

/// A durable DENY or FAILED.
#[derive(Debug)]
pub struct Refusal {
    /// What the answer says.
    pub decided: Decided,
    /// [`Decision::Deny`] or [`Decision::Failed`].
    pub decision: Decision,
    /// Who refused.
    pub hook: Option<HookId>,
    /// Why, for machines.
    pub code: Option<Code>,
    /// Why, for the caller; absent where it is no longer known.
    pub message: Option<Message>,
}

/// A recorded decision.
#[derive(Debug)]
#[must_use = "a recorded decision is there to be told"]
pub enum Recorded {
    /// The tool may be run.
    Allowed(Pass),
    /// It must not.
    Refused(Refusal),
}

impl Recorded {
    /// What the answer says, whatever the decision.
    #[must_use]
    pub const fn decided(&self) -> &Decided {
        match self {
            Self::Allowed(pass) => &pass.decided,
            Self::Refused(refusal) => &refusal.decided,
        }
    }
}

/// Makes a judged call's facts durable, and only then a decision of it.
pub async fn record(store: &dyn Store, judged: Judged) -> Result<Recorded, AppendError> {
    let receipt = store.append(judged.entry()).await?;
    let ids = judged.resolved.ids().clone();
    Ok(answer(ids, &receipt, judged.evaluated, judged.message, false))
}

/// How a call that was sent again compares with the one that was recorded.
#[derive(Clone, Debug)]
pub enum Comparison {
    /// Equal in everything, arguments included; with the message that the first one was told.
    Identical(Option<Message>),
    /// Not equal.
    Different,
    /// What is needed to compare arguments is gone.
    Unknown,
}

/// What a recorded invocation answers to a call that was sent again.
#[derive(Debug)]
pub enum Recalled {
    /// The recorded decision, again.
    Repeat(Recorded),
    /// The id belongs to another call, or to an invocation that has ended.
    Reused,
    /// The ALLOW may no longer be acted on.
    Expired,
    /// The ALLOW cannot be shown to be for this very call, or the invocation is not decided.
    Unverifiable,
}

/// Answers out of the record: DENY and FAILED always, ALLOW only to a call that is known to be
/// identical, before an outcome is recorded and within its validity.
#[must_use]
pub fn recall(record: InvocationRecord, ids: &AttemptIds, call: &CallRecord, comparison: Comparison, now: Timestamp) -> Recalled {
    let same = record.tool_call == ids.tool_call && record.started.call.subject == call.subject;
    let message = match comparison {
        Comparison::Different => return Recalled::Reused,
        _ if !same => return Recalled::Reused,
        Comparison::Identical(message) => Some(message),
        Comparison::Unknown => None,
    };
    let Some(evaluated) = record.evaluated else {
        return if record.state.is_terminal() { Recalled::Reused } else { Recalled::Unverifiable };
    };
    let ids = AttemptIds { tool_call: record.tool_call, invocation: record.invocation };
    match evaluated.trace.decision {
        Decision::Deny | Decision::Failed => Recalled::Repeat(answer(ids, &record.receipt, evaluated, message.flatten(), true)),
        Decision::Allow | Decision::Mocked => match (record.state, message) {
            (_, None) => Recalled::Unverifiable,
            (InvocationState::Open, Some(_)) if evaluated.valid_until.is_some_and(|until| now <= until) => {
                Recalled::Repeat(answer(ids, &record.receipt, evaluated, None, true))
            }
            (InvocationState::Open, Some(_)) => Recalled::Expired,
            _ => Recalled::Reused,
        },
    }
}

fn answer(ids: AttemptIds, receipt: &Receipt, evaluated: Evaluated, message: Option<Message>, repeat: bool) -> Recorded {
    let decided = Decided {
        tool_call: ids.tool_call,
        invocation: ids.invocation,
        attempt: receipt.attempt,
        generation: evaluated.generation,
        sequence: receipt.sequence,
        position: receipt.position,
        repeat,
    };
    match (evaluated.trace.decision, evaluated.valid_until) {
        (Decision::Allow, Some(valid_until)) => Recorded::Allowed(Pass { decided, valid_until }),
        (decision, _) => Recorded::Refused(Refusal {
            decided,
            // An ALLOW without validity is none; MOCKED never comes out of a chain without mocks.
            decision: if decision == Decision::Deny { Decision::Deny } else { Decision::Failed },
            hook: evaluated.trace.decided_by,
            code: evaluated.trace.code,
            message,
        }),
    }
}

//! Why there is no decision, or no outcome. Never a refusal: those are answers.

use tollgate_domain::{InvocationId, UnavailableCause};

/// Evaluate gives no decision, and the tool must not be run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EvaluateError {
    /// The call contradicts the contract or the record.
    #[error("{field} {problem}")]
    Invalid {
        /// The field, by its name in the contract.
        field: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// The caller may not speak for this tenant, workspace or agent.
    #[error("this listener does not speak for the {what} of the call")]
    PermissionDenied {
        /// Which of them.
        what: &'static str,
    },
    /// No generation was ever activated.
    #[error("no generation is active, so nothing can be approved; see the sidecar's policy status")]
    NoGeneration,
    /// The decision could not be made durable in time.
    #[error("{0}")]
    Journal(#[from] JournalProblem),
    /// The invocation id belongs to another call, or to an invocation that has ended.
    #[error("invocation_id {0:?} was used already: take a new one for a new attempt")]
    InvocationReused(InvocationId),
    /// The recorded ALLOW may no longer be acted on.
    #[error("the decision for invocation_id {0:?} has expired: take a new one for a new attempt")]
    DecisionExpired(InvocationId),
    /// It cannot be shown that the recorded ALLOW is for this very call.
    #[error("invocation_id {0:?} is recorded, but its arguments can no longer be compared: take a new one for a new attempt")]
    InvocationUnverifiable(InvocationId),
    /// The caller cancelled before it could be told a recorded ALLOW.
    #[error("the call was cancelled, or its deadline passed, before it was answered")]
    Cancelled,
    /// The same call was sent before and is not decided yet.
    #[error("invocation_id {0:?} is still being judged: ask again with the same one")]
    StillInFlight(InvocationId),
    /// The sidecar is shutting down.
    #[error("the sidecar is shutting down")]
    ShuttingDown,
    /// A defect of the product; nothing was approved.
    #[error("an internal error; nothing was approved")]
    Internal,
}

/// The journal did not take a fact, or did not say so in time. Nothing is approved without it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JournalProblem {
    /// It cannot be written or read.
    #[error("the journal is unavailable: {0}")]
    Unavailable(UnavailableCause),
    /// It did not answer within the sidecar's limit.
    #[error("the journal did not answer within the sidecar's limit")]
    TooSlow,
    /// It did not answer before the caller's deadline.
    #[error("the journal did not answer before the caller's deadline")]
    DeadlinePassed,
}

impl JournalProblem {
    /// The name in metrics and error details.
    #[must_use]
    pub const fn cause(self) -> &'static str {
        match self {
            Self::Unavailable(cause) => cause.as_str(),
            Self::TooSlow => "too_slow",
            Self::DeadlinePassed => "deadline_passed",
        }
    }
}

/// Complete records no outcome.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompleteError {
    /// No such invocation in this run, or none that the caller may see.
    #[error("no such invocation in this run")]
    NotFound,
    /// The invocation was not allowed, so it has no outcome of the caller's.
    #[error("the invocation was not allowed, so nothing can be completed")]
    NotAllowed,
    /// Hooks are to be told the outcome, and no generation is active that could hold them; the caller may
    /// complete again.
    #[error("no generation is active, so the hooks that wait for this outcome cannot be told: complete again")]
    NoGeneration,
    /// The outcome could not be made durable in time; the caller may complete again.
    #[error("{0}")]
    Journal(#[from] JournalProblem),
    /// The sidecar is shutting down.
    #[error("the sidecar is shutting down")]
    ShuttingDown,
    /// A defect of the product.
    #[error("an internal error; the outcome may not be recorded")]
    Internal,
}

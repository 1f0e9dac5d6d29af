//! The one place where an error becomes a gRPC status. Each carries `google.rpc.ErrorInfo` with domain
//! `tollgate.dev`, a stable reason, and where it says more than the message, metadata.

use std::collections::HashMap;

use tollgate_domain::Unavailable;
use tollgate_engine::{CompleteError, EvaluateError, JournalProblem};
use tollgate_proto::v1;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

use crate::wire::inbound::InvalidField;

#[cfg(test)]
mod tests;

/// The domain of every `ErrorInfo`.
const ERROR_DOMAIN: &str = "tollgate.dev";

/// Why an RPC has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    code: Code,
    reason: &'static str,
    message: String,
    metadata: Vec<(&'static str, String)>,
}

impl Problem {
    fn new(code: Code, reason: &'static str, message: impl Into<String>) -> Self {
        Self { code, reason, message: message.into(), metadata: Vec::new() }
    }

    fn with(mut self, key: &'static str, value: impl Into<String>) -> Self {
        self.metadata.push((key, value.into()));
        self
    }

    /// A run, invocation or tool call that is not there, or not for this caller.
    pub(crate) fn not_found(what: &'static str) -> Self {
        Self::new(Code::NotFound, "NOT_FOUND", format!("no such {what}, or none that this listener may see"))
    }

    /// More calls are in flight than may be.
    pub(crate) fn overloaded(calls: usize, kib: u32) -> Self {
        let message = format!(
            "{calls} calls or {kib} KiB of arguments are in flight, which is all there may be; try again with the same invocation_id"
        );
        Self::new(Code::ResourceExhausted, "OVERLOADED", message)
    }

    /// Calls come faster than they may.
    pub(crate) fn rate_limited() -> Self {
        let message = "calls come faster than this listener's rate limit; try again with the same invocation_id";
        Self::new(Code::ResourceExhausted, "RATE_LIMITED", message)
    }

    pub(crate) fn into_status(self) -> Status {
        let metadata: HashMap<String, String> = self.metadata.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        let details = ErrorDetails::with_error_info(self.reason, ERROR_DOMAIN, metadata);
        Status::with_error_details(self.code, self.message, details)
    }

    pub(crate) fn into_stream_error(self) -> v1::StreamError {
        v1::StreamError { code: self.code.into(), message: self.message, reason: self.reason.to_owned() }
    }
}

impl From<InvalidField> for Problem {
    fn from(InvalidField { field, problem }: InvalidField) -> Self {
        Self::new(Code::InvalidArgument, "INVALID_FIELD", format!("{field} {problem}")).with("field", field)
    }
}

impl From<EvaluateError> for Problem {
    fn from(error: EvaluateError) -> Self {
        let message = error.to_string();
        match error {
            EvaluateError::Invalid { field, .. } => {
                Self::new(Code::InvalidArgument, "INVALID_FIELD", message).with("field", field)
            }
            EvaluateError::PermissionDenied { .. } => Self::new(Code::PermissionDenied, "NOT_THIS_LISTENER", message),
            EvaluateError::NoGeneration => Self::new(Code::Unavailable, "NO_GENERATION", message),
            EvaluateError::Journal(problem) => problem.into(),
            EvaluateError::InvocationReused(_) => Self::new(Code::AlreadyExists, "INVOCATION_REUSED", message),
            EvaluateError::DecisionExpired(_) => Self::new(Code::AlreadyExists, "DECISION_EXPIRED", message),
            EvaluateError::InvocationUnverifiable(_) => Self::new(Code::AlreadyExists, "INVOCATION_UNVERIFIABLE", message),
            EvaluateError::Cancelled => Self::new(Code::Cancelled, "CANCELLED", message),
            EvaluateError::StillInFlight(_) => Self::new(Code::DeadlineExceeded, "STILL_IN_FLIGHT", message),
            EvaluateError::ShuttingDown => Self::new(Code::Unavailable, "SHUTTING_DOWN", message),
            EvaluateError::Internal => Self::new(Code::Internal, "INTERNAL", message),
        }
    }
}

impl From<CompleteError> for Problem {
    fn from(error: CompleteError) -> Self {
        let message = error.to_string();
        match error {
            CompleteError::NotFound => Self::not_found("invocation in this run"),
            CompleteError::NotAllowed => Self::new(Code::FailedPrecondition, "INVOCATION_NOT_ALLOWED", message),
            CompleteError::NoGeneration => Self::new(Code::Unavailable, "NO_GENERATION", message),
            CompleteError::Journal(problem) => problem.into(),
            CompleteError::ShuttingDown => Self::new(Code::Unavailable, "SHUTTING_DOWN", message),
            CompleteError::Internal => Self::new(Code::Internal, "INTERNAL", message),
        }
    }
}

impl From<JournalProblem> for Problem {
    fn from(problem: JournalProblem) -> Self {
        let code = match problem {
            JournalProblem::Unavailable(_) | JournalProblem::TooSlow => Code::Unavailable,
            JournalProblem::DeadlinePassed => Code::DeadlineExceeded,
        };
        let message = problem.to_string();
        Self::new(code, "JOURNAL_UNAVAILABLE", message).with("cause", problem.cause())
    }
}

impl From<Unavailable> for Problem {
    fn from(unavailable: Unavailable) -> Self {
        let problem = JournalProblem::Unavailable(unavailable.cause);
        Self::new(Code::Unavailable, "JOURNAL_UNAVAILABLE", problem.to_string()).with("cause", problem.cause())
    }
}

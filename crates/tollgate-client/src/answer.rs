//! Answers as types: what is not an ALLOW cannot be read as one.

use tollgate_proto::v1::{Decision, EvaluateResponse};
use tonic::{Code, Status};
use tonic_types::StatusExt;

/// A durable decision.
#[derive(Clone, Debug)]
#[must_use = "the tool may be run only on Answer::Allowed"]
pub enum Answer {
    /// The tool may be run, once.
    Allowed(Allowed),
    /// It must not be run.
    Refused(Refused),
}

/// The tool may be run, once, before `response.valid_until`.
#[derive(Clone, Debug)]
pub struct Allowed {
    /// The whole answer.
    pub response: EvaluateResponse,
}

/// The tool must not be run.
#[derive(Clone, Debug)]
pub struct Refused {
    /// The whole answer; its decision is never ALLOW.
    pub response: EvaluateResponse,
}

impl Answer {
    /// Reads an answer. Whatever is not exactly ALLOW, decisions of a newer contract included, is refused.
    pub(crate) fn of(response: EvaluateResponse) -> Self {
        if response.decision() == Decision::Allow {
            Self::Allowed(Allowed { response })
        } else {
            Self::Refused(Refused { response })
        }
    }

    /// The whole answer.
    #[must_use]
    pub const fn response(&self) -> &EvaluateResponse {
        match self {
            Self::Allowed(Allowed { response }) | Self::Refused(Refused { response }) => response,
        }
    }
}

/// There is no answer.
#[derive(Debug, thiserror::Error)]
#[error("{}: {message}", reason.as_deref().unwrap_or("the sidecar gave no answer"))]
pub struct CallError {
    /// The gRPC status code.
    pub code: Code,
    /// The stable reason of the sidecar's `ErrorInfo`; absent where the sidecar was not reached.
    pub reason: Option<String>,
    /// For people.
    pub message: String,
}

impl CallError {
    /// Reads the status of a failed call.
    #[must_use]
    pub fn from_status(status: &Status) -> Self {
        let reason = status.get_details_error_info().map(|info| info.reason);
        Self { code: status.code(), reason, message: status.message().to_owned() }
    }

    /// Whether sending the same request again can help.
    #[must_use]
    pub fn may_send_again(&self) -> bool {
        matches!(self.code, Code::Unavailable | Code::DeadlineExceeded | Code::ResourceExhausted)
    }
}

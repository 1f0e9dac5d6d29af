//! How an invocation ended: what the caller reported, and what governance makes of it.

use serde::{Deserialize, Serialize};

use crate::{
    ids::{Code, HookId},
    limits::{FAILURE_MESSAGE_MAX_BYTES, FAILURE_TYPE_MAX_BYTES},
    trace::Source,
};

/// Whose failure it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum FailureKind {
    /// A hook denied.
    Denied,
    /// A hook could not decide, or an outcome notice failed on success.
    Hook,
    /// The tool threw.
    Provider,
}

/// How an invocation ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Outcome {
    /// The tool returned.
    Succeeded {
        /// It returned an error as its answer, which is no throw.
        #[serde(default)]
        tool_error: bool,
    },
    /// It did not return.
    Failed {
        /// Whose failure.
        failure: FailureKind,
        /// Why, where governance refused.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<Code>,
        /// The provider's exception type, unchanged.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error_type: Option<String>,
        /// The provider's exception message, cut at [`FAILURE_MESSAGE_MAX_BYTES`]; absent where keeping it is off.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error_message: Option<String>,
    },
    /// It was cancelled.
    Cancelled {
        /// Why, where governance knows.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<Code>,
    },
}

/// What a caller may report at Complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reported {
    /// The tool returned.
    Succeeded {
        /// Its answer was an error.
        tool_error: bool,
    },
    /// The tool threw.
    ProviderFailed {
        /// The exception's type.
        error_type: String,
        /// The exception's message; may be empty.
        error_message: String,
    },
    /// The tool was cancelled, before or while it ran.
    Cancelled,
}

impl Reported {
    /// The outcome as it is recorded: texts cut to their limits, and the message dropped where the
    /// configuration keeps none.
    #[must_use]
    pub fn into_outcome(self, keep_messages: bool) -> Outcome {
        match self {
            Self::Succeeded { tool_error } => Outcome::Succeeded { tool_error },
            Self::ProviderFailed { error_type, error_message } => Outcome::Failed {
                failure: FailureKind::Provider,
                code: None,
                error_type: Some(cut(error_type, FAILURE_TYPE_MAX_BYTES)),
                error_message: (keep_messages && !error_message.is_empty())
                    .then(|| cut(error_message, FAILURE_MESSAGE_MAX_BYTES)),
            },
            Self::Cancelled => Outcome::Cancelled { code: None },
        }
    }
}

/// Cuts at a character boundary at or before `max` bytes.
fn cut(mut text: String, max: usize) -> String {
    text.truncate(text.floor_char_boundary(max));
    text
}

/// What became of one outcome notice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoticeRecord {
    /// The hook.
    pub hook: HookId,
    /// Where it comes from.
    pub source: Source,
    /// What became of it.
    pub result: NoticeResult,
}

/// What became of an outcome notice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoticeResult {
    /// The hook took it.
    Notified,
    /// The hook exists no longer.
    NotNotified,
    /// The hook failed, for this reason.
    Failed(Code),
}

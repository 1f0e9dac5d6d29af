//! The life of one invocation as its facts tell it: one transition function, used by the store that
//! guards an append, by the reader that folds facts, and by whoever answers out of the record.

use serde::{Deserialize, Serialize};

use crate::{
    fact::{Fact, FactKind},
    trace::Decision,
};

/// Where an invocation stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InvocationState {
    /// No fact of it exists.
    #[default]
    Absent,
    /// It began, and is not decided.
    Started,
    /// ALLOW (or MOCKED): the tool may be running.
    Open,
    /// DENY or FAILED: it awaits only its terminal fact.
    Refused,
    /// It ended with success.
    Completed,
    /// It ended with failure.
    Failed,
    /// It was cancelled.
    Cancelled,
}

/// A fact that cannot follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} cannot follow: the invocation is {state:?}", fact.as_str())]
pub struct IllegalTransition {
    /// Where the invocation stands.
    pub state: InvocationState,
    /// The fact that was tried.
    pub fact: FactKind,
}

impl InvocationState {
    /// The state after one more fact.
    pub fn step(self, fact: &Fact) -> Result<Self, IllegalTransition> {
        let illegal = Err(IllegalTransition { state: self, fact: fact.kind() });
        match fact {
            Fact::ToolCallStarted(_) => match self {
                Self::Absent => Ok(Self::Started),
                Self::Started | Self::Open | Self::Refused | Self::Completed | Self::Failed | Self::Cancelled => illegal,
            },
            Fact::GovernanceEvaluated(evaluated) => match self {
                Self::Started => Ok(match evaluated.trace.decision {
                    Decision::Allow | Decision::Mocked => Self::Open,
                    Decision::Deny | Decision::Failed => Self::Refused,
                }),
                Self::Absent | Self::Open | Self::Refused | Self::Completed | Self::Failed | Self::Cancelled => illegal,
            },
            Fact::ToolCallCompleted(_) => match self {
                Self::Open => Ok(Self::Completed),
                Self::Absent | Self::Started | Self::Refused | Self::Completed | Self::Failed | Self::Cancelled => illegal,
            },
            Fact::ToolCallFailed(_) => match self {
                Self::Open | Self::Refused => Ok(Self::Failed),
                Self::Absent | Self::Started | Self::Completed | Self::Failed | Self::Cancelled => illegal,
            },
            Fact::ToolCallCancelled(_) => match self {
                Self::Started | Self::Open | Self::Refused => Ok(Self::Cancelled),
                Self::Absent | Self::Completed | Self::Failed | Self::Cancelled => illegal,
            },
            Fact::SidecarStarted(_)
            | Fact::ConfigurationLoosened(_)
            | Fact::GenerationActivated(_)
            | Fact::GenerationRefused(_) => illegal,
        }
    }

    /// Whether it has ended.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        match self {
            Self::Completed | Self::Failed | Self::Cancelled => true,
            Self::Absent | Self::Started | Self::Open | Self::Refused => false,
        }
    }

    /// The name in projections and readers.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Absent => "absent",
            Self::Started => "started",
            Self::Open => "open",
            Self::Refused => "refused",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// The state of a projection's name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Absent, Self::Started, Self::Open, Self::Refused, Self::Completed, Self::Failed, Self::Cancelled]
            .into_iter()
            .find(|state| state.as_str() == name)
    }
}

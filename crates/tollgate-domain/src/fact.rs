//! Facts: the append-only records of the journal, and nothing in them that must not be kept.
//!
//! A fact is stored as the bytes of [`Fact::encode`]. Field names are the contract of the stored
//! form: one may be added with a default, none renamed.

use serde::{Deserialize, Serialize};

use crate::{
    bundle::Finding,
    call::{Agent, Approval, Call, Principal, Runtime, ToolRef},
    clock::Timestamp,
    digest::Digest,
    generation::GenerationRef,
    identity::KeyId,
    ids::{BundleName, Code, GroupId, ResourceId, Revision, SidecarId},
    outcome::{NoticeRecord, Outcome},
    trace::Trace,
};

/// One record of the journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "fact")]
pub enum Fact {
    /// An attempt began.
    ToolCallStarted(Started),
    /// The chain was decided.
    GovernanceEvaluated(Evaluated),
    /// The governed outcome is success.
    ToolCallCompleted(Terminal),
    /// The governed outcome is failure.
    ToolCallFailed(Terminal),
    /// The attempt was cancelled.
    ToolCallCancelled(Terminal),
    /// A sidecar began to serve this journal.
    SidecarStarted(SidecarStarted),
    /// A key of the configuration that loosens a rule is in force.
    ConfigurationLoosened(ConfigurationLoosened),
    /// A generation became the one that decides.
    GenerationActivated(GenerationActivated),
    /// A candidate was refused, and the generation before it serves on.
    GenerationRefused(GenerationRefused),
}

/// The kind of a [`Fact`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum FactKind {
    /// See [`Fact::ToolCallStarted`].
    ToolCallStarted,
    /// See [`Fact::GovernanceEvaluated`].
    GovernanceEvaluated,
    /// See [`Fact::ToolCallCompleted`].
    ToolCallCompleted,
    /// See [`Fact::ToolCallFailed`].
    ToolCallFailed,
    /// See [`Fact::ToolCallCancelled`].
    ToolCallCancelled,
    /// See [`Fact::SidecarStarted`].
    SidecarStarted,
    /// See [`Fact::ConfigurationLoosened`].
    ConfigurationLoosened,
    /// See [`Fact::GenerationActivated`].
    GenerationActivated,
    /// See [`Fact::GenerationRefused`].
    GenerationRefused,
}

/// Who asked for what.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subject {
    /// The agent.
    pub agent: Agent,
    /// Whom it acts for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<Principal>,
    /// The tool.
    pub tool: ToolRef,
}

/// All of a call that is kept: ids, sizes and correlation, no value of an argument or attribute.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallRecord {
    /// Who asked for what.
    #[serde(flatten)]
    pub subject: Subject,
    /// The size of the arguments, in bytes as sent.
    pub arguments_bytes: u64,
    /// Where the tool call id was derived, the key it was derived with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub derived_with: Option<KeyId>,
    /// Groups that the caller claimed for the principal.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claimed_groups: Vec<GroupId>,
    /// Evidence of an approval that the caller brought.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claimed_approval: Option<Approval>,
    /// Whether the claims reached policy.
    #[serde(default)]
    pub claims_trusted: bool,
    /// Where in the runtime the call arose.
    #[serde(default)]
    pub runtime: Runtime,
}

impl CallRecord {
    /// The keepable part of a call.
    #[must_use]
    pub fn of(call: &Call, derived_with: Option<KeyId>, claims_trusted: bool) -> Self {
        Self {
            subject: Subject { agent: call.agent.clone(), principal: call.principal.clone(), tool: call.tool.clone() },
            arguments_bytes: call.arguments.byte_len() as u64,
            derived_with,
            claimed_groups: call.claims.groups.clone(),
            claimed_approval: call.claims.approval.clone(),
            claims_trusted,
            runtime: call.runtime.clone(),
        }
    }
}

/// An attempt began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Started {
    /// The call.
    pub call: CallRecord,
    /// The sidecar that was asked.
    pub sidecar: SidecarId,
    /// When.
    pub at: Timestamp,
}

/// The chain was decided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evaluated {
    /// Who asked for what, again, so that the fact speaks for itself.
    #[serde(flatten)]
    pub subject: Subject,
    /// The generation that decided.
    pub generation: GenerationRef,
    /// What each hook said, and what the chain came to.
    pub trace: Trace,
    /// Until when an ALLOW may be acted on; absent for every other decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub valid_until: Option<Timestamp>,
    /// The sidecar that decided.
    pub sidecar: SidecarId,
    /// When it was decided.
    pub at: Timestamp,
    /// How long the chain took, in microseconds.
    pub duration_us: u64,
}

/// How an invocation ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Terminal {
    /// What the caller reported; absent where governance ended the invocation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reported: Option<Outcome>,
    /// What governance makes of it.
    pub governed: Outcome,
    /// What became of the outcome notices, in the order of sending.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<NoticeRecord>,
    /// The sidecar that recorded the end.
    pub sidecar: SidecarId,
    /// When it ended.
    pub at: Timestamp,
    /// From Started to here by the wall clock, in microseconds; zero where that clock went backwards.
    pub duration_us: u64,
}

impl Terminal {
    /// The fact, of the kind that the governed outcome demands.
    #[must_use]
    pub fn into_fact(self) -> Fact {
        match self.governed {
            Outcome::Succeeded { .. } => Fact::ToolCallCompleted(self),
            Outcome::Failed { .. } => Fact::ToolCallFailed(self),
            Outcome::Cancelled { .. } => Fact::ToolCallCancelled(self),
        }
    }
}

/// A sidecar began to serve this journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SidecarStarted {
    /// The sidecar.
    pub sidecar: SidecarId,
    /// The program's version.
    pub version: String,
    /// The key that derived ids are made with.
    pub identity_key: KeyId,
    /// How many unfinished invocations of an earlier process were closed.
    pub interrupted: u64,
    /// When.
    pub at: Timestamp,
}

/// A key of the configuration that loosens a rule is in force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigurationLoosened {
    /// The key.
    pub key: String,
    /// Its value, as text; never a secret.
    pub value: String,
    /// The sidecar.
    pub sidecar: SidecarId,
    /// When it was seen to be in force.
    pub at: Timestamp,
}

/// A generation became the one that decides.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GenerationActivated {
    /// Which.
    #[serde(flatten)]
    pub generation: GenerationRef,
    /// The source's name for its content.
    pub revision: Revision,
    /// The highest serial that was activated so far, where any bundle had one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serial: Option<u64>,
    /// The number that it took over from, on this sidecar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaced: Option<u64>,
    /// Its managed hooks.
    pub hooks: Vec<ActivatedHook>,
    /// The sidecar.
    pub sidecar: SidecarId,
    /// When.
    pub at: Timestamp,
}

/// One managed hook of an activated generation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActivatedHook {
    /// Its place in the bundle.
    pub resource: ResourceId,
    /// Its own generation.
    pub generation: u64,
    /// The digest of its content.
    pub digest: Digest,
}

/// A candidate was refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GenerationRefused {
    /// The bundle, as far as its name could be read; else the name of the active one.
    pub bundle: BundleName,
    /// The source's name for the refused content.
    pub revision: Revision,
    /// Why.
    pub code: Code,
    /// The first findings, places and codes only.
    pub findings: Vec<Finding>,
    /// How many findings there were.
    pub findings_count: u64,
    /// The sidecar.
    pub sidecar: SidecarId,
    /// When.
    pub at: Timestamp,
}

impl Fact {
    /// The kind.
    #[must_use]
    pub const fn kind(&self) -> FactKind {
        match self {
            Self::ToolCallStarted(_) => FactKind::ToolCallStarted,
            Self::GovernanceEvaluated(_) => FactKind::GovernanceEvaluated,
            Self::ToolCallCompleted(_) => FactKind::ToolCallCompleted,
            Self::ToolCallFailed(_) => FactKind::ToolCallFailed,
            Self::ToolCallCancelled(_) => FactKind::ToolCallCancelled,
            Self::SidecarStarted(_) => FactKind::SidecarStarted,
            Self::ConfigurationLoosened(_) => FactKind::ConfigurationLoosened,
            Self::GenerationActivated(_) => FactKind::GenerationActivated,
            Self::GenerationRefused(_) => FactKind::GenerationRefused,
        }
    }

    /// When it happened, by the wall clock of the sidecar that wrote it.
    #[must_use]
    pub const fn at(&self) -> Timestamp {
        match self {
            Self::ToolCallStarted(fact) => fact.at,
            Self::GovernanceEvaluated(fact) => fact.at,
            Self::ToolCallCompleted(fact) | Self::ToolCallFailed(fact) | Self::ToolCallCancelled(fact) => fact.at,
            Self::SidecarStarted(fact) => fact.at,
            Self::ConfigurationLoosened(fact) => fact.at,
            Self::GenerationActivated(fact) => fact.at,
            Self::GenerationRefused(fact) => fact.at,
        }
    }

    /// The bytes as stored: JSON, fields in the order of declaration.
    pub fn encode(&self) -> Result<Vec<u8>, serde_json::Error> {
        serde_json::to_vec(self)
    }

    /// A fact from its stored bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(bytes)
    }
}

impl FactKind {
    /// Every kind.
    pub const ALL: [Self; 9] = [
        Self::ToolCallStarted,
        Self::GovernanceEvaluated,
        Self::ToolCallCompleted,
        Self::ToolCallFailed,
        Self::ToolCallCancelled,
        Self::SidecarStarted,
        Self::ConfigurationLoosened,
        Self::GenerationActivated,
        Self::GenerationRefused,
    ];

    /// The name that the contract uses.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ToolCallStarted => "ToolCallStarted",
            Self::GovernanceEvaluated => "GovernanceEvaluated",
            Self::ToolCallCompleted => "ToolCallCompleted",
            Self::ToolCallFailed => "ToolCallFailed",
            Self::ToolCallCancelled => "ToolCallCancelled",
            Self::SidecarStarted => "SidecarStarted",
            Self::ConfigurationLoosened => "ConfigurationLoosened",
            Self::GenerationActivated => "GenerationActivated",
            Self::GenerationRefused => "GenerationRefused",
        }
    }
}

//! A tool call as its caller describes it, before any id was derived for it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    arguments::Arguments,
    clock::Timestamp,
    ids::{
        AgentId, AgentRevision, ApprovalId, CallKey, Correlation, ExternalToolName, GroupId, InvocationId, PrincipalId,
        PrincipalKind, ProviderId, RunId, ToolCallId, ToolId,
    },
    run::RunKey,
};

/// One physical attempt of one intended effect, as the caller states it.
#[derive(Clone, Debug)]
pub struct Call {
    /// The run.
    pub run: RunKey,
    /// The agent that asks.
    pub agent: Agent,
    /// The tool that would be called.
    pub tool: ToolRef,
    /// Whom the agent acts for, where there is somebody.
    pub principal: Option<Principal>,
    /// The framework's id of the logical call; derived where it has none.
    pub tool_call: Option<ToolCallId>,
    /// Sets apart two intended calls with equal arguments, where the id is derived.
    pub call_key: Option<CallKey>,
    /// The caller's id of this attempt; made where there is none.
    pub invocation: Option<InvocationId>,
    /// The arguments, which are judged and never kept.
    pub arguments: Arguments,
    /// What the caller asserts of its principal; reaches policy only where the caller is trusted for it.
    pub claims: Claims,
    /// Where in the runtime the call arose.
    pub runtime: Runtime,
}

/// The agent that asks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agent {
    /// Its id.
    pub id: AgentId,
    /// The revision of its definition.
    pub revision: AgentRevision,
}

/// The tool, by the names that the caller has for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolRef {
    /// The canonical id.
    pub id: ToolId,
    /// The provider, where the caller knows it. Must equal the catalogue's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<ProviderId>,
    /// The provider's own name for the tool, where the caller knows it. Must equal the catalogue's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external_name: Option<ExternalToolName>,
}

/// Whom the agent acts for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Principal {
    /// What kind of identity; `user` becomes Cedar's `context.on_behalf_of`.
    pub kind: PrincipalKind,
    /// Its id.
    pub id: PrincipalId,
}

/// What a caller asserts and Tollgate cannot check.
#[derive(Clone, Debug, Default)]
pub struct Claims {
    /// Groups of the principal.
    pub groups: Vec<GroupId>,
    /// Attributes of the principal, one I-JSON object; values are never kept.
    pub attributes: Option<Arguments>,
    /// Evidence of a human's consent.
    pub approval: Option<Approval>,
}

/// Evidence of a consent that was given outside the chain and before it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approval {
    /// Its id.
    pub id: ApprovalId,
    /// Who consented.
    pub approver: PrincipalId,
    /// When.
    pub at: Timestamp,
}

/// Where in the runtime a call arose: correlation for readers, context for policies.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Runtime {
    /// The position of the agent's step in its run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step_index: Option<u64>,
    /// The position of the call in its step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_index: Option<u64>,
    /// Nesting of sub-agents; 0 at the top.
    #[serde(default)]
    pub depth: u32,
    /// Whether a person watches the run.
    #[serde(default)]
    pub interactive: bool,
    /// The run that started this one, in the same tenant and workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_run: Option<RunId>,
    /// W3C trace context.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<Correlation>,
    /// The model's message that asked for the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assistant_message_id: Option<Correlation>,
    /// Which part of the runtime dispatches the call, such as `client` or `server`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executor: Option<Correlation>,
    /// Where the tool comes from, such as `builtin`, `mcp` or `plugin`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_source: Option<Correlation>,
    /// Where the call will be executed, such as `sandbox` or `host`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_target: Option<Correlation>,
    /// The device of an execution on one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<Correlation>,
    /// Further ids by name, such as `session` or `thread`; at most [`crate::limits::CORRELATION_MAX_COUNT`].
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub correlation: BTreeMap<Correlation, Correlation>,
}

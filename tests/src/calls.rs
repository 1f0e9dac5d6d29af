//! Calls as tests write them: what matters is said, the rest is filled in.

use serde::Deserialize;
use tollgate_domain::{
    Agent, Approval, Arguments, Call, Claims, OwnerKind, Principal, RunKey, Runtime, Timestamp, ToolCallId, ToolRef,
};

use crate::bench::NOW;

/// A call, as YAML in a document or as a value in a test.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallText {
    /// The agent.
    pub agent: String,
    /// The canonical tool id.
    pub tool: String,
    /// Tenant and workspace, with a `/` between them.
    #[serde(default = "support_prod")]
    pub workspace: String,
    /// The provider, where the caller names it.
    #[serde(default)]
    pub provider: Option<String>,
    /// The provider's name for the tool, where the caller names it.
    #[serde(default)]
    pub external_name: Option<String>,
    /// The user that the agent acts for.
    #[serde(default)]
    pub on_behalf_of: Option<String>,
    /// Whether a person watches the run.
    #[serde(default)]
    pub interactive: bool,
    /// Nesting of sub-agents.
    #[serde(default)]
    pub depth: u32,
    /// Which attempt of one intended call the decision is about; those before it are made first.
    #[serde(default = "first")]
    pub attempt: u32,
    /// What the caller asserts of the user.
    #[serde(default)]
    pub claims: ClaimsText,
    /// Whether the caller is trusted for that.
    #[serde(default)]
    pub trust_claims: bool,
}

/// What a caller asserts.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClaimsText {
    /// Groups of the user.
    #[serde(default)]
    pub groups: Vec<String>,
    /// Attributes of the user, as JSON.
    #[serde(default)]
    pub attributes: Option<String>,
    /// Evidence of an approval.
    #[serde(default)]
    pub approval: Option<ApprovalText>,
}

/// Evidence of an approval.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApprovalText {
    /// Who consented.
    pub approver: String,
    /// How long before the call.
    pub minutes_ago: i64,
}

fn support_prod() -> String {
    "acme/support-prod".to_owned()
}

const fn first() -> u32 {
    1
}

impl CallText {
    /// A first attempt in `acme/support-prod` with nothing special about it.
    #[must_use]
    pub fn new(agent: &str, tool: &str) -> Self {
        Self {
            agent: agent.to_owned(),
            tool: tool.to_owned(),
            workspace: support_prod(),
            provider: None,
            external_name: None,
            on_behalf_of: None,
            interactive: false,
            depth: 0,
            attempt: first(),
            claims: ClaimsText::default(),
            trust_claims: false,
        }
    }

    /// The call with these arguments, as an attempt of one tool call of a run.
    #[must_use]
    pub fn call(&self, tool_call: &str, arguments: &str) -> Call {
        let (tenant, workspace) = self.workspace.split_once('/').expect("tenant/workspace");
        let approval = self.claims.approval.as_ref().map(|approval| Approval {
            id: "approval-1".parse().unwrap(),
            approver: approval.approver.parse().unwrap(),
            at: Timestamp::from_micros(NOW.as_micros() - approval.minutes_ago * 60_000_000),
        });
        Call {
            run: RunKey {
                tenant: tenant.parse().unwrap(),
                workspace: workspace.parse().unwrap(),
                owner_kind: OwnerKind::Run,
                owner: self.agent.parse().unwrap(),
                run: "run-1".parse().unwrap(),
            },
            agent: Agent { id: self.agent.parse().unwrap(), revision: "1".parse().unwrap() },
            tool: ToolRef {
                id: self.tool.parse().unwrap(),
                provider: self.provider.as_ref().map(|id| id.parse().unwrap()),
                external_name: self.external_name.as_ref().map(|name| name.parse().unwrap()),
            },
            principal: self.on_behalf_of.as_ref().map(|id| Principal { kind: "user".parse().unwrap(), id: id.parse().unwrap() }),
            tool_call: Some(ToolCallId::parse(tool_call).unwrap()),
            call_key: None,
            invocation: None,
            arguments: Arguments::parse(arguments.as_bytes()).expect("arguments"),
            claims: Claims {
                groups: self.claims.groups.iter().map(|group| group.parse().unwrap()).collect(),
                attributes: self.claims.attributes.as_ref().map(|text| Arguments::parse(text.as_bytes()).unwrap()),
                approval,
            },
            runtime: Runtime { depth: self.depth, interactive: self.interactive, ..Runtime::default() },
        }
    }
}

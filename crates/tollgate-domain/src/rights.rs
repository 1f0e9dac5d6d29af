//! What a caller may speak for: set by the listener it came through, narrowed by its identity.

use crate::{
    ids::{AgentId, TenantId, WorkspaceId},
    run::RunKey,
};

/// The tenants, workspaces and agents that a caller may speak for; an empty list is a wildcard.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rights {
    /// Tenants; empty means any.
    pub tenants: Vec<TenantId>,
    /// Workspaces; empty means any of the tenants.
    pub workspaces: Vec<WorkspaceId>,
    /// Agents; empty means any.
    pub agents: Vec<AgentId>,
    /// Whether claimed groups, attributes and approvals of this caller's calls reach policy.
    pub trust_claims: bool,
}

impl Rights {
    /// Whether the caller may name this run at all.
    #[must_use]
    pub fn cover_run(&self, run: &RunKey) -> bool {
        listed(&self.tenants, &run.tenant) && listed(&self.workspaces, &run.workspace)
    }

    /// Whether there are tenants or workspaces that the caller may not name.
    #[must_use]
    pub const fn are_narrowed(&self) -> bool {
        !(self.tenants.is_empty() && self.workspaces.is_empty())
    }

    /// Whether the caller may speak as this agent.
    #[must_use]
    pub fn cover_agent(&self, agent: &AgentId) -> bool {
        listed(&self.agents, agent)
    }
}

fn listed<T: PartialEq>(list: &[T], value: &T) -> bool {
    list.is_empty() || list.contains(value)
}

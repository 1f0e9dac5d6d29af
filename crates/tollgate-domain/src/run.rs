//! Runs: the scope in which tool calls and invocations are unique, and the unit of history.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{
    digest::Digest,
    ids::{BundleName, OwnerId, RunId, SidecarId, TenantId, WorkspaceId},
};

/// Who owns a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum OwnerKind {
    /// An agent that runs by itself.
    Run,
    /// An orchestration of several agents.
    Flow,
}

impl OwnerKind {
    /// The name that the contract uses.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Run => "RUN",
            Self::Flow => "FLOW",
        }
    }
}

/// One execution: all five parts are required and identify it together.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RunKey {
    /// The tenant.
    pub tenant: TenantId,
    /// The workspace within the tenant.
    pub workspace: WorkspaceId,
    /// What owns the run.
    pub owner_kind: OwnerKind,
    /// Which owner.
    pub owner: OwnerId,
    /// Which execution of it.
    pub run: RunId,
}

impl fmt::Debug for RunKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tenant, workspace, owner_kind, owner, run } = self;
        write!(f, "{tenant}/{workspace}/{}/{owner}/{run}", owner_kind.as_str())
    }
}

/// The history of facts that belong to no run of an agent.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum SystemRun {
    /// Activations and refusals of one bundle.
    Bundle(BundleName),
    /// Starts and configuration of one sidecar.
    Sidecar(SidecarId),
}

impl RunKey {
    /// What the first fact of this run carries as the digest of its predecessor, so that a chain
    /// cannot be moved to another run.
    #[must_use]
    pub fn genesis(&self) -> Digest {
        Digest::of_parts([
            b"tollgate run v1".as_slice(),
            self.tenant.as_str().as_bytes(),
            self.workspace.as_str().as_bytes(),
            self.owner_kind.as_str().as_bytes(),
            self.owner.as_str().as_bytes(),
            self.run.as_str().as_bytes(),
        ])
    }
}

impl SystemRun {
    /// As [`RunKey::genesis`], for a system run.
    #[must_use]
    pub fn genesis(&self) -> Digest {
        let (kind, name) = self.parts();
        Digest::of_parts([b"tollgate system run v1".as_slice(), kind.as_bytes(), name.as_bytes()])
    }

    /// The kind (`bundle`, `sidecar`) and the name.
    #[must_use]
    pub fn parts(&self) -> (&'static str, &str) {
        match self {
            Self::Bundle(name) => ("bundle", name.as_str()),
            Self::Sidecar(name) => ("sidecar", name.as_str()),
        }
    }
}

/// One sequence of facts with a digest chain of its own.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum History {
    /// A run of an agent or flow.
    Run(RunKey),
    /// A run of the system.
    System(SystemRun),
}

impl History {
    /// What its first fact carries as the digest of its predecessor.
    #[must_use]
    pub fn genesis(&self) -> Digest {
        match self {
            Self::Run(run) => run.genesis(),
            Self::System(run) => run.genesis(),
        }
    }
}

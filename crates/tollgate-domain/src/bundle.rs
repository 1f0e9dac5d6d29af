//! A bundle, parsed and compiled: hooks by place, and the catalogue of tools.

use std::{
    collections::{BTreeSet, HashMap},
    fmt,
    sync::Arc,
};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::{
    call::ToolRef,
    digest::Digest,
    hook::Hook,
    ids::{AgentId, BundleName, Code, ExternalToolName, HookId, ProviderId, ResourceId, Revision, TenantId, ToolId, WorkspaceId},
    run::RunKey,
    trace::{Enforcement, Source, codes},
};

/// One tree of hooks and the catalogue that they read, complete and valid.
#[derive(Debug)]
pub struct Bundle {
    /// Its name; generations are numbered within it.
    pub name: BundleName,
    /// Its author's order of revisions, where the source has none: an older serial is never activated.
    pub serial: Option<u64>,
    /// The source's name for this content.
    pub revision: Revision,
    /// The digest of the whole content.
    pub digest: Digest,
    /// The tools.
    pub catalogue: Catalogue,
    /// The managed hooks, in no particular order.
    pub hooks: Vec<HookDefinition>,
}

/// One hook with all that the chain needs to know of it.
#[derive(Debug)]
pub struct HookDefinition {
    /// Its id, unique in any chain that it is part of.
    pub id: HookId,
    /// Its name for people.
    pub display_name: String,
    /// Its place in the chain; ties are broken by id, compared as bytes.
    pub order: i32,
    /// Whether its verdict counts.
    pub enforcement: Enforcement,
    /// Whom it belongs to, by its place.
    pub ownership: Ownership,
    /// Which calls it is asked about.
    pub selectors: Selectors,
    /// The digest of its whole content.
    pub digest: Digest,
    /// What decides.
    pub hook: Arc<dyn Hook>,
}

/// Whom a hook belongs to; given by its place, never by a selector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ownership {
    /// The organisation: a managed hook for every workspace.
    Organisation {
        /// Its place in the bundle.
        resource: ResourceId,
    },
    /// One workspace: a managed hook for it alone.
    Workspace {
        /// Its place in the bundle.
        resource: ResourceId,
        /// The tenant.
        tenant: TenantId,
        /// The workspace.
        workspace: WorkspaceId,
    },
    /// The sidecar's configuration: for every workspace that the sidecar serves.
    Local,
}

impl Ownership {
    /// The managed resource, where it is one.
    #[must_use]
    pub const fn resource(&self) -> Option<&ResourceId> {
        match self {
            Self::Organisation { resource } | Self::Workspace { resource, .. } => Some(resource),
            Self::Local => None,
        }
    }

    /// The band that a trace names.
    #[must_use]
    pub const fn source(&self) -> Source {
        match self {
            Self::Organisation { .. } | Self::Workspace { .. } => Source::Managed,
            Self::Local => Source::Local,
        }
    }

    /// Whether the hook may be asked about calls of this run at all.
    #[must_use]
    pub fn covers(&self, run: &RunKey) -> bool {
        match self {
            Self::Organisation { .. } | Self::Local => true,
            Self::Workspace { tenant, workspace, .. } => *tenant == run.tenant && *workspace == run.workspace,
        }
    }
}

/// Which calls a hook is asked about. An empty list is a wildcard; every list must match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selectors {
    /// Providers, as the catalogue names them.
    pub providers: BTreeSet<ProviderId>,
    /// Canonical tool ids.
    pub tools: BTreeSet<ToolId>,
    /// Agents.
    pub agents: BTreeSet<AgentId>,
}

impl Selectors {
    /// Whether a call is selected; `None` where that hangs on a provider that nobody named.
    #[must_use]
    pub fn select(&self, agent: &AgentId, tool: &ToolFacts) -> Option<bool> {
        let others =
            (self.agents.is_empty() || self.agents.contains(agent)) && (self.tools.is_empty() || self.tools.contains(&tool.id));
        if self.providers.is_empty() || !others {
            return Some(others);
        }
        tool.provider.as_ref().map(|provider| self.providers.contains(provider))
    }

    /// Whether calls of a tool can be selected, whoever makes them.
    #[must_use]
    pub fn reach(&self, tool: &ToolId, provider: &ProviderId) -> bool {
        (self.tools.is_empty() || self.tools.contains(tool)) && (self.providers.is_empty() || self.providers.contains(provider))
    }
}

/// What a tool does to the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolEffect {
    /// It only reads.
    Read,
    /// It changes something that can be changed back.
    Write,
    /// It changes something for good.
    Destructive,
}

impl ToolEffect {
    /// The name that policies read.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Destructive => "destructive",
        }
    }
}

/// What the operator says of a tool. Never what its server says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolAttributes {
    /// What it does to the world.
    pub effect: ToolEffect,
    /// Whether it reaches beyond the organisation.
    pub open_world: bool,
    /// Whether a human has to consent to each call.
    pub requires_approval: bool,
    /// Free labels.
    pub labels: BTreeSet<String>,
}

/// A tool that the catalogue declares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolDeclaration {
    /// Who serves it.
    pub provider: ProviderId,
    /// The provider's name for it.
    pub external_name: ExternalToolName,
    /// What the operator says of it.
    pub attributes: ToolAttributes,
}

/// The tools that a bundle knows.
#[derive(Clone, Debug, Default)]
pub struct Catalogue {
    /// Declared tools.
    pub tools: HashMap<ToolId, ToolDeclaration>,
    /// The attributes of undeclared tools of a provider.
    pub unknown_of: HashMap<ProviderId, ToolAttributes>,
    /// The attributes of any other undeclared tool.
    pub unknown: Option<ToolAttributes>,
}

/// A tool as the catalogue knows it: what hooks read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolFacts {
    /// The canonical id.
    pub id: ToolId,
    /// Who serves it; for an undeclared tool what the call says, if anything.
    pub provider: Option<ProviderId>,
    /// The provider's name for it; for an undeclared tool what the call says, if anything.
    pub external_name: Option<ExternalToolName>,
    /// What the operator says of it.
    pub attributes: ToolAttributes,
    /// Whether the catalogue declares it.
    pub declared: bool,
}

impl Catalogue {
    /// The facts of a call's tool, or the code with which the catalogue denies it.
    pub fn find(&self, tool: &ToolRef) -> Result<ToolFacts, Code> {
        if let Some(declared) = self.tools.get(&tool.id) {
            let provider = tool.provider.as_ref().is_none_or(|provider| *provider == declared.provider);
            let name = tool.external_name.as_ref().is_none_or(|name| *name == declared.external_name);
            if !(provider && name) {
                return Err(codes::TOOL_MISMATCH.clone());
            }
            return Ok(ToolFacts {
                id: tool.id.clone(),
                provider: Some(declared.provider.clone()),
                external_name: Some(declared.external_name.clone()),
                attributes: declared.attributes.clone(),
                declared: true,
            });
        }
        let attributes = tool.provider.as_ref().and_then(|provider| self.unknown_of.get(provider)).or(self.unknown.as_ref());
        Ok(ToolFacts {
            id: tool.id.clone(),
            provider: tool.provider.clone(),
            external_name: tool.external_name.clone(),
            attributes: attributes.ok_or_else(|| codes::UNKNOWN_TOOL.clone())?.clone(),
            declared: false,
        })
    }
}

/// Where bundles come from.
#[async_trait]
pub trait BundleSource: Send + fmt::Debug {
    /// Waits for the next candidate: at first what is there now, then each change.
    ///
    /// Cancel-safe: a candidate that was not returned is returned by the next call.
    async fn next(&mut self) -> Candidate;
}

/// What a source offers: a bundle that could be activated, or the reasons why this content cannot.
pub type Candidate = Result<Bundle, Refused>;

/// Content that is no bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The bundle's name, as far as it could be read.
    pub bundle: Option<BundleName>,
    /// The source's name for the content; for content that cannot even be listed, of the failure.
    pub revision: Revision,
    /// Why, in one word.
    pub code: Code,
    /// Every finding: place and code.
    pub findings: Vec<Finding>,
}

/// One finding, by place and code; its text, which quotes the bundle, is for the operator's eyes and not kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// The code, such as `TG0204`.
    pub code: String,
    /// The file, relative to the bundle.
    pub path: String,
    /// The line, from 1; 0 where the finding is about the file as a whole.
    pub line: u32,
}

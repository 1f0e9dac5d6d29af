//! A generation: one bundle with the sidecar's local hooks, numbered, immutable, the unit of a swap.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use serde::{Deserialize, Serialize};

use crate::{
    bundle::{Bundle, Catalogue, HookDefinition, Ownership, ToolFacts},
    call::Call,
    digest::Digest,
    fact::ActivatedHook,
    ids::{BundleName, HookId, ResourceId, Revision, TenantId, WorkspaceId},
    trace::{HookEvaluation, ManagedResource, VerdictKind, codes, pseudo_hooks},
};

/// Hooks in the order in which they are asked.
pub type Chain = Arc<[Arc<HookDefinition>]>;

/// Names a generation in facts and answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GenerationRef {
    /// The bundle.
    pub bundle: BundleName,
    /// Its number, which rises within the bundle and the journal.
    pub number: u64,
    /// The digest of the bundle's whole content.
    pub digest: Digest,
}

/// The numbers that the journal's store gave to a bundle and its hooks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GenerationNumbers {
    /// The bundle's.
    pub number: u64,
    /// Each managed hook's own.
    pub hooks: HashMap<ResourceId, u64>,
}

/// Two hooks of one chain have the same id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("two hooks of one chain have the id {hook:?}")]
pub struct DuplicateHook {
    /// The id.
    pub hook: HookId,
}

/// A bundle whose chains are built, and which has no number yet.
#[derive(Debug)]
pub struct Chains {
    bundle: Bundle,
    organisation: Chain,
    workspaces: HashMap<(TenantId, WorkspaceId), Chain>,
}

impl Chains {
    /// Builds the chain of every workspace; refuses duplicate ids within any of them.
    ///
    /// A workspace with hooks of its own gets a chain of its own, so that a call's cost does not
    /// grow with the hooks of other workspaces.
    pub fn build(mut bundle: Bundle, local: &[Arc<HookDefinition>]) -> Result<Self, DuplicateHook> {
        let managed: Vec<_> = std::mem::take(&mut bundle.hooks).into_iter().map(Arc::new).collect();
        let mut shared: Vec<Arc<HookDefinition>> = local.to_vec();
        let mut owned: HashMap<(TenantId, WorkspaceId), Vec<Arc<HookDefinition>>> = HashMap::new();
        for hook in managed {
            match &hook.ownership {
                Ownership::Organisation { .. } | Ownership::Local => shared.push(hook),
                Ownership::Workspace { tenant, workspace, .. } => {
                    owned.entry((tenant.clone(), workspace.clone())).or_default().push(hook);
                }
            }
        }
        let workspaces = owned
            .into_iter()
            .map(|(workspace, own)| Ok((workspace, order(shared.iter().cloned().chain(own))?)))
            .collect::<Result<_, _>>()?;
        Ok(Self { organisation: order(shared)?, workspaces, bundle })
    }

    /// The bundle, without its hooks.
    #[must_use]
    pub const fn bundle(&self) -> &Bundle {
        &self.bundle
    }

    /// Every managed hook and the digest of its content.
    #[must_use]
    pub fn resources(&self) -> Vec<(ResourceId, Digest)> {
        let chains = std::iter::once(&self.organisation).chain(self.workspaces.values());
        let mut resources: Vec<_> = chains
            .flat_map(|chain| chain.iter())
            .filter_map(|hook| Some((hook.ownership.resource()?.clone(), hook.digest)))
            .collect();
        resources.sort();
        resources.dedup();
        resources
    }

    /// The generation, with its numbers.
    #[must_use]
    pub fn number(self, numbers: GenerationNumbers) -> Generation {
        let reference = GenerationRef { bundle: self.bundle.name.clone(), number: numbers.number, digest: self.bundle.digest };
        Generation { reference, numbers, chains: self }
    }
}

fn order(hooks: impl IntoIterator<Item = Arc<HookDefinition>>) -> Result<Chain, DuplicateHook> {
    let mut hooks: Vec<_> = hooks.into_iter().collect();
    hooks.sort_by(|a, b| a.order.cmp(&b.order).then_with(|| a.id.as_str().as_bytes().cmp(b.id.as_str().as_bytes())));
    let mut seen = HashSet::new();
    if let Some(twice) = hooks.iter().find(|hook| !seen.insert(&hook.id)) {
        return Err(DuplicateHook { hook: twice.id.clone() });
    }
    Ok(hooks.into())
}

/// One bundle, compiled, numbered and immutable. A call pins one for its whole life.
#[derive(Debug)]
pub struct Generation {
    reference: GenerationRef,
    numbers: GenerationNumbers,
    chains: Chains,
}

/// What a call resolves to within a generation.
#[derive(Debug)]
pub enum Resolution {
    /// The hooks to ask, in order; possibly none.
    Chain {
        /// The tool, as the catalogue knows it.
        tool: ToolFacts,
        /// The hooks that select the call.
        hooks: Vec<Arc<HookDefinition>>,
    },
    /// A pseudo hook decides, and nobody is asked.
    Refused(Box<HookEvaluation>),
}

/// The call lacks its provider, on which a hook that could apply selects: leaving a field empty never skips a hook.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("is required: hook {hook:?} selects on it, and the catalogue does not declare the tool")]
pub struct ResolveError {
    /// The hook that selects on it.
    pub hook: HookId,
}

impl Generation {
    /// Which generation it is.
    #[must_use]
    pub const fn reference(&self) -> &GenerationRef {
        &self.reference
    }

    /// The source's name for its content.
    #[must_use]
    pub const fn revision(&self) -> &Revision {
        &self.chains.bundle.revision
    }

    /// The tools that it knows.
    #[must_use]
    pub const fn catalogue(&self) -> &Catalogue {
        &self.chains.bundle.catalogue
    }

    /// The chain of a workspace before selection.
    #[must_use]
    pub fn chain(&self, tenant: &TenantId, workspace: &WorkspaceId) -> &Chain {
        // The key is cloned ids: two reference counts, no text.
        self.chains.workspaces.get(&(tenant.clone(), workspace.clone())).unwrap_or(&self.chains.organisation)
    }

    /// Its managed hooks, for the record of its activation.
    #[must_use]
    pub fn activated_hooks(&self) -> Vec<ActivatedHook> {
        let of = |resource: &ResourceId| self.numbers.hooks.get(resource).copied().unwrap_or_default();
        let resources = self.chains.resources().into_iter();
        resources.map(|(resource, digest)| ActivatedHook { generation: of(&resource), resource, digest }).collect()
    }

    /// The versioned resource of a hook of this generation, where it is a managed one.
    #[must_use]
    pub fn resource_of(&self, hook: &HookDefinition) -> Option<ManagedResource> {
        let id = hook.ownership.resource()?;
        Some(ManagedResource { id: id.clone(), generation: self.numbers.hooks.get(id).copied().unwrap_or_default() })
    }

    /// The hooks that a call is judged by.
    pub fn resolve(&self, call: &Call) -> Result<Resolution, ResolveError> {
        let tool = match self.catalogue().find(&call.tool) {
            Ok(tool) => tool,
            Err(code) => {
                return Ok(Resolution::Refused(Box::new(HookEvaluation::pseudo(
                    0,
                    pseudo_hooks::TOOL_CATALOGUE,
                    VerdictKind::Denied,
                    code,
                ))));
            }
        };
        let chain = self.chain(&call.run.tenant, &call.run.workspace);
        let mut hooks = Vec::with_capacity(chain.len());
        for hook in chain.iter() {
            // The chain was built by place; checked again, since a hook of another workspace must never decide.
            if !hook.ownership.covers(&call.run) {
                return Ok(Resolution::Refused(Box::new(HookEvaluation::pseudo(
                    0,
                    pseudo_hooks::HOOK_RESOLVER,
                    VerdictKind::Failed,
                    codes::RESOLUTION_FAILED.clone(),
                ))));
            }
            match hook.selectors.select(&call.agent.id, &tool) {
                Some(true) => hooks.push(Arc::clone(hook)),
                Some(false) => {}
                None => return Err(ResolveError { hook: hook.id.clone() }),
            }
        }
        Ok(Resolution::Chain { tool, hooks })
    }
}

//! One hook's directory, compiled against what its bundle shares.

use std::{
    collections::{BTreeSet, HashMap},
    ops::Range,
    sync::Arc,
};

use cedar_policy::Authorizer;
use tollgate_domain::{Digest, HookDefinition, HookId, Ownership, ResourceId, TenantId, ToolId, WorkspaceId};

use super::{
    Kind, Shared,
    places::{ENTITIES, HOOK, HookPlace, Places, SCHEMA, TOOLS},
    warm,
};
use crate::{
    codes::FindingCode,
    diagnostic::{Findings, SourceText},
    files::{HookFile, Input},
    hook::{Actions, CedarHook},
    index::PolicyIndex,
    limits::EVERYWHERE_MAX_COUNT,
    names::{self, INVOKE_TOOL},
    policies::{self, Place, Policies},
    schema::CompiledSchema,
    store::EntityStore,
    tree::Tree,
    yaml::Reader,
};

/// A hook, as far as it could be compiled.
pub(super) struct CompiledHook {
    pub(super) enabled: bool,
    pub(super) policies: usize,
    pub(super) definition: Option<HookDefinition>,
}

/// Compiles every hook of a bundle.
pub(super) fn compile_all(tree: &Tree, places: &Places, shared: &Shared, findings: &mut Findings) -> Vec<CompiledHook> {
    let mut taken = Taken::default();
    let mut hooks = Vec::new();
    for (directory, place) in &places.hooks {
        let Some(source) = tree.text(&format!("{directory}/{HOOK}"), findings) else { continue };
        let file = HookFile::read(&mut Reader { source: &source, findings }, &shared.tools, &shared.unknown);
        if let Some(file) = &file {
            taken.check(file, place, &source, findings);
        }
        hooks.push(HookCompiler { tree, directory, place, shared }.compile(file, &source, findings));
    }
    hooks
}

/// The ids that are in use: unique in every chain, which is the organisation's hooks and one workspace's.
#[derive(Default)]
struct Taken {
    organisation: BTreeSet<HookId>,
    workspaces: BTreeSet<(Option<(TenantId, WorkspaceId)>, HookId)>,
}

impl Taken {
    /// Directories come in the order of their paths, so the organisation's come first.
    fn check(&mut self, file: &HookFile, place: &HookPlace, source: &SourceText, findings: &mut Findings) {
        let free = match &place.workspace {
            None => self.organisation.insert(file.id.clone()),
            owner => !self.organisation.contains(&file.id) && self.workspaces.insert((owner.clone(), file.id.clone())),
        };
        if !free {
            findings
                .at(
                    FindingCode::Duplicate,
                    source,
                    file.id_place.clone(),
                    format!("another hook of the same chain has the id `{}`", file.id),
                )
                .hint("ids are unique among the organisation's hooks and those of one workspace");
        }
    }
}

struct HookCompiler<'a> {
    tree: &'a Tree,
    directory: &'a str,
    place: &'a HookPlace,
    shared: &'a Shared,
}

impl HookCompiler<'_> {
    fn compile(&self, file: Option<HookFile>, source: &SourceText, findings: &mut Findings) -> CompiledHook {
        let before = findings.len();
        let own = self.tree.text(&format!("{}/{SCHEMA}", self.directory), findings);
        let schema = match (&self.shared.schema, &own) {
            (Some(base), Some(own)) => base.extended(own, findings),
            (base, _) => base.clone(),
        };
        let texts: Vec<_> = self.place.policies.iter().filter_map(|path| self.tree.text(path, findings)).collect();
        let policies = policies::read(self.directory, &texts, schema.as_ref(), findings);
        let count = policies.parsed.len();
        let enabled = file.as_ref().is_some_and(|file| file.enabled);
        let definition = file.zip(schema).and_then(|(file, schema)| {
            let actions = self.actions(&file, &schema, source, findings)?;
            let entities = self.entities(own.is_some(), &schema)?;
            // Compiled only to be thrown away where anything is wrong with it: then there is no use in it.
            (findings.len() == before).then(|| self.define(file, actions, policies, &schema, entities, findings)).flatten()
        });
        CompiledHook { enabled, policies: count, definition }
    }

    fn define(
        &self,
        file: HookFile,
        actions: Actions,
        policies: Policies,
        schema: &CompiledSchema,
        entities: Arc<EntityStore>,
        findings: &mut Findings,
    ) -> Option<HookDefinition> {
        let literals: BTreeSet<_> = policies.parsed.iter().flat_map(cedar_policy::Policy::entity_literals).collect();
        let count = policies.parsed.len();
        let Ok(index) = PolicyIndex::new(policies.parsed) else {
            findings.about(FindingCode::NotCompiled, self.directory, "the policies do not form a set");
            return None;
        };
        if let Some((everywhere, place)) = everywhere(&index, &actions, schema, &policies.places) {
            let message = format!("{everywhere} of the hook's {count} policies are evaluated for every call, this one first");
            let hint = "name a principal or a resource in the scope, as in `resource == …`, instead of in a condition";
            let (source, head) = place;
            findings.advise(FindingCode::ManyEverywhere, source, head.clone(), message).hint(hint);
        }
        let hook = CedarHook {
            mode: file.mode,
            actions,
            policies: index,
            speeches: policies.speeches,
            schema: Arc::clone(&schema.schema),
            entities,
            literals: literals.into_iter().collect(),
            authorizer: Authorizer::new(),
        };
        warm::up(&hook, &self.shared.tools, &file.selectors);
        Some(HookDefinition {
            id: file.id,
            display_name: file.display_name,
            order: file.order,
            enforcement: file.enforcement,
            ownership: self.ownership(findings)?,
            selectors: file.selectors,
            digest: self.digest(),
            hook: Arc::new(hook),
        })
    }

    fn ownership(&self, findings: &mut Findings) -> Option<Ownership> {
        let Ok(resource) = ResourceId::parse(self.directory) else {
            findings
                .about(FindingCode::InvalidValue, self.directory, "the directory's path is not allowed")
                .hint("it must be 1 to 256 bytes long, without control characters");
            return None;
        };
        Some(match self.place.workspace.clone() {
            Some((tenant, workspace)) => Ownership::Workspace { resource, tenant, workspace },
            None if self.shared.kind == Kind::Local => Ownership::Local,
            None => Ownership::Organisation { resource },
        })
    }

    fn actions(&self, file: &HookFile, schema: &CompiledSchema, source: &SourceText, findings: &mut Findings) -> Option<Actions> {
        if file.input == Input::None {
            if !schema.has_invoke_tool(findings) {
                return None;
            }
            return Some(Actions::Invoke(names::action(INVOKE_TOOL), schema.plan(INVOKE_TOOL, false, findings)?));
        }
        let mut actions = HashMap::new();
        let mut selectable: Vec<_> =
            self.shared.tools.tools.iter().filter(|(id, tool)| file.selectors.reach(id, &tool.provider)).collect();
        selectable.sort_by_key(|(id, _)| *id);
        for (id, tool) in selectable {
            let name = names::typed_action(tool.provider.as_str(), tool.external_name.as_str());
            if schema.shapes.action(names::NAMESPACE, &name).is_none() {
                self.action_missing(id, &name, source, file.input_place.clone(), findings);
            } else if let Some(plan) = schema.plan(&name, true, findings) {
                actions.insert(name.clone(), (names::action(&name), plan));
            }
        }
        Some(Actions::Typed(actions))
    }

    fn action_missing(&self, tool: &ToolId, action: &str, source: &SourceText, place: Range<usize>, findings: &mut Findings) {
        let message = format!("the hook can be asked about the tool `{tool}`, and its schema has no action `{action}`");
        let hint = format!("declare `action \"{action}\"` in {}/{SCHEMA}, or narrow the selectors", self.directory);
        findings.at(FindingCode::ActionMissing, source, place, message).hint(hint);
    }

    fn entities(&self, own_schema: bool, schema: &CompiledSchema) -> Option<Arc<EntityStore>> {
        let shared = self.shared.entities.as_ref()?;
        if own_schema { shared.extended(schema).map(Arc::new) } else { Some(Arc::clone(shared)) }
    }

    /// Over everything that the hook decides by, and nothing else.
    fn digest(&self) -> Digest {
        let prefix = format!("{}/", self.directory);
        let unknown = self.shared.unknown.digest();
        let mut parts: Vec<&[u8]> = vec![b"tollgate hook v1"];
        for path in [HOOK, SCHEMA].map(|name| format!("{prefix}{name}")).iter().chain(&self.place.policies) {
            if let Some((path, content)) = self.tree.files.get_key_value(path) {
                parts.extend([path.strip_prefix(&prefix).unwrap_or(path).as_bytes(), content]);
            }
        }
        for path in [SCHEMA, ENTITIES, TOOLS] {
            parts.extend([path.as_bytes(), self.tree.files.get(path).map(Vec::as_slice).unwrap_or_default()]);
        }
        parts.push(unknown.as_bytes());
        Digest::of_parts(parts)
    }
}

/// How many policies are evaluated for every call under the action that has most, and where the first of them is, if they
/// are more than a decision should cost.
fn everywhere<'a>(
    index: &PolicyIndex,
    actions: &Actions,
    schema: &CompiledSchema,
    places: &'a HashMap<cedar_policy::PolicyId, Place>,
) -> Option<(usize, &'a Place)> {
    let entities = schema.schema.action_entities().ok()?;
    let everywhere = |action| index.everywhere(action, &entities);
    let most = actions.uids().map(everywhere).max_by_key(BTreeSet::len).filter(|most| most.len() > EVERYWHERE_MAX_COUNT)?;
    let first = most.iter().filter_map(|id| places.get(*id)).min_by_key(|(source, head)| (&source.path, head.start))?;
    Some((most.len(), first))
}

//! The entities that policies reason about: one store per generation, and a small slice for the calls that change it.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
    ops::Range,
    str::FromStr,
    sync::Arc,
};

use cedar_policy::{
    Entities, Entity, EntityUid, EvalResult, RestrictedExpression, entities_errors::EntitiesError, ffi::DetailedError,
};
use tollgate_domain::{Claims, Code, HookInput, Json, ToolAttributes, ToolDeclaration, codes};

use crate::{
    arguments,
    codes::FindingCode,
    diagnostic::{Findings, SourceText},
    facts,
    files::ToolsFile,
    names::{self, ACTION, PROVIDER, TOOL, USER},
    schema::CompiledSchema,
    shape::Fields,
};

/// Every entity of a bundle, with the catalogue's and the schema's own.
#[derive(Clone, Debug)]
pub(crate) struct EntityStore {
    entities: Entities,
    /// Which entities the attributes and tags of each entity name: what a slice has to follow.
    references: Arc<HashMap<EntityUid, Vec<EntityUid>>>,
    tools: Arc<ToolsFile>,
    tool_attributes: Arc<Fields>,
    user_attributes: Arc<Fields>,
    users_have_groups: bool,
}

impl EntityStore {
    /// Loads `entities.json` and the catalogue, strictly by the schema.
    pub(crate) fn load(
        schema: &CompiledSchema,
        source: Option<&SourceText>,
        tools: &Arc<ToolsFile>,
        tools_path: &str,
        findings: &mut Findings,
    ) -> Option<Self> {
        if !schema.sound {
            return None;
        }
        let before = findings.len();
        let declared = source.map(|source| read(schema, source, findings)).unwrap_or_default();
        if findings.len() > before {
            return None;
        }
        let path = source.map_or("entities.json", |source| &source.path);
        let references = declared.iter().map(|entity| (entity.uid(), referenced(entity))).collect();
        let entities = match Entities::from_entities(declared, Some(&schema.schema)) {
            Ok(entities) => entities,
            Err(error) => {
                findings.about(FindingCode::EntityInvalid, path, describe(&error));
                return None;
            }
        };
        let tool_attributes = schema.attributes(TOOL);
        let catalogue = catalogue(tools, &tool_attributes, &schema.attributes(PROVIDER));
        let added = catalogue
            .and_then(|catalogue| entities.add_entities(catalogue, Some(&schema.schema)).map_err(|error| describe(&error)));
        let entities = match added {
            Ok(entities) => entities,
            Err(message) => {
                findings.about(FindingCode::EntityInvalid, tools_path, message);
                return None;
            }
        };
        Some(Self {
            entities,
            references: Arc::new(references),
            tools: Arc::clone(tools),
            tool_attributes: Arc::new(tool_attributes),
            user_attributes: Arc::new(schema.attributes(USER)),
            users_have_groups: schema.users_have_groups(),
        })
    }

    /// The same entities, with the actions that a hook's own schema adds.
    pub(crate) fn extended(&self, schema: &CompiledSchema) -> Option<Self> {
        let actions = schema.schema.action_entities().ok()?;
        let new: Vec<_> = actions.iter().filter(|action| self.entities.get(&action.uid()).is_none()).cloned().collect();
        let entities = self.entities.clone().add_entities(new, None).ok()?;
        Some(Self { entities, ..self.clone() })
    }

    pub(crate) fn len(&self) -> usize {
        self.entities.len()
    }

    /// The entities for one call: the shared store, or where the call brings facts of its own a slice
    /// of it. `literals` are the entities that the hook's policies name.
    pub(crate) fn for_call(
        &self,
        call: &HookInput<'_>,
        action: &EntityUid,
        literals: &[EntityUid],
    ) -> Result<Cow<'_, Entities>, Code> {
        let claiming =
            facts::on_behalf_of(call).zip(call.claims.filter(|claims| !claims.groups.is_empty() || claims.attributes.is_some()));
        if claiming.is_none() && self.knows(call) {
            return Ok(Cow::Borrowed(&self.entities));
        }
        let unavailable = || codes::CONTEXT_UNAVAILABLE.clone();
        let run = &call.call.run;
        let mut slice = Slice { store: self, seen: HashSet::new(), entities: Vec::new(), pending: literals.to_vec() };
        if !self.knows(call) {
            let uid = names::tool(call.tool.id.as_str());
            let parents = call.tool.provider.iter().map(|provider| names::provider(provider.as_str())).collect();
            slice.put(tool(uid, &call.tool.attributes, parents, &self.tool_attributes).ok_or_else(unavailable)?);
        }
        if let Some((user, claims)) = claiming {
            slice.put(self.user(user, claims).ok_or_else(unavailable)?);
        }
        slice.pending.extend([
            names::agent(call.call.agent.id.as_str()),
            names::tool(call.tool.id.as_str()),
            names::tenant(run.tenant.as_str()),
            facts::workspace(call),
            action.clone(),
        ]);
        slice.pending.extend(facts::on_behalf_of(call).map(names::user));
        slice.follow();
        Entities::from_entities(slice.entities, None).map(Cow::Owned).map_err(|_| unavailable())
    }

    /// Whether the tool of a call is in the store, exactly as the call's catalogue has it.
    fn knows(&self, call: &HookInput<'_>) -> bool {
        let facts = call.tool;
        self.tools.tools.get(&facts.id).is_some_and(|ToolDeclaration { provider, attributes, .. }| {
            facts.provider.as_ref() == Some(provider) && facts.attributes == *attributes
        })
    }

    /// A user with what the caller claims of it, beside what the bundle says.
    fn user(&self, id: &str, claims: &Claims) -> Option<Entity> {
        let uid = names::user(id);
        let known = self.entities.get(&uid);
        let tags =
            known.into_iter().flat_map(Entity::tags).map(|(name, value)| Some((name.to_owned(), restricted(value.ok()?)?)));
        let tags = tags.collect::<Option<Vec<_>>>()?;
        let (_, mut attributes, mut parents) = known.cloned().unwrap_or_else(|| Entity::with_uid(uid.clone())).into_inner();
        if self.users_have_groups {
            parents.extend(claims.groups.iter().map(|group| names::group(group.as_str())));
        }
        let claimed = claims.attributes.as_ref().map(tollgate_domain::Arguments::value);
        if let Some(Json::Object(members)) = claimed {
            for (name, value) in members {
                if let Some(field) = self.user_attributes.get(&**name) {
                    attributes.insert(name.to_string(), arguments::value(value, &field.shape).ok()?);
                }
            }
        }
        Entity::new_with_tags(uid, attributes, parents, tags).ok()
    }
}

/// Part of a store: some entities with their ancestors and all that their attributes lead to, so that
/// no policy can tell it from the whole.
struct Slice<'s> {
    store: &'s EntityStore,
    seen: HashSet<EntityUid>,
    entities: Vec<Entity>,
    pending: Vec<EntityUid>,
}

impl Slice<'_> {
    /// Puts an entity in place of the store's.
    fn put(&mut self, entity: Entity) {
        self.seen.insert(entity.uid());
        self.pending.extend(referenced(&entity));
        self.pending.extend(entity.clone().into_inner().2);
        self.entities.push(entity);
    }

    fn follow(&mut self) {
        while let Some(uid) = self.pending.pop() {
            if !self.seen.insert(uid.clone()) {
                continue;
            }
            let Some(entity) = self.store.entities.get(&uid) else { continue };
            self.entities.push(entity.clone());
            self.pending.extend(self.store.entities.ancestors(&uid).into_iter().flatten().cloned());
            self.pending.extend(self.store.references.get(&uid).into_iter().flatten().cloned());
        }
    }
}

fn read(schema: &CompiledSchema, source: &SourceText, findings: &mut Findings) -> Vec<Entity> {
    let parsed: Result<Vec<serde::de::IgnoredAny>, _> = serde_json::from_str(&source.text);
    if let Err(error) = parsed {
        let line = source.text.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum::<usize>();
        let at = (line + error.column()).saturating_sub(1);
        findings
            .at(FindingCode::EntitiesSyntax, source, at..at + 1, "the text is not a JSON array")
            .hint("write `[ { \"uid\": …, \"attrs\": …, \"parents\": … }, … ]`");
        return Vec::new();
    }
    let mut entities = Vec::new();
    let mut seen = HashSet::new();
    for place in elements(&source.text) {
        let text = source.text.get(place.clone()).unwrap_or_default();
        let start = place.start..place.start + text.lines().next().unwrap_or_default().len();
        match Entity::from_json_str(text, Some(&schema.schema)) {
            Err(error) => {
                let detail = DetailedError::from(&error);
                findings.at(FindingCode::EntityInvalid, source, start, detail.message).hint = detail.help;
            }
            Ok(entity) => {
                let uid = entity.uid();
                let of = uid.type_name().to_string();
                if of == TOOL || of == PROVIDER || of == ACTION || of.ends_with("::Action") || of == "Action" {
                    let hint = "tools and providers come from tools.yaml, actions from the schema";
                    findings
                        .at(FindingCode::EntityOfCatalogue, source, start, format!("`{uid}` does not belong here"))
                        .hint(hint);
                } else if !seen.insert(uid.clone()) {
                    findings
                        .at(FindingCode::Duplicate, source, start, format!("`{uid}` is there twice"))
                        .hint("remove one of them");
                } else {
                    entities.push(entity);
                }
            }
        }
    }
    entities
}

/// Cedar's words about the bundle's own entities, with their cause.
fn describe(error: &EntitiesError) -> String {
    DetailedError::from(error).message
}

/// The places of an array's elements, in text that is known to be a JSON array.
fn elements(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let (mut depth, mut quoted, mut escaped) = (0_usize, false, false);
    let mut start = None;
    for (at, character) in text.char_indices() {
        if quoted {
            quoted = character != '"' || escaped;
            escaped = character == '\\' && !escaped;
            continue;
        }
        let closing = matches!(character, ']' | '}');
        if depth == 1 && (character == ',' || closing) {
            found.extend(start.take().map(|start| start..at));
        } else if depth >= 1 && !character.is_whitespace() {
            start.get_or_insert(at);
        }
        match character {
            '"' => quoted = true,
            '[' | '{' => depth += 1,
            ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    let trim = |range: Range<usize>| range.start..range.start + text.get(range).unwrap_or_default().trim_end().len();
    found.into_iter().map(trim).collect()
}

fn catalogue(tools: &ToolsFile, tool_attributes: &Fields, provider_attributes: &Fields) -> Result<Vec<Entity>, String> {
    let mut entities = Vec::with_capacity(tools.providers.len() + tools.tools.len());
    for (id, provider) in &tools.providers {
        let trust = provider_attributes
            .contains_key("trust")
            .then(|| ("trust".to_owned(), RestrictedExpression::new_long(provider.trust)));
        let parents = provider.tenant.iter().map(|tenant| names::tenant(tenant.as_str())).collect();
        let entity = Entity::new(names::provider(id.as_str()), trust.into_iter().collect(), parents);
        entities.push(entity.map_err(|error| error.to_string())?);
    }
    for (id, declared) in &tools.tools {
        let parents = HashSet::from([names::provider(declared.provider.as_str())]);
        entities.extend(tool(names::tool(id.as_str()), &declared.attributes, parents, tool_attributes));
    }
    Ok(entities)
}

fn tool(uid: EntityUid, attributes: &ToolAttributes, parents: HashSet<EntityUid>, declared: &Fields) -> Option<Entity> {
    let labels = attributes.labels.iter().cloned().map(RestrictedExpression::new_string);
    let values = [
        ("effect", RestrictedExpression::new_string(attributes.effect.as_str().to_owned())),
        ("open_world", RestrictedExpression::new_bool(attributes.open_world)),
        ("requires_approval", RestrictedExpression::new_bool(attributes.requires_approval)),
        ("labels", RestrictedExpression::new_set(labels)),
    ];
    let values =
        values.into_iter().filter(|(name, _)| declared.contains_key(*name)).map(|(name, value)| (name.to_owned(), value));
    Entity::new(uid, values.collect(), parents).ok()
}

fn referenced(entity: &Entity) -> Vec<EntityUid> {
    fn walk(value: &EvalResult, found: &mut Vec<EntityUid>) {
        match value {
            EvalResult::EntityUid(uid) => found.push(uid.clone()),
            EvalResult::Set(items) => items.iter().for_each(|item| walk(item, found)),
            EvalResult::Record(fields) => fields.iter().for_each(|(_, field)| walk(field, found)),
            EvalResult::Bool(_) | EvalResult::Long(_) | EvalResult::String(_) | EvalResult::ExtensionValue(_) => {}
        }
    }
    let mut found = Vec::new();
    for (_, value) in entity.attrs().chain(entity.tags()) {
        if let Ok(value) = value {
            walk(&value, &mut found);
        }
    }
    found
}

/// A value of the store as an expression again: Cedar gives tags out in no other way.
fn restricted(value: EvalResult) -> Option<RestrictedExpression> {
    Some(match value {
        EvalResult::Bool(value) => RestrictedExpression::new_bool(value),
        EvalResult::Long(value) => RestrictedExpression::new_long(value),
        EvalResult::String(value) => RestrictedExpression::new_string(value),
        EvalResult::EntityUid(uid) => RestrictedExpression::new_entity_uid(uid),
        EvalResult::Set(items) => {
            RestrictedExpression::new_set(items.iter().cloned().map(restricted).collect::<Option<Vec<_>>>()?)
        }
        EvalResult::Record(fields) => {
            let fields = fields.iter().map(|(name, field)| Some((name.clone(), restricted(field.clone())?)));
            RestrictedExpression::new_record(fields.collect::<Option<Vec<_>>>()?).ok()?
        }
        EvalResult::ExtensionValue(text) => RestrictedExpression::from_str(&text).ok()?,
    })
}

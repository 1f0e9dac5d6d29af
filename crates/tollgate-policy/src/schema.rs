//! Schemas: the base, shared by every hook, and what a hook adds to it.

use std::{ops::Range, sync::Arc};

use cedar_policy::{Schema, SchemaFragment};

use crate::{
    cedar_errors, cedar_text,
    codes::FindingCode,
    diagnostic::{Findings, SourceText},
    limits::NESTING_MAX_DEPTH,
    mapping::{self, Misfit, Plan},
    names::{self, AGENT, INVOKE_TOOL, NAMESPACE, PROVIDER, TOOL},
    shape::{EntityShape, Fields, Shape, Shapes},
};

/// A schema that Cedar accepted, with its declarations.
#[derive(Clone, Debug)]
pub(crate) struct CompiledSchema {
    pub(crate) schema: Arc<Schema>,
    pub(crate) shapes: Arc<Shapes>,
    /// Whether it declares what the catalogue needs.
    pub(crate) sound: bool,
    fragment: SchemaFragment,
    /// The texts that it was made of, the last one first: where findings about it point.
    sources: Vec<SourceText>,
}

impl CompiledSchema {
    /// The base schema of a bundle.
    pub(crate) fn base(source: &SourceText, findings: &mut Findings) -> Option<Self> {
        let fragment = fragment(source, findings)?;
        let schema = match Schema::from_schema_fragments([fragment.clone()]) {
            Ok(schema) => schema,
            Err(error) => {
                cedar_errors::record(findings, FindingCode::SchemaConflict, source, 0, (&error).into());
                return None;
            }
        };
        let mut shapes = Shapes::default();
        shapes.add(fragment.clone().to_json_value().unwrap_or_default());
        let mut base =
            Self { schema: Arc::new(schema), shapes: Arc::new(shapes), sound: true, fragment, sources: vec![source.clone()] };
        let before = findings.len();
        base.check_entities(findings);
        base.sound = findings.len() == before;
        Some(base)
    }

    /// The base schema with a hook's own declarations.
    pub(crate) fn extended(&self, own: &SourceText, findings: &mut Findings) -> Option<Self> {
        let fragment = fragment(own, findings)?;
        let schema = match Schema::from_schema_fragments([self.fragment.clone(), fragment.clone()]) {
            Ok(schema) => schema,
            Err(error) => {
                // Its labels may point into the base schema: the message alone says what is wrong.
                findings
                    .about(FindingCode::SchemaConflict, &own.path, error.to_string())
                    .hint("a hook's schema adds to the base schema and declares nothing of it again");
                return None;
            }
        };
        let mut shapes = Shapes::clone(&self.shapes);
        shapes.add(fragment.clone().to_json_value().unwrap_or_default());
        let sources = std::iter::once(own.clone()).chain(self.sources.iter().cloned()).collect();
        Some(Self { schema: Arc::new(schema), shapes: Arc::new(shapes), sound: self.sound, fragment, sources })
    }

    /// The plan for an action's context, where the action is declared.
    pub(crate) fn plan(&self, action: &str, typed: bool, findings: &mut Findings) -> Option<Plan> {
        let shape = self.shapes.action(NAMESPACE, action)?;
        let applies = |types: &[String], name| types.iter().any(|declared| declared == name);
        if !applies(&shape.principals, AGENT) || !applies(&shape.resources, TOOL) {
            let message = format!("the action `{action}` does not apply to a principal `{AGENT}` and a resource `{TOOL}`");
            self.find(
                FindingCode::SchemaIncomplete,
                action,
                message,
                "declare `appliesTo { principal: [Agent], resource: [Tool], context: { … } }`",
                findings,
            );
            return None;
        }
        let mut misfits = Vec::new();
        let plan = Plan::of(&shape.context, typed, &mut misfits);
        for misfit in misfits {
            self.misfit(action, misfit, findings);
        }
        Some(plan)
    }

    fn misfit(&self, action: &str, misfit: Misfit, findings: &mut Findings) {
        match misfit {
            Misfit::Unknown { path } => {
                let message = format!("Tollgate knows no fact `context.{path}` (action `{action}`)");
                self.find(FindingCode::UnknownFact, &path, message, "docs/reference/cedar-mapping.md lists the facts", findings);
            }
            Misfit::Type { path, expected } => {
                let message = format!("`context.{path}` is declared with another type than it has (action `{action}`)");
                self.find(FindingCode::FactType, &path, message, format!("declare it as {expected}"), findings);
            }
            Misfit::Argument { path } => {
                let message = format!("the argument `context.{path}` is declared as an entity (action `{action}`)");
                self.find(
                    FindingCode::ArgumentType,
                    &path,
                    message,
                    "no JSON value is an entity; declare a String and compare it",
                    findings,
                );
            }
            Misfit::NoInput => {
                let message = format!("the context of the typed action `{action}` has no `input`");
                self.find(FindingCode::SchemaIncomplete, action, message, "declare its arguments: `\"input\": { … }`", findings);
            }
        }
    }

    /// Checks what the catalogue's entities need.
    fn check_entities(&self, findings: &mut Findings) {
        for name in [AGENT, PROVIDER, TOOL] {
            if self.shapes.entity(name).is_none() {
                let hint = format!("declare the entity type in the namespace {NAMESPACE}");
                self.find(
                    FindingCode::SchemaIncomplete,
                    NAMESPACE,
                    format!("the schema does not declare `{name}`"),
                    hint,
                    findings,
                );
            }
        }
        let tool = self.shapes.entity(TOOL).unwrap_or_default();
        if self.shapes.entity(TOOL).is_some() && !tool.member_of.iter().any(|parent| parent == PROVIDER) {
            let message = format!("`{TOOL}` is not a member of `{PROVIDER}`");
            self.find(FindingCode::SchemaIncomplete, "Tool", message, "declare `entity Tool in [ToolProvider] { … }`", findings);
        }
        let labels = Shape::Set(Box::new(Shape::String));
        let known =
            [("effect", Shape::String), ("labels", labels), ("open_world", Shape::Bool), ("requires_approval", Shape::Bool)];
        self.check_attributes("Tool", &tool, &known, findings);
        let provider = self.shapes.entity(PROVIDER).unwrap_or_default();
        self.check_attributes("ToolProvider", &provider, &[("trust", Shape::Long)], findings);
    }

    fn check_attributes(&self, of: &str, declared: &EntityShape, known: &[(&'static str, Shape)], findings: &mut Findings) {
        for (name, field) in &declared.attributes {
            match known.iter().find(|(known, _)| known == name) {
                None => {
                    let message = format!("the catalogue gives a {of} no attribute `{name}`");
                    let names: Vec<_> = known.iter().map(|(name, _)| *name).collect();
                    self.find(
                        FindingCode::UnknownFact,
                        &format!("{of}.{name}"),
                        message,
                        format!("it gives {}", names.join(", ")),
                        findings,
                    );
                }
                Some((_, shape)) if *shape != field.shape => {
                    let message = format!("the attribute `{name}` of {of} is declared with another type than it has");
                    self.find(
                        FindingCode::FactType,
                        name,
                        message,
                        format!("declare it as {}", mapping::describe(shape)),
                        findings,
                    );
                }
                Some(_) => {}
            }
        }
    }

    /// The attributes of an entity type.
    pub(crate) fn attributes(&self, name: &str) -> Fields {
        self.shapes.entity(name).unwrap_or_default().attributes
    }

    /// Whether users may be in groups.
    pub(crate) fn users_have_groups(&self) -> bool {
        self.shapes.entity(names::USER).is_some_and(|user| user.member_of.iter().any(|parent| parent == names::GROUP))
    }

    /// Whether the hook whose schema this is can be asked about any tool.
    pub(crate) fn has_invoke_tool(&self, findings: &mut Findings) -> bool {
        let found = self.shapes.action(NAMESPACE, INVOKE_TOOL).is_some();
        if !found {
            let message = format!("the schema does not declare the action `{INVOKE_TOOL}` in the namespace {NAMESPACE}");
            let hint = "hooks with `input: none` need it; declare it, or make every hook `input: typed`";
            self.find(FindingCode::SchemaIncomplete, NAMESPACE, message, hint, findings);
        }
        found
    }

    fn find(&self, code: FindingCode, path: &str, message: impl Into<String>, hint: impl Into<String>, findings: &mut Findings) {
        let (after, name) = path.rsplit_once('.').unwrap_or(("", path));
        let place = self.sources.iter().find_map(|source| {
            // An attribute stands after its entity type, a fact anywhere: its record may be a common type.
            let place = locate(&source.text, &format!("entity {after}"), name).or_else(|| locate(&source.text, "", name));
            Some((source, place?))
        });
        match place {
            Some((source, place)) => findings.at(code, source, place, message),
            None => findings.about(code, self.sources.first().map_or("", |source| &source.path), message),
        }
        .hint(hint);
    }
}

fn fragment(source: &SourceText, findings: &mut Findings) -> Option<SchemaFragment> {
    if cedar_text::nesting(&source.text) > NESTING_MAX_DEPTH {
        let message = format!("brackets are nested deeper than {NESTING_MAX_DEPTH} levels");
        findings.about(FindingCode::NestedTooDeep, &source.path, message);
        return None;
    }
    match SchemaFragment::from_cedarschema_str(&source.text) {
        Ok((fragment, warnings)) => {
            for warning in warnings {
                cedar_errors::record(findings, FindingCode::SchemaWarning, source, 0, (&warning).into());
            }
            Some(fragment)
        }
        Err(error) => {
            cedar_errors::record(findings, FindingCode::SchemaSyntax, source, 0, (&error).into());
            None
        }
    }
}

/// Where a name is declared, as far as a look at the text tells: Cedar keeps no places of declarations.
fn locate(text: &str, after: &str, name: &str) -> Option<Range<usize>> {
    let from = text.find(after)? + after.len();
    let word = |character: char| character.is_alphanumeric() || character == '_';
    let outside = |(at, found): (usize, &str)| {
        let before = text.get(..at).and_then(|text| text.chars().next_back());
        let after = text.get(at + found.len()..).and_then(|text| text.chars().next());
        !before.is_some_and(word) && !after.is_some_and(word)
    };
    let (at, found) = text.match_indices(name).filter(|(at, _)| *at >= from).find(|place| outside(*place))?;
    Some(at..at + found.len())
}

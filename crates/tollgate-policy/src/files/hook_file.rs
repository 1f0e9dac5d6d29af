//! `hook.yaml`: one hook's place in the chain, and what it is asked about.

use std::{collections::BTreeSet, fmt, ops::Range};

use tollgate_domain::{
    AgentId, Enforcement, HookId, ProviderId, Selectors, ToolId,
    limits::{ID_MAX_BYTES, ORDER_MAX, ORDER_MIN, SELECTOR_MAX_COUNT},
    pseudo_hooks,
};

use super::{ToolsFile, UnknownTools};
use crate::{
    codes::FindingCode,
    yaml::{Node, Reader},
};

/// What decides where no policy matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    RequirePermit,
    ForbidOnly,
}

/// What of a call the hook's policies see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Input {
    /// The action `InvokeTool`, and no argument.
    None,
    /// An action per tool, with its arguments.
    Typed,
}

/// What `hook.yaml` says.
#[derive(Debug)]
pub(crate) struct HookFile {
    pub(crate) id: HookId,
    /// Where the id stands, for findings about it.
    pub(crate) id_place: Range<usize>,
    pub(crate) display_name: String,
    pub(crate) enabled: bool,
    pub(crate) order: i32,
    pub(crate) mode: Mode,
    pub(crate) enforcement: Enforcement,
    pub(crate) input: Input,
    /// Where `input` is chosen, for findings about what it demands.
    pub(crate) input_place: Range<usize>,
    pub(crate) selectors: Selectors,
}

impl HookFile {
    pub(crate) fn read(reader: &mut Reader<'_>, tools: &ToolsFile, unknown: &UnknownTools) -> Option<Self> {
        let node = reader.parse()?;
        let mut fields = reader.fields(&node)?;
        let id_node = fields.required("id", reader);
        let id = id_node.and_then(|node| hook_id(node, reader));
        let display_name = fields.optional("display_name").and_then(|node| display_name(node, reader));
        if let Some(node) = fields.required("kind", reader) {
            reader.choice(node, &[("cedar", ())]);
        }
        let enabled = fields.optional("enabled").and_then(|node| reader.boolean(node)).unwrap_or(true);
        let order = fields.required("order", reader).and_then(|node| reader.integer(node, ORDER_MIN.into(), ORDER_MAX.into()));
        let mode = fields.optional("mode");
        let mode = mode
            .and_then(|node| reader.choice(node, &[("require_permit", Mode::RequirePermit), ("forbid_only", Mode::ForbidOnly)]));
        let enforcement = fields.optional("enforcement");
        let enforcement = enforcement
            .and_then(|node| reader.choice(node, &[("enforce", Enforcement::Enforce), ("shadow", Enforcement::Shadow)]));
        let input_node = fields.optional("input");
        let input = input_node.and_then(|node| reader.choice(node, &[("none", Input::None), ("typed", Input::Typed)]));
        let selectors = fields.optional("selectors").map(|node| selectors(node, reader, tools, unknown)).unwrap_or_default();
        fields.finish(reader);
        let id = id?;
        Some(Self {
            display_name: display_name.unwrap_or_else(|| id.to_string()),
            id,
            id_place: id_node.map(|node| reader.place(node)).unwrap_or_default(),
            enabled,
            order: i32::try_from(order?).ok()?,
            mode: mode.unwrap_or(Mode::RequirePermit),
            enforcement: enforcement.unwrap_or_default(),
            input: input.unwrap_or(Input::None),
            input_place: input_node.map(|node| reader.place(node)).unwrap_or_default(),
            selectors,
        })
    }
}

fn hook_id(node: &Node, reader: &mut Reader<'_>) -> Option<HookId> {
    let id = reader.id(node, HookId::parse)?;
    if pseudo_hooks::ALL.contains(&id.as_str()) {
        reader.find(
            FindingCode::Reserved,
            node,
            format!("the id `{id}` is reserved"),
            "Tollgate itself appears under it; choose another",
        );
        return None;
    }
    Some(id)
}

fn display_name(node: &Node, reader: &mut Reader<'_>) -> Option<String> {
    reader.id(node, |text| HookId::parse(text).map(|_| text.to_owned()))
}

fn selectors(node: &Node, reader: &mut Reader<'_>, tools: &ToolsFile, unknown: &UnknownTools) -> Selectors {
    let mut selectors = Selectors::default();
    let Some(mut fields) = reader.fields(node) else { return selectors };
    if let Some(node) = fields.optional("providers") {
        let known =
            |id: &ProviderId| tools.providers.contains_key(id) || unknown.any.is_some() || unknown.by_provider.contains_key(id);
        selectors.providers = values(node, reader, ProviderId::parse, known);
    }
    if let Some(node) = fields.optional("tools") {
        let known = |id: &ToolId| tools.tools.contains_key(id) || !unknown.is_empty();
        selectors.tools = values(node, reader, ToolId::parse, known);
    }
    if let Some(node) = fields.optional("agents") {
        selectors.agents = values(node, reader, AgentId::parse, |_| true);
    }
    fields.finish(reader);
    selectors
}

fn values<T: Ord + fmt::Display + Clone, E: fmt::Display>(
    node: &Node,
    reader: &mut Reader<'_>,
    parse: impl Fn(&str) -> Result<T, E>,
    known: impl Fn(&T) -> bool,
) -> BTreeSet<T> {
    let items = reader.list(node);
    if items.len() > SELECTOR_MAX_COUNT {
        reader.find(
            FindingCode::InvalidValue,
            node,
            format!("the list has {} values", items.len()),
            format!("at most {SELECTOR_MAX_COUNT} are allowed"),
        );
    }
    let mut values = BTreeSet::new();
    for item in items {
        let Some(text) = reader.text(item) else { continue };
        if text.trim() != text || text.is_empty() {
            reader.find(
                FindingCode::InvalidValue,
                item,
                "the value is blank, or has blanks around it",
                format!("it must be 1 to {ID_MAX_BYTES} bytes without blanks around them"),
            );
            continue;
        }
        let Some(value) = reader.id(item, &parse) else { continue };
        if !known(&value) {
            reader.find(
                FindingCode::UnknownReference,
                item,
                format!("`{value}` is not in the catalogue"),
                "declare it in tools.yaml: this selector would never match",
            );
        } else if !values.insert(value.clone()) {
            reader.find(FindingCode::Duplicate, item, format!("`{value}` is there twice"), "remove one of them");
        }
    }
    values
}

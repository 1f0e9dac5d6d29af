//! `tools.yaml`: the catalogue, which says of tools what policies read.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use tollgate_domain::{
    ExternalToolName, ProviderId, TenantId, ToolAttributes, ToolDeclaration, ToolEffect, ToolId, limits::ID_MAX_BYTES,
};

use crate::{
    codes::FindingCode,
    limits::LABELS_MAX_COUNT,
    yaml::{Fields, Node, Reader},
};

/// What `tools.yaml` says.
#[derive(Debug, Default)]
pub(crate) struct ToolsFile {
    pub(crate) providers: BTreeMap<ProviderId, Provider>,
    pub(crate) tools: HashMap<ToolId, ToolDeclaration>,
}

/// Who serves tools.
#[derive(Clone, Debug, Default)]
pub(crate) struct Provider {
    pub(crate) trust: i64,
    pub(crate) tenant: Option<TenantId>,
}

impl ToolsFile {
    pub(crate) fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let node = reader.parse()?;
        let mut fields = reader.fields(&node)?;
        let mut file = Self::default();
        for (key, node) in fields.optional("providers").map(|node| reader.map(node)).unwrap_or_default() {
            let id = reader.key(key, ProviderId::parse);
            let Some(mut fields) = reader.fields(node) else { continue };
            let trust = fields.optional("trust").and_then(|node| reader.integer(node, i64::MIN, i64::MAX)).unwrap_or_default();
            let tenant = fields.optional("tenant").and_then(|node| reader.id(node, TenantId::parse));
            fields.finish(reader);
            file.providers.extend(id.map(|id| (id, Provider { trust, tenant })));
        }
        let mut taken = HashSet::new();
        for (key, node) in fields.optional("tools").map(|node| reader.map(node)).unwrap_or_default() {
            let id = reader.key(key, ToolId::parse);
            let Some(mut fields) = reader.fields(node) else { continue };
            let provider = fields.required("provider", reader);
            let provider = provider.and_then(|node| file.provider(node, reader));
            let external = fields.optional("external_name");
            let external_name = match external {
                Some(node) => reader.id(node, ExternalToolName::parse),
                None => ExternalToolName::parse(&key.value).ok(),
            };
            let attributes = attributes(&mut fields, reader, false);
            fields.finish(reader);
            let (Some(id), Some(provider), Some(external_name), Some(attributes)) = (id, provider, external_name, attributes)
            else {
                continue;
            };
            if !taken.insert((provider.clone(), external_name.clone())) {
                let message = format!("provider `{provider}` has another tool with the external name `{external_name}`");
                let hint = "external names are unique within a provider; give the tool an `external_name` of its own";
                let place = external.map_or_else(|| reader.place(key), |node| reader.place(node));
                reader.findings.at(FindingCode::Duplicate, reader.source, place, message).hint(hint);
            }
            file.tools.insert(id, ToolDeclaration { provider, external_name, attributes });
        }
        fields.finish(reader);
        Some(file)
    }

    fn provider(&self, node: &Node, reader: &mut Reader<'_>) -> Option<ProviderId> {
        let provider = reader.id(node, ProviderId::parse)?;
        if !self.providers.contains_key(&provider) {
            let hint = "declare it under `providers`";
            reader.find(FindingCode::UnknownReference, node, format!("the provider `{provider}` is not declared"), hint);
            return None;
        }
        Some(provider)
    }
}

/// What the operator says of a tool, or of all unknown ones, where nothing is left to a default.
pub(super) fn attributes(fields: &mut Fields<'_>, reader: &mut Reader<'_>, all_required: bool) -> Option<ToolAttributes> {
    const EFFECTS: &[(&str, ToolEffect)] =
        &[("read", ToolEffect::Read), ("write", ToolEffect::Write), ("destructive", ToolEffect::Destructive)];
    let effect = fields.required("effect", reader).and_then(|node| reader.choice(node, EFFECTS));
    let open_world = flag(fields, "open_world", reader, all_required);
    let requires_approval = flag(fields, "requires_approval", reader, all_required);
    let labels = fields.optional("labels").map(|node| labels(node, reader)).unwrap_or_default();
    Some(ToolAttributes { effect: effect?, open_world: open_world?, requires_approval: requires_approval?, labels })
}

fn flag(fields: &mut Fields<'_>, name: &'static str, reader: &mut Reader<'_>, required: bool) -> Option<bool> {
    let node = if required { Some(fields.required(name, reader)?) } else { fields.optional(name) };
    node.map_or(Some(false), |node| reader.boolean(node))
}

fn labels(node: &Node, reader: &mut Reader<'_>) -> BTreeSet<String> {
    let items = reader.list(node);
    if items.len() > LABELS_MAX_COUNT {
        reader.find(
            FindingCode::InvalidValue,
            node,
            "there are too many labels",
            format!("at most {LABELS_MAX_COUNT} are allowed"),
        );
    }
    let mut labels = BTreeSet::new();
    for item in items {
        let Some(text) = reader.text(item) else { continue };
        if text.is_empty() || text.len() > ID_MAX_BYTES {
            reader.find(
                FindingCode::InvalidValue,
                item,
                "the label is not allowed",
                format!("it must be 1 to {ID_MAX_BYTES} bytes long"),
            );
        } else if !labels.insert(text.to_owned()) {
            reader.find(FindingCode::Duplicate, item, format!("the label `{text}` is there twice"), "remove one of them");
        }
    }
    labels
}

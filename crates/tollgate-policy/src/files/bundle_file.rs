//! `bundle.yaml`: what the bundle is.

use std::collections::HashMap;

use tollgate_domain::{BundleName, Digest, ProviderId, ToolAttributes};

use super::tools_file::attributes;
use crate::{
    codes::FindingCode,
    yaml::{Node, Reader},
};

/// The only format that this version reads.
const FORMAT: &str = "tollgate/v1";
/// The provider that stands for any other.
const ANY_PROVIDER: &str = "*";

/// What `bundle.yaml` says.
#[derive(Debug)]
pub(crate) struct BundleFile {
    pub(crate) name: Option<BundleName>,
    pub(crate) serial: Option<u64>,
    pub(crate) unknown_tools: UnknownTools,
}

/// The attributes of tools that the catalogue does not declare.
#[derive(Clone, Debug, Default)]
pub(crate) struct UnknownTools {
    pub(crate) by_provider: HashMap<ProviderId, ToolAttributes>,
    pub(crate) any: Option<ToolAttributes>,
}

impl BundleFile {
    pub(crate) fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let node = reader.parse()?;
        let mut fields = reader.fields(&node)?;
        if let Some(node) = fields.required("format", reader)
            && let Some(text) = reader.text(node).filter(|text| *text != FORMAT)
        {
            let message = format!("the format `{text}` is not known");
            reader.find(FindingCode::UnsupportedFormat, node, message, format!("write `{FORMAT}`"));
        }
        let name = fields.required("name", reader).and_then(|node| reader.id(node, BundleName::parse));
        let serial = fields.optional("serial").and_then(|node| reader.integer(node, 0, i64::MAX)).map(i64::unsigned_abs);
        let unknown_tools = fields.optional("unknown_tools").map(|node| UnknownTools::read(node, reader)).unwrap_or_default();
        fields.finish(reader);
        Some(Self { name, serial, unknown_tools })
    }
}

impl UnknownTools {
    fn read(node: &Node, reader: &mut Reader<'_>) -> Self {
        let mut unknown = Self::default();
        for (key, node) in reader.map(node) {
            let provider = (key.value != ANY_PROVIDER).then(|| reader.key(key, ProviderId::parse));
            let Some(mut fields) = reader.fields(node) else { continue };
            let found = attributes(&mut fields, reader, true);
            fields.finish(reader);
            match (provider, found) {
                (None, found) => unknown.any = found,
                (Some(Some(provider)), Some(found)) => {
                    unknown.by_provider.insert(provider, found);
                }
                (Some(_), _) => {}
            }
        }
        unknown
    }

    /// Whether a tool that nobody declares can be judged at all.
    pub(crate) fn is_empty(&self) -> bool {
        self.any.is_none() && self.by_provider.is_empty()
    }

    /// Changes exactly when an attribute does.
    pub(crate) fn digest(&self) -> Digest {
        let line = |provider: &str, a: &ToolAttributes| {
            let labels: Vec<_> = a.labels.iter().map(|label| format!("{label:?}")).collect();
            format!("{provider:?} {} {} {} {}", a.effect.as_str(), a.open_world, a.requires_approval, labels.join(","))
        };
        let mut lines: Vec<_> = self.by_provider.iter().map(|(provider, found)| line(provider.as_str(), found)).collect();
        lines.extend(self.any.as_ref().map(|found| line(ANY_PROVIDER, found)));
        lines.sort();
        Digest::of_parts(lines.iter().map(String::as_bytes))
    }
}

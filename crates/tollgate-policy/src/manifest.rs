//! `manifest.sha256`: the digests by which a copied tree is known to be complete.

use std::collections::BTreeSet;

use tollgate_domain::Digest;

use crate::{codes::FindingCode, diagnostic::Findings, tree::Tree};

/// The manifest's path.
pub(crate) const MANIFEST: &str = "manifest.sha256";

/// Whether a tree has a manifest, and agrees with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Completeness {
    /// There is no manifest.
    Unknown,
    /// The tree is what the manifest says.
    Complete,
    /// It is not; findings say where.
    Incomplete,
}

/// Compares a tree with its manifest, where it has one.
pub(crate) fn check(tree: &Tree, findings: &mut Findings) -> Completeness {
    if !tree.files.contains_key(MANIFEST) {
        return Completeness::Unknown;
    }
    let before = findings.len();
    let Some(manifest) = tree.text(MANIFEST, findings) else { return Completeness::Incomplete };
    let mut listed = BTreeSet::new();
    let mut offset = 0;
    for line in manifest.text.split_inclusive('\n') {
        let content = line.trim_end_matches(['\n', '\r']);
        let range = offset..offset + content.len();
        offset += line.len();
        if content.is_empty() {
            continue;
        }
        let Some((digest, path)) = parse(content) else {
            findings
                .at(FindingCode::ManifestSyntax, &manifest, range, "the line is not `<64 hexadecimal digits>  <path>`")
                .hint("write the file with `sha256sum`");
            continue;
        };
        match tree.files.get(path) {
            _ if !listed.insert(path) => {
                findings.at(FindingCode::Duplicate, &manifest, range, "the file is listed twice");
            }
            None => {
                findings.at(FindingCode::ManifestMismatch, &manifest, range, format!("`{path}` is listed and not there"));
            }
            Some(content) if Digest::of(content) != digest => {
                findings.at(FindingCode::ManifestMismatch, &manifest, range, format!("`{path}` has another digest"));
            }
            Some(_) => {}
        }
    }
    for path in tree.files.keys().filter(|path| *path != MANIFEST && !listed.contains(path.as_str())) {
        findings.about(FindingCode::ManifestMismatch, path, "the file is not listed in manifest.sha256");
    }
    if findings.len() == before { Completeness::Complete } else { Completeness::Incomplete }
}

fn parse(line: &str) -> Option<(Digest, &str)> {
    let (digest, rest) = line.split_at_checked(64)?;
    let path = rest.strip_prefix("  ").or_else(|| rest.strip_prefix(" *"))?;
    Some((Digest::from_hex(digest)?, path.strip_prefix("./").unwrap_or(path)))
}

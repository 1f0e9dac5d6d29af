//! What each file of a tree is, by its place; and which files should not be where they are.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use tollgate_domain::{TenantId, WorkspaceId};

use super::Kind;
use crate::{codes::FindingCode, diagnostic::Findings, manifest::MANIFEST, place, tree::Tree, yaml::nearest};

pub(crate) const BUNDLE: &str = "bundle.yaml";
pub(crate) const SCHEMA: &str = "schema.cedarschema";
pub(crate) const TOOLS: &str = "tools.yaml";
pub(crate) const ENTITIES: &str = "entities.json";
pub(crate) const HOOK: &str = "hook.yaml";
const ROOT_FILES: [&str; 5] = [BUNDLE, SCHEMA, TOOLS, ENTITIES, MANIFEST];
const ROOT_DIRECTORIES: [&str; 3] = ["hooks", "workspaces", "tests"];

/// The hook directories of a tree.
#[derive(Debug, Default)]
pub(crate) struct Places {
    pub(crate) hooks: BTreeMap<String, HookPlace>,
}

/// One hook directory.
#[derive(Debug, Default)]
pub(crate) struct HookPlace {
    /// Whose it is; `None` for the whole organisation.
    pub(crate) workspace: Option<(TenantId, WorkspaceId)>,
    /// Paths of its policies.
    pub(crate) policies: Vec<String>,
}

impl Places {
    pub(crate) fn of(tree: &Tree, kind: Kind, findings: &mut Findings) -> Self {
        let mut places = Self::default();
        let mut bad_names = BTreeSet::new();
        for path in tree.files.keys() {
            let parts: Vec<&str> = path.split('/').collect();
            match parts.as_slice() {
                ["tests", _, ..] => {}
                [.., name] if is_documentation(name) => {}
                [name] if ROOT_FILES.contains(name) => {}
                ["hooks", directory, name] => {
                    places.file(path, &format!("hooks/{directory}"), name, None, findings);
                }
                ["workspaces", tenant, workspace, "hooks", directory, name] if kind == Kind::Managed => {
                    let owner = TenantId::parse(&place::decode(tenant).unwrap_or_default())
                        .ok()
                        .zip(WorkspaceId::parse(&place::decode(workspace).unwrap_or_default()).ok());
                    let Some(owner) = owner else {
                        if bad_names.insert((*tenant, *workspace)) {
                            findings
                                .about(
                                    FindingCode::WorkspaceName,
                                    &format!("workspaces/{tenant}/{workspace}"),
                                    "the directory names no tenant and workspace",
                                )
                                .hint("write `/` as %2F, `%` as %25, a leading `.` as %2E, and nothing else encoded");
                        }
                        continue;
                    };
                    places.file(path, &format!("workspaces/{tenant}/{workspace}/hooks/{directory}"), name, Some(owner), findings);
                }
                ["workspaces", ..] if kind == Kind::Local => {
                    findings
                        .about(FindingCode::UnexpectedFile, path, "local hooks belong to no workspace")
                        .hint("move the hook to hooks/");
                }
                parts => unexpected(path, parts, findings),
            }
        }
        for directory in places.hooks.keys().filter(|directory| !tree.files.contains_key(&format!("{directory}/{HOOK}"))) {
            findings
                .about(FindingCode::FileMissing, directory, format!("the hook has no `{HOOK}`"))
                .hint("a hook directory has a hook.yaml and *.cedar files");
        }
        places
    }

    fn file(
        &mut self,
        path: &str,
        directory: &str,
        name: &str,
        workspace: Option<(TenantId, WorkspaceId)>,
        findings: &mut Findings,
    ) {
        let place = self.hooks.entry(directory.to_owned()).or_insert_with(|| HookPlace { workspace, policies: Vec::new() });
        if is_policy(name) {
            place.policies.push(path.to_owned());
        } else if name != HOOK && name != SCHEMA {
            let hint = format!("a hook directory has {HOOK}, *.cedar and {SCHEMA}; documentation is *.md or *.txt");
            findings.about(FindingCode::UnexpectedFile, path, format!("`{name}` is no part of a hook")).hint(meant(
                name,
                &[HOOK, SCHEMA],
                hint,
            ));
        }
    }
}

fn unexpected(path: &str, parts: &[&str], findings: &mut Findings) {
    let hint = "docs/reference/bundle-v1.md says what a bundle holds; documentation is *.md or *.txt".to_owned();
    let hint = match parts {
        [name] if is_policy(name) => "policies belong into a hook's directory, hooks/<dir>/".to_owned(),
        [name] => meant(name, &ROOT_FILES, hint),
        [directory, ..] if !ROOT_DIRECTORIES.contains(directory) => meant(directory, &ROOT_DIRECTORIES, hint),
        ["hooks", name] => format!("`{name}` belongs into a directory of its hook, hooks/<dir>/"),
        ["hooks", _, ..] => "a hook's files stand in its directory itself".to_owned(),
        ["workspaces", ..] => "a workspace's hooks stand in workspaces/<tenant>/<workspace>/hooks/<dir>/".to_owned(),
        _ => hint,
    };
    findings.about(FindingCode::UnexpectedFile, path, "the file is no part of a bundle").hint(hint);
}

fn meant(name: &str, known: &[&str], otherwise: String) -> String {
    nearest(name, known).map_or(otherwise, |known| format!("did you mean `{known}`?"))
}

fn is_policy(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension == "cedar")
}

fn is_documentation(name: &str) -> bool {
    let extension = Path::new(name).extension().and_then(|extension| extension.to_str());
    matches!(extension, Some("md" | "txt")) || matches!(name, "LICENSE" | "NOTICE" | "OWNERS" | "CODEOWNERS")
}

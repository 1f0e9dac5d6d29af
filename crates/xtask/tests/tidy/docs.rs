//! The documentation names what exists, and what exists is documented.

use std::collections::BTreeSet;

use crate::{
    TREE, links, markdown_files, none, root,
    rust::{Word, words},
    rust_files,
};

/// The headings of a decision, in order.
const DECISION: [&str; 5] = ["Status", "Context", "Decision", "Consequences", "What would change our mind"];

#[test]
fn architecture_names_the_crates_that_exist() {
    let crates: BTreeSet<String> = TREE
        .iter()
        .filter_map(|file| file.path.strip_prefix("crates/")?.strip_suffix("/Cargo.toml"))
        .map(str::to_owned)
        .collect();
    let architecture = markdown_files().find(|file| file.path == "docs/ARCHITECTURE.md");
    let text = architecture.map(|file| file.text.as_str()).unwrap_or_default();
    let named: BTreeSet<String> = tokens(text).filter(|token| token.starts_with("tollgate-")).map(str::to_owned).collect();
    let mut found: Vec<_> = named
        .iter()
        .filter(|name| !crates.contains(*name) && *name != "tollgate-tests")
        .map(|name| format!("{name} does not exist"))
        .collect();
    let present: BTreeSet<_> = tokens(text).collect();
    found.extend(crates.iter().filter(|name| !present.contains(name.as_str())).map(|name| format!("{name} is not named")));
    none("docs/ARCHITECTURE.md and the crates differ", &found);
}

#[test]
fn files_that_texts_name_exist() {
    let top = ["crates/", "docs/", "migrations/", "policies/", "proto/", "tests/"];
    let mut found = Vec::new();
    for file in TREE.iter().filter(|file| ["md", "rs", "proto", "toml"].iter().any(|kind| file.has_extension(kind))) {
        for token in file.text.split(|letter: char| !(letter.is_alphanumeric() || "-_./{}*<>$".contains(letter))) {
            let path = token.trim_end_matches(['.', '/']);
            let pattern = path.contains(['{', '*', '<', '$']) || path.contains("NNNN") || path.contains("..");
            if top.iter().any(|folder| path.starts_with(folder)) && !pattern && has_extension(path) && !exists(&file.path, path) {
                found.push(format!("{}: {path}", file.path));
            }
        }
    }
    none("files that do not exist", &found);
}

#[test]
fn every_error_code_has_a_page_and_every_page_and_mention_a_code() {
    let mut coded = BTreeSet::new();
    for file in rust_files().filter(|file| file.path.starts_with("crates/") && !file.path.starts_with("crates/xtask/")) {
        for word in words(&file.text) {
            if let Word::Literal(literal) = word {
                coded.extend(codes(&literal));
            }
        }
    }
    let pages: BTreeSet<String> = markdown_files()
        .filter_map(|file| file.path.strip_prefix("docs/errors/")?.strip_suffix(".md"))
        .filter(|name| *name != "README")
        .map(str::to_owned)
        .collect();
    let mut found: Vec<_> = coded.difference(&pages).map(|code| format!("{code} has no page in docs/errors")).collect();
    found.extend(pages.difference(&coded).map(|code| format!("docs/errors/{code}.md explains what no code says")));
    for file in markdown_files() {
        let unknown = codes(&file.text).into_iter().filter(|code| !coded.contains(code) && !pages.contains(code));
        found.extend(unknown.map(|code| format!("{}: {code} does not exist", file.path)));
    }
    none("error codes and their pages differ", &found);
}

#[test]
fn decisions_are_numbered_without_gaps_and_have_their_headings() {
    let decisions = markdown_files().filter_map(|file| Some((file, file.path.strip_prefix("docs/decisions/")?)));
    let mut found = Vec::new();
    for (expected, (file, name)) in (1..).zip(decisions.filter(|(_, name)| *name != "README.md")) {
        if !name.starts_with(&format!("{expected:04}-")) {
            found.push(format!("{name} should have number {expected:04}"));
        }
        let headings: Vec<_> = links::lines(&file.text)
            .filter(|(_, in_code)| !in_code)
            .filter_map(|(line, _)| line.strip_prefix("## "))
            .map(str::trim)
            .collect();
        if headings != DECISION {
            found.push(format!("{name} has the headings {headings:?}"));
        }
        if !file.text.starts_with("# ") {
            found.push(format!("{name} has no title"));
        }
    }
    none("decisions out of form", &found);
}

/// Whether a path exists from the root, or from a folder that holds the file that names it.
fn exists(from: &str, path: &str) -> bool {
    let mut folder = root().join(from);
    while folder.pop() && folder.starts_with(root()) {
        if folder.join(path).exists() {
            return true;
        }
    }
    false
}

fn has_extension(path: &str) -> bool {
    std::path::Path::new(path).extension().is_some()
}

/// The names in a text, such as crates.
fn tokens(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| !(letter.is_alphanumeric() || letter == '-' || letter == '_'))
}

/// The error codes in a text: `TG` and four digits.
fn codes(text: &str) -> BTreeSet<String> {
    let is_code = |token: &&str| {
        token.strip_prefix("TG").is_some_and(|digits| digits.len() == 4 && digits.bytes().all(|digit| digit.is_ascii_digit()))
    };
    text.split(|letter: char| !letter.is_alphanumeric()).filter(is_code).map(str::to_owned).collect()
}

//! How files are kept: each says why it exists, none is long, and none is a drawer.

use std::{fs, path::Path};

use crate::{
    none, root,
    rust::{self, Word},
    rust_files,
};

const MAX_LINES: usize = 500;

/// Names under which unrelated things gather.
const DRAWERS: [&str; 8] = ["common", "helper", "helpers", "misc", "prelude", "shared", "util", "utils"];

/// What may lie at the root, beside dotfiles and what is built.
const TOP_LEVEL: [&str; 16] = [
    "CHANGELOG.md",
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE",
    "README.md",
    "charts",
    "clippy.toml",
    "crates",
    "deny.toml",
    "docs",
    "migrations",
    "policies",
    "proto",
    "rust-toolchain.toml",
    "rustfmt.toml",
    "tests",
];

#[test]
fn every_source_opens_with_why_it_exists() {
    let found: Vec<_> = rust_files()
        .filter(|file| file.text.lines().next().and_then(|line| line.strip_prefix("//! ")).is_none_or(|why| why.len() < 10))
        .map(|file| file.path.clone())
        .collect();
    none("sources whose first line is not `//! ` and why they exist", &found);
}

#[test]
fn no_source_is_long() {
    let found: Vec<_> = rust_files()
        .map(|file| (file, file.text.lines().count()))
        .filter(|(_, lines)| *lines > MAX_LINES)
        .map(|(file, lines)| format!("{}: {lines} lines", file.path))
        .collect();
    none("sources of more than 500 lines", &found);
}

#[test]
fn no_module_is_a_drawer() {
    let mut found = Vec::new();
    for file in rust_files() {
        let mut parts = Path::new(&file.path).with_extension("");
        while let Some(name) = parts.file_name().map(|name| name.to_string_lossy().into_owned()) {
            if DRAWERS.contains(&name.as_str()) {
                found.push(file.path.clone());
            }
            parts.pop();
        }
        let words = rust::words(&file.text);
        for pair in words.windows(2) {
            if let [Word::Code(keyword), Word::Code(name)] = pair
                && keyword == "mod"
                && DRAWERS.contains(&name.as_str())
            {
                found.push(format!("{}: mod {name}", file.path));
            }
        }
    }
    none("modules that say nothing of what is in them", &found);
}

#[test]
fn the_top_level_holds_only_what_it_is_for() {
    let found: Vec<_> = fs::read_dir(root())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .filter(|name| !name.starts_with('.') && name != "target" && !TOP_LEVEL.contains(&name.as_str()))
        .collect();
    none("entries that the root is not for", &found);
}

//! Links between documents lead somewhere.

use std::{collections::BTreeSet, fs, path::Path};

use crate::{File, markdown_files, none, root};

#[test]
fn every_relative_link_resolves() {
    let mut found = Vec::new();
    for file in markdown_files() {
        for target in links(&file.text) {
            if !resolves(file, &target) {
                found.push(format!("{}: {target}", file.path));
            }
        }
    }
    none("links that lead nowhere", &found);
}

/// A page that nothing leads to is read by nobody. Decisions and errors are found by their numbers.
#[test]
fn every_page_of_the_documentation_is_linked() {
    let mut linked = BTreeSet::new();
    for file in markdown_files() {
        for target in links(&file.text) {
            let path = folder_of(file).join(target.split('#').next().unwrap_or_default());
            linked.extend(fs::canonicalize(path));
        }
    }
    let by_number = ["docs/decisions/", "docs/errors/"];
    let found: Vec<_> = markdown_files()
        .filter(|file| file.path.starts_with("docs/") && !by_number.iter().any(|folder| file.path.starts_with(folder)))
        .filter(|file| !linked.contains(&fs::canonicalize(root().join(&file.path)).unwrap()))
        .map(|file| file.path.clone())
        .collect();
    none("pages that nothing links to", &found);
}

fn resolves(file: &File, target: &str) -> bool {
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let path = if path.is_empty() { root().join(&file.path) } else { folder_of(file).join(path) };
    if !path.exists() {
        return false;
    }
    let is_page = path.extension().is_some_and(|extension| extension == "md");
    anchor.is_empty() || !is_page || anchors(&fs::read_to_string(&path).unwrap()).contains(anchor)
}

fn folder_of(file: &File) -> std::path::PathBuf {
    let folder = Path::new(&file.path).parent().unwrap_or(Path::new(""));
    root().join(folder)
}

/// The targets of links within the tree: inline ones, and definitions of references.
fn links(text: &str) -> Vec<String> {
    let prose = without_code(text);
    let inline = prose.split("](").skip(1).filter_map(|rest| rest.split([')', ' ', '\n']).next());
    let definitions = prose.lines().filter_map(|line| line.strip_prefix('[')?.split_once("]: ").map(|(_, target)| target));
    let targets = inline.chain(definitions).map(str::trim);
    let within = targets.filter(|target| !target.contains("://") && !target.starts_with("mailto:") && !target.is_empty());
    within.map(str::to_owned).collect()
}

/// A text without its code blocks and code spans, in which brackets are no links.
fn without_code(text: &str) -> String {
    let mut prose = String::new();
    for (line, in_code) in lines(text) {
        if !in_code {
            let outside = line.split('`').step_by(2);
            prose.push_str(&outside.collect::<Vec<_>>().join("code"));
        }
        prose.push('\n');
    }
    prose
}

/// The anchors of a page's headings, as GitHub makes them.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = lines(text).filter(|(line, in_code)| !in_code && line.starts_with('#')).map(|(line, _)| line);
    headings
        .map(|heading| {
            let title = heading.trim_start_matches('#').trim().to_lowercase().replace(' ', "-");
            title.chars().filter(|letter| letter.is_alphanumeric() || matches!(letter, '-' | '_')).collect()
        })
        .collect()
}

/// The lines of a text, and whether each is part of a fenced block.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = (&str, bool)> {
    let mut fence: Option<&str> = None;
    text.lines().map(move |line| {
        let trimmed = line.trim_start();
        let ticks = trimmed.split_at(trimmed.len() - trimmed.trim_start_matches('`').len()).0;
        match fence {
            None if ticks.len() >= 3 => fence = Some(ticks),
            Some(open) if ticks.len() >= open.len() && ticks == trimmed.trim_end() => {
                fence = None;
                return (line, true);
            }
            None | Some(_) => {}
        }
        (line, fence.is_some())
    })
}

#[test]
fn links_are_found_outside_of_code_only() {
    let text = "[a](b.md#c) and `[no](no.md)`\n```\n[no](no.md)\n```\n[d]: ../e.md\n[web](https://example.com)\n";
    assert_eq!(links(text), ["b.md#c", "../e.md"]);
    assert_eq!(anchors("# Who's there?\n```\n# no\n```\n## A `code` b\n"), ["a-code-b", "whos-there"].map(str::to_owned).into());
}

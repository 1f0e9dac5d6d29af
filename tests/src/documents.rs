//! Cases as people read them: Markdown in which calls and decisions stand beside the prose.
//!
//! A `##` heading begins a case. Its blocks say what they are in the line that opens them:
//!
//! - a language and a path, such as `cedar hooks/guard/guard.cedar`: a file of the bundle. Files before
//!   the first case are there for all of them, files within a case for it alone.
//! - `yaml call`: the call, see [`crate::calls::CallText`]; `json arguments`: its arguments, if any.
//! - `text decision`: what comes of it. With the environment variable of [`crate::review`] it is written.
//!
//! A document that brings a `schema.cedarschema` before its first case starts from an empty bundle, any
//! other one from the sample bundle in `policies/`.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::{
    bench::{self, Bench},
    calls::CallText,
    review::{self, root},
};

/// One block: what its opening line says, its text, and where the text lies in the document.
#[derive(Debug)]
struct Block {
    kind: String,
    text: String,
    lines: std::ops::Range<usize>,
}

/// One case.
#[derive(Debug)]
struct Case {
    title: String,
    blocks: Vec<Block>,
}

/// Runs every case of a document. Answers what differs from the decisions that it states, as a text for
/// people; empty where nothing does.
pub async fn run(path: &Path) -> String {
    let document = fs::read_to_string(path).unwrap();
    let (shared, cases) = parse(&document);
    assert!(!cases.is_empty(), "{}: no cases", path.display());
    let mut decisions = Vec::new();
    for case in &cases {
        let expected = case.block("text decision");
        decisions.push((expected.lines.clone(), decide(&shared, case).await));
    }
    let mut lines: Vec<_> = document.lines().map(str::to_owned).collect();
    for (place, decision) in decisions.into_iter().rev() {
        lines.splice(place, decision.lines().map(str::to_owned));
    }
    review::compare(path, &(lines.join("\n") + "\n"))
}

async fn decide(shared: &[Block], case: &Case) -> String {
    let directory = tempfile::tempdir().unwrap();
    lay_out(directory.path(), shared, case);
    let bench = Bench::of(bench::load(directory.path(), &case.title)).await;
    let text = &case.block("yaml call").text;
    let call: CallText = serde_saphyr::from_str(text).unwrap_or_else(|error| panic!("{}: {error}", case.title));
    let arguments = case.blocks.iter().find(|block| block.kind == "json arguments").map_or("{}", |block| block.text.trim());
    for _ in 1..call.attempt {
        bench.ask(call.call("call-1", arguments), call.trust_claims).await;
    }
    bench.ask(call.call("call-1", arguments), call.trust_claims).await.in_full()
}

/// Writes the bundle of a case.
fn lay_out(directory: &Path, shared: &[Block], case: &Case) {
    let own = shared.iter().any(|block| file(block).is_some_and(|path| path == Path::new("schema.cedarschema")));
    if own {
        fs::write(directory.join("bundle.yaml"), "format: tollgate/v1\nname: case\n").unwrap();
    } else {
        copy(&root().join("policies"), directory);
    }
    for block in shared.iter().chain(&case.blocks) {
        if let Some(path) = file(block) {
            let path = directory.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, &block.text).unwrap();
        }
    }
}

/// Copies a tree.
pub fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let (path, name) = entry.map(|entry| (entry.path(), entry.file_name())).unwrap();
        if path.is_dir() {
            copy(&path, &to.join(name));
        } else {
            fs::copy(&path, to.join(name)).unwrap();
        }
    }
}

/// The path of a file block.
fn file(block: &Block) -> Option<PathBuf> {
    let (_, name) = block.kind.split_once(' ')?;
    name.contains('.').then(|| PathBuf::from(name))
}

impl Case {
    fn block(&self, kind: &str) -> &Block {
        let mut found = self.blocks.iter().filter(|block| block.kind == kind);
        match (found.next(), found.next()) {
            (Some(block), None) => block,
            _ => panic!("case {:?} needs exactly one block `{kind}`", self.title),
        }
    }
}

/// The blocks before the first case, and the cases.
fn parse(document: &str) -> (Vec<Block>, Vec<Case>) {
    let (mut shared, mut cases) = (Vec::new(), Vec::<Case>::new());
    let mut lines = document.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        if let Some(title) = line.strip_prefix("## ") {
            cases.push(Case { title: title.to_owned(), blocks: Vec::new() });
        } else if let Some(kind) = line.strip_prefix("```") {
            let body: Vec<_> = lines.by_ref().map(|(_, line)| line).take_while(|line| *line != "```").collect();
            let end = number + 1 + body.len();
            let text = body.iter().flat_map(|line| [*line, "\n"]).collect();
            let block = Block { kind: kind.to_owned(), text, lines: number + 1..end };
            cases.last_mut().map_or(&mut shared, |case| &mut case.blocks).push(block);
        }
    }
    (shared, cases)
}

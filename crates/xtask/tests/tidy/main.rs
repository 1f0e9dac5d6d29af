//! The rules of the source tree that no compiler knows: which crate may depend on which, what a crate
//! may not know, how files are kept, and that the documentation and the code name the same things.
#![expect(clippy::unwrap_used, reason = "tests may panic")]

mod arrows;
mod docs;
mod links;
mod promises;
mod rust;
mod sources;
mod words;

use std::{
    fs,
    path::{Path, PathBuf},
    sync::LazyLock,
};

/// A file of the tree that holds text.
struct File {
    /// Its path from the root, with `/`.
    path: String,
    text: String,
}

/// Every text file of the tree; what is built or fetched is not of the tree.
static TREE: LazyLock<Vec<File>> = LazyLock::new(|| {
    let mut files = Vec::new();
    walk(&root(), &mut files);
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files
});

impl File {
    fn has_extension(&self, extension: &str) -> bool {
        Path::new(&self.path).extension().is_some_and(|own| own == extension)
    }
}

/// The root of the workspace.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_owned()
}

fn rust_files() -> impl Iterator<Item = &'static File> {
    TREE.iter().filter(|file| file.has_extension("rs") && !file.path.starts_with("crates/tollgate-proto/src/generated/"))
}

fn markdown_files() -> impl Iterator<Item = &'static File> {
    TREE.iter().filter(|file| file.has_extension("md"))
}

/// Fails with every finding at once.
fn none(rule: &str, found: &[String]) {
    assert!(found.is_empty(), "{rule}:\n  {}", found.join("\n  "));
}

fn walk(folder: &Path, files: &mut Vec<File>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let built = path == root().join("target") || name == "__pycache__";
        if path.is_symlink() || built || name == ".git" {
            continue;
        }
        if path.is_dir() {
            walk(&path, files);
        } else if let Ok(text) = fs::read_to_string(&path) {
            let path = path.strip_prefix(root()).unwrap().to_string_lossy().replace('\\', "/");
            files.push(File { path, text });
        }
    }
}

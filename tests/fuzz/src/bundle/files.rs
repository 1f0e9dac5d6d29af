//! A tree of files as one text that people can read and a fuzzer can vary.

use std::{collections::BTreeMap, fs, path::Path};

use tollgate_domain::Bundle;
use tollgate_policy::Report;

/// Files by path. In one text, each follows a line `-- path --`.
pub(crate) struct Files(BTreeMap<String, Vec<u8>>);

impl Files {
    /// Reads the text; what comes before the first path is left out, and so is a path that leads elsewhere.
    pub(crate) fn parse(data: &[u8]) -> Self {
        let mut files = BTreeMap::new();
        let mut current: Option<&mut Vec<u8>> = None;
        for line in data.split_inclusive(|byte| *byte == b'\n') {
            if let Some(path) = path(line) {
                current = Some(files.entry(path.to_owned()).or_insert_with(Vec::new));
            } else if let Some(content) = &mut current {
                content.extend_from_slice(line);
            }
        }
        Self(files)
    }

    /// One file, and nothing else.
    pub(crate) fn one(path: &str, content: &[u8]) -> Self {
        Self(BTreeMap::from([(path.to_owned(), content.to_owned())]))
    }

    /// Loads the bundle from a directory, as every bundle is loaded.
    pub(crate) fn load(&self) -> Result<Bundle, Box<Report>> {
        let directory = tempfile::tempdir().unwrap();
        for (path, content) in &self.0 {
            write(&directory.path().join(path), content);
        }
        tollgate_policy::load(directory.path())
    }

    /// A file, where it is a text.
    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        std::str::from_utf8(self.0.get(path)?).ok()
    }
}

fn path(line: &[u8]) -> Option<&str> {
    let path = std::str::from_utf8(line).ok()?.trim_end().strip_prefix("-- ")?.strip_suffix(" --")?;
    let plain = |part: &str| !part.is_empty() && part != "." && part != ".." && part.len() < 200 && !part.contains('\0');
    (path.split('/').all(plain) && path.len() < 1_000).then_some(path)
}

/// A path below a file, or of a directory, is not written: such a tree cannot be.
fn write(path: &Path, content: &[u8]) {
    let made = path.parent().is_some_and(|parent| fs::create_dir_all(parent).is_ok());
    if made && !path.is_dir() {
        fs::write(path, content).unwrap();
    }
}

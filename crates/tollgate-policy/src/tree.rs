//! A bundle's directory, read whole into memory: from here on nothing touches the disk.

use std::{
    collections::BTreeMap,
    fs::{self, Metadata},
    io::{self, Read},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use tollgate_domain::Digest;

use crate::{
    codes::FindingCode,
    diagnostic::{Findings, SourceText},
    limits::{ENTITIES_MAX_BYTES, FILE_MAX_BYTES, TREE_MAX_BYTES, TREE_MAX_DEPTH, TREE_MAX_FILES},
};

/// The link that a Kubernetes volume swaps to replace all of its files at once.
const ATOMIC_LINK: &str = "..data";

/// Every file of a bundle, by its path relative to the root, with `/` between the parts.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    pub(crate) files: BTreeMap<String, Vec<u8>>,
    pub(crate) digest: Option<Digest>,
}

/// Why there is no tree at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoTree {
    Missing,
    Unreadable,
    Empty,
}

/// A directory as it is listed, before any content is read.
#[derive(Debug)]
pub(crate) struct Listing {
    entries: Vec<Entry>,
    findings: Findings,
    /// Changes whenever an entry, a size or a time does.
    pub(crate) fingerprint: Digest,
    /// Where `..data` points to, if it is there: then one swap replaces everything.
    pub(crate) atomic: bool,
}

#[derive(Debug)]
struct Entry {
    path: String,
    location: PathBuf,
    metadata: Metadata,
}

impl Listing {
    /// Lists a bundle's directory, following its `..data` link where it has one.
    pub(crate) fn of(root: &Path) -> Result<Self, NoTree> {
        let outer = fs::canonicalize(root).map_err(|error| NoTree::from(&error))?;
        let inner = fs::canonicalize(outer.join(ATOMIC_LINK)).ok().filter(|inner| inner.starts_with(&outer) && inner.is_dir());
        let mut walk =
            Walk { root: inner.clone().unwrap_or_else(|| outer.clone()), entries: Vec::new(), findings: Findings::default() };
        let top = walk.root.clone();
        walk.directory(&top, "", 0).map_err(|error| NoTree::from(&error))?;
        if walk.entries.is_empty() && walk.findings.len() == 0 {
            return Err(NoTree::Empty);
        }
        let fingerprint = fingerprint(&top, &walk.entries);
        Ok(Self { entries: walk.entries, findings: walk.findings, fingerprint, atomic: inner.is_some() })
    }

    /// Reads every file of the listing.
    pub(crate) fn read(self) -> (Tree, Findings) {
        let mut findings = self.findings;
        let mut tree = Tree::default();
        let mut total = 0_u64;
        for entry in self.entries {
            let limit = if entry.path == "entities.json" { ENTITIES_MAX_BYTES } else { FILE_MAX_BYTES };
            if entry.metadata.len() > limit {
                findings
                    .about(FindingCode::FileTooLarge, &entry.path, format!("the file is {} bytes long", entry.metadata.len()))
                    .hint(format!("at most {limit} bytes are allowed"));
                continue;
            }
            total = total.saturating_add(entry.metadata.len());
            if total > TREE_MAX_BYTES {
                findings.about(
                    FindingCode::TreeTooLarge,
                    "",
                    format!("the files are longer than {TREE_MAX_BYTES} bytes together"),
                );
                break;
            }
            match read_bounded(&entry.location, limit) {
                Ok(content) => {
                    tree.files.insert(entry.path, content);
                }
                Err(error) => {
                    findings.about(FindingCode::NotReadable, &entry.path, format!("the file cannot be read: {}", error.kind()));
                }
            }
        }
        tree.digest = Some(digest(&tree.files));
        (tree, findings)
    }
}

impl Tree {
    /// The text of a file, for findings to point into.
    pub(crate) fn text(&self, path: &str, findings: &mut Findings) -> Option<SourceText> {
        let content = self.files.get(path)?;
        if let Ok(text) = std::str::from_utf8(content) {
            return Some(SourceText { path: Arc::from(path), text: Arc::from(text) });
        }
        findings.about(FindingCode::NotUtf8, path, "the file is not UTF-8");
        None
    }
}

impl From<&io::Error> for NoTree {
    fn from(error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::NotFound { Self::Missing } else { Self::Unreadable }
    }
}

struct Walk {
    root: PathBuf,
    entries: Vec<Entry>,
    findings: Findings,
}

impl Walk {
    fn directory(&mut self, directory: &Path, prefix: &str, depth: usize) -> io::Result<()> {
        let mut children = fs::read_dir(directory)?.collect::<Result<Vec<_>, _>>()?;
        children.sort_by_key(fs::DirEntry::file_name);
        for child in children {
            let name = child.file_name();
            let Some(name) = name.to_str() else {
                let shown = name.to_string_lossy();
                self.findings.about(FindingCode::NotUtf8, &format!("{prefix}{shown}"), "the name is not UTF-8");
                continue;
            };
            if !name.starts_with('.') {
                self.entry(&child.path(), format!("{prefix}{name}"), depth);
            }
        }
        Ok(())
    }

    fn entry(&mut self, location: &Path, path: String, depth: usize) {
        if self.entries.len() >= TREE_MAX_FILES {
            self.findings.about(FindingCode::TreeTooLarge, "", format!("the tree has more than {TREE_MAX_FILES} files"));
            return;
        }
        let resolved = fs::canonicalize(location).and_then(|target| Ok((fs::metadata(&target)?, target)));
        let (metadata, target) = match resolved {
            Ok(resolved) => resolved,
            Err(error) => {
                self.findings.about(FindingCode::NotReadable, &path, format!("the entry cannot be read: {}", error.kind()));
                return;
            }
        };
        if !target.starts_with(&self.root) {
            self.findings
                .about(FindingCode::LinkLeavesTree, &path, "the link ends outside the bundle")
                .hint("copy the file into the bundle");
        } else if metadata.is_file() {
            self.entries.push(Entry { path, location: target, metadata });
        } else if !metadata.is_dir() {
            self.findings.about(FindingCode::NotAFile, &path, "the entry is neither a file nor a directory");
        } else if depth >= TREE_MAX_DEPTH {
            self.findings.about(
                FindingCode::TreeTooLarge,
                &path,
                format!("the directory is deeper than {TREE_MAX_DEPTH} levels"),
            );
        } else if let Err(error) = self.directory(&target, &format!("{path}/"), depth + 1) {
            self.findings.about(FindingCode::NotReadable, &path, format!("the directory cannot be read: {}", error.kind()));
        }
    }
}

fn read_bounded(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    // One byte more than allowed: a file that grew since it was listed is caught, not cut.
    fs::File::open(path)?.take(limit + 1).read_to_end(&mut content)?;
    if content.len() as u64 > limit { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(content) }
}

fn digest(files: &BTreeMap<String, Vec<u8>>) -> Digest {
    let head = std::iter::once(b"tollgate bundle v1".as_slice());
    Digest::of_parts(head.chain(files.iter().flat_map(|(path, content)| [path.as_bytes(), content.as_slice()])))
}

fn fingerprint(root: &Path, entries: &[Entry]) -> Digest {
    let facts: Vec<_> = entries
        .iter()
        .map(|Entry { path, metadata: m, .. }| {
            format!("{path}\0{}\0{}\0{}.{}\0{}.{}", m.ino(), m.len(), m.mtime(), m.mtime_nsec(), m.ctime(), m.ctime_nsec())
        })
        .collect();
    let head = std::iter::once(root.as_os_str().as_encoded_bytes());
    Digest::of_parts(head.chain(facts.iter().map(String::as_bytes)))
}

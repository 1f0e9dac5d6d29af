//! A bundle's directory, read whole into memory: from here on nothing touches the disk.

use std::{
    collections::BTreeMap,
    fs::{self, File, Metadata},
    io::{self, Read},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use rustix::fs::{Mode, OFlags, open};
use tollgate_domain::{Digest, Timestamp};

use crate::{
    codes::FindingCode,
    diagnostic::{Diagnostic, Findings, SourceText},
    limits::{ENTITIES_MAX_BYTES, FILE_MAX_BYTES, TREE_MAX_BYTES, TREE_MAX_DEPTH, TREE_MAX_FILES, TREE_MAX_NAMES},
};

/// The link that a Kubernetes volume swaps to replace all of its files at once.
const ATOMIC_LINK: &str = "..data";

/// Every file of a bundle, by its path relative to the root, with `/` between the parts.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    pub(crate) files: BTreeMap<String, Vec<u8>>,
    /// Of the files; where some could not be read, of the findings that say so, too.
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
    /// Changes whenever a name comes, goes or becomes something else, and with each file's size and times.
    pub(crate) fingerprint: Digest,
    /// Where `..data` points to, if it is there: then one swap replaces everything.
    pub(crate) atomic: bool,
    /// When anything in it changed last, by the file system's clock, which no writer can set back.
    pub(crate) changed_at: Timestamp,
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
        let atomic = inner.is_some();
        let root = inner.unwrap_or(outer);
        let mut walk = Walk::new(&root);
        let metadata = fs::metadata(&root).map_err(|error| NoTree::from(&error))?;
        walk.directory(&root, &metadata, "", 0).map_err(|error| NoTree::from(&error))?;
        if walk.entries.is_empty() && walk.findings.len() == 0 {
            return Err(NoTree::Empty);
        }
        let head = std::iter::once(root.as_os_str().as_encoded_bytes());
        let fingerprint = Digest::of_parts(head.chain(walk.seen.iter().map(String::as_bytes)));
        Ok(Self { entries: walk.entries, findings: walk.findings, fingerprint, atomic, changed_at: walk.changed_at })
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
            match read_bounded(&entry.location, limit) {
                Ok(content) => {
                    total = total.saturating_add(content.len() as u64);
                    if total > TREE_MAX_BYTES {
                        let message = format!("the files are longer than {TREE_MAX_BYTES} bytes together");
                        findings.about(FindingCode::TreeTooLarge, "", message);
                        break;
                    }
                    tree.files.insert(entry.path, content);
                }
                Err(error) => {
                    findings.about(FindingCode::NotReadable, &entry.path, format!("the file cannot be read: {}", error.kind()));
                }
            }
        }
        tree.digest = Some(digest(&tree.files, &findings));
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

/// One walk through a directory. Each name costs one of `names_left` and has at most one finding, so that
/// no tree, whatever links it has, makes a walk long.
struct Walk<'a> {
    root: &'a Path,
    entries: Vec<Entry>,
    findings: Findings,
    /// What became of each name, in the order of the walk.
    seen: Vec<String>,
    /// The path of each directory, by device and inode.
    directories: BTreeMap<(u64, u64), String>,
    changed_at: Timestamp,
    names_left: usize,
    stopped: bool,
}

impl<'a> Walk<'a> {
    fn new(root: &'a Path) -> Self {
        Self {
            root,
            entries: Vec::new(),
            findings: Findings::default(),
            seen: Vec::new(),
            directories: BTreeMap::new(),
            changed_at: Timestamp::default(),
            names_left: TREE_MAX_NAMES,
            stopped: false,
        }
    }

    fn directory(&mut self, directory: &Path, metadata: &Metadata, path: &str, depth: usize) -> io::Result<()> {
        let mut children = Vec::new();
        for child in fs::read_dir(directory)? {
            let Some(left) = self.names_left.checked_sub(1) else {
                self.stop(format!("the tree has more than {TREE_MAX_NAMES} names"));
                return Ok(());
            };
            self.names_left = left;
            children.push(child?);
        }
        children.sort_by_key(fs::DirEntry::file_name);
        self.seen.push(format!("{path}/"));
        self.note_change(metadata);
        self.directories.insert((metadata.dev(), metadata.ino()), path.to_owned());
        let prefix = if path.is_empty() { String::new() } else { format!("{path}/") };
        for child in children {
            if self.stopped {
                break;
            }
            let name = child.file_name();
            let Some(name) = name.to_str().filter(|name| !name.contains(char::is_control)) else {
                let shown = name.to_string_lossy();
                let message = "the name is not UTF-8, or has a control character".to_owned();
                self.refuse(FindingCode::NotUtf8, &format!("{prefix}{shown}"), message);
                continue;
            };
            if !name.starts_with('.') {
                self.entry(&child.path(), format!("{prefix}{name}"), depth);
            }
        }
        Ok(())
    }

    fn entry(&mut self, location: &Path, path: String, depth: usize) {
        let resolved = fs::canonicalize(location).and_then(|target| Ok((fs::metadata(&target)?, target)));
        let (metadata, target) = match resolved {
            Ok(resolved) => resolved,
            Err(error) => {
                self.refuse(FindingCode::NotReadable, &path, format!("the entry cannot be read: {}", error.kind()));
                return;
            }
        };
        if !target.starts_with(self.root) {
            self.refuse(FindingCode::LinkLeavesTree, &path, "the link ends outside the bundle".to_owned())
                .hint("copy the file into the bundle");
        } else if metadata.is_file() {
            self.file(path, target, metadata);
        } else if !metadata.is_dir() {
            self.refuse(FindingCode::NotAFile, &path, "the entry is neither a file nor a directory".to_owned());
        } else if let Some(first) = self.directories.get(&(metadata.dev(), metadata.ino())) {
            let first = if first.is_empty() { "its root".to_owned() } else { format!("`{first}`") };
            self.refuse(FindingCode::DirectoryTwice, &path, format!("the directory is in the bundle already, as {first}"))
                .hint("remove the link, or copy the directory");
        } else if depth >= TREE_MAX_DEPTH {
            let message = format!("the directory is deeper than {TREE_MAX_DEPTH} levels");
            self.refuse(FindingCode::TreeTooLarge, &path, message);
        } else if let Err(error) = self.directory(&target, &metadata, &path, depth + 1) {
            self.refuse(FindingCode::NotReadable, &path, format!("the directory cannot be read: {}", error.kind()));
        }
    }

    fn file(&mut self, path: String, location: PathBuf, metadata: Metadata) {
        if self.entries.len() >= TREE_MAX_FILES {
            self.stop(format!("the tree has more than {TREE_MAX_FILES} files"));
            return;
        }
        let m = &metadata;
        let times = format!("{}.{}\0{}.{}", m.mtime(), m.mtime_nsec(), m.ctime(), m.ctime_nsec());
        self.seen.push(format!("{path}\0{}\0{}\0{times}", m.ino(), m.len()));
        self.note_change(&metadata);
        self.entries.push(Entry { path, location, metadata });
    }

    fn note_change(&mut self, metadata: &Metadata) {
        let micros = metadata.ctime().saturating_mul(1_000_000).saturating_add(metadata.ctime_nsec() / 1_000);
        self.changed_at = self.changed_at.max(Timestamp::from_micros(micros));
    }

    fn refuse(&mut self, code: FindingCode, path: &str, message: String) -> &mut Diagnostic {
        self.seen.push(format!("{path}\0{code}\0{message}"));
        self.findings.about(code, path, message)
    }

    /// Ends the walk: what is said once about a tree that is too large is enough.
    fn stop(&mut self, message: String) {
        self.stopped = true;
        self.refuse(FindingCode::TreeTooLarge, "", message);
    }
}

/// Reads a file that may have become anything since it was listed: a pipe must not block, a link not lead
/// elsewhere.
fn read_bounded(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = File::from(open(path, flags, Mode::empty())?);
    if !file.metadata()?.is_file() {
        return Err(io::ErrorKind::ResourceBusy.into());
    }
    let mut content = Vec::new();
    // One byte more than allowed: a file that grew since it was listed is caught, not cut.
    file.take(limit + 1).read_to_end(&mut content)?;
    if content.len() as u64 > limit { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(content) }
}

fn digest(files: &BTreeMap<String, Vec<u8>>, findings: &Findings) -> Digest {
    let told: Vec<_> = findings.told().collect();
    let head = std::iter::once(b"tollgate bundle v1".as_slice());
    let files = files.iter().flat_map(|(path, content)| [path.as_bytes(), content.as_slice()]);
    Digest::of_parts(head.chain(files).chain(told.iter().map(String::as_bytes)))
}

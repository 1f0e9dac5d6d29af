//! Hearing of changes: the operating system's notices, which may be late, repeated or missing.
//!
//! A notice only means "look again". Where none can be had, polling alone finds every change.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use notify::{
    Config, EventKind, RecommendedWatcher, RecursiveMode, Watcher,
    event::{AccessKind, AccessMode},
};
use tokio::sync::Notify;

/// A watch on one directory and on the name that leads to it.
pub(super) struct Watch {
    /// Kept for its effect.
    _watcher: RecommendedWatcher,
    identity: Option<(u64, u64)>,
}

impl Watch {
    /// The watch, or a new one where the path has come to mean another directory.
    pub(super) fn renewed(watch: Option<Self>, root: &Path, heard: &Arc<Notify>) -> Option<Self> {
        let identity = fs::metadata(root).ok().map(|metadata| (metadata.dev(), metadata.ino()));
        match watch {
            Some(watch) if watch.identity == identity => Some(watch),
            _ => Self::new(root, identity, heard),
        }
    }

    fn new(root: &Path, identity: Option<(u64, u64)>, heard: &Arc<Notify>) -> Option<Self> {
        let parent = root.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let parent = fs::canonicalize(parent).ok();
        let named = parent.as_ref().zip(root.file_name()).map(|(parent, name)| parent.join(name));
        let actual = fs::canonicalize(root).ok();
        let within: Vec<PathBuf> = named.into_iter().chain(actual.clone()).collect();
        let heard = Arc::clone(heard);
        let notice = move |event: notify::Result<notify::Event>| {
            let news = event.map_or(true, |event| {
                let here =
                    event.paths.is_empty() || event.paths.iter().any(|path| within.iter().any(|root| path.starts_with(root)));
                here && changes(event.kind)
            });
            if news {
                heard.notify_one();
            }
        };
        // Links lead to what is watched already, or out of the bundle; followed, they could lead on without end.
        let mut watcher = RecommendedWatcher::new(notice, Config::default().with_follow_symlinks(false)).ok()?;
        let mut any = false;
        // The parent hears of the directory being made, moved or swapped by a link.
        for (path, mode) in parent
            .iter()
            .map(|path| (path, RecursiveMode::NonRecursive))
            .chain(actual.iter().map(|path| (path, RecursiveMode::Recursive)))
        {
            any |= watcher.watch(path, mode).is_ok();
        }
        if !any {
            tracing::warn!("the bundle's directory cannot be watched; changes are found by polling");
        }
        Some(Self { _watcher: watcher, identity })
    }
}

/// Reading the directory is heard of, too; were it news, every look would cause the next.
fn changes(kind: EventKind) -> bool {
    match kind {
        EventKind::Access(access) => access == AccessKind::Close(AccessMode::Write),
        EventKind::Any | EventKind::Create(_) | EventKind::Modify(_) | EventKind::Remove(_) | EventKind::Other => true,
    }
}

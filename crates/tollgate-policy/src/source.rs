//! Bundles from a directory: offered whole, once per content, and only when nobody is still writing them.

mod watch;

use std::{fmt, path::PathBuf, pin::Pin, sync::Arc, time::Duration};

use async_trait::async_trait;
use tokio::{
    sync::Notify,
    task::{JoinHandle, spawn_blocking},
    time::{Sleep, sleep},
};
use tollgate_domain::{BundleSource, Candidate, Clock, Digest, Refused, Revision, Timestamp};

use crate::{
    codes::FindingCode,
    compile::{self, Compiled, Kind},
    diagnostic::{Findings, Report},
    limits::{MANIFEST_PATIENCE, POLL_DEFAULT, RESTED_TIMES, SETTLE_DEFAULT},
    manifest::{self, Completeness},
    tree::{Listing, NoTree, Tree},
};
use watch::Watch;

/// When a directory counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirectoryOptions {
    /// How long a tree without a manifest must stay unchanged.
    pub settle: Duration,
    /// How often the directory is looked at even when nothing was heard of it.
    pub poll: Duration,
}

impl Default for DirectoryOptions {
    fn default() -> Self {
        Self { settle: SETTLE_DEFAULT, poll: POLL_DEFAULT }
    }
}

/// A directory that is watched. All of its file access happens on blocking threads.
pub struct DirectorySource {
    root: PathBuf,
    options: DirectoryOptions,
    clock: Arc<dyn Clock>,
    watch: Option<Watch>,
    heard: Arc<Notify>,
    offered: Option<Sight>,
    settling: Option<Settling>,
    /// Outlives a call of `next` that is dropped, so that no candidate is lost.
    compiling: Option<JoinHandle<Candidate>>,
}

/// What was seen of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sight {
    Nothing(NoTree),
    /// There is no fingerprint of a tree that was not read whole: it is read again at every look, for what kept
    /// a file from being read need not show in the listing.
    Tree {
        fingerprint: Option<Digest>,
        digest: Option<Digest>,
    },
}

struct Settling {
    sight: Sight,
    until: Pin<Box<Sleep>>,
}

/// One look at the directory.
enum Look {
    Nothing(NoTree),
    /// The listing is one that was seen before, and its content is not due to be read.
    Same,
    Tree(Box<Seen>),
}

struct Seen {
    tree: Tree,
    findings: Findings,
    sight: Sight,
    completeness: Completeness,
    /// One swap replaced everything, and nothing moved while it was read.
    atomic: bool,
    /// When anything in it changed last; absent where something moved while it was read.
    changed_at: Option<Timestamp>,
}

impl DirectorySource {
    /// A source for a directory, which need not be there yet.
    #[must_use]
    pub fn new(root: PathBuf, options: DirectoryOptions, clock: Arc<dyn Clock>) -> Self {
        Self { root, options, clock, watch: None, heard: Arc::default(), offered: None, settling: None, compiling: None }
    }

    async fn look(&mut self) -> Look {
        let due = self.settling.as_ref().is_some_and(|settling| settling.until.is_elapsed());
        let known = if due { None } else { self.settling.as_ref().map(|settling| settling.sight).or(self.offered) };
        let (root, heard, watch) = (self.root.clone(), Arc::clone(&self.heard), self.watch.take());
        let looked = spawn_blocking(move || {
            // Watched before it is listed: what changes in between is heard.
            let watch = Watch::renewed(watch, &root, &heard);
            (look(&root, known), watch)
        });
        match looked.await {
            Ok((look, watch)) => {
                self.watch = watch;
                look
            }
            Err(_) => Look::Nothing(NoTree::Unreadable),
        }
    }

    /// What a look comes to: a tree to compile, a refusal, or nothing yet.
    fn consider(&mut self, look: Look) -> Option<Found> {
        match look {
            Look::Same => None,
            Look::Nothing(no_tree) => {
                let sight = Sight::Nothing(no_tree);
                (self.is_news(sight) && self.has_settled(sight, 1)).then(|| {
                    self.take(sight);
                    Found::Nothing(no_tree)
                })
            }
            Look::Tree(seen) => {
                let counts = self.is_news(seen.sight)
                    && match seen.completeness {
                        Completeness::Complete => true,
                        Completeness::Unknown => seen.atomic || self.has_rested(&seen) || self.has_settled(seen.sight, 1),
                        Completeness::Incomplete => self.has_settled(seen.sight, MANIFEST_PATIENCE),
                    };
                counts.then(|| {
                    self.take(seen.sight);
                    Found::Tree(seen)
                })
            }
        }
    }

    /// Whether this was not offered already; the same content under another listing is no news.
    fn is_news(&mut self, sight: Sight) -> bool {
        let same = match (self.offered, sight) {
            (Some(Sight::Tree { digest: old, .. }), Sight::Tree { digest: new, .. }) => old == new,
            (old, new) => old == Some(new),
        };
        if same {
            self.take(sight);
        }
        !same
    }

    fn take(&mut self, sight: Sight) {
        self.offered = Some(sight);
        self.settling = None;
    }

    /// Whether the first tree that is seen has been left alone for long, so that a sidecar need not wait at
    /// its start. Much longer than `settle`, since the clock of a file system may differ from this machine's.
    fn has_rested(&self, seen: &Seen) -> bool {
        let long = u64::try_from((self.options.settle * RESTED_TIMES).as_micros()).unwrap_or(u64::MAX);
        let now = self.clock.now();
        self.offered.is_none() && seen.changed_at.is_some_and(|changed_at| now.micros_since(changed_at) > long)
    }

    /// Whether this very sight has lasted; begins to wait for it where it is a new one.
    fn has_settled(&mut self, sight: Sight, times: u32) -> bool {
        if let Some(settling) = self.settling.as_ref().filter(|settling| settling.sight == sight) {
            return settling.until.is_elapsed();
        }
        self.settling = Some(Settling { sight, until: Box::pin(sleep(self.options.settle * times)) });
        false
    }

    async fn wait(&mut self) {
        let Self { heard, settling, options, .. } = self;
        let settled = async {
            match settling {
                Some(settling) if !settling.until.is_elapsed() => settling.until.as_mut().await,
                _ => std::future::pending().await,
            }
        };
        tokio::select! {
            () = heard.notified() => {}
            () = settled => {}
            () = sleep(options.poll) => {}
        }
    }
}

#[async_trait]
impl BundleSource for DirectorySource {
    async fn next(&mut self) -> Candidate {
        loop {
            if let Some(compiling) = &mut self.compiling {
                let candidate = compiling.await;
                self.compiling = None;
                return candidate.unwrap_or_else(|_| Err(refused_nothing(NoTree::Unreadable)));
            }
            let look = self.look().await;
            match self.consider(look) {
                Some(Found::Tree(seen)) => self.compiling = Some(spawn_blocking(move || candidate(*seen))),
                Some(Found::Nothing(no_tree)) => return Err(refused_nothing(no_tree)),
                None => self.wait().await,
            }
        }
    }
}

impl fmt::Debug for DirectorySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DirectorySource").field("root", &self.root).field("options", &self.options).finish_non_exhaustive()
    }
}

enum Found {
    Tree(Box<Seen>),
    Nothing(NoTree),
}

fn look(root: &std::path::Path, known: Option<Sight>) -> Look {
    let listing = match Listing::of(root) {
        Ok(listing) => listing,
        Err(no_tree) => return Look::Nothing(no_tree),
    };
    let (fingerprint, atomic, changed_at) = (listing.fingerprint, listing.atomic, listing.changed_at);
    if matches!(known, Some(Sight::Tree { fingerprint: Some(known), .. }) if known == fingerprint) {
        return Look::Same;
    }
    let (tree, findings) = listing.read();
    let steady = Listing::of(root).is_ok_and(|again| again.fingerprint == fingerprint);
    let whole = findings.len() == 0;
    let sight = Sight::Tree { fingerprint: whole.then_some(fingerprint), digest: tree.digest };
    // A manifest speaks for content that was read whole, whatever moved meanwhile; a swap only for what stood still.
    let completeness = if whole { compile::completeness(&tree) } else { Completeness::Unknown };
    let changed_at = steady.then_some(changed_at);
    Look::Tree(Box::new(Seen { tree, findings, sight, completeness, atomic: atomic && steady, changed_at }))
}

fn candidate(seen: Seen) -> Candidate {
    let Seen { tree, mut findings, completeness, .. } = seen;
    let digest = tree.digest;
    if completeness == Completeness::Incomplete {
        manifest::check(&tree, &mut findings);
        return Err(refused("bundle_incomplete", digest, &findings.into_report(None, crate::Summary::default())));
    }
    let Compiled { bundle, report } = compile::compile(tree, findings, Kind::Managed);
    bundle.ok_or_else(|| refused("bundle_invalid", digest, &report))
}

fn refused_nothing(no_tree: NoTree) -> Refused {
    refused(no_tree.as_str(), None, &no_tree.report())
}

fn refused(code: &'static str, digest: Option<Digest>, report: &Report) -> Refused {
    for finding in &report.findings {
        let (file, line, column) = (&finding.file, finding.span.line, finding.span.column);
        let hint = finding.hint.as_deref().unwrap_or_default();
        tracing::error!(code = %finding.code, file, line, column, hint, "bundle refused: {}", finding.message);
    }
    debug_assert!(report.findings.iter().all(|finding| FindingCode::ALL.contains(&finding.code)));
    #[expect(clippy::expect_used, reason = "a digest's text and the constants of this module are valid revisions")]
    let revision =
        Revision::parse(&digest.map_or_else(|| code.to_owned(), |digest| digest.to_string())).expect("a valid revision");
    Refused { bundle: report.bundle.clone(), revision, code: compile::refusal(code), findings: report.kept() }
}

//! When a directory counts, what is offered of it, and what is not.

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    fs,
    os::unix::{
        ffi::OsStrExt,
        fs::{MetadataExt, symlink},
        net::UnixListener,
    },
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use rustix::fs::{CWD, Mode, mkfifoat};
use sha2::{Digest as _, Sha256};
use tokio::time::timeout;
use tollgate_domain::{BundleSource, Candidate, Clock, Monotonic, Timestamp};
use tollgate_policy::{DirectoryOptions, DirectorySource};

use crate::harness::{directory, files, with, write};

/// Long enough for any machine; nothing waits so long unless the test fails.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long a source that must stay silent is listened to.
const SILENCE: Duration = Duration::from_millis(400);

/// A clock that stands.
#[derive(Debug)]
struct Stopped(Timestamp);

impl Clock for Stopped {
    fn now(&self) -> Timestamp {
        self.0
    }

    fn monotonic(&self) -> Monotonic {
        Monotonic::default()
    }
}

/// A time before any file was written: nothing has rested.
const LONG_AGO: Timestamp = Timestamp::from_micros(0);

fn source(root: &Path, settle: u64) -> DirectorySource {
    let settle = Duration::from_millis(settle);
    with_options(root, DirectoryOptions { settle, poll: Duration::from_millis(100) })
}

fn with_options(root: &Path, options: DirectoryOptions) -> DirectorySource {
    DirectorySource::new(root.to_owned(), options, Arc::new(Stopped(LONG_AGO)))
}

async fn next(source: &mut DirectorySource) -> Candidate {
    timeout(PATIENCE, source.next()).await.unwrap()
}

/// The name that the next bundle has, or the code of its refusal.
async fn offered(source: &mut DirectorySource) -> String {
    match next(source).await {
        Ok(bundle) => bundle.name.to_string(),
        Err(refused) => refused.code.to_string(),
    }
}

async fn silent(source: &mut DirectorySource) -> bool {
    timeout(SILENCE, source.next()).await.is_err()
}

fn named(name: &str) -> String {
    format!("format: tollgate/v1\nname: {name}\n")
}

fn manifest(files: &std::collections::BTreeMap<String, String>) -> String {
    let lines = files.iter().map(|(path, text)| format!("{}  ./{path}\n", hex::encode(Sha256::digest(text))));
    lines.collect::<Vec<_>>().concat()
}

/// A volume as the kubelet writes it: a directory per version, and one link that is swapped.
fn swap(volume: &Path, version: &str, files: &std::collections::BTreeMap<String, String>) {
    let inner = format!("..{version}");
    write(&volume.join(&inner), files);
    symlink(&inner, volume.join("..data_tmp")).unwrap();
    fs::rename(volume.join("..data_tmp"), volume.join("..data")).unwrap();
    for name in files.keys().filter_map(|path| path.split('/').next()) {
        if fs::symlink_metadata(volume.join(name)).is_err() {
            symlink(format!("..data/{name}"), volume.join(name)).unwrap();
        }
    }
}

#[tokio::test]
async fn what_is_there_is_offered_first_and_then_each_change_once() {
    let directory = directory(&files());
    let mut source = source(directory.path(), 50);
    assert_eq!(offered(&mut source).await, "test");
    assert!(silent(&mut source).await, "the same content is not offered twice");
    fs::write(directory.path().join("bundle.yaml"), named("changed")).unwrap();
    assert_eq!(offered(&mut source).await, "changed");
    // Written again with the same content: another listing, no news.
    fs::write(directory.path().join("bundle.yaml"), named("changed")).unwrap();
    assert!(silent(&mut source).await);
}

#[tokio::test]
async fn p02_a_refusal_names_bundle_revision_code_and_places() {
    let directory = directory(&with(&[("bundle.yaml", "format: tollgate/v1\nname: test\nextra: 1\n")]));
    let mut source = source(directory.path(), 50);
    let refused = next(&mut source).await.unwrap_err();
    assert_eq!(refused.code.as_str(), "bundle_invalid");
    assert_eq!(refused.bundle.unwrap().as_str(), "test");
    assert_eq!(refused.revision.as_str().len(), 64);
    let [finding] = refused.findings.as_slice() else { panic!("{:?}", refused.findings) };
    assert_eq!((finding.code.as_str(), finding.path.as_str(), finding.line), ("TG0202", "bundle.yaml", 3));
    assert!(silent(&mut source).await, "a refusal is offered once");
    write(directory.path(), &files());
    assert_eq!(offered(&mut source).await, "test");
}

#[tokio::test]
async fn a_directory_that_is_missing_empty_or_gone_is_refused_with_its_own_code() {
    let parent = tempfile::tempdir().unwrap();
    let root = parent.path().join("bundle");
    let mut source = source(&root, 50);
    assert_eq!(offered(&mut source).await, "source_missing");
    assert!(silent(&mut source).await);
    fs::create_dir(&root).unwrap();
    assert_eq!(offered(&mut source).await, "source_empty");
    write(&root, &files());
    assert_eq!(offered(&mut source).await, "test");
    fs::remove_dir_all(&root).unwrap();
    assert_eq!(offered(&mut source).await, "source_missing");
    fs::write(&root, "a file").unwrap();
    assert_eq!(offered(&mut source).await, "source_unreadable");
}

#[tokio::test]
async fn a_tree_that_is_still_being_written_does_not_count() {
    let directory = directory(&files());
    let mut source = source(directory.path(), 1_500);
    for step in 0..8 {
        fs::write(directory.path().join("bundle.yaml"), named(&format!("step-{step}"))).unwrap();
        assert!(timeout(Duration::from_millis(100), source.next()).await.is_err(), "nothing counts before it has settled");
    }
    assert_eq!(offered(&mut source).await, "step-7");
}

#[tokio::test]
async fn a_swap_of_a_config_map_counts_at_once_and_is_read_whole() {
    let volume = tempfile::tempdir().unwrap();
    swap(volume.path(), "v1", &files());
    // So long that only the swap itself can explain an answer.
    let mut source = source(volume.path(), 3_600_000);
    assert_eq!(offered(&mut source).await, "test");
    swap(volume.path(), "v2", &with(&[("bundle.yaml", &named("second"))]));
    fs::remove_dir_all(volume.path().join("..v1")).unwrap();
    assert_eq!(offered(&mut source).await, "second");
    assert!(silent(&mut source).await);
    // A swap back is a change like any other; the same content again is none.
    swap(volume.path(), "v3", &files());
    assert_eq!(offered(&mut source).await, "test");
    swap(volume.path(), "v4", &files());
    assert!(silent(&mut source).await);
}

#[tokio::test]
async fn a_tree_that_agrees_with_its_manifest_counts_at_once() {
    let mut files = files();
    files.insert("manifest.sha256".to_owned(), manifest(&files));
    let directory = directory(&files);
    assert_eq!(offered(&mut source(directory.path(), 3_600_000)).await, "test");
}

#[tokio::test]
async fn a_half_copied_tree_waits_for_the_rest() {
    let mut whole = files();
    whole.insert("manifest.sha256".to_owned(), manifest(&whole));
    let mut half = whole.clone();
    let late = half.remove("hooks/main/main.cedar").unwrap();
    let directory = directory(&half);
    let mut source = source(directory.path(), 1_000);
    assert!(silent(&mut source).await);
    fs::write(directory.path().join("hooks/main/main.cedar"), late.get(..10).unwrap()).unwrap();
    assert!(silent(&mut source).await);
    fs::write(directory.path().join("hooks/main/main.cedar"), &late).unwrap();
    assert_eq!(offered(&mut source).await, "test");
}

#[tokio::test]
async fn a_tree_that_never_agrees_with_its_manifest_is_refused_as_incomplete() {
    let mut files = files();
    files.insert("manifest.sha256".to_owned(), manifest(&files));
    files.remove("tools.yaml");
    let directory = directory(&files);
    let refused = next(&mut source(directory.path(), 20)).await.unwrap_err();
    assert_eq!(refused.code.as_str(), "bundle_incomplete");
    assert_eq!(refused.findings[0].code, "TG0109");
}

#[tokio::test]
async fn a_candidate_survives_a_call_that_is_dropped() {
    let directory = directory(&files());
    let mut source = source(directory.path(), 30);
    let mut drops = 0;
    let candidate = loop {
        match timeout(Duration::from_millis(3), source.next()).await {
            Ok(candidate) => break candidate,
            Err(_) => drops += 1,
        }
        assert!(drops < 10_000, "the candidate was lost");
    };
    assert_eq!(candidate.unwrap().name.as_str(), "test");
    assert!(drops > 0);
}

#[tokio::test]
async fn a_link_to_the_directory_may_be_swapped() {
    let (one, two) = (directory(&files()), directory(&with(&[("bundle.yaml", &named("second"))])));
    let parent = tempfile::tempdir().unwrap();
    let link = parent.path().join("current");
    symlink(one.path(), &link).unwrap();
    let mut source = source(&link, 50);
    assert_eq!(offered(&mut source).await, "test");
    symlink(two.path(), parent.path().join("next")).unwrap();
    fs::rename(parent.path().join("next"), &link).unwrap();
    assert_eq!(offered(&mut source).await, "second");
    fs::write(two.path().join("bundle.yaml"), named("third")).unwrap();
    assert_eq!(offered(&mut source).await, "third");
}

#[tokio::test]
async fn changes_are_heard_and_not_only_found_by_polling() {
    let directory = directory(&files());
    let options = DirectoryOptions { settle: Duration::from_millis(50), poll: Duration::from_hours(1) };
    let mut source = with_options(directory.path(), options);
    assert_eq!(offered(&mut source).await, "test");
    fs::write(directory.path().join("bundle.yaml"), named("written")).unwrap();
    assert_eq!(offered(&mut source).await, "written");
    fs::create_dir_all(directory.path().join("hooks/more")).unwrap();
    fs::write(directory.path().join("hooks/more/x.cedar"), "@id(\"x\") permit (principal, action, resource);").unwrap();
    assert_eq!(offered(&mut source).await, "bundle_invalid");
    fs::remove_dir_all(directory.path()).unwrap();
    assert_eq!(offered(&mut source).await, "source_missing");
}

/// The file system's clock says when a tree last changed: one that was left alone for twenty times `settle`
/// has settled already when a sidecar starts, and its successors settle as always.
#[tokio::test]
async fn only_the_tree_of_the_start_counts_at_once_if_it_was_left_alone_for_long() {
    let directory = directory(&files());
    let settle = Duration::from_mins(1);
    let changed = fs::metadata(directory.path().join("bundle.yaml")).unwrap();
    let changed_at = Timestamp::from_micros(changed.ctime() * 1_000_000);
    let at = |later: Duration| {
        let options = DirectoryOptions { settle, poll: Duration::from_millis(50) };
        let now = changed_at.plus_micros(u64::try_from(later.as_micros()).unwrap());
        DirectorySource::new(directory.path().to_owned(), options, Arc::new(Stopped(now)))
    };
    assert!(silent(&mut at(settle * 19)).await, "nineteen times `settle` after the last change");
    let mut source = at(settle * 21);
    assert_eq!(offered(&mut source).await, "test");
    fs::write(directory.path().join("bundle.yaml"), named("written")).unwrap();
    assert!(silent(&mut source).await, "a tree that was seen to change");
    assert_eq!(offered(&mut at(settle * 22)).await, "written");
}

fn fifo(path: &Path) {
    mkfifoat(CWD, path, Mode::RWXU).unwrap();
}

type Stray = fn(&Path);

/// What a tree must not have, each put in as `hooks/main/stray`.
const STRAYS: [(&str, Stray); 8] = [
    ("broken link", |root| symlink("nowhere", root.join("hooks/main/stray")).unwrap()),
    ("pipe", |root| fifo(&root.join("hooks/main/stray"))),
    ("socket", |root| drop(UnixListener::bind(root.join("hooks/main/stray")).unwrap())),
    ("link that leaves the tree", |root| symlink("/etc/hostname", root.join("hooks/main/stray")).unwrap()),
    ("link to a directory outside", |root| symlink("/etc", root.join("hooks/main/stray")).unwrap()),
    ("link that leads back", |root| symlink("..", root.join("hooks/main/stray")).unwrap()),
    ("link to itself", |root| symlink("stray", root.join("hooks/main/stray")).unwrap()),
    ("file that is too large", |root| {
        let file = fs::File::create(root.join("hooks/main/stray")).unwrap();
        file.set_len(tollgate_policy::limits::FILE_MAX_BYTES + 1).unwrap();
    }),
];

#[tokio::test]
async fn p02_whatever_breaks_a_live_tree_is_refused_and_its_repair_is_offered() {
    let directory = directory(&files());
    let root = directory.path();
    let mut source = source(root, 20);
    let live = next(&mut source).await.unwrap().revision;
    for (what, stray) in STRAYS {
        stray(root);
        let refused = next(&mut source).await.expect_err(what);
        assert_eq!(refused.code.as_str(), "bundle_invalid", "{what}");
        assert_ne!(refused.revision, live, "{what}: not the revision of the bundle that is live");
        fs::remove_file(root.join("hooks/main/stray")).unwrap();
        assert_eq!(next(&mut source).await.unwrap().revision, live, "{what}");
    }
    let name = root.join(OsStr::from_bytes(b"hooks/main/\xff.md"));
    fs::write(&name, "").unwrap();
    assert_eq!(offered(&mut source).await, "bundle_invalid");
    // Another fault in the place of the first is news; the same one is not.
    symlink("nowhere", root.join("hooks/main/stray")).unwrap();
    assert_eq!(offered(&mut source).await, "bundle_invalid");
    fs::remove_file(name).unwrap();
    assert_eq!(offered(&mut source).await, "bundle_invalid");
    assert!(silent(&mut source).await);
    fs::remove_file(root.join("hooks/main/stray")).unwrap();
    assert_eq!(offered(&mut source).await, "test");
}

#[tokio::test]
async fn a_tree_that_is_broken_from_the_start_is_offered_once_it_is_repaired() {
    for (what, stray) in STRAYS {
        let directory = directory(&files());
        stray(directory.path());
        let mut source = source(directory.path(), 20);
        assert_eq!(offered(&mut source).await, "bundle_invalid", "{what}");
        fs::remove_file(directory.path().join("hooks/main/stray")).unwrap();
        assert_eq!(offered(&mut source).await, "test", "{what}");
    }
}

#[tokio::test]
async fn names_that_are_no_part_of_the_bundle_do_not_keep_it_from_settling() {
    let directory = directory(&files());
    let mut source = source(directory.path(), 300);
    let mut writes = 0;
    let candidate = loop {
        match timeout(Duration::from_millis(20), source.next()).await {
            Ok(candidate) => break candidate,
            Err(_) => fs::write(directory.path().join(format!("hooks/main/.swap-{writes}")), "").unwrap(),
        }
        writes += 1;
        assert!(writes < 1_000, "the tree never settled");
    };
    assert_eq!(candidate.unwrap().name.as_str(), "test");
}

#[test]
fn a_pipe_in_the_place_of_a_file_never_blocks_a_look() {
    // No bundle, so that looks are short and many.
    let directory = directory(&[("README.md".to_owned(), String::new())].into());
    let (root, readme) = (directory.path(), directory.path().join("README.md"));
    let stop = AtomicBool::new(false);
    let refused: Vec<_> = std::thread::scope(|scope| {
        scope.spawn(|| {
            // A file and a pipe by turns under one name: some look lists the one and reads the other.
            while !stop.load(Ordering::Relaxed) {
                fs::write(root.join(".file"), "text").unwrap();
                fs::rename(root.join(".file"), &readme).unwrap();
                fifo(&root.join(".pipe"));
                fs::rename(root.join(".pipe"), &readme).unwrap();
            }
        });
        let looks = (0..5_000).flat_map(|_| tollgate_policy::check(root).findings).collect();
        stop.store(true, Ordering::Relaxed);
        looks
    });
    let codes: BTreeSet<_> = refused.iter().filter(|found| found.file == "README.md").map(|found| found.code.as_str()).collect();
    assert!(codes.is_subset(&["TG0101", "TG0104"].into()), "{codes:?}");
}

#[tokio::test]
async fn links_that_fan_out_do_not_keep_the_source_from_answering() {
    let directory = directory(&files());
    let root = directory.path();
    // Ten million ways from the first level to the last, none of which leads back.
    for level in 0..8 {
        let from = root.join(format!(".levels/{level}"));
        fs::create_dir_all(&from).unwrap();
        for link in 0..10 {
            symlink(format!("../{}", level + 1), from.join(format!("{link}"))).unwrap();
        }
    }
    symlink(".levels/0", root.join("tests")).unwrap();
    let mut source = source(root, 20);
    assert_eq!(offered(&mut source).await, "bundle_invalid");
    fs::remove_file(root.join("tests")).unwrap();
    assert_eq!(offered(&mut source).await, "test");
}

//! What a SQLite journal demands of its files, and what it bears of them.

use std::{
    fs,
    io::{Seek, SeekFrom, Write},
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::Path,
    time::Duration,
};

use tollgate_domain::{AppendError, Decision, Reader, Store, StoreHealth, Unavailable, UnavailableCause};
use tollgate_journal::{OpenError, Recovery, SqliteJournal, SqliteReader};

use crate::support::*;

/// A journal of `count` denied calls in one run, closed.
async fn closed_journal(path: &Path, count: usize) {
    let journal = open(path).await.unwrap();
    fill(&journal, count).await;
    journal.close().await;
}

async fn fill(journal: &SqliteJournal, count: usize) {
    for n in 0..count {
        let key = of(&format!("call-{n}"), &format!("invocation-{n}"), "mail.send");
        journal.append(judged(&run("run"), &key, Decision::Deny)).await.unwrap();
    }
}

fn sql(path: &Path, statement: &'static str) -> Result<(), String> {
    let connection = rusqlite::Connection::open(path).unwrap();
    connection.execute_batch(statement).map_err(|error| error.to_string())
}

#[tokio::test]
async fn p09_new_clean_and_cut_off_journals_are_told_apart() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("deep/er/journal.db");
    let journal = open(&path).await.unwrap();
    assert_eq!(journal.recovery(), Recovery::Created);
    fill(&journal, 3).await;
    // What a process that was cut off leaves behind.
    let copy = directory.path().join("copy.db");
    for suffix in ["", "-wal"] {
        fs::copy(format!("{}{suffix}", path.display()), format!("{}{suffix}", copy.display())).unwrap();
    }
    journal.close().await;
    let journal = open(&path).await.unwrap();
    assert_eq!(journal.recovery(), Recovery::Clean);
    journal.close().await;

    let journal = open(&copy).await.unwrap();
    assert!(matches!(journal.recovery(), Recovery::Recovered { pages } if pages > 0), "{:?}", journal.recovery());
    assert_eq!(facts_of(&journal, &run("run")).await.len(), 9);
    journal.close().await;
}

/// As a kill leaves it while SQLite turns on the write-ahead log: the page that says so, and a rollback journal that holds
/// what it said before.
#[tokio::test]
async fn p08_a_first_start_that_was_cut_off_before_there_was_a_log_is_made_again() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("journal.db");
    sql(&path, "PRAGMA user_version = 1; PRAGMA user_version = 0").unwrap();
    let before = fs::read(&path).unwrap();
    fs::write(path.with_file_name("journal.db-journal"), rollback_journal(&before)).unwrap();
    let journal = open(&path).await.unwrap();
    fill(&journal, 1).await;
    journal.close().await;
}

/// A rollback journal of one page, after <https://www.sqlite.org/fileformat.html#the_rollback_journal>.
fn rollback_journal(page: &[u8]) -> Vec<u8> {
    const SECTOR: usize = 512;
    let size = u32::try_from(page.len()).unwrap();
    let numbers = |numbers: &[u32]| numbers.iter().flat_map(|number| number.to_be_bytes()).collect::<Vec<_>>();
    let mut journal = b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7".to_vec();
    // One record, a nonce of 0, a database of one page.
    journal.extend(numbers(&[1, 0, 1, u32::try_from(SECTOR).unwrap(), size]));
    journal.resize(SECTOR, 0);
    journal.extend(numbers(&[1]));
    journal.extend_from_slice(page);
    let checked = (1..).map(|step| page.len().saturating_sub(200 * step)).take_while(|at| *at > 0);
    journal.extend(numbers(&[checked.map(|at| u32::from(page[at])).sum()]));
    journal
}

#[tokio::test]
async fn files_are_for_their_owner_alone_and_gone_after_closing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("journal/journal.db");
    let journal = open(&path).await.unwrap();
    fill(&journal, 1).await;
    assert_eq!(fs::metadata(path.parent().unwrap()).unwrap().mode() & 0o777, 0o700);
    let mut names = Vec::new();
    for file in fs::read_dir(path.parent().unwrap()).unwrap() {
        let file = file.unwrap();
        assert_eq!(file.metadata().unwrap().mode() & 0o777, 0o600, "{:?}", file.path());
        names.push(file.file_name().into_string().unwrap());
    }
    names.sort();
    assert_eq!(names, ["journal.db", "journal.db-shm", "journal.db-wal", "journal.db.lock"]);
    journal.close().await;
    assert!(!path.with_file_name("journal.db-wal").exists());
}

#[tokio::test]
async fn log_is_filled_at_the_start_and_is_no_content() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("journal.db");
    let log = || fs::metadata(path.with_file_name("journal.db-wal")).unwrap().len();
    let journal = open(&path).await.unwrap();
    assert_eq!(log(), 262_144);
    fill(&journal, 4).await;
    assert_eq!(log(), 262_144, "commits overwrite instead of growing");
    drop(journal);
}

#[tokio::test]
async fn p08_second_writer_is_refused_while_the_first_lives() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("journal.db");
    let first = open(&path).await.unwrap();
    let error = open(&path).await.unwrap_err();
    assert!(matches!(error, OpenError::InUse { .. }), "{error:?}");
    assert!(error.to_string().contains("in use by another sidecar") && !error.hint().is_empty());
    fill(&first, 1).await;
    first.close().await;
    open(&path).await.unwrap().close().await;
}

#[tokio::test]
async fn sidecar_keeps_its_id_from_start_to_start() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("journal.db");
    open(&path).await.unwrap().close().await;
    let mut options = options(&path);
    options.sidecar = sidecar("another");
    let journal = SqliteJournal::open(options).await.unwrap();
    assert_eq!(journal.sidecar(), &sidecar("sidecar-1"));
    journal.close().await;
}

#[tokio::test]
async fn b23_another_identity_key_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("journal.db");
    open(&path).await.unwrap().close().await;
    let mut options = options(&path);
    options.identity = (key(2).id(), key(2).check_value());
    let error = SqliteJournal::open(options).await.unwrap_err();
    assert!(matches!(&error, OpenError::WrongIdentityKey { recorded, .. } if recorded == key(1).id().as_str()), "{error:?}");
    open(&path).await.expect("the right key still opens it").close().await;
}

#[tokio::test]
async fn newer_schema_is_refused_and_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("journal.db");
    closed_journal(&path, 1).await;
    sql(&path, "PRAGMA user_version = 99").unwrap();
    let before = fs::read(&path).unwrap();
    for error in [open(&path).await.unwrap_err(), SqliteReader::open(&path).await.unwrap_err()] {
        assert!(matches!(error, OpenError::SchemaNewer { found: 99, .. }), "{error:?}");
    }
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[tokio::test]
async fn files_of_other_programs_are_refused_and_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let foreign = directory.path().join("other.db");
    fs::write(&foreign, b"").unwrap();
    sql(&foreign, "CREATE TABLE things (id INTEGER PRIMARY KEY, name TEXT UNIQUE, size TEXT UNIQUE)").unwrap();
    let text = directory.path().join("notes.txt");
    fs::write(&text, "a text that is somewhat longer than the header of a database").unwrap();
    for path in [foreign, text] {
        let before = fs::read(&path).unwrap();
        for error in [open(&path).await.unwrap_err(), SqliteReader::open(&path).await.unwrap_err()] {
            assert!(matches!(error, OpenError::NotAJournal { .. }), "{error:?}");
        }
        assert_eq!(fs::read(&path).unwrap(), before);
    }
    let missing = SqliteReader::open(directory.path().join("missing.db")).await.unwrap_err();
    assert!(matches!(missing, OpenError::Missing { .. }), "{missing:?}");
}

#[tokio::test]
async fn g18_facts_cannot_be_changed_or_removed_in_the_database() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("journal.db");
    closed_journal(&path, 1).await;
    for statement in [
        "UPDATE facts SET body = x'00' WHERE position = 1",
        "DELETE FROM facts",
        "UPDATE histories SET tenant = 'other'",
        "DELETE FROM histories",
    ] {
        let error = sql(&path, statement).unwrap_err();
        assert!(error.contains("append-only"), "{statement}: {error}");
    }
}

#[tokio::test]
async fn b18_changed_fact_is_found_at_the_next_start() {
    for (change, found) in [
        (
            "UPDATE facts SET body = CAST(replace(CAST(body AS TEXT), 'mail.send', 'mail.sent') AS BLOB) WHERE position = 2",
            "position 2 was changed",
        ),
        ("UPDATE facts SET tool_call = 'call-9' WHERE position = 4", "position 4 was changed"),
        ("UPDATE facts SET attempt = 2 WHERE position = 5", "position 5 was changed"),
        ("DELETE FROM facts WHERE position = 5", "position 6 does not follow"),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("journal.db");
        closed_journal(&path, 3).await;
        sql(&path, "DROP TRIGGER facts_are_never_changed").unwrap();
        sql(&path, "DROP TRIGGER facts_are_never_removed").unwrap();
        sql(&path, change).unwrap();
        let error = open(&path).await.unwrap_err();
        assert!(matches!(error, OpenError::Damaged { .. }) && error.to_string().contains(found), "{change}: {error}");
    }
}

#[tokio::test]
async fn truncated_or_overwritten_database_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("journal.db");
    closed_journal(&path, 200).await;
    let sound = fs::read(&path).unwrap();
    let refused = async |what: &str| {
        let error = open(&path).await.unwrap_err();
        assert!(matches!(error, OpenError::Damaged { .. }), "{what}: {error:?}");
        assert!(error.to_string().contains("is damaged"), "{error}");
    };
    fs::write(&path, &sound[..sound.len() / 2]).unwrap();
    refused("cut in half").await;
    for page in [1, 3, sound.len() / 4096 - 1] {
        fs::write(&path, &sound).unwrap();
        let mut file = fs::OpenOptions::new().write(true).open(&path).unwrap();
        file.seek(SeekFrom::Start(page as u64 * 4096)).unwrap();
        file.write_all(&[0xff; 64]).unwrap();
        refused(&format!("page {page} overwritten")).await;
    }
    // One flipped bit in the middle of a stored fact, which is sound to SQLite.
    let at = sound.windows(9).rposition(|bytes| bytes == b"mail.send").unwrap();
    let mut flipped = sound.clone();
    flipped[at] ^= 1;
    fs::write(&path, &flipped).unwrap();
    refused("flipped bit").await;
    fs::write(&path, &sound).unwrap();
    open(&path).await.unwrap().close().await;
}

#[tokio::test]
async fn damaged_fact_is_told_as_corrupt_to_readers() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("journal.db");
    closed_journal(&path, 1).await;
    sql(&path, "DROP TRIGGER facts_are_never_changed").unwrap();
    sql(&path, "UPDATE facts SET body = x'7b7d'").unwrap();
    let reader = SqliteReader::open(&path).await.unwrap();
    let corrupt = Unavailable { cause: UnavailableCause::Corrupt, may_have_landed: false };
    assert_eq!(reader.tool_call(&run("run"), &tool_call("call-0")).await.unwrap_err(), corrupt);
    reader.close().await;
}

#[tokio::test]
async fn reader_reads_beside_a_sidecar_and_without_one() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("journal.db");
    let journal = open(&path).await.unwrap();
    fill(&journal, 2).await;
    let reader = SqliteReader::open(&path).await.unwrap();
    assert_eq!(facts_of(&reader, &run("run")).await.len(), 6);
    fill_more(&journal).await;
    assert_eq!(facts_of(&reader, &run("run")).await.len(), 9, "it sees what is committed while it is open");
    reader.close().await;
    journal.close().await;
    let reader = SqliteReader::open(&path).await.unwrap();
    assert_eq!(facts_of(&reader, &run("run")).await.len(), 9);
    reader.close().await;
}

async fn fill_more(journal: &SqliteJournal) {
    let key = of("more", "more", "mail.send");
    journal.append(judged(&run("run"), &key, Decision::Deny)).await.unwrap();
}

#[tokio::test]
async fn directory_that_cannot_be_used_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    fs::write(&file, b"").unwrap();
    let error = open(&file.join("journal.db")).await.unwrap_err();
    assert!(matches!(error, OpenError::File { .. }), "{error:?}");
}

/// Waits for a state of health; a minute is far beyond the longest pause between two tries.
async fn wait_for(journal: &SqliteJournal, wanted: StoreHealth) {
    let wait = async {
        let mut health = journal.health();
        while health != wanted {
            health = journal.health_changed(health).await;
        }
    };
    tokio::time::timeout(Duration::from_mins(1), wait).await.expect("the health comes");
}

#[tokio::test]
async fn g12_replaced_database_is_noticed_before_anything_is_acknowledged() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("journal.db");
    let journal = open(&path).await.unwrap();
    fill(&journal, 2).await;
    let aside = directory.path().join("aside.db");
    fs::rename(&path, &aside).unwrap();
    let answer = journal.append(judged(&run("run"), &of("lost", "lost", "mail.send"), Decision::Allow)).await;
    let lost = Unavailable { cause: UnavailableCause::Io, may_have_landed: true };
    assert_eq!(answer, Err(AppendError::Unavailable(lost)));
    assert_eq!(journal.health(), StoreHealth::Failing(UnavailableCause::Io));
    // Another file in its place does not make it serve; the file itself does.
    fs::copy(&aside, &path).unwrap();
    for _ in 0..8 {
        // It tries again after 100 ms and after 300 ms; waiting longer could only find it wrong.
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert_eq!(journal.health(), StoreHealth::Failing(UnavailableCause::Io));
    }
    let refused = journal.append(judged(&run("run"), &of("still", "still", "mail.send"), Decision::Allow)).await;
    assert_eq!(refused, Err(AppendError::Unavailable(Unavailable { may_have_landed: false, ..lost })));
    fs::rename(&aside, &path).unwrap();
    wait_for(&journal, StoreHealth::Serving).await;
    fill_more(&journal).await;
    facts_of(&journal, &run("run")).await;
    journal.close().await;
}

#[tokio::test]
async fn g12_database_that_is_cut_off_is_noticed_before_anything_is_acknowledged_and_never_served_again() {
    for log in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("journal.db");
        let journal = open(&path).await.unwrap();
        fill(&journal, 2).await;
        let cut = if log { directory.path().join("journal.db-wal") } else { path.clone() };
        fs::OpenOptions::new().write(true).open(&cut).unwrap().set_len(0).unwrap();
        let answer = journal.append(judged(&run("run"), &of("lost", "lost", "mail.send"), Decision::Allow)).await;
        assert!(matches!(answer, Err(AppendError::Unavailable(_))), "{}: {answer:?}", cut.display());
        for _ in 0..8 {
            // It tries again after 100 ms and after 300 ms; waiting longer could only find it wrong.
            tokio::time::sleep(Duration::from_millis(50)).await;
            assert!(matches!(journal.health(), StoreHealth::Failing(_)), "{}: facts are gone", cut.display());
        }
        journal.close().await;
    }
}

#[tokio::test]
async fn p08_a_lock_that_is_taken_away_is_noticed_and_taken_again_unless_another_sidecar_has_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("journal.db");
    let journal = open(&path).await.unwrap();
    fill(&journal, 2).await;
    fs::remove_file(directory.path().join("journal.db.lock")).unwrap();
    let answer = journal.append(judged(&run("run"), &of("lost", "lost", "mail.send"), Decision::Allow)).await;
    assert_eq!(answer, Err(AppendError::Unavailable(Unavailable { cause: UnavailableCause::Io, may_have_landed: true })));
    wait_for(&journal, StoreHealth::Serving).await;
    fill_more(&journal).await;
    // Nobody can come in between now.
    assert!(matches!(open(&path).await, Err(OpenError::InUse { .. })));
    journal.close().await;
}

/// A small file system of its own, unmounted at the end.
struct Disk(tempfile::TempDir);

impl Disk {
    /// `None`, said aloud, where mounting is not permitted; in CI that is a failure.
    fn mount(size: &str) -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let options = format!("size={size},mode=700");
        let mounted = run_command("mount", &["-t", "tmpfs", "-o", &options, "tmpfs", directory.path().to_str().unwrap()]);
        if mounted {
            return Some(Self(directory));
        }
        assert!(
            std::env::var("CI").as_deref() != Ok("true"),
            "NOT RUN: mounting a tmpfs is not permitted, and CI=true demands it"
        );
        eprintln!("NOT RUN: mounting a tmpfs is not permitted here");
        None
    }

    fn remount(&self, options: &str) -> bool {
        run_command("mount", &["-o", &format!("remount,{options}"), self.0.path().to_str().unwrap()])
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        run_command("umount", &["-l", self.0.path().to_str().unwrap()]);
    }
}

fn run_command(program: &str, arguments: &[&str]) -> bool {
    std::process::Command::new(program).args(arguments).status().is_ok_and(|status| status.success())
}

#[tokio::test]
async fn g12_full_disk_refuses_loses_nothing_and_heals() {
    let Some(disk) = Disk::mount("4m") else { return };
    let path = disk.0.path().join("journal.db");
    let filler = disk.0.path().join("filler");
    fs::write(&filler, vec![1; 2 * 1_048_576]).unwrap();
    let mut options = options(&path);
    options.wal_bytes = 0;
    let journal = SqliteJournal::open(options).await.unwrap();
    let run = run("run");
    let mut acknowledged = Vec::new();
    let refusal = loop {
        let n = acknowledged.len();
        assert!(n < 50_000, "the disk is never full");
        let key = of(&format!("call-{n}"), &format!("invocation-{n}"), "mail.send");
        match journal.append(judged(&run, &key, Decision::Deny)).await {
            Ok(receipt) => acknowledged.push((receipt.sequence, key.invocation)),
            Err(error) => break error,
        }
    };
    assert!(matches!(refusal, AppendError::Unavailable(Unavailable { cause: UnavailableCause::Full, .. })), "{refusal:?}");
    fs::remove_file(&filler).unwrap();
    wait_for(&journal, StoreHealth::Serving).await;
    fill_more(&journal).await;
    journal.close().await;

    let journal = open(&path).await.unwrap();
    let facts = facts_of(&journal, &run).await;
    for (sequence, invocation) in &acknowledged {
        let fact = &facts[usize::try_from(*sequence).unwrap() - 1];
        assert_eq!(fact.invocation.as_ref(), Some(invocation), "nothing that was acknowledged is lost");
    }
    journal.close().await;
}

#[tokio::test]
async fn read_only_file_system_is_told_at_the_start_and_can_be_read() {
    let Some(disk) = Disk::mount("8m") else { return };
    let path = disk.0.path().join("journal.db");
    closed_journal(&path, 2).await;
    assert!(disk.remount("ro"));
    let error = open(&path).await.unwrap_err();
    assert!(matches!(error, OpenError::File { .. }), "{error:?}");
    assert!(error.to_string().contains("read-only"), "{error}");
    let reader = SqliteReader::open(&path).await.expect("it can be read as it stands");
    assert_eq!(facts_of(&reader, &run("run")).await.len(), 6);
    reader.close().await;
    assert!(disk.remount("rw"));
    let journal = open(&path).await.unwrap();
    fill_more(&journal).await;
    journal.close().await;
}

#[tokio::test]
async fn modes_of_an_existing_directory_are_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o750)).unwrap();
    open(&directory.path().join("journal.db")).await.unwrap().close().await;
    assert_eq!(fs::metadata(directory.path()).unwrap().mode() & 0o777, 0o750);
}

//! Bytes of the journal that were durable are changed or cut off, after a kill: each is damage.
//!
//! What is promised. Of the database, every byte that matters is checked at the start while the journal is small: the
//! sidecar refuses it, or nothing that was told is lost. Of the write-ahead log SQLite takes the first frame whose checksum
//! fails for the end. So what was told last may be gone, but only that: what is left is on record as it was told, and it
//! is a beginning of what was there. Against a cut tail a checkpoint helps that is kept elsewhere.

use std::{fs, path::Path};

use tollgate_tests::{
    load::{self, Told},
    power::Dice,
    sidecar::Setup,
    soak, wire,
};

/// What is done to a byte.
#[derive(Clone, Copy, Debug)]
enum Damage {
    Flip(usize),
    CutFrom(usize),
}

impl Damage {
    fn apply(self, bytes: &[u8]) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        match self {
            Self::Flip(bit) => bytes[bit / 8] ^= 1 << (bit % 8),
            Self::CutFrom(length) => bytes.truncate(length),
        }
        bytes
    }
}

/// A journal with fewer facts than are digested at a start: all in the log of a sidecar that was killed, or all in the
/// database of one that ended in order.
async fn journal(in_database: bool) -> (Setup, Told) {
    let sidecar = Setup::new().start().await;
    let (gate, run) = (sidecar.gate().await, wire::run());
    let mut told = Told::default();
    for number in 0..30 {
        let call = wire::call(&run, if number % 4 == 3 { "desk.write" } else { "desk.read" }, "{}");
        told.decisions.push((run.clone(), gate.evaluate(call).await.unwrap().response().clone()));
    }
    (if in_database { sidecar.stop().await.1 } else { sidecar.kill() }, told)
}

/// Starts on a damaged file. `None` where it is refused, with a clear error; else what is on record.
async fn start_on(setup: Setup, file: &Path, bytes: &[u8], told: &Told) -> (Setup, Option<load::Verified>) {
    fs::write(file, bytes).unwrap();
    let mut sidecar = setup.spawn();
    if sidecar.serves_or_ends().await {
        let (_, setup) = sidecar.stop().await;
        let verified = load::verify(&setup.journal_path(), told).await;
        return (setup, Some(verified));
    }
    let log = sidecar.log();
    assert!(log.contains("error: ") && log.contains("journal"), "{log}");
    let (status, setup) = sidecar.ended().await;
    assert_eq!(status.code(), Some(1), "{log}");
    (setup, None)
}

async fn each_is_refused_or_bounded(in_database: bool) {
    let (mut setup, told) = journal(in_database).await;
    let (database, log) = (setup.journal_path(), setup.state().join("journal.db-wal"));
    let (database_bytes, mut log_bytes) = (fs::read(&database).unwrap(), fs::read(&log).unwrap_or_default());
    // Zeros at its end, which it was filled with, are not read.
    log_bytes.truncate(log_bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1));
    let (damaged, bytes) = if in_database { (&database, &database_bytes) } else { (&log, &log_bytes) };
    let mut dice = Dice(Some(bytes.len() as u64));
    let (mut refused, mut whole, mut shorter) = (0, 0, 0);
    for number in 0..soak::count(24, 2_000) {
        fs::write(&database, &database_bytes).unwrap();
        fs::write(&log, &log_bytes).unwrap();
        drop(fs::remove_file(setup.state().join("journal.db-shm")));
        let damage = match number % 4 {
            // Byte by byte through the end.
            0 => Damage::CutFrom(bytes.len().saturating_sub(number / 4 + 1)),
            1 => Damage::CutFrom(dice.between(0, bytes.len() - 1)),
            _ => Damage::Flip(dice.between(0, bytes.len() * 8 - 1)),
        };
        let verified;
        (setup, verified) = start_on(setup, damaged, &damage.apply(bytes), &told).await;
        match verified {
            None => refused += 1,
            Some(verified) if verified.lost.is_empty() && verified.lost_outcomes.is_empty() => whole += 1,
            Some(verified) => {
                assert!(!in_database, "{damage:?}: lost without a word: {verified:?}");
                assert!(verified.lost.iter().all(|lost| *lost > verified.kept), "{damage:?}: more than the end: {verified:?}");
                shorter += 1;
            }
        }
    }
    soak::report(&[
        ("damages refused", refused),
        ("damages without loss", whole),
        ("damages of the log that cut its end", shorter),
    ]);
    assert!(refused + shorter > 0, "damage shows");
}

/// P08: a changed or cut database is refused, or nothing of it was needed.
#[tokio::test]
async fn p08_damage_to_the_database_is_refused_or_loses_nothing() {
    each_is_refused_or_bounded(true).await;
}

/// P08: a changed or cut log ends where it is damaged, and what is before that is whole.
#[tokio::test]
async fn p08_damage_to_the_log_loses_no_more_than_its_end() {
    each_is_refused_or_bounded(false).await;
}

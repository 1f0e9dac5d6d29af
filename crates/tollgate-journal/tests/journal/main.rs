//! One suite of rules for every store, and what SQLite alone must bear.
//!
//! A further store joins with one line of `conformance!` and a function that makes an empty one.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "tests may panic, spawn and read the environment"
)]

mod cases;
mod conformance;
mod files;
mod kill;
mod property;
mod support;

use support::Kept;
use tollgate_journal::MemoryJournal;

fn memory() -> std::future::Ready<Kept<MemoryJournal>> {
    std::future::ready(Kept { journal: std::sync::Arc::new(MemoryJournal::new()), _directory: None })
}

async fn sqlite() -> Kept<tollgate_journal::SqliteJournal> {
    let directory = tempfile::tempdir().unwrap();
    let journal = support::open(&directory.path().join("journal.db")).await.unwrap();
    Kept { journal: std::sync::Arc::new(journal), _directory: Some(directory) }
}

conformance::conformance!(memory, crate::memory);
conformance::conformance!(sqlite, crate::sqlite);

//! The durable journal: group commit, the SQLite store, the digest chain and the read model.
//!
//! This crate implements the ports [`tollgate_domain::Store`] and [`tollgate_domain::Reader`], and
//! only it names `rusqlite`. It knows nothing of hooks, policies, wire formats or answers: whether an
//! entry may follow is decided by the domain's lifecycle, and what an acknowledged entry means is
//! the business of whoever appended it. Texts of SQLite never leave it; failures are
//! [`tollgate_domain::UnavailableCause`]s and [`OpenError`]s.
//!
//! [`SqliteJournal`] is what a sidecar serves from, [`SqliteReader`] reads one without a sidecar,
//! and [`MemoryJournal`] keeps the same rules in tests, benchmarks and simulation, durable nowhere. [`SimulatedJournal`]
//! runs the real group commit over an imagined disk, which fails and forgets as the simulation says.

mod backend;
mod group_commit;
mod ledger;
mod memory;
mod numbering;
mod simulated;
mod sqlite;
mod summary;

pub use memory::MemoryJournal;
pub use simulated::{Fate, SimulatedDisk, SimulatedJournal, SyncFailed};
pub use sqlite::{OpenError, Recovery, SqliteJournal, SqliteOptions, SqliteReader};

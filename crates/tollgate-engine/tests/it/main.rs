//! The decision path, from a call to what its caller is told and what the journal holds.
//!
//! Most tests compare one ordered log of everything that can be seen from outside: which hook was
//! asked or told, what the journal took in which commit, and what the caller was answered.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    reason = "tests may panic and spawn"
)]

mod activation;
mod complete;
mod cut;
mod drain;
mod harness;
mod interleavings;
mod journal_faults;
mod notices;
mod outcomes;
mod refusals;
mod repeats;
mod retirement;
mod settling;
mod start;
mod tool_calls;

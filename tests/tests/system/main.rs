//! The whole product: the real program, asked over real gRPC, and looked at from outside.
//!
//! Each test starts a sidecar of its own in a directory of its own, and waits for what it expects
//! instead of sleeping.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    reason = "tests may panic"
)]

mod bad_bundles;
mod bundles;
mod commands;
mod contract;
mod disk;
#[cfg(target_os = "linux")]
mod faults;
mod lifecycle;
mod metrics;
mod promises;
mod python;
mod reading;
mod rights;
mod secrets;
mod starts;
mod stream;
mod swap;

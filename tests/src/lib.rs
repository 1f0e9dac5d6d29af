//! What the tests of the whole product share. Nothing of it is part of the product.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::missing_panics_doc,
    clippy::indexing_slicing,
    reason = "tests may panic"
)]

pub mod bench;
pub mod calls;
pub mod documents;
#[cfg(target_os = "linux")]
pub mod faults;
pub mod journal_file;
pub mod load;
#[cfg(target_os = "linux")]
pub mod power;
pub mod program;
pub mod review;
pub mod sidecar;
pub mod soak;
pub mod tmpfs;
pub mod trees;
pub mod wire;

//! What the tests of the whole product share. Nothing of it is part of the product.
#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::missing_panics_doc, reason = "tests may panic")]

pub mod bench;
pub mod calls;
pub mod documents;
pub mod journal_file;
pub mod program;
pub mod review;
pub mod sidecar;
pub mod tmpfs;
pub mod trees;
pub mod wire;

//! What a user of this crate can see of it: bundles in, verdicts and findings out.

#![expect(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests may panic")]

mod advice;
mod arguments;
mod bad_bundles;
mod docs;
mod equality;
mod harness;
mod sample;
mod source;
mod verdicts;

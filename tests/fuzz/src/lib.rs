//! What must hold of every parser of outside input, whatever bytes it gets: one function for each, driven by
//! libFuzzer for hours and by a plain test over the kept inputs in a second.
//!
//! Each asserts more than that nothing panics: an answer of its own to compare with, a way back to the same
//! value, or that nothing of a value comes out in a text.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    reason = "these functions are tests"
)]

pub mod arguments;
pub mod bundle;
mod call;
pub mod configuration;
pub mod digests;
pub mod fact;
pub mod ids;
pub mod mapping;
pub mod messages;
mod sentinel;
pub mod yaml;

/// A target: its name, and what must hold of any bytes.
pub type Target = (&'static str, fn(&[u8]));

/// Every target.
pub const TARGETS: [Target; 9] = [
    ("arguments", arguments::check),
    ("bundle", bundle::check),
    ("configuration", configuration::check),
    ("digests", digests::check),
    ("fact", fact::check),
    ("ids", ids::check),
    ("mapping", mapping::check),
    ("messages", messages::check),
    ("yaml", yaml::check),
];

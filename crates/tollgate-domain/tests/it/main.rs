//! The rules of the vocabulary, each by name: what is an id, an argument, a decision, a record.

#![expect(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests may panic")]

mod arguments;
mod catalogue;
mod chain;
mod facts;
mod forgery;
mod identity;
mod ids;
mod lifecycle;
mod outcomes;
mod recall;
mod sample;
mod secrets;
mod selectors;
mod trace;

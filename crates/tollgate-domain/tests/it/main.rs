//! The rules of the vocabulary, each by name: what is an id, an argument, a decision, a record.

#![expect(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests may panic")]

mod arguments;
mod catalogue;
mod chain;
mod clock;
mod facts;
mod filters;
mod forgery;
mod histories;
mod identity;
mod ids;
mod invariants;
mod lifecycle;
mod outcomes;
mod recall;
mod rights;
mod sample;
mod secrets;
mod selectors;
mod stages;
mod trace;

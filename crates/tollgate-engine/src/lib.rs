//! The decision path: pin a generation, ask its chain, record, answer; and what keeps it right over
//! time: activation of generations, outcomes, start and shutdown.
//!
//! This crate knows no SQL, no wire type and no policy language. It meets stores, hooks and bundle
//! sources as ports of `tollgate-domain`. All its tasks live in one task set that shutdown waits for.

mod chain;
mod complete;
mod cut;
mod engine;
mod error;
mod evaluate;
mod flight;
mod generations;
mod notice;
mod settle;
mod start;

pub use complete::Completion;
pub use engine::{Engine, EngineOptions, EngineParts, Readiness};
pub use error::{CompleteError, EvaluateError, JournalProblem};
pub use generations::Status;
pub use start::LooseKey;

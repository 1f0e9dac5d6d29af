//! Cedar hooks, and the bundles that they come in.
//!
//! Only this crate names types of Cedar: the rest of the tree sees [`tollgate_domain::Hook`],
//! [`tollgate_domain::Bundle`] and [`tollgate_domain::BundleSource`]. It knows nothing of the
//! journal, of the wire or of how a chain is run. It keeps no text of an error that Cedar gives about
//! a call, for such texts quote arguments.
//!
//! Hooks are to be evaluated on threads with at least 8 MiB of stack; on less, Cedar's own guard
//! makes long policies err, and the hook fails closed.

mod arguments;
mod cedar_errors;
mod cedar_text;
mod codes;
mod compile;
mod diagnostic;
mod facts;
mod files;
mod hook;
mod index;
pub mod limits;
mod manifest;
mod mapping;
mod names;
mod number;
mod place;
mod policies;
mod render;
mod schema;
mod shape;
mod source;
mod store;
mod tree;
mod yaml;

pub use codes::FindingCode;
pub use compile::{check, load, load_local};
pub use diagnostic::{Diagnostic, Report, Severity, Span, Summary};
pub use source::{DirectoryOptions, DirectorySource};

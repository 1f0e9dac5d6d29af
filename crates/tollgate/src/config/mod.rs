//! The sidecar's configuration: one YAML file, then the environment, then flags, each stronger than
//! the one before; all of it strict.

mod check;
mod file;
mod load;
mod overrides;
mod text;

pub(crate) use file::{Config, JournalConfig, ListenerConfig, LogFormat};
pub(crate) use load::load;
pub(crate) use overrides::Overrides;
pub(crate) use text::{Place, Span};

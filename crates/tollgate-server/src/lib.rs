//! The doors: gRPC services over the engine and the journal's reader, their listeners, and health.
//!
//! Only this crate (and the client) names `tonic::Status`; it never sees a store, a policy or any
//! other adapter, only the ports that they implement. Every error becomes a status at one place.

mod admission;
mod deadline;
mod governance;
mod health;
mod journal;
mod listener;
mod policy;
#[doc(hidden)]
pub mod reading;
mod serve;
mod status;
mod stream;
mod wire;

pub use admission::Admission;
pub use governance::EvaluateLimits;
pub use listener::{Bound, Listen, ListenError, SocketAccess};
pub use serve::{Door, Services, serve};

/// Largest message that a caller may send, in bytes: arguments and claimed attributes at their limits,
/// with room for everything else.
pub const REQUEST_MAX_BYTES: usize = 2 * tollgate_domain::limits::ARGUMENTS_MAX_BYTES + 262_144;

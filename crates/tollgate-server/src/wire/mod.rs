//! Conversion between the wire and the domain: every outside value is checked here, once, and nothing
//! of an argument comes back out.

pub(crate) mod inbound;
pub(crate) mod outbound;

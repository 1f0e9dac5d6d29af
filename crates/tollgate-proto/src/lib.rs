//! The wire contract as Rust types: generated code and nothing that thinks.
//!
//! This crate knows no rule of governance and no other crate of the workspace. What is here is what
//! `proto/tollgate/v1` says, written by `cargo xtask codegen` and committed; the one thing by hand is
//! the `Debug` of the messages that carry a call's content, so that none of it is printed.

mod redacted;

/// The package `tollgate.v1`: messages, clients and server traits.
#[expect(clippy::pedantic, clippy::large_enum_variant, reason = "generated")]
pub mod v1 {
    include!("generated/tollgate.v1.rs");
}

/// The `.proto` files and what they import, as an encoded `FileDescriptorSet` for gRPC reflection.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!("generated/tollgate.v1.bin");

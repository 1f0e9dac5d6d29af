//! The arguments of a call: judged, never kept.

use std::{fmt, sync::Arc};

use crate::{
    json::{InvalidJson, Json},
    limits::ARGUMENTS_MAX_BYTES,
};

/// One I-JSON object, at most [`ARGUMENTS_MAX_BYTES`] long.
///
/// Strict on purpose: what is judged must be what any executor reads, so nothing that two parsers
/// could read differently is accepted. `Debug` shows the size only.
#[derive(Clone)]
pub struct Arguments {
    value: Arc<Json>,
    byte_len: usize,
}

/// Why bytes are no arguments. Carries no part of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidArguments {
    /// More than [`ARGUMENTS_MAX_BYTES`].
    #[error("is {0} bytes long; at most {ARGUMENTS_MAX_BYTES} are allowed")]
    TooLong(usize),
    /// Not acceptable JSON.
    #[error("{0}")]
    Json(#[from] InvalidJson),
    /// JSON, but no object.
    #[error("must be one JSON object; send {{}} for none")]
    NotAnObject,
}

impl Arguments {
    /// Parses the bytes that a caller sent.
    pub fn parse(bytes: &[u8]) -> Result<Self, InvalidArguments> {
        if bytes.len() > ARGUMENTS_MAX_BYTES {
            return Err(InvalidArguments::TooLong(bytes.len()));
        }
        let value = Json::parse(bytes)?;
        if !matches!(value, Json::Object(_)) {
            return Err(InvalidArguments::NotAnObject);
        }
        Ok(Self { value: Arc::new(value), byte_len: bytes.len() })
    }

    /// The parsed object.
    #[must_use]
    pub fn value(&self) -> &Json {
        &self.value
    }

    /// The size as sent, in bytes.
    #[must_use]
    pub const fn byte_len(&self) -> usize {
        self.byte_len
    }

    /// The canonical text, for a keyed MAC only.
    pub(crate) fn canonical(&self) -> String {
        let mut text = String::with_capacity(self.byte_len);
        self.value.write_canonical(&mut text);
        text
    }
}

impl fmt::Debug for Arguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{} bytes of arguments]", self.byte_len)
    }
}

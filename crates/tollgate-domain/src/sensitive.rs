//! Values that may be judged but never leave the process: arguments, messages, secrets.

use std::fmt;

/// A value that cannot be printed, serialised or compared by accident.
///
/// The rule of the tree is that `Serialize` means "may leave the process"; this type has none, nor
/// `Display`, `Deref` or `PartialEq`. Whoever needs the value says so with [`Sensitive::expose`].
#[derive(Clone)]
pub struct Sensitive<T>(T);

impl<T> Sensitive<T> {
    /// Wraps a value.
    pub const fn new(value: T) -> Self {
        Self(value)
    }

    /// The value itself. Every use is a place to review.
    pub const fn expose(&self) -> &T {
        &self.0
    }
}

impl<T> fmt::Debug for Sensitive<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[sensitive]")
    }
}

//! Time, as a port: wall-clock time for the record, monotonic time for durations.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A point of wall-clock time, in microseconds since the Unix epoch, UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(i64);

impl Timestamp {
    /// From microseconds since the Unix epoch.
    #[must_use]
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Microseconds since the Unix epoch.
    #[must_use]
    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// Milliseconds since the Unix epoch, cut.
    #[must_use]
    pub const fn as_millis(self) -> i64 {
        self.0.div_euclid(1_000)
    }

    /// Later by `micros`; stops at the end of representable time.
    #[must_use]
    pub const fn plus_micros(self, micros: u64) -> Self {
        Self(self.0.saturating_add_unsigned(micros))
    }

    /// Microseconds from `earlier` to here; zero where the wall clock went backwards.
    #[must_use]
    pub const fn micros_since(self, earlier: Self) -> u64 {
        let micros = self.0.saturating_sub(earlier.0);
        if micros.is_negative() { 0 } else { micros.unsigned_abs() }
    }
}

/// A point of monotonic time, in nanoseconds since an origin that only this process knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Monotonic(u64);

impl Monotonic {
    /// From nanoseconds since the origin.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Microseconds from `earlier` to here, cut.
    #[must_use]
    pub const fn micros_since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0) / 1_000
    }

    /// Seconds from `earlier` to here, for metrics.
    #[must_use]
    pub fn seconds_since(self, earlier: Self) -> f64 {
        std::time::Duration::from_nanos(self.0.saturating_sub(earlier.0)).as_secs_f64()
    }
}

/// Where time comes from. Nothing else in the product reads a clock, so that simulation can.
pub trait Clock: Send + Sync + fmt::Debug {
    /// The wall clock: what facts carry. It may jump.
    fn now(&self) -> Timestamp;
    /// The monotonic clock: what durations are measured with. It never goes backwards.
    fn monotonic(&self) -> Monotonic;
}

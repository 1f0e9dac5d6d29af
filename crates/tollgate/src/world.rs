//! The ambient world, read here and nowhere else: clocks, randomness, environment.

#![expect(clippy::disallowed_methods, reason = "the one place that reads clocks and the environment")]

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use tollgate_domain::{Clock, InvocationId, Monotonic, Timestamp};
use uuid::Uuid;

/// The machine's clocks.
#[derive(Debug)]
pub(crate) struct SystemClock {
    origin: Instant,
}

impl SystemClock {
    pub(crate) fn new() -> Self {
        Self { origin: Instant::now() }
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        // A clock before 1970 is a machine without one; facts then carry its beginning.
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_micros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
    }

    fn monotonic(&self) -> Monotonic {
        Monotonic::from_nanos(u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }
}

/// A fresh id that rises with time.
pub(crate) fn fresh_invocation() -> InvocationId {
    InvocationId::from_uuid(Uuid::now_v7())
}

/// A fresh id that rises with time, as text.
pub(crate) fn fresh_id() -> String {
    Uuid::now_v7().to_string()
}

/// Random bytes fit for a key.
pub(crate) fn random_key() -> Result<[u8; 32], getrandom::Error> {
    let mut key = [0; 32];
    getrandom::fill(&mut key)?;
    Ok(key)
}

/// The names of the environment's variables that begin with a prefix.
pub(crate) fn variables_with(prefix: &str) -> Vec<String> {
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let mut names: Vec<String> = names.filter(|name| name.starts_with(prefix)).collect();
    names.sort();
    names
}

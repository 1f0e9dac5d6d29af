//! How many calls are taken at once, and how fast: what does not fit is refused, never queued without end.

use std::{num::NonZeroU32, sync::Arc};

use governor::{
    Quota, RateLimiter,
    clock::MonotonicClock,
    state::{InMemoryState, NotKeyed},
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::status::Problem;

/// Shared by all listeners of the data door.
#[derive(Clone, Debug)]
pub struct Admission {
    places: Arc<Semaphore>,
    places_count: usize,
    rate: Option<Arc<RateLimiter<NotKeyed, InMemoryState, MonotonicClock>>>,
}

impl Admission {
    /// Takes at most `in_flight` calls at once, and at most `per_second` of them in a second (with bursts
    /// of as many) where that is given.
    #[must_use]
    pub fn new(in_flight: usize, per_second: Option<NonZeroU32>) -> Self {
        let rate = per_second.map(|rate| Arc::new(RateLimiter::direct_with_clock(Quota::per_second(rate), MonotonicClock)));
        Self { places: Arc::new(Semaphore::new(in_flight)), places_count: in_flight, rate }
    }

    /// A place for one call, held until it is answered.
    pub(crate) fn admit(&self) -> Result<OwnedSemaphorePermit, Problem> {
        if self.rate.as_ref().is_some_and(|rate| rate.check().is_err()) {
            return Err(Problem::rate_limited());
        }
        Arc::clone(&self.places).try_acquire_owned().map_err(|_| Problem::overloaded(self.places_count))
    }
}

//! How many calls are taken at once, and how fast: what does not fit is refused or waits a bounded time,
//! and is never queued without end.

use std::{num::NonZeroU32, sync::Arc, time::Duration};

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
        self.check_rate()?;
        Arc::clone(&self.places).try_acquire_owned().map_err(|_| Problem::overloaded(self.places_count))
    }

    /// As [`Admission::admit`], but waits for a place: elements of a stream come no faster than the
    /// transport's flow control lets them, so that waiting slows the stream down instead of failing it.
    pub(crate) async fn admit_within(&self, time: Duration) -> Result<OwnedSemaphorePermit, Problem> {
        self.check_rate()?;
        let place = tokio::time::timeout(time, Arc::clone(&self.places).acquire_owned()).await;
        place.ok().and_then(Result::ok).ok_or_else(|| Problem::overloaded(self.places_count))
    }

    fn check_rate(&self) -> Result<(), Problem> {
        if self.rate.as_ref().is_some_and(|rate| rate.check().is_err()) { Err(Problem::rate_limited()) } else { Ok(()) }
    }
}

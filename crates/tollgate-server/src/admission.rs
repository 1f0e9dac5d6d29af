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

/// How many streams it takes to fill all places.
const STREAMS_AT_FULL_LOAD: usize = 4;

/// The right of one call to be judged, held until it is answered.
#[derive(Debug)]
pub(crate) struct Place(
    #[expect(dead_code, reason = "held")] OwnedSemaphorePermit,
    #[expect(dead_code, reason = "held")] OwnedSemaphorePermit,
);

/// Shared by all listeners of the data door.
#[derive(Clone, Debug)]
pub struct Admission {
    places: Arc<Semaphore>,
    places_count: usize,
    room: Arc<Semaphore>,
    room_kib: u32,
    rate: Option<Arc<RateLimiter<NotKeyed, InMemoryState, MonotonicClock>>>,
}

impl Admission {
    /// Takes at most `in_flight` calls at once with at most `in_flight_kib` of arguments together (one call
    /// of any size is always taken), and at most `per_second` of them in a second (with bursts
    /// of as many) where that is given.
    #[must_use]
    pub fn new(in_flight: usize, in_flight_kib: u32, per_second: Option<NonZeroU32>) -> Self {
        let rate = per_second.map(|rate| Arc::new(RateLimiter::direct_with_clock(Quota::per_second(rate), MonotonicClock)));
        Self {
            places: Arc::new(Semaphore::new(in_flight)),
            places_count: in_flight,
            room: Arc::new(Semaphore::new(in_flight_kib as usize)),
            room_kib: in_flight_kib,
            rate,
        }
    }

    /// A place for one call with so many bytes of arguments, held until it is answered.
    pub(crate) fn admit(&self, bytes: usize) -> Result<Place, Problem> {
        self.check_rate()?;
        let place = Arc::clone(&self.places).try_acquire_owned();
        let room = Arc::clone(&self.room).try_acquire_many_owned(self.kib(bytes));
        match (place, room) {
            (Ok(place), Ok(room)) => Ok(Place(place, room)),
            _ => Err(self.overloaded()),
        }
    }

    /// As [`Admission::admit`], but waits for a place: elements of a stream come no faster than the
    /// transport's flow control lets them, so that waiting slows the stream down instead of failing it.
    pub(crate) async fn admit_within(&self, bytes: usize, time: Duration) -> Result<Place, Problem> {
        self.check_rate()?;
        let admitting = async {
            let place = Arc::clone(&self.places).acquire_owned().await.ok()?;
            Some(Place(place, Arc::clone(&self.room).acquire_many_owned(self.kib(bytes)).await.ok()?))
        };
        tokio::time::timeout(time, admitting).await.ok().flatten().ok_or_else(|| self.overloaded())
    }

    /// The places that one stream may hold at once, so that a busy stream leaves some to everybody else.
    pub(crate) fn share_of_a_stream(&self) -> Arc<Semaphore> {
        Arc::new(Semaphore::new((self.places_count / STREAMS_AT_FULL_LOAD).max(1)))
    }

    fn kib(&self, bytes: usize) -> u32 {
        u32::try_from(bytes.div_ceil(1_024)).unwrap_or(u32::MAX).min(self.room_kib)
    }

    fn overloaded(&self) -> Problem {
        Problem::overloaded(self.places_count, self.room_kib)
    }

    fn check_rate(&self) -> Result<(), Problem> {
        if self.rate.as_ref().is_some_and(|rate| rate.check().is_err()) { Err(Problem::rate_limited()) } else { Ok(()) }
    }
}

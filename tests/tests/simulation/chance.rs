//! All that is random in one world, out of its seed; and the weather that makes it harsh or kind.

use std::{
    ops::RangeInclusive,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

/// Where every choice of a world comes from: one stream, drawn from in an order that the seed gives.
#[derive(Debug)]
pub(crate) struct Chance {
    stream: Mutex<fastrand::Rng>,
    foul: AtomicBool,
}

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        Self { stream: Mutex::new(fastrand::Rng::with_seed(seed)), foul: AtomicBool::new(true) }
    }

    /// From now on nothing fails by itself any more.
    pub(crate) fn clear_up(&self) {
        self.foul.store(false, Relaxed);
    }

    pub(crate) fn is_foul(&self) -> bool {
        self.foul.load(Relaxed)
    }

    pub(crate) fn of(&self, range: RangeInclusive<u64>) -> u64 {
        self.stream.lock().unwrap().u64(range)
    }

    pub(crate) fn one_in(&self, count: u64) -> bool {
        self.of(1..=count) == 1
    }

    /// As [`Chance::one_in`], while the weather is foul.
    pub(crate) fn strikes(&self, one_in: u64) -> bool {
        self.is_foul() && self.one_in(one_in)
    }

    pub(crate) fn millis(&self, range: RangeInclusive<u64>) -> Duration {
        Duration::from_millis(self.of(range))
    }

    pub(crate) fn pick<T: Copy>(&self, from: &[T]) -> T {
        from[usize::try_from(self.of(0..=from.len() as u64 - 1)).unwrap()]
    }

    /// Lets some time pass.
    pub(crate) async fn pause(&self, range: RangeInclusive<u64>) {
        tokio::time::sleep(self.millis(range)).await;
    }
}

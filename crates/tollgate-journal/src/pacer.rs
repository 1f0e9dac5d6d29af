//! A pause much shorter than a millisecond, which is the finest that tokio's timer can wait.

use std::time::Duration;

/// Waits for short times. One pause at a time.
#[derive(Debug)]
pub(crate) struct Pacer {
    #[cfg(target_os = "linux")]
    timer: Option<tokio::io::unix::AsyncFd<rustix::fd::OwnedFd>>,
}

#[cfg(target_os = "linux")]
impl Pacer {
    pub(crate) fn new() -> Self {
        use rustix::time::{TimerfdClockId, TimerfdFlags, timerfd_create};
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC);
        #[expect(deprecated, reason = "its successor is unsafe for types that may lose their descriptor; OwnedFd cannot")]
        let register = tokio::io::unix::AsyncFd::new;
        Self { timer: timer.ok().and_then(|timer| register(timer).ok()) }
    }

    /// Waits. Without a timer of its own it waits for a millisecond of tokio's.
    pub(crate) async fn pause(&self, time: Duration) {
        match &self.timer {
            Some(timer) if arm(timer.get_ref(), time).is_ok() => while !expired(timer).await {},
            _ => tokio::time::sleep(time).await,
        }
    }
}

#[cfg(target_os = "linux")]
fn arm(timer: &rustix::fd::OwnedFd, time: Duration) -> rustix::io::Result<()> {
    use rustix::time::{Itimerspec, TimerfdTimerFlags, Timespec, timerfd_settime};
    let never = Timespec { tv_sec: 0, tv_nsec: 0 };
    let once = Timespec { tv_sec: time.as_secs().cast_signed(), tv_nsec: time.subsec_nanos().into() };
    let spec = Itimerspec { it_interval: never, it_value: once };
    timerfd_settime(timer, TimerfdTimerFlags::empty(), &spec).map(drop)
}

/// Waits until the timer is readable, and takes its expiry. A readiness left over from an earlier
/// pause, which was cut short, is no expiry: arming the timer took it back.
#[cfg(target_os = "linux")]
async fn expired(timer: &tokio::io::unix::AsyncFd<rustix::fd::OwnedFd>) -> bool {
    let Ok(mut ready) = timer.readable().await else { return true };
    let mut expirations = [0; 8];
    match ready.try_io(|timer| rustix::io::read(timer.get_ref(), &mut expirations).map_err(Into::into)) {
        Ok(_) => true,
        Err(_would_block) => false,
    }
}

#[cfg(not(target_os = "linux"))]
impl Pacer {
    pub(crate) fn new() -> Self {
        Self {}
    }

    /// Waits, for a millisecond of tokio's timer at the least.
    pub(crate) async fn pause(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    #[tokio::test]
    async fn pause_that_was_cut_short_does_not_shorten_the_next() {
        let pacer = Pacer::new();
        for _ in 0..20 {
            tokio::select! {
                biased;
                () = pacer.pause(Duration::from_micros(50)) => {}
                () = tokio::task::yield_now() => {}
            }
            // Its time is over in the meantime.
            std::thread::sleep(Duration::from_micros(100));
            let begun = Instant::now();
            pacer.pause(Duration::from_millis(2)).await;
            assert!(begun.elapsed() >= Duration::from_millis(2));
        }
    }
}

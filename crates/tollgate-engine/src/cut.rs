//! What cuts an invocation short: the caller's cancellation or its deadline.

use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The caller's patience. Cloned into every stage of one invocation.
#[derive(Clone, Debug)]
pub(crate) struct Cut {
    pub(crate) cancel: CancellationToken,
    pub(crate) deadline: Instant,
}

impl Cut {
    /// The end of time that nobody else can shorten.
    pub(crate) fn after(time: Duration) -> Self {
        Self { cancel: CancellationToken::new(), deadline: Instant::now() + time }
    }

    /// Whether the caller no longer waits.
    pub(crate) fn is_made(&self) -> bool {
        self.cancel.is_cancelled() || Instant::now() >= self.deadline
    }

    /// Waits until the caller no longer waits.
    pub(crate) async fn made(&self) {
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => {}
            () = tokio::time::sleep_until(self.deadline) => {}
        }
    }

    /// The time that is left, at most `max`.
    pub(crate) fn remaining(&self, max: Duration) -> Duration {
        self.deadline.saturating_duration_since(Instant::now()).min(max)
    }
}

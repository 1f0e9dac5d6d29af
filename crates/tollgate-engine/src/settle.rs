//! Invocations whose caller was told that there is no decision, and whose facts may have become
//! durable all the same: they are closed, so that no ALLOW stands that nobody was given.

use std::{sync::Arc, time::Duration};

use tollgate_domain::{
    AppendError, Code, Entry, History, InvocationId, InvocationKey, InvocationRecord, Outcome, RunKey, StoreHealth, Terminal,
    Timestamp, Unavailable, codes,
};

use crate::{engine::Engine, flight::Flight};

/// An invocation whose caller was told that there is no decision.
#[derive(Clone, Debug)]
pub(crate) struct Unsettled {
    pub(crate) run: RunKey,
    pub(crate) invocation: InvocationId,
    /// Held until it is settled, so that nobody is given a decision under the same id that would
    /// then be taken for the one to close.
    pub(crate) _flight: Option<Arc<Flight>>,
}

/// How long to wait between attempts, since a journal may say that it serves and refuse.
const RETRY_PAUSE: Duration = Duration::from_millis(100);

impl Engine {
    /// Once `landing` has ended, closes the invocation if it is on record and open.
    pub(crate) fn settle_after(self: &Arc<Self>, landing: impl Future<Output = ()> + Send + 'static, unsettled: Unsettled) {
        let engine = Arc::clone(self);
        self.tasks.spawn(async move {
            tokio::select! {
                biased;
                // A journal that does not heal before the end: what landed stays open in the record.
                () = engine.abandon.cancelled() => {}
                () = async { landing.await; engine.settle(&unsettled).await } => {}
            }
        });
    }

    async fn settle(&self, unsettled: &Unsettled) {
        while self.close(unsettled).await.is_err() {
            self.journal_heals().await;
        }
    }

    /// Closes an invocation of this sidecar's if it is on record and open.
    async fn close(&self, Unsettled { run, invocation, .. }: &Unsettled) -> Result<(), Unavailable> {
        let Some(record) = self.store.invocation(run, invocation).await? else { return Ok(()) };
        let InvocationRecord { tool_call, invocation, started, .. } = record;
        // Another sidecar was first with this id, and its caller has its answer.
        if started.sidecar != self.options.rules.sidecar {
            return Ok(());
        }
        let key = InvocationKey { tool_call, invocation, tool: started.call.subject.tool.id };
        let entry = self.cancellation(run.clone(), key, started.at, &codes::JOURNAL_UNAVAILABLE);
        match self.store.append(entry).await {
            // What conflicts with an end has one.
            Ok(_) | Err(AppendError::Conflict(_)) => Ok(()),
            Err(AppendError::Unavailable(unavailable)) => Err(unavailable),
        }
    }

    /// Waits after a refusal of the journal, for as long as it says that it fails.
    pub(crate) async fn journal_heals(&self) {
        let health = self.store.health();
        if matches!(health, StoreHealth::Failing(_)) {
            self.store.health_changed(health).await;
        }
        tokio::time::sleep(RETRY_PAUSE).await;
    }

    /// The entry that closes an invocation as cancelled by governance.
    pub(crate) fn cancellation(&self, run: RunKey, key: InvocationKey, started_at: Timestamp, code: &Code) -> Entry {
        let at = self.clock.now();
        let terminal = Terminal {
            reported: None,
            governed: Outcome::Cancelled { code: Some(code.clone()) },
            notices: Vec::new(),
            sidecar: self.options.rules.sidecar.clone(),
            at,
            duration_us: at.micros_since(started_at),
        };
        Entry { history: History::Run(run), invocation: Some(key), facts: vec![terminal.into_fact()] }
    }
}

//! The engine: its parts, its options, and the set of tasks that it answers for.

use std::{fmt, sync::Arc, time::Duration};

use tokio::sync::watch;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tollgate_domain::{
    Call, Clock, DecisionRules, HookDefinition, IdentityKey, InvocationId, Recorded, Reported, Rights, RunKey, Store,
    StoreHealth, UnavailableCause,
};

use crate::{
    complete::Completion,
    cut::Cut,
    error::{CompleteError, EvaluateError, JournalProblem},
    flight::Flights,
    generations::{Generations, Status},
};

/// How long shutdown waits for what is in flight, and then once more for what gives up on settling.
const SETTLE_WAIT: Duration = Duration::from_secs(2);

/// What an engine is made of.
pub struct EngineParts {
    /// The durable journal.
    pub store: Arc<dyn Store>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Makes invocation ids for callers that have none.
    pub fresh_invocation: Box<dyn Fn() -> InvocationId + Send + Sync>,
    /// The key that derived tool call ids are made with.
    pub key: IdentityKey,
    /// The sidecar's own hooks, merged with every generation's.
    pub local_hooks: Vec<Arc<HookDefinition>>,
}

impl fmt::Debug for EngineParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EngineParts").field("store", &self.store).finish_non_exhaustive()
    }
}

/// How an engine behaves.
#[derive(Clone, Debug)]
pub struct EngineOptions {
    /// The rules that turn a judgement into a decision.
    pub rules: DecisionRules,
    /// How long one wait for the journal may last, whatever the caller's deadline.
    pub journal_max_wait: Duration,
    /// How long the facts of a call may take whose caller no longer waits.
    pub cancelled_record_wait: Duration,
    /// Whether outcomes keep the messages of provider failures.
    pub keep_failure_messages: bool,
    /// The program's version, for the record of its start.
    pub version: String,
}

/// Whether the sidecar may be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// A generation is active and the journal accepts appends.
    Serving,
    /// No generation is active.
    NoGeneration,
    /// The journal does not accept appends.
    Journal(UnavailableCause),
    /// It is shutting down.
    ShuttingDown,
}

/// The decision path of one sidecar.
#[derive(Debug)]
pub struct Engine {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) options: EngineOptions,
    pub(crate) key: IdentityKey,
    pub(crate) generations: Generations,
    pub(crate) flights: Flights,
    pub(crate) tasks: TaskTracker,
    pub(crate) stop: CancellationToken,
    /// Ends the tasks that settle, once shutdown has waited for them long enough.
    pub(crate) abandon: CancellationToken,
    fresh: Fresh,
    draining: CancellationToken,
    readiness: watch::Sender<Readiness>,
}

struct Fresh(Box<dyn Fn() -> InvocationId + Send + Sync>);

impl fmt::Debug for Fresh {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Fresh")
    }
}

impl Engine {
    /// An engine that decides nothing yet: give it a source with [`Engine::keep_generations`].
    #[must_use]
    pub fn new(parts: EngineParts, options: EngineOptions) -> Arc<Self> {
        let EngineParts { store, clock, fresh_invocation, key, local_hooks } = parts;
        let engine = Arc::new(Self {
            store,
            clock,
            options,
            key,
            generations: Generations::new(local_hooks),
            flights: Flights::default(),
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
            abandon: CancellationToken::new(),
            fresh: Fresh(fresh_invocation),
            draining: CancellationToken::new(),
            readiness: watch::Sender::new(Readiness::NoGeneration),
        });
        engine.tasks.spawn(Arc::clone(&engine).follow_store_health());
        engine
    }

    /// Judges one call and answers once the decision is durable.
    ///
    /// The call is cut when `timeout` has passed, when `cancel` is cancelled, and when the future is dropped.
    pub async fn evaluate(
        self: &Arc<Self>,
        rights: &Rights,
        call: Call,
        timeout: Duration,
        cancel: &CancellationToken,
    ) -> Result<Recorded, EvaluateError> {
        if self.draining.is_cancelled() {
            return Err(EvaluateError::ShuttingDown);
        }
        let cancel = cancel.child_token();
        let cut = Cut { cancel: cancel.clone(), deadline: tokio::time::Instant::now() + timeout };
        let cancel_when_dropped = cancel.drop_guard();
        // A task of its own: the facts of a cancelled call are written all the same. Boxed, since it is large and
        // a task is moved several times before it is first polled.
        let judging = self.tasks.spawn(Box::pin(Arc::clone(self).judge(rights.clone(), call, cut)));
        let answer = judging.await.unwrap_or(Err(EvaluateError::Internal));
        cancel_when_dropped.disarm();
        answer
    }

    /// Records how an allowed invocation ended. Goes on after `timeout`, and when the future is dropped:
    /// what became of a tool is worth recording even when nobody waits for it any more.
    pub async fn complete(
        self: &Arc<Self>,
        rights: &Rights,
        run: RunKey,
        invocation: InvocationId,
        reported: Reported,
        timeout: Duration,
    ) -> Result<Completion, CompleteError> {
        if !rights.cover_run(&run) {
            return Err(CompleteError::NotFound);
        }
        if self.stop.is_cancelled() {
            return Err(CompleteError::ShuttingDown);
        }
        let completing = self.tasks.spawn(Arc::clone(self).record_outcome(rights.clone(), run, invocation, reported));
        match tokio::time::timeout(timeout, completing).await {
            Ok(ended) => ended.unwrap_or(Err(CompleteError::Internal)),
            Err(_) => Err(JournalProblem::DeadlinePassed.into()),
        }
    }

    /// Runs a task that shutdown waits for; it has to end soon after [`Engine::draining`].
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(task);
    }

    /// Cancelled when the sidecar takes no new calls any more.
    #[must_use]
    pub fn draining(&self) -> CancellationToken {
        self.draining.clone()
    }

    /// The generation that decides, and how its source stands.
    #[must_use]
    pub fn status(&self) -> Arc<Status> {
        self.generations.status()
    }

    /// Whether the sidecar may be asked, and every change of that.
    #[must_use]
    pub fn readiness(&self) -> watch::Receiver<Readiness> {
        self.readiness.subscribe()
    }

    /// Says `NOT_SERVING` and takes no new calls; outcomes are still recorded.
    pub fn drain(&self) {
        self.draining.cancel();
        self.refresh_readiness();
    }

    /// Waits a little for what is in flight, makes the journal durable and closes it.
    pub async fn shut_down(&self) {
        self.drain();
        self.stop.cancel();
        self.tasks.close();
        if tokio::time::timeout(SETTLE_WAIT, self.tasks.wait()).await.is_err() {
            self.abandon.cancel();
            // Who still runs holds a connection that nobody reads; the closed journal refuses it.
            drop(tokio::time::timeout(SETTLE_WAIT, self.tasks.wait()).await);
        }
        self.store.close().await;
    }

    pub(crate) fn fresh_invocation(&self) -> InvocationId {
        (self.fresh.0)()
    }

    pub(crate) fn refresh_readiness(&self) {
        let now = if self.draining.is_cancelled() {
            Readiness::ShuttingDown
        } else if let StoreHealth::Failing(cause) = self.store.health() {
            Readiness::Journal(cause)
        } else if self.generations.active().is_none() {
            Readiness::NoGeneration
        } else {
            Readiness::Serving
        };
        metrics::gauge!("tollgate_ready").set(if now == Readiness::Serving { 1.0 } else { 0.0 });
        self.readiness.send_if_modified(|readiness| std::mem::replace(readiness, now) != now);
    }

    async fn follow_store_health(self: Arc<Self>) {
        let mut seen = self.store.health();
        loop {
            self.refresh_readiness();
            tokio::select! {
                biased;
                () = self.stop.cancelled() => return,
                changed = self.store.health_changed(seen) => {
                    match changed {
                        StoreHealth::Serving => tracing::info!("the journal accepts appends again"),
                        StoreHealth::Failing(cause) => {
                            tracing::error!(cause = cause.as_str(), "the journal fails: nothing is approved until it heals");
                        }
                    }
                    seen = changed;
                }
            }
        }
    }
}

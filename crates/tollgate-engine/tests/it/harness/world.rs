//! The world: an engine, what it is made of, and the moves that tests make.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{task::JoinHandle, time::Instant};
use tokio_util::sync::CancellationToken;
use tollgate_domain::{
    Bundle, Call, Catalogue, Clock, DecisionRules, Digest, HookDefinition, IdentityKey, InvocationId, Monotonic, Recorded,
    Reported, Rights, Timestamp, ToolAttributes, ToolEffect, UnavailableCause, WhenNoHookMatches,
};
use tollgate_engine::{CompleteError, Completion, Engine, EngineOptions, EngineParts, EvaluateError};
use tollgate_journal::MemoryJournal;

use super::{FakeHook, FaultyStore, Log, answer, run};

/// Time as tokio's paused clock tells it; the wall clock can be set apart.
#[derive(Debug)]
pub(crate) struct FakeClock {
    origin: Instant,
    jumped_us: AtomicI64,
}

impl Clock for FakeClock {
    fn now(&self) -> Timestamp {
        let passed = i64::try_from(self.origin.elapsed().as_micros()).unwrap();
        Timestamp::from_micros(1_700_000_000_000_000 + passed + self.jumped_us.load(Ordering::Relaxed))
    }

    fn monotonic(&self) -> Monotonic {
        Monotonic::from_nanos(u64::try_from(self.origin.elapsed().as_nanos()).unwrap())
    }
}

pub(crate) struct World {
    pub(crate) engine: Arc<Engine>,
    pub(crate) store: Arc<FaultyStore>,
    pub(crate) log: Log,
    pub(crate) clock: Arc<FakeClock>,
}

/// A call that was sent and is not answered yet.
pub(crate) struct Sent {
    pub(crate) cancel: CancellationToken,
    answer: JoinHandle<Result<Recorded, EvaluateError>>,
}

impl Sent {
    pub(crate) async fn answer(self) -> Result<Recorded, EvaluateError> {
        self.answer.await.unwrap()
    }

    /// The caller goes away without a word.
    pub(crate) fn hang_up(self) {
        self.answer.abort();
    }
}

/// The options that tests use unless they say otherwise.
pub(crate) fn options() -> EngineOptions {
    EngineOptions {
        rules: DecisionRules {
            when_no_hook_matches: WhenNoHookMatches::Deny,
            validity_us: 60_000_000,
            sidecar: "sidecar-1".parse().unwrap(),
        },
        journal_max_wait: Duration::from_secs(5),
        cancelled_record_wait: Duration::from_secs(1),
        keep_failure_messages: true,
        version: "0.0.0-test".to_owned(),
    }
}

/// A catalogue that gives every tool the attributes of a writing one.
fn catalogue() -> Catalogue {
    let unknown =
        ToolAttributes { effect: ToolEffect::Write, open_world: false, requires_approval: false, labels: BTreeSet::new() };
    Catalogue { tools: HashMap::new(), unknown_of: HashMap::new(), unknown: Some(unknown) }
}

/// The bundle `acme` at this revision.
pub(crate) fn bundle(revision: &str, hooks: Vec<FakeHook>, log: &Log) -> Bundle {
    Bundle {
        name: "acme".parse().unwrap(),
        serial: None,
        revision: revision.parse().unwrap(),
        digest: Digest::of(revision.as_bytes()),
        catalogue: catalogue(),
        hooks: hooks.into_iter().map(|hook| hook.definition(log)).collect(),
    }
}

impl World {
    /// An engine that serves these hooks of generation 1.
    pub(crate) async fn with(hooks: Vec<FakeHook>) -> Self {
        let world = Self::empty(options());
        world.activate("first", hooks).await;
        world.log.take();
        world
    }

    /// An engine without a generation.
    pub(crate) fn empty(options: EngineOptions) -> Self {
        Self::on(Arc::new(MemoryJournal::new()), options, Vec::new())
    }

    /// An engine on a journal that may hold something already.
    pub(crate) fn on(journal: Arc<MemoryJournal>, options: EngineOptions, local: Vec<FakeHook>) -> Self {
        let log = Log::default();
        let store = Arc::new(FaultyStore::new(journal, log.clone()));
        let clock = Arc::new(FakeClock { origin: Instant::now(), jumped_us: AtomicI64::new(0) });
        let made = AtomicU64::new(1);
        let local: Vec<Arc<HookDefinition>> = local.into_iter().map(|hook| Arc::new(hook.definition(&log))).collect();
        let parts = EngineParts {
            store: Arc::<FaultyStore>::clone(&store),
            clock: Arc::<FakeClock>::clone(&clock),
            fresh_invocation: Box::new(move || {
                InvocationId::parse(&format!("fresh-{}", made.fetch_add(1, Ordering::Relaxed))).unwrap()
            }),
            key: IdentityKey::from_bytes(&[7; 32]).unwrap(),
            local_hooks: local,
        };
        Self { engine: Engine::new(parts, options), store, log, clock }
    }

    /// The process ends without a word and another one opens the same journal.
    pub(crate) async fn restart(&self, hooks: Vec<FakeHook>) -> Self {
        let world = Self::on(Arc::clone(&self.store.inner), options(), Vec::new());
        world.activate("first", hooks).await;
        world.log.take();
        world
    }

    pub(crate) async fn activate(&self, revision: &str, hooks: Vec<FakeHook>) {
        self.engine.consider(Ok(bundle(revision, hooks, &self.log))).await;
    }

    pub(crate) fn jump_wall_clock(&self, micros: i64) {
        self.clock.jumped_us.fetch_add(micros, Ordering::Relaxed);
    }

    /// The journal fails for this cause, or heals.
    pub(crate) fn fail(&self, cause: Option<UnavailableCause>) {
        self.store.inner.fail(cause);
    }

    /// Asks with ten seconds of patience, and logs the answer.
    pub(crate) async fn ask(&self, call: Call) -> Result<Recorded, EvaluateError> {
        self.ask_within(Duration::from_secs(10), call).await
    }

    /// Asks, and only that there is a decision is of interest.
    pub(crate) async fn decide(&self, call: Call) {
        drop(self.ask(call).await.unwrap());
    }

    pub(crate) async fn ask_within(&self, patience: Duration, call: Call) -> Result<Recorded, EvaluateError> {
        self.ask_as(&Rights::default(), patience, call).await
    }

    pub(crate) async fn ask_as(&self, rights: &Rights, patience: Duration, call: Call) -> Result<Recorded, EvaluateError> {
        let answer = self.engine.evaluate(rights, call, patience, &CancellationToken::new()).await;
        self.log.add(answer::evaluated(&answer));
        answer
    }

    /// Sends a call and does not wait for its answer.
    pub(crate) fn send(&self, call: Call) -> Sent {
        let cancel = CancellationToken::new();
        let (engine, log, token) = (Arc::clone(&self.engine), self.log.clone(), cancel.clone());
        let answer = tokio::spawn(async move {
            let answer = engine.evaluate(&Rights::default(), call, Duration::from_secs(10), &token).await;
            log.add(answer::evaluated(&answer));
            answer
        });
        Sent { cancel, answer }
    }

    /// Completes with ten seconds of patience, and logs the answer.
    pub(crate) async fn complete(&self, invocation: &str, reported: Reported) -> Result<Completion, CompleteError> {
        self.complete_as(&Rights::default(), invocation, reported).await
    }

    pub(crate) async fn complete_as(
        &self,
        rights: &Rights,
        invocation: &str,
        reported: Reported,
    ) -> Result<Completion, CompleteError> {
        let invocation = invocation.parse().unwrap();
        let answer = self.engine.complete(rights, run(), invocation, reported, Duration::from_secs(10)).await;
        self.log.add(answer::completed(&answer));
        answer
    }

    /// Lets every task run until all of them wait for time or for each other.
    pub(crate) async fn settle(&self) {
        // Paused time moves only when nothing else can.
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

//! The real group commit over an imagined disk, for simulation: what was written and not synced is kept
//! apart, and a crash forgets it. Nothing is ever served from it.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use tollgate_domain::{
    AppendError, BundleName, Entry, Fact, GenerationNumbers, History, InvocationId, InvocationKey, InvocationRecord,
    LastActivated, Lookup, NumberRequest, Receipt, RunKey, SidecarId, Started, Store, StoreHealth, ToolCallId, Unavailable,
    UnavailableCause,
};

use crate::{
    backend::Backend,
    group_commit::GroupCommit,
    ledger::{Batch, Counters, Found, Known, Prepared, Wanted},
    memory::MemoryJournal,
};

/// Most appends that may wait.
const QUEUE_MAX_COUNT: usize = 256;

/// How often those who wait for another health look.
const HEALTH_POLL: Duration = Duration::from_millis(5);

/// What befalls a disk, and how long it takes; the simulation decides.
#[async_trait]
pub trait Fate: Send + Sync + fmt::Debug + 'static {
    /// Before anything is written. An error: nothing was.
    async fn write(&self) -> Result<(), UnavailableCause>;

    /// While it is synced.
    async fn sync(&self) -> Result<(), SyncFailed>;

    /// Before a read, and once more before its result is there.
    async fn read(&self) -> Result<(), UnavailableCause>;

    /// Before a disk that failed is tried again.
    async fn heal(&self) -> Result<(), UnavailableCause>;
}

/// A sync that failed, of which nobody is told whether it was one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyncFailed {
    /// Why.
    pub cause: UnavailableCause,
    /// Whether everything is durable all the same.
    pub landed: bool,
}

/// A disk: what outlives the processes that write to it.
#[derive(Clone, Debug, Default)]
pub struct SimulatedDisk {
    durable: Arc<MemoryJournal>,
    unsynced: Arc<Mutex<Option<Batch>>>,
    /// The histories by their ids, which are all that a batch names them by.
    histories: Arc<Mutex<HashMap<u64, History>>>,
}

impl SimulatedDisk {
    /// What a crash cannot take any more.
    #[must_use]
    pub const fn durable(&self) -> &Arc<MemoryJournal> {
        &self.durable
    }

    /// Whether everything that was written is durable.
    #[must_use]
    pub fn is_synced(&self) -> bool {
        lock(&self.unsynced).is_none()
    }

    /// The end of what was written and not synced: it reached the disk, or is forgotten.
    pub fn settle(&self, reached: bool) {
        if let Some(batch) = lock(&self.unsynced).take().filter(|_| reached) {
            self.keep(batch);
        }
    }

    /// Makes a batch durable, by the rules and from the record alone: what the writer numbered and chained out of
    /// what it has in mind must be what the record demands.
    fn keep(&self, batch: Batch) {
        let mut histories = lock(&self.histories);
        histories.extend(batch.histories);
        let mut record = self.durable.record();
        for row in batch.facts {
            let history = histories.get(&row.history).cloned();
            let fact = Fact::decode(&row.body).ok();
            assert!(history.is_some() && fact.is_some(), "a row is a fact of a history");
            let (Some(history), Some(fact)) = (history, fact) else { return };
            let entry = Entry { history: history.clone(), invocation: row.invocation, facts: vec![fact] };
            let kept = record.append(Prepared { entry, bodies: vec![row.body] });
            let receipt = Receipt { sequence: row.sequence, position: row.position, attempt: row.attempt };
            assert_eq!(kept, Ok(receipt), "the writer numbers facts as the record does");
            assert_eq!(record.ledger.history(&history).map(|known| known.digest), Some(row.digest), "and chains them so");
        }
    }

    fn found(&self, Wanted { history, invocation }: &Wanted) -> Found {
        let record = self.durable.record();
        let Some(known) = record.ledger.history(history) else { return Found::default() };
        let (tool_call, invocation) = invocation.as_ref().map(|(call, id)| (call, id)).unzip();
        Found {
            history: known.id.map(|id| (id, known.sequence, known.digest)),
            tool_call: tool_call.and_then(|id| known.tool_calls.get(id)).cloned(),
            invocation: invocation.and_then(|id| known.invocations.get(id)).cloned(),
        }
    }

    fn known(&self, history: &History) -> Known {
        match self.durable.record().ledger.history(history) {
            Some(Known { id: Some(id), sequence, digest, tool_calls, invocations, .. }) => {
                Known::complete((*id, *sequence, *digest), tool_calls.clone(), invocations.clone())
            }
            Some(_) | None => Known::absent(history),
        }
    }
}

/// A journal on a [`SimulatedDisk`].
#[derive(Debug)]
pub struct SimulatedJournal {
    commits: GroupCommit,
    disk: SimulatedDisk,
    fate: Arc<dyn Fate>,
}

impl SimulatedJournal {
    /// Opens the journal; the disk's last process has ended. Must be called within a tokio runtime with time.
    #[must_use]
    pub fn open(disk: SimulatedDisk, fate: Arc<dyn Fate>) -> Self {
        let next = disk.durable.record().ledger.next();
        let backend = SimulatedBackend { disk: disk.clone(), fate: Arc::clone(&fate) };
        let (commits, writing) = GroupCommit::new(backend, next, QUEUE_MAX_COUNT);
        #[expect(clippy::disallowed_methods, reason = "the simulation has one thread; close() waits for its end")]
        let _detached = tokio::spawn(writing);
        Self { commits, disk, fate }
    }

    async fn read<T>(&self, read: impl Future<Output = Result<T, Unavailable>>) -> Result<T, Unavailable> {
        self.fate.read().await.map_err(Unavailable::refused)?;
        let result = read.await;
        self.fate.read().await.map_err(Unavailable::refused)?;
        result
    }
}

#[async_trait]
impl Store for SimulatedJournal {
    async fn append(&self, entry: Entry) -> Result<Receipt, AppendError> {
        self.commits.append(entry).await
    }

    async fn lookup(&self, run: &RunKey, tool_call: &ToolCallId, invocation: &InvocationId) -> Result<Lookup, Unavailable> {
        let read = |whole: bool| {
            self.read(async move {
                let lookup = self.disk.durable.lookup(run, tool_call, invocation).await?;
                Ok((lookup, whole.then(|| self.disk.known(&History::Run(run.clone())))))
            })
        };
        self.commits.lookup(run, tool_call, invocation, read).await
    }

    async fn invocation(&self, run: &RunKey, invocation: &InvocationId) -> Result<Option<InvocationRecord>, Unavailable> {
        self.read(self.disk.durable.invocation(run, invocation)).await
    }

    async fn undecided(&self) -> Result<Vec<(RunKey, InvocationKey, Started)>, Unavailable> {
        self.read(self.disk.durable.undecided()).await
    }

    async fn number(&self, request: NumberRequest) -> Result<GenerationNumbers, Unavailable> {
        self.commits.number(request).await
    }

    async fn last_activated(&self, bundle: &BundleName, sidecar: &SidecarId) -> Result<Option<LastActivated>, Unavailable> {
        self.read(self.disk.durable.last_activated(bundle, sidecar)).await
    }

    fn health(&self) -> StoreHealth {
        self.commits.health()
    }

    async fn health_changed(&self, seen: StoreHealth) -> StoreHealth {
        // The group commit's channel wakes those who wait in an order that no seed gives; time does not.
        while self.health() == seen {
            tokio::time::sleep(HEALTH_POLL).await;
        }
        self.health()
    }

    async fn close(&self) {
        self.commits.close().await;
    }
}

struct SimulatedBackend {
    disk: SimulatedDisk,
    fate: Arc<dyn Fate>,
}

impl Backend for SimulatedBackend {
    async fn load(&mut self, wanted: &[Wanted]) -> Result<Vec<Found>, UnavailableCause> {
        self.fate.read().await?;
        Ok(wanted.iter().map(|wanted| self.disk.found(wanted)).collect())
    }

    async fn commit(&mut self, batch: Batch) -> Result<(), Unavailable> {
        self.fate.write().await.map_err(Unavailable::refused)?;
        *lock(&self.disk.unsynced) = Some(batch);
        let synced = self.fate.sync().await;
        self.disk.settle(synced.err().is_none_or(|failed| failed.landed));
        synced.map_err(|failed| Unavailable::unknown(failed.cause))
    }

    async fn number(&mut self, request: &NumberRequest) -> Result<GenerationNumbers, Unavailable> {
        self.fate.write().await.map_err(Unavailable::refused)?;
        let number = || self.disk.durable.record().number(request.clone());
        match self.fate.sync().await {
            Ok(()) => Ok(number()),
            Err(SyncFailed { cause, landed }) => {
                if landed {
                    number();
                }
                Err(Unavailable::unknown(cause))
            }
        }
    }

    async fn heal(&mut self) -> Result<Counters, UnavailableCause> {
        self.fate.heal().await?;
        Ok(self.disk.durable.record().ledger.next())
    }

    async fn close(&mut self) {}
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Every change is one assignment or one insertion.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

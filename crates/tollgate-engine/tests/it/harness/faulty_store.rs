//! A journal in memory that logs each commit and fails when it is told to.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

use async_trait::async_trait;
use tokio::sync::Semaphore;
use tollgate_domain::{
    AppendError, BundleName, Entry, GenerationNumbers, History, InvocationId, InvocationKey, InvocationRecord, LastActivated,
    Lookup, NumberRequest, Receipt, RunKey, SidecarId, Started, Store, StoreHealth, ToolCallId, Unavailable, UnavailableCause,
};
use tollgate_journal::MemoryJournal;

use super::{Log, show};

/// What befalls one append to a run.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fault {
    None,
    /// Nothing is written, and that is certain.
    Refuse(UnavailableCause),
    /// Everything is written, and the store cannot say so.
    LandUnsaid(UnavailableCause),
    /// Nothing is written, and the store is not sure.
    LoseUnsure(UnavailableCause),
    /// Nothing happens until [`FaultyStore::let_go`]; then it is written.
    Stall,
}

#[derive(Debug)]
pub(crate) struct FaultyStore {
    pub(crate) inner: Arc<MemoryJournal>,
    faults: Mutex<VecDeque<Fault>>,
    stalled: Semaphore,
    reading: Mutex<Fault>,
    refused_reads: AtomicUsize,
    log: Log,
}

impl FaultyStore {
    pub(crate) fn new(inner: Arc<MemoryJournal>, log: Log) -> Self {
        Self {
            inner,
            faults: Mutex::default(),
            stalled: Semaphore::new(0),
            reading: Mutex::new(Fault::None),
            refused_reads: AtomicUsize::new(0),
            log,
        }
    }

    /// What befalls the next appends to runs, in turn; after them nothing does.
    pub(crate) fn next(&self, faults: impl IntoIterator<Item = Fault>) {
        self.faults.lock().unwrap().extend(faults);
    }

    /// What befalls every read of a call or invocation from now on.
    pub(crate) fn reading(&self, fault: Fault) {
        *self.reading.lock().unwrap() = fault;
    }

    /// Refuses the next read of one invocation.
    pub(crate) fn refuse_one_invocation(&self) {
        self.refused_reads.fetch_add(1, Relaxed);
    }

    /// Lets one stalled append go on.
    pub(crate) fn let_go(&self) {
        self.stalled.add_permits(1);
    }

    async fn commit(&self, entry: Entry) -> Result<Receipt, AppendError> {
        let facts: Vec<_> = entry.facts.iter().map(show::fact).collect();
        let is_run = matches!(entry.history, History::Run(_));
        let id = entry.invocation.as_ref().map_or_else(String::new, |key| format!("{} ", key.invocation));
        let receipt = self.inner.append(entry).await?;
        let first = receipt.sequence + 1 - facts.len() as u64;
        self.log.add(if is_run { format!("commit {id}attempt {}", receipt.attempt) } else { "commit of the system".to_owned() });
        for (sequence, fact) in (first..).zip(facts) {
            self.log.add(format!("  {sequence} {fact}"));
        }
        Ok(receipt)
    }

    async fn read(&self) -> Result<(), Unavailable> {
        let fault = *self.reading.lock().unwrap();
        match fault {
            Fault::None => Ok(()),
            Fault::Stall => std::future::pending().await,
            Fault::Refuse(cause) | Fault::LandUnsaid(cause) | Fault::LoseUnsure(cause) => {
                Err(Unavailable { cause, may_have_landed: false })
            }
        }
    }
}

#[async_trait]
impl Store for FaultyStore {
    async fn append(&self, entry: Entry) -> Result<Receipt, AppendError> {
        let fault = match entry.history {
            History::Run(_) => self.faults.lock().unwrap().pop_front().unwrap_or(Fault::None),
            History::System(_) => Fault::None,
        };
        match fault {
            Fault::None => self.commit(entry).await,
            Fault::Refuse(cause) => Err(Unavailable { cause, may_have_landed: false }.into()),
            Fault::LandUnsaid(cause) => {
                self.commit(entry).await?;
                Err(Unavailable { cause, may_have_landed: true }.into())
            }
            Fault::LoseUnsure(cause) => Err(Unavailable { cause, may_have_landed: true }.into()),
            Fault::Stall => {
                self.stalled.acquire().await.unwrap().forget();
                self.commit(entry).await
            }
        }
    }

    async fn lookup(&self, run: &RunKey, tool_call: &ToolCallId, invocation: &InvocationId) -> Result<Lookup, Unavailable> {
        self.read().await?;
        self.inner.lookup(run, tool_call, invocation).await
    }

    async fn invocation(&self, run: &RunKey, invocation: &InvocationId) -> Result<Option<InvocationRecord>, Unavailable> {
        self.read().await?;
        if self.refused_reads.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok() {
            return Err(Unavailable { cause: UnavailableCause::Io, may_have_landed: false });
        }
        self.inner.invocation(run, invocation).await
    }

    async fn undecided(&self) -> Result<Vec<(RunKey, InvocationKey, Started)>, Unavailable> {
        self.inner.undecided().await
    }

    async fn number(&self, request: NumberRequest) -> Result<GenerationNumbers, Unavailable> {
        self.inner.number(request).await
    }

    async fn last_activated(&self, bundle: &BundleName, sidecar: &SidecarId) -> Result<Option<LastActivated>, Unavailable> {
        self.inner.last_activated(bundle, sidecar).await
    }

    fn health(&self) -> StoreHealth {
        self.inner.health()
    }

    async fn health_changed(&self, seen: StoreHealth) -> StoreHealth {
        self.inner.health_changed(seen).await
    }

    async fn close(&self) {
        self.inner.close().await;
    }
}

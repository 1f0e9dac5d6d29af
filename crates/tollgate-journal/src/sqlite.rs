//! The SQLite store: one file, one writer, readers beside it.

mod cause;
mod check;
mod file;
mod open;
mod read;
mod rows;
mod thread;
mod write;

use std::{fmt, io, path::PathBuf};

use async_trait::async_trait;
use tollgate_domain::{
    AppendError, BundleName, Digest, Entry, FactPage, FactQuery, GenerationNumbers, InvocationId, InvocationKey,
    InvocationRecord, KeyId, LastActivated, Lookup, NumberRequest, PageLimit, Reader, Receipt, RunKey, SidecarId, Started, Store,
    StoreHealth, ToolCallId, ToolCallPage, ToolCallSummary, Unavailable,
};

pub use open::{OpenError, Recovery};
pub use read::SqliteReader;

use self::{open::Opened, write::SqliteBackend};
use crate::group_commit::GroupCommit;

/// How a journal is opened to serve from it.
#[derive(Clone, Debug)]
pub struct SqliteOptions {
    /// The database file; it and its directory are made where they are missing.
    pub path: PathBuf,
    /// The id and check value of the identity key. A new journal keeps them; one that has others is refused.
    pub identity: (KeyId, Digest),
    /// The sidecar's id, for a journal that has none yet; an older journal keeps its own.
    pub sidecar: SidecarId,
    /// Most appends that may wait for the writer; more are refused as overloaded.
    pub max_queue: usize,
    /// The size to which the write-ahead log is filled at the start, in bytes, since overwriting is
    /// faster than growing; 0 leaves it as it is.
    pub wal_bytes: u64,
    /// Most connections that read at once.
    pub readers: u32,
}

impl SqliteOptions {
    /// Options with the defaults.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>, identity: (KeyId, Digest), sidecar: SidecarId) -> Self {
        Self { path: path.into(), identity, sidecar, max_queue: 4_096, wal_bytes: 16 * 1_048_576, readers: 4 }
    }
}

/// The durable journal in one SQLite database.
///
/// There is one per database: a second is refused while the first lives. Appends go through group
/// commit, and each resolves after the `COMMIT` of its batch was synced to disk.
pub struct SqliteJournal {
    commits: GroupCommit,
    reader: SqliteReader,
    sidecar: SidecarId,
    recovery: Recovery,
}

impl SqliteJournal {
    /// Opens a journal, or makes a new one. Must be called within a tokio runtime with IO and time.
    pub async fn open(options: SqliteOptions) -> Result<Self, OpenError> {
        let max_queue = options.max_queue;
        let path = options.path.clone();
        let failed = |source| OpenError::File { path: path.clone(), source };
        let opened = tokio::task::spawn_blocking(move || open::open(&options)).await;
        let Opened { writer, next, reader, sidecar, recovery } =
            opened.unwrap_or_else(|panic| Err(failed(io::Error::other(panic))))?;
        let (commits, writing) = GroupCommit::new(SqliteBackend { writer, reader: reader.clone() }, next, max_queue);
        thread::run("journal-writer", writing).map_err(failed)?;
        Ok(Self { commits, reader, sidecar, recovery })
    }

    /// What opening found, for the log.
    #[must_use]
    pub const fn recovery(&self) -> Recovery {
        self.recovery
    }

    /// The id of the sidecar that this journal belongs to; the same at every start.
    #[must_use]
    pub const fn sidecar(&self) -> &SidecarId {
        &self.sidecar
    }
}

impl fmt::Debug for SqliteJournal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteJournal").field("sidecar", &self.sidecar).field("health", &self.health()).finish_non_exhaustive()
    }
}

#[async_trait]
impl Store for SqliteJournal {
    async fn append(&self, entry: Entry) -> Result<Receipt, AppendError> {
        self.commits.append(entry).await
    }

    async fn lookup(&self, run: &RunKey, tool_call: &ToolCallId, invocation: &InvocationId) -> Result<Lookup, Unavailable> {
        let read = |whole| self.reader.lookup(run, tool_call, invocation, whole);
        self.commits.lookup(run, tool_call, invocation, read).await
    }

    async fn invocation(&self, run: &RunKey, invocation: &InvocationId) -> Result<Option<InvocationRecord>, Unavailable> {
        self.reader.invocation(run, invocation).await
    }

    async fn undecided(&self) -> Result<Vec<(RunKey, InvocationKey, Started)>, Unavailable> {
        self.reader.undecided().await
    }

    async fn number(&self, request: NumberRequest) -> Result<GenerationNumbers, Unavailable> {
        self.commits.number(request).await
    }

    async fn last_activated(&self, bundle: &BundleName, sidecar: &SidecarId) -> Result<Option<LastActivated>, Unavailable> {
        self.reader.last_activated(bundle, sidecar).await
    }

    fn health(&self) -> StoreHealth {
        self.commits.health()
    }

    async fn health_changed(&self, seen: StoreHealth) -> StoreHealth {
        self.commits.health_changed(seen).await
    }

    async fn close(&self) {
        self.commits.close().await;
    }
}

#[async_trait]
impl Reader for SqliteJournal {
    async fn facts(&self, query: FactQuery) -> Result<Option<FactPage>, Unavailable> {
        self.reader.facts(query).await
    }

    async fn tool_call(&self, run: &RunKey, tool_call: &ToolCallId) -> Result<Option<ToolCallSummary>, Unavailable> {
        self.reader.tool_call(run, tool_call).await
    }

    async fn tool_calls(&self, run: &RunKey, after: u64, limit: PageLimit) -> Result<Option<ToolCallPage>, Unavailable> {
        self.reader.tool_calls(run, after, limit).await
    }
}

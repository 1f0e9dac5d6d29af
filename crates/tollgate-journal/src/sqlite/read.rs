//! The reading side: lookups in one round trip, pages by key, filters by the domain's one rule.

use std::{
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use rusqlite::{Connection, Row, params};
use tokio::sync::Semaphore;
use tollgate_domain::{
    BundleName, Fact, FactPage, FactQuery, History, InvocationId, InvocationKey, InvocationRecord, InvocationState,
    LastActivated, Lookup, OwnerKind, PageLimit, Reader, Receipt, RunKey, SidecarId, Started, StoredFact, ToolCallId,
    ToolCallPage, ToolCallSummary, Unavailable, UnavailableCause,
};

use super::{
    cause::cause_of,
    open::{self, OpenError, Target},
    rows::{self, CORRUPT, Read, history_columns, stored},
};
use crate::{
    ledger::Known,
    summary::{self, last_activated, last_of_decision},
};

/// How many facts are looked at in one round trip, where a filter drops some of them.
const CHUNK_ROWS: u32 = 512;
/// From how many tool calls or invocations on the keys of a run are too many to keep them all in mind.
const KEYS_MAX_COUNT: u32 = 1_024;
/// How long a reader waits for a connection.
const PLACE_WAIT: Duration = Duration::from_secs(5);

/// Reads a SQLite journal, with or without a sidecar that serves from it; takes no lock and writes nothing.
#[derive(Clone, Debug)]
pub struct SqliteReader(Arc<Readers>);

/// Connections, of which each reads on a thread of its own while it does.
#[derive(Debug)]
struct Readers {
    target: Target,
    idle: Mutex<Vec<Connection>>,
    places: Arc<Semaphore>,
    connections: u32,
}

/// A history by its columns; the first five parameters of a query.
macro_rules! the_history {
    () => {
        "h.kind = ?1 AND h.tenant = ?2 AND h.workspace = ?3 AND h.owner = ?4 AND h.run = ?5"
    };
}

/// The facts of an invocation `i`.
macro_rules! its_facts {
    () => {
        " LEFT JOIN facts s ON s.position = i.started LEFT JOIN facts e ON e.position = i.evaluated \
         LEFT JOIN facts x ON x.position = i.terminal "
    };
}

/// The columns of an invocation, as [`invocation_record`] reads them.
macro_rules! invocation_columns {
    () => {
        "i.invocation, t.tool_call, i.attempt, i.state, s.sequence, s.position, s.body, \
         e.sequence, e.position, e.body, x.sequence, x.position, x.body"
    };
}

/// Tool calls `t` of a history with their latest attempts, as [`tool_call_summary`] reads them.
macro_rules! tool_calls {
    () => {
        concat!(
            "SELECT t.first, t.tool_call, t.tool, t.attempts, i.invocation, i.state, s.body, e.body, x.body \
             FROM histories h CROSS JOIN tool_calls t ON t.history = h.id JOIN invocations i ON i.started = t.latest",
            its_facts!(),
            "WHERE ",
            the_history!()
        )
    };
}

const HISTORY: &str = concat!("SELECT h.id FROM histories h WHERE ", the_history!());
const LOOKUP: &str = concat!(
    "SELECT c.attempts, c.tool, ",
    invocation_columns!(),
    " FROM histories h LEFT JOIN tool_calls c ON c.history = h.id AND c.tool_call = ?6 \
     LEFT JOIN invocations i ON i.history = h.id AND i.invocation = ?7 LEFT JOIN tool_calls t ON t.first = i.tool_call",
    its_facts!(),
    "WHERE ",
    the_history!()
);
const INVOCATION: &str = concat!(
    "SELECT ",
    invocation_columns!(),
    " FROM histories h CROSS JOIN invocations i ON i.history = h.id AND i.invocation = ?6 \
     LEFT JOIN tool_calls t ON t.first = i.tool_call",
    its_facts!(),
    "WHERE ",
    the_history!()
);
const TOOL_CALL: &str = concat!(tool_calls!(), " AND t.tool_call = ?6");
const TOOL_CALLS: &str = concat!(tool_calls!(), " AND t.first > ?6 ORDER BY t.first LIMIT ?7");

impl SqliteReader {
    /// Opens a journal to read it.
    pub async fn open(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        let path = path.as_ref().to_owned();
        let opening = path.clone();
        let opened = tokio::task::spawn_blocking(move || open::open_to_read(&path)).await;
        opened.unwrap_or(Err(OpenError::Database { path: opening, cause: UnavailableCause::Other }))
    }

    /// Readers of a database that was checked; the first connects at once.
    pub(super) fn connect(target: Target, connections: u32) -> rusqlite::Result<Self> {
        let connections = connections.max(1);
        let idle = Mutex::new(vec![target.connect()?]);
        Ok(Self(Arc::new(Readers { target, idle, places: Arc::new(Semaphore::new(connections as usize)), connections })))
    }

    /// Ends reading, and waits for the readers that are at it.
    pub async fn close(&self) {
        // An error is an earlier close.
        drop(self.0.places.acquire_many(self.0.connections).await);
        self.0.places.close();
        self.0.idle().clear();
    }

    /// Reads on a thread where waiting for the disk holds up nobody else.
    async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Connection) -> Read<T> + Send + 'static,
    ) -> Result<T, Unavailable> {
        let readers = Arc::clone(&self.0);
        let place = tokio::time::timeout(PLACE_WAIT, Arc::clone(&readers.places).acquire_owned()).await;
        let place = place
            .map_err(|_| Unavailable::refused(UnavailableCause::Overloaded))?
            .map_err(|_| Unavailable::refused(UnavailableCause::Closed))?;
        let reading = tokio::task::spawn_blocking(move || {
            // Held by the thread, which goes on where nobody waits for it any more.
            let _place = place;
            readers.read(read)
        });
        reading.await.unwrap_or(Err(UnavailableCause::Other)).map_err(Unavailable::refused)
    }

    /// What the record has of a tool call and an invocation; and how their run stands, where that is asked for.
    pub(super) async fn lookup(
        &self,
        run: &RunKey,
        tool_call: &ToolCallId,
        invocation: &InvocationId,
        whole: bool,
    ) -> Result<(Lookup, Option<Known>), Unavailable> {
        let (history, tool_call, invocation) = (History::Run(run.clone()), tool_call.clone(), invocation.clone());
        self.read(move |connection| {
            // One transaction, so that both are of the same moment.
            let transaction = connection.unchecked_transaction().map_err(|error| cause_of(&error))?;
            let [kind, tenant, workspace, owner, run] = history_columns(&history);
            let parameters = params![kind, tenant, workspace, owner, run, tool_call.as_str(), invocation.as_str()];
            let lookup = rows::first(&transaction, LOOKUP, parameters, |row| {
                let tool = rows::optional_text(row, 1)?;
                let attempts = if tool.is_some() { rows::small_number(row, 0)? } else { 0 };
                Ok(Lookup { attempts, tool, invocation: invocation_record(row, 2)? })
            })?;
            let known = whole.then(|| known(&transaction, &history)).transpose()?;
            Ok((lookup.unwrap_or_default(), known))
        })
        .await
    }

    pub(super) async fn invocation(
        &self,
        run: &RunKey,
        invocation: &InvocationId,
    ) -> Result<Option<InvocationRecord>, Unavailable> {
        let (history, invocation) = (History::Run(run.clone()), invocation.clone());
        self.read(move |connection| {
            let [kind, tenant, workspace, owner, run] = history_columns(&history);
            let parameters = params![kind, tenant, workspace, owner, run, invocation.as_str()];
            Ok(rows::first(connection, INVOCATION, parameters, |row| invocation_record(row, 0))?.flatten())
        })
        .await
    }

    pub(super) async fn undecided(&self) -> Result<Vec<(RunKey, InvocationKey, Started)>, Unavailable> {
        let sql = "SELECT h.kind, h.tenant, h.workspace, h.owner, h.run, t.tool_call, i.invocation, t.tool, s.body \
                   FROM invocations i JOIN histories h ON h.id = i.history JOIN tool_calls t ON t.first = i.tool_call \
                   JOIN facts s ON s.position = i.started WHERE i.state = 'started' ORDER BY i.started";
        let undecided = |row: &Row<'_>| {
            let key =
                InvocationKey { tool_call: rows::text(row, 5)?, invocation: rows::text(row, 6)?, tool: rows::text(row, 7)? };
            Ok((run_key(row)?, key, optional_fact_of(row, 8, summary::started)?.ok_or(CORRUPT)?))
        };
        self.read(move |connection| rows::all(connection, sql, [], undecided)).await
    }

    pub(super) async fn last_activated(
        &self,
        bundle: &BundleName,
        sidecar: &SidecarId,
    ) -> Result<Option<LastActivated>, Unavailable> {
        let sql = "SELECT f.body FROM activations a JOIN facts f ON f.position = a.position WHERE a.bundle = ? AND a.sidecar = ?";
        let (bundle, sidecar) = (bundle.clone(), sidecar.clone());
        self.read(move |connection| {
            rows::first(connection, sql, [bundle.as_str(), sidecar.as_str()], |row| match rows::optional_fact(row, 0)? {
                Some(Fact::GenerationActivated(fact)) => Ok(last_activated(fact)),
                _ => Err(CORRUPT),
            })
        })
        .await
    }
}

#[async_trait]
impl Reader for SqliteReader {
    async fn facts(&self, query: FactQuery) -> Result<Option<FactPage>, Unavailable> {
        self.read(move |connection| {
            let Some(history) = history(connection, &query.history)? else { return Ok(None) };
            let limit = query.limit.get();
            let wanted = limit as usize;
            let rows = if query.filter == tollgate_domain::FactFilter::default() { limit + 1 } else { CHUNK_ROWS };
            let mut facts = Vec::new();
            let mut after = query.after_sequence;
            loop {
                let chunk = chunk(connection, history, after, rows)?;
                let is_last = chunk.len() < rows as usize;
                after = chunk.last().map_or(after, |fact| fact.sequence);
                facts.extend(chunk.into_iter().filter(|fact| query.filter.matches(fact)));
                if is_last || facts.len() > wanted {
                    break;
                }
            }
            let more = facts.len() > wanted;
            facts.truncate(wanted);
            let next = facts.last().filter(|_| more).map(|fact| fact.sequence);
            Ok(Some(FactPage { facts, next }))
        })
        .await
    }

    async fn tool_call(&self, run: &RunKey, tool_call: &ToolCallId) -> Result<Option<ToolCallSummary>, Unavailable> {
        let (run, tool_call) = (History::Run(run.clone()), tool_call.clone());
        self.read(move |connection| {
            let [kind, tenant, workspace, owner, run] = history_columns(&run);
            let parameters = params![kind, tenant, workspace, owner, run, tool_call.as_str()];
            rows::first(connection, TOOL_CALL, parameters, tool_call_summary)
        })
        .await
    }

    async fn tool_calls(&self, run: &RunKey, after: u64, limit: PageLimit) -> Result<Option<ToolCallPage>, Unavailable> {
        let run = History::Run(run.clone());
        self.read(move |connection| {
            if history(connection, &run)?.is_none() {
                return Ok(None);
            }
            let [kind, tenant, workspace, owner, run] = history_columns(&run);
            let parameters = params![kind, tenant, workspace, owner, run, stored(after), limit.get() + 1];
            let read = |row: &Row<'_>| Ok((rows::number(row, 0)?, tool_call_summary(row)?));
            let mut calls = rows::all(connection, TOOL_CALLS, parameters, read)?;
            let more = calls.len() > limit.get() as usize;
            calls.truncate(limit.get() as usize);
            let next = calls.last().filter(|_| more).map(|(first, _)| *first);
            Ok(Some(ToolCallPage { tool_calls: calls.into_iter().map(|(_, call)| call).collect(), next }))
        })
        .await
    }
}

impl Readers {
    fn idle(&self) -> MutexGuard<'_, Vec<Connection>> {
        // Every change is one push or pop.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read<T>(&self, read: impl FnOnce(&Connection) -> Read<T>) -> Read<T> {
        let idle = self.idle().pop();
        let connection = match idle {
            Some(connection) => connection,
            None => self.target.connect().map_err(|error| cause_of(&error))?,
        };
        let found = read(&connection);
        // One that failed may be one that failed for good.
        if found.is_ok() {
            self.idle().push(connection);
        }
        found
    }
}

fn history(connection: &Connection, history: &History) -> Read<Option<u64>> {
    rows::first(connection, HISTORY, history_columns(history), |row| rows::number(row, 0))
}

/// Facts of a history after a sequence, all of them.
fn chunk(connection: &Connection, history: u64, after: u64, limit: u32) -> Read<Vec<StoredFact>> {
    let sql = "SELECT sequence, position, tool_call, invocation, tool, attempt, previous, digest, body \
               FROM facts WHERE history = ? AND sequence > ? ORDER BY sequence LIMIT ?";
    rows::all(connection, sql, params![stored(history), stored(after), limit], stored_fact)
}

/// How a history stands, with all its keys where they are few.
fn known(connection: &Connection, of: &History) -> Read<Known> {
    let Some(id) = history(connection, of)? else { return Ok(Known::absent(of)) };
    let key = stored(id);
    let last = "SELECT sequence, digest FROM facts WHERE history = ? ORDER BY sequence DESC LIMIT 1";
    let (sequence, digest) = rows::one(connection, last, [key], |row| Ok((rows::number(row, 0)?, rows::digest(row, 1)?)))?;
    let calls = "SELECT tool_call, first, tool, attempts, latest FROM tool_calls WHERE history = ? LIMIT ?";
    let calls = rows::all(connection, calls, params![key, KEYS_MAX_COUNT], |row| {
        Ok((rows::text(row, 0)?, rows::known_tool_call(row, 1)?))
    })?;
    let invocations = "SELECT invocation, started, tool_call, attempt, state, evaluated, terminal \
                       FROM invocations WHERE history = ? LIMIT ?";
    let invocations = rows::all(connection, invocations, params![key, KEYS_MAX_COUNT], |row| {
        Ok((rows::text(row, 0)?, rows::known_invocation(row, 1)?))
    })?;
    let few = calls.len().max(invocations.len()) < KEYS_MAX_COUNT as usize;
    let last = (id, sequence, digest);
    Ok(if few { Known::complete(last, calls, invocations) } else { Known::incomplete(last) })
}

fn stored_fact(row: &Row<'_>) -> Read<StoredFact> {
    Ok(StoredFact {
        sequence: rows::number(row, 0)?,
        position: rows::number(row, 1)?,
        tool_call: rows::optional_text(row, 2)?,
        invocation: rows::optional_text(row, 3)?,
        tool: rows::optional_text(row, 4)?,
        attempt: rows::small_number(row, 5)?,
        previous: rows::digest(row, 6)?,
        digest: rows::digest(row, 7)?,
        fact: rows::optional_fact(row, 8)?.ok_or(CORRUPT)?,
    })
}

/// The invocation whose `invocation_columns!` begin at a column; `None` where there is none.
fn invocation_record(row: &Row<'_>, at: usize) -> Read<Option<InvocationRecord>> {
    let Some(invocation) = rows::optional_text(row, at)? else { return Ok(None) };
    let attempt = rows::small_number(row, at + 2)?;
    let place = |column| {
        let (Some(sequence), Some(position)) = (rows::optional_number(row, column)?, rows::optional_number(row, column + 1)?)
        else {
            return Ok(None);
        };
        Ok(Some(Receipt { sequence, position, attempt }))
    };
    let started_at = place(at + 4)?.ok_or(CORRUPT)?;
    let evaluated = optional_fact_of(row, at + 9, summary::evaluated)?;
    let receipt = last_of_decision(started_at, place(at + 7)?, place(at + 10)?, evaluated.as_ref());
    Ok(Some(InvocationRecord {
        tool_call: rows::text(row, at + 1)?,
        invocation,
        state: rows::state(row, at + 3)?,
        started: optional_fact_of(row, at + 6, summary::started)?.ok_or(CORRUPT)?,
        evaluated,
        terminal: optional_fact_of(row, at + 12, summary::terminal)?,
        receipt,
    }))
}

fn tool_call_summary(row: &Row<'_>) -> Read<ToolCallSummary> {
    let state: InvocationState = rows::state(row, 5)?;
    let started = optional_fact_of(row, 6, summary::started)?.ok_or(CORRUPT)?;
    let (evaluated, terminal) = (optional_fact_of(row, 7, summary::evaluated)?, optional_fact_of(row, 8, summary::terminal)?);
    Ok(summary::tool_call_summary(
        (rows::text(row, 1)?, rows::text(row, 2)?, rows::small_number(row, 3)?),
        (rows::text(row, 4)?, state),
        &started,
        evaluated,
        terminal,
    ))
}

fn run_key(row: &Row<'_>) -> Read<RunKey> {
    let kind: String = rows::text(row, 0)?;
    let owner_kind = [OwnerKind::Run, OwnerKind::Flow].into_iter().find(|known| known.as_str() == kind).ok_or(CORRUPT)?;
    Ok(RunKey {
        tenant: rows::text(row, 1)?,
        workspace: rows::text(row, 2)?,
        owner_kind,
        owner: rows::text(row, 3)?,
        run: rows::text(row, 4)?,
    })
}

/// A fact of the kind that `of` takes, or NULL; any other kind is damage.
fn optional_fact_of<T>(row: &Row<'_>, column: usize, of: fn(Fact) -> Option<T>) -> Read<Option<T>> {
    rows::optional_fact(row, column)?.map(|fact| of(fact).ok_or(CORRUPT)).transpose()
}

//! The reading side: lookups in one round trip, pages by key, filters by the domain's one rule.

use std::path::Path;

use async_trait::async_trait;
use sqlx::{
    SqlitePool,
    sqlite::{SqliteConnectOptions, SqlitePoolOptions, SqliteRow},
};
use tollgate_domain::{
    BundleName, Fact, FactPage, FactQuery, History, InvocationId, InvocationKey, InvocationRecord, InvocationState,
    LastActivated, Lookup, OwnerKind, PageLimit, Reader, Receipt, RunKey, SidecarId, Started, StoredFact, ToolCallId,
    ToolCallPage, ToolCallSummary, Unavailable,
};

use super::{
    cause::{refused, refused_by},
    open::{self, OpenError},
    rows::{self, CORRUPT, Read, history_columns, stored},
};
use crate::summary::{self, last_activated, last_of_decision};

/// How many facts are looked at in one round trip, where a filter drops some of them.
const CHUNK_ROWS: u32 = 512;

/// Reads a SQLite journal, with or without a sidecar that serves from it; takes no lock and writes nothing.
#[derive(Clone, Debug)]
pub struct SqliteReader {
    pool: SqlitePool,
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
        open::open_to_read(path.as_ref()).await
    }

    /// Readers with these options, of a database that was checked.
    pub(super) async fn connect(options: SqliteConnectOptions, connections: u32) -> Result<Self, sqlx::Error> {
        let pool = SqlitePoolOptions::new()
            .max_connections(connections.max(1))
            .min_connections(1)
            .test_before_acquire(false)
            .idle_timeout(None)
            .max_lifetime(None)
            .acquire_timeout(std::time::Duration::from_secs(5));
        Ok(Self { pool: pool.connect_with(options).await? })
    }

    /// Ends reading, and waits for the readers that are at it.
    pub async fn close(&self) {
        self.pool.close().await;
    }

    pub(super) async fn lookup(
        &self,
        run: &RunKey,
        tool_call: &ToolCallId,
        invocation: &InvocationId,
    ) -> Result<Lookup, Unavailable> {
        let query = of_history(LOOKUP, &History::Run(run.clone()));
        let row = query.bind(tool_call.as_str().to_owned()).bind(invocation.as_str().to_owned()).fetch_optional(&self.pool);
        let Some(row) = row.await.map_err(|error| refused_by(&error))? else { return Ok(Lookup::default()) };
        let lookup = || {
            let tool = rows::optional_text(&row, 1)?;
            let attempts = if tool.is_some() { rows::small_number(&row, 0)? } else { 0 };
            Ok(Lookup { attempts, tool, invocation: invocation_record(&row, 2)? })
        };
        lookup().map_err(refused)
    }

    pub(super) async fn invocation(
        &self,
        run: &RunKey,
        invocation: &InvocationId,
    ) -> Result<Option<InvocationRecord>, Unavailable> {
        let query = of_history(INVOCATION, &History::Run(run.clone())).bind(invocation.as_str().to_owned());
        let row = query.fetch_optional(&self.pool).await.map_err(|error| refused_by(&error))?;
        row.map_or(Ok(None), |row| invocation_record(&row, 0)).map_err(refused)
    }

    pub(super) async fn undecided(&self) -> Result<Vec<(RunKey, InvocationKey, Started)>, Unavailable> {
        let rows = sqlx::query(
            "SELECT h.kind, h.tenant, h.workspace, h.owner, h.run, t.tool_call, i.invocation, t.tool, s.body \
             FROM invocations i JOIN histories h ON h.id = i.history JOIN tool_calls t ON t.first = i.tool_call \
             JOIN facts s ON s.position = i.started WHERE i.state = 'started' ORDER BY i.started",
        );
        let rows = rows.fetch_all(&self.pool).await.map_err(|error| refused_by(&error))?;
        let undecided = rows.iter().map(|row| {
            let key =
                InvocationKey { tool_call: rows::text(row, 5)?, invocation: rows::text(row, 6)?, tool: rows::text(row, 7)? };
            Ok((run_key(row)?, key, optional_fact_of(row, 8, summary::started)?.ok_or(CORRUPT)?))
        });
        undecided.collect::<Read<_>>().map_err(refused)
    }

    pub(super) async fn last_activated(
        &self,
        bundle: &BundleName,
        sidecar: &SidecarId,
    ) -> Result<Option<LastActivated>, Unavailable> {
        let query = sqlx::query(
            "SELECT f.body FROM activations a JOIN facts f ON f.position = a.position WHERE a.bundle = ? AND a.sidecar = ?",
        );
        let query = query.bind(bundle.as_str().to_owned()).bind(sidecar.as_str().to_owned());
        let row = query.fetch_optional(&self.pool).await.map_err(|error| refused_by(&error))?;
        let Some(row) = row else { return Ok(None) };
        match rows::optional_fact(&row, 0).map_err(refused)? {
            Some(Fact::GenerationActivated(fact)) => Ok(Some(last_activated(fact))),
            _ => Err(refused(CORRUPT)),
        }
    }

    async fn history(&self, history: &History) -> Result<Option<u64>, Unavailable> {
        let query = of_history(HISTORY, history);
        let row = query.fetch_optional(&self.pool).await.map_err(|error| refused_by(&error))?;
        row.map(|row| rows::number(&row, 0)).transpose().map_err(refused)
    }

    /// Facts of a history after a sequence, all of them.
    async fn chunk(&self, history: u64, after: u64, rows: u32) -> Result<Vec<StoredFact>, Unavailable> {
        let query = sqlx::query(
            "SELECT sequence, position, tool_call, invocation, tool, attempt, previous, digest, body \
             FROM facts WHERE history = ? AND sequence > ? ORDER BY sequence LIMIT ?",
        );
        let query = query.bind(stored(history)).bind(stored(after)).bind(rows);
        let rows = query.fetch_all(&self.pool).await.map_err(|error| refused_by(&error))?;
        rows.iter().map(stored_fact).collect::<Read<_>>().map_err(refused)
    }
}

#[async_trait]
impl Reader for SqliteReader {
    async fn facts(&self, query: FactQuery) -> Result<Option<FactPage>, Unavailable> {
        let Some(history) = self.history(&query.history).await? else { return Ok(None) };
        let limit = query.limit.get();
        let wanted = limit as usize;
        let rows = if query.filter == tollgate_domain::FactFilter::default() { limit + 1 } else { CHUNK_ROWS };
        let mut facts = Vec::new();
        let mut after = query.after_sequence;
        loop {
            let chunk = self.chunk(history, after, rows).await?;
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
    }

    async fn tool_call(&self, run: &RunKey, tool_call: &ToolCallId) -> Result<Option<ToolCallSummary>, Unavailable> {
        let query = of_history(TOOL_CALL, &History::Run(run.clone())).bind(tool_call.as_str().to_owned());
        let row = query.fetch_optional(&self.pool).await.map_err(|error| refused_by(&error))?;
        row.map(|row| tool_call_summary(&row)).transpose().map_err(refused)
    }

    async fn tool_calls(&self, run: &RunKey, after: u64, limit: PageLimit) -> Result<Option<ToolCallPage>, Unavailable> {
        let history = History::Run(run.clone());
        if self.history(&history).await?.is_none() {
            return Ok(None);
        }
        let query = of_history(TOOL_CALLS, &history).bind(stored(after)).bind(limit.get() + 1);
        let mut rows = query.fetch_all(&self.pool).await.map_err(|error| refused_by(&error))?;
        let more = rows.len() > limit.get() as usize;
        rows.truncate(limit.get() as usize);
        let next = rows.last().filter(|_| more).map(|row| rows::number(row, 0)).transpose().map_err(refused)?;
        let tool_calls = rows.iter().map(tool_call_summary).collect::<Read<_>>().map_err(refused)?;
        Ok(Some(ToolCallPage { tool_calls, next }))
    }
}

/// A query whose first five parameters are the columns of a history.
fn of_history(sql: &'static str, history: &History) -> sqlx::query::Query<'static, sqlx::Sqlite, sqlx::sqlite::SqliteArguments> {
    let query = sqlx::query(sql);
    history_columns(history).into_iter().fold(query, |query, column| query.bind(column.to_owned()))
}

fn stored_fact(row: &SqliteRow) -> Read<StoredFact> {
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
fn invocation_record(row: &SqliteRow, at: usize) -> Read<Option<InvocationRecord>> {
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

fn tool_call_summary(row: &SqliteRow) -> Read<ToolCallSummary> {
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

fn run_key(row: &SqliteRow) -> Read<RunKey> {
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
fn optional_fact_of<T>(row: &SqliteRow, column: usize, of: fn(Fact) -> Option<T>) -> Read<Option<T>> {
    rows::optional_fact(row, column)?.map(|fact| of(fact).ok_or(CORRUPT)).transpose()
}

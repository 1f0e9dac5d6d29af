//! The writing side: one connection, a batch in two round trips, and a way back after failure.

use std::{collections::HashMap, path::PathBuf};

use sqlx::{Connection, QueryBuilder, Sqlite, SqliteConnection, sqlite::SqliteConnectOptions};
use tollgate_domain::{GenerationNumbers, NumberRequest, ResourceId, Unavailable, UnavailableCause};

use super::{
    cause::{cause_of, cause_of_io, refused, refused_by},
    file::{Sight, WriterLock, fill_log, log_of},
    open,
    read::SqliteReader,
    rows::{self, CORRUPT, history_columns, stored},
};
use crate::{
    backend::Backend,
    ledger::{Batch, Counters, FactRow, Found, KnownInvocation, KnownToolCall, Wanted},
    numbering::{LastHook, Numbered, Numbering},
};

/// Most rows of one INSERT; SQLite takes 32,766 parameters, and a fact has twelve.
const ROWS_MAX_COUNT: usize = 2_048;
/// Most rows of a batch whose statements are kept prepared: those of single calls, which recur.
const PREPARED_MAX_ROWS: usize = 8;
/// What must fit in before a store that failed serves again.
const PROBE_BYTES: i64 = 262_144;

/// The writing side of a SQLite journal.
#[derive(Debug)]
pub(super) struct SqliteBackend {
    pub(super) connection: Option<SqliteConnection>,
    pub(super) connect: SqliteConnectOptions,
    pub(super) path: PathBuf,
    pub(super) database: Sight,
    pub(super) log: Sight,
    /// The position after the last one that was acknowledged: what the database may never fall behind.
    pub(super) next: u64,
    pub(super) wal_bytes: u64,
    pub(super) reader: SqliteReader,
    pub(super) lock: Option<WriterLock>,
}

impl Backend for SqliteBackend {
    async fn load(&mut self, wanted: &[Wanted]) -> Result<Vec<Found>, UnavailableCause> {
        let connection = self.connection.as_mut().ok_or(UnavailableCause::Io)?;
        load(connection, wanted).await
    }

    async fn commit(&mut self, batch: Batch) -> Result<(), Unavailable> {
        let persistent = batch.facts.len() <= PREPARED_MAX_ROWS;
        let next = batch.facts.last().map_or(self.next, |fact| fact.position + 1);
        let mut statements = insert(batch);
        self.write(&mut statements, persistent).await?;
        self.next = next;
        Ok(())
    }

    async fn number(&mut self, request: &NumberRequest) -> Result<GenerationNumbers, Unavailable> {
        let connection = self.connection.as_mut().ok_or(refused(UnavailableCause::Io))?;
        match numbered(connection, request).await.map_err(refused)?.number(request) {
            Numbering::Given(numbers) => Ok(numbers),
            Numbering::New(numbers) => {
                self.write(&mut insert_generation(request, &numbers), false).await?;
                Ok(numbers)
            }
        }
    }

    /// A sync that failed may have left pages of the log that no later sync will write, although they
    /// read back well. So nothing is built upon the log that was: its content is written into the
    /// database and synced there, and only an empty log is written to again.
    async fn heal(&mut self) -> Result<Counters, UnavailableCause> {
        if let Some(connection) = self.connection.take() {
            drop(connection.close().await);
        }
        if !Sight::of(&self.path).is_ok_and(|now| now.continues(self.database)) {
            return Err(UnavailableCause::Io);
        }
        if !self.lock.as_ref().is_some_and(WriterLock::holds) {
            self.lock = None;
            let taken = WriterLock::take(&self.path).map_err(|error| cause_of_io(error.kind()))?;
            self.lock = Some(taken.ok_or(UnavailableCause::Io)?);
        }
        let mut connection = SqliteConnection::connect_with(&self.connect).await.map_err(|error| cause_of(&error))?;
        open::verify_pragmas(&mut connection).await?;
        open::empty_log(&mut connection).await?;
        for bytes in [PROBE_BYTES, 0] {
            let probe = sqlx::query("UPDATE probe SET body = zeroblob(?) WHERE id = 1").bind(bytes);
            probe.execute(&mut connection).await.map_err(|error| cause_of(&error))?;
        }
        let counters = open::counters(&mut connection).await?;
        if counters.position < self.next {
            return Err(CORRUPT);
        }
        fill_log(&self.path, self.wal_bytes).await;
        self.log = Sight::of(&log_of(&self.path)).map_err(|error| cause_of_io(error.kind()))?;
        self.connection = Some(connection);
        Ok(counters)
    }

    async fn close(&mut self) {
        // Only the last connection can take the log's files away.
        self.reader.close().await;
        if let Some(mut connection) = self.connection.take() {
            // Best effort: whatever stays in the log is durable there.
            open::empty_log(&mut connection).await.ok();
            drop(connection.close().await);
        }
        self.lock = None;
    }
}

impl SqliteBackend {
    /// Runs statements in one transaction. Whether anything may have landed is known by which of the
    /// two round trips failed: before `COMMIT` was sent, nothing has.
    async fn write(&mut self, statements: &mut QueryBuilder<Sqlite>, persistent: bool) -> Result<(), Unavailable> {
        let connection = self.connection.as_mut().ok_or(refused(UnavailableCause::Io))?;
        if let Err(error) = statements.build().persistent(persistent).execute(&mut *connection).await {
            self.drop_connection().await;
            return Err(refused_by(&error));
        }
        if let Err(error) = sqlx::query("COMMIT").execute(&mut *connection).await {
            self.drop_connection().await;
            return Err(Unavailable { cause: cause_of(&error), may_have_landed: true });
        }
        if !self.is_in_place() {
            // Committed to a file that nobody will find again, or that another sidecar writes to as well.
            self.drop_connection().await;
            return Err(Unavailable { cause: UnavailableCause::Io, may_have_landed: true });
        }
        Ok(())
    }

    /// Ends the transaction and its locks with the connection.
    async fn drop_connection(&mut self) {
        if let Some(connection) = self.connection.take() {
            drop(connection.close().await);
        }
    }

    /// Whether the files are those that are written to, whole, and locked. Three `stat` calls, after every
    /// commit and before its entries are acknowledged.
    fn is_in_place(&mut self) -> bool {
        let (Ok(database), Ok(log)) = (Sight::of(&self.path), Sight::of(&log_of(&self.path))) else { return false };
        let in_place =
            database.continues(self.database) && log.continues(self.log) && self.lock.as_ref().is_some_and(WriterLock::holds);
        if in_place {
            (self.database, self.log) = (database, log);
        }
        in_place
    }
}

/// Everything that is wanted, in one statement.
async fn load(connection: &mut SqliteConnection, wanted: &[Wanted]) -> Result<Vec<Found>, UnavailableCause> {
    let mut query =
        QueryBuilder::<Sqlite>::new("WITH wanted (n, kind, tenant, workspace, owner, run, tool_call, invocation) AS (");
    query.push_values(wanted.iter().enumerate(), |mut row, (n, wanted)| {
        row.push_bind(stored(n as u64));
        for column in history_columns(&wanted.history) {
            row.push_bind(column.to_owned());
        }
        let (tool_call, invocation) = wanted.invocation.as_ref().map_or((None, None), |(call, id)| (Some(call), Some(id)));
        row.push_bind(tool_call.map(|id| id.as_str().to_owned()));
        row.push_bind(invocation.map(|id| id.as_str().to_owned()));
    });
    query.push(
        ") SELECT w.n, h.id, f.sequence, f.digest, t.first, t.tool, t.attempts, t.latest, \
         i.started, i.tool_call, i.attempt, i.state, i.evaluated, i.terminal \
         FROM wanted w \
         CROSS JOIN histories h ON h.run = w.run AND h.owner = w.owner AND h.workspace = w.workspace AND h.tenant = w.tenant \
           AND h.kind = w.kind \
         CROSS JOIN facts f ON f.history = h.id AND f.sequence = (SELECT max(sequence) FROM facts WHERE history = h.id) \
         LEFT JOIN tool_calls t ON t.history = h.id AND t.tool_call = w.tool_call \
         LEFT JOIN invocations i ON i.history = h.id AND i.invocation = w.invocation",
    );
    let persistent = wanted.len() == 1;
    let rows = query.build().persistent(persistent).fetch_all(connection).await.map_err(|error| cause_of(&error))?;
    let mut found: Vec<Found> = wanted.iter().map(|_| Found::default()).collect();
    for row in &rows {
        let n = usize::try_from(rows::number(row, 0)?).map_err(|_| CORRUPT)?;
        let slot = found.get_mut(n).ok_or(CORRUPT)?;
        slot.history = Some((rows::number(row, 1)?, rows::number(row, 2)?, rows::digest(row, 3)?));
        if let Some(first) = rows::optional_number(row, 4)? {
            slot.tool_call = Some(KnownToolCall {
                first,
                tool: rows::text(row, 5)?,
                attempts: rows::small_number(row, 6)?,
                latest: rows::number(row, 7)?,
            });
        }
        if let Some(started) = rows::optional_number(row, 8)? {
            slot.invocation = Some(KnownInvocation {
                started,
                tool_call: rows::number(row, 9)?,
                attempt: rows::small_number(row, 10)?,
                state: rows::state(row, 11)?,
                evaluated: rows::optional_number(row, 12)?,
                terminal: rows::optional_number(row, 13)?,
            });
        }
    }
    Ok(found)
}

/// A batch as statements: one for each table that it adds to.
fn insert(batch: Batch) -> QueryBuilder<Sqlite> {
    let Batch { histories, mut facts, tool_calls, invocations, activations } = batch;
    let mut sql = QueryBuilder::new("BEGIN IMMEDIATE;");
    if !histories.is_empty() {
        sql.push("INSERT INTO histories (id, kind, tenant, workspace, owner, run) ");
        sql.push_values(histories, |mut row, (id, history)| {
            row.push_bind(stored(id));
            for column in history_columns(&history) {
                row.push_bind(column.to_owned());
            }
        });
        sql.push(";");
    }
    while !facts.is_empty() {
        let rest = facts.split_off(facts.len().min(ROWS_MAX_COUNT));
        insert_facts(&mut sql, facts);
        facts = rest;
    }
    if !tool_calls.is_empty() {
        sql.push("INSERT INTO tool_calls (first, history, tool_call, tool, attempts, latest) ");
        sql.push_values(tool_calls, |mut row, (first, call)| {
            row.push_bind(stored(first)).push_bind(stored(call.history)).push_bind(call.tool_call.as_str().to_owned());
            row.push_bind(call.known.tool.as_str().to_owned());
            row.push_bind(i64::from(call.known.attempts)).push_bind(stored(call.known.latest));
        });
        sql.push(" ON CONFLICT (first) DO UPDATE SET attempts = excluded.attempts, latest = excluded.latest;");
    }
    if !invocations.is_empty() {
        sql.push("INSERT INTO invocations (started, history, invocation, tool_call, attempt, state, evaluated, terminal) ");
        sql.push_values(invocations, |mut row, (started, invocation)| {
            let known = invocation.known;
            row.push_bind(stored(started)).push_bind(stored(invocation.history));
            row.push_bind(invocation.invocation.as_str().to_owned()).push_bind(stored(known.tool_call));
            row.push_bind(i64::from(known.attempt)).push_bind(known.state.as_str());
            row.push_bind(known.evaluated.map(stored)).push_bind(known.terminal.map(stored));
        });
        sql.push(
            " ON CONFLICT (started) DO UPDATE SET state = excluded.state, evaluated = excluded.evaluated, \
             terminal = excluded.terminal;",
        );
    }
    for (position, activated) in activations {
        sql.push("INSERT INTO activations (bundle, sidecar, position) ");
        sql.push_values([()], |mut row, ()| {
            row.push_bind(activated.generation.bundle.as_str().to_owned());
            row.push_bind(activated.sidecar.as_str().to_owned());
            row.push_bind(stored(position));
        });
        sql.push(" ON CONFLICT (bundle, sidecar) DO UPDATE SET position = excluded.position;");
    }
    sql
}

fn insert_facts(sql: &mut QueryBuilder<Sqlite>, facts: Vec<FactRow>) {
    sql.push(
        "INSERT INTO facts (position, history, sequence, kind, tool_call, invocation, tool, attempt, at, previous, digest, body) ",
    );
    sql.push_values(facts, |mut row, fact| {
        row.push_bind(stored(fact.position)).push_bind(stored(fact.history)).push_bind(stored(fact.sequence));
        row.push_bind(fact.kind.as_str());
        let key = fact.invocation;
        row.push_bind(key.as_ref().map(|key| key.tool_call.as_str().to_owned()));
        row.push_bind(key.as_ref().map(|key| key.invocation.as_str().to_owned()));
        row.push_bind(key.as_ref().map(|key| key.tool.as_str().to_owned()));
        row.push_bind(i64::from(fact.attempt)).push_bind(fact.at.as_micros());
        row.push_bind(fact.previous.as_bytes().to_vec()).push_bind(fact.digest.as_bytes().to_vec());
        row.push_bind(fact.body);
    });
    sql.push(";");
}

/// What the store knows of a bundle's numbers.
async fn numbered(connection: &mut SqliteConnection, request: &NumberRequest) -> Result<Numbered, UnavailableCause> {
    let failed = |error: sqlx::Error| cause_of(&error);
    let bundle = request.bundle.as_str();
    let row = sqlx::query(
        "SELECT ifnull(max(number), 0), max(number) FILTER (WHERE revision = ?2 AND digest = ?3) FROM generations WHERE bundle = ?1",
    )
    .bind(bundle)
    .bind(request.revision.as_str())
    .bind(request.digest.as_bytes().as_slice())
    .fetch_one(&mut *connection)
    .await
    .map_err(failed)?;
    let (highest, same) = (rows::number(&row, 0)?, rows::optional_number(&row, 1)?);
    // Of each hook the row of its last generation: SQLite takes the other columns from the row of the maximum.
    let last = "SELECT resource, max(number), generation, digest FROM generation_hooks WHERE bundle = ? GROUP BY resource";
    let mut hooks = HashMap::new();
    for row in &sqlx::query(last).bind(bundle).fetch_all(&mut *connection).await.map_err(failed)? {
        let hook = LastHook { number: rows::number(row, 1)?, generation: rows::number(row, 2)?, digest: rows::digest(row, 3)? };
        hooks.insert(rows::text::<ResourceId>(row, 0)?, hook);
    }
    let same = match same {
        None => None,
        Some(number) => {
            let of = "SELECT resource, generation FROM generation_hooks WHERE bundle = ? AND number = ?";
            let rows = sqlx::query(of).bind(bundle).bind(stored(number)).fetch_all(connection).await.map_err(failed)?;
            let hooks = rows.iter().map(|row| Ok((rows::text(row, 0)?, rows::number(row, 1)?)));
            Some(GenerationNumbers { number, hooks: hooks.collect::<Result<_, UnavailableCause>>()? })
        }
    };
    Ok(Numbered { highest, same, hooks })
}

fn insert_generation(request: &NumberRequest, numbers: &GenerationNumbers) -> QueryBuilder<Sqlite> {
    let bundle = request.bundle.as_str();
    let number = stored(numbers.number);
    let mut sql = QueryBuilder::new("BEGIN IMMEDIATE;INSERT INTO generations (bundle, number, revision, digest) ");
    sql.push_values([()], |mut row, ()| {
        row.push_bind(bundle.to_owned()).push_bind(number);
        row.push_bind(request.revision.as_str().to_owned()).push_bind(request.digest.as_bytes().to_vec());
    });
    sql.push(";");
    for hooks in request.hooks.chunks(ROWS_MAX_COUNT) {
        sql.push("INSERT INTO generation_hooks (bundle, number, resource, generation, digest) ");
        sql.push_values(hooks, |mut row, (resource, digest)| {
            let generation = numbers.hooks.get(resource).copied().unwrap_or_default();
            row.push_bind(bundle.to_owned()).push_bind(number).push_bind(resource.as_str().to_owned());
            row.push_bind(stored(generation)).push_bind(digest.as_bytes().to_vec());
        });
        sql.push(";");
    }
    sql
}

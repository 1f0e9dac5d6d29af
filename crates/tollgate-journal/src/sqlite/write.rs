//! The writing side: one connection on a thread of its own, a batch in one transaction, and a way back
//! after failure.

use std::{collections::HashMap, path::PathBuf};

use rusqlite::{Connection, Row, params};
use tollgate_domain::{GenerationNumbers, NumberRequest, ResourceId, Unavailable, UnavailableCause};

use super::{
    cause::{cause_of, cause_of_io, refused_by},
    file::{Sight, WriterLock, fill_log, log_of},
    open,
    read::SqliteReader,
    rows::{self, CORRUPT, history_columns, stored},
};
use crate::{
    backend::Backend,
    ledger::{Batch, Counters, FactRow, Found, Wanted},
    numbering::{LastHook, Numbered, Numbering},
};

/// What must fit in before a store that failed serves again.
const PROBE_BYTES: i64 = 262_144;

/// The writing side as the group commit sees it, on a thread that may wait for the disk.
#[derive(Debug)]
pub(super) struct SqliteBackend {
    pub(super) writer: Writer,
    pub(super) reader: SqliteReader,
}

/// The writing side of a SQLite journal.
#[derive(Debug)]
pub(super) struct Writer {
    pub(super) connection: Option<Connection>,
    pub(super) path: PathBuf,
    pub(super) database: Sight,
    pub(super) log: Sight,
    /// The position after the last one that was acknowledged: what the database may never fall behind.
    pub(super) next: u64,
    pub(super) wal_bytes: u64,
    pub(super) lock: Option<WriterLock>,
}

impl Backend for SqliteBackend {
    async fn load(&mut self, wanted: &[Wanted]) -> Result<Vec<Found>, UnavailableCause> {
        self.writer.load(wanted)
    }

    async fn commit(&mut self, batch: Batch) -> Result<(), Unavailable> {
        self.writer.commit(&batch)
    }

    async fn number(&mut self, request: &NumberRequest) -> Result<GenerationNumbers, Unavailable> {
        self.writer.number(request)
    }

    async fn heal(&mut self) -> Result<Counters, UnavailableCause> {
        self.writer.heal()
    }

    async fn close(&mut self) {
        // Only the last connection can take the log's files away.
        self.reader.close().await;
        self.writer.close();
    }
}

impl Writer {
    fn load(&self, wanted: &[Wanted]) -> Result<Vec<Found>, UnavailableCause> {
        let connection = self.connection.as_ref().ok_or(UnavailableCause::Io)?;
        wanted.iter().map(|wanted| load(connection, wanted)).collect()
    }

    fn commit(&mut self, batch: &Batch) -> Result<(), Unavailable> {
        self.write(|connection| insert(connection, batch))?;
        self.next = batch.facts.last().map_or(self.next, |fact| fact.position + 1);
        Ok(())
    }

    fn number(&mut self, request: &NumberRequest) -> Result<GenerationNumbers, Unavailable> {
        let connection = self.connection.as_ref().ok_or(Unavailable::refused(UnavailableCause::Io))?;
        match numbered(connection, request).map_err(Unavailable::refused)?.number(request) {
            Numbering::Given(numbers) => Ok(numbers),
            Numbering::New(numbers) => {
                self.write(|connection| insert_generation(connection, request, &numbers))?;
                Ok(numbers)
            }
        }
    }

    /// A sync that failed may have left pages of the log that no later sync will write, although they
    /// read back well. So nothing is built upon the log that was: its content is written into the
    /// database and synced there, and only an empty log is written to again.
    fn heal(&mut self) -> Result<Counters, UnavailableCause> {
        self.connection = None;
        if !Sight::of(&self.path).is_ok_and(|now| now.continues(self.database)) {
            return Err(UnavailableCause::Io);
        }
        if !self.lock.as_ref().is_some_and(WriterLock::holds) {
            self.lock = None;
            let taken = WriterLock::take(&self.path).map_err(|error| cause_of_io(error.kind()))?;
            self.lock = Some(taken.ok_or(UnavailableCause::Io)?);
        }
        let connection = open::connect_to_write(&self.path).map_err(|error| cause_of(&error))?;
        if open::setting_not_in_force(&connection)?.is_some() {
            return Err(UnavailableCause::Other);
        }
        open::empty_log(&connection)?;
        for bytes in [PROBE_BYTES, 0] {
            let probe = connection.execute("UPDATE probe SET body = zeroblob(?) WHERE id = 1", [bytes]);
            probe.map_err(|error| cause_of(&error))?;
        }
        let counters = open::counters(&connection)?;
        if counters.position < self.next {
            return Err(CORRUPT);
        }
        fill_log(&self.path, self.wal_bytes);
        self.log = Sight::of(&log_of(&self.path)).map_err(|error| cause_of_io(error.kind()))?;
        self.connection = Some(connection);
        Ok(counters)
    }

    fn close(&mut self) {
        if let Some(connection) = self.connection.take() {
            // Best effort: whatever stays in the log is durable there.
            open::empty_log(&connection).ok();
        }
        self.lock = None;
    }

    /// Writes in one transaction. Whether anything may have landed is known by which step failed:
    /// before `COMMIT`, nothing has.
    fn write(&mut self, write: impl FnOnce(&Connection) -> rusqlite::Result<()>) -> Result<(), Unavailable> {
        // Kept only where everything succeeds: with the connection end its transaction and its locks.
        let connection = self.connection.take().ok_or(Unavailable::refused(UnavailableCause::Io))?;
        let run = |sql| connection.prepare_cached(sql)?.execute([]);
        run("BEGIN IMMEDIATE").and_then(|_| write(&connection)).map_err(|error| refused_by(&error))?;
        run("COMMIT").map_err(|error| Unavailable::unknown(cause_of(&error)))?;
        if !self.is_in_place() {
            // Committed to a file that nobody will find again, or that another sidecar writes to as well.
            return Err(Unavailable::unknown(UnavailableCause::Io));
        }
        self.connection = Some(connection);
        Ok(())
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

/// What the store has of something that the ledger wants, in one query.
fn load(connection: &Connection, wanted: &Wanted) -> Result<Found, UnavailableCause> {
    let sql = "SELECT h.id, f.sequence, f.digest, c.first, c.tool, c.attempts, c.latest, \
                      i.started, i.tool_call, i.attempt, i.state, i.evaluated, i.terminal \
               FROM histories h \
               CROSS JOIN facts f ON f.history = h.id \
                   AND f.sequence = (SELECT max(l.sequence) FROM facts l WHERE l.history = h.id) \
               LEFT JOIN tool_calls c ON c.history = h.id AND c.tool_call = ?6 \
               LEFT JOIN invocations i ON i.history = h.id AND i.invocation = ?7 \
               WHERE h.kind = ?1 AND h.tenant = ?2 AND h.workspace = ?3 AND h.owner = ?4 AND h.run = ?5";
    let [kind, tenant, workspace, owner, run] = history_columns(&wanted.history);
    let (tool_call, invocation) = wanted.invocation.as_ref().map(|(call, id)| (call.as_str(), id.as_str())).unzip();
    let parameters = params![kind, tenant, workspace, owner, run, tool_call, invocation];
    Ok(rows::first(connection, sql, parameters, found)?.unwrap_or_default())
}

fn found(row: &Row<'_>) -> Result<Found, UnavailableCause> {
    let (tool_call, invocation) = (rows::optional_number(row, 3)?, rows::optional_number(row, 7)?);
    Ok(Found {
        history: Some((rows::number(row, 0)?, rows::number(row, 1)?, rows::digest(row, 2)?)),
        tool_call: tool_call.map(|_| rows::known_tool_call(row, 3)).transpose()?,
        invocation: invocation.map(|_| rows::known_invocation(row, 7)).transpose()?,
    })
}

/// Writes a batch, row by row through statements that stay prepared.
fn insert(connection: &Connection, batch: &Batch) -> rusqlite::Result<()> {
    let Batch { histories, facts, tool_calls, invocations, activations } = batch;
    if !histories.is_empty() {
        let sql = "INSERT INTO histories (id, kind, tenant, workspace, owner, run) VALUES (?, ?, ?, ?, ?, ?)";
        let mut statement = connection.prepare_cached(sql)?;
        for (id, history) in histories {
            let [kind, tenant, workspace, owner, run] = history_columns(history);
            statement.execute(params![stored(*id), kind, tenant, workspace, owner, run])?;
        }
    }
    insert_facts(connection, facts)?;
    if !tool_calls.is_empty() {
        let sql = "INSERT INTO tool_calls (first, history, tool_call, tool, attempts, latest) VALUES (?, ?, ?, ?, ?, ?) \
                   ON CONFLICT (first) DO UPDATE SET attempts = excluded.attempts, latest = excluded.latest";
        let mut statement = connection.prepare_cached(sql)?;
        for (first, call) in tool_calls {
            let known = &call.known;
            statement.execute(params![
                stored(*first),
                stored(call.history),
                call.tool_call.as_str(),
                known.tool.as_str(),
                known.attempts,
                stored(known.latest)
            ])?;
        }
    }
    if !invocations.is_empty() {
        let sql = "INSERT INTO invocations (started, history, invocation, tool_call, attempt, state, evaluated, terminal) \
                   VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (started) \
                   DO UPDATE SET state = excluded.state, evaluated = excluded.evaluated, terminal = excluded.terminal";
        let mut statement = connection.prepare_cached(sql)?;
        for (started, invocation) in invocations {
            let known = &invocation.known;
            statement.execute(params![
                stored(*started),
                stored(invocation.history),
                invocation.invocation.as_str(),
                stored(known.tool_call),
                known.attempt,
                known.state.as_str(),
                known.evaluated.map(stored),
                known.terminal.map(stored)
            ])?;
        }
    }
    for (position, activated) in activations {
        let sql = "INSERT INTO activations (bundle, sidecar, position) VALUES (?, ?, ?) \
                   ON CONFLICT (bundle, sidecar) DO UPDATE SET position = excluded.position";
        let (bundle, sidecar) = (activated.generation.bundle.as_str(), activated.sidecar.as_str());
        connection.prepare_cached(sql)?.execute(params![bundle, sidecar, stored(*position)])?;
    }
    Ok(())
}

fn insert_facts(connection: &Connection, facts: &[FactRow]) -> rusqlite::Result<()> {
    let sql = "INSERT INTO facts \
               (position, history, sequence, kind, tool_call, invocation, tool, attempt, at, previous, digest, body) \
               VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
    let mut statement = connection.prepare_cached(sql)?;
    for fact in facts {
        let key = fact.invocation.as_ref();
        statement.execute(params![
            stored(fact.position),
            stored(fact.history),
            stored(fact.sequence),
            fact.kind.as_str(),
            key.map(|key| key.tool_call.as_str()),
            key.map(|key| key.invocation.as_str()),
            key.map(|key| key.tool.as_str()),
            fact.attempt,
            fact.at.as_micros(),
            fact.previous.as_bytes().as_slice(),
            fact.digest.as_bytes().as_slice(),
            fact.body.as_slice()
        ])?;
    }
    Ok(())
}

/// What the store knows of a bundle's numbers.
fn numbered(connection: &Connection, request: &NumberRequest) -> Result<Numbered, UnavailableCause> {
    let bundle = request.bundle.as_str();
    let (highest, same) = rows::one(
        connection,
        "SELECT ifnull(max(number), 0), max(number) FILTER (WHERE revision = ?2 AND digest = ?3) \
         FROM generations WHERE bundle = ?1",
        params![bundle, request.revision.as_str(), request.digest.as_bytes().as_slice()],
        |row| Ok((rows::number(row, 0)?, rows::optional_number(row, 1)?)),
    )?;
    // Of each hook the row of its last generation: SQLite takes the other columns from the row of the maximum.
    let last = "SELECT resource, max(number), generation, digest FROM generation_hooks WHERE bundle = ? GROUP BY resource";
    let hook = |row: &Row<'_>| {
        let hook = LastHook { number: rows::number(row, 1)?, generation: rows::number(row, 2)?, digest: rows::digest(row, 3)? };
        Ok((rows::text::<ResourceId>(row, 0)?, hook))
    };
    let hooks: HashMap<_, _> = rows::all(connection, last, [bundle], hook)?.into_iter().collect();
    let same = match same {
        None => None,
        Some(number) => {
            let of = "SELECT resource, generation FROM generation_hooks WHERE bundle = ? AND number = ?";
            let hook = |row: &Row<'_>| Ok((rows::text(row, 0)?, rows::number(row, 1)?));
            let hooks = rows::all(connection, of, params![bundle, stored(number)], hook)?;
            Some(GenerationNumbers { number, hooks: hooks.into_iter().collect() })
        }
    };
    Ok(Numbered { highest, same, hooks })
}

fn insert_generation(connection: &Connection, request: &NumberRequest, numbers: &GenerationNumbers) -> rusqlite::Result<()> {
    let bundle = request.bundle.as_str();
    let number = stored(numbers.number);
    connection.execute(
        "INSERT INTO generations (bundle, number, revision, digest) VALUES (?, ?, ?, ?)",
        params![bundle, number, request.revision.as_str(), request.digest.as_bytes().as_slice()],
    )?;
    let sql = "INSERT INTO generation_hooks (bundle, number, resource, generation, digest) VALUES (?, ?, ?, ?, ?)";
    let mut statement = connection.prepare_cached(sql)?;
    for (resource, digest) in &request.hooks {
        let generation = numbers.hooks.get(resource).copied().unwrap_or_default();
        statement.execute(params![bundle, number, resource.as_str(), stored(generation), digest.as_bytes().as_slice()])?;
    }
    Ok(())
}

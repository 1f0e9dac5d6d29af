//! From rows to values. Whatever does not read as what was written is corrupt, never a panic.

use rusqlite::{Connection, Params, Row, types::ValueRef};
use tollgate_domain::{Digest, Fact, History, InvocationState, SystemRun, UnavailableCause};

use super::cause::cause_of;
use crate::ledger::{KnownInvocation, KnownToolCall};

/// A value, or the cause why there is none.
pub(super) type Read<T> = Result<T, UnavailableCause>;

/// Damage, found in a value.
pub(super) const CORRUPT: UnavailableCause = UnavailableCause::Corrupt;

/// Every row of a query, each read by the same function.
pub(super) fn all<T>(
    connection: &Connection,
    sql: &str,
    parameters: impl Params,
    read: impl Fn(&Row<'_>) -> Read<T>,
) -> Read<Vec<T>> {
    let failed = |error: rusqlite::Error| cause_of(&error);
    let mut statement = connection.prepare_cached(sql).map_err(failed)?;
    let mut rows = statement.query(parameters).map_err(failed)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next().map_err(failed)? {
        found.push(read(row)?);
    }
    Ok(found)
}

/// The first row of a query, where it has one.
pub(super) fn first<T>(
    connection: &Connection,
    sql: &str,
    parameters: impl Params,
    read: impl Fn(&Row<'_>) -> Read<T>,
) -> Read<Option<T>> {
    let failed = |error: rusqlite::Error| cause_of(&error);
    let mut statement = connection.prepare_cached(sql).map_err(failed)?;
    let mut rows = statement.query(parameters).map_err(failed)?;
    rows.next().map_err(failed)?.map(read).transpose()
}

/// The one row of a query that always has one.
pub(super) fn one<T>(connection: &Connection, sql: &str, parameters: impl Params, read: impl Fn(&Row<'_>) -> Read<T>) -> Read<T> {
    first(connection, sql, parameters, read)?.ok_or(CORRUPT)
}

/// A number that is never negative.
pub(super) fn number(row: &Row<'_>, column: usize) -> Read<u64> {
    optional_number(row, column)?.ok_or(CORRUPT)
}

/// A number that is never negative, or NULL.
pub(super) fn optional_number(row: &Row<'_>, column: usize) -> Read<Option<u64>> {
    let value: Option<i64> = row.get(column).map_err(|error| cause_of(&error))?;
    value.map(|value| u64::try_from(value).map_err(|_| CORRUPT)).transpose()
}

/// A small number that is never negative.
pub(super) fn small_number(row: &Row<'_>, column: usize) -> Read<u32> {
    u32::try_from(number(row, column)?).map_err(|_| CORRUPT)
}

/// A text that parses as an id or the like, or NULL.
pub(super) fn optional_text<T: std::str::FromStr>(row: &Row<'_>, column: usize) -> Read<Option<T>> {
    let text = value(row, column)?.as_str_or_null().map_err(|_| CORRUPT)?;
    text.map(|text| text.parse().map_err(|_| CORRUPT)).transpose()
}

/// A text that parses as an id or the like.
pub(super) fn text<T: std::str::FromStr>(row: &Row<'_>, column: usize) -> Read<T> {
    optional_text(row, column)?.ok_or(CORRUPT)
}

/// The name of a state.
pub(super) fn state(row: &Row<'_>, column: usize) -> Read<InvocationState> {
    let name = value(row, column)?.as_str().map_err(|_| CORRUPT)?;
    InvocationState::from_name(name).ok_or(CORRUPT)
}

/// Bytes, or NULL.
pub(super) fn optional_bytes<'r>(row: &'r Row<'_>, column: usize) -> Read<Option<&'r [u8]>> {
    value(row, column)?.as_blob_or_null().map_err(|_| CORRUPT)
}

/// A digest.
pub(super) fn digest(row: &Row<'_>, column: usize) -> Read<Digest> {
    optional_bytes(row, column)?.and_then(Digest::from_bytes).ok_or(CORRUPT)
}

/// A fact's body, or NULL.
pub(super) fn optional_fact(row: &Row<'_>, column: usize) -> Read<Option<Fact>> {
    optional_bytes(row, column)?.map(|bytes| Fact::decode(bytes).map_err(|_| CORRUPT)).transpose()
}

/// A tool call as the columns `first, tool, attempts, latest`, of which this is the first.
pub(super) fn known_tool_call(row: &Row<'_>, column: usize) -> Read<KnownToolCall> {
    Ok(KnownToolCall {
        first: number(row, column)?,
        tool: text(row, column + 1)?,
        attempts: small_number(row, column + 2)?,
        latest: number(row, column + 3)?,
    })
}

/// An invocation as the columns `started, tool_call, attempt, state, evaluated, terminal`, of which this is the first.
pub(super) fn known_invocation(row: &Row<'_>, column: usize) -> Read<KnownInvocation> {
    Ok(KnownInvocation {
        started: number(row, column)?,
        tool_call: number(row, column + 1)?,
        attempt: small_number(row, column + 2)?,
        state: state(row, column + 3)?,
        evaluated: optional_number(row, column + 4)?,
        terminal: optional_number(row, column + 5)?,
    })
}

fn value<'r>(row: &'r Row<'_>, column: usize) -> Read<ValueRef<'r>> {
    row.get_ref(column).map_err(|error| cause_of(&error))
}

/// A number as SQLite stores it. Positions, sequences and times all stay far below its limit.
pub(super) const fn stored(number: u64) -> i64 {
    number.cast_signed()
}

/// A history as the columns `kind, tenant, workspace, owner, run`.
pub(super) fn history_columns(history: &History) -> [&str; 5] {
    match history {
        History::Run(run) => {
            [run.owner_kind.as_str(), run.tenant.as_str(), run.workspace.as_str(), run.owner.as_str(), run.run.as_str()]
        }
        History::System(run) => system_columns(run),
    }
}

fn system_columns(run: &SystemRun) -> [&str; 5] {
    let (kind, name) = run.parts();
    [kind, "", "", name, ""]
}

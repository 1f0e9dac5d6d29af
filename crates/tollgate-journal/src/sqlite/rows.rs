//! From rows to values. Whatever does not read as what was written is corrupt, never a panic.

use sqlx::{Row, sqlite::SqliteRow};
use tollgate_domain::{Digest, Fact, History, InvocationState, SystemRun, UnavailableCause};

use super::cause::cause_of;

/// A value, or the cause why there is none.
pub(super) type Read<T> = Result<T, UnavailableCause>;

/// Damage, found in a value.
pub(super) const CORRUPT: UnavailableCause = UnavailableCause::Corrupt;

/// A number that is never negative.
pub(super) fn number(row: &SqliteRow, column: usize) -> Read<u64> {
    optional_number(row, column)?.ok_or(CORRUPT)
}

/// A number that is never negative, or NULL.
pub(super) fn optional_number(row: &SqliteRow, column: usize) -> Read<Option<u64>> {
    let value: Option<i64> = row.try_get(column).map_err(|error| cause_of(&error))?;
    value.map(|value| u64::try_from(value).map_err(|_| CORRUPT)).transpose()
}

/// A small number that is never negative.
pub(super) fn small_number(row: &SqliteRow, column: usize) -> Read<u32> {
    u32::try_from(number(row, column)?).map_err(|_| CORRUPT)
}

/// A text that parses as an id or the like, or NULL.
pub(super) fn optional_text<T: std::str::FromStr>(row: &SqliteRow, column: usize) -> Read<Option<T>> {
    let text: Option<&str> = row.try_get(column).map_err(|error| cause_of(&error))?;
    text.map(|text| text.parse().map_err(|_| CORRUPT)).transpose()
}

/// A text that parses as an id or the like.
pub(super) fn text<T: std::str::FromStr>(row: &SqliteRow, column: usize) -> Read<T> {
    optional_text(row, column)?.ok_or(CORRUPT)
}

/// The name of a state.
pub(super) fn state(row: &SqliteRow, column: usize) -> Read<InvocationState> {
    let name: &str = row.try_get(column).map_err(|error| cause_of(&error))?;
    InvocationState::from_name(name).ok_or(CORRUPT)
}

/// Bytes, or NULL.
pub(super) fn optional_bytes(row: &SqliteRow, column: usize) -> Read<Option<&[u8]>> {
    row.try_get(column).map_err(|error| cause_of(&error))
}

/// A digest.
pub(super) fn digest(row: &SqliteRow, column: usize) -> Read<Digest> {
    optional_bytes(row, column)?.and_then(Digest::from_bytes).ok_or(CORRUPT)
}

/// A fact's body, or NULL.
pub(super) fn optional_fact(row: &SqliteRow, column: usize) -> Read<Option<Fact>> {
    optional_bytes(row, column)?.map(|bytes| Fact::decode(bytes).map_err(|_| CORRUPT)).transpose()
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

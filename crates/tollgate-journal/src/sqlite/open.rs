//! Opening: everything that must hold before the first append, each with an error that says what to do.

use std::{
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use sqlx::{
    ConnectOptions, Connection, Row, SqliteConnection,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous},
};
use tollgate_domain::{SidecarId, UnavailableCause};

use super::{
    SqliteOptions,
    cause::cause_of,
    check::{self, Damage},
    file::{self, Before, Sight, WriterLock},
    read::SqliteReader,
    rows::{self, CORRUPT},
    write::SqliteBackend,
};
use crate::ledger::Counters;

/// What marks a SQLite database as a journal; set by the first migration.
const APPLICATION_ID: i64 = 1_416_514_380;
/// The schema that this program writes; set by the last migration.
const SCHEMA_VERSION: i64 = 1;
/// After how many pages SQLite moves the log into the database, within a commit.
const CHECKPOINT_PAGES: u64 = 4_000;
/// How long a statement waits for another connection.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// Up to this size every page of a database is read and compared at the start; above, its structure is.
const WHOLE_CHECK_MAX_BYTES: u64 = 64 * 1_048_576;

static MIGRATIONS: sqlx::migrate::Migrator = sqlx::migrate!("../../migrations/sqlite");

/// What opening found and did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// There was no journal, and now there is one.
    Created,
    /// The journal was closed in order.
    Clean,
    /// The journal was not closed in order; every commit that had become durable was taken over.
    Recovered {
        /// How many pages were in the write-ahead log.
        pages: u64,
    },
}

/// Why a journal cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Another process has it.
    #[error("the journal {} is in use by another sidecar", path.display())]
    InUse {
        /// The database.
        path: PathBuf,
    },
    /// There is none, and reading makes none.
    #[error("there is no journal at {}", path.display())]
    Missing {
        /// The database.
        path: PathBuf,
    },
    /// A file or directory cannot be made or used.
    #[error("the journal {} cannot be used: {}", path.display(), source.kind())]
    File {
        /// The database.
        path: PathBuf,
        /// What the file system said.
        source: io::Error,
    },
    /// The file is something else.
    #[error("{} is not a Tollgate journal", path.display())]
    NotAJournal {
        /// The file.
        path: PathBuf,
    },
    /// A newer program wrote it.
    #[error("the journal {} has schema {found}; this program knows schemas up to {known}", path.display())]
    SchemaNewer {
        /// The database.
        path: PathBuf,
        /// Its schema.
        found: i64,
        /// The newest that this program knows.
        known: i64,
    },
    /// An older program wrote it, and it was not opened to serve since.
    #[error("the journal {} has schema {found}; this program reads schema {known}", path.display())]
    SchemaOlder {
        /// The database.
        path: PathBuf,
        /// Its schema.
        found: i64,
        /// The one that this program reads.
        known: i64,
    },
    /// Its content is not what was written.
    #[error("the journal {} is damaged: {damage}", path.display())]
    Damaged {
        /// The database.
        path: PathBuf,
        /// What was found.
        damage: Damage,
    },
    /// The identity key is not the one that the journal was begun with.
    #[error("the journal {} was begun with the identity key {recorded}, not with {given}", path.display())]
    WrongIdentityKey {
        /// The database.
        path: PathBuf,
        /// The id of the journal's key.
        recorded: String,
        /// The id of the key that was given.
        given: String,
    },
    /// The file system cannot keep the promises that durability needs.
    #[error("the journal {} cannot be made durable: `{setting}` has no effect there", path.display())]
    NotDurable {
        /// The database.
        path: PathBuf,
        /// The setting.
        setting: &'static str,
    },
    /// Reading or writing it failed.
    #[error("the journal {} cannot be opened: {cause}", path.display())]
    Database {
        /// The database.
        path: PathBuf,
        /// Why.
        cause: UnavailableCause,
    },
}

impl OpenError {
    /// What a person can do about it.
    #[must_use]
    pub const fn hint(&self) -> &'static str {
        match self {
            Self::InUse { .. } => "stop the other sidecar, or give this one a journal of its own",
            Self::Missing { .. } => "check the path; a sidecar makes its journal at its first start",
            Self::File { .. } => "the sidecar's user needs to own the journal's directory and be able to write there",
            Self::NotAJournal { .. } => "check the path; a journal is only ever made in a new or empty file",
            Self::SchemaNewer { .. } => "run the version of tollgate that wrote it, or a later one",
            Self::SchemaOlder { .. } => "start a sidecar on it once, which brings it up to date",
            Self::Damaged { .. } => "keep the file for inspection, and start from a backup or with a new journal",
            Self::WrongIdentityKey { .. } => {
                "restore the key file that belongs to this journal; with another key, tool call ids would no longer agree"
            }
            Self::NotDurable { .. } => "put the journal on a local file system with working locks and shared memory",
            Self::Database { .. } => "check the disk and the permissions of the journal's directory",
        }
    }
}

/// A journal that is ready to serve.
pub(super) struct Opened {
    pub(super) backend: SqliteBackend,
    pub(super) next: Counters,
    pub(super) reader: SqliteReader,
    pub(super) sidecar: SidecarId,
    pub(super) recovery: Recovery,
}

/// Opens a journal to serve from it.
pub(super) async fn open(options: SqliteOptions) -> Result<Opened, OpenError> {
    let path = &options.path;
    let file_error = |source| OpenError::File { path: path.clone(), source };
    let failed = |cause| OpenError::Database { path: path.clone(), cause };

    file::make_directory(path).map_err(file_error)?;
    let lock = WriterLock::take(path).map_err(file_error)?.ok_or_else(|| OpenError::InUse { path: path.clone() })?;
    let before = file::look(path).map_err(file_error)?;
    match before {
        Before::Foreign => return Err(OpenError::NotAJournal { path: path.clone() }),
        Before::Nothing => file::make_database(path).map_err(file_error)?,
        // Before anything writes to a database that may be another program's.
        Before::Database { .. } => read_schema(path, &reading(path), false).await?,
    }

    let connect = writing(path);
    let mut connection = SqliteConnection::connect_with(&connect).await.map_err(|error| opening(path, &error))?;
    let pages = match before {
        Before::Database { size, log } => {
            let pages = if log { empty_log(&mut connection).await.map_err(failed)? } else { 0 };
            check_content(path, &mut connection, size).await?;
            log.then_some(pages)
        }
        Before::Nothing | Before::Foreign => None,
    };
    verify_pragmas(&mut connection).await.map_err(failed)?;
    verify_journal_mode(path, &mut connection).await?;
    MIGRATIONS.run(&mut connection).await.map_err(|error| failed(cause_of_migration(&error)))?;
    check_identity(&options, &mut connection).await?;
    let sidecar = remember(&mut connection, "sidecar", options.sidecar.as_str().as_bytes()).await.map_err(failed)?;
    let sidecar = std::str::from_utf8(&sidecar).ok().and_then(|id| SidecarId::parse(id).ok()).ok_or_else(|| failed(CORRUPT))?;
    let next = counters(&mut connection).await.map_err(failed)?;
    empty_log(&mut connection).await.map_err(failed)?;
    file::fill_log(path, options.wal_bytes).await;

    let reader = SqliteReader::connect(reading(path), options.readers).await.map_err(|error| opening(path, &error))?;
    let backend = SqliteBackend {
        connection: Some(connection),
        connect,
        database: Sight::of(path).map_err(file_error)?,
        log: Sight::of(&file::log_of(path)).map_err(file_error)?,
        next: next.position,
        path: path.clone(),
        wal_bytes: options.wal_bytes,
        reader: reader.clone(),
        lock: Some(lock),
    };
    let recovery = match (before, pages) {
        (Before::Nothing | Before::Foreign, _) => Recovery::Created,
        (Before::Database { .. }, None) => Recovery::Clean,
        (Before::Database { .. }, Some(pages)) => Recovery::Recovered { pages },
    };
    Ok(Opened { backend, next, reader, sidecar, recovery })
}

/// Opens a journal to read it beside, or without, a sidecar.
pub(super) async fn open_to_read(path: &Path) -> Result<SqliteReader, OpenError> {
    match file::look(path).map_err(|source| OpenError::File { path: path.to_owned(), source })? {
        Before::Nothing => return Err(OpenError::Missing { path: path.to_owned() }),
        Before::Foreign => return Err(OpenError::NotAJournal { path: path.to_owned() }),
        Before::Database { .. } => {}
    }
    let mut options = reading(path);
    if let Err(error) = read_schema(path, &options, true).await {
        // In a directory that cannot be written to, SQLite cannot make the index of its log. Where
        // there is no log, nobody writes, and the database can be read as it stands.
        if !matches!(error, OpenError::Database { .. }) || file::log_of(path).exists() {
            return Err(error);
        }
        options = options.immutable(true);
        read_schema(path, &options, true).await?;
    }
    SqliteReader::connect(options, 1).await.map_err(|error| opening(path, &error))
}

/// How the writer connects. Never makes a file: that is done before, with its mode.
fn writing(path: &Path) -> SqliteConnectOptions {
    common(path)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .foreign_keys(true)
        .pragma("wal_autocheckpoint", CHECKPOINT_PAGES.to_string())
}

fn reading(path: &Path) -> SqliteConnectOptions {
    common(path).read_only(true).pragma("query_only", "ON")
}

fn common(path: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        .busy_timeout(BUSY_TIMEOUT)
        .pragma("trusted_schema", "OFF")
        .pragma("cell_size_check", "ON")
        .disable_statement_logging()
}

/// Moves the whole log into the database, syncs it there, and leaves the log empty. Answers how many
/// pages the log held.
pub(super) async fn empty_log(connection: &mut SqliteConnection) -> Result<u64, UnavailableCause> {
    // TRUNCATE says that it moved nothing, since it counts what is left; so the counting one goes first.
    let held = checkpoint(connection, "PRAGMA wal_checkpoint(PASSIVE)").await?.1;
    let (busy, _) = checkpoint(connection, "PRAGMA wal_checkpoint(TRUNCATE)").await?;
    if busy { Err(UnavailableCause::Other) } else { Ok(held) }
}

async fn checkpoint(connection: &mut SqliteConnection, sql: &'static str) -> Result<(bool, u64), UnavailableCause> {
    let row = sqlx::query(sql).fetch_one(connection).await.map_err(|error| cause_of(&error))?;
    let busy: i64 = row.try_get(0).map_err(|error| cause_of(&error))?;
    // -1 where there is no log.
    let pages: i64 = row.try_get(1).map_err(|error| cause_of(&error))?;
    Ok((busy != 0, u64::try_from(pages).unwrap_or(0)))
}

/// Where the next history and the next fact go.
pub(super) async fn counters(connection: &mut SqliteConnection) -> Result<Counters, UnavailableCause> {
    let query = "SELECT (SELECT ifnull(max(id), 0) + 1 FROM histories), (SELECT ifnull(max(position), 0) + 1 FROM facts)";
    let row = sqlx::query(query).fetch_one(connection).await.map_err(|error| cause_of(&error))?;
    Ok(Counters { history: rows::number(&row, 0)?, position: rows::number(&row, 1)? })
}

/// Whether the settings on which durability rests are in force on a connection.
pub(super) async fn verify_pragmas(connection: &mut SqliteConnection) -> Result<(), UnavailableCause> {
    let failed = |error: sqlx::Error| cause_of(&error);
    let synchronous: i64 = pragma(connection, "PRAGMA synchronous").await.map_err(failed)?;
    let foreign_keys: i64 = pragma(connection, "PRAGMA foreign_keys").await.map_err(failed)?;
    if synchronous == 2 && foreign_keys == 1 { Ok(()) } else { Err(UnavailableCause::Other) }
}

async fn verify_journal_mode(path: &Path, connection: &mut SqliteConnection) -> Result<(), OpenError> {
    let mode: Result<String, _> = pragma(connection, "PRAGMA journal_mode").await;
    match mode {
        Ok(mode) if mode == "wal" => Ok(()),
        Ok(_) => Err(OpenError::NotDurable { path: path.to_owned(), setting: "journal_mode = wal" }),
        Err(error) => Err(opening(path, &error)),
    }
}

async fn pragma<T>(connection: &mut SqliteConnection, sql: &'static str) -> Result<T, sqlx::Error>
where
    T: for<'r> sqlx::Decode<'r, sqlx::Sqlite> + sqlx::Type<sqlx::Sqlite>,
{
    sqlx::query(sql).fetch_one(connection).await?.try_get(0)
}

/// Whether a database is a journal that this program can serve from, or read.
async fn read_schema(path: &Path, options: &SqliteConnectOptions, reading: bool) -> Result<(), OpenError> {
    let failed = |error: sqlx::Error| opening(path, &error);
    let mut connection = SqliteConnection::connect_with(options).await.map_err(failed)?;
    let schema = check_schema(path, &mut connection, reading).await;
    drop(connection.close().await);
    schema
}

async fn check_schema(path: &Path, connection: &mut SqliteConnection, reading: bool) -> Result<(), OpenError> {
    let failed = |error: sqlx::Error| opening(path, &error);
    let application: i64 = pragma(connection, "PRAGMA application_id").await.map_err(failed)?;
    let found: i64 = pragma(connection, "PRAGMA user_version").await.map_err(failed)?;
    let tables: i64 = pragma(connection, "SELECT count(*) FROM sqlite_schema").await.map_err(failed)?;
    // A first start that was cut off before the first migration leaves a database without tables.
    let unbegun = application == 0 && tables <= 2 && !reading;
    let path = path.to_owned();
    match found {
        _ if application != APPLICATION_ID && !unbegun => Err(OpenError::NotAJournal { path }),
        found if found > SCHEMA_VERSION => Err(OpenError::SchemaNewer { path, found, known: SCHEMA_VERSION }),
        found if found < SCHEMA_VERSION && reading => Err(OpenError::SchemaOlder { path, found, known: SCHEMA_VERSION }),
        _ => Ok(()),
    }
}

async fn check_content(path: &Path, connection: &mut SqliteConnection, size: u64) -> Result<(), OpenError> {
    let damaged = |damage| OpenError::Damaged { path: path.to_owned(), damage };
    check::structure(connection, size <= WHOLE_CHECK_MAX_BYTES).await.map_err(damaged)?;
    check::tail(connection).await.map_err(damaged)
}

async fn check_identity(options: &SqliteOptions, connection: &mut SqliteConnection) -> Result<(), OpenError> {
    let path = &options.path;
    let failed = |cause| OpenError::Database { path: path.clone(), cause };
    let (id, check) = &options.identity;
    let recorded = remember(connection, "identity_key_id", id.as_str().as_bytes()).await.map_err(failed)?;
    let recorded_check = remember(connection, "identity_key_check", check.as_bytes()).await.map_err(failed)?;
    if recorded == id.as_str().as_bytes() && recorded_check == check.as_bytes() {
        return Ok(());
    }
    Err(OpenError::WrongIdentityKey {
        path: path.clone(),
        recorded: String::from_utf8_lossy(&recorded).into_owned(),
        given: id.as_str().to_owned(),
    })
}

/// Keeps a value under a name where there is none, and answers what is kept.
async fn remember(connection: &mut SqliteConnection, name: &'static str, value: &[u8]) -> Result<Vec<u8>, UnavailableCause> {
    let failed = |error: sqlx::Error| cause_of(&error);
    let insert = sqlx::query("INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT (name) DO NOTHING");
    insert.bind(name).bind(value.to_vec()).execute(&mut *connection).await.map_err(failed)?;
    let row = sqlx::query("SELECT value FROM meta WHERE name = ?").bind(name).fetch_one(connection).await.map_err(failed)?;
    row.try_get(0).map_err(failed)
}

/// The error for a database that cannot be opened or read at all.
fn opening(path: &Path, error: &sqlx::Error) -> OpenError {
    let path = path.to_owned();
    match cause_of(error) {
        UnavailableCause::Corrupt => OpenError::Damaged { path, damage: Damage::Unreadable },
        cause @ (UnavailableCause::Full
        | UnavailableCause::ReadOnly
        | UnavailableCause::Io
        | UnavailableCause::Overloaded
        | UnavailableCause::Closed
        | UnavailableCause::Other) => OpenError::Database { path, cause },
    }
}

fn cause_of_migration(error: &sqlx::migrate::MigrateError) -> UnavailableCause {
    use sqlx::migrate::MigrateError;
    #[expect(clippy::wildcard_enum_match_arm, reason = "an open list of the driver, of which two carry a cause")]
    match error {
        MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _) => cause_of(error),
        _ => UnavailableCause::Corrupt,
    }
}

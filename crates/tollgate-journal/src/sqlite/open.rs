//! Opening: everything that must hold before the first append, each with an error that says what to do.

use std::{
    io,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    time::Duration,
};

use rusqlite::{Connection, OpenFlags, TransactionBehavior, types::FromSql};
use tollgate_domain::{SidecarId, UnavailableCause};

use super::{
    SqliteOptions,
    cause::cause_of,
    check::{self, Damage},
    file::{self, Before, Sight, WriterLock},
    read::SqliteReader,
    rows::{self, CORRUPT},
    write::Writer,
};
use crate::ledger::Counters;

/// What marks a SQLite database as a journal; set by the first migration.
const APPLICATION_ID: u32 = u32::from_be_bytes(*b"TnKL");
/// After how many pages SQLite moves the log into the database, within a commit.
const CHECKPOINT_PAGES: u32 = 4_000;
/// How many statements a connection keeps prepared: all that there are.
const STATEMENTS_KEPT: usize = 64;
/// How long a statement waits for another connection.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// Up to this size every page of a database is read and compared at the start; above, its structure is.
const WHOLE_CHECK_MAX_BYTES: u64 = 64 * 1_048_576;

/// What brings a database from each schema to the next, in a transaction of its own.
const MIGRATIONS: [&str; 1] = [include_str!("../../../../migrations/sqlite/0001_journal.sql")];
/// The schema that this program writes; set by the last migration.
const SCHEMA_VERSION: u32 = 1;
const _: () = assert!(MIGRATIONS.len() == SCHEMA_VERSION as usize, "each migration makes the next schema");

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
        found: u32,
        /// The newest that this program knows.
        known: u32,
    },
    /// An older program wrote it, and it was not opened to serve since.
    #[error("the journal {} has schema {found}; this program reads schema {known}", path.display())]
    SchemaOlder {
        /// The database.
        path: PathBuf,
        /// Its schema.
        found: u32,
        /// The one that this program reads.
        known: u32,
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
    pub(super) writer: Writer,
    pub(super) next: Counters,
    pub(super) reader: SqliteReader,
    pub(super) sidecar: SidecarId,
    pub(super) recovery: Recovery,
}

/// Opens a journal to serve from it.
pub(super) fn open(options: &SqliteOptions) -> Result<Opened, OpenError> {
    let path = &options.path;
    let file_error = |source| OpenError::File { path: path.clone(), source };
    let failed = |cause| OpenError::Database { path: path.clone(), cause };

    file::make_directory(path).map_err(file_error)?;
    let lock = WriterLock::take(path).map_err(file_error)?.ok_or_else(|| OpenError::InUse { path: path.clone() })?;
    let before = file::look(path).map_err(file_error)?;
    match before {
        Before::Foreign => return Err(OpenError::NotAJournal { path: path.clone() }),
        Before::Nothing => file::make_database(path).map_err(file_error)?,
        // Before anything writes to a database that may be another program's. A first start that was cut off while it turned
        // on the write-ahead log leaves what a connection that only reads cannot undo: there it reads what stands.
        Before::Database { .. } => {
            let immutable = file::has_rollback_journal(path);
            read_schema(path, &Target { immutable, ..Target::of(path) }, false)?;
        }
    }

    let mut connection = connect_to_write(path).map_err(|error| opening(path, &error))?;
    let pages = match before {
        Before::Database { size, log } => {
            let pages = if log { empty_log(&connection).map_err(failed)? } else { 0 };
            check_content(path, &connection, size)?;
            log.then_some(pages)
        }
        Before::Nothing | Before::Foreign => None,
    };
    if let Some(setting) = setting_not_in_force(&connection).map_err(failed)? {
        return Err(OpenError::NotDurable { path: path.clone(), setting });
    }
    migrate(&mut connection).map_err(|error| failed(cause_of(&error)))?;
    check_identity(options, &connection)?;
    let sidecar = remember(&connection, "sidecar", options.sidecar.as_str().as_bytes()).map_err(failed)?;
    let sidecar = std::str::from_utf8(&sidecar).ok().and_then(|id| SidecarId::parse(id).ok()).ok_or_else(|| failed(CORRUPT))?;
    let next = counters(&connection).map_err(failed)?;
    empty_log(&connection).map_err(failed)?;
    file::fill_log(path, options.wal_bytes);

    let reader = SqliteReader::connect(Target::of(path), options.readers).map_err(|error| opening(path, &error))?;
    let writer = Writer {
        connection: Some(connection),
        database: Sight::of(path).map_err(file_error)?,
        log: Sight::of(&file::log_of(path)).map_err(file_error)?,
        next: next.position,
        path: path.clone(),
        wal_bytes: options.wal_bytes,
        lock: Some(lock),
    };
    let recovery = match (before, pages) {
        (Before::Nothing | Before::Foreign, _) => Recovery::Created,
        (Before::Database { .. }, None) => Recovery::Clean,
        (Before::Database { .. }, Some(pages)) => Recovery::Recovered { pages },
    };
    Ok(Opened { writer, next, reader, sidecar, recovery })
}

/// Opens a journal to read it beside, or without, a sidecar.
pub(super) fn open_to_read(path: &Path) -> Result<SqliteReader, OpenError> {
    match file::look(path).map_err(|source| OpenError::File { path: path.to_owned(), source })? {
        Before::Nothing => return Err(OpenError::Missing { path: path.to_owned() }),
        Before::Foreign => return Err(OpenError::NotAJournal { path: path.to_owned() }),
        Before::Database { .. } => {}
    }
    let mut target = Target::of(path);
    if let Err(error) = read_schema(path, &target, true) {
        // In a directory that cannot be written to, SQLite cannot make the index of its log. Where
        // there is no log, nobody writes, and the database can be read as it stands.
        if !matches!(error, OpenError::Database { .. }) || file::log_of(path).exists() {
            return Err(error);
        }
        target.immutable = true;
        read_schema(path, &target, true)?;
    }
    SqliteReader::connect(target, 1).map_err(|error| opening(path, &error))
}

/// What a reader opens.
#[derive(Clone, Debug)]
pub(super) struct Target {
    path: PathBuf,
    /// Whether nobody writes to it, nor will.
    immutable: bool,
}

impl Target {
    fn of(path: &Path) -> Self {
        Self { path: path.to_owned(), immutable: false }
    }

    /// Opens a connection that can only read.
    pub(super) fn connect(&self) -> rusqlite::Result<Connection> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = if self.immutable {
            let uri = format!("file:{}?immutable=1", escaped(&self.path));
            Connection::open_with_flags(uri, flags | OpenFlags::SQLITE_OPEN_URI)?
        } else {
            Connection::open_with_flags(&self.path, flags)?
        };
        prepare(&connection)?;
        connection.pragma_update(None, "query_only", true)?;
        Ok(connection)
    }
}

/// Opens the writer's connection. Never makes a file: that is done before, with its mode.
pub(super) fn connect_to_write(path: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    prepare(&connection)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES)?;
    Ok(connection)
}

fn prepare(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_KEPT);
    connection.pragma_update(None, "trusted_schema", false)?;
    connection.pragma_update(None, "cell_size_check", true)
}

/// A path within a URI (RFC 3986).
fn escaped(path: &Path) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte);
    let escape = |byte: &u8| if plain(*byte) { char::from(*byte).to_string() } else { format!("%{byte:02X}") };
    path.as_os_str().as_bytes().iter().map(escape).collect()
}

/// Brings the schema up to date.
fn migrate(connection: &mut Connection) -> rusqlite::Result<()> {
    let current: u32 = value(connection, "PRAGMA user_version")?;
    for migration in MIGRATIONS.iter().skip(current as usize) {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        transaction.execute_batch(migration)?;
        transaction.commit()?;
    }
    Ok(())
}

/// Moves the whole log into the database, syncs it there, and leaves the log empty. Answers how many
/// pages the log held.
pub(super) fn empty_log(connection: &Connection) -> Result<u64, UnavailableCause> {
    // TRUNCATE says that it moved nothing, since it counts what is left; so the counting one goes first.
    let held = checkpoint(connection, "PRAGMA wal_checkpoint(PASSIVE)")?.1;
    let (busy, _) = checkpoint(connection, "PRAGMA wal_checkpoint(TRUNCATE)")?;
    if busy { Err(UnavailableCause::Other) } else { Ok(held) }
}

fn checkpoint(connection: &Connection, sql: &'static str) -> Result<(bool, u64), UnavailableCause> {
    let read = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(0)? != 0, row.get::<_, i64>(1)?));
    let (busy, pages) = connection.query_row(sql, [], read).map_err(|error| cause_of(&error))?;
    // -1 where there is no log.
    Ok((busy, u64::try_from(pages).unwrap_or(0)))
}

/// Where the next history and the next fact go.
pub(super) fn counters(connection: &Connection) -> Result<Counters, UnavailableCause> {
    let query = "SELECT (SELECT ifnull(max(id), 0) + 1 FROM histories), (SELECT ifnull(max(position), 0) + 1 FROM facts)";
    rows::one(connection, query, [], |row| Ok(Counters { history: rows::number(row, 0)?, position: rows::number(row, 1)? }))
}

/// The first of the settings on which the journal rests that has no effect on a connection.
pub(super) fn setting_not_in_force(connection: &Connection) -> Result<Option<&'static str>, UnavailableCause> {
    let settings = || {
        let journal_mode: String = value(connection, "PRAGMA journal_mode")?;
        let synchronous: i64 = value(connection, "PRAGMA synchronous")?;
        let foreign_keys: bool = value(connection, "PRAGMA foreign_keys")?;
        Ok([
            ("journal_mode = WAL", journal_mode == "wal"),
            ("synchronous = FULL", synchronous == 2),
            ("foreign_keys = ON", foreign_keys),
        ])
    };
    let settings = settings().map_err(|error: rusqlite::Error| cause_of(&error))?;
    Ok(settings.into_iter().find(|(_, in_force)| !in_force).map(|(setting, _)| setting))
}

fn value<T: FromSql>(connection: &Connection, sql: &'static str) -> rusqlite::Result<T> {
    connection.query_row(sql, [], |row| row.get(0))
}

/// Whether a database is a journal that this program can serve from, or read.
fn read_schema(path: &Path, target: &Target, reading: bool) -> Result<(), OpenError> {
    let connection = target.connect().map_err(|error| opening(path, &error))?;
    check_schema(path, &connection, reading)
}

fn check_schema(path: &Path, connection: &Connection, reading: bool) -> Result<(), OpenError> {
    let failed = |error: rusqlite::Error| opening(path, &error);
    let application: u32 = value(connection, "PRAGMA application_id").map_err(failed)?;
    let found: u32 = value(connection, "PRAGMA user_version").map_err(failed)?;
    let tables: i64 = value(connection, "SELECT count(*) FROM sqlite_schema").map_err(failed)?;
    // A first start that was cut off before the first migration leaves a database without tables.
    let unbegun = application == 0 && tables == 0 && !reading;
    let path = path.to_owned();
    match found {
        _ if application != APPLICATION_ID && !unbegun => Err(OpenError::NotAJournal { path }),
        found if found > SCHEMA_VERSION => Err(OpenError::SchemaNewer { path, found, known: SCHEMA_VERSION }),
        found if found < SCHEMA_VERSION && reading => Err(OpenError::SchemaOlder { path, found, known: SCHEMA_VERSION }),
        _ => Ok(()),
    }
}

fn check_content(path: &Path, connection: &Connection, size: u64) -> Result<(), OpenError> {
    let damaged = |damage| OpenError::Damaged { path: path.to_owned(), damage };
    check::structure(connection, size <= WHOLE_CHECK_MAX_BYTES).map_err(damaged)?;
    // A first start that was cut off before the first migration left nothing to look at.
    let schema: u32 = value(connection, "PRAGMA user_version").map_err(|error| opening(path, &error))?;
    if schema == 0 { Ok(()) } else { check::tail(connection).map_err(damaged) }
}

fn check_identity(options: &SqliteOptions, connection: &Connection) -> Result<(), OpenError> {
    let path = &options.path;
    let failed = |cause| OpenError::Database { path: path.clone(), cause };
    let (id, check) = &options.identity;
    let recorded = remember(connection, "identity_key_id", id.as_str().as_bytes()).map_err(failed)?;
    let recorded_check = remember(connection, "identity_key_check", check.as_bytes()).map_err(failed)?;
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
fn remember(connection: &Connection, name: &'static str, value: &[u8]) -> Result<Vec<u8>, UnavailableCause> {
    let failed = |error: rusqlite::Error| cause_of(&error);
    let insert = "INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT (name) DO NOTHING";
    connection.execute(insert, (name, value)).map_err(failed)?;
    connection.query_row("SELECT value FROM meta WHERE name = ?", [name], |row| row.get(0)).map_err(failed)
}

/// The error for a database that cannot be opened or read at all.
fn opening(path: &Path, error: &rusqlite::Error) -> OpenError {
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

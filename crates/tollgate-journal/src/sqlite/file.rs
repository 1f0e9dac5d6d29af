//! The files of a database: made private, locked against a second writer, watched for replacement.

use std::{
    ffi::OsString,
    fs::{DirBuilder, File, OpenOptions},
    io::{self, ErrorKind, Read, Seek, SeekFrom, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use rustix::fs::{FlockOperation, flock};

/// The exclusive right to write a database, for as long as it lives.
#[derive(Debug)]
pub(super) struct WriterLock {
    _file: File,
    path: PathBuf,
    sight: Sight,
}

/// What stands at a path: which file, and how long it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sight {
    device: u64,
    inode: u64,
    size: i64,
}

/// What stood on disk before a database was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Before {
    /// No database, or an empty file.
    Nothing,
    /// A file that begins as a SQLite database does; with bytes in its write-ahead log or not.
    Database { size: u64, log: bool },
    /// Something else.
    Foreign,
}

impl WriterLock {
    /// Takes the lock; `None` where another process holds it.
    ///
    /// A lock of its own beside SQLite's: those come and go with transactions, and a second sidecar
    /// between two of them would break the sequence of positions.
    pub(super) fn take(database: &Path) -> io::Result<Option<Self>> {
        let path = beside(database, ".lock");
        let file = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(&path)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            // Seen through the handle: by its path it could already be another file, that another sidecar locked.
            Ok(()) => Ok(Some(Self { sight: rustix::fs::fstat(&file)?.into(), _file: file, path })),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether the lock keeps others out: it does not when its file was removed, since a second sidecar
    /// would make a new one.
    pub(super) fn holds(&self) -> bool {
        Sight::of(&self.path).is_ok_and(|now| now.continues(self.sight))
    }
}

impl Sight {
    /// Of the file that stands at a path now. Does not open it: closing a second handle would drop
    /// the locks that SQLite holds on the first.
    pub(super) fn of(path: &Path) -> io::Result<Self> {
        Ok(rustix::fs::stat(path)?.into())
    }

    /// Whether this is the file that was seen before, and nothing was cut off it. While a journal is
    /// open, neither its database nor its log ever shrinks.
    pub(super) const fn continues(self, before: Self) -> bool {
        self.device == before.device && self.inode == before.inode && self.size >= before.size
    }
}

impl From<rustix::fs::Stat> for Sight {
    fn from(stat: rustix::fs::Stat) -> Self {
        Self { device: stat.st_dev, inode: stat.st_ino, size: stat.st_size }
    }
}

/// Makes the directory, for its owner alone, and each new name durable: a journal whose directory is
/// gone after a power cut is lost, however well it was synced itself.
pub(super) fn make_directory(database: &Path) -> io::Result<()> {
    let directory = directory_of(database);
    let missing: Vec<&Path> = directory.ancestors().take_while(|path| !path.as_os_str().is_empty() && !path.exists()).collect();
    DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    missing.into_iter().try_for_each(|made| File::open(directory_of(made))?.sync_all())
}

/// Makes an empty database file, for its owner alone; SQLite gives its logs the same mode.
pub(super) fn make_database(database: &Path) -> io::Result<()> {
    OpenOptions::new().create(true).append(true).mode(0o600).open(database)?.sync_all()?;
    File::open(directory_of(database))?.sync_all()
}

/// Looks at what is there. Only before the database is opened, for the reason given at [`Sight::of`].
pub(super) fn look(database: &Path) -> io::Result<Before> {
    let mut file = match File::open(database) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Before::Nothing),
        file => file?,
    };
    let size = file.metadata()?.len();
    if size == 0 {
        return Ok(Before::Nothing);
    }
    let mut magic = [0; 16];
    match file.read_exact(&mut magic) {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(Before::Foreign),
        read => read?,
    }
    if magic != *b"SQLite format 3\0" {
        return Ok(Before::Foreign);
    }
    Ok(Before::Database { size, log: std::fs::metadata(log_of(database)).is_ok_and(|log| log.len() > 0) })
}

/// The write-ahead log of a database.
pub(super) fn log_of(database: &Path) -> PathBuf {
    beside(database, "-wal")
}

/// Whether a transaction of the time before the write-ahead log was cut off.
pub(super) fn has_rollback_journal(database: &Path) -> bool {
    beside(database, "-journal").exists()
}

/// Fills the write-ahead log with zeros up to a size, so that commits overwrite blocks that exist
/// instead of growing the file. SQLite ends its log at the first frame without a right checksum, so
/// what follows it never matters. Where there is no room the log is left as it was.
///
/// Best effort, without an answer: a log that grows is only slower.
pub(super) fn fill_log(database: &Path, bytes: u64) {
    fill(&log_of(database), bytes).ok();
}

fn fill(log: &Path, bytes: u64) -> io::Result<()> {
    let mut log = OpenOptions::new().write(true).open(log)?;
    let size = log.seek(SeekFrom::End(0))?;
    let zeros = vec![0; 1_048_576];
    let filled = (|| {
        let mut left = bytes.saturating_sub(size);
        while left > 0 {
            let chunk = zeros.get(..usize::try_from(left).unwrap_or(usize::MAX)).unwrap_or(&zeros);
            log.write_all(chunk)?;
            left -= chunk.len() as u64;
        }
        log.sync_all()
    })();
    if filled.is_err() {
        log.set_len(size)?;
    }
    filled
}

/// The directory that holds a path's last name.
fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

fn beside(database: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(database);
    name.push(suffix);
    name.into()
}

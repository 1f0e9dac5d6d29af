//! How the tests and the shim speak: a file of 64-bit words in the machine's byte order, mapped by the shim
//! and written to by the tests while the program runs. Included by both sides.

/// The variable that names the directory whose files are watched. Not one of the program's own variables,
/// which it checks.
pub const WATCHED: &str = "FAULT_SHIM_WATCHED";
/// The variable that names the directory with the control file and, where it is kept, the undo log.
pub const SIDE: &str = "FAULT_SHIM_SIDE";
/// The control file's name in [`SIDE`].
pub const CONTROL_FILE: &str = "control";
/// The undo log's name in [`SIDE`].
pub const UNDO_FILE: &str = "undo";

/// The database's name in [`WATCHED`].
pub const DATABASE: &str = "journal.db";
/// The name of its write-ahead log.
pub const LOG: &str = "journal.db-wal";
/// The name of the log's index. It is mapped memory, which may be lost at any time: no undo log is kept of it.
pub const INDEX: &str = "journal.db-shm";

/// The word with what is added to the wall clock, in nanoseconds, signed.
pub const CLOCK: usize = 0;
/// The word that says whether the undo log is kept.
pub const KEEP_UNDO: usize = 1;
/// The word with the number of the undo log's last record; numbers go on over restarts.
pub const UNDO_NUMBER: usize = 2;
/// The first word of the first rule.
pub const RULES: usize = 32;
/// How many rules there are.
pub const RULES_COUNT: usize = 8;
/// How many words a rule takes.
pub const RULE_WORDS: usize = 16;
/// How many words the file has.
pub const WORDS: usize = RULES + RULES_COUNT * RULE_WORDS;

/// Words of a rule, from its first.
pub mod rule {
    /// Not 0 while the rule is in force; written last.
    pub const ARMED: usize = 0;
    /// The operations that it is for, a bit for each.
    pub const OPERATIONS: usize = 1;
    /// The kinds of files that it is for, a bit for each.
    pub const FILES: usize = 2;
    /// What it does.
    pub const ACTION: usize = 3;
    /// What with: an error number, or milliseconds.
    pub const ARGUMENT: usize = 4;
    /// How many calls it lets pass first.
    pub const AFTER: usize = 5;
    /// Of the calls from then on, every how many-th it meets.
    pub const EVERY: usize = 6;
    /// How often it acts.
    pub const TIMES: usize = 7;
    /// How many calls it has seen; counted by the shim.
    pub const SEEN: usize = 8;
    /// How often it has acted; counted by the shim.
    pub const ACTED: usize = 9;
}

/// Operations.
pub mod operation {
    /// `open` and its kin.
    pub const OPEN: u64 = 0;
    /// `write`, `pwrite`.
    pub const WRITE: u64 = 1;
    /// `fsync`, `fdatasync`.
    pub const SYNC: u64 = 2;
    /// `ftruncate`.
    pub const TRUNCATE: u64 = 3;
    /// `unlink`, `rename`, `link`.
    pub const NAME: u64 = 4;
    /// `pread`.
    pub const READ: u64 = 5;
}

/// Kinds of files.
pub mod file {
    /// The database.
    pub const DATABASE: u64 = 0;
    /// Its write-ahead log.
    pub const LOG: u64 = 1;
    /// Any other file of the watched directory.
    pub const OTHER: u64 = 2;
    /// The directory itself.
    pub const DIRECTORY: u64 = 3;
}

/// What a rule does.
pub mod action {
    /// Fails with an error number. A sync that fails loses what it was to sync, for good: the kernel takes such
    /// pages for clean.
    pub const FAIL: u64 = 0;
    /// Does half of a write, and says so.
    pub const SHORT: u64 = 1;
    /// Holds the call up: for so many milliseconds, or, with 0, until the rule is disarmed.
    pub const STALL: u64 = 2;
    /// Kills the process before the call. It waits for so many milliseconds first, so that what the process said too
    /// early gets out.
    pub const KILL: u64 = 3;
    /// Kills the process in the midst of the call: half of a write is done, or all of another call. It waits as well.
    pub const KILL_WITHIN: u64 = 4;
    /// Says that a sync was done, and does none.
    pub const LIE: u64 = 5;
}

/// Kinds of records of the undo log. A record is its kind, its number, the lengths of name and data, three words
/// that depend on the kind, and then name and data.
pub mod undo {
    /// How many words stand before name and data.
    pub const WORDS: usize = 7;
    /// A file is written to; words: offset, size before, size after; data: what stood there.
    pub const WRITE: u64 = 1;
    /// A file is cut off or made longer; words and data as for [`WRITE`].
    pub const TRUNCATE: u64 = 2;
    /// A name is made.
    pub const CREATE: u64 = 3;
    /// A name is taken away or given to another file; the old file is kept as `kept-` and the record's number.
    pub const REMOVE: u64 = 4;
    /// What was recorded of a file, or for the directory of names, up to a number, is durable; first word: the number.
    pub const SYNC: u64 = 5;
    /// What was recorded of a file up to a number, and is not durable, is lost; first word: the number.
    pub const LOST: u64 = 6;
}

//! From SQLite's result codes to the closed list of causes. Texts of the driver end here.

use tollgate_domain::{Unavailable, UnavailableCause};

/// The cause that a failure of the driver stands for.
pub(super) fn cause_of(error: &rusqlite::Error) -> UnavailableCause {
    use rusqlite::Error;
    #[expect(clippy::wildcard_enum_match_arm, reason = "an open list of the driver, of which the rest tells nothing more")]
    match error {
        Error::SqliteFailure(error, _) => cause_of_code(error.extended_code),
        // What was read is not what was ever written.
        Error::FromSqlConversionFailure(..)
        | Error::IntegralValueOutOfRange(..)
        | Error::InvalidColumnIndex(_)
        | Error::InvalidColumnType(..)
        | Error::QueryReturnedNoRows
        | Error::Utf8Error(..) => UnavailableCause::Corrupt,
        _ => UnavailableCause::Other,
    }
}

/// The cause that a failure of the file system stands for.
pub(super) fn cause_of_io(kind: std::io::ErrorKind) -> UnavailableCause {
    use std::io::ErrorKind;
    #[expect(clippy::wildcard_enum_match_arm, reason = "the kinds are an open list of the standard library")]
    match kind {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => UnavailableCause::Full,
        ErrorKind::ReadOnlyFilesystem | ErrorKind::PermissionDenied => UnavailableCause::ReadOnly,
        _ => UnavailableCause::Io,
    }
}

/// A refusal for a failure before anything could become durable.
pub(super) fn refused_by(error: &rusqlite::Error) -> Unavailable {
    Unavailable::refused(cause_of(error))
}

/// <https://www.sqlite.org/rescode.html>: the primary code is the low byte, and only where the
/// extended code tells another story it is looked at.
fn cause_of_code(code: i32) -> UnavailableCause {
    match (code & 0xff, code >> 8) {
        // FULL, and IOERR_SHMSIZE: the index of the log could not be grown
        (13, _) | (10, 19) => UnavailableCause::Full,
        // PERM, READONLY
        (3 | 8, _) => UnavailableCause::ReadOnly,
        // CORRUPT, NOTADB, IOERR_DATA, IOERR_CORRUPTFS; CONSTRAINT and MISMATCH, since the writer checked
        // every row against the record before, so that only a damaged database can contradict it
        (11 | 26 | 19 | 20, _) | (10, 32 | 33) => UnavailableCause::Corrupt,
        // IOERR but for IOERR_NOMEM, CANTOPEN, PROTOCOL (of locking), NOLFS
        (10, extended) if extended != 12 => UnavailableCause::Io,
        (14 | 15 | 22, _) => UnavailableCause::Io,
        // ERROR, INTERNAL, ABORT, BUSY, LOCKED, NOMEM, INTERRUPT, NOTFOUND, EMPTY, SCHEMA, TOOBIG,
        // MISUSE, AUTH, FORMAT, RANGE, and whatever comes later
        _ => UnavailableCause::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn g12_result_codes_become_causes_by_their_primary_and_extended_code() {
        for (code, cause) in [
            (13, UnavailableCause::Full),
            (4874, UnavailableCause::Full),
            (8, UnavailableCause::ReadOnly),
            (1032, UnavailableCause::ReadOnly),
            (10, UnavailableCause::Io),
            (778, UnavailableCause::Io),
            (1034, UnavailableCause::Io),
            (8458, UnavailableCause::Corrupt),
            (3082, UnavailableCause::Other),
            (14, UnavailableCause::Io),
            (11, UnavailableCause::Corrupt),
            (26, UnavailableCause::Corrupt),
            (2067, UnavailableCause::Corrupt),
            (5, UnavailableCause::Other),
            (1, UnavailableCause::Other),
        ] {
            assert_eq!(cause_of_code(code), cause, "code {code}");
        }
    }
}

//! Is the content what was written? Asked at every start, before anything is built upon it.

use std::{collections::HashMap, fmt};

use rusqlite::{Connection, Row};
use tollgate_domain::{Digest, InvocationKey, UnavailableCause, chain_digest};

use super::{
    cause::cause_of,
    rows::{self, CORRUPT, Read},
};

/// How many of the last facts are digested again at the start.
const TAIL_FACTS: i64 = 256;

/// What is wrong with the content of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// SQLite does not recognise it, or finds its pages or indexes out of order.
    Unreadable,
    /// A fact's bytes do not give its digest.
    Digest {
        /// The position of the fact.
        position: u64,
    },
    /// A fact does not name its predecessor's digest.
    Chain {
        /// The position of the fact.
        position: u64,
    },
    /// It could not be read to the end.
    Unread(UnavailableCause),
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable => f.write_str("its pages are not those of a sound database"),
            Self::Digest { position } => write!(f, "the fact at position {position} was changed after it was written"),
            Self::Chain { position } => write!(f, "the fact at position {position} does not follow its predecessor"),
            Self::Unread(cause) => write!(f, "reading it failed: {cause}"),
        }
    }
}

impl From<UnavailableCause> for Damage {
    fn from(cause: UnavailableCause) -> Self {
        if cause == UnavailableCause::Corrupt { Self::Unreadable } else { Self::Unread(cause) }
    }
}

/// Lets SQLite check its pages; for a small database its indexes too, against their tables.
pub(super) fn structure(connection: &Connection, whole: bool) -> Result<(), Damage> {
    let sql = if whole { "PRAGMA integrity_check(1)" } else { "PRAGMA quick_check(1)" };
    let finding: String = connection.query_row(sql, [], |row| row.get(0)).map_err(|error| cause_of(&error))?;
    if finding == "ok" { Ok(()) } else { Err(Damage::Unreadable) }
}

/// Digests the last facts again, and compares each with its predecessor among them.
pub(super) fn tail(connection: &Connection) -> Result<(), Damage> {
    let sql = "SELECT position, history, sequence, tool_call, invocation, tool, attempt, previous, digest, body \
               FROM facts ORDER BY position DESC LIMIT ?";
    let mut links: Vec<Link> = rows::all(connection, sql, [TAIL_FACTS], Link::read)?;
    links.reverse();
    let mut last: HashMap<u64, (u64, Digest)> = HashMap::new();
    for link in links {
        if link.computed != link.digest {
            return Err(Damage::Digest { position: link.position });
        }
        if let Some(before) = last.insert(link.history, (link.sequence, link.digest))
            && (before.0.checked_add(1), before.1) != (Some(link.sequence), link.previous)
        {
            return Err(Damage::Chain { position: link.position });
        }
    }
    Ok(())
}

/// One fact as a link of its chain.
struct Link {
    position: u64,
    history: u64,
    sequence: u64,
    previous: Digest,
    digest: Digest,
    computed: Digest,
}

impl Link {
    fn read(row: &Row<'_>) -> Read<Self> {
        let (sequence, previous) = (rows::number(row, 2)?, rows::digest(row, 7)?);
        let key = match (rows::optional_text(row, 3)?, rows::optional_text(row, 4)?, rows::optional_text(row, 5)?) {
            (Some(tool_call), Some(invocation), Some(tool)) => Some(InvocationKey { tool_call, invocation, tool }),
            (None, None, None) => None,
            _ => return Err(CORRUPT),
        };
        let body = rows::optional_bytes(row, 9)?.ok_or(CORRUPT)?;
        Ok(Self {
            position: rows::number(row, 0)?,
            history: rows::number(row, 1)?,
            sequence,
            previous,
            digest: rows::digest(row, 8)?,
            computed: chain_digest(&previous, sequence, rows::small_number(row, 6)?, key.as_ref(), body),
        })
    }
}

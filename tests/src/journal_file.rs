//! A sidecar's journal as it lies on disk: read without the sidecar, checked link by link, and held
//! against its writer.

use std::{
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
};

use tollgate_client::v1;
use tollgate_domain::{
    Code, FactFilter, FactQuery, History, Outcome, OwnerKind, PageLimit, Reader, RunKey, StoredFact, Terminal, invariants,
};
use tollgate_journal::SqliteReader;

use crate::review::root;

/// Every fact of a history, by a reader of its own; checks that the sequence has no gap and each digest
/// follows from the one before.
pub async fn facts(path: &Path, history: &History) -> Vec<StoredFact> {
    let reader = SqliteReader::open(path).await.expect("the journal opens");
    let facts = facts_from(&reader, history).await;
    reader.close().await;
    facts
}

/// As [`facts`], for many histories of one journal.
pub async fn facts_from(reader: &SqliteReader, history: &History) -> Vec<StoredFact> {
    let facts = pages(reader, history).await;
    let (mut before, mut position) = (None, 0);
    for fact in &facts {
        assert!(invariants::continues(history, before, fact), "{history:?}: {fact:?} does not follow {before:?}");
        assert!(fact.position > position, "{history:?}: positions rise");
        (before, position) = (Some(fact), fact.position);
    }
    facts
}

/// Every fact of a history as it is read, page by page.
pub async fn pages(reader: &dyn Reader, history: &History) -> Vec<StoredFact> {
    let mut facts = Vec::new();
    let mut after_sequence = 0;
    loop {
        let query = FactQuery {
            history: history.clone(),
            filter: FactFilter::default(),
            after_sequence,
            limit: PageLimit::new(200).unwrap(),
        };
        let Some(page) = reader.facts(query).await.expect("the journal reads") else { break };
        facts.extend(page.facts);
        match page.next {
            Some(next) => after_sequence = next,
            None => break,
        }
    }
    facts
}

/// Whether governance closed an invocation, and for this reason.
#[must_use]
pub fn is_closed_by(terminal: &Terminal, code: &Code) -> bool {
    terminal.reported.is_none() && terminal.governed == Outcome::Cancelled { code: Some(code.clone()) }
}

/// The history of a run of the wire.
#[must_use]
pub fn history(run: &v1::RunKey) -> History {
    History::Run(RunKey {
        tenant: run.tenant.parse().unwrap(),
        workspace: run.workspace.parse().unwrap(),
        owner_kind: if run.owner_kind() == v1::OwnerKind::Flow { OwnerKind::Flow } else { OwnerKind::Run },
        owner: run.owner_id.parse().unwrap(),
        run: run.run_id.parse().unwrap(),
    })
}

/// Another program's write lock on a journal: while it lives, appends wait. Lets a test look at calls in
/// flight.
#[derive(Debug)]
pub struct Hold {
    holder: Child,
}

impl Hold {
    /// Takes the lock.
    #[must_use]
    pub fn take(journal: &Path) -> Self {
        const HOLDER: &str = "import sqlite3, sys
journal = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=10)
journal.execute('BEGIN IMMEDIATE')
print('held', flush=True)
sys.stdin.read()";
        let mut command = Command::new(python());
        let mut holder = command.args(["-c", HOLDER]).arg(journal).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(holder.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "held\n", "the journal can be locked");
        Self { holder }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        // Its end is the end of its standard input; killed, it could leave work to the next who opens.
        drop(self.holder.stdin.take());
        drop(self.holder.wait());
    }
}

/// The Python that `cargo xtask setup` prepares.
#[must_use]
pub fn python() -> std::path::PathBuf {
    let python = root().join("target/tools/python/bin/python");
    assert!(python.exists(), "{} is missing: run `cargo xtask setup`", python.display());
    python
}

//! What a decision costs its journal: callers that each look their call up, append it and wait, one runtime thread.
//!
//! `cargo bench -p tollgate-journal`, with `TMPDIR` on the disk that is meant. Each entry is an
//! allowed call of its own: two facts, a tool call and an invocation, in a run of 32 calls. Beside the stores stands
//! the same group commit over a plain file without any index: what no log of our own could be faster than.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::cast_precision_loss,
    reason = "a measurement measures time, prints, and may panic"
)]
#![expect(dead_code, reason = "modules are shared of which a measurement needs little")]

#[path = "../tests/journal/support.rs"]
mod support;

/// The private half of the crate, for a store that is not the product's.
#[path = "../src"]
mod journal {
    pub(crate) mod backend;
    #[path = "../benches/append/file.rs"]
    pub(crate) mod file;
    pub(crate) mod group_commit;
    pub(crate) mod ledger;
    #[path = "sqlite/thread.rs"]
    pub(crate) mod thread;
}

use std::{
    fs,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use journal::{
    backend, file,
    group_commit::GroupCommit,
    ledger::{self, Counters},
};
use tollgate_domain::{Decision, Entry, InvocationKey, Lookup, RunKey, Store};
use tollgate_journal::{MemoryJournal, SqliteJournal};

const SLICE: Duration = Duration::from_secs(2);
const CALLS_OF_A_RUN: usize = 32;

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(tokio::task::LocalSet::new().run_until(async {
        let columns = ["callers", "entries/s", "p50 us", "p99 us", "CPU us", "foreign %"];
        println!("{:<8} {}", "store", columns.map(|column| format!("{column:>10}")).join(" "));
        for callers in [1, 64, 256] {
            measure("memory", &Arc::new(MemoryJournal::new()), callers).await;

            let directory = tempfile::tempdir().unwrap();
            let backend = file::FileBackend::make(&directory.path().join("log"));
            let (commits, writing) = GroupCommit::new(backend, Counters { history: 1, position: 1 }, 4_096);
            journal::thread::run("file-writer", writing).unwrap();
            measure("file", &Arc::new(commits), callers).await;

            let sqlite = Arc::new(sqlite(directory.path()).await);
            measure("sqlite", &sqlite, callers).await;
            Store::close(&*sqlite).await;
        }
    }));
}

async fn sqlite(directory: &Path) -> SqliteJournal {
    let options =
        tollgate_journal::SqliteOptions { wal_bytes: 16 * 1_048_576, ..support::options(&directory.join("journal.db")) };
    SqliteJournal::open(options).await.unwrap()
}

/// What is measured: the two calls that every decision makes.
trait Decides: 'static {
    async fn decide(&self, run: &RunKey, key: &InvocationKey, entry: Entry);
}

impl<S: Store + 'static> Decides for S {
    async fn decide(&self, run: &RunKey, key: &InvocationKey, entry: Entry) {
        assert!(self.lookup(run, &key.tool_call, &key.invocation).await.unwrap().invocation.is_none());
        self.append(entry).await.unwrap();
    }
}

impl Decides for GroupCommit {
    async fn decide(&self, run: &RunKey, key: &InvocationKey, entry: Entry) {
        // There is no index to read what the ledger cannot tell.
        let read = |_| std::future::ready(Ok((Lookup::default(), None)));
        self.lookup(run, &key.tool_call, &key.invocation, read).await.unwrap();
        self.append(entry).await.unwrap();
    }
}

async fn measure(name: &str, journal: &Arc<impl Decides>, callers: usize) {
    let (begun, cpu) = (Instant::now(), Cpu::now());
    let tasks = (0..callers).map(|caller| {
        let journal = Arc::clone(journal);
        tokio::task::spawn_local(async move {
            let mut times = Vec::new();
            while begun.elapsed() < SLICE {
                let n = times.len();
                let run = support::run(&format!("run-{caller}-{}", n / CALLS_OF_A_RUN));
                let key = support::of(&format!("call-{caller}-{n}"), &format!("invocation-{caller}-{n}"), "mail.send");
                let entry = support::judged(&run, &key, Decision::Allow);
                let asked = Instant::now();
                journal.decide(&run, &key, entry).await;
                times.push(asked.elapsed());
                // A store that never waits would starve the other callers.
                tokio::task::yield_now().await;
            }
            times
        })
    });
    let mut times = Vec::new();
    for task in futures_util::future::join_all(tasks).await {
        times.extend(task.unwrap());
    }
    let seconds = begun.elapsed().as_secs_f64();
    let (own, foreign) = cpu.since();
    times.sort_unstable();
    let quantile = |percent: usize| times[(times.len() - 1) * percent / 100].as_micros();
    let count = times.len() as f64;
    println!(
        "{name:<8} {callers:>10} {:>10.0} {:>10} {:>10} {:>10.1} {:>10.0}",
        count / seconds,
        quantile(50),
        quantile(99),
        own * 1e6 / count,
        foreign * 100.0 / seconds
    );
}

/// Seconds of CPU used, by this process and by the whole machine. The kernel counts in hundredths.
struct Cpu {
    own: f64,
    all: f64,
}

impl Cpu {
    fn now() -> Self {
        let sum = |text: &str, fields: std::ops::Range<usize>| {
            let fields = text.split_whitespace().skip(fields.start).take(fields.len());
            fields.map(|field| field.parse::<f64>().unwrap()).sum::<f64>() / 100.0
        };
        let own = fs::read_to_string("/proc/self/stat").unwrap();
        let all = fs::read_to_string("/proc/stat").unwrap();
        // User and system time follow the name in parentheses by eleven fields; those of the machine are user, nice, system.
        Self { own: sum(own.rsplit(')').next().unwrap(), 11..13), all: sum(all.lines().next().unwrap(), 1..4) }
    }

    fn since(&self) -> (f64, f64) {
        let now = Self::now();
        let own = now.own - self.own;
        (own, (now.all - self.all - own).max(0.0))
    }
}

//! What a durable append costs: callers that each wait for their answer, one runtime thread.
//!
//! `cargo bench -p tollgate-journal`, with `TMPDIR` on the disk that is meant. Each entry is an
//! allowed call of its own: two facts, a tool call and an invocation, in one of 64 runs.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    clippy::expect_used,
    reason = "a measurement measures time, prints, and may panic"
)]
#![expect(dead_code, reason = "the tests' facts are shared, of which a measurement needs few")]

#[path = "../tests/journal/support.rs"]
mod support;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use support::Journal;
use tollgate_domain::Decision;
use tollgate_journal::{MemoryJournal, SqliteJournal};

const SLICE: Duration = Duration::from_secs(2);

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(tokio::task::LocalSet::new().run_until(async {
        println!("{:<10} {:>8} {:>12} {:>10} {:>10}", "store", "callers", "entries/s", "p50 us", "p99 us");
        for callers in [1, 8, 64, 256] {
            measure("memory", &Arc::new(MemoryJournal::new()), callers).await;
            let directory = tempfile::tempdir().unwrap();
            let options = tollgate_journal::SqliteOptions {
                wal_bytes: 16 * 1_048_576,
                ..support::options(&directory.path().join("journal.db"))
            };
            let journal = Arc::new(SqliteJournal::open(options).await.unwrap());
            measure("sqlite", &journal, callers).await;
            tollgate_domain::Store::close(&*journal).await;
        }
    }));
}

async fn measure(name: &str, journal: &Arc<impl Journal>, callers: usize) {
    let begun = Instant::now();
    let tasks = (0..callers).map(|caller| {
        let journal = Arc::clone(journal);
        tokio::task::spawn_local(async move {
            let run = support::run(&format!("run-{}", caller % 64));
            let mut times = Vec::new();
            while begun.elapsed() < SLICE {
                let n = times.len();
                let key = support::of(&format!("call-{caller}-{n}"), &format!("invocation-{caller}-{n}"), "mail.send");
                let entry = support::judged(&run, &key, Decision::Allow);
                let asked = Instant::now();
                journal.append(entry).await.unwrap();
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
    times.sort_unstable();
    let quantile = |percent: usize| times[(times.len() - 1) * percent / 100].as_micros();
    #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
    let rate = times.len() as f64 / seconds;
    println!("{name:<10} {callers:>8} {rate:>12.0} {:>10} {:>10}", quantile(50), quantile(99));
}

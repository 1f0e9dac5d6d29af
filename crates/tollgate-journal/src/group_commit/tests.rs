//! Group commit over a backend that fails on demand: what callers are told, and when.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, Ordering},
};

use tokio::sync::Semaphore;
use tollgate_domain::{BundleName, Fact, GenerationRefused, History, SidecarId, SystemRun, Timestamp};

use super::*;
use crate::ledger::{Found, Wanted};

/// What the backend does next, and what it did.
#[derive(Debug)]
struct Control {
    /// Commits that may go on.
    permits: Semaphore,
    /// How commits end; `None` is success.
    failure: Mutex<Option<Unavailable>>,
    /// Whether a commit panics.
    panics: AtomicBool,
    /// Whether healing works.
    heals: AtomicBool,
    /// The facts of each batch that was committed.
    batches: Mutex<Vec<usize>>,
    closed: AtomicBool,
}

struct Fake(Arc<Control>);

impl Backend for Fake {
    async fn load(&mut self, wanted: &[Wanted]) -> Result<Vec<Found>, UnavailableCause> {
        Ok(wanted.iter().map(|_| Found::default()).collect())
    }

    async fn commit(&mut self, batch: Batch) -> Result<(), Unavailable> {
        self.0.permits.acquire().await.unwrap().forget();
        assert!(!self.0.panics.load(Ordering::Relaxed), "as the test asks");
        if let Some(failure) = *self.0.failure.lock().unwrap() {
            return Err(failure);
        }
        self.0.batches.lock().unwrap().push(batch.facts.len());
        Ok(())
    }

    async fn number(&mut self, _request: &NumberRequest) -> Result<GenerationNumbers, Unavailable> {
        Ok(GenerationNumbers::default())
    }

    async fn heal(&mut self) -> Result<Counters, UnavailableCause> {
        if self.0.heals.load(Ordering::Relaxed) { Ok(START) } else { Err(UnavailableCause::ReadOnly) }
    }

    async fn close(&mut self) {
        self.0.closed.store(true, Ordering::Relaxed);
    }
}

const START: Counters = Counters { history: 1, position: 1 };
const FULL: Unavailable = Unavailable { cause: UnavailableCause::Full, may_have_landed: false };

fn start(max_queue: usize) -> (Arc<GroupCommit>, Arc<Control>) {
    let control = Arc::new(Control {
        permits: Semaphore::new(0),
        failure: Mutex::new(None),
        panics: AtomicBool::new(false),
        heals: AtomicBool::new(false),
        batches: Mutex::new(Vec::new()),
        closed: AtomicBool::new(false),
    });
    let (commits, writing) = GroupCommit::new(Fake(Arc::clone(&control)), START, max_queue);
    #[expect(clippy::disallowed_methods, reason = "tests may spawn")]
    let _detached = tokio::spawn(writing);
    (Arc::new(commits), control)
}

fn entry() -> Entry {
    let bundle = BundleName::parse("acme").unwrap();
    let fact = GenerationRefused {
        bundle: bundle.clone(),
        revision: "r".parse().unwrap(),
        code: "unreadable".parse().unwrap(),
        findings: Vec::new(),
        findings_count: 0,
        sidecar: SidecarId::parse("sidecar").unwrap(),
        at: Timestamp::from_micros(1),
    };
    Entry { history: History::System(SystemRun::Bundle(bundle)), invocation: None, facts: vec![Fact::GenerationRefused(fact)] }
}

type Answer = tokio::task::JoinHandle<Result<Receipt, AppendError>>;

/// Sends an append, and lets everything run that can.
async fn send(commits: &Arc<GroupCommit>) -> Answer {
    send_entry(commits, entry()).await
}

async fn send_entry(commits: &Arc<GroupCommit>, entry: Entry) -> Answer {
    let commits = Arc::clone(commits);
    #[expect(clippy::disallowed_methods, reason = "tests may spawn")]
    let answer = tokio::spawn(async move { commits.append(entry).await });
    settle().await;
    answer
}

async fn settle() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn p05_nothing_is_acknowledged_before_its_commit() {
    let (commits, control) = start(8);
    let answer = send(&commits).await;
    assert!(!answer.is_finished());
    control.permits.add_permits(1);
    assert_eq!(answer.await.unwrap(), Ok(Receipt { sequence: 1, position: 1, attempt: 0 }));
}

#[tokio::test(start_paused = true)]
async fn what_arrives_during_a_commit_shares_the_next() {
    let (commits, control) = start(8);
    let first = send(&commits).await;
    let others = [send(&commits).await, send(&commits).await, send(&commits).await];
    control.permits.add_permits(2);
    first.await.unwrap().unwrap();
    for (other, sequence) in others.into_iter().zip(2..) {
        assert_eq!(other.await.unwrap().unwrap().sequence, sequence);
    }
    assert_eq!(*control.batches.lock().unwrap(), [1, 3]);
}

#[tokio::test(start_paused = true)]
async fn batch_of_large_entries_takes_no_more_once_it_is_large() {
    let (commits, control) = start(16);
    let first = send(&commits).await;
    let mut large = entry();
    // 4,000 facts are more than half a mebibyte, and less than one.
    large.facts = large.facts.iter().cycle().take(4_000).cloned().collect();
    let mut others = Vec::new();
    for entry in [large.clone(), large.clone(), entry(), large] {
        others.push(send_entry(&commits, entry).await);
    }
    control.permits.add_permits(3);
    first.await.unwrap().unwrap();
    for other in others {
        other.await.unwrap().unwrap();
    }
    assert_eq!(*control.batches.lock().unwrap(), [1, 8_000, 4_001]);
}

#[tokio::test(start_paused = true)]
async fn caller_that_gave_up_before_the_batch_leaves_nothing() {
    let (commits, control) = start(8);
    let first = send(&commits).await;
    let second = send(&commits).await;
    second.abort();
    settle().await;
    let third = send(&commits).await;
    control.permits.add_permits(2);
    first.await.unwrap().unwrap();
    assert_eq!(third.await.unwrap().unwrap().sequence, 2);
}

#[tokio::test(start_paused = true)]
async fn p07_full_queue_refuses_as_overloaded() {
    let (commits, control) = start(2);
    let taken = send(&commits).await;
    let waiting = [send(&commits).await, send(&commits).await];
    let refused = commits.append(entry()).await;
    let overloaded = Unavailable { cause: UnavailableCause::Overloaded, may_have_landed: false };
    assert_eq!(refused, Err(overloaded.into()));
    assert_eq!(commits.health(), StoreHealth::Serving, "a full queue is no failure of the store");
    control.permits.add_permits(2);
    taken.await.unwrap().unwrap();
    for answer in waiting {
        answer.await.unwrap().unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn g12_failed_batch_is_refused_whole_then_the_queue_and_later_appends_at_once() {
    let (commits, control) = start(8);
    let landed = Unavailable { may_have_landed: true, ..FULL };
    *control.failure.lock().unwrap() = Some(landed);
    let batch = send(&commits).await;
    let queued = send(&commits).await;
    control.permits.add_permits(1);
    assert_eq!(batch.await.unwrap(), Err(landed.into()));
    assert_eq!(queued.await.unwrap(), Err(FULL.into()), "only what was committed may have landed");
    assert_eq!(commits.health(), StoreHealth::Failing(UnavailableCause::Full));
    assert_eq!(commits.append(entry()).await, Err(FULL.into()));
}

#[tokio::test(start_paused = true)]
async fn p07_store_heals_by_itself_and_begins_where_the_database_ends() {
    let (commits, control) = start(8);
    *control.failure.lock().unwrap() = Some(FULL);
    control.permits.add_permits(1);
    send(&commits).await.await.unwrap().unwrap_err();
    // The cause of the last try is the one that is told.
    let failing = commits.health_changed(StoreHealth::Failing(UnavailableCause::Full)).await;
    assert_eq!(failing, StoreHealth::Failing(UnavailableCause::ReadOnly));
    *control.failure.lock().unwrap() = None;
    control.heals.store(true, Ordering::Relaxed);
    assert_eq!(commits.health_changed(failing).await, StoreHealth::Serving);
    control.permits.add_permits(1);
    assert_eq!(send(&commits).await.await.unwrap().unwrap().position, 1);
}

#[tokio::test(start_paused = true)]
async fn p09_close_commits_what_was_accepted_and_refuses_the_rest() {
    let (commits, control) = start(8);
    let accepted = [send(&commits).await, send(&commits).await];
    let closing = Arc::clone(&commits);
    #[expect(clippy::disallowed_methods, reason = "tests may spawn")]
    let closing = tokio::spawn(async move { closing.close().await });
    settle().await;
    control.permits.add_permits(2);
    closing.await.unwrap();
    for answer in accepted {
        answer.await.unwrap().unwrap();
    }
    let closed = Unavailable { cause: UnavailableCause::Closed, may_have_landed: false };
    assert_eq!(commits.append(entry()).await, Err(closed.into()));
    assert!(control.closed.load(Ordering::Relaxed));
}

#[tokio::test(start_paused = true)]
async fn close_does_not_wait_for_a_failing_store_to_heal() {
    let (commits, control) = start(8);
    *control.failure.lock().unwrap() = Some(FULL);
    control.permits.add_permits(1);
    send(&commits).await.await.unwrap().unwrap_err();
    commits.close().await;
    assert!(control.closed.load(Ordering::Relaxed));
    assert_eq!(commits.health(), StoreHealth::Failing(UnavailableCause::Closed));
}

#[tokio::test(start_paused = true)]
async fn a_writer_that_panics_leaves_a_closed_journal_and_nobody_waiting() {
    let (commits, control) = start(8);
    let (first, second) = (send(&commits).await, send(&commits).await);
    control.panics.store(true, Ordering::Relaxed);
    control.permits.add_permits(1);
    let closed = |may_have_landed| Err(Unavailable { cause: UnavailableCause::Closed, may_have_landed }.into());
    assert_eq!((first.await.unwrap(), second.await.unwrap()), (closed(true), closed(true)));
    assert_eq!(commits.health(), StoreHealth::Failing(UnavailableCause::Closed));
    assert_eq!(commits.append(entry()).await, closed(false));
    commits.close().await;
}

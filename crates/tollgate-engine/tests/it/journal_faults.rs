//! A journal that cannot take a fact: nothing is approved, and the caller learns that kind of "no".

use std::time::Duration;

use tollgate_domain::{Reported, UnavailableCause};
use tollgate_engine::{CompleteError, EvaluateError, JournalProblem, Readiness};

use crate::harness::{Fault, World, allowed, assert_allowed, call, hook, refused};

const EVERY_CAUSE: [UnavailableCause; 7] = [
    UnavailableCause::Full,
    UnavailableCause::ReadOnly,
    UnavailableCause::Io,
    UnavailableCause::Corrupt,
    UnavailableCause::Overloaded,
    UnavailableCause::Closed,
    UnavailableCause::Other,
];

fn unavailable(cause: UnavailableCause) -> EvaluateError {
    EvaluateError::Journal(JournalProblem::Unavailable(cause))
}

/// Nothing is read any more, or the next append waits.
fn stall(world: &World, reading: bool) {
    if reading {
        world.store.reading(Fault::Stall);
    } else {
        world.store.next([Fault::Stall]);
    }
}

#[tokio::test(start_paused = true)]
async fn b14_g12_whatever_the_cause_an_unwritten_call_is_not_approved() {
    for cause in EVERY_CAUSE {
        let world = World::with(vec![hook("a")]).await;
        world.store.next([Fault::Refuse(cause)]);
        assert_eq!(world.ask(call("i-1")).await.unwrap_err(), unavailable(cause));
        // The very same call may be sent again, and is judged afresh.
        assert_eq!(allowed(world.ask(call("i-1")).await).decided().attempt, 1);
    }
}

#[tokio::test(start_paused = true)]
async fn b14_a_remote_hook_is_not_asked_where_started_cannot_be_written() {
    for cause in EVERY_CAUSE {
        let world = World::with(vec![hook("a").remote()]).await;
        world.store.next([Fault::Refuse(cause)]);
        assert_eq!(world.ask(call("i-1")).await.unwrap_err(), unavailable(cause));
        assert!(!world.log.take().contains("ask "));
    }
}

#[tokio::test(start_paused = true)]
async fn a_remote_decision_that_cannot_be_written_does_not_leave_started_alone() {
    let world = World::with(vec![hook("a").remote()]).await;
    world.store.next([Fault::None, Fault::Refuse(UnavailableCause::Io)]);
    world.ask(call("i-1")).await.unwrap_err();
    world.settle().await;
    insta::assert_snapshot!(world.log.take(), @"
    commit i-1 attempt 1
      1 ToolCallStarted
    ask a about i-1 attempt 1
    commit i-1 attempt 1
      2 ToolCallCancelled cancelled journal_unavailable
    no decision: journal io
    ");
}

#[tokio::test(start_paused = true)]
async fn m08_a_record_that_cannot_be_read_is_never_taken_for_an_empty_one() {
    for cause in EVERY_CAUSE {
        let world = World::with(vec![hook("a")]).await;
        world.store.reading(Fault::Refuse(cause));
        assert_eq!(world.ask(call("i-1")).await.unwrap_err(), unavailable(cause));
        assert!(!world.log.take().contains("ask "));
    }
}

#[tokio::test(start_paused = true)]
async fn p07_a_stalled_journal_is_waited_for_until_the_callers_deadline() {
    for reading in [false, true] {
        let world = World::with(vec![hook("a")]).await;
        stall(&world, reading);
        let began = tokio::time::Instant::now();
        let error = world.ask_within(Duration::from_secs(2), call("i-1")).await.unwrap_err();
        assert_eq!(error, EvaluateError::Journal(JournalProblem::DeadlinePassed));
        assert_eq!(began.elapsed().as_secs(), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn p07_a_stalled_journal_is_waited_for_no_longer_than_configured() {
    for reading in [false, true] {
        let world = World::with(vec![hook("a")]).await;
        stall(&world, reading);
        let began = tokio::time::Instant::now();
        let error = world.ask(call("i-1")).await.unwrap_err();
        assert_eq!(error, EvaluateError::Journal(JournalProblem::TooSlow));
        assert_eq!(began.elapsed().as_secs(), 5);
    }
}

#[tokio::test(start_paused = true)]
async fn p09_readiness_follows_the_journal_and_heals_with_it() {
    let world = World::with(vec![hook("a")]).await;
    let readiness = world.engine.readiness();
    assert_eq!(*readiness.borrow(), Readiness::Serving);
    world.fail(Some(UnavailableCause::Full));
    world.settle().await;
    assert_eq!(*readiness.borrow(), Readiness::Journal(UnavailableCause::Full));
    world.ask(call("i-1")).await.unwrap_err();
    world.fail(None);
    world.settle().await;
    assert_eq!(*readiness.borrow(), Readiness::Serving);
    assert_allowed(world.ask(call("i-1")).await);
}

#[tokio::test(start_paused = true)]
async fn b15_an_outcome_that_cannot_be_written_is_the_callers_to_send_again() {
    for cause in EVERY_CAUSE {
        let world = World::with(vec![hook("a")]).await;
        world.decide(call("i-1")).await;
        world.store.next([Fault::Refuse(cause)]);
        let reported = Reported::Succeeded { tool_error: false };
        let error = world.complete("i-1", reported.clone()).await.unwrap_err();
        assert_eq!(error, CompleteError::Journal(JournalProblem::Unavailable(cause)));
        assert!(!world.complete("i-1", reported).await.unwrap().repeat);
    }
}

#[tokio::test(start_paused = true)]
async fn b15_an_outcome_that_landed_unsaid_stands_when_it_is_sent_again() {
    let world = World::with(vec![hook("a")]).await;
    world.decide(call("i-1")).await;
    world.store.next([Fault::LandUnsaid(UnavailableCause::Io)]);
    world.complete("i-1", Reported::Succeeded { tool_error: false }).await.unwrap_err();
    assert!(world.complete("i-1", Reported::Cancelled).await.unwrap().repeat);
    insta::assert_snapshot!(world.log.take(), @"
    ask a about i-1 attempt 1
    commit i-1 attempt 1
      1 ToolCallStarted
      2 GovernanceEvaluated ALLOW [1 a ALLOWED] generation 1
    answer ALLOW; attempt 1, generation 1, sequence 2
    commit i-1 attempt 1
      3 ToolCallCompleted succeeded
    not recorded: journal io
    recorded succeeded, reported succeeded again
    ");
}

#[tokio::test(start_paused = true)]
async fn p07_completing_waits_for_a_stalled_journal_no_longer_than_the_deadline_or_the_limit() {
    for (patience, problem, waited) in
        [(Duration::from_secs(2), JournalProblem::DeadlinePassed, 2), (Duration::from_secs(10), JournalProblem::TooSlow, 5)]
    {
        for reading in [false, true] {
            let world = World::with(vec![hook("a")]).await;
            world.decide(call("i-1")).await;
            stall(&world, reading);
            let began = tokio::time::Instant::now();
            let (rights, invocation) = (tollgate_domain::Rights::default(), "i-1".parse().unwrap());
            let reported = Reported::Succeeded { tool_error: false };
            let answer = world.engine.complete(&rights, crate::harness::run(), invocation, reported, patience).await;
            assert_eq!(answer.unwrap_err(), CompleteError::Journal(problem));
            assert_eq!(began.elapsed().as_secs(), waited);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_refusal_that_cannot_be_written_is_no_decision_either() {
    let world = World::with(vec![hook("a").does(crate::harness::Does::Deny("limit"))]).await;
    world.store.next([Fault::Refuse(UnavailableCause::Full)]);
    assert_eq!(world.ask(call("i-1")).await.unwrap_err(), unavailable(UnavailableCause::Full));
    assert!(!refused(world.ask(call("i-1")).await).decided.repeat);
}

#[tokio::test(start_paused = true)]
async fn b16_an_outcome_that_cannot_be_written_never_takes_the_place_of_the_providers_own_failure() {
    let world = World::with(vec![hook("a")]).await;
    world.decide(call("i-1")).await;
    world.store.next([Fault::Refuse(UnavailableCause::Io)]);
    let thrown = Reported::ProviderFailed { error_type: "TimeoutError".to_owned(), error_message: "no answer".to_owned() };
    world.complete("i-1", thrown.clone()).await.unwrap_err();
    let completion = world.complete("i-1", thrown.clone()).await.unwrap();
    let own = thrown.into_outcome(true);
    assert_eq!((completion.reported, completion.governed), (Some(own.clone()), own));
}

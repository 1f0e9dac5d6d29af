//! The end of an engine: no new calls, outcomes to the last, and nothing lost that was in flight.

use std::{sync::Arc, time::Duration};

use tokio::sync::Semaphore;
use tollgate_domain::{Reported, Store, StoreHealth, UnavailableCause};
use tollgate_engine::{CompleteError, EvaluateError, Readiness};

use crate::harness::{Does, Fault, World, assert_allowed, call, hook};

const SUCCEEDED: Reported = Reported::Succeeded { tool_error: false };

#[tokio::test(start_paused = true)]
async fn draining_refuses_new_calls_finishes_those_in_flight_and_lets_outcomes_through() {
    let gate = Arc::new(Semaphore::new(0));
    let world = World::with(vec![hook("a").does(Does::AllowWhen(Arc::clone(&gate)))]).await;
    let sent = world.send(call("i-1"));
    world.settle().await;
    world.engine.drain();
    assert_eq!(*world.engine.readiness().borrow(), Readiness::ShuttingDown);
    assert_eq!(world.ask(call("i-2")).await.unwrap_err(), EvaluateError::ShuttingDown);
    gate.add_permits(1);
    assert_allowed(sent.answer().await);
    world.complete("i-1", SUCCEEDED).await.unwrap();
    insta::assert_snapshot!(world.log.take(), @"
    ask a about i-1 attempt 1
    no decision: shutting down
    commit i-1 attempt 1
      1 ToolCallStarted
      2 GovernanceEvaluated ALLOW [1 a ALLOWED] generation 1
    answer ALLOW; attempt 1, generation 1, sequence 2
    commit i-1 attempt 1
      3 ToolCallCompleted succeeded
    recorded succeeded, reported succeeded; sequence 3
    ");
}

#[tokio::test(start_paused = true)]
async fn shutdown_waits_for_what_is_in_flight_and_closes_the_journal() {
    let world = World::with(vec![hook("a").does(Does::AllowAfter(Duration::from_secs(1)))]).await;
    let sent = world.send(call("i-1"));
    world.settle().await;
    world.engine.shut_down().await;
    assert_allowed(sent.answer().await);
    assert_eq!(world.store.health(), StoreHealth::Failing(UnavailableCause::Closed));
    assert_eq!(world.complete("i-1", SUCCEEDED).await.unwrap_err(), CompleteError::ShuttingDown);
}

#[tokio::test(start_paused = true)]
async fn shutdown_does_not_wait_for_ever_and_what_it_cuts_is_not_approved() {
    let world = World::with(vec![hook("a").does(Does::AllowAfter(Duration::from_secs(9)))]).await;
    let sent = world.send(call("i-1"));
    world.settle().await;
    let began = tokio::time::Instant::now();
    world.engine.shut_down().await;
    assert!(began.elapsed() < Duration::from_secs(5));
    sent.answer().await.unwrap_err();
}

#[tokio::test(start_paused = true)]
async fn g13_an_allow_that_lands_while_the_engine_shuts_down_is_closed_before_the_journal_is() {
    let world = World::with(vec![hook("a")]).await;
    world.store.next([Fault::Stall]);
    let sent = world.send(call("i-1"));
    world.settle().await;
    sent.cancel.cancel();
    sent.answer().await.unwrap_err();
    let landing = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        world.store.let_go();
    };
    tokio::join!(world.engine.shut_down(), landing);
    insta::assert_snapshot!(world.log.take(), @"
    ask a about i-1 attempt 1
    no decision: journal deadline_passed
    commit i-1 attempt 1
      1 ToolCallStarted
      2 GovernanceEvaluated ALLOW [1 a ALLOWED] generation 1
    commit i-1 attempt 1
      3 ToolCallCancelled cancelled journal_unavailable
    ");
}

/// What the doors run beside the calls: told to end by the token, and waited for.
#[tokio::test(start_paused = true)]
async fn tasks_of_the_doors_hear_of_the_drain_and_shutdown_waits_for_them() {
    let world = World::with(vec![hook("a")]).await;
    let (draining, ended) = (world.engine.draining(), Arc::new(Semaphore::new(0)));
    let ending = Arc::clone(&ended);
    world.engine.spawn(async move {
        draining.cancelled().await;
        tokio::time::sleep(Duration::from_millis(500)).await;
        ending.add_permits(1);
    });
    assert!(!world.engine.draining().is_cancelled());
    world.engine.drain();
    assert!(world.engine.draining().is_cancelled());
    world.engine.shut_down().await;
    assert_eq!(ended.available_permits(), 1);
}

/// Health is told by each change, and by nothing else.
#[tokio::test(start_paused = true)]
async fn whoever_watches_readiness_is_woken_by_every_change_of_it_alone() {
    let world = World::empty(crate::harness::options());
    let mut readiness = world.engine.readiness();
    world.settle().await;
    assert!(!readiness.has_changed().unwrap());
    world.activate("first", vec![hook("a")]).await;
    assert!(readiness.has_changed().unwrap());
    assert_eq!(*readiness.borrow_and_update(), Readiness::Serving);
    world.activate("second", vec![hook("a")]).await;
    assert!(!readiness.has_changed().unwrap());
    world.engine.drain();
    assert!(readiness.has_changed().unwrap());
}

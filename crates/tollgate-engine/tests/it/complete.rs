//! Complete: which invocations have an outcome to record, and which outcome stands.

use std::sync::Arc;

use tollgate_domain::{Outcome, Reported, Rights};
use tollgate_engine::CompleteError;

use crate::harness::{Does, Fault, World, call, hook, options, run};

const SUCCEEDED: Reported = Reported::Succeeded { tool_error: false };

#[tokio::test(start_paused = true)]
async fn l46_the_first_outcome_stands() {
    let world = World::with(vec![hook("a").told(Does::Allow)]).await;
    world.decide(call("i-1")).await;
    world.complete("i-1", SUCCEEDED).await.unwrap();
    world.complete("i-1", Reported::Cancelled).await.unwrap();
    world.complete("i-1", SUCCEEDED).await.unwrap();
    insta::assert_snapshot!(world.log.take(), @"
    ask a about i-1 attempt 1
    commit i-1 attempt 1
      1 ToolCallStarted
      2 GovernanceEvaluated ALLOW [1 a ALLOWED] generation 1
    answer ALLOW; attempt 1, generation 1, sequence 2
    tell a of i-1 succeeded
    commit i-1 attempt 1
      3 ToolCallCompleted succeeded [a notified]
    recorded succeeded, reported succeeded; sequence 3
    recorded succeeded, reported succeeded again
    recorded succeeded, reported succeeded again
    ");
}

#[tokio::test(start_paused = true)]
async fn l46_of_two_at_once_one_stands_and_both_are_told_it() {
    let world = World::with(vec![hook("a")]).await;
    world.decide(call("i-1")).await;
    world.store.next([Fault::Stall, Fault::None]);
    let stalled = async {
        let answer = world.complete("i-1", Reported::Cancelled).await.unwrap();
        assert!(answer.repeat);
        assert_eq!(answer.reported, Some(Outcome::Succeeded { tool_error: false }));
    };
    let quick = async {
        tokio::task::yield_now().await;
        assert!(!world.complete("i-1", SUCCEEDED).await.unwrap().repeat);
        world.store.let_go();
    };
    tokio::join!(stalled, quick);
    insta::assert_snapshot!(world.log.take(), @"
    ask a about i-1 attempt 1
    commit i-1 attempt 1
      1 ToolCallStarted
      2 GovernanceEvaluated ALLOW [1 a ALLOWED] generation 1
    answer ALLOW; attempt 1, generation 1, sequence 2
    commit i-1 attempt 1
      3 ToolCallCompleted succeeded
    recorded succeeded, reported succeeded; sequence 3
    recorded succeeded, reported succeeded again
    ");
}

#[tokio::test(start_paused = true)]
async fn an_invocation_that_was_not_allowed_has_no_outcome_of_its_callers() {
    for does in [Does::Deny("limit"), Does::Fail("policy_error")] {
        let world = World::with(vec![hook("a").does(does)]).await;
        world.decide(call("i-1")).await;
        assert_eq!(world.complete("i-1", SUCCEEDED).await.unwrap_err(), CompleteError::NotAllowed);
    }
}

#[tokio::test(start_paused = true)]
async fn an_invocation_that_is_not_decided_yet_has_no_outcome_either() {
    let world = World::with(vec![hook("a").remote().does(Does::Hang)]).await;
    let sent = world.send(call("i-1"));
    world.settle().await;
    assert_eq!(world.complete("i-1", SUCCEEDED).await.unwrap_err(), CompleteError::NotAllowed);
    sent.hang_up();
}

#[tokio::test(start_paused = true)]
async fn g19_what_is_unknown_or_lies_elsewhere_is_not_found_and_nothing_is_written() {
    let world = World::with(vec![hook("a")]).await;
    assert_eq!(world.complete("i-1", SUCCEEDED).await.unwrap_err(), CompleteError::NotFound);
    world.decide(call("i-1")).await;
    world.log.take();
    for rights in [
        Rights { tenants: vec!["other".parse().unwrap()], ..Rights::default() },
        Rights { workspaces: vec!["other".parse().unwrap()], ..Rights::default() },
        Rights { agents: vec!["other".parse().unwrap()], ..Rights::default() },
    ] {
        assert_eq!(world.complete_as(&rights, "i-1", SUCCEEDED).await.unwrap_err(), CompleteError::NotFound);
    }
    let mut elsewhere = run();
    elsewhere.run = "run-2".parse().unwrap();
    let patience = std::time::Duration::from_secs(1);
    let answer = world.engine.complete(&Rights::default(), elsewhere, "i-1".parse().unwrap(), SUCCEEDED, patience).await;
    assert_eq!(answer.unwrap_err(), CompleteError::NotFound);
    assert!(!world.log.take().contains("commit"));
    assert!(!world.complete("i-1", SUCCEEDED).await.unwrap().repeat);
}

#[tokio::test(start_paused = true)]
async fn an_allow_that_has_expired_is_still_completed() {
    let world = World::with(vec![hook("a")]).await;
    world.decide(call("i-1")).await;
    tokio::time::sleep(std::time::Duration::from_hours(1)).await;
    let completion = world.complete("i-1", SUCCEEDED).await.unwrap();
    assert_eq!(completion.duration_us, 3_600_000_000);
}

#[tokio::test(start_paused = true)]
async fn a_wall_clock_that_goes_backwards_makes_no_negative_duration() {
    let world = World::with(vec![hook("a")]).await;
    world.decide(call("i-1")).await;
    world.jump_wall_clock(-5_000_000);
    assert_eq!(world.complete("i-1", SUCCEEDED).await.unwrap().duration_us, 0);
}

#[tokio::test(start_paused = true)]
async fn an_outcome_is_recorded_after_a_restart() {
    let world = World::with(vec![hook("a").told(Does::Allow)]).await;
    world.decide(call("i-1")).await;
    let world = world.restart(vec![hook("a").told(Does::Allow)]).await;
    world.complete("i-1", SUCCEEDED).await.unwrap();
    insta::assert_snapshot!(world.log.take(), @"
    tell a of i-1 succeeded
    commit i-1 attempt 1
      3 ToolCallCompleted succeeded [a notified]
    recorded succeeded, reported succeeded; sequence 3
    ");
}

#[tokio::test(start_paused = true)]
async fn h10_an_outcome_that_a_hook_waits_for_is_not_recorded_before_there_is_a_generation() {
    for (told, waits) in [(hook("a").told(Does::Allow), true), (hook("a"), false)] {
        let before = World::with(vec![told]).await;
        before.decide(call("i-1")).await;
        let after = World::on(Arc::clone(&before.store.inner), options(), Vec::new());
        let completion = after.complete("i-1", SUCCEEDED).await;
        assert_eq!(completion.is_err(), waits, "{completion:?}");
        after.activate("first", vec![hook("a").told(Does::Allow)]).await;
        assert_eq!(after.complete("i-1", SUCCEEDED).await.unwrap().repeat, !waits);
    }
}

#[tokio::test(start_paused = true)]
async fn an_outcome_is_recorded_although_its_caller_hangs_up() {
    let world = World::with(vec![hook("a").told(Does::AllowAfter(std::time::Duration::from_secs(1)))]).await;
    world.decide(call("i-1")).await;
    let hung_up = tokio::time::timeout(std::time::Duration::from_millis(10), world.complete("i-1", SUCCEEDED)).await;
    assert!(hung_up.is_err());
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    assert!(world.complete("i-1", SUCCEEDED).await.unwrap().repeat);
}

//! Decisions that become durable after their callers were told that there is none.

use tollgate_domain::{InvocationState, Reported, Store, UnavailableCause};
use tollgate_engine::EvaluateError;

use crate::harness::{Does, Fault, World, assert_allowed, call, hook, run};

async fn state(world: &World, invocation: &str) -> InvocationState {
    world.store.inner.invocation(&run(), &invocation.parse().unwrap()).await.unwrap().unwrap().state
}

#[tokio::test(start_paused = true)]
async fn g13_an_allow_that_landed_unsaid_is_closed_and_never_repeated() {
    let world = World::with(vec![hook("a")]).await;
    world.store.next([Fault::LandUnsaid(UnavailableCause::Io)]);
    world.ask(call("i-1")).await.unwrap_err();
    world.settle().await;
    let again = world.ask(call("i-1")).await.unwrap_err();
    assert!(matches!(again, EvaluateError::InvocationUnverifiable(_)));
    // Whoever ran the tool all the same learns what stands.
    world.complete("i-1", Reported::Succeeded { tool_error: false }).await.unwrap();
    insta::assert_snapshot!(world.log.take(), @"
    ask a about i-1 attempt 1
    commit i-1 attempt 1
      1 ToolCallStarted
      2 GovernanceEvaluated ALLOW [1 a ALLOWED] generation 1
    commit i-1 attempt 1
      3 ToolCallCancelled cancelled journal_unavailable
    no decision: journal io
    no decision: invocation unverifiable
    recorded cancelled journal_unavailable, reported nothing again
    ");
}

#[tokio::test(start_paused = true)]
async fn g13_an_allow_that_lands_after_the_wait_was_given_up_is_closed() {
    let world = World::with(vec![hook("a")]).await;
    world.store.next([Fault::Stall]);
    world.ask(call("i-1")).await.unwrap_err();
    world.store.let_go();
    world.settle().await;
    insta::assert_snapshot!(world.log.take(), @"
    ask a about i-1 attempt 1
    no decision: journal too_slow
    commit i-1 attempt 1
      1 ToolCallStarted
      2 GovernanceEvaluated ALLOW [1 a ALLOWED] generation 1
    commit i-1 attempt 1
      3 ToolCallCancelled cancelled journal_unavailable
    ");
}

#[tokio::test(start_paused = true)]
async fn g13_it_is_closed_only_once_the_journal_heals() {
    let world = World::with(vec![hook("a")]).await;
    world.store.next([Fault::LandUnsaid(UnavailableCause::Full), Fault::Refuse(UnavailableCause::Full)]);
    world.ask(call("i-1")).await.unwrap_err();
    world.fail(Some(UnavailableCause::Full));
    tokio::time::sleep(std::time::Duration::from_mins(1)).await;
    assert_eq!(state(&world, "i-1").await, InvocationState::Open);
    world.fail(None);
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    assert_eq!(state(&world, "i-1").await, InvocationState::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn a_started_fact_that_landed_unsaid_before_a_remote_hook_is_closed() {
    let world = World::with(vec![hook("a").remote()]).await;
    world.store.next([Fault::LandUnsaid(UnavailableCause::Io)]);
    world.ask(call("i-1")).await.unwrap_err();
    world.settle().await;
    insta::assert_snapshot!(world.log.take(), @"
    commit i-1 attempt 1
      1 ToolCallStarted
    commit i-1 attempt 1
      2 ToolCallCancelled cancelled journal_unavailable
    no decision: journal io
    ");
}

#[tokio::test(start_paused = true)]
async fn a_refusal_that_landed_unsaid_stands_and_is_repeated() {
    let world = World::with(vec![hook("a").does(Does::Deny("limit"))]).await;
    world.store.next([Fault::LandUnsaid(UnavailableCause::Io)]);
    world.ask(call("i-1")).await.unwrap_err();
    world.settle().await;
    world.decide(call("i-1")).await;
    insta::assert_snapshot!(world.log.take(), @"
    ask a about i-1 attempt 1
    commit i-1 attempt 1
      1 ToolCallStarted
      2 GovernanceEvaluated DENY by a limit [1 a DENIED limit] generation 1
      3 ToolCallFailed failed (denied) limit
    no decision: journal io
    answer DENY by a limit again; attempt 1, generation 1, sequence 3
    ");
}

/// A sending of `i-1` of which nothing lands, which the journal cannot tell until a little later.
async fn lose_unsettled(world: &World) {
    world.store.next([Fault::LoseUnsure(UnavailableCause::Io)]);
    world.store.refuse_one_invocation();
    world.ask(call("i-1")).await.unwrap_err();
}

#[tokio::test(start_paused = true)]
async fn an_allow_that_was_told_is_never_closed_for_one_that_was_not() {
    let world = World::with(vec![hook("a")]).await;
    // The first sending is lost, and the journal does not know it; while that is being settled, the
    // caller sends the same call again.
    lose_unsettled(&world).await;
    assert_allowed(world.ask(call("i-1")).await);
    tokio::time::sleep(std::time::Duration::from_secs(10)).await;
    assert_eq!(state(&world, "i-1").await, InvocationState::Open);
}

#[tokio::test(start_paused = true)]
async fn what_another_sidecar_decided_under_the_same_id_is_not_closed() {
    let world = World::with(vec![hook("a")]).await;
    lose_unsettled(&world).await;
    let mut rules = crate::harness::options().rules;
    rules.sidecar = "sidecar-2".parse().unwrap();
    let options = tollgate_engine::EngineOptions { rules, ..crate::harness::options() };
    let other = World::on(std::sync::Arc::clone(&world.store.inner), options, Vec::new());
    other.activate("first", vec![hook("a")]).await;
    assert_allowed(other.ask(call("i-1")).await);
    tokio::time::sleep(std::time::Duration::from_secs(10)).await;
    assert_eq!(state(&world, "i-1").await, InvocationState::Open);
}

#[tokio::test(start_paused = true)]
async fn a_started_fact_that_lands_after_its_caller_left_asks_nobody_and_is_closed() {
    let world = World::with(vec![hook("a").remote()]).await;
    world.store.next([Fault::Stall]);
    let sent = world.send(call("i-1"));
    world.settle().await;
    sent.cancel.cancel();
    sent.answer().await.unwrap_err();
    world.store.let_go();
    world.settle().await;
    insta::assert_snapshot!(world.log.take(), @"
    no decision: journal deadline_passed
    commit i-1 attempt 1
      1 ToolCallStarted
    commit i-1 attempt 1
      2 ToolCallCancelled cancelled journal_unavailable
    ");
}

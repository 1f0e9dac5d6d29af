//! Calls whose callers no longer wait: cancelled, past their deadline, or gone.

use std::{sync::Arc, time::Duration};

use tokio::sync::Semaphore;
use tollgate_domain::{Decision, UnavailableCause};

use crate::harness::{Does, Fault, World, call, hook, refused};

async fn hanging() -> World {
    World::with(vec![hook("a").told(Does::Allow), hook("b").does(Does::Hang).told(Does::Allow), hook("c").told(Does::Allow)])
        .await
}

#[tokio::test(start_paused = true)]
async fn h15_a_call_that_is_cancelled_in_a_hook_is_recorded_as_cancelled() {
    let world = hanging().await;
    let sent = world.send(call("i-1"));
    world.settle().await;
    sent.cancel.cancel();
    drop(sent.answer().await.unwrap());
    insta::assert_snapshot!(world.log.take(), @"
    ask a about i-1 attempt 1
    ask b about i-1 attempt 1
    tell b of i-1 cancelled tool_execution_cancelled
    tell a of i-1 cancelled tool_execution_cancelled
    commit i-1 attempt 1
      1 ToolCallStarted
      2 GovernanceEvaluated FAILED by b tool_execution_cancelled [1 a ALLOWED, 2 b FAILED tool_execution_cancelled] generation 1
      3 ToolCallCancelled cancelled tool_execution_cancelled [b notified, a notified]
    answer FAILED by b tool_execution_cancelled; attempt 1, generation 1, sequence 3
    ");
}

#[tokio::test(start_paused = true)]
async fn h15_a_call_whose_deadline_passes_in_a_hook_is_recorded_as_cancelled() {
    let world = hanging().await;
    drop(world.ask_within(Duration::from_secs(2), call("i-1")).await.unwrap());
    insta::assert_snapshot!(world.log.take(), @"
    ask a about i-1 attempt 1
    ask b about i-1 attempt 1
    tell b of i-1 cancelled tool_execution_cancelled
    tell a of i-1 cancelled tool_execution_cancelled
    commit i-1 attempt 1
      1 ToolCallStarted
      2 GovernanceEvaluated FAILED by b tool_execution_cancelled [1 a ALLOWED, 2 b FAILED tool_execution_cancelled] generation 1
      3 ToolCallCancelled cancelled tool_execution_cancelled [b notified, a notified]
    answer FAILED by b tool_execution_cancelled; attempt 1, generation 1, sequence 3
    ");
}

#[tokio::test(start_paused = true)]
async fn h15_a_caller_that_hangs_up_cancels_its_call() {
    let world = hanging().await;
    let sent = world.send(call("i-1"));
    world.settle().await;
    sent.hang_up();
    world.settle().await;
    insta::assert_snapshot!(world.log.take(), @"
    ask a about i-1 attempt 1
    ask b about i-1 attempt 1
    tell b of i-1 cancelled tool_execution_cancelled
    tell a of i-1 cancelled tool_execution_cancelled
    commit i-1 attempt 1
      1 ToolCallStarted
      2 GovernanceEvaluated FAILED by b tool_execution_cancelled [1 a ALLOWED, 2 b FAILED tool_execution_cancelled] generation 1
      3 ToolCallCancelled cancelled tool_execution_cancelled [b notified, a notified]
    ");
}

#[tokio::test(start_paused = true)]
async fn l35_a_late_allow_changes_nothing() {
    let gate = Arc::new(Semaphore::new(0));
    let world = World::with(vec![hook("a").does(Does::AllowWhen(Arc::clone(&gate)))]).await;
    let sent = world.send(call("i-1"));
    world.settle().await;
    // The allow and the cancellation are there at the same time.
    gate.add_permits(1);
    sent.cancel.cancel();
    let refusal = refused(sent.answer().await);
    assert_eq!(refusal.decision, Decision::Failed);
    insta::assert_snapshot!(world.log.take(), @"
    ask a about i-1 attempt 1
    commit i-1 attempt 1
      1 ToolCallStarted
      2 GovernanceEvaluated FAILED by a tool_execution_cancelled [1 a FAILED tool_execution_cancelled] generation 1
      3 ToolCallCancelled cancelled tool_execution_cancelled
    answer FAILED by a tool_execution_cancelled; attempt 1, generation 1, sequence 3
    ");
}

#[tokio::test(start_paused = true)]
async fn h15_a_call_that_is_cancelled_before_any_hook_asks_none() {
    let world = World::with(vec![hook("a"), hook("b")]).await;
    let sent = world.send(call("i-1"));
    sent.cancel.cancel();
    drop(sent.answer().await.unwrap());
    let empty = World::with(Vec::new()).await;
    let sent = empty.send(call("i-1"));
    sent.cancel.cancel();
    drop(sent.answer().await.unwrap());
    insta::assert_snapshot!(world.log.take() + "\n\n" + &empty.log.take(), @"
    commit i-1 attempt 1
      1 ToolCallStarted
      2 GovernanceEvaluated FAILED by a tool_execution_cancelled [1 a FAILED tool_execution_cancelled] generation 1
      3 ToolCallCancelled cancelled tool_execution_cancelled
    answer FAILED by a tool_execution_cancelled; attempt 1, generation 1, sequence 3

    commit i-1 attempt 1
      1 ToolCallStarted
      2 GovernanceEvaluated FAILED by hook-governance tool_execution_cancelled [1 hook-governance FAILED tool_execution_cancelled] generation 1
      3 ToolCallCancelled cancelled tool_execution_cancelled
    answer FAILED by hook-governance tool_execution_cancelled; attempt 1, generation 1, sequence 3
    ");
}

#[tokio::test(start_paused = true)]
async fn l35_a_call_that_is_cut_after_its_last_enforced_hook_is_still_not_allowed() {
    let world = World::with(vec![hook("a").told(Does::Allow), hook("b").shadow().does(Does::Hang)]).await;
    drop(world.ask_within(Duration::from_secs(2), call("i-1")).await.unwrap());
    insta::assert_snapshot!(world.log.take(), @"
    ask a about i-1 attempt 1
    ask b about i-1 attempt 1
    tell a of i-1 cancelled tool_execution_cancelled
    commit i-1 attempt 1
      1 ToolCallStarted
      2 GovernanceEvaluated FAILED by hook-governance tool_execution_cancelled [1 a ALLOWED, 2 b FAILED tool_execution_cancelled (shadow), 3 hook-governance FAILED tool_execution_cancelled] generation 1
      3 ToolCallCancelled cancelled tool_execution_cancelled [a notified]
    answer FAILED by hook-governance tool_execution_cancelled; attempt 1, generation 1, sequence 3
    ");
}

#[tokio::test(start_paused = true)]
async fn a_denial_stands_although_the_caller_is_gone_by_then() {
    let world = World::with(vec![hook("a").does(Does::Deny("limit")).told(Does::Hang)]).await;
    drop(world.ask_within(Duration::from_secs(2), call("i-1")).await.unwrap());
    insta::assert_snapshot!(world.log.take(), @"
    ask a about i-1 attempt 1
    tell a of i-1 failed (denied) limit
    commit i-1 attempt 1
      1 ToolCallStarted
      2 GovernanceEvaluated DENY by a limit [1 a DENIED limit] generation 1
      3 ToolCallFailed failed (denied) limit [a failed hook_timed_out]
    answer DENY by a limit 'a says no'; attempt 1, generation 1, sequence 3
    ");
}

#[tokio::test(start_paused = true)]
async fn h15_the_facts_of_a_cut_call_have_a_short_time_of_their_own() {
    let world = hanging().await;
    world.store.next([Fault::Stall]);
    let began = tokio::time::Instant::now();
    world.ask_within(Duration::from_secs(2), call("i-1")).await.unwrap_err();
    assert_eq!(began.elapsed().as_secs(), 3);
    world.store.let_go();
    world.settle().await;
    insta::assert_snapshot!(world.log.take(), @"
    ask a about i-1 attempt 1
    ask b about i-1 attempt 1
    tell b of i-1 cancelled tool_execution_cancelled
    tell a of i-1 cancelled tool_execution_cancelled
    no decision: journal deadline_passed
    commit i-1 attempt 1
      1 ToolCallStarted
      2 GovernanceEvaluated FAILED by b tool_execution_cancelled [1 a ALLOWED, 2 b FAILED tool_execution_cancelled] generation 1
      3 ToolCallCancelled cancelled tool_execution_cancelled [b notified, a notified]
    ");
}

#[tokio::test(start_paused = true)]
async fn g13_a_call_that_is_cancelled_while_the_journal_writes_is_not_allowed_and_its_allow_is_closed() {
    let world = World::with(vec![hook("a")]).await;
    world.store.next([Fault::Stall]);
    let sent = world.send(call("i-1"));
    world.settle().await;
    sent.cancel.cancel();
    sent.answer().await.unwrap_err();
    world.store.let_go();
    world.settle().await;
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

#[tokio::test(start_paused = true)]
async fn a_cut_call_that_the_journal_refuses_has_no_decision() {
    let world = hanging().await;
    world.store.next([Fault::Refuse(UnavailableCause::Full)]);
    world.ask_within(Duration::from_secs(2), call("i-1")).await.unwrap_err();
    insta::assert_snapshot!(world.log.take(), @"
    ask a about i-1 attempt 1
    ask b about i-1 attempt 1
    tell b of i-1 cancelled tool_execution_cancelled
    tell a of i-1 cancelled tool_execution_cancelled
    no decision: journal full
    ");
}

#[tokio::test(start_paused = true)]
async fn a_remote_hook_that_is_cut_leaves_a_started_call_that_is_closed() {
    let world = World::with(vec![hook("a").remote().does(Does::Hang)]).await;
    drop(world.ask_within(Duration::from_secs(2), call("i-1")).await.unwrap());
    insta::assert_snapshot!(world.log.take(), @"
    commit i-1 attempt 1
      1 ToolCallStarted
    ask a about i-1 attempt 1
    commit i-1 attempt 1
      2 GovernanceEvaluated FAILED by a tool_execution_cancelled [1 a FAILED tool_execution_cancelled] generation 1
      3 ToolCallCancelled cancelled tool_execution_cancelled
    answer FAILED by a tool_execution_cancelled; attempt 1, generation 1, sequence 3
    ");
}

/// Only the facts of a caller that is gone have time of their own: one that waits is answered in its time.
#[tokio::test(start_paused = true)]
async fn a_refusal_that_the_journal_holds_up_is_answered_by_the_callers_deadline() {
    let world = World::with(vec![hook("a").does(Does::Deny("limit"))]).await;
    for (patience_ms, waited_ms) in [(400, 400), (4_000, 4_000), (9_000, 5_000)] {
        world.store.next([Fault::Stall]);
        let began = tokio::time::Instant::now();
        world.ask_within(Duration::from_millis(patience_ms), call(&format!("i-{patience_ms}"))).await.unwrap_err();
        assert_eq!(began.elapsed().as_millis(), waited_ms);
    }
}

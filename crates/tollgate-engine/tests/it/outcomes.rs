//! An allowed call, and every way in which it can end: the order of hooks, facts and answers.

use tollgate_domain::Reported;

use crate::harness::{Does, World, call, hook};

async fn two_hooks() -> World {
    World::with(vec![hook("a").told(Does::Allow), hook("b").order(1).told(Does::Allow)]).await
}

fn threw() -> Reported {
    Reported::ProviderFailed { error_type: "TimeoutError".to_owned(), error_message: "no answer from ann".to_owned() }
}

#[tokio::test(start_paused = true)]
async fn b12_h03_allow_then_success_in_order_and_outcomes_in_reverse() {
    let world = two_hooks().await;
    world.decide(call("i-1")).await;
    world.complete("i-1", Reported::Succeeded { tool_error: false }).await.unwrap();
    insta::assert_snapshot!(world.log.take(), @"
    ask a about i-1 attempt 1
    ask b about i-1 attempt 1
    commit i-1 attempt 1
      1 ToolCallStarted
      2 GovernanceEvaluated ALLOW [1 a ALLOWED, 2 b ALLOWED] generation 1
    answer ALLOW; attempt 1, generation 1, sequence 2
    tell b of i-1 succeeded
    tell a of i-1 succeeded
    commit i-1 attempt 1
      3 ToolCallCompleted succeeded [b notified, a notified]
    recorded succeeded, reported succeeded; sequence 3
    ");
}

#[tokio::test(start_paused = true)]
async fn l05_a_tool_that_answers_with_an_error_has_succeeded() {
    let world = two_hooks().await;
    world.decide(call("i-1")).await;
    world.complete("i-1", Reported::Succeeded { tool_error: true }).await.unwrap();
    insta::assert_snapshot!(world.log.take(), @"
    ask a about i-1 attempt 1
    ask b about i-1 attempt 1
    commit i-1 attempt 1
      1 ToolCallStarted
      2 GovernanceEvaluated ALLOW [1 a ALLOWED, 2 b ALLOWED] generation 1
    answer ALLOW; attempt 1, generation 1, sequence 2
    tell b of i-1 succeeded with a tool error
    tell a of i-1 succeeded with a tool error
    commit i-1 attempt 1
      3 ToolCallCompleted succeeded with a tool error [b notified, a notified]
    recorded succeeded with a tool error, reported succeeded with a tool error; sequence 3
    ");
}

#[tokio::test(start_paused = true)]
async fn b20_h09_a_tool_that_throws_has_failed_with_its_type_and_message() {
    let world = two_hooks().await;
    world.decide(call("i-1")).await;
    world.complete("i-1", threw()).await.unwrap();
    insta::assert_snapshot!(world.log.take(), @"
    ask a about i-1 attempt 1
    ask b about i-1 attempt 1
    commit i-1 attempt 1
      1 ToolCallStarted
      2 GovernanceEvaluated ALLOW [1 a ALLOWED, 2 b ALLOWED] generation 1
    answer ALLOW; attempt 1, generation 1, sequence 2
    tell b of i-1 failed (provider) TimeoutError 'no answer from ann'
    tell a of i-1 failed (provider) TimeoutError 'no answer from ann'
    commit i-1 attempt 1
      3 ToolCallFailed failed (provider) TimeoutError 'no answer from ann' [b notified, a notified]
    recorded failed (provider) TimeoutError 'no answer from ann', reported failed (provider) TimeoutError 'no answer from ann'; sequence 3
    ");
}

#[tokio::test(start_paused = true)]
async fn b20_the_message_is_not_kept_where_that_is_off_and_hooks_are_not_told_it_either() {
    let options = tollgate_engine::EngineOptions { keep_failure_messages: false, ..crate::harness::options() };
    let world = World::empty(options);
    world.activate("first", vec![hook("a").told(Does::Allow)]).await;
    world.log.take();
    world.decide(call("i-1")).await;
    world.complete("i-1", threw()).await.unwrap();
    insta::assert_snapshot!(world.log.take(), @"
    ask a about i-1 attempt 1
    commit i-1 attempt 1
      1 ToolCallStarted
      2 GovernanceEvaluated ALLOW [1 a ALLOWED] generation 1
    answer ALLOW; attempt 1, generation 1, sequence 2
    tell a of i-1 failed (provider) TimeoutError
    commit i-1 attempt 1
      3 ToolCallFailed failed (provider) TimeoutError [a notified]
    recorded failed (provider) TimeoutError, reported failed (provider) TimeoutError; sequence 3
    ");
}

#[tokio::test(start_paused = true)]
async fn b29_a_cancelled_tool_is_cancelled() {
    let world = two_hooks().await;
    world.decide(call("i-1")).await;
    world.complete("i-1", Reported::Cancelled).await.unwrap();
    insta::assert_snapshot!(world.log.take(), @"
    ask a about i-1 attempt 1
    ask b about i-1 attempt 1
    commit i-1 attempt 1
      1 ToolCallStarted
      2 GovernanceEvaluated ALLOW [1 a ALLOWED, 2 b ALLOWED] generation 1
    answer ALLOW; attempt 1, generation 1, sequence 2
    tell b of i-1 cancelled
    tell a of i-1 cancelled
    commit i-1 attempt 1
      3 ToolCallCancelled cancelled [b notified, a notified]
    recorded cancelled, reported cancelled; sequence 3
    ");
}

#[tokio::test(start_paused = true)]
async fn h16_a_notice_that_fails_on_success_makes_the_outcome_a_hook_failure() {
    let world = World::with(vec![
        hook("a").told(Does::Allow),
        hook("b").told(Does::Fail("audit_down")),
        hook("c").told(Does::Panic),
        hook("d").told(Does::Allow),
    ])
    .await;
    world.decide(call("i-1")).await;
    world.complete("i-1", Reported::Succeeded { tool_error: false }).await.unwrap();
    insta::assert_snapshot!(world.log.take(), @"
    ask a about i-1 attempt 1
    ask b about i-1 attempt 1
    ask c about i-1 attempt 1
    ask d about i-1 attempt 1
    commit i-1 attempt 1
      1 ToolCallStarted
      2 GovernanceEvaluated ALLOW [1 a ALLOWED, 2 b ALLOWED, 3 c ALLOWED, 4 d ALLOWED] generation 1
    answer ALLOW; attempt 1, generation 1, sequence 2
    tell d of i-1 succeeded
    tell c of i-1 succeeded
    tell b of i-1 succeeded
    tell a of i-1 succeeded
    commit i-1 attempt 1
      3 ToolCallFailed failed (hook) hook_panicked, reported succeeded [d notified, c failed hook_panicked, b failed audit_down, a notified]
    recorded failed (hook) hook_panicked, reported succeeded; sequence 3
    ");
}

#[tokio::test(start_paused = true)]
async fn h17_a_notice_that_fails_on_a_provider_failure_is_attached_and_replaces_nothing() {
    let world = World::with(vec![hook("a").told(Does::Fail("audit_down")), hook("b").told(Does::Allow)]).await;
    world.decide(call("i-1")).await;
    world.complete("i-1", threw()).await.unwrap();
    insta::assert_snapshot!(world.log.take(), @"
    ask a about i-1 attempt 1
    ask b about i-1 attempt 1
    commit i-1 attempt 1
      1 ToolCallStarted
      2 GovernanceEvaluated ALLOW [1 a ALLOWED, 2 b ALLOWED] generation 1
    answer ALLOW; attempt 1, generation 1, sequence 2
    tell b of i-1 failed (provider) TimeoutError 'no answer from ann'
    tell a of i-1 failed (provider) TimeoutError 'no answer from ann'
    commit i-1 attempt 1
      3 ToolCallFailed failed (provider) TimeoutError 'no answer from ann' [b notified, a failed audit_down]
    recorded failed (provider) TimeoutError 'no answer from ann', reported failed (provider) TimeoutError 'no answer from ann'; sequence 3
    ");
}

#[tokio::test(start_paused = true)]
async fn h14_a_notice_that_hangs_has_failed_and_the_others_are_still_told() {
    let world = World::with(vec![hook("a").told(Does::Allow), hook("b").told(Does::Hang)]).await;
    world.decide(call("i-1")).await;
    world.complete("i-1", Reported::Succeeded { tool_error: false }).await.unwrap();
    insta::assert_snapshot!(world.log.take(), @"
    ask a about i-1 attempt 1
    ask b about i-1 attempt 1
    commit i-1 attempt 1
      1 ToolCallStarted
      2 GovernanceEvaluated ALLOW [1 a ALLOWED, 2 b ALLOWED] generation 1
    answer ALLOW; attempt 1, generation 1, sequence 2
    tell b of i-1 succeeded
    tell a of i-1 succeeded
    commit i-1 attempt 1
      3 ToolCallFailed failed (hook) hook_timed_out, reported succeeded [b failed hook_timed_out, a notified]
    recorded failed (hook) hook_timed_out, reported succeeded; sequence 3
    ");
}

#[tokio::test(start_paused = true)]
async fn h12_a_hook_that_no_longer_exists_is_not_notified_which_is_no_failure() {
    let world = two_hooks().await;
    world.decide(call("i-1")).await;
    world.activate("second", vec![hook("a").told(Does::Allow)]).await;
    world.complete("i-1", Reported::Succeeded { tool_error: false }).await.unwrap();
    insta::assert_snapshot!(world.log.take(), @"
    ask a about i-1 attempt 1
    ask b about i-1 attempt 1
    commit i-1 attempt 1
      1 ToolCallStarted
      2 GovernanceEvaluated ALLOW [1 a ALLOWED, 2 b ALLOWED] generation 1
    answer ALLOW; attempt 1, generation 1, sequence 2
    commit of the system
      2 GenerationActivated 2 revision second replaces 1 [hooks/a@1]
    tell a of i-1 succeeded
    commit i-1 attempt 1
      3 ToolCallCompleted succeeded [b not notified, a notified]
    recorded succeeded, reported succeeded; sequence 3
    ");
}

#[tokio::test(start_paused = true)]
async fn a_hook_is_noticed_through_its_present_definition_of_the_same_source() {
    let world = two_hooks().await;
    world.decide(call("i-1")).await;
    // `b` fails its notices now; a hook named `a` exists, but no managed one.
    let changed = hook("b").content("changed").told(Does::Fail("changed"));
    let moved = World::on(
        std::sync::Arc::clone(&world.store.inner),
        crate::harness::options(),
        vec![hook("a").local().told(Does::Allow)],
    );
    moved.activate("second", vec![changed]).await;
    moved.log.take();
    moved.complete("i-1", Reported::Succeeded { tool_error: false }).await.unwrap();
    insta::assert_snapshot!(moved.log.take(), @"
    tell b of i-1 succeeded
    commit i-1 attempt 1
      3 ToolCallFailed failed (hook) changed, reported succeeded [b failed changed, a not notified]
    recorded failed (hook) changed, reported succeeded; sequence 3
    ");
}

#[tokio::test(start_paused = true)]
async fn h10_only_hooks_that_ask_for_outcomes_are_told() {
    let world = World::with(vec![hook("a"), hook("b").told(Does::Allow), hook("c").shadow().told(Does::Allow)]).await;
    world.decide(call("i-1")).await;
    world.complete("i-1", Reported::Succeeded { tool_error: false }).await.unwrap();
    insta::assert_snapshot!(world.log.take(), @"
    ask a about i-1 attempt 1
    ask b about i-1 attempt 1
    ask c about i-1 attempt 1
    commit i-1 attempt 1
      1 ToolCallStarted
      2 GovernanceEvaluated ALLOW [1 a ALLOWED, 2 b ALLOWED, 3 c ALLOWED (shadow)] generation 1
    answer ALLOW; attempt 1, generation 1, sequence 2
    tell b of i-1 succeeded
    commit i-1 attempt 1
      3 ToolCallCompleted succeeded [b notified]
    recorded succeeded, reported succeeded; sequence 3
    ");
}

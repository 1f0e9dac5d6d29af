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
    insta::assert_snapshot!(world.log.take(), @"");
}

#[tokio::test(start_paused = true)]
async fn l05_a_tool_that_answers_with_an_error_has_succeeded() {
    let world = two_hooks().await;
    world.decide(call("i-1")).await;
    world.complete("i-1", Reported::Succeeded { tool_error: true }).await.unwrap();
    insta::assert_snapshot!(world.log.take(), @"");
}

#[tokio::test(start_paused = true)]
async fn b20_h09_a_tool_that_throws_has_failed_with_its_type_and_message() {
    let world = two_hooks().await;
    world.decide(call("i-1")).await;
    world.complete("i-1", threw()).await.unwrap();
    insta::assert_snapshot!(world.log.take(), @"");
}

#[tokio::test(start_paused = true)]
async fn b20_the_message_is_not_kept_where_that_is_off_and_hooks_are_not_told_it_either() {
    let options = tollgate_engine::EngineOptions { keep_failure_messages: false, ..crate::harness::options() };
    let world = World::empty(options);
    world.activate("first", vec![hook("a").told(Does::Allow)]).await;
    world.log.take();
    world.decide(call("i-1")).await;
    world.complete("i-1", threw()).await.unwrap();
    insta::assert_snapshot!(world.log.take(), @"");
}

#[tokio::test(start_paused = true)]
async fn b29_a_cancelled_tool_is_cancelled() {
    let world = two_hooks().await;
    world.decide(call("i-1")).await;
    world.complete("i-1", Reported::Cancelled).await.unwrap();
    insta::assert_snapshot!(world.log.take(), @"");
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
    insta::assert_snapshot!(world.log.take(), @"");
}

#[tokio::test(start_paused = true)]
async fn h17_a_notice_that_fails_on_a_provider_failure_is_attached_and_replaces_nothing() {
    let world = World::with(vec![hook("a").told(Does::Fail("audit_down")), hook("b").told(Does::Allow)]).await;
    world.decide(call("i-1")).await;
    world.complete("i-1", threw()).await.unwrap();
    insta::assert_snapshot!(world.log.take(), @"");
}

#[tokio::test(start_paused = true)]
async fn h14_a_notice_that_hangs_has_failed_and_the_others_are_still_told() {
    let world = World::with(vec![hook("a").told(Does::Allow), hook("b").told(Does::Hang)]).await;
    world.decide(call("i-1")).await;
    world.complete("i-1", Reported::Succeeded { tool_error: false }).await.unwrap();
    insta::assert_snapshot!(world.log.take(), @"");
}

#[tokio::test(start_paused = true)]
async fn h12_a_hook_that_no_longer_exists_is_not_notified_which_is_no_failure() {
    let world = two_hooks().await;
    world.decide(call("i-1")).await;
    world.activate("second", vec![hook("a").told(Does::Allow)]).await;
    world.complete("i-1", Reported::Succeeded { tool_error: false }).await.unwrap();
    insta::assert_snapshot!(world.log.take(), @"");
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
    insta::assert_snapshot!(moved.log.take(), @"");
}

#[tokio::test(start_paused = true)]
async fn h10_only_hooks_that_ask_for_outcomes_are_told() {
    let world = World::with(vec![hook("a"), hook("b").told(Does::Allow), hook("c").shadow().told(Does::Allow)]).await;
    world.decide(call("i-1")).await;
    world.complete("i-1", Reported::Succeeded { tool_error: false }).await.unwrap();
    insta::assert_snapshot!(world.log.take(), @"");
}

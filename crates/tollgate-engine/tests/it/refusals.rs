//! Every way in which a chain refuses: who is asked, who is told, what is recorded, what is answered.

use tollgate_domain::WhenNoHookMatches;
use tollgate_engine::EngineOptions;

use crate::harness::{Does, World, bundle, call, hook, options, refused};

#[tokio::test(start_paused = true)]
async fn h07_h10_h11_deny_at_hook_two_of_four_tells_two_then_one() {
    let world = World::with(vec![
        hook("a").order(-5).told(Does::Allow),
        hook("b").does(Does::Deny("limit")).told(Does::Allow),
        hook("c").order(1).told(Does::Allow),
        hook("d").order(2).told(Does::Allow),
    ])
    .await;
    world.decide(call("i-1")).await;
    insta::assert_snapshot!(world.log.take(), @"
    ask a about i-1 attempt 1
    ask b about i-1 attempt 1
    tell b of i-1 failed (denied) limit
    tell a of i-1 failed (denied) limit
    commit i-1 attempt 1
      1 ToolCallStarted
      2 GovernanceEvaluated DENY by b limit [1 a ALLOWED, 2 b DENIED limit] generation 1
      3 ToolCallFailed failed (denied) limit [b notified, a notified]
    answer DENY by b limit 'b says no'; attempt 1, generation 1, sequence 3
    ");
}

#[tokio::test(start_paused = true)]
async fn h14_a_middle_hook_that_fails_its_notice_changes_nothing_for_the_others_nor_the_decision() {
    for told in [Does::Fail("audit_down"), Does::Panic, Does::Hang] {
        let world = World::with(vec![
            hook("a").told(Does::Allow),
            hook("b").told(told),
            hook("c").does(Does::Deny("limit")).told(Does::Allow),
        ])
        .await;
        let refusal = refused(world.ask(call("i-1")).await);
        assert_eq!(refusal.code.unwrap().as_str(), "limit");
        let log = world.log.take();
        let told: Vec<_> = log.lines().filter_map(|line| line.strip_prefix("tell ")?.split(' ').next()).collect();
        assert_eq!(told, ["c", "b", "a"]);
        assert!(log.contains("failed (denied) limit [c notified, b failed "), "{log}");
    }
}

#[tokio::test(start_paused = true)]
async fn h21_p10_a_panicking_hook_has_failed_and_the_process_lives() {
    let world = World::with(vec![hook("a").does(Does::Panic).told(Does::Allow), hook("b")]).await;
    world.decide(call("i-1")).await;
    world.activate("second", vec![hook("b")]).await;
    world.decide(call("i-2")).await;
    insta::assert_snapshot!(world.log.take(), @"
    ask a about i-1 attempt 1
    tell a of i-1 failed (hook) hook_panicked
    commit i-1 attempt 1
      1 ToolCallStarted
      2 GovernanceEvaluated FAILED by a hook_panicked [1 a FAILED hook_panicked] generation 1
      3 ToolCallFailed failed (hook) hook_panicked [a notified]
    answer FAILED by a hook_panicked; attempt 1, generation 1, sequence 3
    commit of the system
      2 GenerationActivated 2 revision second replaces 1 [hooks/b@1]
    ask b about i-2 attempt 2
    commit i-2 attempt 2
      4 ToolCallStarted
      5 GovernanceEvaluated ALLOW [1 b ALLOWED] generation 2
    answer ALLOW; attempt 2, generation 2, sequence 5
    ");
}

#[tokio::test(start_paused = true)]
async fn h21_a_hook_that_cannot_decide_never_lets_the_call_through() {
    let world = World::with(vec![hook("a").does(Does::Fail("policy_error")), hook("b")]).await;
    world.decide(call("i-1")).await;
    insta::assert_snapshot!(world.log.take(), @"
    ask a about i-1 attempt 1
    commit i-1 attempt 1
      1 ToolCallStarted
      2 GovernanceEvaluated FAILED by a policy_error [1 a FAILED policy_error] generation 1
      3 ToolCallFailed failed (hook) policy_error
    answer FAILED by a policy_error; attempt 1, generation 1, sequence 3
    ");
}

#[tokio::test(start_paused = true)]
async fn l32_a_hook_without_a_verdict_neither_allows_nor_stops() {
    let world = World::with(vec![hook("a").does(Does::Abstain("hook_no_verdict")), hook("b")]).await;
    world.decide(call("i-1")).await;
    let alone = World::with(vec![hook("a").does(Does::Abstain("hook_no_verdict"))]).await;
    alone.decide(call("i-1")).await;
    insta::assert_snapshot!(world.log.take() + "\n\n" + &alone.log.take(), @"
    ask a about i-1 attempt 1
    ask b about i-1 attempt 1
    commit i-1 attempt 1
      1 ToolCallStarted
      2 GovernanceEvaluated ALLOW [1 a ABSTAINED hook_no_verdict, 2 b ALLOWED] generation 1
    answer ALLOW; attempt 1, generation 1, sequence 2

    ask a about i-1 attempt 1
    commit i-1 attempt 1
      1 ToolCallStarted
      2 GovernanceEvaluated DENY no_hook_matched [1 a ABSTAINED hook_no_verdict] generation 1
      3 ToolCallFailed failed (denied) no_hook_matched
    answer DENY no_hook_matched; attempt 1, generation 1, sequence 3
    ");
}

#[tokio::test(start_paused = true)]
async fn g16_no_hook_at_all_writes_an_empty_trace_and_denies() {
    let world = World::with(Vec::new()).await;
    world.decide(call("i-1")).await;
    insta::assert_snapshot!(world.log.take(), @"
    commit i-1 attempt 1
      1 ToolCallStarted
      2 GovernanceEvaluated DENY no_hook_matched [] generation 1
      3 ToolCallFailed failed (denied) no_hook_matched
    answer DENY no_hook_matched; attempt 1, generation 1, sequence 3
    ");
}

#[tokio::test(start_paused = true)]
async fn g16_a_hook_that_selects_other_tools_is_not_asked() {
    let mut other = hook("other");
    other.selectors.tools.insert("files.delete".parse().unwrap());
    let world = World::with(vec![other]).await;
    world.decide(call("i-1")).await;
    insta::assert_snapshot!(world.log.take(), @"
    commit i-1 attempt 1
      1 ToolCallStarted
      2 GovernanceEvaluated DENY no_hook_matched [] generation 1
      3 ToolCallFailed failed (denied) no_hook_matched
    answer DENY no_hook_matched; attempt 1, generation 1, sequence 3
    ");
}

#[tokio::test(start_paused = true)]
async fn g16_no_hook_at_all_allows_where_the_configuration_says_so() {
    let mut rules = options().rules;
    rules.when_no_hook_matches = WhenNoHookMatches::Allow;
    let world = World::empty(EngineOptions { rules, ..options() });
    world.activate("first", Vec::new()).await;
    world.log.take();
    world.decide(call("i-1")).await;
    insta::assert_snapshot!(world.log.take(), @"
    commit i-1 attempt 1
      1 ToolCallStarted
      2 GovernanceEvaluated ALLOW [] generation 1
    answer ALLOW; attempt 1, generation 1, sequence 2
    ");
}

#[tokio::test(start_paused = true)]
async fn m02_an_unknown_tool_is_denied_by_the_catalogue_and_no_hook_is_asked() {
    let world = World::empty(options());
    let mut closed = bundle("first", vec![hook("a").told(Does::Allow)], &world.log);
    closed.catalogue.unknown = None;
    world.engine.consider(Ok(closed)).await;
    world.log.take();
    world.decide(call("i-1")).await;
    insta::assert_snapshot!(world.log.take(), @"
    commit i-1 attempt 1
      1 ToolCallStarted
      2 GovernanceEvaluated DENY by tool-catalogue unknown_tool [1 tool-catalogue DENIED unknown_tool] generation 1
      3 ToolCallFailed failed (denied) unknown_tool
    answer DENY by tool-catalogue unknown_tool; attempt 1, generation 1, sequence 3
    ");
}

#[tokio::test(start_paused = true)]
async fn m02_a_call_that_leaves_out_what_a_hook_selects_on_is_invalid_and_leaves_no_trace() {
    let mut picky = hook("picky");
    picky.selectors.providers.insert("mail".parse().unwrap());
    let world = World::with(vec![picky, hook("a")]).await;
    world.ask(call("i-1")).await.unwrap_err();
    insta::assert_snapshot!(world.log.take(), @r#"
    no decision: invalid tool.provider_id: is required: hook "picky" selects on it, and the catalogue does not declare the tool
    "#);
}

#[tokio::test(start_paused = true)]
async fn a_shadow_hook_ends_nothing_is_not_told_and_counts_for_nothing() {
    let world = World::with(vec![
        hook("a").shadow().does(Does::Deny("limit")).told(Does::Allow),
        hook("b").order(1).does(Does::Panic).shadow(),
        hook("c").order(2).told(Does::Allow),
    ])
    .await;
    world.decide(call("i-1")).await;
    let alone = World::with(vec![hook("a").shadow()]).await;
    alone.decide(call("i-1")).await;
    insta::assert_snapshot!(world.log.take() + "\n\n" + &alone.log.take(), @"
    ask a about i-1 attempt 1
    ask b about i-1 attempt 1
    ask c about i-1 attempt 1
    commit i-1 attempt 1
      1 ToolCallStarted
      2 GovernanceEvaluated ALLOW [1 a DENIED limit (shadow), 2 b FAILED hook_panicked (shadow), 3 c ALLOWED] generation 1
    answer ALLOW; attempt 1, generation 1, sequence 2

    ask a about i-1 attempt 1
    commit i-1 attempt 1
      1 ToolCallStarted
      2 GovernanceEvaluated DENY no_hook_matched [1 a ALLOWED (shadow)] generation 1
      3 ToolCallFailed failed (denied) no_hook_matched
    answer DENY no_hook_matched; attempt 1, generation 1, sequence 3
    ");
}

#[tokio::test(start_paused = true)]
async fn p05_before_a_remote_hook_is_asked_started_is_durable_by_itself() {
    let world = World::with(vec![hook("a"), hook("b").remote().does(Does::Deny("limit")).told(Does::Allow)]).await;
    world.decide(call("i-1")).await;
    insta::assert_snapshot!(world.log.take(), @"
    commit i-1 attempt 1
      1 ToolCallStarted
    ask a about i-1 attempt 1
    ask b about i-1 attempt 1
    tell b of i-1 failed (denied) limit
    commit i-1 attempt 1
      2 GovernanceEvaluated DENY by b limit [1 a ALLOWED, 2 b DENIED limit] generation 1
      3 ToolCallFailed failed (denied) limit [b notified]
    answer DENY by b limit 'b says no'; attempt 1, generation 1, sequence 3
    ");
}

#[tokio::test(start_paused = true)]
async fn h04_m06_managed_and_local_hooks_are_asked_by_order_then_by_the_bytes_of_their_ids() {
    let world = World::on(std::sync::Arc::default(), options(), vec![hook("B").local(), hook("early").order(-1).local()]);
    world.activate("first", vec![hook("a"), hook("\u{e9}"), hook("z").order(-2)]).await;
    world.log.take();
    world.decide(call("i-1")).await;
    insta::assert_snapshot!(world.log.take(), @"
    ask z about i-1 attempt 1
    ask early about i-1 attempt 1
    ask B about i-1 attempt 1
    ask a about i-1 attempt 1
    ask é about i-1 attempt 1
    commit i-1 attempt 1
      1 ToolCallStarted
      2 GovernanceEvaluated ALLOW [1 z ALLOWED, 2 early ALLOWED, 3 B ALLOWED, 4 a ALLOWED, 5 é ALLOWED] generation 1
    answer ALLOW; attempt 1, generation 1, sequence 2
    ");
}

//! Tool calls and their attempts, derived ids, and who may ask.

use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tollgate_domain::{Arguments, Call, Claims, Rights};
use tollgate_engine::EvaluateError;

use crate::harness::{Does, World, allowed, assert_allowed, call, hook, refused};

#[tokio::test(start_paused = true)]
async fn b04_b24_h19_a_new_invocation_of_a_known_tool_call_is_judged_in_full_again() {
    let world = World::with(vec![hook("a").does(Does::Deny("limit")), hook("b")]).await;
    world.decide(call("i-1")).await;
    world.activate("second", vec![hook("a"), hook("b")]).await;
    world.decide(call("i-2")).await;
    world.decide(call("i-3")).await;
    insta::assert_snapshot!(world.log.take(), @"
    ask a about i-1 attempt 1
    commit i-1 attempt 1
      1 ToolCallStarted
      2 GovernanceEvaluated DENY by a limit [1 a DENIED limit] generation 1
      3 ToolCallFailed failed (denied) limit
    answer DENY by a limit 'a says no'; attempt 1, generation 1, sequence 3
    commit of the system
      2 GenerationActivated 2 revision second replaces 1 [hooks/a@1 hooks/b@1]
    ask a about i-2 attempt 2
    ask b about i-2 attempt 2
    commit i-2 attempt 2
      4 ToolCallStarted
      5 GovernanceEvaluated ALLOW [1 a ALLOWED, 2 b ALLOWED] generation 2
    answer ALLOW; attempt 2, generation 2, sequence 5
    ask a about i-3 attempt 3
    ask b about i-3 attempt 3
    commit i-3 attempt 3
      6 ToolCallStarted
      7 GovernanceEvaluated ALLOW [1 a ALLOWED, 2 b ALLOWED] generation 2
    answer ALLOW; attempt 3, generation 2, sequence 7
    ");
}

#[tokio::test(start_paused = true)]
async fn the_same_tool_call_with_another_tool_is_invalid() {
    let world = World::with(vec![hook("a")]).await;
    world.decide(call("i-1")).await;
    world.log.take();
    let mut other = call("i-2");
    other.tool.id = "mail.delete".parse().unwrap();
    world.ask(other).await.unwrap_err();
    insta::assert_snapshot!(world.log.take(), @"
    no decision: invalid tool_call_id: belongs to a call of another tool
    ");
}

#[tokio::test(start_paused = true)]
async fn two_tools_race_for_one_tool_call_and_the_second_is_invalid() {
    let gate = std::sync::Arc::new(tokio::sync::Semaphore::new(0));
    let world = World::with(vec![hook("a").does(Does::AllowWhen(gate.clone()))]).await;
    let mut other = call("i-2");
    other.tool.id = "mail.delete".parse().unwrap();
    let (first, second) = (world.send(call("i-1")), world.send(other));
    world.settle().await;
    gate.add_permits(2);
    assert_allowed(first.answer().await);
    assert!(matches!(second.answer().await.unwrap_err(), EvaluateError::Invalid { field: "tool_call_id", .. }));
}

fn unnamed(arguments: &str) -> Call {
    let arguments = Arguments::parse(arguments.as_bytes()).unwrap();
    Call { tool_call: None, invocation: None, arguments, ..call("unused") }
}

#[tokio::test(start_paused = true)]
async fn b22_b23_a_call_without_ids_gets_them_and_keeps_its_logical_one_across_a_restart() {
    let world = World::with(vec![hook("a")]).await;
    let first = allowed(world.ask(unnamed(r#"{"x":1,"y":2}"#)).await);
    let world = world.restart(vec![hook("a")]).await;
    // The second process makes other invocation ids.
    world
        .engine
        .evaluate(&Rights::default(), unnamed("{}"), Duration::from_secs(1), &CancellationToken::new())
        .await
        .unwrap_err();
    let again = allowed(world.ask(unnamed(r#"{ "y": 2, "x": 1 }"#)).await);
    assert_eq!(again.decided().tool_call, first.decided().tool_call);
    assert_eq!(again.decided().attempt, 2);
    let other = allowed(world.ask(unnamed(r#"{"x":1,"y":3}"#)).await);
    assert_ne!(other.decided().tool_call, first.decided().tool_call);
    assert_eq!(other.decided().attempt, 1);
}

#[tokio::test(start_paused = true)]
async fn p12_a_caller_may_speak_only_for_the_tenants_workspaces_and_agents_it_is_given() {
    let world = World::with(vec![hook("a")]).await;
    let ok = Rights {
        tenants: vec!["acme".parse().unwrap()],
        workspaces: vec!["support".parse().unwrap()],
        agents: vec!["helper".parse().unwrap()],
        trust_claims: false,
    };
    assert_allowed(world.ask_as(&ok, Duration::from_secs(1), call("i-1")).await);
    let other = [
        (Rights { tenants: vec!["other".parse().unwrap()], ..ok.clone() }, "tenant and workspace"),
        (Rights { workspaces: vec!["other".parse().unwrap()], ..ok.clone() }, "tenant and workspace"),
        (Rights { agents: vec!["other".parse().unwrap()], ..ok.clone() }, "agent"),
    ];
    world.log.take();
    for (rights, what) in other {
        let error = world.ask_as(&rights, Duration::from_secs(1), call("i-2")).await.unwrap_err();
        assert_eq!(error, EvaluateError::PermissionDenied { what });
        // Not even what is on record is told.
        world.ask_as(&rights, Duration::from_secs(1), call("i-1")).await.unwrap_err();
    }
    assert!(!world.log.take().contains("commit"));
}

#[derive(Debug)]
struct NeedsClaims;

#[async_trait::async_trait]
impl tollgate_domain::Hook for NeedsClaims {
    async fn evaluate(&self, input: tollgate_domain::HookInput<'_>) -> tollgate_domain::HookAnswer {
        let groups = input.claims.map_or(0, |claims| claims.groups.len());
        let code = tollgate_domain::codes::CONTEXT_UNAVAILABLE.clone();
        let verdict = tollgate_domain::Verdict::Denied { code, message: None };
        if groups == 1 { tollgate_domain::Verdict::Allowed } else { verdict }.into()
    }
}

#[tokio::test(start_paused = true)]
async fn b05_claims_reach_a_hook_only_where_the_caller_is_trusted_for_them() {
    let world = World::empty(crate::harness::options());
    let mut bundle = crate::harness::bundle("first", vec![hook("a")], &world.log);
    bundle.hooks[0].hook = std::sync::Arc::new(NeedsClaims);
    world.engine.consider(Ok(bundle)).await;
    let claiming =
        |id: &str| Call { claims: Claims { groups: vec!["finance".parse().unwrap()], ..Claims::default() }, ..call(id) };
    refused(world.ask(claiming("i-1")).await);
    let trusted = Rights { trust_claims: true, ..Rights::default() };
    assert_allowed(world.ask_as(&trusted, Duration::from_secs(1), claiming("i-2")).await);
}

#[tokio::test(start_paused = true)]
async fn b18_b27_runs_and_flows_are_judged_alike_and_have_histories_of_their_own() {
    let world = World::with(vec![hook("a").does(Does::Deny("limit")).told(Does::Allow), hook("b")]).await;
    world.decide(call("i-1")).await;
    let of_a_run = world.log.take();
    let mut flow = call("i-1");
    flow.run.owner_kind = tollgate_domain::OwnerKind::Flow;
    world.decide(flow).await;
    assert_eq!(world.log.take(), of_a_run);
}

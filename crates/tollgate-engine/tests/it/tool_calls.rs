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
    insta::assert_snapshot!(world.log.take(), @"");
}

#[tokio::test(start_paused = true)]
async fn the_same_tool_call_with_another_tool_is_invalid() {
    let world = World::with(vec![hook("a")]).await;
    world.decide(call("i-1")).await;
    world.log.take();
    let mut other = call("i-2");
    other.tool.id = "mail.delete".parse().unwrap();
    world.ask(other).await.unwrap_err();
    insta::assert_snapshot!(world.log.take(), @"");
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

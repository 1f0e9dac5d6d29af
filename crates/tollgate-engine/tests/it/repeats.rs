//! An invocation that is sent again: what is repeated, what is refused, and that nothing is written.

use std::{sync::Arc, time::Duration};

use tokio::sync::Semaphore;
use tollgate_domain::{Arguments, Message, Reported};
use tollgate_engine::EvaluateError;

use crate::harness::{Does, Fault, World, allowed, assert_allowed, call, hook, refused};

fn with_arguments(invocation: &str, arguments: &str) -> tollgate_domain::Call {
    tollgate_domain::Call { arguments: Arguments::parse(arguments.as_bytes()).unwrap(), ..call(invocation) }
}

#[tokio::test(start_paused = true)]
async fn b10_an_identical_repeat_of_an_allow_gets_it_again_and_writes_nothing() {
    let world = World::with(vec![hook("a")]).await;
    let first = allowed(world.ask(call("i-1")).await);
    world.log.take();
    let again = allowed(world.ask(call("i-1")).await);
    assert_eq!(again.valid_until(), first.valid_until());
    insta::assert_snapshot!(world.log.take(), @"
    answer ALLOW again; attempt 1, generation 1, sequence 2
    ");
}

#[tokio::test(start_paused = true)]
async fn b10_an_identical_repeat_of_a_refusal_gets_it_again_with_its_message() {
    for does in [Does::Deny("limit"), Does::Fail("policy_error")] {
        let world = World::with(vec![hook("a").does(does)]).await;
        let first = refused(world.ask(call("i-1")).await);
        world.log.take();
        let again = refused(world.ask(call("i-1")).await);
        assert!(again.decided.repeat);
        assert_eq!((again.decision, again.hook, again.code), (first.decision, first.hook, first.code));
        assert_eq!(again.message.as_ref().map(Message::tell), first.message.as_ref().map(Message::tell));
        assert_eq!(again.decided.sequence, first.decided.sequence);
        assert_eq!(world.log.take().lines().count(), 1, "only the answer");
    }
}

#[tokio::test(start_paused = true)]
async fn b10_equal_arguments_in_another_spelling_are_identical() {
    let world = World::with(vec![hook("a")]).await;
    world.decide(with_arguments("i-1", r#"{"a": 1.50, "b": "x"}"#)).await;
    // The sizes as sent are equal, so that the records are.
    assert!(allowed(world.ask(with_arguments("i-1", r#"{"b": "x", "a": 1.50}"#)).await).decided().repeat);
}

#[tokio::test(start_paused = true)]
async fn b10_other_arguments_under_the_same_id_are_refused_whatever_was_decided() {
    for does in [Does::Allow, Does::Deny("limit")] {
        let world = World::with(vec![hook("a").does(does)]).await;
        world.decide(call("i-1")).await;
        world.log.take();
        let error = world.ask(with_arguments("i-1", r#"{"to":"bob"}"#)).await.unwrap_err();
        assert_eq!(error, EvaluateError::InvocationReused("i-1".parse().unwrap()));
        assert_eq!(world.log.take().lines().count(), 1, "only the answer");
    }
}

#[tokio::test(start_paused = true)]
async fn b10_another_agent_tool_call_or_principal_under_the_same_id_is_refused() {
    let world = World::with(vec![hook("a")]).await;
    world.decide(call("i-1")).await;
    let mut other = [call("i-1"), call("i-1"), call("i-1"), call("i-1")];
    other[0].agent.revision = "8".parse().unwrap();
    other[1].tool_call = Some("call-2".parse().unwrap());
    other[2].principal = Some(tollgate_domain::Principal { kind: "user".parse().unwrap(), id: "ann".parse().unwrap() });
    other[3].runtime.step_index = Some(1);
    for call in other {
        assert!(matches!(world.ask(call).await.unwrap_err(), EvaluateError::InvocationReused(_)));
    }
}

#[tokio::test(start_paused = true)]
async fn b10_an_identical_duplicate_in_flight_waits_for_the_first() {
    let gate = Arc::new(Semaphore::new(0));
    let world = World::with(vec![hook("a").does(Does::AllowWhen(Arc::clone(&gate)))]).await;
    let sent: Vec<_> = (0..3).map(|_| world.send(call("i-1"))).collect();
    world.settle().await;
    let other = world.ask(with_arguments("i-1", "{}")).await.unwrap_err();
    assert!(matches!(other, EvaluateError::InvocationReused(_)));
    gate.add_permits(1);
    for sent in sent {
        assert_allowed(sent.answer().await);
    }
    insta::assert_snapshot!(world.log.take(), @"
    ask a about i-1 attempt 1
    no decision: invocation reused
    commit i-1 attempt 1
      1 ToolCallStarted
      2 GovernanceEvaluated ALLOW [1 a ALLOWED] generation 1
    answer ALLOW; attempt 1, generation 1, sequence 2
    answer ALLOW again; attempt 1, generation 1, sequence 2
    answer ALLOW again; attempt 1, generation 1, sequence 2
    ");
}

#[tokio::test(start_paused = true)]
async fn b10_a_duplicate_in_flight_gives_up_at_its_own_deadline() {
    let gate = Arc::new(Semaphore::new(0));
    let world = World::with(vec![hook("a").does(Does::AllowWhen(Arc::clone(&gate)))]).await;
    let first = world.send(call("i-1"));
    world.settle().await;
    world.ask_within(Duration::from_secs(1), call("i-1")).await.unwrap_err();
    gate.add_permits(1);
    assert_allowed(first.answer().await);
    insta::assert_snapshot!(world.log.take(), @"
    ask a about i-1 attempt 1
    no decision: still in flight
    commit i-1 attempt 1
      1 ToolCallStarted
      2 GovernanceEvaluated ALLOW [1 a ALLOWED] generation 1
    answer ALLOW; attempt 1, generation 1, sequence 2
    ");
}

#[tokio::test(start_paused = true)]
async fn l35_a_repeat_that_is_cancelled_is_not_given_the_allow() {
    let world = World::with(vec![hook("a")]).await;
    world.decide(call("i-1")).await;
    let sent = world.send(call("i-1"));
    sent.cancel.cancel();
    assert_eq!(sent.answer().await.unwrap_err(), EvaluateError::Cancelled);
    assert_allowed(world.ask(call("i-1")).await);
}

#[tokio::test(start_paused = true)]
async fn b10_after_an_outcome_an_allow_is_not_repeated() {
    let world = World::with(vec![hook("a")]).await;
    world.decide(call("i-1")).await;
    world.complete("i-1", Reported::Succeeded { tool_error: false }).await.unwrap();
    let error = world.ask(call("i-1")).await.unwrap_err();
    assert_eq!(error, EvaluateError::InvocationReused("i-1".parse().unwrap()));
}

#[tokio::test(start_paused = true)]
async fn b10_an_allow_is_repeated_until_its_validity_ends_and_not_after() {
    let world = World::with(vec![hook("a")]).await;
    world.decide(call("i-1")).await;
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_allowed(world.ask(call("i-1")).await);
    tokio::time::sleep(Duration::from_millis(1)).await;
    let error = world.ask(call("i-1")).await.unwrap_err();
    assert_eq!(error, EvaluateError::DecisionExpired("i-1".parse().unwrap()));
}

#[tokio::test(start_paused = true)]
async fn b10_an_allow_that_the_clock_left_behind_while_it_was_written_is_not_given_even_once() {
    // A millisecond passes by itself.
    for (jump, expires) in [(59_999_000, false), (59_999_001, true)] {
        let world = World::with(vec![hook("a")]).await;
        world.store.next([Fault::Stall]);
        let sent = world.send(call("i-1"));
        world.settle().await;
        world.jump_wall_clock(jump);
        world.store.let_go();
        let expired = expires.then(|| EvaluateError::DecisionExpired("i-1".parse().unwrap()));
        assert_eq!(sent.answer().await.err(), expired);
        assert_eq!(world.ask(call("i-1")).await.err(), expired);
    }
}

#[tokio::test(start_paused = true)]
async fn b10_after_a_restart_a_denial_is_repeated_without_its_message_and_an_allow_never() {
    let hooks = |does| vec![hook("a").does(does)];
    let denying = World::with(hooks(Does::Deny("limit"))).await;
    denying.decide(call("i-1")).await;
    let denying = denying.restart(hooks(Does::Allow)).await;
    denying.decide(call("i-1")).await;
    let allowing = World::with(hooks(Does::Allow)).await;
    allowing.decide(call("i-1")).await;
    let allowing = allowing.restart(hooks(Does::Allow)).await;
    allowing.ask(call("i-1")).await.unwrap_err();
    insta::assert_snapshot!(denying.log.take() + "\n\n" + &allowing.log.take(), @"
    answer DENY by a limit again; attempt 1, generation 1, sequence 3

    no decision: invocation unverifiable
    ");
}

#[tokio::test(start_paused = true)]
async fn b10_where_another_sidecar_commits_the_id_first_the_record_answers() {
    let gate = Arc::new(Semaphore::new(0));
    for (does, repeats) in [(Does::Deny("limit"), true), (Does::Allow, false)] {
        let world = World::with(vec![hook("a").does(Does::AllowWhen(Arc::clone(&gate)))]).await;
        let sent = world.send(call("i-1"));
        world.settle().await;
        let other = World::on(Arc::clone(&world.store.inner), crate::harness::options(), Vec::new());
        other.activate("other", vec![hook("a").does(does)]).await;
        other.decide(call("i-1")).await;
        gate.add_permits(1);
        match sent.answer().await {
            Ok(answer) => assert!(repeats && answer.decided().repeat),
            Err(error) => assert!(!repeats && matches!(error, EvaluateError::InvocationUnverifiable(_))),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_id_in_another_run_is_another_invocation() {
    let world = World::with(vec![hook("a")]).await;
    world.decide(call("i-1")).await;
    let mut elsewhere = call("i-1");
    elsewhere.run.run = "run-2".parse().unwrap();
    let pass = allowed(world.ask(elsewhere).await);
    assert!(!pass.decided().repeat);
    assert_eq!((pass.decided().attempt, pass.decided().sequence), (1, 2));
}

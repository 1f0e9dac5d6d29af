//! What an engine does before it serves: it closes what a crash cut, and puts its start on record.

use tollgate_domain::UnavailableCause;
use tollgate_engine::{EvaluateError, LooseKey};

use crate::harness::{Does, World, call, hook, options};

#[tokio::test(start_paused = true)]
async fn an_invocation_that_a_crash_left_undecided_is_closed_at_the_next_start() {
    let crashed = World::with(vec![hook("a").remote().does(Does::Hang), hook("b")]).await;
    let _in_flight = crashed.send(call("i-1"));
    crashed.settle().await;
    let world = World::on(std::sync::Arc::clone(&crashed.store.inner), options(), Vec::new());
    let loose = LooseKey { key: "when_no_hook_matches".to_owned(), value: "allow".to_owned() };
    assert_eq!(world.engine.start(&[loose]).await.unwrap(), 1);
    assert_eq!(world.engine.start(&[]).await.unwrap(), 0);
    world.activate("first", vec![hook("b")]).await;
    world.ask(call("i-1")).await.unwrap_err();
    world.decide(call("i-2")).await;
    insta::assert_snapshot!(world.log.take(), @"
    commit i-1 attempt 1
      2 ToolCallCancelled cancelled interrupted
    commit of the system
      1 SidecarStarted interrupted 1
      2 ConfigurationLoosened when_no_hook_matches=allow
    commit of the system
      3 SidecarStarted interrupted 0
    commit of the system
      2 GenerationActivated 1 revision first [hooks/b@1]
    no decision: invocation reused
    ask b about i-2 attempt 2
    commit i-2 attempt 2
      3 ToolCallStarted
      4 GovernanceEvaluated ALLOW [1 b ALLOWED] generation 1
    answer ALLOW; attempt 2, generation 1, sequence 4
    ");
}

#[tokio::test(start_paused = true)]
async fn what_another_sidecar_is_deciding_is_not_closed_at_the_start_of_this_one() {
    let busy = World::with(vec![hook("a").remote().does(Does::Hang)]).await;
    let in_flight = busy.send(call("i-1"));
    busy.settle().await;
    let mut rules = options().rules;
    rules.sidecar = "sidecar-2".parse().unwrap();
    let options = tollgate_engine::EngineOptions { rules, ..options() };
    let world = World::on(std::sync::Arc::clone(&busy.store.inner), options, Vec::new());
    assert_eq!(world.engine.start(&[]).await.unwrap(), 0);
    in_flight.hang_up();
}

#[tokio::test(start_paused = true)]
async fn an_engine_whose_journal_fails_does_not_start() {
    let world = World::empty(options());
    world.fail(Some(UnavailableCause::ReadOnly));
    assert_eq!(world.engine.start(&[]).await.unwrap_err().cause, UnavailableCause::ReadOnly);
}

#[tokio::test(start_paused = true)]
async fn without_a_generation_nothing_is_approved_and_nothing_is_written() {
    let world = World::empty(options());
    assert_eq!(world.ask(call("i-1")).await.unwrap_err(), EvaluateError::NoGeneration);
    assert_eq!(*world.engine.readiness().borrow(), tollgate_engine::Readiness::NoGeneration);
    assert_eq!(world.log.take(), "no decision: no generation");
}

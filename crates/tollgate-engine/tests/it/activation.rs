//! Generations: what is activated, what is refused, and that each answer comes out of one.

use std::{sync::Arc, time::Duration};

use tokio::sync::Semaphore;
use tollgate_domain::{Bundle, BundleSource, Candidate, Finding, Refused, UnavailableCause};

use crate::harness::{Does, World, allowed, assert_allowed, bundle, call, hook, options};

#[tokio::test(start_paused = true)]
async fn p03_a_call_that_began_under_the_old_generation_finishes_under_it() {
    let gate = Arc::new(Semaphore::new(0));
    let old = vec![hook("a").does(Does::AllowWhen(Arc::clone(&gate))), hook("b").does(Does::Deny("old")).told(Does::Allow)];
    let world = World::with(old).await;
    let sent = world.send(call("i-1"));
    world.settle().await;
    world.activate("second", vec![hook("a").does(Does::Deny("new")), hook("b")]).await;
    gate.add_permits(1);
    drop(sent.answer().await.unwrap());
    world.decide(call("i-2")).await;
    insta::assert_snapshot!(world.log.take(), @"
    ask a about i-1 attempt 1
    commit of the system
      2 GenerationActivated 2 revision second replaces 1 [hooks/a@1 hooks/b@1]
    ask b about i-1 attempt 1
    tell b of i-1 failed (denied) old
    commit i-1 attempt 1
      1 ToolCallStarted
      2 GovernanceEvaluated DENY by b old [1 a ALLOWED, 2 b DENIED old] generation 1
      3 ToolCallFailed failed (denied) old [b notified]
    answer DENY by b old 'b says no'; attempt 1, generation 1, sequence 3
    ask a about i-2 attempt 2
    commit i-2 attempt 2
      4 ToolCallStarted
      5 GovernanceEvaluated DENY by a new [1 a DENIED new] generation 2
      6 ToolCallFailed failed (denied) new
    answer DENY by a new 'a says no'; attempt 2, generation 2, sequence 6
    ");
}

#[tokio::test(start_paused = true)]
async fn b10_g02_an_attempt_after_a_swap_sees_the_new_generation() {
    let world = World::with(vec![hook("a").does(Does::Deny("limit"))]).await;
    world.decide(call("i-1")).await;
    world.activate("second", vec![hook("a").content("changed")]).await;
    world.decide(call("i-2")).await;
    insta::assert_snapshot!(world.log.take(), @"
    ask a about i-1 attempt 1
    commit i-1 attempt 1
      1 ToolCallStarted
      2 GovernanceEvaluated DENY by a limit [1 a DENIED limit] generation 1
      3 ToolCallFailed failed (denied) limit
    answer DENY by a limit 'a says no'; attempt 1, generation 1, sequence 3
    commit of the system
      2 GenerationActivated 2 revision second replaces 1 [hooks/a@2]
    ask a about i-2 attempt 2
    commit i-2 attempt 2
      4 ToolCallStarted
      5 GovernanceEvaluated ALLOW [1 a ALLOWED] generation 2
    answer ALLOW; attempt 2, generation 2, sequence 5
    ");
}

#[tokio::test(start_paused = true)]
async fn h05_a_duplicate_hook_is_refused_on_record_and_the_old_generation_serves_on() {
    let world = World::on(Arc::default(), options(), vec![hook("local").local()]);
    world.activate("first", vec![hook("a")]).await;
    world.activate("second", vec![hook("b"), hook("b").order(1)]).await;
    world.activate("third", vec![hook("local")]).await;
    assert_eq!(allowed(world.ask(call("i-1")).await).decided().generation.number, 1);
    let status = world.engine.status();
    assert_eq!(status.active.as_ref().unwrap().reference().number, 1);
    assert_eq!(status.desired.as_ref().unwrap().as_str(), "third");
    assert_eq!(status.attempted.as_ref().unwrap().as_str(), "third");
    assert_eq!(status.last_error.as_ref().unwrap().code.as_str(), "duplicate_hook");
    insta::assert_snapshot!(world.log.take(), @"
    commit of the system
      1 GenerationActivated 1 revision first [hooks/a@1]
    commit of the system
      2 GenerationRefused acme revision second: duplicate_hook
    commit of the system
      3 GenerationRefused acme revision third: duplicate_hook
    ask a about i-1 attempt 1
    ask local about i-1 attempt 1
    commit i-1 attempt 1
      1 ToolCallStarted
      2 GovernanceEvaluated ALLOW [1 a ALLOWED, 2 local ALLOWED] generation 1
    answer ALLOW; attempt 1, generation 1, sequence 2
    ");
}

#[tokio::test(start_paused = true)]
async fn p02_content_that_is_no_bundle_is_refused_on_record_with_its_first_findings() {
    let world = World::with(vec![hook("a")]).await;
    let finding = |line| Finding { code: "TG0204".to_owned(), path: "hooks/a/hook.yaml".to_owned(), line };
    let refused = Refused {
        bundle: None,
        revision: "broken".parse().unwrap(),
        code: "invalid_bundle".parse().unwrap(),
        findings: (1..=40).map(finding).collect(),
    };
    world.engine.consider(Err(refused)).await;
    let status = world.engine.status();
    let error = status.last_error.as_ref().unwrap();
    assert_eq!((error.findings.len(), error.findings_count), (32, 40));
    assert_allowed(world.ask(call("i-1")).await);
    insta::assert_snapshot!(world.log.take(), @"
    commit of the system
      2 GenerationRefused acme revision broken: invalid_bundle
    ask a about i-1 attempt 1
    commit i-1 attempt 1
      1 ToolCallStarted
      2 GovernanceEvaluated ALLOW [1 a ALLOWED] generation 1
    answer ALLOW; attempt 1, generation 1, sequence 2
    ");
}

fn with_serial(world: &World, revision: &str, serial: u64) -> Bundle {
    Bundle { serial: Some(serial), ..bundle(revision, vec![hook("a")], &world.log) }
}

#[tokio::test(start_paused = true)]
async fn p04_an_older_or_equal_serial_is_refused_and_a_higher_one_activated() {
    let world = World::empty(options());
    for (revision, serial) in [("five", 5), ("four", 4), ("other five", 5), ("six", 6)] {
        world.engine.consider(Ok(with_serial(&world, revision, serial))).await;
    }
    insta::assert_snapshot!(world.log.take(), @"
    commit of the system
      1 GenerationActivated 1 revision five [hooks/a@1]
    commit of the system
      2 GenerationRefused acme revision four: older_than_active
    commit of the system
      3 GenerationRefused acme revision other five: older_than_active
    commit of the system
      4 GenerationActivated 2 revision six replaces 1 [hooks/a@1]
    ");
}

#[tokio::test(start_paused = true)]
async fn p04_a_bundle_without_a_serial_does_not_lower_the_bar_for_those_that_have_one() {
    let world = World::empty(options());
    world.engine.consider(Ok(with_serial(&world, "five", 5))).await;
    world.activate("none", vec![hook("a")]).await;
    world.engine.consider(Ok(with_serial(&world, "four", 4))).await;
    assert_eq!(world.engine.status().active.as_ref().unwrap().revision().as_str(), "none");
    world.engine.consider(Ok(with_serial(&world, "six", 6))).await;
    assert_eq!(world.engine.status().active.as_ref().unwrap().revision().as_str(), "six");
}

#[tokio::test(start_paused = true)]
async fn p04_after_a_restart_an_older_serial_is_refused_and_the_active_revision_is_right() {
    let world = World::empty(options());
    world.engine.consider(Ok(with_serial(&world, "five", 5))).await;
    let world = World::on(Arc::clone(&world.store.inner), options(), Vec::new());
    world.engine.consider(Ok(with_serial(&world, "four", 4))).await;
    world.engine.consider(Ok(with_serial(&world, "five", 5))).await;
    insta::assert_snapshot!(world.log.take(), @"
    commit of the system
      2 GenerationRefused acme revision four: older_than_active
    commit of the system
      3 GenerationActivated 1 revision five [hooks/a@1]
    ");
}

#[tokio::test(start_paused = true)]
async fn p04_numbers_rise_across_a_restart_and_a_hooks_with_its_content() {
    let world = World::empty(options());
    world.activate("first", vec![hook("a"), hook("b")]).await;
    world.activate("second", vec![hook("a").content("changed"), hook("b")]).await;
    let world = World::on(Arc::clone(&world.store.inner), options(), Vec::new());
    world.activate("second", vec![hook("a").content("changed"), hook("b")]).await;
    world.activate("first", vec![hook("a"), hook("b")]).await;
    world.activate("third", vec![hook("b")]).await;
    insta::assert_snapshot!(world.log.take(), @"
    commit of the system
      3 GenerationActivated 2 revision second [hooks/a@2 hooks/b@1]
    commit of the system
      4 GenerationActivated 3 revision first replaces 2 [hooks/a@3 hooks/b@1]
    commit of the system
      5 GenerationActivated 4 revision third replaces 3 [hooks/b@1]
    ");
}

#[tokio::test(start_paused = true)]
async fn the_active_revision_offered_again_is_confirmed_and_not_recorded() {
    let world = World::with(vec![hook("a")]).await;
    let before = world.engine.status();
    tokio::time::sleep(Duration::from_secs(1)).await;
    world.activate("first", vec![hook("a")]).await;
    let status = world.engine.status();
    assert_eq!(status.activated_at, before.activated_at);
    assert!(status.last_success_at > before.last_success_at);
    assert_eq!(world.log.take(), "");
}

#[tokio::test(start_paused = true)]
async fn p13_nothing_is_activated_before_its_activation_is_on_record() {
    let world = World::empty(options());
    world.fail(Some(UnavailableCause::Full));
    let activating = world.activate("first", vec![hook("a")]);
    let healing = async {
        tokio::time::sleep(Duration::from_mins(1)).await;
        assert!(world.engine.status().active.is_none());
        world.fail(None);
    };
    tokio::join!(activating, healing);
    assert!(world.engine.status().active.is_some());
    assert_allowed(world.ask(call("i-1")).await);
}

/// Offers what it is given, and then nothing more.
#[derive(Debug)]
struct Offers(tokio::sync::mpsc::UnboundedReceiver<Candidate>);

#[async_trait::async_trait]
impl BundleSource for Offers {
    async fn next(&mut self) -> Candidate {
        match self.0.recv().await {
            Some(candidate) => candidate,
            None => std::future::pending().await,
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_source_offers_is_activated_one_after_the_other_until_shutdown() {
    let world = World::empty(options());
    let (offer, offers) = tokio::sync::mpsc::unbounded_channel();
    world.engine.keep_generations(Box::new(Offers(offers)));
    for revision in ["first", "second"] {
        offer.send(Ok(bundle(revision, vec![hook("a").content(revision)], &world.log))).unwrap();
    }
    world.settle().await;
    assert_eq!(*world.engine.readiness().borrow(), tollgate_engine::Readiness::Serving);
    assert_allowed(world.ask(call("i-1")).await);
    world.engine.shut_down().await;
    assert!(offer.is_closed(), "the source is dropped");
    insta::assert_snapshot!(world.log.take(), @"
    commit of the system
      1 GenerationActivated 1 revision first [hooks/a@1]
    commit of the system
      2 GenerationActivated 2 revision second replaces 1 [hooks/a@2]
    ask a about i-1 attempt 1
    commit i-1 attempt 1
      1 ToolCallStarted
      2 GovernanceEvaluated ALLOW [1 a ALLOWED] generation 2
    answer ALLOW; attempt 1, generation 2, sequence 2
    ");
}

#[tokio::test(start_paused = true)]
async fn shutdown_does_not_wait_for_an_activation_that_the_journal_holds_up() {
    let world = World::empty(options());
    let (offer, offers) = tokio::sync::mpsc::unbounded_channel();
    world.engine.keep_generations(Box::new(Offers(offers)));
    world.fail(Some(UnavailableCause::Full));
    offer.send(Ok(bundle("first", vec![hook("a")], &world.log))).unwrap();
    world.settle().await;
    let began = tokio::time::Instant::now();
    world.engine.shut_down().await;
    assert_eq!(began.elapsed(), Duration::ZERO);
}

/// A journal that was closed or is damaged does not heal by waiting: nothing is activated, and nobody waits.
#[tokio::test(start_paused = true)]
async fn a_journal_that_will_not_heal_ends_an_activation() {
    for cause in [UnavailableCause::Closed, UnavailableCause::Corrupt] {
        let world = World::empty(options());
        world.fail(Some(cause));
        let activating = world.activate("first", vec![hook("a")]);
        tokio::time::timeout(Duration::from_mins(1), activating).await.unwrap();
        assert!(world.engine.status().active.is_none());
    }
}

//! Bundles that decide no longer, or never did: dropped after the last call that holds them, and off its thread.

use std::{
    sync::{Arc, Mutex},
    thread::ThreadId,
    time::Duration,
};

use async_trait::async_trait;
use tokio::sync::Semaphore;
use tollgate_domain::{Bundle, Hook, HookAnswer, HookInput, Verdict};

use crate::harness::{World, assert_allowed, bundle, call, hook, options};

/// Tells on which thread it was dropped.
#[derive(Debug)]
struct Mortal {
    gate: Arc<Semaphore>,
    dropped_on: Arc<Mutex<Option<ThreadId>>>,
}

#[async_trait]
impl Hook for Mortal {
    async fn evaluate(&self, _input: HookInput<'_>) -> HookAnswer {
        self.gate.acquire().await.unwrap().forget();
        Verdict::Allowed.into()
    }
}

impl Drop for Mortal {
    fn drop(&mut self) {
        *self.dropped_on.lock().unwrap() = Some(std::thread::current().id());
    }
}

type DroppedOn = Arc<Mutex<Option<ThreadId>>>;

/// A bundle with one hook, what lets its calls through, and the thread that dropped it.
fn mortal(world: &World, revision: &str) -> (Bundle, Arc<Semaphore>, DroppedOn) {
    let (gate, dropped_on) = (Arc::new(Semaphore::new(0)), DroppedOn::default());
    let mut bundle = bundle(revision, vec![hook("a")], &world.log);
    bundle.hooks[0].hook = Arc::new(Mortal { gate: Arc::clone(&gate), dropped_on: Arc::clone(&dropped_on) });
    (bundle, gate, dropped_on)
}

async fn with_mortal() -> (World, Arc<Semaphore>, DroppedOn) {
    let world = World::empty(options());
    let (first, gate, dropped_on) = mortal(&world, "first");
    world.engine.consider(Ok(first)).await;
    (world, gate, dropped_on)
}

/// Waits for the thread that drops; real time passes only as long as it needs.
async fn dropped(dropped_on: &Mutex<Option<ThreadId>>) -> ThreadId {
    loop {
        if let Some(thread) = *dropped_on.lock().unwrap() {
            return thread;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_retired_generation_is_dropped_after_its_last_call_and_off_the_callers_thread() {
    let (world, gate, dropped_on) = with_mortal().await;
    let (one, two) = (world.send(call("i-1")), world.send(call("i-2")));
    world.settle().await;
    world.activate("second", vec![hook("a")]).await;
    gate.add_permits(1);
    assert_allowed(one.answer().await);
    tokio::time::sleep(Duration::from_secs(5)).await;
    // A thread that let go too early has had the time to, so that the last call would be the one that drops.
    std::thread::sleep(Duration::from_millis(50));
    assert!(dropped_on.lock().unwrap().is_none(), "a call still holds it");
    gate.add_permits(1);
    assert_allowed(two.answer().await);
    assert_ne!(dropped(&dropped_on).await, std::thread::current().id());
}

#[tokio::test(start_paused = true)]
async fn a_reader_of_the_status_that_holds_a_retired_generation_does_not_hold_up_shutdown() {
    let (world, _gate, _) = with_mortal().await;
    let held = world.engine.status();
    world.activate("second", vec![hook("a")]).await;
    let began = tokio::time::Instant::now();
    world.engine.shut_down().await;
    assert!(began.elapsed() < Duration::from_secs(1));
    assert_eq!(held.active.as_ref().unwrap().reference().number, 1);
}

#[tokio::test(start_paused = true)]
async fn a_bundle_that_is_not_activated_is_dropped_off_the_callers_thread() {
    let world = World::empty(options());
    world.activate("first", vec![hook("a")]).await;
    let (confirmed, _gate, dropped_on) = mortal(&world, "first");
    world.engine.consider(Ok(confirmed)).await;
    assert_ne!(dropped(&dropped_on).await, std::thread::current().id(), "confirmed");

    let (mut newer, _gate, _) = mortal(&world, "newer");
    newer.serial = Some(2);
    world.engine.consider(Ok(newer)).await;
    let (mut older, _gate, dropped_on) = mortal(&world, "older");
    older.serial = Some(1);
    world.engine.consider(Ok(older)).await;
    assert_ne!(dropped(&dropped_on).await, std::thread::current().id(), "older than the active one");

    let (mut twice, _gate, dropped_on) = mortal(&world, "twice");
    twice.hooks.extend(bundle("other", vec![hook("a")], &world.log).hooks);
    world.engine.consider(Ok(twice)).await;
    assert_ne!(dropped(&dropped_on).await, std::thread::current().id(), "two hooks of one id");

    assert_eq!(world.engine.status().active.as_ref().unwrap().revision().as_str(), "newer");
}

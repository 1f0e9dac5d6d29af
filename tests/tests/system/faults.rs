//! Everything beneath the sidecar fails, under callers who watch their deadlines: nobody is told an ALLOW without its
//! durable fact, everybody learns why there is no decision, and what can heal does.
//!
//! Small counts with every run of the tests, large ones with `SOAK` set.

mod clock;
mod damage;
mod disk;
mod kill;
mod power;
mod resources;
mod slow;

use tollgate_tests::{
    load::{self, Told},
    sidecar::{Setup, Sidecar},
    soak,
};

/// Ends a test: starts a sidecar on what is there, stops it in order, and holds the journal against what callers
/// were told.
async fn settle(setup: Setup, told: &Told) -> Setup {
    settle_running(setup.start().await, told).await
}

/// As [`settle`], with the sidecar that runs.
async fn settle_running(sidecar: Sidecar, told: &Told) -> Setup {
    let (status, setup) = sidecar.stop().await;
    assert!(status.success(), "{status}");
    let verified = load::verify(&setup.journal_path(), told).await;
    soak::report(&[
        ("acknowledged decisions", told.decisions.len()),
        ("acknowledged outcomes", told.outcomes.len()),
        ("calls without a decision", told.refusals.len()),
        ("lost", verified.lost.len() + verified.lost_outcomes.len()),
        ("allows without a durable fact", verified.baseless.len()),
        ("hangs past a deadline", told.hangs),
    ]);
    verified.assert_nothing_lost();
    assert_eq!(told.hangs, 0, "answers within the deadline");
    setup
}

//! The wall clock jumps by hours, while the sidecar runs and while it does not.

use std::time::Duration;

use tollgate_client::v1;
use tollgate_tests::{
    faults::Faults,
    load::{self, Load, Told},
    sidecar::Setup,
    wire,
};

use super::settle;

const HOUR: i64 = 3_600;

/// B10: no jump keeps a caller waiting, mixes up the record, or makes an ALLOW of an expired one. A call that is being
/// answered while the clock is set past the validity of its ALLOW is told so.
#[tokio::test]
async fn b10_p07_jumps_of_the_clock_neither_hang_callers_nor_disturb_the_record() {
    let (mut setup, faults) = Faults::under(Setup::new());
    let mut told = Told::default();
    for jumps in [[-6 * HOUR, 3 * HOUR, -1], [-12 * HOUR, HOUR, 30 * HOUR]] {
        let sidecar = setup.start().await;
        let load = Load::within(&sidecar, load::PATIENT).await;
        for seconds in jumps {
            load.decides(30).await;
            faults.set_clock(seconds);
        }
        load.decides(30).await;
        told.extend(load.stop().await);
        setup = sidecar.kill();
    }
    let expired = |refusal: &load::Refusal| refusal.reason.as_deref() == Some("DECISION_EXPIRED");
    assert!(told.refusals.iter().all(expired), "{:?}", told.refusals);
    faults.set_clock(-48 * HOUR);
    settle(setup, &told).await;
}

/// B10: the validity of an ALLOW goes by the sidecar's clock, and an expired one is not told again.
#[tokio::test]
async fn b10_a_clock_that_jumps_forward_ends_what_was_allowed_and_not_a_call_that_waits() {
    let (setup, faults) = Faults::under(Setup::new());
    let sidecar = setup.start().await;
    let (gate, run) = (sidecar.gate().await, wire::run());
    let call = wire::call(&run, "desk.read", "{}");
    let first = gate.evaluate(call.clone()).await.unwrap().response().clone();
    let again = gate.evaluate(call.clone()).await.unwrap().response().clone();
    assert_eq!((again.decision(), again.position), (v1::Decision::Allow, first.position));
    faults.set_clock(2 * HOUR);
    let expired = gate.evaluate(call).await.unwrap_err();
    assert_eq!(expired.reason.as_deref(), Some("DECISION_EXPIRED"));
    let next = gate.evaluate_within(wire::call(&run, "desk.read", "{}"), Duration::from_secs(20)).await.unwrap();
    let later = next.response().valid_until.unwrap().seconds - first.valid_until.unwrap().seconds;
    assert!((2 * HOUR..3 * HOUR).contains(&later), "{later}");
    // A duration from one clock to another is never below zero.
    faults.set_clock(-2 * HOUR);
    let outcome = gate.complete(wire::succeeded(&run, &next.response().invocation_id)).await.unwrap();
    let duration = outcome.duration.unwrap();
    assert_eq!((duration.seconds, duration.nanos), (0, 0));
}

//! Calls to the journal's files fail or are cut short, once, now and then, or for good.

use rustix::io::Errno;
use tollgate_tests::{
    faults::{Act, Faults, Rule, file, operation},
    load::{self, Load, Told},
    power::{self, Dice, Loss},
    sidecar::Setup,
    soak,
};
use tonic_health::pb::health_check_response::ServingStatus;

use super::{settle, settle_running};

/// G12, G13, P09: each failure refuses calls for its own cause, readiness says so, and it heals without a restart.
#[tokio::test]
async fn g12_g13_p09_each_failure_of_the_disk_is_told_as_its_cause_and_heals_when_it_goes() {
    let (setup, mut faults) = Faults::under(Setup::new());
    let mut sidecar = setup.start().await;
    let mut told = Told::default();
    for (rule, causes) in [
        (Rule::new(Act::Fail(Errno::IO), &[operation::WRITE]), ["io"].as_slice()),
        (Rule::new(Act::Fail(Errno::NOSPC), &[operation::WRITE]), &["full"]),
        // SQLite knows a read-only file system when it opens a file, and a failed write as such.
        (Rule::new(Act::Fail(Errno::ROFS), &[operation::WRITE, operation::OPEN]), &["io", "read_only"]),
        (Rule::new(Act::Fail(Errno::IO), &[operation::SYNC]), &["io"]),
        (Rule::new(Act::Fail(Errno::NOSPC), &[operation::SYNC]), &["io", "full"]),
        (Rule::new(Act::Fail(Errno::IO), &[operation::SYNC]).on(&[file::LOG]), &["io"]),
        (Rule::new(Act::Fail(Errno::IO), &[operation::WRITE, operation::OPEN, operation::READ, operation::TRUNCATE]), &["io"]),
    ] {
        let load = Load::start(&sidecar).await;
        load.decides(20).await;
        faults.arm(&[rule]);
        load.refuses(20).await;
        sidecar.until_health(ServingStatus::NotServing).await;
        assert_eq!(sidecar.health("tollgate.liveness").await, Some(ServingStatus::Serving), "a restart would not help");
        faults.heal();
        sidecar.until_health(ServingStatus::Serving).await;
        load.decides(20).await;
        let these = load.stop().await;
        let given = these.causes("JOURNAL_UNAVAILABLE");
        let others = ["too_slow", "deadline_passed", "overloaded"];
        assert!(given.iter().any(|cause| causes.contains(cause)), "{rule:?}: {given:?}");
        assert!(given.iter().all(|cause| causes.contains(cause) || others.contains(cause)), "{rule:?}: {given:?}");
        told.extend(these);
        sidecar.wait_until_serving().await;
    }
    soak::report(&[("faults", faults.acted())]);
    let setup = settle_running(sidecar, &told).await;
    let verified = load::verify(&setup.journal_path(), &told).await;
    assert!(verified.open.is_empty(), "what could not be told is closed: {verified:#?}");
}

/// G12: a write that does less than it was asked to is gone on with.
#[tokio::test]
async fn g12_short_writes_are_completed_and_nobody_notices() {
    let (setup, mut faults) = Faults::under(Setup::new());
    let sidecar = setup.start().await;
    faults.arm(&[Rule::new(Act::Short, &[operation::WRITE]).every(3)]);
    let load = Load::within(&sidecar, load::PATIENT).await;
    load.decides(200).await;
    let told = load.stop().await;
    assert!(told.refusals.is_empty(), "{:?}", told.refusals);
    // A disk that fills up cuts a write short, and then fails it.
    faults.arm(&[
        Rule::new(Act::Short, &[operation::WRITE]).on(&[file::LOG]).every(4),
        Rule::new(Act::Fail(Errno::NOSPC), &[operation::WRITE]).on(&[file::LOG]).every(7),
    ]);
    let load = Load::start(&sidecar).await;
    load.refuses(20).await;
    faults.heal();
    soak::report(&[("faults", faults.acted())]);
    load.decides(20).await;
    let mut told = told;
    told.extend(load.stop().await);
    settle_running(sidecar, &told).await;
}

/// G12, P05: any of these at any time, one after the other, now and then with a power cut.
#[tokio::test]
async fn g12_p05_failures_in_any_order_lose_nothing_and_allow_nothing() {
    let (wanted, mut dice) = (soak::count(40, 2_000), Dice(Some(12)));
    let (mut setup, mut faults) = Faults::with_power(Setup::new());
    let mut kills = 0;
    while faults.acted() < wanted {
        let sidecar = setup.start().await;
        let load = Load::start(&sidecar).await;
        for _ in 0..5 {
            faults.arm(&[any_rule(&mut dice)]);
            // As long as it takes for what the rule says; a rule that meets nothing is over by then.
            for _ in 0..20 {
                let before = faults.acted_now();
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
                if faults.acted_now() > 0 && faults.acted_now() == before {
                    break;
                }
            }
            faults.heal();
            load.decides(5).await;
        }
        if dice.between(0, 1) == 0 {
            setup = sidecar.kill();
            let told = load.stop().await;
            power::cut(&mut faults, Loss::Some(dice.between(0, 1_000_000) as u64));
            kills += 1;
            setup = settle(setup, &told).await;
        } else {
            let told = load.stop().await;
            setup = settle_running(sidecar, &told).await;
        }
    }
    soak::report(&[("faults", faults.acted()), ("kills", kills)]);
}

fn any_rule(dice: &mut Dice) -> Rule {
    let errors = [Errno::IO, Errno::NOSPC, Errno::ROFS, Errno::INTR, Errno::MFILE];
    let operations = [operation::OPEN, operation::WRITE, operation::SYNC, operation::TRUNCATE, operation::NAME, operation::READ];
    let act = match dice.between(0, 5) {
        0 => Act::Short,
        1 => Act::StallMillis(u32::try_from(dice.between(1, 300)).unwrap()),
        _ => Act::Fail(errors[dice.between(0, errors.len() - 1)]),
    };
    let operation = operations[dice.between(0, operations.len() - 1)];
    // Of a call that works no more often than that, something would be left over for the next.
    Rule::new(act, &[operation]).after(dice.between(0, 20)).every(dice.between(1, 5)).times(dice.between(1, 12))
}

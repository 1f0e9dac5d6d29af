//! The power is cut: whatever was not synced may be gone.

use tollgate_tests::{
    faults::{Act, Faults, Rule, operation},
    load::{self, Load, Told},
    power::{self, Dice, Loss},
    sidecar::Setup,
    soak,
};

use super::settle;

/// P05, P08: what was acknowledged was synced before.
#[tokio::test]
async fn p05_p08_no_acknowledged_decision_is_lost_in_a_power_cut() {
    let cuts = soak::count(6, 200);
    let mut dice = Dice(Some(21));
    let (mut setup, mut faults) = Faults::with_power(Setup::new());
    let mut told = Told::default();
    for cut in 0..cuts {
        let sidecar = setup.start().await;
        let load = Load::start(&sidecar).await;
        load.decides(dice.between(1, 200)).await;
        // In the midst of writing, so that there is something to lose.
        faults.arm(&[Rule::new(Act::Kill, &[operation::SYNC]).after(dice.between(0, 5))]);
        (_, setup) = sidecar.ended().await;
        faults.heal();
        told.extend(load.stop().await);
        let lost = power::cut(&mut faults, if cut % 3 == 0 { Loss::Everything } else { Loss::Some(cut as u64) });
        assert!(lost > 0, "there was something to lose");
        if cut % 25 == 24 {
            setup = settle(setup, &told).await;
            told = Told::default();
        }
    }
    settle(setup, &told).await;
    soak::report(&[("kills", cuts)]);
}

/// P08: so it is from the very first start on, names and directory included.
#[tokio::test]
async fn p08_a_power_cut_right_after_the_first_start_loses_nothing_and_bars_nobody() {
    let starts = soak::count(3, 30);
    for seed in 0..starts {
        let (setup, mut faults) = Faults::with_power(Setup::new());
        let sidecar = setup.start().await;
        let load = Load::start(&sidecar).await;
        load.decides(1).await;
        let setup = sidecar.kill();
        let told = load.stop().await;
        power::cut(&mut faults, if seed == 0 { Loss::Everything } else { Loss::Some(seed as u64) });
        settle(setup, &told).await;
    }
    soak::report(&[("kills", starts)]);
}

/// P08: nothing is left to the next sync by a sidecar that ends in order.
#[tokio::test]
async fn p08_a_power_cut_after_an_orderly_end_loses_nothing() {
    let (setup, mut faults) = Faults::with_power(Setup::new());
    let sidecar = setup.start().await;
    let load = Load::start(&sidecar).await;
    load.decides(100).await;
    let told = load.stop().await;
    let (_, setup) = sidecar.stop().await;
    power::cut(&mut faults, Loss::Everything);
    settle(setup, &told).await;
}

/// G12: a sync that failed loses what it was to sync, and the next one that succeeds does not bring it back.
#[tokio::test]
async fn g12_p05_no_acknowledged_decision_is_lost_in_a_power_cut_after_a_sync_that_failed() {
    let (mut setup, mut faults) = Faults::with_power(Setup::new());
    let mut told = Told::default();
    let rounds = soak::count(3, 30);
    for round in 0..rounds {
        let sidecar = setup.start().await;
        let load = Load::start(&sidecar).await;
        load.decides(50).await;
        faults.arm(&[Rule::new(Act::Fail(rustix::io::Errno::IO), &[operation::SYNC]).times(1 + round % 3)]);
        load.refuses(1).await;
        // It heals by itself, and goes on.
        load.decides(100).await;
        faults.arm(&[Rule::new(Act::Kill, &[operation::SYNC])]);
        (_, setup) = sidecar.ended().await;
        faults.heal();
        told.extend(load.stop().await);
        power::cut(&mut faults, if round == 0 { Loss::Everything } else { Loss::Some(round as u64) });
    }
    settle(setup, &told).await;
    soak::report(&[("faults", faults.acted()), ("kills", rounds)]);
}

/// The checks above can fail: a disk that says that it synced, and did not, is caught by them.
#[tokio::test]
async fn the_checker_notices_a_lying_disk() {
    let (setup, mut faults) = Faults::with_power(Setup::new());
    let sidecar = setup.start().await;
    faults.arm(&[Rule::new(Act::Lie, &[operation::SYNC])]);
    let load = Load::start(&sidecar).await;
    load.decides(50).await;
    let setup = sidecar.kill();
    let told = load.stop().await;
    faults.heal();
    assert!(power::cut(&mut faults, Loss::Everything) > 0);
    let (_, setup) = setup.start().await.stop().await;
    let verified = load::verify(&setup.journal_path(), &told).await;
    assert_eq!(verified.lost.len(), told.decisions.len(), "everything that was told is lost");
    assert_eq!(verified.lost_outcomes.len(), told.outcomes.len());
    assert!(!verified.baseless.is_empty());
}

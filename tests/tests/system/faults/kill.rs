//! The sidecar is killed under load: at any moment, and at each kind of call to its files.

use std::time::Duration;

use tollgate_tests::{
    faults::{Act, Faults, Rule, file, operation},
    load::{Load, Told},
    power::Dice,
    sidecar::{Setup, Sidecar},
    soak, trees,
};

use super::settle;

/// Waits until the sidecar is dead, which somebody else sees to, and takes what is left.
async fn dead(sidecar: Sidecar) -> Setup {
    let (status, setup) = sidecar.ended().await;
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(9), "{status}");
    setup
}

/// P05: what was acknowledged is on record, whenever the sidecar dies.
#[tokio::test]
async fn p05_g05_no_acknowledged_decision_is_lost_when_the_sidecar_is_killed_under_load() {
    let mut dice = Dice(Some(5));
    let kills = soak::count(5, 250);
    let mut generations = Vec::new();
    for round in 0..kills.div_ceil(25) {
        let (mut setup, mut told) = (Setup::new(), Told::default());
        for kill in 0..kills.min(25) {
            let sidecar = setup.start().await;
            generations.push(sidecar.generation().await.number);
            let load = Load::start(&sidecar).await;
            load.decides(dice.between(1, 300)).await;
            if kill % 2 == 1 {
                // A new generation is on its way as well.
                let text = format!("# kill {round}.{kill}\nid: desk\nkind: cedar\norder: 0\n");
                trees::write(&trees::with(trees::gate(), &[("hooks/desk/hook.yaml", &text)]), &sidecar.setup().bundle());
            }
            tokio::time::sleep(Duration::from_millis(dice.between(0, 20) as u64)).await;
            setup = sidecar.kill();
            told.extend(load.stop().await);
        }
        settle(setup, &told).await;
        assert!(generations.is_sorted(), "numbers of generations rise: {generations:?}");
        generations.clear();
    }
    soak::report(&[("kills", kills)]);
}

/// P05, P08: the steps at which it dies are those that its files see.
#[tokio::test]
async fn p05_p08_no_acknowledged_decision_is_lost_when_the_sidecar_dies_at_a_call_to_its_files() {
    let kills = soak::count(8, 250);
    let mut dice = Dice(Some(8));
    let (mut setup, mut faults) = Faults::under(Setup::new());
    let mut told = Told::default();
    for kill in 0..kills {
        let sidecar = setup.start().await;
        let load = Load::start(&sidecar).await;
        load.decides(10).await;
        let act = if kill % 2 == 0 { Act::Kill } else { Act::KillWithin };
        let rule = match kill / 2 % 4 {
            0 => Rule::new(act, &[operation::WRITE]).on(&[file::LOG]).after(dice.between(0, 200)),
            1 => Rule::new(act, &[operation::SYNC]).on(&[file::LOG]).after(dice.between(0, 30)),
            // The log is moved into the database within a commit, once it is long; not waited for.
            2 => Rule::new(act, &[operation::WRITE]).after(dice.between(0, 500)),
            _ => Rule::new(act, &[operation::SYNC, operation::TRUNCATE]).after(dice.between(0, 3)),
        };
        faults.arm(&[rule]);
        setup = dead(sidecar).await;
        faults.heal();
        told.extend(load.stop().await);
        if kill % 25 == 24 {
            setup = settle(setup, &told).await;
            told = Told::default();
        }
    }
    settle(setup, &told).await;
    soak::report(&[("kills", kills)]);
}

/// P08: a first start that is cut off anywhere leaves nothing that the next cannot go on from.
#[tokio::test]
async fn p08_a_first_start_that_dies_at_any_call_to_its_files_can_be_made_again() {
    let every = soak::count(11, 1);
    let mut kills = 0;
    for (operation, act) in [
        (operation::OPEN, Act::KillWithin),
        (operation::WRITE, Act::KillWithin),
        (operation::SYNC, Act::Kill),
        (operation::TRUNCATE, Act::KillWithin),
        (operation::NAME, Act::KillWithin),
    ] {
        // Each in its turn, until a start gets through without so many calls.
        for step in (0..).step_by(every) {
            let (setup, mut faults) = Faults::under(Setup::new());
            faults.arm(&[Rule::new(act, &[operation]).after(step).times(1)]);
            let mut sidecar = setup.spawn();
            if sidecar.serves_or_ends().await {
                break;
            }
            kills += 1;
            let setup = dead(sidecar).await;
            faults.heal();
            settle(setup, &Told::default()).await;
        }
    }
    soak::report(&[("kills", kills)]);
}

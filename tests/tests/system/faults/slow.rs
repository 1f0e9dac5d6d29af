//! The journal does not answer: its disk hangs, or another process has it.

use std::time::Duration;

use tollgate_tests::{
    faults::{Act, Faults, Rule, operation},
    journal_file::Hold,
    load::{self, Load},
    sidecar::Setup,
    soak,
};

use super::settle_running;

/// P07: a caller is answered within its deadline, however long a sync takes.
#[tokio::test]
async fn p07_a_sync_that_hangs_is_waited_for_no_longer_than_each_caller_has() {
    let (setup, mut faults) = Faults::under(Setup::new());
    let sidecar = setup.start().await;
    for _ in 0..soak::count(1, 20) {
        let load = Load::within(&sidecar, Duration::from_secs(1)).await;
        load.decides(20).await;
        faults.arm(&[Rule::new(Act::Stall, &[operation::SYNC])]);
        // More than once each.
        load.refuses(20).await;
        faults.heal();
        load.decides(20).await;
        let told = load.stop().await;
        let causes = told.causes("JOURNAL_UNAVAILABLE");
        assert!(causes.contains(&"deadline_passed"), "{causes:?}");
        assert!(
            told.refusals.iter().filter(|refusal| refusal.reason.is_some()).count() * 2 > told.refusals.len(),
            "most say why"
        );
        let verified = load::verify(&sidecar.setup().journal_path(), &told).await;
        verified.assert_nothing_lost();
        assert_eq!(told.hangs, 0);
    }
    soak::report(&[("faults", faults.acted())]);
    settle_running(sidecar, &load::Told::default()).await;
}

/// P07: nor longer than the configuration says, where a caller has more time.
#[tokio::test]
async fn p07_a_sync_that_hangs_is_waited_for_no_longer_than_the_configured_maximum() {
    let (setup, mut faults) = Faults::under(Setup::new().set("journal.max_wait", "300ms"));
    let sidecar = setup.start().await;
    let load = Load::within(&sidecar, load::PATIENT).await;
    load.decides(20).await;
    faults.arm(&[Rule::new(Act::Stall, &[operation::SYNC])]);
    load.refuses(20).await;
    faults.heal();
    load.decides(20).await;
    let told = load.stop().await;
    assert!(told.causes("JOURNAL_UNAVAILABLE").iter().all(|cause| *cause == "too_slow"), "{:?}", told.refusals);
    let setup = settle_running(sidecar, &told).await;
    let verified = load::verify(&setup.journal_path(), &told).await;
    assert!(verified.open.is_empty(), "what could not be told is closed: {verified:#?}");
}

/// P08: a second sidecar is turned away, and another program's lock makes calls wait no longer than they have.
#[tokio::test]
async fn p08_p07_other_processes_at_the_journal_neither_hang_callers_nor_lose_anything() {
    let sidecar = Setup::new().start().await;
    let load = Load::within(&sidecar, Duration::from_secs(1)).await;
    load.decides(20).await;
    let journal = format!("'sqlite:{}'", sidecar.setup().journal_path().display());
    let key = format!("'{}'", sidecar.setup().state().join("identity.key").display());
    let second = Setup::new().set("journal.url", &journal).set("journal.identity_key_file", &key);
    assert!(second.run().err.contains("in use by another sidecar"));
    load.decides(20).await;
    let hold = Hold::take(&sidecar.setup().journal_path());
    load.refuses(20).await;
    drop(hold);
    load.decides(20).await;
    let told = load.stop().await;
    let causes = told.causes("JOURNAL_UNAVAILABLE");
    assert!(causes.contains(&"deadline_passed"), "{causes:?}");
    settle_running(sidecar, &told).await;
}

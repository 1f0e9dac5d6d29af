//! A journal whose disk is full or read-only: calls are refused for that reason, readiness says so, and it
//! heals by itself.

use std::time::Duration;

use tollgate_client::{Gate, v1};
use tollgate_domain::{FactKind, History, SystemRun};
use tollgate_tests::{
    journal_file,
    sidecar::{Setup, Sidecar, eventually},
    trees, wire,
};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_types::StatusExt as _;

use crate::metrics;

/// A journal, its log of 16 MiB, and a little more.
const MEGABYTES: u32 = 22;

/// A sidecar whose state is on a file system of its own.
async fn sidecar_on_tmpfs(metrics_port: u16) -> Option<Sidecar> {
    let setup = Setup::new().set("metrics.listen", &format!("127.0.0.1:{metrics_port}"));
    Some(setup.on_tmpfs(MEGABYTES)?.start().await)
}

/// Asks until the journal refuses; answers what was acknowledged, and checks the refusal.
async fn ask_until_refused(gate: &Gate, run: &v1::RunKey, cause: &str) -> Vec<v1::EvaluateResponse> {
    let mut acknowledged = Vec::new();
    eventually("a refusal", async || {
        for _ in 0..200 {
            match gate.raw().evaluate(wire::call(run, "desk.read", "{}")).await {
                Ok(answer) => acknowledged.push(answer.into_inner()),
                Err(status) => {
                    assert_eq!(status.code(), tonic::Code::Unavailable, "{status:?}");
                    let info = status.get_details_error_info().unwrap();
                    assert_eq!((info.domain.as_str(), info.reason.as_str()), ("tollgate.dev", "JOURNAL_UNAVAILABLE"));
                    assert_eq!(info.metadata["cause"], cause, "{status:?}");
                    return Some(());
                }
            }
        }
        None
    })
    .await;
    acknowledged
}

async fn all_on_record(sidecar: Sidecar, run: &v1::RunKey, acknowledged: &[v1::EvaluateResponse]) {
    let (status, setup) = sidecar.stop().await;
    assert!(status.success());
    let facts = journal_file::facts(&setup.journal_path(), &journal_file::history(run)).await;
    for answer in acknowledged {
        let stored = facts.iter().find(|stored| stored.sequence == answer.sequence).expect("what was acknowledged is on record");
        assert_eq!(stored.invocation.as_ref().unwrap().as_str(), answer.invocation_id);
        assert_eq!(stored.position, answer.position);
    }
}

#[tokio::test]
async fn p09_g12_a_full_disk_refuses_calls_says_so_and_heals_when_there_is_space() {
    let port = metrics::free_port();
    let Some(sidecar) = sidecar_on_tmpfs(port).await else { return };
    let (gate, run) = (sidecar.gate().await, wire::run());
    let open = gate.evaluate(wire::call(&run, "desk.read", "{}")).await.unwrap().response().clone();

    let filling = sidecar.setup().disk().fill();
    let mut acknowledged = ask_until_refused(&gate, &run, "full").await;
    acknowledged.push(open.clone());
    sidecar.until_health(ServingStatus::NotServing).await;
    assert_eq!(sidecar.health("tollgate.liveness").await, Some(ServingStatus::Serving), "a restart would not help");
    // An outcome is refused in the same way, and can be told later.
    let refused = gate.complete(wire::succeeded(&run, &open.invocation_id)).await.unwrap_err();
    assert_eq!(refused.reason.as_deref(), Some("JOURNAL_UNAVAILABLE"), "{refused}");
    assert!(refused.may_send_again());
    let metrics = metrics::scrape(port).await;
    assert!(metrics.contains("tollgate_journal_refusals_total{cause=\"full\"}"), "{metrics}");
    // What is on record can still be read.
    let request = v1::ListFactsRequest { run: Some(run.clone()), limit: 2, ..Default::default() };
    assert_eq!(sidecar.journal().await.list_facts(request).await.unwrap().into_inner().facts.len(), 2);

    drop(filling);
    sidecar.until_health(ServingStatus::Serving).await;
    let outcome = gate.complete(wire::succeeded(&run, &open.invocation_id)).await.unwrap();
    assert!(!outcome.repeat);
    acknowledged.push(gate.evaluate(wire::call(&run, "desk.read", "{}")).await.unwrap().response().clone());
    let log = sidecar.log();
    assert!(log.contains("the journal fails: nothing is approved until it heals cause=\"full\""), "{log}");
    assert!(log.contains("the journal accepts appends again"), "{log}");
    all_on_record(sidecar, &run, &acknowledged).await;
}

#[tokio::test]
async fn g12_a_journal_on_a_read_only_file_system_is_refused_at_start_and_taken_when_it_is_writable() {
    let Some(setup) = Setup::new().on_tmpfs(MEGABYTES) else { return };
    let (_, setup) = setup.start().await.stop().await;
    setup.disk().set_read_only(true);
    let ended = setup.run();
    assert_eq!(ended.code(), 1);
    assert!(ended.err.contains("journal.db") && ended.err.contains("read-only"), "{}", ended.err);
    setup.disk().set_read_only(false);
    drop(setup.start().await);
}

#[tokio::test]
async fn p08_a_sidecar_ends_in_order_while_its_disk_is_full_and_the_next_finds_everything() {
    let Some(sidecar) = sidecar_on_tmpfs(metrics::free_port()).await else { return };
    let (gate, run) = (sidecar.gate().await, wire::run());
    let filling = sidecar.setup().disk().fill();
    let acknowledged = ask_until_refused(&gate, &run, "full").await;
    // A bundle that arrives meanwhile cannot be activated, since its activation cannot be recorded.
    let first = sidecar.generation().await;
    trees::write(&trees::with(trees::gate(), &[("entities.json", "[ ]\n")]), &sidecar.setup().bundle());
    eventually("the new bundle", async || {
        Some(sidecar.status().await).filter(|status| status.desired_revision != status.active.as_ref().unwrap().revision)
    })
    .await;
    // Several tries to heal later it still cannot.
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!((sidecar.generation().await, sidecar.health("").await), (first.clone(), Some(ServingStatus::NotServing)));
    let (status, setup) = sidecar.stop().await;
    assert_eq!(status.code(), Some(0));
    drop(filling);
    let bundle = History::System(SystemRun::Bundle(first.bundle.parse().unwrap()));
    let facts = journal_file::facts(&setup.journal_path(), &bundle).await;
    let activated: Vec<_> = facts.iter().map(|stored| stored.fact.kind()).collect();
    assert_eq!(activated, [FactKind::GenerationActivated], "what could not be recorded was not active");
    let sidecar = setup.start().await;
    assert!(sidecar.generation().await.number > first.number, "now it can");
    all_on_record(sidecar, &run, &acknowledged).await;
}

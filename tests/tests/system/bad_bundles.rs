//! Every kind of bad bundle, put in place while clients ask: no answer changes, and everybody can see why not.

mod kinds;

use std::collections::HashSet;

use kinds::Kind;
use tollgate_client::{
    WireTimestamp,
    v1::{self, history_entry::Event},
};
use tollgate_domain::{Decision, Fact, History, SystemRun};
use tollgate_journal::SqliteReader;
use tollgate_policy::FindingCode;
use tollgate_tests::{
    journal_file,
    load::{self, Load, Told},
    sidecar::{Setup, Sidecar, eventually},
    soak, trees, wire,
};

use crate::metrics;

/// How many more decisions are told while a bad bundle is in place.
const DECISIONS: usize = 24;

/// P02
#[tokio::test]
async fn p02_no_kind_of_bad_bundle_changes_an_answer_and_each_is_seen_everywhere() {
    let rounds = soak::count(1, 20);
    let kinds = kinds::all();
    assert_eq!(kinds.iter().map(|kind| kind.what).collect::<HashSet<_>>().len(), kinds.len());
    assert!(kinds.iter().all(|kind| !kind.says.is_empty()));
    // The first is advice, the second a fault of the program.
    let not_of_a_bundle = [FindingCode::ManyEverywhere, FindingCode::NotCompiled];
    let seen = |code: &FindingCode| kinds.iter().filter_map(|kind| kind.finding).any(|(found, _)| found == code.as_str());
    let unseen: Vec<_> = FindingCode::ALL.iter().filter(|code| !not_of_a_bundle.contains(code) && !seen(code)).collect();
    assert_eq!(unseen, Vec::<&FindingCode>::new(), "no kind of bad bundle has these");
    let mut decisions = 0;
    for round in 0..rounds {
        // What is refused after what differs from round to round.
        let (later, first) = kinds.split_at(kinds.len() * round / rounds);
        decisions += refused(first.iter().chain(later)).await;
    }
    soak::report(&[("bad bundles put in place", kinds.len() * rounds), ("decisions beside bad bundles", decisions)]);
}

async fn refused(kinds: impl Iterator<Item = &Kind>) -> usize {
    without_overriding_permissions();
    let port = metrics::free_port();
    let setup = Setup::of(&kinds::good(2));
    trees::write(&local(), &setup.directory().join("local"));
    let setup = setup.set("policy.local_hooks", "'{dir}/local'").set("metrics.listen", &format!("127.0.0.1:{port}"));
    let sidecar = setup.start().await;
    let generation = sidecar.generation().await;
    let load = Load::within(&sidecar, load::PATIENT).await;
    let mut seen: Vec<v1::GenerationRefused> = Vec::new();
    for kind in kinds {
        let refused = put(&sidecar, kind, seen.last().and_then(|last| last.at)).await;
        assert_eq!(sidecar.generation().await, generation, "{}: the old generation serves on", kind.what);
        assert_told(kind, &refused, &sidecar.log());
        load.decides(DECISIONS).await;
        seen.push(refused);
    }
    let told = load.stop().await;
    assert!(told.refusals.is_empty() && told.hangs == 0, "{:?}", told.refusals);
    assert!(told.decisions.iter().all(|(_, answer)| answer.generation.as_ref() == Some(&generation)));

    let refused = metrics::value(&metrics::scrape(port).await, "tollgate_generation_changes_total{result=\"refused\"}");
    assert_eq!(refused, seen.len() as u64, "no more was refused than was bad");
    assert_eq!(history(&sidecar).await, seen);
    heals(&sidecar, &generation).await;
    let (status, setup) = sidecar.stop().await;
    assert!(status.success());
    let bundle = History::System(SystemRun::Bundle(generation.bundle.parse().unwrap()));
    let facts = journal_file::facts(&setup.journal_path(), &bundle).await;
    let recorded = facts.iter().filter_map(|stored| match &stored.fact {
        Fact::GenerationRefused(refused) => Some((refused.revision.as_str(), refused.code.as_str())),
        _ => None,
    });
    assert!(recorded.eq(seen.iter().map(|refused| (refused.revision.as_str(), refused.code.as_str()))));
    assert_unchanged(&setup, &told).await;
    told.decisions.len()
}

/// Puts a bad bundle in the place of what is there, in one step, and waits until it is refused.
async fn put(sidecar: &Sidecar, kind: &Kind, last: Option<WireTimestamp>) -> v1::GenerationRefused {
    let prepared = sidecar.setup().directory().join("prepared");
    trees::write(&kinds::good(2), &prepared);
    (kind.spoil)(&prepared);
    trees::put(&prepared, &sidecar.setup().bundle());
    let status = eventually(kind.what, async || {
        let refused = |status: &v1::GetStatusResponse| status.last_error.as_ref().is_some_and(|error| error.at != last);
        Some(sidecar.status().await).filter(refused)
    })
    .await;
    let refused = status.last_error.unwrap();
    assert_eq!((&status.desired_revision, &status.attempted_revision), (&refused.revision, &refused.revision));
    refused
}

/// The status says what and where, the log also in words.
fn assert_told(kind: &Kind, refused: &v1::GenerationRefused, log: &str) {
    let what = kind.what;
    assert_eq!(refused.code, kind.refusal, "{what}: {refused:?}");
    let mut lines = log.lines();
    if let Some((code, place)) = kind.finding {
        let found = |finding: &v1::Finding| finding.code == code && finding.path == place;
        assert!(refused.findings.iter().any(found), "{what}: {code} at {place} in {refused:?}");
        let told = |line: &str| line.contains(kind.says) && line.contains(code) && line.contains(&format!("file={place:?}"));
        assert!(lines.any(told), "{what}: {:?} in {log}", kind.says);
    } else {
        assert!(refused.findings.is_empty(), "{what}: {refused:?}");
        assert!(
            lines.any(|line| line.contains(kind.says) && line.contains(&refused.revision)),
            "{what}: {:?} in {log}",
            kind.says
        );
    }
    assert!(log.lines().any(|line| line.contains(&refused.revision) && line.contains(kind.refusal)), "{what}: {log}");
}

/// Every refusal in the history that the read door tells.
async fn history(sidecar: &Sidecar) -> Vec<v1::GenerationRefused> {
    let request = v1::ListHistoryRequest { limit: 200, ..Default::default() };
    let entries = sidecar.policy().await.list_history(request).await.unwrap().into_inner().entries;
    entries
        .into_iter()
        .filter_map(|entry| if let Some(Event::Refused(refused)) = entry.event { Some(refused) } else { None })
        .collect()
}

/// The bundle of before is confirmed when it returns, and a newer one is activated.
async fn heals(sidecar: &Sidecar, generation: &v1::GenerationRef) {
    let (bundle, prepared) = (sidecar.setup().bundle(), sidecar.setup().directory().join("prepared"));
    trees::write(&kinds::good(2), &prepared);
    trees::put(&prepared, &bundle);
    eventually("the bundle of before", async || {
        let status = sidecar.status().await;
        let active = status.active.unwrap();
        (status.desired_revision == active.revision).then(|| assert_eq!(active.generation.as_ref(), Some(generation)))
    })
    .await;
    trees::write(&kinds::good(3), &prepared);
    trees::put(&prepared, &bundle);
    let newer = eventually("a newer bundle", async || Some(sidecar.generation().await).filter(|now| now != generation)).await;
    assert_eq!(newer.number, generation.number + 1);
    let answer = sidecar.gate().await.evaluate(wire::call(&wire::run(), "desk.read", "{}")).await.unwrap();
    assert_eq!(answer.response().generation, Some(newer));
    assert!(sidecar.status().await.last_error.is_some(), "a success does not hide the last refusal");
}

/// What was told is on record, and each decision is the one that the good bundle makes.
async fn assert_unchanged(setup: &Setup, told: &Told) {
    load::verify(&setup.journal_path(), told).await.assert_nothing_lost();
    let reader = SqliteReader::open(setup.journal_path()).await.unwrap();
    let runs: HashSet<_> = told.decisions.iter().map(|(run, _)| journal_file::history(run)).collect();
    for run in &runs {
        for stored in journal_file::facts_from(&reader, run).await {
            let Fact::GovernanceEvaluated(evaluated) = &stored.fact else { continue };
            let expected = if stored.tool.unwrap().as_str() == "desk.write" { Decision::Deny } else { Decision::Allow };
            assert_eq!(evaluated.trace.decision, expected, "{evaluated:?}");
        }
    }
    reader.close().await;
}

/// A hook of the sidecar's own that concerns no call of this test.
fn local() -> trees::Tree {
    let mut tree = trees::gate();
    tree.retain(|path, _| !path.starts_with("hooks/"));
    let hook = format!("id: {}\nkind: cedar\norder: 99\nmode: forbid_only\n", kinds::LOCAL_HOOK);
    let policy = "@id(\"no-sending\")\nforbid (principal, action, resource == Tollgate::Tool::\"pay.send\");\n";
    trees::with(tree, &[("hooks/mine/hook.yaml", &hook), ("hooks/mine/mine.cedar", policy)])
}

/// Takes root's right to read everything from what this thread starts: to a sidecar, a file's mode is what it says.
/// Whoever is not root has no such right.
fn without_overriding_permissions() {
    #[cfg(target_os = "linux")]
    for right in [rustix::thread::CapabilitySet::DAC_OVERRIDE, rustix::thread::CapabilitySet::DAC_READ_SEARCH] {
        rustix::thread::remove_capability_from_bounding_set(right).ok();
    }
}

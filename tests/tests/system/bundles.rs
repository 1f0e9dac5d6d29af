//! Bundles that must not count, while clients ask; and how good ones arrive.

use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use tokio::task::JoinSet;
use tollgate_client::{Gate, v1, v1::history_entry::Event};
use tollgate_domain::{Digest, Fact, History, SystemRun};
use tollgate_tests::{
    journal_file,
    sidecar::{Setup, Sidecar, eventually},
    trees::{self, Tree, gate, with},
    wire,
};
use tonic_health::pb::health_check_response::ServingStatus;

use crate::metrics;

const CLIENTS: usize = 3;

/// Ten ways to be wrong, with the finding that tells.
fn bad() -> [(&'static str, Tree); 10] {
    let without = |path: &str| {
        let mut tree = gate();
        tree.remove(path);
        tree
    };
    let policy = |text: &str| with(gate(), &[("hooks/desk/desk.cedar", text)]);
    [
        ("TG0202", with(gate(), &[("hooks/desk/hook.yaml", "id: desk\nkind: cedar\nodrer: 0\norder: 0\n")])),
        ("TG0201", with(gate(), &[("tools.yaml", "providers: {desk: {}\n")])),
        ("TG0102", without("bundle.yaml")),
        ("TG0501", policy("@id(\"a\")\npermit (principal, action, resource)\n")),
        ("TG0504", policy("permit (principal, action, resource);\n")),
        ("TG0509", policy("@id(\"a\")\npermit (principal, action, resource) when { resource.colour == \"red\" };\n")),
        ("TG0506", policy("@id(\"a\")\n@cod(\"x\")\nforbid (principal, action, resource);\n")),
        (
            "TG0307",
            with(
                without("hooks/pay/pay.cedar"),
                &[
                    (
                        "tools.yaml",
                        "providers:\n  desk: {}\n  pay: {}\ntools:\n  desk.read: { provider: desk, external_name: read, effect: read }\n  desk.write: { provider: desk, external_name: write, effect: write }\n  pay.send: { provider: pay, external_name: send, effect: write }\n  pay.more: { provider: pay, external_name: more, effect: write }\n",
                    ),
                    ("hooks/pay/pay.cedar", gate()["hooks/pay/pay.cedar"].as_str()),
                ],
            ),
        ),
        (
            "TG0402",
            with(
                gate(),
                &[("entities.json", r#"[{"uid":{"type":"Tollgate::Agent","id":"a"},"attrs":{"tier":1},"parents":[]}]"#)],
            ),
        ),
        ("TG0208", with(gate(), &[("hooks/desk/hook.yaml", "id: hook-resolver\nkind: cedar\norder: 0\n")])),
    ]
}

/// Clients that ask until told to stop, and insist on the answers of one generation.
fn load(gates: Vec<Gate>, generation: &v1::GenerationRef, stop: &Arc<AtomicBool>) -> JoinSet<usize> {
    let mut clients = JoinSet::new();
    for gate in gates {
        let (stop, generation, run) = (Arc::clone(stop), generation.clone(), wire::run());
        clients.spawn(async move {
            let mut answers = 0;
            while !stop.load(Ordering::Relaxed) {
                for (tool, expected) in [("desk.read", v1::Decision::Allow), ("desk.write", v1::Decision::Deny)] {
                    let answer = gate.evaluate(wire::call(&run, tool, "{}")).await.unwrap();
                    assert_eq!(answer.response().decision(), expected);
                    assert_eq!(answer.response().generation.as_ref(), Some(&generation));
                    answers += 1;
                }
            }
            answers
        });
    }
    clients
}

async fn gates(sidecar: &Sidecar) -> Vec<Gate> {
    let mut gates = Vec::new();
    for _ in 0..CLIENTS {
        gates.push(sidecar.gate().await);
    }
    gates
}

#[tokio::test]
async fn p02_ten_kinds_of_bad_bundle_change_no_answer_and_are_seen_everywhere() {
    let port = metrics::free_port();
    let sidecar = Setup::new().set("metrics.listen", &format!("127.0.0.1:{port}")).start().await;
    let generation = sidecar.generation().await;
    let stop = Arc::new(AtomicBool::new(false));
    let clients = load(gates(&sidecar).await, &generation, &stop);

    let mut revisions = Vec::new();
    for (code, tree) in bad() {
        trees::write(&tree, &sidecar.setup().bundle());
        let seen = |revision: &str| revisions.iter().any(|known| known == revision);
        let status = eventually(code, async || {
            let status = sidecar.status().await;
            let error = status.last_error.clone()?;
            (!seen(&error.revision)
                && error.code == "bundle_invalid"
                && error.findings.iter().any(|finding| finding.code == code))
            .then_some(status)
        })
        .await;
        let error = status.last_error.unwrap();
        assert_eq!(status.active.unwrap().generation.unwrap(), generation, "{code}: the old generation serves on");
        assert_eq!((&status.desired_revision, &status.attempted_revision), (&error.revision, &error.revision));
        assert!(error.findings.iter().all(|finding| !finding.path.is_empty()) || code == "TG0102", "{error:?}");
        revisions.push(error.revision);
    }
    stop.store(true, Ordering::Relaxed);
    let answers: usize = clients.join_all().await.into_iter().sum();
    assert!(answers > 100, "{answers} answers");

    // A good one after all of them.
    trees::write(&with(gate(), &[("bundle.yaml", "format: tollgate/v1\nname: system\nserial: 2\n")]), &sidecar.setup().bundle());
    eventually("the good bundle", async || Some(sidecar.generation().await).filter(|now| now.number > generation.number)).await;
    assert!(sidecar.status().await.last_error.is_some(), "a success does not hide the last refusal");

    let history = sidecar.policy().await.list_history(v1::ListHistoryRequest::default()).await.unwrap().into_inner().entries;
    let refused = history.iter().filter(|entry| matches!(&entry.event, Some(Event::Refused(_)))).count();
    let log = sidecar.log();
    for revision in &revisions {
        assert!(log.contains(revision), "the log tells of {revision}");
    }
    let metrics = metrics::scrape(port).await;
    assert!(metrics.contains("tollgate_generation_changes_total{result=\"refused\"} "), "{metrics}");
    let (_, setup) = sidecar.stop().await;
    let bundles = ["system", "unnamed"].map(|name| History::System(SystemRun::Bundle(name.parse().unwrap())));
    let mut recorded = Vec::new();
    for bundle in &bundles {
        recorded.extend(journal_file::facts(&setup.journal_path(), bundle).await);
    }
    for revision in &revisions {
        let is_it = |fact: &Fact| matches!(fact, Fact::GenerationRefused(refused) if refused.revision.as_str() == revision);
        assert!(recorded.iter().any(|stored| is_it(&stored.fact)), "the journal holds the refusal of {revision}");
    }
    assert!(refused >= 8, "{refused} refusals in the history of the bundle: those that told its name");
}

#[tokio::test]
async fn p02_without_a_generation_nothing_is_approved_and_the_ports_are_open() {
    let sidecar = Setup::without_bundle().open().await;
    let error = sidecar.gate().await.evaluate(wire::call(&wire::run(), "desk.read", "{}")).await.unwrap_err();
    assert_eq!(error.reason.as_deref(), Some("NO_GENERATION"), "{error}");
    assert_eq!(sidecar.health("").await, Some(ServingStatus::NotServing));
    let status =
        eventually("a refusal", async || Some(sidecar.status().await).filter(|status| status.last_error.is_some())).await;
    assert_eq!((status.active, status.last_error.unwrap().code.as_str()), (None, "source_missing"));

    trees::write(&gate(), &sidecar.setup().bundle());
    let mut sidecar = sidecar;
    sidecar.wait_until_serving().await;
    assert_eq!(sidecar.generation().await.number, 1);
}

#[tokio::test]
async fn a_sidecar_without_a_generation_ends_as_orderly_as_any() {
    let (status, setup) = Setup::without_bundle().open().await.stop().await;
    assert_eq!(status.code(), Some(0));
    assert!(!setup.directory().join("data.sock").exists());
}

#[tokio::test]
async fn a_swapped_config_map_counts_at_once() {
    let setup = Setup::without_bundle().set("policy.settle", "1h");
    trees::publish(&gate(), &setup.bundle(), 0);
    let sidecar = setup.start().await;
    let first = sidecar.generation().await;
    let changed = with(gate(), &[("entities.json", "[ ]\n")]);
    trees::publish(&changed, &sidecar.setup().bundle(), 1);
    let second = eventually("the swap", async || Some(sidecar.generation().await).filter(|now| *now != first)).await;
    assert!(second.number > first.number);
}

#[tokio::test]
async fn a_half_copied_tree_never_counts_where_its_manifest_says_what_belongs_to_it() {
    // A minute, so that only the manifest can say that the copy is whole.
    let manifested = |tree: Tree| {
        let line = |(path, text): (&String, &String)| format!("{}  {path}\n", Digest::of(text.as_bytes()));
        let manifest: String = tree.iter().map(line).collect();
        with(tree, &[("manifest.sha256", &manifest)])
    };
    let sidecar = Setup::of(&manifested(gate())).set("policy.settle", "60s").start().await;
    let first = sidecar.generation().await;
    let second = "id: second\nkind: cedar\norder: 5\nmode: forbid_only\n";
    let guard = "@id(\"no-writing\")\n@code(\"writing_denied\")\n\
                 forbid (principal, action, resource == Tollgate::Tool::\"desk.write\");\n";
    // The rule moves from one hook to another: in between, a bundle would be valid and let the call through.
    let moved = manifested(with(
        gate(),
        &[
            ("hooks/desk/desk.cedar", "@id(\"everything\")\npermit (principal, action, resource);\n"),
            ("hooks/second/hook.yaml", second),
            ("hooks/second/second.cedar", guard),
        ],
    ));
    let (client, run) = (sidecar.gate().await, wire::run());
    for (path, text) in &moved {
        assert_eq!(sidecar.generation().await, first);
        let path = sidecar.setup().bundle().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        let answer = client.evaluate(wire::call(&run, "desk.write", "{}")).await.unwrap();
        assert_eq!(answer.response().decision(), v1::Decision::Deny);
    }
    eventually("the whole copy", async || Some(sidecar.generation().await).filter(|now| *now != first)).await;
    let answer = client.evaluate(wire::call(&run, "desk.write", "{}")).await.unwrap();
    assert_eq!(answer.response().hook_id, "second");
    let history = sidecar.policy().await.list_history(v1::ListHistoryRequest::default()).await.unwrap().into_inner().entries;
    assert_eq!(history.len(), 2, "nothing in between was tried: {history:?}");
}

#[tokio::test]
async fn p04_the_same_bundle_keeps_its_number_across_restarts_and_an_older_serial_is_not_activated() {
    let serial = |serial: u32, note: &str| {
        with(gate(), &[("bundle.yaml", &format!("format: tollgate/v1\nname: system\nserial: {serial}\n")), ("README.md", note)])
    };
    let sidecar = Setup::of(&serial(5, "five")).start().await;
    let first = sidecar.generation().await;
    let sidecar = sidecar.kill().start().await;
    assert_eq!(sidecar.generation().await, first);
    trees::write(&serial(4, "four"), &sidecar.setup().bundle());
    let error = eventually("a refusal", async || sidecar.status().await.last_error).await;
    assert_eq!(error.code, "older_than_active");
    assert_eq!(sidecar.generation().await, first);
    trees::write(&serial(6, "six"), &sidecar.setup().bundle());
    let newer = eventually("serial 6", async || Some(sidecar.generation().await).filter(|now| *now != first)).await;
    assert_eq!(newer.number, first.number + 1);
}

#[tokio::test]
async fn hooks_of_the_sidecars_own_join_every_chain_and_say_so() {
    let setup = Setup::new();
    let local = setup.directory().join("local");
    let mut tree = gate();
    tree.retain(|path, _| !path.starts_with("hooks/"));
    let tree = with(
        tree,
        &[
            ("hooks/mine/hook.yaml", "id: mine\nkind: cedar\norder: -1\nmode: forbid_only\n"),
            (
                "hooks/mine/mine.cedar",
                "@id(\"no-reading\")\n@code(\"reading_denied\")\nforbid (principal, action, resource == Tollgate::Tool::\"desk.read\");\n",
            ),
        ],
    );
    trees::write(&tree, &local);
    let sidecar = setup.set("policy.local_hooks", "'{dir}/local'").start().await;
    let run = wire::run();
    let answer = sidecar.gate().await.evaluate(wire::call(&run, "desk.read", "{}")).await.unwrap();
    assert_eq!((answer.response().hook_id.as_str(), answer.response().code.as_str()), ("mine", "reading_denied"));
    let facts = sidecar.facts(&run).await;
    let Some(v1::fact::Body::GovernanceEvaluated(evaluated)) = &facts[1].body else { panic!("{facts:?}") };
    assert_eq!(evaluated.hooks[0].source(), v1::HookSource::Local);
    assert_eq!((evaluated.hooks[0].resource_id.as_str(), evaluated.hooks[0].digest.len()), ("", 64));
}

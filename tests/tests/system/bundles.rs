//! How bundles arrive, and what serves until one has.

use std::fs;

use tollgate_client::v1;
use tollgate_domain::Digest;
use tollgate_tests::{
    sidecar::{Setup, eventually},
    trees::{self, Tree, gate, with},
    wire,
};
use tonic_health::pb::health_check_response::ServingStatus;

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

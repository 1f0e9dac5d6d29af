//! Doors and rights: which services stand behind a listener, who may connect, and for whom a caller may speak.

use std::{os::unix::fs::MetadataExt as _, process::Command};

use tollgate_client::{Gate, connect, journal, policy, v1};
use tollgate_tests::{
    journal_file::python,
    program,
    sidecar::{Setup, eventually},
    wire,
};
use tonic::Code;

/// One listener for anybody, one for one agent in one workspace of one tenant.
fn narrow() -> Setup {
    let rights = "tenants: [acme], workspaces: [desk], agents: [desk-agent]";
    Setup::new()
        .set(
            "listeners.data",
            &format!("[{{ listen: 'unix:{{dir}}/data.sock' }}, {{ listen: 'unix:{{dir}}/narrow.sock', {rights} }}]"),
        )
        .set(
            "listeners.read",
            "[{ listen: 'unix:{dir}/read.sock' }, { listen: 'unix:{dir}/narrow-read.sock', tenants: [acme], workspaces: [desk] }]",
        )
}

#[tokio::test]
async fn p12_a_listener_speaks_for_its_tenants_workspaces_and_agents_only() {
    let sidecar = narrow().start().await;
    let directory = sidecar.setup().directory().to_owned();
    let address = |name: &str| format!("unix:{}/{name}.sock", directory.display());
    let narrow = Gate::new(connect(&address("narrow")).await.unwrap());
    let (anybody, run) = (sidecar.gate().await, wire::run());
    let own = narrow.evaluate(wire::call(&run, "desk.read", "{}")).await.unwrap().response().clone();
    assert_eq!(own.decision(), v1::Decision::Allow);

    let other_tenant = v1::RunKey { tenant: "rival".to_owned(), ..wire::run() };
    let other_workspace = v1::RunKey { workspace: "vault".to_owned(), ..wire::run() };
    let mut spoofed = vec![wire::call(&other_tenant, "desk.read", "{}"), wire::call(&other_workspace, "desk.read", "{}")];
    let mut other_agent = wire::call(&run, "desk.read", "{}");
    other_agent.agent.as_mut().unwrap().id = "chief-agent".to_owned();
    spoofed.push(other_agent);
    for call in spoofed {
        let error = narrow.evaluate(call.clone()).await.unwrap_err();
        assert_eq!((error.code, error.reason.as_deref()), (Code::PermissionDenied, Some("NOT_THIS_LISTENER")), "{error}");
        let answer = crate::stream::answers_of(narrow.raw(), vec![wire::element(call.clone())]).await.pop().unwrap().answer;
        let Some(v1::evaluate_stream_response::Answer::Error(error)) = answer else { panic!("{answer:?}") };
        assert_eq!(error.reason, "NOT_THIS_LISTENER");
        // Nothing of it was judged: elsewhere the same invocation is a first one.
        assert!(!anybody.evaluate(call).await.unwrap().response().repeat);
    }

    // Outcomes and readings of others: there is nothing, for all that this listener says.
    let theirs = anybody.evaluate(wire::call(&other_tenant, "desk.read", "{}")).await.unwrap().response().clone();
    let error = narrow.complete(wire::succeeded(&other_tenant, &theirs.invocation_id)).await.unwrap_err();
    assert_eq!(error.code, Code::NotFound);
    let mut reader = journal(connect(&address("narrow-read")).await.unwrap());
    for run in [&other_tenant, &other_workspace] {
        let status = reader.list_facts(v1::ListFactsRequest { run: Some(run.clone()), ..Default::default() }).await.unwrap_err();
        let calls = reader.list_tool_calls(v1::ListToolCallsRequest { run: Some(run.clone()), ..Default::default() });
        assert_eq!((status.code(), calls.await.unwrap_err().code()), (Code::NotFound, Code::NotFound));
        let unknown = v1::RunKey { run_id: wire::fresh(), ..wire::run() };
        let absent = reader.list_facts(v1::ListFactsRequest { run: Some(unknown), ..Default::default() }).await.unwrap_err();
        assert_eq!(status.message(), absent.message(), "a run that is not there and one of others look the same");
    }
    let one = v1::GetToolCallRequest { run: Some(other_tenant), tool_call_id: theirs.tool_call_id };
    assert_eq!(reader.get_tool_call(one).await.unwrap_err().code(), Code::NotFound);
    let mine = v1::GetToolCallRequest { run: Some(run), tool_call_id: own.tool_call_id };
    assert!(reader.get_tool_call(mine).await.is_ok());
}

#[tokio::test]
async fn p12_an_agents_door_has_no_reading_services_and_the_reading_door_no_gate() {
    let sidecar = Setup::new().start().await;
    let (data, read) = (connect(&sidecar.data()).await.unwrap(), connect(&sidecar.read()).await.unwrap());
    let facts = journal(data.clone()).list_facts(v1::ListFactsRequest::default()).await.unwrap_err();
    let status = policy(data).get_status(v1::GetStatusRequest {}).await.unwrap_err();
    let gate = Gate::new(read).evaluate(wire::call(&wire::run(), "desk.read", "{}")).await.unwrap_err();
    assert_eq!([facts.code(), status.code(), gate.code], [Code::Unimplemented; 3]);
}

#[tokio::test]
async fn p12_sockets_have_the_mode_and_group_of_their_configuration_and_are_private_by_default() {
    let group = 54_321;
    let data = format!(
        "[{{ listen: 'unix:{{dir}}/data.sock' }}, {{ listen: 'unix:{{dir}}/shared.sock', mode: '0660', group: '{group}' }}]"
    );
    let setup = Setup::new().set("listeners.data", &data);
    let directory = setup.directory().to_owned();
    let sidecar = setup.start().await;
    let mode = |name: &str| std::fs::metadata(directory.join(name)).unwrap().mode() & 0o777;
    assert_eq!([mode("data.sock"), mode("read.sock"), mode("shared.sock")], [0o600, 0o600, 0o660]);
    assert_eq!(std::fs::metadata(directory.join("shared.sock")).unwrap().gid(), group);
    for name in ["state/identity.key", "state/journal.db"] {
        assert_eq!(mode(name), 0o600, "{name}");
    }
    let (_, setup) = sidecar.stop().await;
    assert!(!setup.directory().join("data.sock").exists(), "a socket is removed with its door");

    // A sidecar that was killed leaves its socket; the next takes the path over.
    let setup = setup.start().await.kill();
    assert!(setup.directory().join("data.sock").exists());
    drop(setup.start().await);
}

#[tokio::test]
async fn p12_only_peers_of_the_configured_user_ids_are_listened_to() {
    const ASK: &str = "import os, socket, sys
os.setgid(int(sys.argv[2])); os.setuid(int(sys.argv[2]))
peer = socket.socket(socket.AF_UNIX)
peer.settimeout(10)
peer.connect(sys.argv[1])
try:
    peer.sendall(b'PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n' + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0]))
    print('answered' if peer.recv(9) else 'closed')
except (BrokenPipeError, ConnectionResetError):
    print('closed')";
    if !rustix::process::geteuid().is_root() {
        assert!(std::env::var_os("CI").is_none(), "this test needs to become another user");
        return eprintln!("NOT TESTED: only root can become another user");
    }
    let data = "[{ listen: 'unix:{dir}/data.sock' }, { listen: 'unix:{dir}/peers.sock', mode: '0666', peer_uids: [12345] }]";
    let setup = Setup::new().set("listeners.data", data);
    Command::new("chmod").arg("755").arg(setup.directory()).status().unwrap();
    let sidecar = setup.start().await;
    let ask = |uid: u32| {
        let mut command = Command::new(python());
        command.args(["-c", ASK]).arg(sidecar.setup().directory().join("peers.sock")).arg(uid.to_string());
        program::run(command)
    };
    let (allowed, other, root) = (ask(12_345), ask(12_346), ask(0));
    assert_eq!([&allowed.out, &other.out, &root.out], ["answered\n", "closed\n", "closed\n"], "{allowed:?} {other:?}");
    eventually("a word in the log", async || sidecar.log().contains("refused a peer").then_some(())).await;
    assert!(!sidecar.log().contains("this configuration is lax"), "peers are checked, so that the mode is no loose key");
}

#[tokio::test]
async fn claims_reach_policy_only_through_a_listener_that_trusts_its_callers_for_them() {
    let cleared = "@id(\"everything\")\npermit (principal, action, resource);\n\n@id(\"cleared-only\")\n@code(\"clearance_required\")\n\
                   forbid (principal, action, resource == Tollgate::Tool::\"desk.read\") unless {\n  context has on_behalf_of && \
                   context.on_behalf_of has clearance && context.on_behalf_of.clearance == \"high\"\n};\n";
    let tree = tollgate_tests::trees::with(tollgate_tests::trees::gate(), &[("hooks/desk/desk.cedar", cleared)]);
    let data = "[{ listen: 'unix:{dir}/data.sock' }, { listen: 'unix:{dir}/trusted.sock', trust_claims: true }]";
    let sidecar = Setup::of(&tree).set("listeners.data", data).start().await;
    let trusted = Gate::new(connect(&format!("unix:{}/trusted.sock", sidecar.setup().directory().display())).await.unwrap());
    let run = wire::run();
    let ask = || v1::EvaluateRequest {
        principal: Some(v1::Principal { kind: "user".to_owned(), id: "ann".to_owned() }),
        claims: Some(v1::Claims {
            groups: vec!["staff".to_owned()],
            attributes_json: br#"{"clearance":"high"}"#.to_vec().into(),
            approval: None,
        }),
        ..wire::call(&run, "desk.read", "{}")
    };
    assert_eq!(trusted.evaluate(ask()).await.unwrap().response().decision(), v1::Decision::Allow);
    let untrusted = sidecar.gate().await.evaluate(ask()).await.unwrap().response().clone();
    assert_eq!((untrusted.decision(), untrusted.code.as_str()), (v1::Decision::Deny, "clearance_required"));
    let started: Vec<_> = sidecar
        .facts(&run)
        .await
        .into_iter()
        .filter_map(|fact| match fact.body {
            Some(v1::fact::Body::ToolCallStarted(started)) => Some((started.claims_trusted, started.claimed_groups)),
            _ => None,
        })
        .collect();
    assert_eq!(started, [(true, vec!["staff".to_owned()]), (false, vec!["staff".to_owned()])]);
    assert!(sidecar.log().contains("trust_claims"), "trust is announced");
}

//! What the journal, logs, metrics and errors never hold: every field of a call carries a marker of its
//! own, and every byte that was written is searched for those that must not be there.

use std::{fmt::Write as _, fs, path::Path};

use tollgate_client::{
    CallError, WireTimestamp,
    v1::{self, complete_request::Outcome},
};
use tollgate_tests::{
    sidecar::{Setup, Sidecar},
    trees::DENY_MESSAGE,
    wire,
};

use crate::metrics;

/// Argument values and names, claimed attributes, messages of denials.
const SECRET: [&str; 9] = [
    "secret-value-11ab",
    "secret-name-22cd",
    "secret-nested-33ef",
    "secret-attribute-44ba",
    "secret-attribute-name-55dc",
    "secret-broken-66fe",
    "secret-claim-77aa",
    "deny-message-3c1f",
    "192.0.2.0/secret-address-88bb",
];

/// Ids, and what an outcome keeps.
const RECORDED: [&str; 22] = [
    "mark-tenant",
    "mark-workspace",
    "mark-owner",
    "mark-run",
    "mark-agent",
    "mark-revision",
    "mark-principal",
    "mark-tool-call",
    "mark-invocation",
    "mark-group",
    "mark-approval",
    "mark-approver",
    "mark-parent-run",
    "mark-traceparent",
    "mark-message-id",
    "mark-executor",
    "mark-tool-source",
    "mark-target",
    "mark-device",
    "mark-correlation-name",
    "mark-error-type",
    "mark-error-message",
];

fn marked(tool: &str, arguments: &str) -> v1::EvaluateRequest {
    let id = wire::fresh();
    v1::EvaluateRequest {
        run: Some(v1::RunKey {
            tenant: "mark-tenant".to_owned(),
            workspace: "mark-workspace".to_owned(),
            owner_kind: v1::OwnerKind::Flow.into(),
            owner_id: "mark-owner".to_owned(),
            run_id: "mark-run".to_owned(),
        }),
        agent: Some(v1::Agent { id: "mark-agent".to_owned(), revision: "mark-revision".to_owned() }),
        tool: Some(v1::Tool { id: tool.to_owned(), ..Default::default() }),
        principal: Some(v1::Principal { kind: "user".to_owned(), id: "mark-principal".to_owned() }),
        tool_call_id: format!("mark-tool-call-{id}"),
        call_key: "mark-call-key".to_owned(),
        invocation_id: format!("mark-invocation-{id}"),
        arguments_json: arguments.as_bytes().to_vec().into(),
        claims: Some(v1::Claims {
            groups: vec!["mark-group".to_owned()],
            attributes_json: br#"{"clearance":"secret-attribute-44ba","secret-attribute-name-55dc":[1]}"#.to_vec().into(),
            approval: Some(v1::Approval {
                id: "mark-approval".to_owned(),
                approver: "mark-approver".to_owned(),
                approved_at: Some(WireTimestamp { seconds: 1_790_000_000, nanos: 0 }),
            }),
        }),
        runtime: Some(v1::Runtime {
            step_index: Some(3),
            call_index: Some(1),
            depth: 2,
            interactive: true,
            parent_run_id: "mark-parent-run".to_owned(),
            traceparent: "mark-traceparent".to_owned(),
            assistant_message_id: "mark-message-id".to_owned(),
            executor: "mark-executor".to_owned(),
            tool_source: "mark-tool-source".to_owned(),
            execution_target: "mark-target".to_owned(),
            device: "mark-device".to_owned(),
            correlation: [("mark-correlation-name".to_owned(), "mark-correlation-value".to_owned())].into(),
        }),
    }
}

/// Sends the marked calls of every kind, and answers every error text that came back.
async fn play(sidecar: &Sidecar) -> String {
    let gate = sidecar.gate().await;
    let everywhere = r#"{"secret-name-22cd":"secret-value-11ab","list":[{"secret-nested-33ef":"secret-nested-33ef"}]}"#;
    let mut texts = String::new();

    let answer = gate.evaluate(marked("desk.read", everywhere)).await.unwrap();
    assert_eq!(answer.response().decision(), v1::Decision::Allow);
    let failed = Outcome::ProviderFailed(v1::ProviderFailed {
        error_type: "mark-error-type".to_owned(),
        error_message: "mark-error-message".to_owned(),
    });
    let run = marked("", "").run.unwrap();
    gate.complete(wire::ended(&run, &answer.response().invocation_id, failed)).await.unwrap();

    let denied = gate.evaluate(marked("desk.write", everywhere)).await.unwrap();
    assert_eq!((denied.response().code.as_str(), denied.response().message.as_str()), ("writing_denied", DENY_MESSAGE));
    let derived = v1::EvaluateRequest { tool_call_id: String::new(), ..marked("desk.read", everywhere) };
    assert_eq!(gate.evaluate(derived).await.unwrap().response().decision(), v1::Decision::Allow);

    for (arguments, code) in [
        // A policy that errs on the value, and values that fit no declaration.
        (r#"{"count":9223372036854775807,"note":"secret-value-11ab"}"#, "policy_error"),
        (r#"{"count":1,"address":"192.0.2.0/secret-address-88bb"}"#, "argument_unrepresentable"),
        (r#"{"count":1,"amount":"secret-value-11ab"}"#, "argument_unrepresentable"),
        (r#"{"count":1,"secret-name-22cd":"secret-value-11ab"}"#, "argument_unrepresentable"),
        (r#"{"count":"secret-value-11ab"}"#, "argument_unrepresentable"),
    ] {
        let answer = gate.evaluate(marked("pay.send", arguments)).await.unwrap();
        assert_eq!((answer.response().decision(), answer.response().code.as_str()), (v1::Decision::Failed, code), "{arguments}");
        texts.push_str(&answer.response().message);
    }

    let arguments = [
        r#"{"secret-broken-66fe":"#,
        r#"{"secret-broken-66fe":1,"secret-broken-66fe":2}"#,
        r#"["secret-broken-66fe"]"#,
        r#"{"a":"secret-broken-66fe"} secret-broken-66fe"#,
        r#"{"a":secret-broken-66fe}"#,
        r#"{"secret-broken-66fe":"\ud800"}"#,
    ];
    for arguments in arguments {
        texts.push_str(&refused(&gate.evaluate(marked("desk.read", arguments)).await.unwrap_err()));
    }
    let mut broken = marked("desk.read", "{}");
    broken.arguments_json = b"{\"secret-broken-66fe\":\"\xff\"}".to_vec().into();
    texts.push_str(&refused(&gate.evaluate(broken).await.unwrap_err()));
    for attributes in [r#"["secret-claim-77aa"]"#, r#"{"secret-claim-77aa":"#] {
        let mut broken = marked("desk.read", "{}");
        broken.claims.as_mut().unwrap().attributes_json = attributes.as_bytes().to_vec().into();
        texts.push_str(&refused(&gate.evaluate(broken).await.unwrap_err()));
    }
    let first = marked("desk.read", r#"{"a":"secret-value-11ab"}"#);
    let reused = v1::EvaluateRequest { arguments_json: br#"{"b":"secret-value-11ab"}"#.to_vec().into(), ..first.clone() };
    drop(gate.evaluate(first).await.unwrap());
    texts.push_str(&refused(&gate.evaluate(reused).await.unwrap_err()));
    texts
}

fn refused(error: &CallError) -> String {
    assert!(error.reason.is_some(), "{error}");
    format!("{error:?}\n")
}

fn read_everything(directory: &Path, into: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            read_everything(&path, into);
        } else if path.is_file() {
            let bytes = fs::read(&path).unwrap();
            into.push((path.display().to_string(), String::from_utf8_lossy(&bytes).into_owned()));
        }
    }
}

/// A marker as it could have been written: plain, in hexadecimal, and as Rust prints bytes.
fn forms(marker: &str) -> Vec<String> {
    let hexadecimal = marker.bytes().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    });
    let listed = marker.bytes().map(|byte| byte.to_string()).collect::<Vec<_>>().join(", ");
    vec![marker.to_owned(), hexadecimal.to_uppercase(), hexadecimal, listed]
}

async fn scan(format: &str) {
    let port = metrics::free_port();
    let setup = Setup::new()
        .set("log.level", "trace")
        .set("log.format", format)
        .set("metrics.listen", &format!("127.0.0.1:{port}"))
        .set("listeners.data", "[{ listen: 'unix:{dir}/data.sock', trust_claims: true }]");
    let sidecar = setup.start().await;
    let texts = play(&sidecar).await;
    let metrics = metrics::scrape(port).await;

    let facts = sidecar.facts(&marked("", "").run.unwrap()).await;
    let mut written = vec![
        ("error texts".to_owned(), texts),
        ("metrics".to_owned(), metrics),
        ("facts as read".to_owned(), format!("{facts:?}")),
    ];
    // With its write-ahead log as it is while the sidecar lives, and everything again after its end.
    read_everything(&sidecar.setup().state(), &mut written);
    assert!(written.iter().any(|(name, _)| name.ends_with("-wal")), "the log of the database is searched");
    let (status, setup) = sidecar.stop().await;
    assert!(status.success());
    read_everything(&setup.state(), &mut written);
    let log = fs::read_to_string(setup.directory().join("log")).unwrap();
    assert!(log.contains("TRACE"), "everything is logged that can be");
    written.push(("log".to_owned(), log));

    let mut found = Vec::new();
    for form in SECRET.into_iter().flat_map(forms) {
        found.extend(written.iter().filter(|(_, text)| text.contains(&form)).map(|(name, _)| format!("{form} in {name}")));
    }
    assert!(found.is_empty(), "what must never be written was:\n{}", found.join("\n"));
    // The search does find what is there.
    for mark in RECORDED {
        let journal = written.iter().filter(|(name, _)| name.contains("journal.db"));
        assert!(journal.clone().any(|(_, text)| text.contains(mark)), "{mark} is on record");
    }
}

#[tokio::test]
async fn b19_g04_no_byte_of_an_argument_claim_or_message_is_written_with_a_log_as_text() {
    scan("text").await;
}

#[tokio::test]
async fn b19_g04_no_byte_of_an_argument_claim_or_message_is_written_with_a_log_as_json() {
    scan("json").await;
}

#[tokio::test]
async fn b20_an_outcome_keeps_no_message_where_the_configuration_says_so() {
    let sidecar = Setup::new().set("journal.keep_failure_messages", "false").start().await;
    play(&sidecar).await;
    let (_, setup) = sidecar.stop().await;
    let mut written = Vec::new();
    read_everything(&setup.state(), &mut written);
    assert!(written.iter().any(|(_, text)| text.contains("mark-error-type")));
    assert!(!written.iter().any(|(_, text)| text.contains("mark-error-message")));
}

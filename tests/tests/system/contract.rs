//! The contract over the wire: every field of every call, at its limit and beyond, present and missing.

use tollgate_client::{
    Gate, WireTimestamp,
    v1::{self, complete_request::Outcome, evaluate_stream_response::Answer},
};
use tollgate_domain::limits::{
    ARGUMENTS_MAX_BYTES, ARGUMENTS_MAX_DEPTH, CLAIMED_GROUPS_MAX_COUNT, CORRELATION_MAX_COUNT, DEPTH_MAX, ID_MAX_BYTES,
    INDEX_MAX, TRACEPARENT_MAX_BYTES,
};
use tollgate_tests::{
    sidecar::{Setup, Sidecar},
    wire,
};
use tonic::{Code, Status};
use tonic_types::StatusExt as _;

type Change = Box<dyn Fn(&mut v1::EvaluateRequest)>;

/// A call with every field filled in.
fn full() -> v1::EvaluateRequest {
    v1::EvaluateRequest {
        tool: Some(v1::Tool { id: "desk.read".to_owned(), provider_id: "desk".to_owned(), external_name: "read".to_owned() }),
        principal: Some(v1::Principal { kind: "user".to_owned(), id: "ann".to_owned() }),
        call_key: "3/1".to_owned(),
        claims: Some(v1::Claims {
            groups: vec!["staff".to_owned()],
            attributes_json: b"{}".to_vec().into(),
            approval: Some(v1::Approval {
                id: "approval-1".to_owned(),
                approver: "bob".to_owned(),
                approved_at: Some(WireTimestamp { seconds: 1, nanos: 0 }),
            }),
        }),
        runtime: Some(v1::Runtime { parent_run_id: "parent".to_owned(), ..Default::default() }),
        ..wire::call(&wire::run(), "desk.read", "{}")
    }
}

fn info(status: &Status) -> (String, String) {
    let info = status.get_details_error_info().unwrap_or_else(|| panic!("every error has an ErrorInfo: {status:?}"));
    assert_eq!(info.domain, "tollgate.dev");
    (info.reason, info.metadata.get("field").cloned().unwrap_or_default())
}

async fn is_refused(gate: &Gate, field: &str, change: &Change) {
    let mut request = full();
    change(&mut request);
    let Err(status) = gate.raw().evaluate(request).await else { panic!("{field} was accepted") };
    assert_eq!(status.code(), Code::InvalidArgument, "{field}: {status:?}");
    assert_eq!(info(&status), ("INVALID_FIELD".to_owned(), field.to_owned()), "{status:?}");
    assert!(status.message().starts_with(field), "{field}: {}", status.message());
}

async fn is_decided(gate: &Gate, field: &str, change: &Change) {
    let mut request = full();
    change(&mut request);
    let decided = gate.raw().evaluate(request).await;
    assert!(decided.is_ok(), "{field}: {decided:?}");
}

fn change(change: impl Fn(&mut v1::EvaluateRequest) + 'static) -> Change {
    Box::new(change)
}

type Setter = fn(&mut v1::EvaluateRequest, &str);

fn required() -> [(&'static str, Setter); 10] {
    [
        ("run.tenant", |call, text| text.clone_into(&mut call.run.as_mut().unwrap().tenant)),
        ("run.workspace", |call, text| text.clone_into(&mut call.run.as_mut().unwrap().workspace)),
        ("run.owner_id", |call, text| text.clone_into(&mut call.run.as_mut().unwrap().owner_id)),
        ("run.run_id", |call, text| text.clone_into(&mut call.run.as_mut().unwrap().run_id)),
        ("agent.id", |call, text| text.clone_into(&mut call.agent.as_mut().unwrap().id)),
        ("agent.revision", |call, text| text.clone_into(&mut call.agent.as_mut().unwrap().revision)),
        ("principal.kind", |call, text| text.clone_into(&mut call.principal.as_mut().unwrap().kind)),
        ("principal.id", |call, text| text.clone_into(&mut call.principal.as_mut().unwrap().id)),
        ("claims.approval.id", |call, text| text.clone_into(&mut approval(call).id)),
        ("claims.approval.approver", |call, text| text.clone_into(&mut approval(call).approver)),
    ]
}

fn approval(call: &mut v1::EvaluateRequest) -> &mut v1::Approval {
    call.claims.as_mut().unwrap().approval.as_mut().unwrap()
}

fn optional() -> [(&'static str, Setter); 10] {
    [
        ("tool_call_id", |call, text| text.clone_into(&mut call.tool_call_id)),
        ("call_key", |call, text| text.clone_into(&mut call.call_key)),
        ("invocation_id", |call, text| text.clone_into(&mut call.invocation_id)),
        ("runtime.parent_run_id", |call, text| text.clone_into(&mut runtime(call).parent_run_id)),
        ("runtime.assistant_message_id", |call, text| text.clone_into(&mut runtime(call).assistant_message_id)),
        ("runtime.executor", |call, text| text.clone_into(&mut runtime(call).executor)),
        ("runtime.tool_source", |call, text| text.clone_into(&mut runtime(call).tool_source)),
        ("runtime.execution_target", |call, text| text.clone_into(&mut runtime(call).execution_target)),
        ("runtime.device", |call, text| text.clone_into(&mut runtime(call).device)),
        ("runtime.traceparent", |call, text| text.clone_into(&mut runtime(call).traceparent)),
    ]
}

fn runtime(call: &mut v1::EvaluateRequest) -> &mut v1::Runtime {
    call.runtime.as_mut().unwrap()
}

#[tokio::test]
async fn b03_a_call_that_lacks_a_required_part_is_refused_and_leaves_no_trace() {
    let sidecar = Setup::new().start().await;
    let gate = sidecar.gate().await;
    let missing: [(&str, Change); 8] = [
        ("run", change(|call| call.run = None)),
        ("run.owner_kind", change(|call| call.run.as_mut().unwrap().owner_kind = 0)),
        ("run.owner_kind", change(|call| call.run.as_mut().unwrap().owner_kind = 99)),
        ("agent", change(|call| call.agent = None)),
        ("tool", change(|call| call.tool = None)),
        ("tool.id", change(|call| call.tool.as_mut().unwrap().id.clear())),
        ("arguments_json", change(|call| call.arguments_json.clear())),
        ("claims.approval.approved_at", change(|call| approval(call).approved_at = None)),
    ];
    for (field, change) in &missing {
        is_refused(&gate, field, change).await;
    }
    for (field, set) in required() {
        is_refused(&gate, field, &change(move |call| set(call, ""))).await;
    }
    for (field, set) in optional() {
        is_decided(&gate, field, &change(move |call| set(call, ""))).await;
    }
    // Refused calls are on no record: the run of each was its own.
    let mut request = full();
    let run = request.run.clone().unwrap();
    request.agent = None;
    assert!(gate.evaluate(request).await.is_err());
    let error =
        sidecar.journal().await.list_facts(v1::ListFactsRequest { run: Some(run), ..Default::default() }).await.unwrap_err();
    assert_eq!(error.code(), Code::NotFound);
}

#[tokio::test]
async fn p11_every_text_is_taken_at_its_limit_and_refused_beyond_it() {
    let sidecar = Setup::new().start().await;
    let gate = sidecar.gate().await;
    for (field, set) in required().into_iter().chain(optional()) {
        let limit = if field == "runtime.traceparent" { TRACEPARENT_MAX_BYTES } else { ID_MAX_BYTES };
        // Characters of two bytes: bytes are counted, not characters.
        let longest = "é".repeat(limit / 2);
        is_decided(&gate, field, &change(move |call| set(call, &longest))).await;
        let longer = "a".repeat(limit + 1);
        is_refused(&gate, field, &change(move |call| set(call, &longer))).await;
        is_refused(&gate, field, &change(move |call| set(call, "a\nb"))).await;
    }
    let tool: [(&str, Setter); 3] = [
        ("tool.id", |call, text| text.clone_into(&mut call.tool.as_mut().unwrap().id)),
        ("tool.provider_id", |call, text| text.clone_into(&mut call.tool.as_mut().unwrap().provider_id)),
        ("tool.external_name", |call, text| text.clone_into(&mut call.tool.as_mut().unwrap().external_name)),
    ];
    for (field, set) in tool {
        // An unknown tool, or a name that the catalogue does not have, is a denial: the call is well-formed.
        is_decided(&gate, field, &change(move |call| set(call, &"a".repeat(ID_MAX_BYTES)))).await;
        is_refused(&gate, field, &change(move |call| set(call, &"a".repeat(ID_MAX_BYTES + 1)))).await;
        is_refused(&gate, field, &change(move |call| set(call, "\u{7f}"))).await;
    }
    is_refused(&gate, "tool.provider_id", &change(|call| call.tool.as_mut().unwrap().provider_id = "a/b".to_owned())).await;
}

#[tokio::test]
async fn p11_every_number_and_count_is_taken_at_its_limit_and_refused_beyond_it() {
    let sidecar = Setup::new().start().await;
    let gate = sidecar.gate().await;
    let correlation = |count: usize| {
        (0..count).map(|number| (format!("name-{number}"), "value".to_owned())).collect::<std::collections::HashMap<_, _>>()
    };
    let pairs: Vec<(&str, Change, Change)> = vec![
        ("runtime.depth", change(|call| runtime(call).depth = DEPTH_MAX), change(|call| runtime(call).depth = DEPTH_MAX + 1)),
        (
            "runtime.step_index",
            change(|call| runtime(call).step_index = Some(INDEX_MAX)),
            change(|call| runtime(call).step_index = Some(INDEX_MAX + 1)),
        ),
        (
            "runtime.call_index",
            change(|call| runtime(call).call_index = Some(INDEX_MAX)),
            change(|call| runtime(call).call_index = Some(u64::MAX)),
        ),
        (
            "runtime.correlation",
            change(move |call| runtime(call).correlation = correlation(CORRELATION_MAX_COUNT)),
            change(move |call| runtime(call).correlation = correlation(CORRELATION_MAX_COUNT + 1)),
        ),
        (
            "runtime.correlation",
            change(|call| runtime(call).correlation = [("n".repeat(ID_MAX_BYTES), "v".repeat(ID_MAX_BYTES))].into()),
            change(|call| runtime(call).correlation = [("n".to_owned(), "v".repeat(ID_MAX_BYTES + 1))].into()),
        ),
        (
            "claims.groups",
            change(|call| call.claims.as_mut().unwrap().groups = vec!["g".to_owned(); CLAIMED_GROUPS_MAX_COUNT]),
            change(|call| call.claims.as_mut().unwrap().groups = vec!["g".to_owned(); CLAIMED_GROUPS_MAX_COUNT + 1]),
        ),
        (
            "claims.approval.approved_at",
            change(|call| approval(call).approved_at = Some(WireTimestamp { seconds: 253_402_300_799, nanos: 999_999_999 })),
            change(|call| approval(call).approved_at = Some(WireTimestamp { seconds: i64::MAX, nanos: 0 })),
        ),
        ("arguments_json", arguments(sized(ARGUMENTS_MAX_BYTES)), arguments(sized(ARGUMENTS_MAX_BYTES + 1))),
        ("arguments_json", arguments(nested(ARGUMENTS_MAX_DEPTH)), arguments(nested(ARGUMENTS_MAX_DEPTH + 1))),
        ("claims.attributes_json", attributes(sized(ARGUMENTS_MAX_BYTES)), attributes(sized(ARGUMENTS_MAX_BYTES + 1))),
    ];
    for (field, at_the_limit, beyond) in &pairs {
        is_decided(&gate, field, at_the_limit).await;
        is_refused(&gate, field, beyond).await;
    }
}

fn arguments(json: String) -> Change {
    change(move |call| call.arguments_json = json.clone().into_bytes().into())
}

fn attributes(json: String) -> Change {
    change(move |call| call.claims.as_mut().unwrap().attributes_json = json.clone().into_bytes().into())
}

/// An object of so many bytes.
fn sized(bytes: usize) -> String {
    format!("{{\"a\":\"{}\"}}", "x".repeat(bytes - 8))
}

/// An object so many levels deep, itself the first.
fn nested(levels: usize) -> String {
    format!("{{\"a\":{}{}}}", "[".repeat(levels - 1), "]".repeat(levels - 1))
}

#[tokio::test]
async fn p11_a_message_that_is_too_large_is_refused_whole_and_the_connection_lives_on() {
    let sidecar = Setup::new().start().await;
    let gate = sidecar.gate().await;
    let mut both = full();
    both.arguments_json = sized(ARGUMENTS_MAX_BYTES).into_bytes().into();
    both.claims.as_mut().unwrap().attributes_json = sized(ARGUMENTS_MAX_BYTES).into_bytes().into();
    assert!(gate.evaluate(both.clone()).await.is_ok(), "both at their limits fit into a message");
    both.arguments_json = vec![b' '; 3 * ARGUMENTS_MAX_BYTES].into();
    let status = gate.raw().evaluate(both).await.unwrap_err();
    assert!(matches!(status.code(), Code::OutOfRange | Code::ResourceExhausted | Code::InvalidArgument), "{status:?}");
    assert!(gate.evaluate(full()).await.is_ok());
}

#[tokio::test]
async fn p11_complete_is_checked_as_strictly() {
    let sidecar = Setup::new().start().await;
    let gate = sidecar.gate().await;
    let run = wire::run();
    let allowed = gate.evaluate(wire::call(&run, "desk.read", "{}")).await.unwrap().response().invocation_id.clone();
    let good = wire::succeeded(&run, &allowed);
    let long = "i".repeat(ID_MAX_BYTES + 1);
    let thrown = |error_type: &str| {
        Some(Outcome::ProviderFailed(v1::ProviderFailed { error_type: error_type.to_owned(), error_message: String::new() }))
    };
    for (field, request) in [
        ("run", v1::CompleteRequest { run: None, ..good.clone() }),
        ("invocation_id", v1::CompleteRequest { invocation_id: String::new(), ..good.clone() }),
        ("invocation_id", v1::CompleteRequest { invocation_id: long, ..good.clone() }),
        ("outcome", v1::CompleteRequest { outcome: None, ..good.clone() }),
        ("provider_failed.error_type", v1::CompleteRequest { outcome: thrown(""), ..good.clone() }),
    ] {
        let status = gate.raw().complete(request).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument, "{field}: {status:?}");
        assert_eq!(info(&status), ("INVALID_FIELD".to_owned(), field.to_owned()));
    }
    let status = gate.raw().complete(wire::succeeded(&run, "unknown")).await.unwrap_err();
    assert_eq!((status.code(), info(&status).0.as_str()), (Code::NotFound, "NOT_FOUND"));
    let denied = gate.evaluate(wire::call(&run, "desk.write", "{}")).await.unwrap().response().invocation_id.clone();
    let status = gate.raw().complete(wire::succeeded(&run, &denied)).await.unwrap_err();
    assert_eq!((status.code(), info(&status).0.as_str()), (Code::FailedPrecondition, "INVOCATION_NOT_ALLOWED"));

    // What an exception says may be long: it is cut, at a character, and not refused.
    let failed = Outcome::ProviderFailed(v1::ProviderFailed { error_type: "T".repeat(400), error_message: "é".repeat(2_000) });
    let completed = gate.complete(wire::ended(&run, &allowed, failed)).await.unwrap();
    let governed = completed.governed.unwrap();
    assert_eq!((governed.error_type.len(), governed.error_message.len()), (256, 1_024));
    let repeat = gate.complete(wire::succeeded(&run, &allowed)).await.unwrap();
    assert!(repeat.repeat, "the first outcome stands");
    assert_eq!(repeat.governed.unwrap().kind(), v1::OutcomeKind::Failed);
}

#[tokio::test]
async fn b10_an_invocation_that_is_sent_again_is_answered_by_the_rules_over_the_wire() {
    let sidecar = Setup::new().set("decision.validity", "300ms").start().await;
    let (gate, run) = (sidecar.gate().await, wire::run());
    let denied = wire::call(&run, "desk.write", r#"{"a":1}"#);
    let first = gate.evaluate(denied.clone()).await.unwrap().response().clone();
    let again = gate.evaluate(denied.clone()).await.unwrap().response().clone();
    assert_eq!(again, v1::EvaluateResponse { repeat: true, ..first });
    let other = v1::EvaluateRequest { arguments_json: br#"{"a":2}"#.to_vec().into(), ..denied.clone() };
    assert_eq!(refusal(&gate, other).await, "INVOCATION_REUSED");

    let allowed = wire::call(&run, "desk.read", "{}");
    let first = gate.evaluate(allowed.clone()).await.unwrap().response().clone();
    assert!(first.valid_until.is_some());
    let expired =
        tollgate_tests::sidecar::eventually("the end of its validity", async || gate.evaluate(allowed.clone()).await.err());
    assert_eq!(expired.await.reason.as_deref(), Some("DECISION_EXPIRED"));
    let unverifiable = wire::call(&run, "desk.read", "{}");
    drop(gate.evaluate(unverifiable.clone()).await.unwrap());

    let sidecar = sidecar.kill().start().await;
    let gate = sidecar.gate().await;
    assert_eq!(refusal(&gate, unverifiable).await, "INVOCATION_UNVERIFIABLE");
    let repeated = gate.evaluate(denied).await.unwrap().response().clone();
    assert_eq!((repeated.decision(), repeated.repeat, repeated.message.as_str()), (v1::Decision::Deny, true, ""));
    let other_tool = v1::EvaluateRequest { tool_call_id: first.tool_call_id, ..wire::call(&run, "desk.write", "{}") };
    assert_eq!(refusal(&gate, other_tool).await, "INVALID_FIELD");
}

async fn refusal(gate: &Gate, request: v1::EvaluateRequest) -> String {
    gate.evaluate(request).await.unwrap_err().reason.unwrap()
}

#[tokio::test]
async fn b21_b24_a_derived_tool_call_id_is_the_same_for_a_retry_and_hides_its_arguments() {
    let sidecar = Setup::new().start().await;
    let (gate, run) = (sidecar.gate().await, wire::run());
    let ask = async |arguments: &str, key: &str| {
        let call = wire::call(&run, "desk.read", arguments);
        let call = v1::EvaluateRequest { tool_call_id: String::new(), call_key: key.to_owned(), ..call };
        gate.evaluate(call).await.unwrap().response().clone()
    };
    let first = ask(r#"{"a":1,"b":9007199254740993}"#, "").await;
    let retried = ask(r#"{ "b": 9007199254740993, "a": 1 }"#, "").await;
    assert_eq!(retried.tool_call_id, first.tool_call_id, "members in another order are the same arguments");
    assert_eq!((first.attempt, retried.attempt), (1, 2));
    assert_ne!(ask(r#"{"a":1,"b":9007199254740992}"#, "").await.tool_call_id, first.tool_call_id, "integers are exact");
    assert_ne!(ask(r#"{"a":1,"b":9007199254740993}"#, "2").await.tool_call_id, first.tool_call_id);
    drop(sidecar);

    // Another sidecar has another key, and so another id for the same call.
    let sidecar: Sidecar = Setup::new().start().await;
    let call =
        v1::EvaluateRequest { tool_call_id: String::new(), ..wire::call(&run, "desk.read", r#"{"a":1,"b":9007199254740993}"#) };
    let elsewhere = sidecar.gate().await.evaluate(call).await.unwrap().response().clone();
    assert_ne!(elsewhere.tool_call_id, first.tool_call_id);
}

#[tokio::test]
async fn p11_elements_of_a_stream_are_checked_as_unary_calls_are() {
    let sidecar = Setup::new().start().await;
    let run = wire::run();
    let good = wire::call(&run, "desk.read", "{}");
    let bad = v1::EvaluateRequest { agent: None, ..wire::call(&run, "desk.read", "{}") };
    let anonymous = v1::EvaluateRequest { invocation_id: String::new(), ..wire::call(&run, "desk.read", "{}") };
    let homeless = v1::EvaluateRequest { run: None, ..wire::call(&run, "desk.read", "{}") };
    let mut negative = wire::timed_element(wire::call(&run, "desk.read", "{}"), Some(1));
    if let Some(v1::evaluate_stream_request::Element::Evaluate(evaluate)) = &mut negative.element {
        evaluate.timeout.as_mut().unwrap().seconds = -5;
        evaluate.timeout.as_mut().unwrap().nanos = 0;
    }
    let empty = v1::evaluate_stream_request::Element::Evaluate(v1::StreamEvaluate::default());
    let elements = vec![
        wire::element(bad),
        wire::element(anonymous),
        wire::element(homeless),
        negative,
        v1::EvaluateStreamRequest { element: None },
        v1::EvaluateStreamRequest { element: Some(empty) },
        wire::cancel(&run, ""),
        wire::cancel(&run, "never-sent"),
        wire::element(good.clone()),
    ];
    let answers = crate::stream::answers(&sidecar, elements).await;
    assert_eq!(answers.len(), 8, "one answer for each but the cancellation of what is not in flight");
    let mut errors = Vec::new();
    for answer in answers {
        match answer.answer.unwrap() {
            Answer::Response(response) => assert_eq!(response.invocation_id, good.invocation_id),
            Answer::Error(error) => {
                assert_eq!((error.code, error.reason.as_str()), (i32::from(Code::InvalidArgument), "INVALID_FIELD"));
                errors.push(error.message);
            }
        }
    }
    errors.sort();
    let starts = ["agent ", "cancel.invocation_id ", "element ", "evaluate.request ", "invocation_id ", "run ", "timeout "];
    assert!(errors.iter().zip(starts).all(|(error, start)| error.starts_with(start)), "{errors:?}");
}

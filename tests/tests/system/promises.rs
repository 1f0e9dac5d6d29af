//! Promises of the product that no other test names: what the contract cannot express, what a trace
//! says, and what an observer cannot change.

use std::{fs::File, process::Stdio};

use prost::Message as _;
use prost_types::FileDescriptorSet;
use tollgate_client::{Answer, Gate, connect, v1};
use tollgate_tests::{
    sidecar::{Setup, eventually},
    trees, wire,
};

fn contract() -> FileDescriptorSet {
    FileDescriptorSet::decode(tollgate_proto::FILE_DESCRIPTOR_SET).unwrap()
}

#[test]
fn b06_no_method_runs_a_tool_and_h18_no_decision_asks_for_an_approval() {
    let contract = contract();
    let ours = || contract.file.iter().filter(|file| file.package() == "tollgate.v1");
    let mut methods: Vec<_> = ours()
        .flat_map(|file| &file.service)
        .flat_map(|service| &service.method)
        .map(prost_types::MethodDescriptorProto::name)
        .collect();
    methods.sort_unstable();
    let known =
        ["Complete", "Evaluate", "EvaluateStream", "GetStatus", "GetToolCall", "ListFacts", "ListHistory", "ListToolCalls"];
    assert_eq!(methods, known, "judge, record or read; none executes");
    let decision = ours().flat_map(|file| &file.enum_type).find(|kind| kind.name() == "Decision").unwrap();
    let decisions: Vec<_> = decision.value.iter().map(prost_types::EnumValueDescriptorProto::name).collect();
    assert_eq!(
        decisions,
        ["DECISION_UNSPECIFIED", "DECISION_ALLOW", "DECISION_DENY", "DECISION_FAILED", "DECISION_MOCKED"],
        "nothing in it can request or emulate an approval"
    );
}

#[test]
fn h02_an_answer_has_no_place_for_other_arguments_nor_g23_a_fact_for_any() {
    for file in contract().file.iter().filter(|file| file.package() == "tollgate.v1") {
        for message in &file.message_type {
            let carries = message.field.iter().any(|field| field.name().contains("arguments_json"));
            assert_eq!(carries, message.name() == "EvaluateRequest", "{}", message.name());
        }
    }
}

#[tokio::test]
async fn g01_h22_three_attempts_of_one_call_are_three_decisions_and_g03_each_says_what_decided() {
    let sidecar = Setup::new().start().await;
    let gate = sidecar.gate().await;
    let run = wire::run();
    let call = v1::EvaluateRequest { tool_call_id: "the-call".to_owned(), ..wire::call(&run, "desk.write", "{}") };
    for attempt in 1..=3 {
        let answer = gate.evaluate(v1::EvaluateRequest { invocation_id: wire::fresh(), ..call.clone() }).await.unwrap();
        assert!(matches!(&answer, Answer::Refused(refused) if refused.response.attempt == attempt), "{answer:?}");
    }
    let decided: Vec<_> = sidecar.facts(&run).await.into_iter().filter_map(evaluated).collect();
    assert_eq!(decided.iter().map(|(attempt, _)| *attempt).collect::<Vec<_>>(), [1, 2, 3]);
    let generation = sidecar.generation().await;
    for (_, fact) in &decided {
        assert_eq!(fact.generation.as_ref(), Some(&generation));
        let [hook] = fact.hooks.as_slice() else { panic!("one hook was asked: {:?}", fact.hooks) };
        // G06 id and order, G07 source, G03 and G08 resource with generation and digest.
        assert_eq!((hook.hook_id.as_str(), hook.order, hook.source()), ("desk", 0, v1::HookSource::Managed));
        assert_eq!((hook.resource_id.as_str(), hook.resource_generation, hook.digest.len()), ("hooks/desk", 1, 64));
        assert_eq!((hook.verdict(), hook.code.as_str()), (v1::Verdict::Denied, "writing_denied"));
        assert_eq!(hook.determining_policies, ["no-writing"]);
    }
}

#[tokio::test]
async fn h08_a_denial_is_an_answer_and_g11_its_facts_name_the_call_and_the_attempt() {
    let sidecar = Setup::new().start().await;
    let run = wire::run();
    let call = v1::EvaluateRequest { tool_call_id: "the-call".to_owned(), ..wire::call(&run, "desk.write", "{}") };
    let answer = sidecar.gate().await.evaluate(call.clone()).await.unwrap();
    let Answer::Refused(refused) = answer else { panic!("it is denied") };
    let response = refused.response;
    assert_eq!(
        (response.decision(), response.code.as_str(), response.hook_id.as_str()),
        (v1::Decision::Deny, "writing_denied", "desk")
    );
    assert_eq!(response.message, trees::DENY_MESSAGE);
    let facts = sidecar.facts(&run).await;
    assert_eq!(facts.len(), 3);
    for fact in facts {
        assert_eq!((fact.tool_call_id.as_str(), &fact.invocation_id), ("the-call", &call.invocation_id));
    }
}

#[tokio::test]
async fn p01_h20_a_bundle_in_a_directory_serves_without_anything_else_and_can_be_inspected() {
    let sidecar = Setup::new().start().await;
    let active = sidecar.status().await.active.unwrap();
    let hooks: Vec<_> = active.hooks.iter().map(|hook| (hook.resource_id.as_str(), hook.generation, hook.digest.len())).collect();
    assert_eq!(hooks, [("hooks/desk", 1, 64), ("hooks/pay", 1, 64)]);
    assert_eq!(active.generation.unwrap().bundle, "system");
}

#[tokio::test]
async fn b26_a_trusted_approval_does_not_get_past_a_forbid() {
    let setup = Setup::new().set("listeners.data", "[{ listen: 'unix:{dir}/data.sock', trust_claims: true }]");
    let sidecar = setup.start().await;
    let approval = v1::Approval {
        id: "consent-1".to_owned(),
        approver: "the-boss".to_owned(),
        approved_at: Some(tollgate_client::WireTimestamp { seconds: 1_772_445_600, nanos: 0 }),
    };
    let claims = Some(v1::Claims { approval: Some(approval), ..Default::default() });
    let call = v1::EvaluateRequest { claims, ..wire::call(&wire::run(), "desk.write", "{}") };
    let answer = sidecar.gate().await.evaluate(call).await.unwrap();
    assert!(matches!(answer, Answer::Refused(refused) if refused.response.decision() == v1::Decision::Deny));
}

#[tokio::test]
async fn b13_h01_a_log_that_nobody_can_take_changes_no_decision() {
    let setup = Setup::new().set("log.level", "trace");
    let full = || Stdio::from(File::options().write(true).open("/dev/full").unwrap());
    let mut command = setup.command();
    let mut child = command.stdout(full()).stderr(full()).spawn().unwrap();
    let address = format!("unix:{}", setup.directory().join("data.sock").display());
    let decide = async |tool: &str| {
        let channel = connect(&address).await.ok()?;
        let answer = Gate::new(channel).evaluate(wire::call(&wire::run(), tool, "{}")).await.ok()?;
        Some(answer.response().decision())
    };
    assert_eq!(eventually("a decision", async || decide("desk.read").await).await, v1::Decision::Allow);
    assert_eq!(decide("desk.write").await, Some(v1::Decision::Deny));
    child.kill().unwrap();
    child.wait().unwrap();
}

fn evaluated(fact: v1::Fact) -> Option<(u32, v1::GovernanceEvaluated)> {
    let attempt = fact.attempt;
    if let v1::fact::Body::GovernanceEvaluated(evaluated) = fact.body? { Some((attempt, evaluated)) } else { None }
}

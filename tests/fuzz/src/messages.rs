//! Messages of callers: whatever protobuf can carry becomes a call within its limits or an error that names a
//! field, and tells nothing of any value.

mod salt;

use prost::Message;
use tollgate_domain::{
    Call, CallRecord, Fact, Reported, Started, Timestamp,
    limits::{ARGUMENTS_MAX_BYTES, CLAIMED_GROUPS_MAX_COUNT, CORRELATION_MAX_COUNT, DEPTH_MAX, INDEX_MAX},
};
use tollgate_proto::v1;
use tollgate_server::reading;
use tonic::{Code, Status};

use crate::sentinel::{self, assert_unprinted, assert_untold, assert_unwritten};

/// Checks the doors with the first byte as the choice of a message, and the others as its encoding.
pub fn check(data: &[u8]) {
    if sentinel::is_known_to(data) {
        return;
    }
    let Some((choice, message)) = data.split_first() else { return };
    match choice % 4 {
        0 => v1::EvaluateRequest::decode(message).map(evaluate),
        1 => v1::CompleteRequest::decode(message).map(complete),
        2 => v1::ListFactsRequest::decode(message).map(filter),
        _ => v1::StreamEvaluate::decode(message).map(|element| timeout(element.timeout)),
    }
    .unwrap_or_default();
}

fn evaluate(request: v1::EvaluateRequest) {
    match reading::evaluate(request.clone()) {
        Ok(call) => within_limits(&call, &request),
        Err(status) => names_a_field(&status),
    }
    let mut salted = request.clone();
    salt::every_value(&mut salted);
    if let Err(status) = reading::evaluate(salted) {
        names_a_field(&status);
    }
    let mut secret = request;
    salt::secrets(&mut secret);
    if let Ok(call) = reading::evaluate(secret) {
        keeps_no_secret(&call);
    }
}

fn within_limits(call: &Call, request: &v1::EvaluateRequest) {
    assert_eq!(call.arguments.byte_len(), request.arguments_json.len());
    assert!(call.arguments.byte_len() <= ARGUMENTS_MAX_BYTES);
    assert!(call.claims.groups.len() <= CLAIMED_GROUPS_MAX_COUNT);
    assert!(call.runtime.correlation.len() <= CORRELATION_MAX_COUNT);
    assert!(call.runtime.depth <= DEPTH_MAX);
    assert!([call.runtime.step_index, call.runtime.call_index].into_iter().flatten().all(|index| index <= INDEX_MAX));
    let run = request.run.as_ref().unwrap();
    assert_eq!(call.run.tenant.as_str(), run.tenant);
    assert_eq!(call.run.workspace.as_str(), run.workspace);
    assert_eq!(call.tool.id.as_str(), request.tool.as_ref().unwrap().id);
    assert_eq!(call.invocation.as_ref().map_or("", |id| id.as_str()), request.invocation_id);
    assert_eq!(call.principal.is_some(), request.principal.is_some());
    assert_eq!(call.claims.approval.is_some(), request.claims.as_ref().is_some_and(|claims| claims.approval.is_some()));
    record(call);
}

/// What of the call would be stored, which decodes to itself.
fn record(call: &Call) -> Vec<u8> {
    let started =
        Started { call: CallRecord::of(call, None, true), sidecar: "sidecar".parse().unwrap(), at: Timestamp::from_micros(1) };
    let fact = Fact::ToolCallStarted(started);
    let written = fact.encode().unwrap();
    assert_eq!(Fact::decode(&written).unwrap(), fact);
    written
}

fn keeps_no_secret(call: &Call) {
    assert_unprinted(call);
    assert_unprinted(call.arguments.value());
    assert_unwritten(&record(call));
}

fn complete(request: v1::CompleteRequest) {
    match reading::complete(request.clone()) {
        Ok((run, invocation, reported)) => {
            assert_eq!(run.run.as_str(), request.run.as_ref().unwrap().run_id);
            assert_eq!(invocation.as_str(), request.invocation_id);
            let succeeded = matches!(request.outcome, Some(v1::complete_request::Outcome::Succeeded(_)));
            assert_eq!(matches!(reported, Reported::Succeeded { .. }), succeeded, "another outcome than the caller's");
        }
        Err(status) => names_a_field(&status),
    }
    let mut salted = request;
    salt::completion(&mut salted);
    if let Err(status) = reading::complete(salted) {
        names_a_field(&status);
    }
}

fn filter(request: v1::ListFactsRequest) {
    let Some(asked) = request.filter else { return };
    match reading::filter(Some(asked.clone())) {
        // A value that is not understood must not read as "any".
        Ok(read) => {
            assert_eq!(read.verdict.is_some(), asked.verdict != 0);
            assert_eq!(read.decision.is_some(), asked.decision != 0);
            assert_eq!(read.tool.is_some(), !asked.tool_id.is_empty());
            assert_eq!(read.hook.is_some(), !asked.hook.is_empty());
        }
        Err(status) => names_a_field(&status),
    }
}

fn timeout(asked: Option<prost_types::Duration>) {
    match (reading::timeout(asked), asked) {
        (Ok(None), None) => {}
        (Ok(Some(read)), Some(asked)) => assert_eq!(u64::try_from(asked.seconds), Ok(read.as_secs())),
        (Err(status), Some(asked)) => {
            assert!(asked.seconds < 0 || !(0..1_000_000_000).contains(&asked.nanos));
            names_a_field(&status);
        }
        (read, asked) => panic!("{asked:?} was read as {read:?}"),
    }
}

fn names_a_field(status: &Status) {
    assert_eq!(status.code(), Code::InvalidArgument);
    assert!(!status.message().is_empty());
    assert_untold(status.message());
    assert_unwritten(status.details());
    assert_unprinted(status);
}

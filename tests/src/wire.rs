//! Calls as clients send them: what matters is said, the rest is filled in with ids of their own.

use tollgate_client::v1::{self, complete_request::Outcome};
use uuid::Uuid;

/// A fresh id.
#[must_use]
pub fn fresh() -> String {
    Uuid::now_v7().to_string()
}

/// A fresh run of `desk-agent` in `acme/desk`.
#[must_use]
pub fn run() -> v1::RunKey {
    v1::RunKey {
        tenant: "acme".to_owned(),
        workspace: "desk".to_owned(),
        owner_kind: v1::OwnerKind::Run.into(),
        owner_id: "desk-agent".to_owned(),
        run_id: fresh(),
    }
}

/// A first attempt of a fresh tool call.
#[must_use]
pub fn call(run: &v1::RunKey, tool: &str, arguments: &str) -> v1::EvaluateRequest {
    v1::EvaluateRequest {
        run: Some(run.clone()),
        agent: Some(v1::Agent { id: "desk-agent".to_owned(), revision: "7".to_owned() }),
        tool: Some(v1::Tool { id: tool.to_owned(), ..Default::default() }),
        tool_call_id: fresh(),
        invocation_id: fresh(),
        arguments_json: arguments.as_bytes().to_vec().into(),
        ..Default::default()
    }
}

/// That the tool returned.
#[must_use]
pub fn succeeded(run: &v1::RunKey, invocation: &str) -> v1::CompleteRequest {
    ended(run, invocation, Outcome::Succeeded(v1::Succeeded { tool_error: false }))
}

/// How the tool ended.
#[must_use]
pub fn ended(run: &v1::RunKey, invocation: &str, outcome: Outcome) -> v1::CompleteRequest {
    v1::CompleteRequest { run: Some(run.clone()), invocation_id: invocation.to_owned(), outcome: Some(outcome) }
}

/// An element of a stream that asks.
#[must_use]
pub fn element(request: v1::EvaluateRequest) -> v1::EvaluateStreamRequest {
    timed_element(request, None)
}

/// An element of a stream that asks and waits so many milliseconds.
#[must_use]
pub fn timed_element(request: v1::EvaluateRequest, millis: Option<u32>) -> v1::EvaluateStreamRequest {
    let timeout = millis.map(|millis| tollgate_client::WireDuration {
        seconds: i64::from(millis / 1_000),
        nanos: i32::try_from(millis % 1_000).unwrap() * 1_000_000,
    });
    let evaluate = v1::StreamEvaluate { request: Some(request), timeout };
    v1::EvaluateStreamRequest { element: Some(v1::evaluate_stream_request::Element::Evaluate(evaluate)) }
}

/// An element of a stream that cancels another.
#[must_use]
pub fn cancel(run: &v1::RunKey, invocation: &str) -> v1::EvaluateStreamRequest {
    let cancel = v1::StreamCancel { run: Some(run.clone()), invocation_id: invocation.to_owned() };
    v1::EvaluateStreamRequest { element: Some(v1::evaluate_stream_request::Element::Cancel(cancel)) }
}

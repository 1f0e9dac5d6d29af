//! What a message prints: everything but the content of the call.

use tollgate_proto::v1::{
    Claims, CompleteRequest, Decision, EvaluateRequest, EvaluateResponse, EvaluateStreamRequest, Outcome, OutcomeKind,
    ProviderFailed, StreamEvaluate, complete_request, evaluate_stream_request,
};

const MARKER: &str = "marker-7f3a";

fn request() -> EvaluateRequest {
    EvaluateRequest {
        invocation_id: "inv-1".to_owned(),
        arguments_json: MARKER.into(),
        claims: Some(Claims { groups: vec!["finance".to_owned()], attributes_json: MARKER.into(), ..Claims::default() }),
        ..EvaluateRequest::default()
    }
}

#[test]
fn g04_a_printed_request_shows_ids_and_no_arguments_or_attributes() {
    let printed = format!("{:?}", request());
    assert!(printed.contains("inv-1") && printed.contains("finance"), "{printed}");
    assert!(printed.contains("arguments_json: [11 bytes]"), "{printed}");
    assert!(!printed.contains(MARKER), "{printed}");
}

#[test]
fn g04_a_message_around_a_request_shows_no_more_than_the_request() {
    let element = evaluate_stream_request::Element::Evaluate(StreamEvaluate { request: Some(request()), timeout: None });
    let printed = format!("{:?}", EvaluateStreamRequest { element: Some(element) });
    assert!(printed.contains("inv-1") && !printed.contains(MARKER), "{printed}");
}

#[test]
fn g04_a_printed_response_names_its_decision_and_not_its_message() {
    let response = EvaluateResponse {
        decision: Decision::Deny.into(),
        code: "too_much".to_owned(),
        message: MARKER.to_owned(),
        ..EvaluateResponse::default()
    };
    let printed = format!("{response:?}");
    assert!(printed.contains("Deny") && printed.contains("too_much"), "{printed}");
    assert!(!printed.contains(MARKER), "{printed}");
}

#[test]
fn b20_a_printed_failure_shows_the_type_of_the_error_and_not_its_message() {
    let failed = ProviderFailed { error_type: "TimeoutError".to_owned(), error_message: MARKER.to_owned() };
    let outcome = complete_request::Outcome::ProviderFailed(failed);
    let reported = format!("{:?}", CompleteRequest { outcome: Some(outcome), ..CompleteRequest::default() });
    let governed = format!(
        "{:?}",
        Outcome {
            kind: OutcomeKind::Failed.into(),
            error_type: "TimeoutError".to_owned(),
            error_message: MARKER.to_owned(),
            ..Outcome::default()
        }
    );
    for printed in [reported, governed] {
        assert!(printed.contains("TimeoutError") && !printed.contains(MARKER), "{printed}");
    }
}

//! Outcomes as reported and as kept.

use tollgate_domain::{Fact, FailureKind, Outcome, Reported, Terminal, Timestamp, limits};

fn kept(error_type: &str, error_message: &str, keep: bool) -> (Option<String>, Option<String>) {
    let reported = Reported::ProviderFailed { error_type: error_type.to_owned(), error_message: error_message.to_owned() };
    match reported.into_outcome(keep) {
        Outcome::Failed { failure: FailureKind::Provider, code: None, error_type, error_message } => (error_type, error_message),
        other @ (Outcome::Succeeded { .. } | Outcome::Failed { .. } | Outcome::Cancelled { .. }) => panic!("{other:?}"),
    }
}

#[test]
fn b20_type_and_message_are_kept_unchanged_within_their_limits() {
    let (max_type, max_message) = ("t".repeat(limits::FAILURE_TYPE_MAX_BYTES), "m".repeat(limits::FAILURE_MESSAGE_MAX_BYTES));
    assert_eq!((max_type.len(), max_message.len()), (256, 1_024));
    assert_eq!(kept(&max_type, &max_message, true), (Some(max_type.clone()), Some(max_message.clone())));
    assert_eq!(kept(&(max_type.clone() + "t"), &(max_message.clone() + "m"), true), (Some(max_type), Some(max_message)));
    assert_eq!(kept("E", " spaced\n", true).1.unwrap(), " spaced\n");
}

#[test]
fn b20_they_are_cut_between_characters() {
    let straddling = "m".repeat(1_023) + "é";
    assert_eq!(kept("E", &straddling, true).1.unwrap(), "m".repeat(1_023));
    let emoji = "t".repeat(253) + "😀";
    assert_eq!(kept(&emoji, "", true).0.unwrap(), "t".repeat(253));
    assert_eq!(kept(&("t".repeat(252) + "😀"), "", true).0.unwrap().len(), 256);
}

#[test]
fn b20_an_empty_message_and_one_that_must_not_be_kept_are_absent() {
    assert_eq!(kept("E", "", true).1, None);
    assert_eq!(kept("E", "secret", false), (Some("E".to_owned()), None));
}

#[test]
fn l05_an_error_that_the_tool_answers_is_success() {
    assert_eq!(Reported::Succeeded { tool_error: true }.into_outcome(true), Outcome::Succeeded { tool_error: true });
    assert_eq!(Reported::Cancelled.into_outcome(true), Outcome::Cancelled { code: None });
}

#[test]
fn h09_the_kind_of_the_last_fact_is_that_of_the_governed_outcome() {
    let fact = |governed| {
        Terminal {
            reported: Some(Outcome::Succeeded { tool_error: false }),
            governed,
            notices: Vec::new(),
            sidecar: "sidecar-1".parse().unwrap(),
            at: Timestamp::from_micros(1),
            duration_us: 0,
        }
        .into_fact()
    };
    let failed = |failure| Outcome::Failed { failure, code: None, error_type: None, error_message: None };
    assert!(matches!(fact(Outcome::Succeeded { tool_error: true }), Fact::ToolCallCompleted(_)));
    for failure in [FailureKind::Denied, FailureKind::Hook, FailureKind::Provider] {
        assert!(matches!(fact(failed(failure)), Fact::ToolCallFailed(_)));
    }
    assert!(matches!(fact(Outcome::Cancelled { code: None }), Fact::ToolCallCancelled(_)));
}

#[test]
fn durations_never_go_below_zero_and_time_stops_at_its_end() {
    let at = Timestamp::from_micros;
    assert_eq!(at(5).micros_since(at(3)), 2);
    assert_eq!(at(3).micros_since(at(5)), 0);
    assert_eq!(at(i64::MAX).plus_micros(u64::MAX), at(i64::MAX));
    assert_eq!(at(-1).as_millis(), -1);
}

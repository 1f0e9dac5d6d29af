//! The reasons of errors, and the page that explains them: neither knows one that the other does not.

use std::collections::{BTreeMap, BTreeSet};

use tollgate_domain::{InvocationId, Unavailable, UnavailableCause};
use tollgate_engine::{CompleteError, EvaluateError, JournalProblem};
use tonic::Code;
use tonic_types::StatusExt;

use super::{ERROR_DOMAIN, Problem};
use crate::wire::inbound::InvalidField;

const PAGE: &str = include_str!("../../../../docs/reference/grpc-errors.md");
const SOURCE: &str = include_str!("../status.rs");

/// Does not compile where there is a cause or a problem that the lists below lack.
const _: fn(JournalProblem) = |problem| match problem {
    JournalProblem::Unavailable(
        UnavailableCause::Full
        | UnavailableCause::ReadOnly
        | UnavailableCause::Io
        | UnavailableCause::Corrupt
        | UnavailableCause::Overloaded
        | UnavailableCause::Closed
        | UnavailableCause::Other,
    )
    | JournalProblem::TooSlow
    | JournalProblem::DeadlinePassed => (),
};

const CAUSES: [UnavailableCause; 7] = [
    UnavailableCause::Full,
    UnavailableCause::ReadOnly,
    UnavailableCause::Io,
    UnavailableCause::Corrupt,
    UnavailableCause::Overloaded,
    UnavailableCause::Closed,
    UnavailableCause::Other,
];

#[test]
fn every_reason_is_explained_with_its_status_and_nothing_else_is() {
    let mut made: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for problem in every_problem() {
        made.entry(problem.reason.to_owned()).or_default().insert(name(problem.code));
    }
    let explained = rows("| reason |").map(|(reason, status)| (reason, status.split(" or ").map(str::to_owned).collect()));
    assert_eq!(made, explained.collect());
}

#[test]
fn no_reason_is_forgotten_above() {
    let made: BTreeSet<_> = every_problem().into_iter().map(|problem| problem.reason).collect();
    let is_reason = |text: &&str| text.len() > 3 && text.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
    let written: BTreeSet<_> = SOURCE.split('"').filter(is_reason).collect();
    assert_eq!(made, written);
}

#[test]
fn every_cause_of_the_journal_is_explained_and_nothing_else_is() {
    let made: BTreeSet<_> = journal_problems().map(|problem| problem.cause().to_owned()).collect();
    assert_eq!(made, rows("| cause |").map(|(cause, _)| cause).collect());
}

#[test]
fn a_status_carries_domain_reason_and_metadata() {
    let field = InvalidField { field: "agent.id", problem: "is required".to_owned() };
    let status = Problem::from(field).into_status();
    let info = status.get_details_error_info().unwrap();
    assert_eq!(
        (status.code(), info.domain.as_str(), info.reason.as_str()),
        (Code::InvalidArgument, ERROR_DOMAIN, "INVALID_FIELD")
    );
    assert_eq!(info.metadata.get("field").map(String::as_str), Some("agent.id"));
    assert!(PAGE.contains(ERROR_DOMAIN));
}

fn every_problem() -> Vec<Problem> {
    let invocation = || InvocationId::parse("try-1").unwrap();
    let evaluate = [
        EvaluateError::Invalid { field: "tool.id", problem: String::new() },
        EvaluateError::PermissionDenied { what: "agent" },
        EvaluateError::NoGeneration,
        EvaluateError::InvocationReused(invocation()),
        EvaluateError::DecisionExpired(invocation()),
        EvaluateError::InvocationUnverifiable(invocation()),
        EvaluateError::Cancelled,
        EvaluateError::StillInFlight(invocation()),
        EvaluateError::ShuttingDown,
        EvaluateError::Internal,
    ];
    let complete = [
        CompleteError::NotFound,
        CompleteError::NotAllowed,
        CompleteError::NoGeneration,
        CompleteError::ShuttingDown,
        CompleteError::Internal,
    ];
    let own = [
        Problem::not_found("run"),
        Problem::overloaded(1, 1),
        Problem::rate_limited(),
        InvalidField { field: "run", problem: String::new() }.into(),
        Unavailable { cause: UnavailableCause::Io, may_have_landed: false }.into(),
    ];
    let journal =
        journal_problems().flat_map(|problem| [EvaluateError::from(problem).into(), CompleteError::from(problem).into()]);
    let evaluate = evaluate.into_iter().map(Problem::from);
    evaluate.chain(complete.into_iter().map(Problem::from)).chain(own).chain(journal).collect()
}

fn journal_problems() -> impl Iterator<Item = JournalProblem> {
    let unavailable = CAUSES.into_iter().map(JournalProblem::Unavailable);
    unavailable.chain([JournalProblem::TooSlow, JournalProblem::DeadlinePassed])
}

/// The first two cells of the rows of the page's table that has this heading.
fn rows(heading: &str) -> impl Iterator<Item = (String, String)> {
    let lines = PAGE.lines().skip_while(move |line| !line.starts_with(heading)).skip(2);
    lines.take_while(|line| line.starts_with('|')).map(|line| {
        let mut cells = line.trim_start_matches('|').split('|').map(|cell| cell.trim().replace('`', ""));
        (cells.next().unwrap(), cells.next().unwrap())
    })
}

/// A status by its name in gRPC.
fn name(code: Code) -> String {
    let mut name = String::new();
    for letter in format!("{code:?}").chars() {
        if letter.is_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.push(letter.to_ascii_uppercase());
    }
    name
}

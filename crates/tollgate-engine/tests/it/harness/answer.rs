//! What a caller is told, as a line of the log.

use tollgate_domain::{Pass, Recorded, Refusal};
use tollgate_engine::{CompleteError, Completion, EvaluateError, JournalProblem};

use super::show;

/// The answer must be an ALLOW.
pub(crate) fn allowed(answer: Result<Recorded, EvaluateError>) -> Pass {
    match answer {
        Ok(Recorded::Allowed(pass)) => pass,
        other => panic!("not allowed: {other:?}"),
    }
}

/// The answer must be an ALLOW, and nobody uses it.
pub(crate) fn assert_allowed(answer: Result<Recorded, EvaluateError>) {
    drop(allowed(answer));
}

/// The answer must be a DENY or FAILED.
pub(crate) fn refused(answer: Result<Recorded, EvaluateError>) -> Refusal {
    match answer {
        Ok(Recorded::Refused(refusal)) => refusal,
        other => panic!("not refused: {other:?}"),
    }
}

pub(crate) fn evaluated(answer: &Result<Recorded, EvaluateError>) -> String {
    let recorded = match answer {
        Ok(recorded) => recorded,
        Err(error) => return format!("no decision: {}", evaluate_error(error)),
    };
    let decided = recorded.decided();
    let said = match recorded {
        Recorded::Allowed(_) => "ALLOW".to_owned(),
        Recorded::Refused(refusal) => {
            let by = refusal.hook.as_ref().map_or_else(String::new, |hook| format!(" by {hook}"));
            let code = refusal.code.as_ref().map_or_else(String::new, |code| format!(" {code}"));
            let message = refusal.message.as_ref().map_or_else(String::new, |message| format!(" '{}'", message.tell()));
            format!("{}{by}{code}{message}", show::upper(&refusal.decision))
        }
    };
    let repeat = if decided.repeat { " again" } else { "" };
    let (attempt, generation, sequence) = (decided.attempt, decided.generation.number, decided.sequence);
    format!("answer {said}{repeat}; attempt {attempt}, generation {generation}, sequence {sequence}")
}

fn evaluate_error(error: &EvaluateError) -> String {
    match error {
        EvaluateError::Invalid { field, problem } => format!("invalid {field}: {problem}"),
        EvaluateError::PermissionDenied { what } => format!("permission denied for {what}"),
        EvaluateError::NoGeneration => "no generation".to_owned(),
        EvaluateError::Journal(problem) => journal(*problem),
        EvaluateError::InvocationReused(_) => "invocation reused".to_owned(),
        EvaluateError::DecisionExpired(_) => "decision expired".to_owned(),
        EvaluateError::InvocationUnverifiable(_) => "invocation unverifiable".to_owned(),
        EvaluateError::Cancelled => "cancelled".to_owned(),
        EvaluateError::StillInFlight(_) => "still in flight".to_owned(),
        EvaluateError::ShuttingDown => "shutting down".to_owned(),
        EvaluateError::Internal => "internal".to_owned(),
    }
}

pub(crate) fn completed(answer: &Result<Completion, CompleteError>) -> String {
    match answer {
        Ok(completion) => {
            let Completion { reported, governed, repeat, sequence, .. } = completion;
            let reported = reported.as_ref().map_or_else(|| "nothing".to_owned(), show::outcome);
            let repeat = if *repeat { " again".to_owned() } else { format!("; sequence {sequence}") };
            format!("recorded {}, reported {reported}{repeat}", show::outcome(governed))
        }
        Err(CompleteError::NotFound) => "not recorded: not found".to_owned(),
        Err(CompleteError::NotAllowed) => "not recorded: was not allowed".to_owned(),
        Err(CompleteError::Journal(problem)) => format!("not recorded: {}", journal(*problem)),
        Err(CompleteError::ShuttingDown) => "not recorded: shutting down".to_owned(),
        Err(CompleteError::NoGeneration) => "not recorded: no generation".to_owned(),
        Err(CompleteError::Internal) => "not recorded: internal".to_owned(),
    }
}

fn journal(problem: JournalProblem) -> String {
    format!("journal {}", problem.cause())
}

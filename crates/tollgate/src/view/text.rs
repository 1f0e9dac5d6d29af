//! Answers, outcomes and status as people read them.

use jiff::Timestamp;
use tollgate_client::{Answer, v1};

use crate::style::{self, paint};

pub(crate) type Duration = tollgate_client::WireDuration;
type WireTimestamp = tollgate_client::WireTimestamp;

/// One decision, on a few lines.
pub(crate) fn answer_text(answer: &Answer) -> String {
    let response = answer.response();
    let mut text = String::new();
    let decision = paint_decision(response.decision());
    let why = [response.code.as_str(), &by(&response.hook_id)]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join(" ");
    let gap = if why.is_empty() { "" } else { "  " };
    line(&mut text, format_args!("{decision}{gap}{why}"));
    if !response.message.is_empty() {
        line(&mut text, format_args!("  {}", printable(&response.message)));
    }
    let generation = response.generation.clone().unwrap_or_default();
    line(&mut text, format_args!("  attempt {} of {}", response.attempt, printable(&response.tool_call_id)));
    line(&mut text, format_args!("  invocation {}", printable(&response.invocation_id)));
    line(
        &mut text,
        format_args!(
            "  decided by generation {} of {}, recorded as #{}",
            generation.number, generation.bundle, response.sequence
        ),
    );
    if let Some(until) = &response.valid_until {
        line(&mut text, format_args!("  valid until {}", time(until)));
    }
    if response.repeat {
        line(&mut text, format_args!("  {}", paint(style::DIM, "this repeats the recorded decision")));
    }
    text
}

/// One decision on one line.
pub(crate) fn decision_text(response: &v1::EvaluateResponse) -> String {
    let generation = response.generation.as_ref().map_or(0, |generation| generation.number);
    let mut text = format!("{} by generation {generation}", paint_decision(response.decision()));
    if response.attempt > 1 {
        text.push_str(", attempt ");
        text.push_str(&response.attempt.to_string());
    }
    for (before, part) in [(" · ", &response.hook_id), (": ", &response.code), (" · ", &response.message)] {
        if !part.is_empty() {
            text.push_str(before);
            text.push_str(&printable(part));
        }
    }
    text
}

/// One outcome.
pub(crate) fn completed_text(completed: &v1::CompleteResponse) -> String {
    let governed = completed.governed.clone().unwrap_or_default();
    let repeat = if completed.repeat { "  (the first outcome stands)" } else { "" };
    format!("{}{repeat}\n", outcome_text(&governed))
}

/// Which generation decides, and how its source stands.
pub(crate) fn status_text(status: &v1::GetStatusResponse) -> String {
    let mut text = String::new();
    match &status.active {
        None => {
            line(
                &mut text,
                format_args!("{}: no generation is active, so nothing is approved", paint(style::BAD, "not serving")),
            );
        }
        Some(active) => {
            let generation = active.generation.clone().unwrap_or_default();
            line(
                &mut text,
                format_args!("{} generation {} of {}", paint(style::GOOD, "active"), generation.number, generation.bundle),
            );
            line(&mut text, format_args!("  digest {}", generation.digest));
            if let Some(at) = &active.activated_at {
                line(&mut text, format_args!("  since {}", time(at)));
            }
            for hook in &active.hooks {
                line(&mut text, format_args!("  {} generation {}", hook.resource_id, hook.generation));
            }
        }
    }
    if let Some(error) = &status.last_error {
        let at = error.at.as_ref().map(time).unwrap_or_default();
        line(
            &mut text,
            format_args!("{} {} at {at}, {} findings", paint(style::WARN, "last refusal"), error.code, error.findings_count),
        );
        for finding in &error.findings {
            line(&mut text, format_args!("  {} {}:{}", finding.code, finding.path, finding.line));
        }
    }
    text
}

pub(crate) fn paint_decision(decision: v1::Decision) -> String {
    let style = match decision {
        v1::Decision::Allow => style::GOOD,
        v1::Decision::Deny | v1::Decision::Failed | v1::Decision::Unspecified => style::BAD,
        v1::Decision::Mocked => style::WARN,
    };
    paint(style, decision_name(decision))
}

pub(crate) fn decision_name(decision: v1::Decision) -> &'static str {
    decision.as_str_name().trim_start_matches("DECISION_")
}

pub(crate) fn verdict_name(verdict: v1::Verdict) -> &'static str {
    verdict.as_str_name().trim_start_matches("VERDICT_")
}

pub(crate) fn outcome_name(kind: v1::OutcomeKind) -> &'static str {
    kind.as_str_name().trim_start_matches("OUTCOME_KIND_")
}

pub(crate) fn failure_name(kind: v1::FailureKind) -> &'static str {
    match kind {
        v1::FailureKind::Unspecified => "",
        v1::FailureKind::Denied | v1::FailureKind::Hook | v1::FailureKind::Provider => {
            kind.as_str_name().trim_start_matches("FAILURE_KIND_")
        }
    }
}

pub(crate) fn outcome_text(outcome: &v1::Outcome) -> String {
    let style = match outcome.kind() {
        v1::OutcomeKind::Succeeded => style::GOOD,
        v1::OutcomeKind::Failed => style::BAD,
        v1::OutcomeKind::Cancelled | v1::OutcomeKind::Unspecified => style::WARN,
    };
    let mut text = paint(style, outcome_name(outcome.kind()));
    let failure = failure_name(outcome.failure_kind());
    let tool_error = if outcome.tool_error { "the tool answered with an error" } else { "" };
    for part in [failure, &outcome.code, &outcome.error_type, &outcome.error_message, tool_error] {
        if !part.is_empty() {
            text.push(' ');
            text.push_str(&printable(part));
        }
    }
    text
}

/// `by HOOK`, or nothing.
pub(crate) fn by(hook: &str) -> String {
    if hook.is_empty() { String::new() } else { format!("by {}", printable(hook)) }
}

/// A time in RFC 3339, UTC.
pub(crate) fn time(at: &WireTimestamp) -> String {
    Timestamp::new(at.seconds, at.nanos).map(|at| format!("{at:.6}")).unwrap_or_default()
}

/// A text of others without what would steer the terminal.
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(|character| if character.is_control() || turns_text(character) { '\u{fffd}' } else { character }).collect()
}

/// Whether a character changes the direction of the text around it, so that a line reads as it is not.
const fn turns_text(character: char) -> bool {
    matches!(character, '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn line(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    text.push_str(&arguments.to_string());
    text.push('\n');
}

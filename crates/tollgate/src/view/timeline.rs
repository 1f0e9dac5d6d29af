//! A run as a timeline: one fact after the other, and under each decision what its hooks said.

use tollgate_client::{v1, v1::fact::Body};

use super::text::{by, outcome_text, paint_decision, printable, time, verdict_name};
use crate::{
    run_path::RunPath,
    style::{self, paint},
};

/// Prints facts as they come.
pub(crate) struct Timeline {
    heading: Option<String>,
}

impl Timeline {
    pub(crate) fn new(run: &RunPath) -> Self {
        Self { heading: Some(format!("{}\n", paint(style::STRONG, format_args!("run {run}")))) }
    }

    /// The lines of one fact; before the first, the heading.
    pub(crate) fn line(&mut self, fact: &v1::Fact) -> String {
        let mut text = self.heading.take().unwrap_or_default();
        let at = fact.at.as_ref().map(time).unwrap_or_default();
        let place = paint(style::DIM, format_args!("#{:<4} {at}", fact.sequence));
        let (what, details) = match &fact.body {
            Some(Body::ToolCallStarted(started)) => (self::started(started), Vec::new()),
            Some(Body::GovernanceEvaluated(evaluated)) => self::evaluated(evaluated),
            Some(Body::ToolCallCompleted(ended) | Body::ToolCallFailed(ended) | Body::ToolCallCancelled(ended)) => {
                (self::ended(ended), ended.notices.iter().map(notice).collect())
            }
            None => ("a fact of a newer version".to_owned(), Vec::new()),
        };
        let attempt = paint(style::DIM, format_args!("{} attempt {}", short(&fact.tool_call_id), fact.attempt));
        for line in std::iter::once(format!("{place}  {what}  {attempt}")).chain(details) {
            text.push_str(&line);
            text.push('\n');
        }
        text
    }
}

fn started(started: &v1::ToolCallStarted) -> String {
    let tool = started.tool.clone().unwrap_or_default();
    let agent = started.agent.clone().unwrap_or_default();
    format!("{} {} by {}", paint(style::STRONG, "started"), printable(&tool.id), printable(&agent.id))
}

fn evaluated(evaluated: &v1::GovernanceEvaluated) -> (String, Vec<String>) {
    let generation = evaluated.generation.as_ref().map_or(0, |generation| generation.number);
    let mut what = format!("{} generation {generation}", paint_decision(evaluated.decision()));
    for part in [printable(&evaluated.code), by(&evaluated.decided_by)] {
        if !part.is_empty() {
            what.push(' ');
            what.push_str(&part);
        }
    }
    (what, evaluated.hooks.iter().map(hook).collect())
}

fn hook(hook: &v1::HookEvaluation) -> String {
    let verdict = hook.verdict();
    let style = match verdict {
        v1::Verdict::Allowed => style::GOOD,
        v1::Verdict::Denied | v1::Verdict::Failed => style::BAD,
        v1::Verdict::Abstained | v1::Verdict::Unspecified => style::WARN,
    };
    let mut text = format!("        {:>2} {} {}", hook.position, printable(&hook.hook_id), paint(style, verdict_name(verdict)));
    let policies = [("by", &hook.determining_policies), ("erred in", &hook.erroring_policies)];
    let policies =
        policies.into_iter().filter(|(_, ids)| !ids.is_empty()).map(|(word, ids)| format!("{word} {}", ids.join(", ")));
    for part in std::iter::once(hook.code.clone()).chain(policies).filter(|part| !part.is_empty()) {
        text.push(' ');
        text.push_str(&printable(&part));
    }
    if hook.enforcement() == v1::Enforcement::Shadow {
        text.push_str(&paint(style::DIM, " (shadow: does not count)"));
    }
    text
}

fn ended(ended: &v1::ToolCallEnded) -> String {
    format!("{} {}", paint(style::STRONG, "ended"), outcome_text(&ended.governed.clone().unwrap_or_default()))
}

fn notice(notice: &v1::Notice) -> String {
    let result = notice.result().as_str_name().trim_start_matches("NOTICE_RESULT_");
    format!("           notice to {} {result} {}", printable(&notice.hook_id), printable(&notice.code))
}

/// Long derived ids by their beginning.
fn short(id: &str) -> String {
    const SHOWN: usize = 16;
    let id = printable(id);
    if id.chars().count() <= SHOWN + 1 { id } else { id.chars().take(SHOWN).chain(['…']).collect() }
}

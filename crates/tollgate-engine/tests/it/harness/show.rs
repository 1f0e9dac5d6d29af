//! Facts and outcomes as a line of the log.

use tollgate_domain::{
    Enforcement, Evaluated, Fact, FailureKind, HookEvaluation, NoticeRecord, NoticeResult, Outcome, Terminal, Trace,
};

pub(crate) fn fact(fact: &Fact) -> String {
    let kind = fact.kind().as_str();
    match fact {
        Fact::ToolCallStarted(_) => kind.to_owned(),
        Fact::GovernanceEvaluated(evaluated) => format!("{kind} {}", decision(evaluated)),
        Fact::ToolCallCompleted(ended) | Fact::ToolCallFailed(ended) | Fact::ToolCallCancelled(ended) => {
            format!("{kind} {}", terminal(ended))
        }
        Fact::SidecarStarted(started) => format!("{kind} interrupted {}", started.interrupted),
        Fact::ConfigurationLoosened(loosened) => format!("{kind} {}={}", loosened.key, loosened.value),
        Fact::GenerationActivated(activated) => {
            let replaced = activated.replaced.map_or_else(String::new, |number| format!(" replaces {number}"));
            let hooks: Vec<_> = activated.hooks.iter().map(|hook| format!("{}@{}", hook.resource, hook.generation)).collect();
            let (number, revision) = (activated.generation.number, &activated.revision);
            format!("{kind} {number} revision {revision}{replaced} [{}]", hooks.join(" "))
        }
        Fact::GenerationRefused(refused) => format!("{kind} {} revision {}: {}", refused.bundle, refused.revision, refused.code),
    }
}

fn decision(evaluated: &Evaluated) -> String {
    let Trace { decision, decided_by, code, hooks } = &evaluated.trace;
    let by = decided_by.as_ref().map_or_else(String::new, |hook| format!(" by {hook}"));
    let code = code.as_ref().map_or_else(String::new, |code| format!(" {code}"));
    let hooks: Vec<_> = hooks.iter().map(entry).collect();
    format!("{}{by}{code} [{}] generation {}", upper(decision), hooks.join(", "), evaluated.generation.number)
}

fn entry(entry: &HookEvaluation) -> String {
    let code = entry.code.as_ref().map_or_else(String::new, |code| format!(" {code}"));
    let shadow = if entry.enforcement == Enforcement::Shadow { " (shadow)" } else { "" };
    format!("{} {} {}{code}{shadow}", entry.position, entry.hook, upper(&entry.verdict))
}

fn terminal(terminal: &Terminal) -> String {
    let Terminal { reported, governed, notices, .. } = terminal;
    let reported = reported.as_ref().filter(|reported| *reported != governed);
    let reported = reported.map_or_else(String::new, |reported| format!(", reported {}", outcome(reported)));
    let notices: Vec<_> = notices.iter().map(notice).collect();
    let notices = if notices.is_empty() { String::new() } else { format!(" [{}]", notices.join(", ")) };
    format!("{}{reported}{notices}", outcome(governed))
}

fn notice(record: &NoticeRecord) -> String {
    let hook = &record.hook;
    match &record.result {
        NoticeResult::Notified => format!("{hook} notified"),
        NoticeResult::NotNotified => format!("{hook} not notified"),
        NoticeResult::Failed(code) => format!("{hook} failed {code}"),
    }
}

pub(crate) fn outcome(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Succeeded { tool_error: false } => "succeeded".to_owned(),
        Outcome::Succeeded { tool_error: true } => "succeeded with a tool error".to_owned(),
        Outcome::Failed { failure, code, error_type, error_message } => {
            let whose = match failure {
                FailureKind::Denied => "denied",
                FailureKind::Hook => "hook",
                FailureKind::Provider => "provider",
            };
            let code = code.as_ref().map_or_else(String::new, |code| format!(" {code}"));
            let error = error_type.as_ref().map_or_else(String::new, |name| format!(" {name}"));
            let message = error_message.as_ref().map_or_else(String::new, |text| format!(" '{text}'"));
            format!("failed ({whose}){code}{error}{message}")
        }
        Outcome::Cancelled { code } => {
            format!("cancelled{}", code.as_ref().map_or_else(String::new, |code| format!(" {code}")))
        }
    }
}

pub(crate) fn upper(value: &impl std::fmt::Debug) -> String {
    format!("{value:?}").to_uppercase()
}

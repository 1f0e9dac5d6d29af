//! What Tollgate knows of a call, under the names that schemas may declare it by.
//!
//! `docs/reference/cedar-mapping.md` is this table for people; a test compares the two.

use std::sync::{Mutex, PoisonError};

use cedar_policy::RestrictedExpression as Value;
use tollgate_domain::{Correlation, HookInput, Timestamp};

use crate::{names, place, shape::Shape};

/// Something that a schema may declare.
pub(crate) enum Known {
    /// One fact.
    Fact(Type, Read),
    /// A record of facts; absent where the second says so.
    Group(&'static [(&'static str, Known)], fn(&HookInput<'_>) -> bool),
    /// The caller's correlation ids, by declared name.
    Correlation,
    /// The arguments.
    Input,
    /// The names of the arguments that were null.
    Nulls,
}

/// Reads a fact from a call; `None` where the call lacks it.
pub(crate) type Read = fn(&HookInput<'_>) -> Option<Value>;

/// The type that a fact has.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Type {
    Bool,
    Long,
    String,
    Datetime,
    Entity(&'static str),
}

impl Type {
    pub(crate) fn shape(self) -> Shape {
        match self {
            Self::Bool => Shape::Bool,
            Self::Long => Shape::Long,
            Self::String => Shape::String,
            Self::Datetime => Shape::Datetime,
            Self::Entity(name) => Shape::Entity(name.to_owned()),
        }
    }
}

/// What an action without arguments may declare.
pub(crate) const FACTS: &[(&str, Known)] = &[
    ("call", Known::Group(CALL, |_| true)),
    ("env", Known::Group(ENV, |_| true)),
    (
        "on_behalf_of",
        Known::Fact(Type::Entity(names::USER), |call| on_behalf_of(call).map(|id| Value::new_entity_uid(names::user(id)))),
    ),
    ("approval", Known::Group(APPROVAL, |call| call.claims.is_some_and(|claims| claims.approval.is_some()))),
    ("runtime", Known::Group(RUNTIME, |_| true)),
];

/// What an action with arguments may declare beside [`FACTS`].
pub(crate) const ARGUMENTS: &[(&str, Known)] = &[("input", Known::Input), ("nulls", Known::Nulls)];

const CALL: &[(&str, Known)] = &[
    ("id", Known::Fact(Type::String, |call| text(call.tool_call.as_str()))),
    ("invocation", Known::Fact(Type::String, |call| text(call.invocation.as_str()))),
    ("attempt", Known::Fact(Type::Long, |call| Some(Value::new_long(call.attempt.into())))),
    ("depth", Known::Fact(Type::Long, |call| Some(Value::new_long(call.call.runtime.depth.into())))),
    ("interactive", Known::Fact(Type::Bool, |call| Some(Value::new_bool(call.call.runtime.interactive)))),
    ("args_bytes", Known::Fact(Type::Long, |call| long(call.call.arguments.byte_len() as u64))),
    ("requires_approval", Known::Fact(Type::Bool, |call| Some(Value::new_bool(call.tool.attributes.requires_approval)))),
    ("agent_revision", Known::Fact(Type::String, |call| text(call.call.agent.revision.as_str()))),
    ("owner_kind", Known::Fact(Type::String, |call| text(call.call.run.owner_kind.as_str()))),
    ("owner", Known::Fact(Type::String, |call| text(call.call.run.owner.as_str()))),
    ("run", Known::Fact(Type::String, |call| text(call.call.run.run.as_str()))),
    ("parent_run", Known::Fact(Type::String, |call| call.call.runtime.parent_run.as_ref().and_then(|run| text(run.as_str())))),
    ("step_index", Known::Fact(Type::Long, |call| call.call.runtime.step_index.and_then(long))),
    ("call_index", Known::Fact(Type::Long, |call| call.call.runtime.call_index.and_then(long))),
];

const ENV: &[(&str, Known)] = &[
    (
        "tenant",
        Known::Fact(Type::Entity(names::TENANT), |call| {
            Some(Value::new_entity_uid(names::tenant(call.call.run.tenant.as_str())))
        }),
    ),
    ("workspace", Known::Fact(Type::Entity(names::WORKSPACE), |call| Some(Value::new_entity_uid(workspace(call))))),
    ("now", Known::Fact(Type::Datetime, |call| datetime(call.now))),
];

const APPROVAL: &[(&str, Known)] = &[
    ("id", Known::Fact(Type::String, |call| text(call.claims?.approval.as_ref()?.id.as_str()))),
    ("approver", Known::Fact(Type::String, |call| text(call.claims?.approval.as_ref()?.approver.as_str()))),
    ("at", Known::Fact(Type::Datetime, |call| datetime(call.claims?.approval.as_ref()?.at))),
];

const RUNTIME: &[(&str, Known)] = &[
    ("traceparent", Known::Fact(Type::String, |call| correlation(call.call.runtime.traceparent.as_ref()))),
    ("assistant_message_id", Known::Fact(Type::String, |call| correlation(call.call.runtime.assistant_message_id.as_ref()))),
    ("executor", Known::Fact(Type::String, |call| correlation(call.call.runtime.executor.as_ref()))),
    ("tool_source", Known::Fact(Type::String, |call| correlation(call.call.runtime.tool_source.as_ref()))),
    ("execution_target", Known::Fact(Type::String, |call| correlation(call.call.runtime.execution_target.as_ref()))),
    ("device", Known::Fact(Type::String, |call| correlation(call.call.runtime.device.as_ref()))),
    ("correlation", Known::Correlation),
];

/// The id of the user that the agent acts for, where it is a user.
pub(crate) fn on_behalf_of<'a>(call: &HookInput<'a>) -> Option<&'a str> {
    let principal = call.call.principal.as_ref()?;
    (principal.kind.as_str() == "user").then(|| principal.id.as_str())
}

/// The `Workspace` entity of a call.
pub(crate) fn workspace(call: &HookInput<'_>) -> cedar_policy::EntityUid {
    names::workspace(&place::workspace_entity(call.call.run.tenant.as_str(), call.call.run.workspace.as_str()))
}

/// One correlation id, as a value.
pub(crate) fn correlation(value: Option<&Correlation>) -> Option<Value> {
    value.and_then(|value| text(value.as_str()))
}

#[expect(clippy::unnecessary_wraps, reason = "the shape of a Read")]
fn text(value: &str) -> Option<Value> {
    Some(Value::new_string(value.to_owned()))
}

fn long(value: u64) -> Option<Value> {
    i64::try_from(value).ok().map(Value::new_long)
}

/// A time as a value. Made once for all calls of a millisecond, since Cedar parses the name of its own
/// extension each time.
fn datetime(at: Timestamp) -> Option<Value> {
    static LAST: Mutex<Option<(i64, Value)>> = Mutex::new(None);
    let millis = at.as_millis();
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, value)) = last.as_ref().filter(|(of, _)| *of == millis) {
        return Some(value.clone());
    }
    let value = Value::new_datetime(datetime_text(millis)?);
    *last = Some((millis, value.clone()));
    Some(value)
}

/// A time as Cedar writes it. Cedar has no constructor from a number, and no year beyond 9999.
fn datetime_text(millis: i64) -> Option<String> {
    let (days, of_day) = (millis.div_euclid(86_400_000), millis.rem_euclid(86_400_000));
    // Days since 0000-03-01, in cycles of 400 years: a year that begins in March ends with its leap day.
    let days = days + 719_468;
    let (cycle, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let march = (5 * day + 2) / 153;
    let (day, month) = (day - (153 * march + 2) / 5 + 1, if march < 10 { march + 3 } else { march - 9 });
    let year = cycle * 400 + year + i64::from(month <= 2);
    if !(0..=9_999).contains(&year) {
        return None;
    }
    let (hour, minute, second) = (of_day / 3_600_000, of_day / 60_000 % 60, of_day / 1_000 % 60);
    Some(format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z", of_day % 1_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(known: &[(&str, Known)], prefix: &str, found: &mut Vec<String>) {
        for (name, known) in known {
            found.push(format!("{prefix}{name}"));
            if let Known::Group(known, _) = known {
                paths(known, &format!("{prefix}{name}."), found);
            }
        }
    }

    #[test]
    fn the_reference_lists_every_fact_in_this_order() {
        let text = include_str!("../../../docs/reference/cedar-mapping.md");
        let table = text.split("\n## ").find(|section| section.starts_with("Context")).unwrap();
        let mut documented = Vec::new();
        for row in table.lines().filter(|line| line.starts_with("| `")) {
            for name in row.split('|').nth(1).unwrap().split(',').map(|name| name.trim().trim_matches('`')) {
                documented.push(name.strip_prefix('.').map_or_else(|| name.to_owned(), |rest| format!("runtime.{rest}")));
            }
        }
        let mut known = Vec::new();
        paths(FACTS, "", &mut known);
        paths(ARGUMENTS, "", &mut known);
        assert_eq!(documented, known);
    }

    #[test]
    fn a_time_is_the_datetime_of_its_milliseconds() {
        for (millis, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_772_366_400_123, "2026-03-01T12:00:00.123Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
            (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
        ] {
            let at = Timestamp::from_micros(millis * 1_000);
            // The second time it is the one that was kept.
            assert_eq!(datetime(at), Some(Value::new_datetime(text)));
            assert_eq!(datetime(at), Some(Value::new_datetime(text)));
        }
        assert_eq!(datetime(Timestamp::from_micros(253_402_300_800_000_000)), None);
    }
}

//! Which facts a reader gets: every condition that is given holds, and those on a hook hold of one entry.

use tollgate_domain::{
    Decision, Digest, Enforcement, Evaluated, Fact, FactFilter, ManagedResource, StoredFact, Trace, VerdictKind,
    WhenNoHookMatches,
};

use crate::sample::{entry, evaluated, started};

fn stored(fact: Fact, tool: Option<&str>) -> StoredFact {
    StoredFact {
        sequence: 1,
        position: 1,
        tool_call: None,
        invocation: None,
        tool: tool.map(|tool| tool.parse().unwrap()),
        attempt: 1,
        previous: Digest::of(b"previous"),
        digest: Digest::of(b"own"),
        fact,
    }
}

/// Decided DENY by generation 3: `hook-1`, the resource `hooks/first`, allowed; `hook-2` denied.
fn decision() -> StoredFact {
    let mut first = entry(1, VerdictKind::Allowed, Enforcement::Enforce);
    first.resource = Some(ManagedResource { id: "hooks/first".parse().unwrap(), generation: 4 });
    let hooks = vec![first, entry(2, VerdictKind::Denied, Enforcement::Enforce)];
    let trace = Trace::decide(hooks, WhenNoHookMatches::Deny);
    stored(Fact::GovernanceEvaluated(Evaluated { trace, ..evaluated(VerdictKind::Denied, None) }), Some("mail.send"))
}

fn any() -> FactFilter {
    FactFilter::default()
}

fn hook(hook: &str) -> FactFilter {
    FactFilter { hook: Some(hook.to_owned()), ..any() }
}

#[test]
fn g21_a_filter_without_conditions_wants_every_fact() {
    assert!(any().matches(&decision()));
    assert!(any().matches(&stored(Fact::ToolCallStarted(started()), None)));
}

#[test]
fn g21_a_tool_is_a_condition_on_facts_of_every_kind() {
    let of = |tool: &str| FactFilter { tool: Some(tool.parse().unwrap()), ..any() };
    for fact in [decision(), stored(Fact::ToolCallStarted(started()), Some("mail.send"))] {
        assert!(of("mail.send").matches(&fact));
        assert!(!of("mail.read").matches(&fact));
    }
    assert!(!of("mail.send").matches(&stored(Fact::ToolCallStarted(started()), None)));
    assert!(!FactFilter { tool: Some("mail.read".parse().unwrap()), ..hook("hook-1") }.matches(&decision()));
}

#[test]
fn g21_each_condition_on_a_decision_holds_of_decisions_alone() {
    let wanted = [
        hook("hook-1"),
        hook("hooks/first"),
        FactFilter { verdict: Some(VerdictKind::Denied), ..any() },
        FactFilter { decision: Some(Decision::Deny), ..any() },
        FactFilter { generation: Some(3), ..any() },
    ];
    for filter in wanted {
        assert!(filter.matches(&decision()), "{filter:?}");
        assert!(!filter.matches(&stored(Fact::ToolCallStarted(started()), Some("mail.send"))), "{filter:?}");
    }
    let unwanted = [
        hook("hook-3"),
        hook("hooks/second"),
        FactFilter { verdict: Some(VerdictKind::Failed), ..any() },
        FactFilter { decision: Some(Decision::Allow), ..any() },
        FactFilter { generation: Some(2), ..any() },
    ];
    for filter in unwanted {
        assert!(!filter.matches(&decision()), "{filter:?}");
    }
}

#[test]
fn g21_two_conditions_must_both_hold() {
    let both = |decision, generation| FactFilter { decision: Some(decision), generation: Some(generation), ..any() };
    assert!(both(Decision::Deny, 3).matches(&decision()));
    assert!(!both(Decision::Deny, 2).matches(&decision()));
    assert!(!both(Decision::Allow, 3).matches(&decision()));
    assert!(!FactFilter { decision: Some(Decision::Deny), ..hook("hook-3") }.matches(&decision()));
    assert!(!FactFilter { generation: Some(2), ..hook("hook-1") }.matches(&decision()));
}

#[test]
fn g21_a_hook_and_a_verdict_hold_of_one_entry() {
    let both = |name: &str, verdict| FactFilter { verdict: Some(verdict), ..hook(name) };
    assert!(both("hook-1", VerdictKind::Allowed).matches(&decision()));
    assert!(both("hooks/first", VerdictKind::Allowed).matches(&decision()));
    assert!(both("hook-2", VerdictKind::Denied).matches(&decision()));
    assert!(!both("hook-1", VerdictKind::Denied).matches(&decision()));
    assert!(!both("hooks/first", VerdictKind::Denied).matches(&decision()));
}

//! The stages of a call: each holds what the one before knew, and what of it the journal will hold.

use std::sync::Arc;

use tollgate_domain::{
    Chains, Decision, DecisionRules, Enforcement, Fact, FailureKind, GenerationNumbers, History, IdentityKey, Judged, Judgement,
    NoticeRecord, NoticeResult, Outcome, Received, Resolution, Resolved, Source, Timestamp, VerdictKind, WhenNoHookMatches,
    codes,
};

use crate::sample::{bundle, call, entry, hook, organisation, run};

fn received(trust_claims: bool) -> Received {
    let key = IdentityKey::from_bytes(&[1; 32]).unwrap();
    let mut call = call("{}");
    call.tool_call = Some("call-1".parse().unwrap());
    call.claims.groups = vec!["staff".parse().unwrap()];
    Received::new(call, &key, || "i-1".parse().unwrap(), trust_claims, Timestamp::from_micros(1_000))
}

fn resolved(trust_claims: bool) -> Resolved {
    let chains = Chains::build(bundle(vec![hook("a", 0, organisation("a"))]), &[]).unwrap();
    let numbers = GenerationNumbers { number: 9, ..GenerationNumbers::default() };
    received(trust_claims).resolve(Arc::new(chains.number(numbers)), 4).unwrap()
}

fn judged(verdict: VerdictKind, code: Option<&str>) -> Judged {
    let mut entry = entry(1, verdict, Enforcement::Enforce);
    entry.code = code.map(|code| code.parse().unwrap());
    let judgement = Judgement { hooks: vec![entry], message: None, at: Timestamp::from_micros(3_500), duration_us: 9 };
    resolved(false).judge(judgement, &rules())
}

fn rules() -> DecisionRules {
    DecisionRules { when_no_hook_matches: WhenNoHookMatches::Deny, validity_us: 60, sidecar: "sidecar-1".parse().unwrap() }
}

fn kinds(facts: &[Fact]) -> Vec<&'static str> {
    facts.iter().map(|fact| fact.kind().as_str()).collect()
}

#[test]
fn a_stage_knows_the_call_its_ids_and_its_record() {
    let received = received(true);
    assert_eq!(received.call().tool.id.as_str(), "mail.send");
    assert_eq!((received.ids().tool_call.as_str(), received.ids().invocation.as_str()), ("call-1", "i-1"));
    assert!(received.record().claims_trusted);

    let resolved = resolved(true);
    assert_eq!(resolved.call().run, run());
    assert_eq!(resolved.ids(), received.ids());
    assert_eq!(resolved.record(), received.record());
    assert_eq!((resolved.received_at().as_micros(), resolved.attempt()), (1_000, 4));
    assert_eq!(resolved.generation().reference().number, 9);
    let Resolution::Chain { tool, hooks } = resolved.resolution() else { panic!("refused") };
    assert_eq!((tool.id.as_str(), hooks.len()), ("mail.send", 1));

    let judged = judged(VerdictKind::Allowed, None);
    assert_eq!(judged.resolved().ids(), received.ids());
    assert_eq!(judged.trace().decision, Decision::Allow);
}

/// Claims reach hooks only where the caller is trusted for them; they are on record all the same.
#[test]
fn claims_are_shown_to_hooks_only_where_they_are_trusted() {
    assert_eq!(resolved(true).trusted_claims().unwrap().groups.len(), 1);
    assert!(resolved(false).trusted_claims().is_none());
    assert_eq!(resolved(false).record().claimed_groups.len(), 1);
}

/// Before a remote hook is asked, the start stands alone; then the decision does not repeat it.
#[test]
fn p05_a_start_is_recorded_once_alone_or_with_its_decision() {
    let mut resolved = resolved(false);
    assert!(!resolved.is_started());
    let entry = resolved.start_alone(&"sidecar-1".parse().unwrap());
    assert_eq!(kinds(&entry.facts), ["ToolCallStarted"]);
    assert_eq!(entry.history, History::Run(run()));
    let key = entry.invocation.unwrap();
    assert_eq!((key.tool_call.as_str(), key.invocation.as_str(), key.tool.as_str()), ("call-1", "i-1", "mail.send"));
    assert!(resolved.is_started());

    let judgement = Judgement { hooks: Vec::new(), message: None, at: Timestamp::from_micros(2_000), duration_us: 0 };
    let judged = resolved.judge(judgement, &rules());
    assert_eq!(kinds(&judged.entry().facts), ["GovernanceEvaluated", "ToolCallFailed"]);
    assert_eq!(kinds(&self::judged(VerdictKind::Allowed, None).entry().facts), ["ToolCallStarted", "GovernanceEvaluated"]);
}

#[test]
fn h15_a_refusal_ends_as_denied_as_failed_by_a_hook_or_as_cancelled() {
    let failed = |failure, code: &str| {
        Some(Outcome::Failed { failure, code: Some(code.parse().unwrap()), error_type: None, error_message: None })
    };
    let cancelled = codes::TOOL_EXECUTION_CANCELLED.clone();
    assert_eq!(judged(VerdictKind::Allowed, None).refused_outcome(), None);
    assert_eq!(judged(VerdictKind::Denied, Some("no")).refused_outcome(), failed(FailureKind::Denied, "no"));
    assert_eq!(judged(VerdictKind::Failed, Some("broken")).refused_outcome(), failed(FailureKind::Hook, "broken"));
    let by_the_caller = judged(VerdictKind::Failed, Some(cancelled.as_str()));
    assert_eq!(by_the_caller.refused_outcome(), Some(Outcome::Cancelled { code: Some(cancelled) }));
    assert_eq!(kinds(&by_the_caller.entry().facts).last(), Some(&"ToolCallCancelled"));
}

#[test]
fn h10_the_end_of_a_refusal_holds_its_notices_and_its_duration() {
    let notice = NoticeRecord { hook: "hook-1".parse().unwrap(), source: Source::Managed, result: NoticeResult::Notified };
    let entry = judged(VerdictKind::Denied, Some("no")).noticed(vec![notice.clone()]).entry();
    let Some(Fact::ToolCallFailed(terminal)) = entry.facts.last() else { panic!("no end") };
    assert_eq!((&terminal.notices, terminal.duration_us), (&vec![notice], 2_500));
}

//! What a chain comes to: hooks only tighten, and silence never allows.

use tollgate_domain::{
    Decision, Enforcement, HookEvaluation, Source, Trace, VerdictKind, WhenNoHookMatches, codes, pseudo_hooks,
};

use crate::sample::entry;

const VERDICTS: [VerdictKind; 4] = [VerdictKind::Allowed, VerdictKind::Denied, VerdictKind::Failed, VerdictKind::Abstained];

/// Every chain of up to four hooks: 8 + 64 + 512 + 4096 of them, and the empty one.
fn every_chain() -> impl Iterator<Item = Vec<HookEvaluation>> {
    (0..=4_u32).flat_map(|hooks| {
        (0..8_usize.pow(hooks)).map(move |mut number| {
            (1..=hooks)
                .map(|position| {
                    let (verdict, shadow) = (VERDICTS[number % 4], (number / 4) % 2 == 1);
                    number /= 8;
                    entry(position, verdict, if shadow { Enforcement::Shadow } else { Enforcement::Enforce })
                })
                .collect()
        })
    })
}

fn enforced(hooks: &[HookEvaluation]) -> Vec<&HookEvaluation> {
    hooks.iter().filter(|entry| entry.enforcement == Enforcement::Enforce).collect()
}

fn refuses(entry: &HookEvaluation) -> bool {
    matches!(entry.verdict, VerdictKind::Denied | VerdictKind::Failed)
}

#[test]
fn a_chain_allows_exactly_when_an_enforced_hook_allowed_and_none_refused() {
    for hooks in every_chain() {
        let trace = Trace::decide(hooks.clone(), WhenNoHookMatches::Deny);
        let enforced = enforced(&hooks);
        let allowed = enforced.iter().any(|entry| entry.verdict == VerdictKind::Allowed);
        let refused = enforced.iter().any(|entry| refuses(entry));
        assert_eq!(trace.decision == Decision::Allow, allowed && !refused, "{hooks:?}");
        assert_eq!(trace.hooks, hooks);
    }
}

#[test]
fn the_first_enforced_refusal_decides_and_speaks() {
    for hooks in every_chain() {
        for otherwise in [WhenNoHookMatches::Deny, WhenNoHookMatches::Allow] {
            let trace = Trace::decide(hooks.clone(), otherwise);
            let Some(first) = enforced(&hooks).into_iter().find(|entry| refuses(entry)) else { continue };
            let expected = if first.verdict == VerdictKind::Denied { Decision::Deny } else { Decision::Failed };
            assert_eq!((trace.decision, trace.decided_by.as_ref(), &trace.code), (expected, Some(&first.hook), &first.code));
        }
    }
}

#[test]
fn g16_silence_is_decided_by_the_configuration_and_by_nobody() {
    for hooks in every_chain() {
        if enforced(&hooks).iter().any(|entry| entry.verdict != VerdictKind::Abstained) {
            continue;
        }
        let denied = Trace::decide(hooks.clone(), WhenNoHookMatches::Deny);
        assert_eq!((denied.decision, denied.decided_by), (Decision::Deny, None));
        assert_eq!(denied.code.as_ref(), Some(&*codes::NO_HOOK_MATCHED));
        let allowed = Trace::decide(hooks, WhenNoHookMatches::Allow);
        assert_eq!((allowed.decision, allowed.decided_by, allowed.code), (Decision::Allow, None, None));
    }
}

#[test]
fn shadow_hooks_change_no_decision() {
    for hooks in every_chain() {
        let alone: Vec<_> = enforced(&hooks).into_iter().cloned().collect();
        let (with, without) = (Trace::decide(hooks, WhenNoHookMatches::Deny), Trace::decide(alone, WhenNoHookMatches::Deny));
        assert_eq!((with.decision, with.decided_by, with.code), (without.decision, without.decided_by, without.code));
    }
}

#[test]
fn one_more_hook_that_does_not_allow_never_makes_a_chain_allow() {
    for hooks in every_chain() {
        let before = Trace::decide(hooks.clone(), WhenNoHookMatches::Deny).decision;
        for verdict in [VerdictKind::Denied, VerdictKind::Failed, VerdictKind::Abstained] {
            for place in 0..=hooks.len() {
                let mut longer = hooks.clone();
                longer.insert(place, entry(9, verdict, Enforcement::Enforce));
                let after = Trace::decide(longer, WhenNoHookMatches::Deny).decision;
                assert!(after != Decision::Allow || before == Decision::Allow);
            }
        }
    }
}

#[test]
fn h10_entered_hooks_are_the_enforced_ones_that_were_asked() {
    let mut hooks = vec![
        entry(1, VerdictKind::Allowed, Enforcement::Enforce),
        entry(2, VerdictKind::Denied, Enforcement::Shadow),
        entry(3, VerdictKind::Abstained, Enforcement::Enforce),
        entry(4, VerdictKind::Denied, Enforcement::Enforce),
    ];
    let cancelled = codes::TOOL_EXECUTION_CANCELLED.clone();
    hooks.push(HookEvaluation::pseudo(4, pseudo_hooks::HOOK_GOVERNANCE, VerdictKind::Failed, cancelled));
    assert_eq!(hooks[4].position, 5);
    assert_eq!(hooks[4].source, Source::Builtin);
    let trace = Trace::decide(hooks, WhenNoHookMatches::Deny);
    let entered: Vec<_> = trace.entered().map(|entry| entry.position).collect();
    assert_eq!(entered, [1, 3, 4]);
}

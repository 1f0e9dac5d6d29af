//! The invariants hold of what the rules make, and of nothing that differs from it.

use tollgate_domain::{
    ActivatedHook, Decision, Digest, Enforcement, Evaluated, Fact, GenerationActivated, GenerationRef, History, HookEvaluation,
    InvocationKey, ManagedResource, NoticeRecord, NoticeResult, Source, StoredFact, Timestamp, Trace, VerdictKind,
    WhenNoHookMatches, chain_digest, invariants,
};

use crate::sample::{self, entry, run, started};

const VERDICTS: [VerdictKind; 4] = [VerdictKind::Allowed, VerdictKind::Denied, VerdictKind::Failed, VerdictKind::Abstained];
const ENFORCEMENTS: [Enforcement; 2] = [Enforcement::Enforce, Enforcement::Shadow];

/// Every chain of up to three hooks that ends with its first enforced refusal.
fn every_chain() -> Vec<Vec<HookEvaluation>> {
    let mut chains = vec![Vec::new()];
    let mut longest = chains.clone();
    for position in 1..=3 {
        let mut longer = Vec::new();
        for chain in longest.into_iter().filter(|chain: &Vec<HookEvaluation>| chain.iter().all(|entry| entry.refusal().is_none()))
        {
            for verdict in VERDICTS {
                longer.extend(ENFORCEMENTS.map(|enforcement| [&chain[..], &[entry(position, verdict, enforcement)]].concat()));
            }
        }
        chains.extend(longer.iter().cloned());
        longest = longer;
    }
    chains
}

#[test]
fn a_decision_follows_from_its_chain_and_no_other_does() {
    for hooks in every_chain() {
        for silence in [WhenNoHookMatches::Deny, WhenNoHookMatches::Allow] {
            let decided = Trace::decide(hooks.clone(), silence);
            let named = hooks.iter().map(|entry| Some(entry.hook.clone())).chain([None, Some("other".parse().unwrap())]);
            for decided_by in named {
                for code in [None, decided.code.clone(), Some("other".parse().unwrap())] {
                    for decision in [Decision::Allow, Decision::Deny, Decision::Failed] {
                        let trace = Trace { decision, decided_by: decided_by.clone(), code: code.clone(), hooks: hooks.clone() };
                        assert_eq!(invariants::decision_follows(&trace, silence), trace == decided, "{silence:?}: {trace:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn hooks_were_asked_in_order_where_positions_have_no_gaps_and_places_rise() {
    let asked = |position, order, id: &str| HookEvaluation {
        order,
        hook: id.parse().unwrap(),
        digest: Some(Digest::of(b"hook")),
        ..entry(position, VerdictKind::Allowed, Enforcement::Enforce)
    };
    // A pseudo hook has no place in the order.
    let pseudo = |position| HookEvaluation { order: -9, digest: None, ..asked(position, 0, "pseudo") };
    let holds = |hooks: &[HookEvaluation]| invariants::asked_in_order(&Trace::decide(hooks.to_vec(), WhenNoHookMatches::Deny));
    assert!(holds(&[]));
    assert!(holds(&[asked(1, -1, "z"), asked(2, 0, "a"), asked(3, 0, "b"), pseudo(4)]));
    assert!(holds(&[asked(1, 0, "a"), pseudo(2), asked(3, 1, "a")]));
    for wrong in [
        vec![asked(0, 0, "a")],
        vec![asked(2, 0, "a")],
        vec![asked(1, 0, "a"), asked(3, 0, "b")],
        vec![asked(1, 0, "a"), asked(1, 0, "b")],
        vec![asked(1, 0, "b"), asked(2, 0, "a")],
        vec![asked(1, 0, "a"), asked(2, 0, "a")],
        vec![asked(1, 1, "a"), asked(2, 0, "b")],
        vec![asked(1, 0, "b"), pseudo(2), asked(3, 0, "a")],
    ] {
        assert!(!holds(&wrong), "{wrong:?}");
    }
}

#[test]
fn a_decision_is_of_one_generation_where_each_managed_hook_is_as_that_one_activated_it() {
    let resource = |id: &str, generation| ManagedResource { id: id.parse().unwrap(), generation };
    let managed = |resource, content: &[u8]| HookEvaluation {
        resource: Some(resource),
        digest: Some(Digest::of(content)),
        ..entry(1, VerdictKind::Allowed, Enforcement::Enforce)
    };
    // A hook without a resource belongs to the sidecar, whatever is activated.
    let of = |entry: HookEvaluation| {
        let own = sample::entry(2, VerdictKind::Allowed, Enforcement::Enforce);
        Evaluated {
            trace: Trace::decide(vec![entry, own], WhenNoHookMatches::Deny),
            ..sample::evaluated(VerdictKind::Allowed, Some(1))
        }
    };
    let activated = GenerationActivated {
        generation: of(managed(resource("hooks/a", 4), b"a")).generation,
        revision: "first".parse().unwrap(),
        serial: None,
        replaced: None,
        hooks: vec![ActivatedHook { resource: "hooks/a".parse().unwrap(), generation: 4, digest: Digest::of(b"a") }],
        sidecar: "sidecar-1".parse().unwrap(),
        at: Timestamp::from_micros(1),
    };
    let right = of(managed(resource("hooks/a", 4), b"a"));
    assert!(invariants::of_one_generation(&right, &activated));
    for wrong in [
        of(managed(resource("hooks/b", 4), b"a")),
        of(managed(resource("hooks/a", 5), b"a")),
        of(managed(resource("hooks/a", 4), b"b")),
        Evaluated { generation: GenerationRef { number: 9, ..right.generation.clone() }, ..right.clone() },
    ] {
        assert!(!invariants::of_one_generation(&wrong, &activated), "{wrong:?}");
    }
}

#[test]
fn notices_go_in_reverse_to_the_entered_hooks_that_asked_for_them_and_to_no_other() {
    let wants = |position, enforcement, outcome| HookEvaluation { outcome, ..entry(position, VerdictKind::Allowed, enforcement) };
    let hooks = vec![
        wants(1, Enforcement::Enforce, true),
        wants(2, Enforcement::Enforce, false),
        wants(3, Enforcement::Shadow, true),
        wants(4, Enforcement::Enforce, true),
    ];
    let trace = Trace::decide(hooks, WhenNoHookMatches::Deny);
    let notice = |number: u32, source| NoticeRecord {
        hook: format!("hook-{number}").parse().unwrap(),
        source,
        result: NoticeResult::NotNotified,
    };
    let told = |numbers: &[u32]| {
        let notices: Vec<_> = numbers.iter().map(|number| notice(*number, Source::Managed)).collect();
        invariants::told_in_reverse(&trace, &notices)
    };
    assert!(told(&[4, 1]));
    for wrong in [&[][..], &[4], &[1], &[1, 4], &[4, 2, 1], &[4, 3, 1], &[4, 1, 1]] {
        assert!(!told(wrong), "{wrong:?}");
    }
    assert!(!invariants::told_in_reverse(&trace, &[notice(4, Source::Managed), notice(1, Source::Local)]));
}

#[test]
fn a_fact_continues_its_history_by_sequence_and_by_digest() {
    let history = History::Run(run());
    let key = InvocationKey {
        tool_call: "call-1".parse().unwrap(),
        invocation: "i-1".parse().unwrap(),
        tool: "mail.send".parse().unwrap(),
    };
    let fact = |sequence, previous, key: Option<&InvocationKey>| {
        let fact = Fact::ToolCallStarted(started());
        let digest = chain_digest(&previous, sequence, 1, key, &fact.encode().unwrap());
        StoredFact {
            sequence,
            position: 40 + sequence,
            tool_call: key.map(|key| key.tool_call.clone()),
            invocation: key.map(|key| key.invocation.clone()),
            tool: key.map(|key| key.tool.clone()),
            attempt: 1,
            previous,
            digest,
            fact,
        }
    };
    let first = fact(1, history.genesis(), Some(&key));
    let second = fact(2, first.digest, Some(&key));
    assert!(invariants::continues(&history, None, &first));
    assert!(invariants::continues(&history, Some(&first), &second));
    assert!(invariants::continues(&history, None, &fact(1, history.genesis(), None)));

    let other = Digest::of(b"other");
    for wrong in [
        fact(1, first.digest, Some(&key)),
        fact(3, first.digest, Some(&key)),
        fact(2, history.genesis(), Some(&key)),
        StoredFact { digest: other, ..second.clone() },
        StoredFact { attempt: 2, ..second.clone() },
        StoredFact { tool: Some("mail.read".parse().unwrap()), ..second.clone() },
        StoredFact { tool: None, ..second.clone() },
    ] {
        assert!(!invariants::continues(&history, Some(&first), &wrong), "{wrong:?}");
    }
    assert!(!invariants::continues(&history, None, &second));
    assert!(!invariants::continues(&history, None, &fact(1, other, Some(&key))));
}

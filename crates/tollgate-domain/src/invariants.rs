//! What holds of every record, as plain functions: the product asserts them where it is built for
//! debugging, and the simulation of whatever survived.
//!
//! Each says anew, from the outside, what the code that keeps it says by construction.

use crate::{
    fact::{Evaluated, GenerationActivated},
    journal::chain_digest,
    outcome::NoticeRecord,
    read::StoredFact,
    run::History,
    trace::{Decision, Enforcement, HookEvaluation, Trace, VerdictKind, WhenNoHookMatches, codes},
};

/// The decision follows from the entries: ALLOW has no enforced refusal, and an enforced Allowed unless silence
/// allows; a refusal is that of the last entry, or of silence.
#[must_use]
pub fn decision_follows(trace: &Trace, silence: WhenNoHookMatches) -> bool {
    let enforced = || trace.hooks.iter().filter(|entry| entry.enforcement == Enforcement::Enforce);
    let said = |verdict| enforced().any(|entry| entry.verdict == verdict);
    let refused = said(VerdictKind::Denied) || said(VerdictKind::Failed);
    let silent = !refused && !said(VerdictKind::Allowed);
    let by = |verdict| {
        let last = trace.hooks.last();
        last.is_some_and(|last| {
            last.verdict == verdict && Some(&last.hook) == trace.decided_by.as_ref() && last.code == trace.code
        })
    };
    match trace.decision {
        Decision::Allow | Decision::Mocked => {
            !refused && (!silent || silence == WhenNoHookMatches::Allow) && trace.decided_by.is_none() && trace.code.is_none()
        }
        Decision::Deny if silent => {
            silence == WhenNoHookMatches::Deny
                && trace.decided_by.is_none()
                && trace.code.as_ref() == Some(&*codes::NO_HOOK_MATCHED)
        }
        Decision::Deny => by(VerdictKind::Denied),
        Decision::Failed => by(VerdictKind::Failed),
    }
}

/// The hooks were asked one after the other: positions without gaps from 1, and, pseudo hooks aside, by rising order and
/// id.
#[must_use]
pub fn asked_in_order(trace: &Trace) -> bool {
    let place = |entry: &HookEvaluation| (entry.order, entry.hook.as_str().to_owned());
    let asked = || trace.hooks.iter().filter(|entry| entry.digest.is_some());
    trace.hooks.iter().zip(1..).all(|(entry, position)| entry.position == position)
        && asked().zip(asked().skip(1)).all(|(before, after)| place(before) < place(after))
}

/// Every managed hook that was asked is, as it was activated, one of the generation that the decision names.
#[must_use]
pub fn of_one_generation(evaluated: &Evaluated, activated: &GenerationActivated) -> bool {
    let is_activated = |entry: &HookEvaluation| {
        entry.resource.as_ref().is_none_or(|resource| {
            activated.hooks.iter().any(|hook| {
                (&hook.resource, hook.generation, Some(hook.digest)) == (&resource.id, resource.generation, entry.digest)
            })
        })
    };
    evaluated.generation == activated.generation && evaluated.trace.hooks.iter().all(is_activated)
}

/// Exactly the entered hooks that wanted to be told were told, in reverse.
#[must_use]
pub fn told_in_reverse(trace: &Trace, notices: &[NoticeRecord]) -> bool {
    let wanted = trace.entered().rev().filter(|entry| entry.outcome);
    let told = notices.iter().map(|notice| (&notice.hook, notice.source));
    wanted.map(|entry| (&entry.hook, entry.source)).eq(told)
}

/// A fact continues its history: the next sequence, and the digest of the fact before it, or of nothing.
#[must_use]
pub fn continues(history: &History, before: Option<&StoredFact>, fact: &StoredFact) -> bool {
    let (sequence, previous) = before.map_or_else(|| (0, history.genesis()), |before| (before.sequence, before.digest));
    let Ok(body) = fact.fact.encode() else { return false };
    fact.sequence == sequence + 1
        && fact.previous == previous
        && fact.digest == chain_digest(&previous, fact.sequence, fact.attempt, fact.key().as_ref(), &body)
}

//! What is done to a call: the first rule in force that meets it says.

use std::{
    ffi::c_int,
    sync::atomic::{AtomicU64, Ordering::SeqCst},
};

use crate::{
    control::{RULE_WORDS, RULES, RULES_COUNT, action, rule},
    system,
};

/// What a rule makes of a call.
pub(crate) enum Verdict {
    Pass,
    Fail(c_int),
    Short,
    KillWithin,
    Lie,
}

/// Asks the rules. Delays and sudden deaths happen in here.
pub(crate) fn ask(words: &'static [AtomicU64], operation: u64, file: u64) -> Verdict {
    for number in 0..RULES_COUNT {
        let start = RULES + number * RULE_WORDS;
        let Some(rule) = words.get(start..start + RULE_WORDS).map(Rule) else { return Verdict::Pass };
        if !rule.meets(operation, file) {
            continue;
        }
        return match rule.get(rule::ACTION) {
            action::FAIL => Verdict::Fail(c_int::try_from(rule.get(rule::ARGUMENT)).unwrap_or(libc::EIO)),
            action::SHORT => Verdict::Short,
            action::STALL => {
                rule.stall();
                Verdict::Pass
            }
            action::KILL => {
                rule.stall();
                system::kill()
            }
            action::KILL_WITHIN => {
                rule.stall();
                Verdict::KillWithin
            }
            action::LIE => Verdict::Lie,
            _ => continue,
        };
    }
    Verdict::Pass
}

struct Rule(&'static [AtomicU64]);

impl Rule {
    fn get(&self, word: usize) -> u64 {
        self.0.get(word).map_or(0, |word| word.load(SeqCst))
    }

    fn count(&self, word: usize) -> u64 {
        self.0.get(word).map_or(0, |word| word.fetch_add(1, SeqCst))
    }

    fn meets(&self, operation: u64, file: u64) -> bool {
        let is_for = |word, bit: u64| self.get(word) & (1 << bit) != 0;
        if self.get(rule::ARMED) == 0 || !is_for(rule::OPERATIONS, operation) || !is_for(rule::FILES, file) {
            return false;
        }
        let seen = self.count(rule::SEEN);
        let after = self.get(rule::AFTER);
        if seen < after || !(seen - after).is_multiple_of(self.get(rule::EVERY).max(1)) {
            return false;
        }
        // Counted only where it acts, so that the count can be read as faults.
        let acted = self
            .0
            .get(rule::ACTED)
            .map(|acted| acted.fetch_update(SeqCst, SeqCst, |acted| (acted < self.get(rule::TIMES)).then_some(acted + 1)));
        matches!(acted, Some(Ok(_)))
    }

    /// Until the time is over or the rule is disarmed; armed anew it is another rule.
    fn stall(&self) {
        let (armed, mut left) = (self.get(rule::ARMED), self.get(rule::ARGUMENT));
        let for_ever = left == 0;
        while self.get(rule::ARMED) == armed && (for_ever || left > 0) {
            system::pause(1);
            left = left.saturating_sub(1);
        }
    }
}

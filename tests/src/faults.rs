//! A bad disk and a wrong clock under the real program, through the library of `tests/shim`: rules say which
//! calls fail, are cut short, wait or are the last, and can be given and taken back while the program runs.

use std::{
    fs::{self, File},
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
};

use rustix::io::Errno;

use crate::{program, sidecar::Setup};

#[path = "../shim/src/control.rs"]
pub mod control;

use control::{action, rule};
pub use control::{file, operation};

/// Every kind of file.
pub const ALL_FILES: [u64; 4] = [file::DATABASE, file::LOG, file::OTHER, file::DIRECTORY];

/// How long a process that is to die is held up first. An answer that was sent before its facts are durable reaches its
/// caller in that time, and is found out.
const DYING_MILLIS: u64 = 20;

/// What is done to a call.
#[derive(Clone, Copy, Debug)]
pub enum Act {
    /// It fails.
    Fail(Errno),
    /// Half of a write is done.
    Short,
    /// It waits until the rules are taken back.
    Stall,
    /// It waits for so many milliseconds.
    StallMillis(u32),
    /// The process dies instead.
    Kill,
    /// The process dies with half of a write done, or right after another call.
    KillWithin,
    /// A sync is not done, and said to be.
    Lie,
}

/// Which calls something is done to.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    act: Act,
    operations: u64,
    files: u64,
    after: usize,
    every: usize,
    times: Option<usize>,
}

impl Rule {
    /// All calls of some operations on any file, from now on.
    #[must_use]
    pub fn new(act: Act, operations: &[u64]) -> Self {
        Self { act, operations: bits(operations), files: bits(&ALL_FILES), after: 0, every: 1, times: None }
    }

    /// On some files only.
    #[must_use]
    pub fn on(self, files: &[u64]) -> Self {
        Self { files: bits(files), ..self }
    }

    /// Not the first so many.
    #[must_use]
    pub fn after(self, count: usize) -> Self {
        Self { after: count, ..self }
    }

    /// Every so many-th only.
    #[must_use]
    pub fn every(self, count: usize) -> Self {
        Self { every: count, ..self }
    }

    /// Only so often.
    #[must_use]
    pub fn times(self, count: usize) -> Self {
        Self { times: Some(count), ..self }
    }
}

/// The tests' hand on the shim under a sidecar. Rules outlive the sidecar, and are in force for the next.
#[derive(Debug)]
pub struct Faults {
    words: File,
    side: PathBuf,
    watched: PathBuf,
    acted: usize,
}

impl Faults {
    /// Puts the shim under the sidecars of a setup.
    #[must_use]
    pub fn under(setup: Setup) -> (Setup, Self) {
        Self::put(setup, false)
    }

    /// As [`Faults::under`], and keeps what [`crate::power`] needs to undo what was never synced.
    #[must_use]
    pub fn with_power(setup: Setup) -> (Setup, Self) {
        Self::put(setup, true)
    }

    fn put(setup: Setup, keep_undo: bool) -> (Setup, Self) {
        let (side, watched) = (setup.directory().join("faults"), setup.state());
        fs::create_dir_all(&side).unwrap();
        let path = side.join(control::CONTROL_FILE);
        let words = File::options().create(true).truncate(true).read(true).write(true).open(path).unwrap();
        words.set_len((control::WORDS * size_of::<u64>()) as u64).unwrap();
        let setup = setup
            .variable("LD_PRELOAD", program::shim().to_str().unwrap())
            .variable(control::WATCHED, watched.to_str().unwrap())
            .variable(control::SIDE, side.to_str().unwrap());
        let faults = Self { words, side, watched, acted: 0 };
        faults.set(control::KEEP_UNDO, keep_undo.into());
        (setup, faults)
    }

    /// Puts these rules in force, and no others.
    pub fn arm(&mut self, rules: &[Rule]) {
        self.heal();
        assert!(rules.len() <= control::RULES_COUNT);
        for (number, given) in rules.iter().enumerate() {
            let (act, argument) = match given.act {
                Act::Fail(error) => (action::FAIL, error.raw_os_error().unsigned_abs().into()),
                Act::Short => (action::SHORT, 0),
                Act::Stall => (action::STALL, 0),
                Act::StallMillis(millis) => (action::STALL, millis.into()),
                Act::Kill => (action::KILL, DYING_MILLIS),
                Act::KillWithin => (action::KILL_WITHIN, DYING_MILLIS),
                Act::Lie => (action::LIE, 0),
            };
            for (word, value) in [
                (rule::OPERATIONS, given.operations),
                (rule::FILES, given.files),
                (rule::ACTION, act),
                (rule::ARGUMENT, argument),
                (rule::AFTER, given.after as u64),
                (rule::EVERY, given.every as u64),
                (rule::TIMES, given.times.map_or(u64::MAX, |times| times as u64)),
                (rule::SEEN, 0),
                (rule::ACTED, 0),
                (rule::ARMED, 1),
            ] {
                self.set(word_of(number, word), value);
            }
        }
    }

    /// Takes all rules back.
    pub fn heal(&mut self) {
        for number in 0..control::RULES_COUNT {
            self.set(word_of(number, rule::ARMED), 0);
        }
        self.acted += self.acted_now();
        for number in 0..control::RULES_COUNT {
            self.set(word_of(number, rule::ACTED), 0);
        }
    }

    /// How often something was done to a call by the rules in force.
    #[must_use]
    pub fn acted_now(&self) -> usize {
        (0..control::RULES_COUNT).map(|number| self.count(word_of(number, rule::ACTED))).sum()
    }

    /// How often something was done to a call by any rule.
    #[must_use]
    pub fn acted(&self) -> usize {
        self.acted + self.acted_now()
    }

    /// Makes the wall clock wrong by so many seconds.
    pub fn set_clock(&self, seconds: i64) {
        self.set(control::CLOCK, (seconds * 1_000_000_000).cast_unsigned());
    }

    /// The directory whose files are watched.
    #[must_use]
    pub fn watched(&self) -> &Path {
        &self.watched
    }

    /// The directory with the undo log.
    #[must_use]
    pub(crate) fn side(&self) -> &Path {
        &self.side
    }

    fn set(&self, word: usize, value: u64) {
        self.words.write_all_at(&value.to_ne_bytes(), (word * size_of::<u64>()) as u64).unwrap();
    }

    fn count(&self, word: usize) -> usize {
        let mut bytes = [0; size_of::<u64>()];
        self.words.read_exact_at(&mut bytes, (word * size_of::<u64>()) as u64).unwrap();
        u64::from_ne_bytes(bytes).try_into().unwrap()
    }
}

fn word_of(number: usize, word: usize) -> usize {
    control::RULES + number * control::RULE_WORDS + word
}

fn bits(numbers: &[u64]) -> u64 {
    numbers.iter().fold(0, |bits, number| bits | 1 << number)
}

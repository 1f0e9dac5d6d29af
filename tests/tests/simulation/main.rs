//! The engine under simulation: crashes, disks that forget, hooks that hang, callers that change their minds, clocks
//! that jump and bundles that contradict each other, in any order that a seed gives.
//!
//! A world is deterministic: a seed that fails, fails again. It is written into `seeds.txt`, and runs with every run
//! of the tests from then on.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    clippy::disallowed_methods,
    reason = "tests may panic and spawn"
)]

mod caller;
mod chance;
mod hooks;
mod play;
mod record;
mod sidecar;
mod storage;
mod world;

use std::collections::BTreeMap;

use play::{Setting, play};
use tollgate_tests::soak;

/// Seeds that failed once: a setting and a number each.
const SEEDS: &str = include_str!("seeds.txt");

/// P05, P06, P07, G12, G13, B14, H15: whatever happens to a sidecar with a disk of its own.
#[test]
fn nothing_breaks_a_sidecar_on_its_own_disk() {
    seeds(Setting::Own, 12, 4_000);
}

/// P03, P04, B10: whatever happens to sidecars that share a journal.
#[test]
fn nothing_breaks_two_sidecars_on_one_journal() {
    seeds(Setting::Shared, 12, 4_000);
}

#[test]
fn seeds_that_failed_once_hold() {
    for line in SEEDS.lines().filter(|line| !line.starts_with('#')) {
        let (setting, seed) = line.split_once(' ').unwrap();
        let setting = [Setting::Own, Setting::Shared].into_iter().find(|named| format!("{named:?}") == setting).unwrap();
        let seed = seed.parse().unwrap();
        hold(setting, seed, &play(setting, seed).broken);
    }
}

/// Whatever was played before it.
#[test]
fn a_seed_makes_one_world() {
    for (setting, seed) in
        [Setting::Own, Setting::Shared].into_iter().flat_map(|setting| (1..=4).map(move |seed| (setting, seed)))
    {
        let [first, second] = [(); 2].map(|()| play(setting, seed).transcript);
        let difference = first.lines().zip(second.lines()).find(|(first, second)| first != second);
        assert_eq!(difference, None, "{setting:?} {seed}");
        assert_eq!(first.len(), second.len(), "{setting:?} {seed}");
    }
}

/// Plays as many worlds, or the one that is asked for, and reports what they saw.
fn seeds(setting: Setting, small: usize, large: usize) {
    if let Some(seed) = std::env::var_os("SIMULATION_SEED") {
        let seed = seed.to_str().unwrap().parse().unwrap();
        let played = play(setting, seed);
        print!("{}", played.transcript);
        return hold(setting, seed, &played.broken);
    }
    let mut figures: BTreeMap<&'static str, usize> = BTreeMap::new();
    for seed in 1..=soak::count(small, large) as u64 {
        let played = play(setting, seed);
        hold(setting, seed, &played.broken);
        for (figure, count) in played.figures {
            *figures.entry(figure).or_default() += count;
        }
    }
    // Worlds in which nothing goes wrong, or nothing is decided, hold without showing anything.
    let missing: Vec<_> = occurs(setting).filter(|figure| !figures.contains_key(figure)).collect();
    assert_eq!(missing, Vec::<&str>::new(), "never seen in these worlds");
    let figures: Vec<_> = figures.into_iter().collect();
    soak::report(&figures);
}

/// What happens in every run of worlds, however few.
fn occurs(setting: Setting) -> impl Iterator<Item = &'static str> {
    let faults = ["crashes", "shutdowns", "read failed", "read stalled", "write refused"];
    let answers = [
        "allowed",
        "allowed again",
        "denied",
        "failed",
        "refused again",
        "cut",
        "completed",
        "completed again",
        "not completed",
        "journal unavailable",
        "reused",
        "unverifiable",
        "closed after all",
        "interrupted",
    ];
    let of_setting = match setting {
        Setting::Own => ["sync failed", "sync failed and landed", "sync stalled", "write cut by a crash"],
        Setting::Shared => ["answer of the store lost", "answer of the store stalled", "write stalled", "expired"],
    };
    faults.into_iter().chain(answers).chain(of_setting)
}

/// Everything must have held.
fn hold(setting: Setting, seed: u64, broken: &[String]) {
    let test = match setting {
        Setting::Own => "own_disk",
        Setting::Shared => "one_journal",
    };
    assert!(
        broken.is_empty(),
        "{setting:?} {seed}: {broken:#?}\nreplay: SIMULATION_SEED={seed} cargo nextest run --package tollgate-tests \
         --no-capture -E 'binary(simulation) & test({test})'",
    );
}

//! How much is tried: little with every run of the tests, much where `SOAK` names a file for the figures, as
//! `cargo xtask soak` does.

use std::{env, fs::File, io::Write as _};

/// Whether this is the long run.
#[must_use]
pub fn is_on() -> bool {
    env::var_os("SOAK").is_some()
}

/// One of two counts.
#[must_use]
pub fn count(small: usize, soak: usize) -> usize {
    if is_on() { soak } else { small }
}

/// Says what was tried and seen; figures of the same name are added up.
pub fn report(figures: &[(&str, usize)]) {
    let lines: Vec<_> = figures.iter().map(|(name, count)| format!("{name}\t{count}\n")).collect();
    let text = lines.concat();
    print!("{text}");
    if let Some(figures) = env::var_os("SOAK") {
        // One write, since other tests append too.
        let mut file = File::options().create(true).append(true).open(figures).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }
}

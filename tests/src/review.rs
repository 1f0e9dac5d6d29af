//! Files that state what the product does, for people to review: compared with what it does, and written
//! anew with `TOLLGATE_REVIEW=write`.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// The root of the source tree.
#[must_use]
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// Compares a reviewed file with what it should hold now. Answers the lines that differ, or writes the
/// file and answers nothing.
#[must_use]
pub fn compare(path: &Path, now: &str) -> String {
    let reviewed = fs::read_to_string(path).unwrap_or_default();
    if reviewed == now {
        return String::new();
    }
    #[expect(clippy::disallowed_methods, reason = "the one place where tests are told to write what they would compare")]
    if std::env::var("TOLLGATE_REVIEW").is_ok_and(|mode| mode == "write") {
        fs::write(path, now).unwrap();
        return String::new();
    }
    let mut text = format!("{} (to accept: run the test with TOLLGATE_REVIEW=write, and review the change)\n", path.display());
    text.push_str(&difference(&reviewed, now));
    text
}

/// The lines that are not in common, in order: `-` reviewed, `+` now.
fn difference(reviewed: &str, now: &str) -> String {
    let (old, new): (Vec<_>, Vec<_>) = (reviewed.lines().collect(), now.lines().collect());
    let start = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let rest = old.iter().skip(start).rev().zip(new.iter().skip(start).rev());
    let end = rest.take_while(|(old, new)| old == new).count();
    let lines = |lines: &[&str], sign: &str| -> String {
        let changed = lines.get(start..lines.len() - end).unwrap_or_default();
        changed.iter().flat_map(|line| ["  ", sign, " ", *line, "\n"]).collect()
    };
    format!("  from line {}:\n{}{}", start + 1, lines(&old, "-"), lines(&new, "+"))
}

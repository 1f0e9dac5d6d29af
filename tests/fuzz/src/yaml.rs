//! The reader of YAML alone, with none of Cedar behind it: each YAML file of a bundle, as the only file there is.

use crate::bundle::{Files, explained};

const PLACES: [&str; 3] = ["bundle.yaml", "tools.yaml", "hooks/hook/hook.yaml"];

/// Checks the reader with the first byte as the choice of a file, and the others as its content.
pub fn check(data: &[u8]) {
    let Some((choice, content)) = data.split_first() else { return };
    let files = Files::one(PLACES[usize::from(*choice) % PLACES.len()], content);
    match files.load() {
        Ok(_) => panic!("one file is a bundle"),
        Err(report) => explained(&report, &files),
    }
}

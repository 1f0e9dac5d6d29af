//! Every kept input, replayed on the stable toolchain: the corpus of each target, with the inputs that once broke
//! something.
#![expect(clippy::unwrap_used, reason = "tests may panic")]

use std::{collections::BTreeSet, fs, path::Path, thread};

use tollgate_fuzz::TARGETS;

/// Hooks are evaluated with at least 8 MiB of stack; unoptimised code takes more.
const STACK_BYTES: usize = 64 * 1_048_576;

/// The corpus is read in each change's review, so that it must stay small.
const CORPUS_MAX_BYTES: u64 = 200 * 1_024;

#[test]
fn every_kept_input_keeps_the_rules_of_its_target() {
    for (name, check) in TARGETS {
        let inputs = inputs(name);
        assert!(!inputs.is_empty(), "{name} has no corpus");
        let replay = move || {
            for (path, data) in inputs {
                println!("{path}");
                check(&data);
            }
        };
        thread::Builder::new().stack_size(STACK_BYTES).spawn(replay).unwrap().join().unwrap();
    }
}

#[test]
fn every_target_is_a_program_with_a_corpus_and_the_other_way_round() {
    let names: BTreeSet<_> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    let listed = |folder: &str| -> BTreeSet<String> {
        let entries = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)).unwrap();
        entries.map(|entry| entry.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned()).collect()
    };
    assert_eq!(listed("fuzz_targets"), names);
    assert_eq!(listed("corpus"), names);
    let bytes: usize = TARGETS.iter().flat_map(|(name, _)| inputs(name)).map(|(_, data)| data.len()).sum();
    assert!(bytes as u64 <= CORPUS_MAX_BYTES, "the corpus has {bytes} bytes: minimise it");
}

/// The kept inputs of a target, with their places.
fn inputs(target: &str) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
    let mut files: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.into_iter().map(|path| (path.display().to_string(), fs::read(&path).unwrap())).collect()
}

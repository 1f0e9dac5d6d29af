//! The committed wire types are what the `.proto` files generate today, and the files keep the rules
//! of the contract.
//!
//! `cargo xtask codegen` runs this with `TOLLGATE_CODEGEN=write`, which renews the committed code. The
//! generator lives in a test so that its dependencies stay out of every `cargo xtask` command.
#![expect(clippy::unwrap_used, reason = "tests may panic")]

mod contract;

use std::{
    fs,
    path::{Path, PathBuf},
};

use protox::prost_reflect::prost_types::FileDescriptorSet;

/// The fields that may hold what must not be printed: a call's content, or text that may quote it.
/// Their messages get no derived `Debug`; `tollgate-proto` writes one that shows only their length.
const SENSITIVE: [(&str, &str); 5] = [
    ("EvaluateRequest", "arguments_json"),
    ("Claims", "attributes_json"),
    ("EvaluateResponse", "message"),
    ("ProviderFailed", "error_message"),
    ("Outcome", "error_message"),
];

#[test]
fn generated_code_is_fresh() {
    let committed = workspace().join("crates/tollgate-proto/src/generated");
    let fresh = tempfile::tempdir().unwrap();
    generate(fresh.path());

    let write = std::env::var_os("TOLLGATE_CODEGEN").is_some_and(|mode| mode == "write");
    if write {
        fs::create_dir_all(&committed).unwrap();
    }
    for entry in fs::read_dir(fresh.path()).unwrap() {
        let entry = entry.unwrap();
        let new = fs::read(entry.path()).unwrap();
        let target = committed.join(entry.file_name());
        if write {
            fs::write(&target, new).unwrap();
        } else {
            let old = fs::read(&target).unwrap_or_default();
            assert!(old == new, "{} is stale: run `cargo xtask codegen`", target.display());
        }
    }
    for entry in fs::read_dir(&committed).unwrap() {
        let name = entry.unwrap().file_name();
        assert!(fresh.path().join(&name).exists(), "{} is generated no longer: delete it", name.display());
    }
}

fn generate(into: &Path) {
    let descriptors = descriptors();
    tonic_prost_build::configure()
        .out_dir(into)
        .bytes(".")
        .skip_debug(SENSITIVE.map(|(message, _)| format!("tollgate.v1.{message}")))
        .compile_fds(descriptors.clone())
        .unwrap();

    let mut lean = descriptors;
    for file in &mut lean.file {
        file.source_code_info = None; // reflection serves no comments
    }
    let set = protox::prost::Message::encode_to_vec(&lean);
    fs::write(into.join("tollgate.v1.bin"), set).unwrap();
}

/// Every `.proto` file with its comments, and what they import.
fn descriptors() -> FileDescriptorSet {
    let root = workspace().join("proto");
    let mut files: Vec<_> = fs::read_dir(root.join("tollgate/v1"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "proto"))
        .collect();
    files.sort();
    protox::Compiler::new([&root])
        .unwrap()
        .include_source_info(true)
        .include_imports(true)
        .open_files(&files)
        .unwrap()
        .file_descriptor_set()
}

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_owned()
}

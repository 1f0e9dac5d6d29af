//! Runs the documents in `tests/cases`: every call in them is decided as they say.

use std::fs;

use tollgate_tests::{bench, documents, review::root};

#[test]
fn every_case_is_decided_as_it_says() {
    bench::run(|| async {
        let mut paths: Vec<_> = fs::read_dir(root().join("tests/cases")).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
        paths.sort();
        let mut differences = String::new();
        for path in paths {
            differences += &documents::run(&path).await;
        }
        assert!(differences.is_empty(), "decisions differ from the cases:\n{differences}");
    });
}

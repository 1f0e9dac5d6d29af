//! Arrows between crates point down only.

use std::collections::{BTreeMap, BTreeSet};

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand};

use crate::{none, root};

/// Which crates each crate may depend on. The binary puts everything together, so that it meets every
/// layer; siblings do not know each other, no adapter sees the engine, and the server sees no adapter.
const ARROWS: [(&str, &[&str]); 9] = [
    (
        "tollgate",
        &[
            "tollgate-server",
            "tollgate-policy",
            "tollgate-journal",
            "tollgate-client",
            "tollgate-engine",
            "tollgate-proto",
            "tollgate-domain",
        ],
    ),
    ("tollgate-server", &["tollgate-engine", "tollgate-proto", "tollgate-domain"]),
    ("tollgate-engine", &["tollgate-domain"]),
    ("tollgate-policy", &["tollgate-domain"]),
    ("tollgate-journal", &["tollgate-domain"]),
    ("tollgate-client", &["tollgate-proto"]),
    ("tollgate-proto", &[]),
    ("tollgate-domain", &[]),
    ("xtask", &[]),
];

/// Packages that hold nothing but tests may depend on everything, and nothing on them.
const TESTS: [&str; 4] = ["tollgate-tests", "tollgate-bench", "tollgate-fault-shim", "tollgate-fuzz"];

type Arrows = BTreeMap<String, BTreeSet<String>>;

#[test]
fn crates_depend_on_what_lies_below_them_only() {
    let mut found = Vec::new();
    for (from, targets) in product_arrows(&metadata()) {
        if TESTS.contains(&from.as_str()) {
            continue;
        }
        let Some((_, allowed)) = ARROWS.iter().find(|(name, _)| *name == from) else {
            found.push(format!("{from} is a new crate: say here what it may depend on"));
            continue;
        };
        let wrong = targets.iter().filter(|target| !allowed.contains(&target.as_str()));
        found.extend(wrong.map(|target| format!("{from} -> {target}")));
    }
    none("arrows that ARCHITECTURE.md does not have", &found);
}

#[test]
fn every_crate_with_arrows_exists() {
    let members = product_arrows(&metadata());
    let found: Vec<_> =
        ARROWS.iter().filter(|(name, _)| !members.contains_key(*name)).map(|(name, _)| (*name).to_owned()).collect();
    none("crates that exist no longer", &found);
}

/// Tests of a crate may use its siblings and what lies below, such as a store to run the engine on;
/// never what stands above it, which would make the crate's tests wait for the whole product.
#[test]
fn tests_of_a_crate_use_nothing_that_stands_above_it() {
    let metadata = metadata();
    let product = product_arrows(&metadata);
    let mut found = Vec::new();
    for (from, targets) in arrows(&metadata, DependencyKind::Development) {
        if TESTS.contains(&from.as_str()) {
            continue;
        }
        for target in targets {
            if TESTS.contains(&target.as_str()) || target == "xtask" || reaches(&product, &target, &from) {
                found.push(format!("{from} -> {target}"));
            }
        }
    }
    none("development dependencies that point up", &found);
}

fn metadata() -> Metadata {
    MetadataCommand::new().current_dir(root()).no_deps().other_options(["--offline".to_owned()]).exec().unwrap()
}

/// What the product is built of: normal and build dependencies.
fn product_arrows(metadata: &Metadata) -> Arrows {
    let mut all = arrows(metadata, DependencyKind::Normal);
    for (from, targets) in arrows(metadata, DependencyKind::Build) {
        all.entry(from).or_default().extend(targets);
    }
    all
}

/// The dependencies of one kind between the crates of the workspace.
fn arrows(metadata: &Metadata, kind: DependencyKind) -> Arrows {
    let within = |package: &cargo_metadata::Package| {
        let targets = package.dependencies.iter().filter(|target| target.kind == kind && target.path.is_some());
        targets.map(|target| target.name.clone()).collect()
    };
    metadata.packages.iter().map(|package| (package.name.to_string(), within(package))).collect()
}

fn reaches(arrows: &Arrows, from: &str, to: &str) -> bool {
    arrows.get(from).is_some_and(|targets| targets.contains(to) || targets.iter().any(|next| reaches(arrows, next, to)))
}

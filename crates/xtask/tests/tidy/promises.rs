//! What a crate may not know: the promises that the `lib.rs` of each crate states.

use crate::{File, none, rust, rust_files};

/// A path that only some crates may name in their sources.
struct Reserved {
    path: &'static str,
    to: &'static [&'static str],
}

/// Names of the outside world, and who meets it. The wire code is generated; the client, and the
/// command line that is built on it, meet gRPC from its other end but make no status.
const RESERVED: [Reserved; 5] = [
    Reserved { path: "cedar_policy", to: &["tollgate-policy"] },
    Reserved { path: "cedar_policy_core", to: &["tollgate-policy"] },
    Reserved { path: "rusqlite", to: &["tollgate-journal"] },
    Reserved { path: "tonic::Status", to: &["tollgate-server", "tollgate-client", "tollgate-proto"] },
    Reserved { path: "tonic::server", to: &["tollgate-server", "tollgate-proto"] },
];

/// What the domain may not name: IO, clocks, runtimes, wire formats.
const NOT_IN_DOMAIN: [&str; 14] = [
    "std::env",
    "std::fs",
    "std::net",
    "std::os",
    "std::process",
    "std::thread",
    "std::time::Instant",
    "std::time::SystemTime",
    "tokio",
    "tokio_util",
    "tonic",
    "prost",
    "tollgate_proto",
    "tracing",
];

/// What the engine may not name: wire types and files.
const NOT_IN_ENGINE: [&str; 5] = ["tonic", "prost", "prost_types", "tollgate_proto", "std::fs"];

#[test]
fn names_of_the_outside_world_stay_in_their_crate() {
    let mut found = Vec::new();
    for (krate, file) in product_files() {
        for reserved in RESERVED.iter().filter(|reserved| !reserved.to.contains(&krate)) {
            found.extend(uses(file, reserved.path));
        }
    }
    none("names that another crate keeps to itself", &found);
}

#[test]
fn the_domain_knows_no_io_no_clock_and_no_wire() {
    none("names that the domain may not know", &uses_of("tollgate-domain", &NOT_IN_DOMAIN));
}

#[test]
fn the_engine_knows_no_wire_and_no_files() {
    none("names that the engine may not know", &uses_of("tollgate-engine", &NOT_IN_ENGINE));
}

#[test]
fn every_library_states_its_promise() {
    let mut found = Vec::new();
    for file in rust_files().filter(|file| file.path.ends_with("/src/lib.rs") && file.path.starts_with("crates/")) {
        let opening: Vec<_> = file.text.lines().take_while(|line| line.starts_with("//!")).collect();
        let opening = opening.join(" ").to_lowercase();
        let negative = [" no ", "not ", " never ", " nothing "].iter().any(|word| opening.contains(word));
        if !negative {
            found.push(format!("{}: what may this crate not know?", file.path));
        }
    }
    none("libraries without a promise", &found);
}

/// The sources of the product with the crate of each.
fn product_files() -> impl Iterator<Item = (&'static str, &'static File)> {
    rust_files().filter_map(|file| {
        let (krate, rest) = file.path.strip_prefix("crates/")?.split_once('/')?;
        (rest.starts_with("src/") && krate != "xtask").then_some((krate, file))
    })
}

fn uses_of(krate: &str, names: &[&str]) -> Vec<String> {
    let files = product_files().filter(|(of, _)| *of == krate);
    files.flat_map(|(_, file)| names.iter().flat_map(|name| uses(file, name))).collect()
}

/// Where a file names a path or something below it.
fn uses(file: &File, path: &str) -> Vec<String> {
    let krate = path.split("::").next().unwrap_or(path);
    let below = format!("{path}::");
    let named = rust::paths(&rust::words(&file.text), krate);
    let hits = named.into_iter().filter(|own| own == path || own.starts_with(&below));
    hits.map(|own| format!("{}: {own}", file.path)).collect()
}

//! The bench: builds the program and what it is measured against, each by itself so that neither is built with what
//! only the other needs, and measures.

use std::process::Command;

use anyhow::Result;

use crate::{setup, step};

/// Measures; the options are those of the bench, which says what it knows.
pub(crate) fn run(options: &[&str]) -> Result<()> {
    for package in ["tollgate", "tollgate-bench"] {
        step::run("build", &mut step::cargo(["build", "--release", "--locked", "--package", package]))?;
    }
    let mut bench = Command::new(step::root().join("target/release/tollgate-bench"));
    if let Some(cerbos) = setup::cerbos() {
        bench.arg("--cerbos").arg(cerbos);
    }
    step::run("bench", bench.args(options))
}

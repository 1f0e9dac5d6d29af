//! The long run: the fault, swap, bad bundle and simulation suites that `cargo xtask test` runs in small.

use std::{collections::BTreeMap, fs};

use anyhow::{Context, Result};

use crate::{setup, step};

/// Where the tests leave their figures, under the root.
const FIGURES: &str = "target/soak-figures.tsv";
/// The tests that look at `SOAK`.
const TESTS: &str = "binary(simulation) | (binary(system) & test(/^(faults|swap|bad_bundles)::/))";

/// Runs the suites and shows their figures. Built for release: it is the counts that matter here, and what the optimiser
/// makes of the program is what runs elsewhere.
pub(crate) fn run() -> Result<()> {
    setup::run()?;
    let packages = ["build", "--release", "--locked", "--package", "tollgate", "--package", "tollgate-fault-shim"];
    step::run("build", &mut step::cargo(packages))?;
    let figures = step::root().join(FIGURES);
    fs::write(&figures, "").with_context(|| FIGURES)?;
    let run = ["nextest", "run", "--release", "--locked", "--package", "tollgate-tests", "--profile", "soak", "-E", TESTS];
    let ran = step::run("soak", step::cargo(run).env("SOAK", &figures));
    show(&fs::read_to_string(&figures).with_context(|| FIGURES)?);
    ran
}

/// One line for each name, with the sum of its figures.
fn show(figures: &str) {
    let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
    for line in figures.lines() {
        if let Some((name, count)) = line.split_once('\t') {
            *sums.entry(name).or_default() += count.parse().unwrap_or(0);
        }
    }
    println!();
    for (name, sum) in sums {
        println!("{sum:>12}  {name}");
    }
}

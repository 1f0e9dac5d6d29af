//! The project's own commands, so that a machine with a Rust toolchain needs no other build tool:
//! `cargo xtask <command>`.
//!
//! This binary depends on next to nothing and builds in a second; what needs more, such as the code
//! generator, is a test of this package that a command runs.

mod bench;
mod fuzz;
mod setup;
mod soak;
mod step;
mod verify;

use std::{env, process::ExitCode};

use anyhow::Result;

const USAGE: &str = "\
Usage: cargo xtask <command>

  setup     Installs what the tests need and the machine lacks, under target/tools
  test      setup, then every check and every test
  ci        What the build server runs: test, and a closing line
  codegen   Generates crates/tollgate-proto/src/generated from proto/tollgate/v1
  tidy      The rules of the source tree alone
  bench     What a decision costs on this machine, as a table [--quick] [--only a,b,…]
  fuzz [S]  Every parser of outside input against bytes that nobody meant, for S seconds each (600)
  soak      The fault, swap, bad bundle and simulation suites at large counts, and a table of what was tried and seen
  help      This text
";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match arguments.as_slice() {
        ["setup"] => setup::run().map(drop),
        ["test"] => verify::test(),
        ["ci"] => verify::ci(),
        ["codegen"] => codegen(),
        ["tidy"] => tidy(),
        ["bench", options @ ..] => bench::run(options),
        ["fuzz"] => fuzz::run(None),
        ["fuzz", seconds] => fuzz::run(Some(seconds)),
        ["soak"] => soak::run(),
        ["help" | "--help" | "-h"] => {
            print!("{USAGE}");
            Ok(())
        }
        _ => {
            eprint!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("\nxtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Renews the committed wire code. The contract's rules run with it.
fn codegen() -> Result<()> {
    let mut generate = step::cargo(["test", "--quiet", "--package", "xtask", "--test", "codegen"]);
    generate.env("TOLLGATE_CODEGEN", "write");
    step::run("codegen", &mut generate)
}

fn tidy() -> Result<()> {
    step::run("tidy", &mut step::cargo(["test", "--quiet", "--package", "xtask", "--test", "tidy"]))
}

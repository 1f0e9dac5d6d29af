//! Every check and every test, in the order in which they tell the most for the least time.

use std::process::Command;

use anyhow::Result;

use crate::{setup, step};

/// Sets up, checks and tests everything. The first failing step ends it.
pub(crate) fn test() -> Result<()> {
    let start = step::now();
    setup::run()?;
    for (name, mut command) in steps() {
        step::run(name, &mut command)?;
    }
    let corpus = corpus()?;
    println!("\n── test: everything holds, in {}{corpus}", step::seconds(start));
    Ok(())
}

/// Cedar's own conformance corpus is not part of the project. Where it is not there, the closing line says so.
fn corpus() -> Result<&'static str> {
    if std::env::var_os("TOLLGATE_CEDAR_CORPUS").is_none() {
        return Ok("; not run: the Cedar corpus, since TOLLGATE_CEDAR_CORPUS names none");
    }
    let mut run = step::cargo(["nextest", "run", "--locked", "--package", "tollgate-policy", "--run-ignored", "only"]);
    run.args(["--filterset", "test(corpus)"]);
    step::run("corpus", &mut run)?;
    Ok("")
}

/// What the build server runs.
pub(crate) fn ci() -> Result<()> {
    test()?;
    println!("── ci: ok");
    Ok(())
}

fn steps() -> [(&'static str, Command); 7] {
    let mut docs = step::cargo(["doc", "--workspace", "--no-deps", "--locked"]);
    docs.env("RUSTDOCFLAGS", "-D warnings");
    let deny = ["deny", "--locked", "--log-level", "error", "check", "bans", "licenses", "sources"];
    [
        ("format", step::cargo(["fmt", "--all", "--check"])),
        ("dependencies", step::cargo(deny)),
        ("lints", step::cargo(["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"])),
        // Tests drive the real program; built here, no test waits for a compiler.
        ("program", step::cargo(["build", "--package", "tollgate", "--package", "tollgate-fault-shim", "--locked"])),
        ("tests", step::cargo(["nextest", "run", "--workspace", "--locked"])),
        ("doctests", step::cargo(["test", "--workspace", "--doc", "--locked"])),
        ("docs", docs),
    ]
}

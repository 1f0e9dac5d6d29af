//! Installs what the tests need and the machine lacks: into target/tools, pinned, and once.
//!
//! No test needs a database server: the only store is built in. One that needs a server will have it
//! set up here.

use std::{env, fs, path::PathBuf, process::Command};

use anyhow::{Context, Result, bail};

use crate::step;

/// A cargo subcommand that checks or tests need. Any version that the machine has is used; this one is
/// installed where it has none.
struct Tool {
    subcommand: &'static str,
    package: &'static str,
    version: &'static str,
    /// Leaves out what only slows the build, such as self-update.
    features: &'static [&'static str],
}

const NEXTEST: Tool = Tool {
    subcommand: "nextest",
    package: "cargo-nextest",
    version: "0.9.143",
    features: &["--no-default-features", "--features", "default-no-update"],
};

const DENY: Tool = Tool { subcommand: "deny", package: "cargo-deny", version: "0.20.2", features: &[] };

/// Needed by `fuzz` alone. It needs a C++ compiler, too.
const FUZZ: Tool = Tool { subcommand: "fuzz", package: "cargo-fuzz", version: "0.13.2", features: &[] };

/// The decision point that the bench compares with: an npm package that holds a program.
const CERBOS: &str = "@cerbos/cerbos-linux-x64";
const CERBOS_VERSION: &str = "0.55.0";

/// What the Python client of the tests imports, with versions.
const REQUIREMENTS: &str = "tests/clients/python/requirements.txt";

const PYTHON_HINT: &str = "The tests drive the sidecar from Python too. Install Python 3.10 or newer with its venv module \
(Debian, Ubuntu: apt-get install python3 python3-venv; Fedora: dnf install python3; macOS: brew install python3), \
or name one with PYTHON=/path/to/python3, and run this again.";

/// Installs what is missing.
pub(crate) fn run() -> Result<()> {
    install(&NEXTEST)?;
    install(&DENY)?;
    python()?;
    println!("── setup: PostgreSQL is needed by no test");
    Ok(())
}

/// Installs what `fuzz` needs beyond what the tests do.
pub(crate) fn fuzz() -> Result<()> {
    install(&FUZZ)
}

/// Installs what `bench` compares with and tells where it is; it does without where there is no npm, or no
/// such program for this machine.
pub(crate) fn cerbos() -> Option<PathBuf> {
    let folder = step::tools().join(format!("cerbos-{CERBOS_VERSION}"));
    let program = folder.join("node_modules").join(CERBOS).join("cerbos-linux-x64");
    if program.exists() {
        println!("── setup: Cerbos is here");
        return Some(program);
    }
    let mut install = Command::new("npm");
    install.args(["install", "--no-save", "--no-audit", "--no-fund", "--loglevel=error", "--prefix"]).arg(folder);
    install.arg(format!("{CERBOS}@{CERBOS_VERSION}"));
    if let Err(error) = step::run("Cerbos", &mut install) {
        println!("── setup: no Cerbos to compare with: {error:#}");
    }
    program.exists().then_some(program)
}

fn install(tool: &Tool) -> Result<()> {
    if step::works(&mut step::cargo([tool.subcommand, "--version"])) {
        println!("── setup: {} is here", tool.package);
        return Ok(());
    }
    println!("── setup: building {} {}, which takes some minutes the first time", tool.package, tool.version);
    // Unoptimised: a third of the time to build, and no slower at what is asked of them.
    let mut command = step::cargo(["install", tool.package, "--version", tool.version, "--locked", "--quiet", "--debug"]);
    command.args(tool.features).arg("--root").arg(step::tools()).env("CARGO_PROFILE_DEV_DEBUG", "0");
    step::run(tool.package, &mut command)
}

/// Makes the virtual environment of the Python client, anew whenever its requirements change.
fn python() -> Result<()> {
    let wanted = fs::read_to_string(step::root().join(REQUIREMENTS)).with_context(|| REQUIREMENTS)?;
    let environment = step::tools().join("python");
    let installed = environment.join("requirements.txt");
    if fs::read_to_string(&installed).is_ok_and(|present| present == wanted) {
        println!("── setup: the Python client's packages are here");
        return Ok(());
    }

    let system = env::var_os("PYTHON").unwrap_or_else(|| "python3".into());
    let recent = "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))";
    if !step::works(Command::new(&system).args(["-c", recent])) {
        bail!("no usable Python: `{}` is missing, older than 3.10, or has no venv\n\n{PYTHON_HINT}", system.display());
    }
    let mut create = Command::new(&system);
    create.args(["-m", "venv", "--clear"]).arg(&environment);
    step::run("python environment", &mut create)?;

    let mut packages = Command::new(environment.join("bin/python"));
    packages.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--only-binary", ":all:"]);
    packages.args(["--requirement", REQUIREMENTS]).current_dir(step::root());
    step::run("python packages", &mut packages)?;
    fs::write(&installed, wanted).with_context(|| installed.display().to_string())
}

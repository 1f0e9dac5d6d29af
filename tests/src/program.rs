//! The `tollgate` program as people run it: built once, then started as a process of its own.

use std::{
    env,
    ffi::OsStr,
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, ExitStatus, Stdio},
    sync::OnceLock,
    time::SystemTime,
};

use crate::review::root;

/// What the program is made of; a change in there asks for another build.
const SOURCES: [&str; 5] = ["Cargo.toml", "Cargo.lock", "crates", "migrations", "policies"];
/// What the fault shim is made of.
const SHIM_SOURCES: [&str; 1] = ["tests/shim"];

/// The program, of the same profile and target directory as the tests.
pub fn path() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| built("tollgate", "tollgate", &SOURCES))
}

/// The library that is loaded under the program to make its disk a bad one, see [`crate::faults`].
pub fn shim() -> &'static Path {
    static SHIM: OnceLock<PathBuf> = OnceLock::new();
    SHIM.get_or_init(|| built("tollgate-fault-shim", "libtollgate_fault_shim.so", &SHIM_SOURCES))
}

fn built(package: &str, file: &str, sources: &[&str]) -> PathBuf {
    let tests = env::current_exe().unwrap();
    // target/<profile>/deps/<test>
    let directory = tests.ancestors().nth(2).unwrap().to_owned();
    let built = directory.join(file);
    if !is_fresh(&built, sources) {
        build(package, &directory);
    }
    built
}

/// A command of the program, without what this process's environment says to it.
#[must_use]
pub fn command<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(path());
    for (name, _) in env::vars_os() {
        if name.to_string_lossy().starts_with("TOLLGATE_") {
            command.env_remove(name);
        }
    }
    command.args(arguments);
    command
}

/// What a command that ended left behind.
#[derive(Debug)]
pub struct Ended {
    /// How it ended.
    pub status: ExitStatus,
    /// Its standard output.
    pub out: String,
    /// Its standard error.
    pub err: String,
}

impl Ended {
    /// Its exit code.
    #[must_use]
    pub fn code(&self) -> i32 {
        self.status.code().unwrap_or(-1)
    }
}

/// Runs a command to its end with nothing on its standard input.
#[must_use]
pub fn run(command: Command) -> Ended {
    run_with(command, "")
}

/// Runs a command to its end with a text on its standard input.
#[must_use]
pub fn run_with(mut command: Command, input: &str) -> Ended {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // A command that reads nothing may have ended already.
    drop(child.stdin.take().unwrap().write_all(input.as_bytes()));
    let output = child.wait_with_output().unwrap();
    Ended {
        status: output.status,
        out: String::from_utf8(output.stdout).expect("output is UTF-8"),
        err: String::from_utf8(output.stderr).expect("output is UTF-8"),
    }
}

/// Whether a file is younger than everything that it is made of; saves a run of cargo for each test.
fn is_fresh(file: &Path, sources: &[&str]) -> bool {
    let Ok(built) = fs::metadata(file).and_then(|metadata| metadata.modified()) else { return false };
    sources.iter().all(|source| newest(&root().join(source)) < built)
}

fn newest(path: &Path) -> SystemTime {
    let metadata = fs::metadata(path).unwrap();
    if !metadata.is_dir() {
        return metadata.modified().unwrap();
    }
    let skipped = |name: &OsStr| name == "tests" || name == "benches";
    let entries = fs::read_dir(path).unwrap().map(|entry| entry.unwrap()).filter(|entry| !skipped(&entry.file_name()));
    entries.map(|entry| newest(&entry.path())).max().unwrap_or(SystemTime::UNIX_EPOCH)
}

fn build(package: &str, directory: &Path) {
    let profile = match directory.file_name().and_then(OsStr::to_str).unwrap() {
        "debug" => "dev",
        other => other,
    };
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "--package", package, "--profile", profile]).current_dir(root());
    let built = cargo.arg("--target-dir").arg(directory.parent().unwrap()).output().unwrap();
    assert!(built.status.success(), "{package} does not build:\n{}", String::from_utf8_lossy(&built.stderr));
}

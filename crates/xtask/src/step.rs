//! One step of a command: a program that is announced, timed, and named when it fails.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
    time::Instant,
};

use anyhow::{Context, Result, bail};

/// The root of the workspace.
pub(crate) fn root() -> &'static Path {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.ancestors().nth(2).unwrap_or(package)
}

/// Where the tools are that `setup` installs.
pub(crate) fn tools() -> PathBuf {
    root().join("target/tools")
}

/// Cargo of the pinned toolchain, at the root, finding the installed tools before the machine's own.
pub(crate) fn cargo<'a>(arguments: impl IntoIterator<Item = &'a str>) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    let installed = tools().join("bin");
    let inherited = env::var_os("PATH").unwrap_or_default();
    if let Ok(path) = env::join_paths([installed].into_iter().chain(env::split_paths(&inherited))) {
        command.env("PATH", path);
    }
    command.args(arguments).current_dir(root());
    command
}

/// Runs a step to its end, with its output on ours.
pub(crate) fn run(name: &str, command: &mut Command) -> Result<()> {
    println!("\n── {name}: {}", line(command));
    let start = now();
    let status = command.status().with_context(|| format!("step `{name}`: cannot start {}", line(command)))?;
    if !status.success() {
        let end = status.code().map_or_else(|| status.to_string(), |code| format!("exit code {code}"));
        bail!("step `{name}` failed with {end}");
    }
    println!("── {name}: ok in {}", seconds(start));
    Ok(())
}

/// Whether a command can be run and ends well; says nothing.
pub(crate) fn works(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}

/// The moment, for durations that are shown to a person.
#[expect(clippy::disallowed_methods, reason = "a build tool has no clock to be given")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// How long it has been, such as `74.2 s`.
pub(crate) fn seconds(since: Instant) -> String {
    format!("{:.1} s", since.elapsed().as_secs_f64())
}

/// The command as a person would type it.
fn line(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or_default();
    let words = std::iter::once(program).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

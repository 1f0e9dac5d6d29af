//! Fuzzing: every target of `tests/fuzz`, one after the other, for a given time.

use std::{fs, num::NonZeroU32, process::Command};

use anyhow::{Context, Result};

use crate::{setup, step};

/// How long a target runs that is given no time, in seconds.
const SECONDS_DEFAULT: &str = "600";

const FOLDER: &str = "tests/fuzz";
/// Instrumented code is kept apart, so that it and the product are not built anew for each other.
const BUILT: &str = "target/fuzz";

/// Builds and runs all targets; the first finding ends it, and lies in the target's corpus, where `cargo xtask test`
/// replays it until it is mended.
pub(crate) fn run(seconds: Option<&str>) -> Result<()> {
    let seconds: NonZeroU32 = seconds.unwrap_or(SECONDS_DEFAULT).parse().context("the time is no number of seconds")?;
    setup::fuzz()?;
    step::run("build", &mut cargo_fuzz("build"))?;
    for target in targets()? {
        // What is found on the way is kept here; the corpus of the tree is read, and only minimised by hand.
        let found = step::root().join(BUILT).join("corpus").join(&target);
        fs::create_dir_all(&found).with_context(|| found.display().to_string())?;
        let corpus = format!("{FOLDER}/corpus/{target}");
        let mut command = cargo_fuzz("run");
        command.arg(&target).arg(found).arg(&corpus).arg("--");
        command.arg(format!("-max_total_time={seconds}")).arg(format!("-artifact_prefix={corpus}/"));
        command.args(["-timeout=25", "-rss_limit_mb=3072", "-max_len=16384", "-print_final_stats=1"]);
        step::run(&target, &mut command)?;
    }
    Ok(())
}

/// Without a sanitizer, which stable Rust does not have: there is no unsafe code of ours for one to watch.
fn cargo_fuzz(command: &str) -> Command {
    let fixed = ["--fuzz-dir", FOLDER, "--target-dir", BUILT, "--sanitizer", "none", "--features", "libfuzzer"];
    step::cargo(["fuzz", command].into_iter().chain(fixed))
}

fn targets() -> Result<Vec<String>> {
    let folder = step::root().join(FOLDER).join("corpus");
    let entries = fs::read_dir(&folder).with_context(|| folder.display().to_string())?;
    let names = entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
    let mut names = names.collect::<Result<Vec<_>>>()?;
    names.sort();
    Ok(names)
}

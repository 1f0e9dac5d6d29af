//! What a decision costs on this machine, as ratios that another machine can be held to: `cargo xtask bench`.
//!
//! The client is this process, on one thread; the servers are processes of their own. Client and servers share the
//! machine, so that throughput is that of both together. Nothing is asserted but the answers: a noisy machine must
//! not fail a build.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a benchmark may panic, and reads the clock"
)]

mod bundles;
mod calls;
mod cerbos;
mod contest;
mod disk;
mod figures;
mod load;
mod machine;
mod report;
mod servers;

use std::{env, fs, path::PathBuf, process::ExitCode, time::Duration};

use contest::Pace;
use report::Report;

const USAGE: &str = "usage: tollgate-bench [--quick] [--only a,b,…] [--cerbos PROGRAM]   (figures a to i)";
const FIGURES: &str = "abcdefghi";

const THOROUGH: Pace = Pace { rounds: 5, slice: Duration::from_millis(500) };
const QUICK: Pace = Pace { rounds: 3, slice: Duration::from_millis(400) };

/// What is measured, and how long.
struct Options {
    pace: Pace,
    /// The letters of the figures.
    figures: String,
    /// The other decision point, where it is installed.
    cerbos: Option<PathBuf>,
}

fn main() -> ExitCode {
    let Some(options) = options(env::args().skip(1)) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    write(&runtime.block_on(figures::measure(&options)));
    ExitCode::SUCCESS
}

fn options(mut arguments: impl Iterator<Item = String>) -> Option<Options> {
    let mut options = Options { pace: THOROUGH, figures: FIGURES.to_owned(), cerbos: None };
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--quick" => options.pace = QUICK,
            "--only" => options.figures = arguments.next()?.replace(',', ""),
            "--cerbos" => options.cerbos = Some(arguments.next()?.into()),
            _ => return None,
        }
    }
    options.figures.chars().all(|figure| FIGURES.contains(figure)).then_some(options)
}

fn write(report: &Report) {
    let directory = servers::built().join("../bench");
    let markdown = report.markdown();
    print!("{markdown}");
    fs::write(directory.join("bench.md"), markdown).unwrap();
    fs::write(directory.join("bench.json"), serde_json::to_string_pretty(report).unwrap()).unwrap();
}

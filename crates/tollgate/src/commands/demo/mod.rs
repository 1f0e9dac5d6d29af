//! `tollgate demo`: a real sidecar, the sample bundle, and one run of an agent that shows what the gate
//! is for.

mod script;
mod stage;

use std::path::PathBuf;

use anyhow::Result;
use tokio::signal::unix::{SignalKind, signal};
use tollgate_client::{Gate, connect, v1};

use super::journal;
use crate::{
    cli::Demo,
    exit::Exit,
    out,
    style::{self, paint},
};
use stage::Stage;

pub(crate) async fn run(demo: Demo) -> Result<Exit> {
    let temporary = tempfile::Builder::new().prefix("tollgate-demo-").tempdir()?;
    let directory = demo.directory.unwrap_or_else(|| PathBuf::from(temporary.path()));
    let stage = Stage::build(&directory).await?;
    say(format_args!(
        "A sidecar serves on {} with generation {} of the sample bundle.",
        stage.data(),
        stage.generation().await?
    ))?;
    say(format_args!("Its journal, key, sockets and bundle are in {}.", directory.display()))?;
    let gate = Gate::new(connect(stage.data()).await?);
    let run = script::run_of_the_demo();
    script::play(&gate, &stage, &run).await?;
    say(format_args!("\n{}", paint(style::STRONG, "What the journal holds of it, and no argument anywhere:")))?;
    journal::show(stage.read(), &run, v1::FactFilter::default(), false).await?;
    look_further(&stage, &run, demo.keep)?;
    if demo.keep {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    }
    stage.take_down().await;
    Ok(Exit::Success)
}

fn look_further(stage: &Stage, run: &crate::run_path::RunPath, keep: bool) -> std::io::Result<()> {
    if keep {
        say(format_args!("\nIt goes on serving; Ctrl-C ends it. In another terminal:"))?;
        say(format_args!("  tollgate journal show --address {} {run} --json", stage.read()))?;
        say(format_args!("  tollgate policy status --address {}", stage.read()))?;
        say(format_args!(
            "  echo '{{\"query\":\"refunds\"}}' | tollgate evaluate --address {} --run {run} --agent support-agent@1 --tool search.knowledge_base",
            stage.data()
        ))?;
        say(format_args!("  edit a policy in {}, and ask again", stage.bundle().display()))?;
    } else {
        say(format_args!("\nLook further: `tollgate demo --keep` leaves it serving; README.md says how to ask it yourself."))?;
    }
    Ok(())
}

/// Prints one line of the story.
fn say(line: std::fmt::Arguments<'_>) -> std::io::Result<()> {
    out::line(line)
}

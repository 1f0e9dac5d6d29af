//! The commands.

mod complete;
mod demo;
mod evaluate;
mod journal;
mod policy;
mod serve;

use anyhow::{Context, Result};
use clap::CommandFactory;

use crate::{
    cli::{Cli, Command},
    exit::Exit,
    out,
};

/// Stack of the thread that answers calls, in bytes: Cedar evaluates by recursion, and refuses where its
/// stack runs short.
const STACK_BYTES: usize = 16 * 1_048_576;

/// Runs a command to its end.
pub(crate) fn run(cli: Cli) -> Result<Exit> {
    match cli.command {
        Command::Serve(serve) => on_runtime(|| serve::run(serve)),
        Command::Evaluate(evaluate) => on_runtime(|| evaluate::run(*evaluate)),
        Command::Complete(complete) => on_runtime(|| complete::run(complete)),
        Command::Policy(policy) => policy::run(policy),
        Command::Journal(journal) => on_runtime(|| journal::run(journal)),
        Command::Demo(demo) => on_runtime(|| demo::run(demo)),
        Command::Completions { shell } => {
            // The generator panics where it cannot write, so it writes into memory.
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "tollgate", &mut script);
            out::text(String::from_utf8_lossy(&script))?;
            Ok(Exit::Success)
        }
    }
}

/// One thread with a deep stack that runs everything asynchronous: measured, it answers a unary call for
/// half the CPU of a work-stealing runtime.
pub(crate) fn on_runtime<F: Future<Output = Result<Exit>>>(command: impl FnOnce() -> F + Send) -> Result<Exit> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().thread_stack_size(STACK_BYTES).build()?;
    let thread = std::thread::Builder::new().name("tollgate".to_owned()).stack_size(STACK_BYTES);
    std::thread::scope(|scope| {
        let running = thread.spawn_scoped(scope, || {
            let ended = runtime.block_on(command());
            // A file operation that hangs must not keep a program from ending whose journal is closed.
            runtime.shutdown_background();
            ended
        });
        let running = running.context("cannot start a thread")?;
        running.join().unwrap_or_else(|_| anyhow::bail!("a panic ended the command"))
    })
}

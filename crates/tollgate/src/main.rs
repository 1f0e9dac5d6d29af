//! The `tollgate` program: the sidecar, and the commands of the people who run it.
//!
//! This crate is the composition root. Here alone a configuration becomes adapters, and here alone
//! the process's clock, randomness and environment are read.

mod cli;
mod commands;
mod config;
mod exit;
mod out;
#[cfg(test)]
mod reference;
mod run_path;
mod sidecar;
mod style;
mod view;
mod world;

use std::process::ExitCode;

use clap::Parser;

/// What one thread allocates, the journal's frees: with the system's allocator the two wait for each other.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = match cli::Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are no errors; clap prints each where it belongs.
            drop(error.print());
            return if error.use_stderr() { exit::Exit::Usage.into() } else { exit::Exit::Success.into() };
        }
    };
    match commands::run(cli) {
        Ok(exit) => exit.into(),
        Err(error) => {
            exit::report(&error);
            exit::Exit::Error.into()
        }
    }
}

//! `docs/reference/cli.md`: the long help of every command.

use std::fmt::Write as _;

use clap::{Command, CommandFactory};

use crate::cli::Cli;

const WIDTH_COLUMNS: usize = 100;

const OPENING: &str = "\
# The command line

What `tollgate` and each of its commands say with `--help`. This page is written by the program; do not edit it. The
flags of `serve` are explained together with the keys of the configuration file in
[configuration.md](configuration.md).

Decisions are told apart by the exit code, so that a script can branch on it: see the end of the first section.
";

#[test]
fn the_page_of_the_command_line_is_fresh() {
    let mut page = OPENING.to_owned();
    describe(&mut page, uniform(Cli::command()), "tollgate");
    super::is_fresh("cli.md", &page);
}

/// The same on every terminal and in every environment.
fn uniform(command: Command) -> Command {
    let command = command.term_width(WIDTH_COLUMNS).mut_args(|argument| argument.hide_env_values(true));
    command.mut_subcommands(uniform)
}

fn describe(page: &mut String, command: Command, name: &str) {
    let mut named = command.bin_name(name);
    let help = named.render_long_help().to_string();
    let lines: Vec<_> = help.lines().map(str::trim_end).collect();
    write!(page, "\n## {name}\n\n```text\n{}\n```\n", lines.join("\n").trim_end()).unwrap();
    for below in named.get_subcommands().filter(|below| below.get_name() != "help") {
        describe(page, below.clone(), &format!("{name} {}", below.get_name()));
    }
}

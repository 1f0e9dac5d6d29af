//! Exit codes, so that a script can tell a refusal from a failure.

use std::process::ExitCode;

use tollgate_journal::OpenError;

use crate::{out, style};

/// How a command ends. The numbers are a contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done; for `evaluate`: ALLOW.
    Success = 0,
    /// It could not be done; for `evaluate`: there is no decision.
    Error = 1,
    /// The command line is wrong.
    Usage = 2,
    /// `evaluate`: DENY.
    Denied = 3,
    /// `evaluate`: FAILED, a hook could not decide.
    Failed = 4,
    /// `policy check`: the bundle has errors.
    Findings = 5,
}

/// What `--help` says of them.
pub(crate) const HELP: &str = "\
Exit codes:
  0  done; evaluate: ALLOW
  1  it could not be done; evaluate: there is no decision
  2  the command line is wrong
  3  evaluate: DENY
  4  evaluate: FAILED, a hook could not decide
  5  policy check: the bundle has errors";

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Prints an error with its causes.
pub(crate) fn report(error: &anyhow::Error) {
    out::complain(format_args!("{} {error}", style::paint(style::ERROR, "error:")));
    for cause in error.chain().skip(1) {
        out::complain(format_args!("  because: {cause}"));
    }
    if let Some(open) = error.downcast_ref::<OpenError>() {
        out::complain(format_args!("{} {}", style::paint(style::GOOD, "help:"), open.hint()));
    }
}

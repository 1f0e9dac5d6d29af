//! Standard output and error. A reader that has gone is no failure: what a command comes to is told by
//! its exit code as well, and `tollgate journal show … | head` ends well.

use std::{
    fmt::Display,
    io::{self, ErrorKind, Write},
};

/// Writes a text to standard output.
pub(crate) fn text(text: impl Display) -> io::Result<()> {
    let mut out = anstream::stdout();
    match write!(out, "{text}").and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// Writes a text and ends its line.
pub(crate) fn line(line: impl Display) -> io::Result<()> {
    text(format_args!("{line}\n"))
}

/// Writes a line to standard error, as far as anybody can read it.
pub(crate) fn complain(line: impl Display) {
    drop(writeln!(anstream::stderr(), "{line}"));
}

//! Colours, which `anstream` drops where the output is no terminal.

use anstyle::{AnsiColor, Style};

pub(crate) const GOOD: Style = AnsiColor::Green.on_default().bold();
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();
pub(crate) const WARN: Style = AnsiColor::Yellow.on_default().bold();
pub(crate) const ERROR: Style = BAD;
pub(crate) const DIM: Style = AnsiColor::BrightBlack.on_default();
pub(crate) const STRONG: Style = Style::new().bold();

/// A text in a style.
pub(crate) fn paint(style: Style, text: impl std::fmt::Display) -> String {
    format!("{}{text}{}", style.render(), style.render_reset())
}

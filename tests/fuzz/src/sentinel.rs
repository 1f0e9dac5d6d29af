//! A text that must not come out again, and the search for it.

use std::fmt::Debug;

/// Put where values go that must never be told.
pub(crate) const SENTINEL: &str = "sentinel-7d1f0c";

/// Whether a fuzzer has found it out: from then on it proves nothing.
pub(crate) fn is_known_to(input: &[u8]) -> bool {
    input.windows(SENTINEL.len()).any(|window| window == SENTINEL.as_bytes())
}

/// Nothing of the value is in a text.
#[track_caller]
pub(crate) fn assert_untold(text: &str) {
    assert!(!text.contains(SENTINEL), "a value was told: {text}");
}

/// Nothing of the value is in bytes that leave the process.
#[track_caller]
pub(crate) fn assert_unwritten(bytes: &[u8]) {
    assert_untold(&String::from_utf8_lossy(bytes));
}

/// Nothing of the value is in what a developer's log would print.
#[track_caller]
pub(crate) fn assert_unprinted(value: &impl Debug) {
    assert_untold(&format!("{value:?}"));
}

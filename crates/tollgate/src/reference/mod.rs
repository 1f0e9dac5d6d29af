//! The reference pages under `docs/reference` that this program writes of itself, compared with what is
//! committed; `TOLLGATE_REVIEW=write` writes them anew.

mod command_line;
mod configuration;

use std::{fs, path::Path};

/// Fails where a committed page is not what the program says now; writes it where that is asked for.
fn is_fresh(page: &str, now: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference").join(page);
    #[expect(clippy::disallowed_methods, reason = "the one place where tests are told to write what they would compare")]
    if std::env::var("TOLLGATE_REVIEW").is_ok_and(|mode| mode == "write") {
        fs::write(&path, now).unwrap();
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    let stale = committed.lines().zip(now.lines()).find(|(committed, now)| committed != now);
    assert!(
        committed == now,
        "docs/reference/{page} is stale; renew it with `TOLLGATE_REVIEW=write cargo test -p tollgate reference`. \
         First difference: {stale:#?}"
    );
}

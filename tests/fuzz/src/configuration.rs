//! The sidecar's configuration file: what is accepted means the same when it is written and read again, and what
//! the whole must keep is kept.

use crate::configuration::{check::check as check_whole, file::Config};

// The program is no library; these of its files are all that reads the text.
#[path = "../../../crates/tollgate/src/config/check.rs"]
mod check;
#[path = "../../../crates/tollgate/src/config/file.rs"]
mod file;
#[path = "../../../crates/tollgate/src/config/text.rs"]
mod text;

/// Checks the reader of the configuration with these bytes as its file.
pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let config = match Config::parse(text) {
        Ok(config) => config,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let written = serde_saphyr::to_string(&config).unwrap();
    let again = Config::parse(&written).unwrap_or_else(|error| panic!("{error}\n{written}"));
    assert_eq!(again, config, "{written}");
    if check_whole(&config).is_ok() {
        assert!(!config.data_listeners().is_empty());
        assert!(config.decision.default_timeout.0 <= config.decision.max_timeout.0);
        assert!(!config.decision.validity.0.is_zero());
        assert!(config.limits.in_flight > 0);
    }
    assert!(!config.identity_key_path().as_os_str().is_empty() || config.journal.identity_key_file.is_some());
    if let (Ok(path), Some(url)) = (config.journal_path(), &config.journal.url) {
        assert_eq!(format!("sqlite:{}", path.display()), *url, "the journal is elsewhere than its URL says");
    }
}

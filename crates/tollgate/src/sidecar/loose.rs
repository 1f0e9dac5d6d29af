//! Keys that loosen a rule: announced at every start, and put on record.

use tollgate_domain::WhenNoHookMatches;
use tollgate_engine::LooseKey;

use crate::config::{Config, ListenerConfig, Place};

/// Permission bits of others on a Unix socket; to connect is to write.
const OTHERS_WRITE: u32 = 0o002;

/// The loose keys that are in force.
pub(crate) fn keys(config: &Config) -> Vec<LooseKey> {
    let mut loose = Vec::new();
    let mut note = |key: String, value: String| loose.push(LooseKey { key, value });
    if config.policy.when_no_hook_matches == WhenNoHookMatches::Allow {
        note("policy.when_no_hook_matches".to_owned(), "allow".to_owned());
    }
    for (door, listeners) in [("data", config.data_listeners()), ("read", config.read_listeners())] {
        for listener in &listeners {
            let place = String::from(listener.listen.clone());
            for (key, value) in listener_keys(listener, door) {
                note(format!("listeners.{door}[{place}].{key}"), value);
            }
        }
    }
    loose
}

fn listener_keys(listener: &ListenerConfig, door: &str) -> Vec<(&'static str, String)> {
    let mut keys = Vec::new();
    if listener.trust_claims {
        keys.push(("trust_claims", "true".to_owned()));
    }
    match &listener.listen {
        Place::Tcp(address) if !address.ip().is_loopback() || door == "read" => keys.push(("listen", address.to_string())),
        Place::Tcp(_) | Place::Unix(_) => {}
    }
    if let Some(mode) = listener.mode.filter(|mode| mode.0 & OTHERS_WRITE != 0 && listener.peer_uids.is_empty()) {
        keys.push(("mode", mode.into()));
    }
    keys
}

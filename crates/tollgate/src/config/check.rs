//! What must hold of a configuration as a whole, whatever it was put together from.

use anyhow::{Result, ensure};

use super::{
    file::{Config, ListenerConfig},
    text::Place,
};

/// Largest count of any key; far above what a machine could use.
const COUNT_MAX: usize = 16_777_216;

/// Refuses what no sidecar should run by.
pub(crate) fn check(config: &Config) -> Result<()> {
    let counts = [
        ("limits.in_flight", config.limits.in_flight),
        ("limits.in_flight_kib", config.limits.in_flight_kib as usize),
        ("journal.max_queue", config.journal.max_queue),
    ];
    for (key, count) in counts {
        ensure!((1..=COUNT_MAX).contains(&count), "{key} is {count}: write 1 to {COUNT_MAX}");
    }
    ensure!(
        config.decision.default_timeout.0 <= config.decision.max_timeout.0,
        "decision.default_timeout is above decision.max_timeout: lower it, or raise the other"
    );
    let (data, read) = (config.data_listeners(), config.read_listeners());
    ensure!(!data.is_empty(), "listeners.data is empty, so that nobody could ask: name at least one place");
    for listener in data.iter().chain(&read) {
        check_listener(listener)?;
    }
    for listener in &read {
        let place = String::from(listener.listen.clone());
        ensure!(
            listener.agents.is_empty() && !listener.trust_claims,
            "the listener {place} is for reading: agents and trust_claims are for the data door"
        );
    }
    Ok(())
}

fn check_listener(listener: &ListenerConfig) -> Result<()> {
    let socket_keys = listener.mode.is_some() || listener.group.is_some() || !listener.peer_uids.is_empty();
    match &listener.listen {
        Place::Tcp(address) => {
            ensure!(!socket_keys, "the listener {address} is TCP: mode, group and peer_uids are for Unix sockets");
        }
        Place::Unix(_) => {}
    }
    Ok(())
}

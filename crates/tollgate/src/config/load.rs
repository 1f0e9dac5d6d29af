//! Loading: the file, then the environment and flags over it, then what must hold of the whole.

use std::{fs, path::Path};

use anyhow::{Context, Result, bail, ensure};
use clap::CommandFactory;

use super::{
    file::{Config, ListenerConfig},
    overrides::Overrides,
    text::Place,
};
use crate::{cli::Cli, world};

/// Largest count of any key; far above what a machine could use.
const COUNT_MAX: usize = 16_777_216;

/// The configuration that a sidecar runs by.
pub(crate) fn load(overrides: Overrides) -> Result<Config> {
    refuse_unknown_variables()?;
    let mut config = match &overrides.config {
        Some(path) => read(path)?,
        None => Config::default(),
    };
    overrides.apply(&mut config);
    check(&config)?;
    Ok(config)
}

fn read(path: &Path) -> Result<Config> {
    let text = fs::read_to_string(path).with_context(|| format!("cannot read the configuration {}", path.display()))?;
    if text.trim().is_empty() {
        return Ok(Config::default());
    }
    serde_saphyr::from_str(&text).with_context(|| format!("the configuration {} is wrong", path.display()))
}

/// A misspelt variable must not be a rule that silently does not hold.
///
/// Kubernetes gives every container the addresses of the services of its namespace, in variables such as
/// `TOLLGATE_SERVICE_HOST` for one called `tollgate`; those are nobody's spelling.
fn refuse_unknown_variables() -> Result<()> {
    let cli = Cli::command();
    let known: Vec<String> = std::iter::once(&cli)
        .chain(cli.get_subcommands())
        .chain(cli.get_subcommands().flat_map(clap::Command::get_subcommands))
        .flat_map(clap::Command::get_arguments)
        .filter_map(|argument| argument.get_env()?.to_str().map(ToOwned::to_owned))
        .collect();
    for name in world::variables_with("TOLLGATE_") {
        if !known.contains(&name) && !is_service_link(&name) {
            bail!("the environment sets {name}, which is no key of Tollgate's; `tollgate serve --help` lists them");
        }
    }
    Ok(())
}

/// <https://kubernetes.io/docs/concepts/services-networking/service/#environment-variables>
fn is_service_link(name: &str) -> bool {
    let ends = ["_SERVICE_HOST", "_PORT"].iter().any(|end| name.ends_with(end));
    ends || ["_SERVICE_PORT", "_TCP", "_UDP", "_SCTP"].iter().any(|part| name.contains(part))
}

fn check(config: &Config) -> Result<()> {
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

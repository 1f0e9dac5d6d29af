//! Loading: the file, then the environment and flags over it, then what must hold of the whole.

use std::{fs, path::Path};

use anyhow::{Context, Result, bail};
use clap::CommandFactory;

use super::{check::check, file::Config, overrides::Overrides};
use crate::{cli::Cli, world};

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
    Config::parse(&text).with_context(|| format!("the configuration {} is wrong", path.display()))
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

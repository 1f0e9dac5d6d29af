//! Opening listeners from their configuration.

use anyhow::{Context, Result, ensure};
use nix::unistd::Group;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tollgate_domain::Rights;
use tollgate_server::{Door, Listen, Services, SocketAccess, serve};

use crate::config::{ListenerConfig, Place};

/// Opens every listener of a door and serves it; answers the addresses as clients write them.
pub(crate) async fn open(
    services: &Services,
    door: Door,
    configs: Vec<ListenerConfig>,
    stop: &CancellationToken,
    tasks: &TaskTracker,
) -> Result<Vec<String>> {
    let mut addresses = Vec::new();
    for config in configs {
        let bound = listen(&config)?.bind().await?;
        let address = bound.address();
        addresses.push(address.clone());
        let serving = serve(services.clone(), door, rights(config), bound, stop.clone());
        tasks.spawn(async move {
            if let Err(error) = serving.await {
                tracing::error!(address, error = &error as &dyn std::error::Error, "a listener failed");
            }
        });
    }
    Ok(addresses)
}

fn listen(config: &ListenerConfig) -> Result<Listen> {
    Ok(match &config.listen {
        Place::Tcp(address) => Listen::Tcp(*address),
        Place::Unix(path) => {
            let default = SocketAccess::default();
            let access = SocketAccess {
                mode: config.mode.map_or(default.mode, |mode| mode.0),
                group: config.group.as_deref().map(group_id).transpose()?,
                peer_uids: config.peer_uids.clone(),
            };
            Listen::Unix { path: path.clone(), access }
        }
    })
}

fn group_id(group: &str) -> Result<u32> {
    if let Ok(number) = group.parse() {
        // To the system call that changes groups, this number means "leave it as it is".
        ensure!(number != u32::MAX, "the group {number} is none: write a group's name or number");
        return Ok(number);
    }
    let found = Group::from_name(group).with_context(|| format!("cannot look up the group {group:?}"))?;
    Ok(found.with_context(|| format!("there is no group {group:?}: make it, or write its number"))?.gid.as_raw())
}

fn rights(config: ListenerConfig) -> Rights {
    let ListenerConfig { tenants, workspaces, agents, trust_claims, .. } = config;
    Rights { tenants, workspaces, agents, trust_claims }
}

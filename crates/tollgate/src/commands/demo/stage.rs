//! The demo's sidecar and its bundle on disk.

use std::{
    fs,
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use include_dir::{Dir, include_dir};
use tollgate_client::{connect, policy, v1};
use tollgate_engine::Readiness;

use crate::{
    config::{Config, ListenerConfig, Place},
    sidecar::{Sidecar, init_telemetry},
};

/// The sample bundle, so that the demo needs nothing beside the program.
static SAMPLE: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../policies");

/// Where the sample bundle says how much an agent may refund by itself, and the number that the demo lowers.
const REFUND_POLICY: &str = "hooks/payments-limit/refunds.cedar";
const REFUND_LIMIT: &str = "decimal(\"100.00\")";
const LOWER_REFUND_LIMIT: &str = "decimal(\"25.00\")";

/// How long a generation may take to become active.
const ACTIVATION_TIMEOUT: Duration = Duration::from_mins(1);
/// How often the sidecar is asked for its generation meanwhile.
const ACTIVATION_POLL: Duration = Duration::from_millis(50);

pub(super) struct Stage {
    sidecar: Sidecar,
    bundle: PathBuf,
}

impl Stage {
    /// Writes the bundle, starts the sidecar and waits until it serves.
    pub(super) async fn build(directory: &Path) -> Result<Self> {
        let bundle = directory.join("policies");
        if bundle.exists() {
            fs::remove_dir_all(&bundle)
                .with_context(|| format!("cannot renew the bundle of an earlier demo in {}", bundle.display()))?;
        }
        fs::create_dir_all(&bundle).with_context(|| format!("cannot make {}", bundle.display()))?;
        SAMPLE.extract(&bundle).with_context(|| format!("cannot write the sample bundle to {}", bundle.display()))?;
        let config = config(directory, &bundle);
        init_telemetry(&config)?;
        let sidecar = Sidecar::start(&config).await?;
        let mut readiness = sidecar.engine.readiness();
        let serving = readiness.wait_for(|readiness| *readiness == Readiness::Serving);
        tokio::time::timeout(ACTIVATION_TIMEOUT, serving).await.context("the sample bundle was not activated in time")??;
        Ok(Self { sidecar, bundle })
    }

    /// The data door, for agents.
    pub(super) fn data(&self) -> &str {
        self.sidecar.data.first().map_or("", String::as_str)
    }

    /// The read door, for operators.
    pub(super) fn read(&self) -> &str {
        self.sidecar.read.first().map_or("", String::as_str)
    }

    /// The bundle's directory.
    pub(super) fn bundle(&self) -> &Path {
        &self.bundle
    }

    /// The number of the generation that decides, as the read door answers it.
    pub(super) async fn generation(&self) -> Result<u64> {
        let status = policy(connect(self.read()).await?).get_status(v1::GetStatusRequest {}).await?.into_inner();
        let active = status.active.and_then(|active| active.generation);
        Ok(active.context("no generation is active")?.number)
    }

    /// Lowers the refund limit as a policy author would, by editing the file, and waits for the generation.
    pub(super) async fn lower_refund_limit(&self) -> Result<u64> {
        let before = self.generation().await?;
        let path = self.bundle.join(REFUND_POLICY);
        let policy = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        ensure!(policy.contains(REFUND_LIMIT), "the sample bundle's refund limit is no longer {REFUND_LIMIT}");
        fs::write(&path, policy.replacen(REFUND_LIMIT, LOWER_REFUND_LIMIT, 1))?;
        let raised = async {
            loop {
                let now = self.generation().await?;
                if now > before {
                    return Ok(now);
                }
                tokio::time::sleep(ACTIVATION_POLL).await;
            }
        };
        tokio::time::timeout(ACTIVATION_TIMEOUT, raised).await.context("the changed bundle was not activated in time")?
    }

    /// Ends the sidecar in good order.
    pub(super) async fn take_down(self) {
        self.sidecar.shut_down().await;
    }
}

fn config(directory: &Path, bundle: &Path) -> Config {
    let mut config = Config { state_dir: directory.join("state"), ..Config::default() };
    bundle.clone_into(&mut config.policy.directory);
    let free_port = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    config.listeners.data = Some(vec![ListenerConfig::at(Place::Tcp(free_port))]);
    "error".clone_into(&mut config.log.level);
    config
}

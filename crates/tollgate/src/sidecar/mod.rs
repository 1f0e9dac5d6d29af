//! A running sidecar: the adapters that a configuration asks for, put together, and taken down again.

mod identity_key;
mod listeners;
mod loose;
mod telemetry;

use std::{sync::Arc, time::Duration};

use anyhow::{Context, Result};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tollgate_domain::{Clock, DecisionRules, HookDefinition, IdentityKey, Reader, SidecarId, Store};
use tollgate_engine::{Engine, EngineOptions, EngineParts};
use tollgate_journal::{SqliteJournal, SqliteOptions};
use tollgate_policy::{DirectoryOptions, DirectorySource};
use tollgate_server::{Admission, Door, EvaluateLimits, Services};

use crate::{
    config::{Config, JournalConfig},
    world::{SystemClock, fresh_id, fresh_invocation},
};

pub(crate) use telemetry::init as init_telemetry;

/// How long the facts of a call may take whose caller no longer waits.
const CANCELLED_RECORD_WAIT: Duration = Duration::from_secs(2);

/// A sidecar that serves.
pub(crate) struct Sidecar {
    pub(crate) engine: Arc<Engine>,
    /// Where the data door listens, as a client writes it.
    pub(crate) data: Vec<String>,
    /// Where the read door listens.
    pub(crate) read: Vec<String>,
    loose: Vec<tollgate_engine::LooseKey>,
    id: SidecarId,
    stop_listening: CancellationToken,
    listening: TaskTracker,
    drain: Duration,
}

impl Sidecar {
    /// Opens the journal, the ports and the source. Nothing is approved until a generation is active.
    pub(crate) async fn start(config: &Config) -> Result<Self> {
        let key = identity_key::load_or_create(&config.identity_key_path(), &config.journal_path()?)?;
        let journal = Arc::new(open_journal(config, &key).await?);
        let sidecar = journal.sidecar().clone();
        let store: Arc<dyn Store> = Arc::clone(&journal) as Arc<dyn Store>;
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let parts = EngineParts {
            store,
            clock: Arc::clone(&clock),
            fresh_invocation: Box::new(fresh_invocation),
            key,
            local_hooks: local_hooks(config)?,
        };
        let engine = Engine::new(parts, engine_options(config, &sidecar));
        let loose = loose::keys(config);
        let interrupted = engine.start(&loose).await.context("the journal did not take the start of the sidecar")?;
        if interrupted > 0 {
            tracing::warn!(interrupted, "closed invocations that an earlier process left undecided");
        }
        let services = Services {
            engine: Arc::clone(&engine),
            reader: journal as Arc<dyn Reader>,
            admission: Admission::new(config.limits.in_flight, config.limits.in_flight_kib, config.limits.per_second),
            limits: EvaluateLimits {
                default_timeout: config.decision.default_timeout.0,
                max_timeout: config.decision.max_timeout.0,
            },
            sidecar: sidecar.clone(),
        };
        let (stop_listening, listening) = (CancellationToken::new(), TaskTracker::new());
        let door = async |door, configs| listeners::open(&services, door, configs, &stop_listening, &listening).await;
        let data = door(Door::Data, config.data_listeners()).await?;
        let read = door(Door::Read, config.read_listeners()).await?;
        if let Some(address) = config.metrics.listen {
            telemetry::serve_metrics(address, &engine)?;
        }
        let source_options = DirectoryOptions { settle: config.policy.settle.0, ..DirectoryOptions::default() };
        engine.keep_generations(Box::new(DirectorySource::new(config.policy.directory.clone(), source_options, clock)));
        let drain = config.shutdown.drain.0;
        Ok(Self { engine, data, read, loose, id: sidecar, stop_listening, listening, drain })
    }

    /// One line that says what is served, from where, and what is lax.
    pub(crate) fn announce(&self, config: &Config) {
        let lax: Vec<String> = self.loose.iter().map(|loose| format!("{}={}", loose.key, loose.value)).collect();
        let lax = if lax.is_empty() { "nothing".to_owned() } else { lax.join(" ") };
        tracing::info!(
            sidecar = %self.id,
            data = self.data.join(" "),
            read = self.read.join(" "),
            policy = %config.policy.directory.display(),
            state = %config.state_dir.display(),
            lax,
            "tollgate {} serves",
            env!("CARGO_PKG_VERSION")
        );
        for loose in &self.loose {
            tracing::warn!(key = loose.key, value = loose.value, "this configuration is lax");
        }
    }

    /// `NOT_SERVING` first, then no new connections, then what is in flight, then the journal.
    pub(crate) async fn shut_down(self) {
        self.engine.drain();
        self.stop_listening.cancel();
        self.listening.close();
        if tokio::time::timeout(self.drain, self.listening.wait()).await.is_err() {
            tracing::warn!("some connections did not end within the drain time and are closed");
        }
        self.engine.shut_down().await;
    }
}

async fn open_journal(config: &Config, key: &IdentityKey) -> Result<SqliteJournal> {
    let path = config.journal_path()?;
    let sidecar = match &config.sidecar_id {
        Some(id) => id.clone(),
        None => SidecarId::parse(&fresh_id()).context("a fresh id is no id")?,
    };
    let JournalConfig { max_queue, .. } = config.journal;
    let identity = (key.id(), key.check_value());
    let options = SqliteOptions { max_queue, ..SqliteOptions::new(&path, identity, sidecar) };
    let journal = SqliteJournal::open(options).await?;
    tracing::info!(path = %path.display(), recovery = ?journal.recovery(), "opened the journal");
    Ok(journal)
}

fn local_hooks(config: &Config) -> Result<Vec<Arc<HookDefinition>>> {
    let Some(directory) = &config.policy.local_hooks else { return Ok(Vec::new()) };
    let hooks = tollgate_policy::load_local(directory).map_err(|report| {
        anyhow::anyhow!("the local hooks in {} have findings:\n{}", directory.display(), report.render(false))
    })?;
    Ok(hooks.into_iter().map(Arc::new).collect())
}

fn engine_options(config: &Config, sidecar: &SidecarId) -> EngineOptions {
    EngineOptions {
        rules: DecisionRules {
            when_no_hook_matches: config.policy.when_no_hook_matches,
            validity_us: u64::try_from(config.decision.validity.0.as_micros()).unwrap_or(u64::MAX),
            sidecar: sidecar.clone(),
        },
        journal_max_wait: config.journal.max_wait.0,
        cancelled_record_wait: CANCELLED_RECORD_WAIT,
        keep_failure_messages: config.journal.keep_failure_messages,
        version: env!("CARGO_PKG_VERSION").to_owned(),
    }
}

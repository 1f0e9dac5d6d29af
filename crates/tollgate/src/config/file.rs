//! The configuration file. Every key has a default; unknown keys are errors.

use std::{num::NonZeroU32, path::PathBuf, time::Duration};

use serde::{Deserialize, Serialize};
use tollgate_domain::{AgentId, SidecarId, TenantId, WhenNoHookMatches, WorkspaceId};

use super::text::{Mode, Place, Span};

/// The whole configuration.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {
    /// Where the sidecar keeps what is its own: the journal, its key, and its sockets.
    pub(crate) state_dir: PathBuf,
    /// The name of this sidecar in facts, for a new journal; an older one keeps its own.
    pub(crate) sidecar_id: Option<SidecarId>,
    pub(crate) journal: JournalConfig,
    pub(crate) policy: PolicyConfig,
    pub(crate) decision: DecisionConfig,
    pub(crate) limits: LimitsConfig,
    pub(crate) listeners: ListenersConfig,
    pub(crate) metrics: MetricsConfig,
    pub(crate) log: LogConfig,
    pub(crate) shutdown: ShutdownConfig,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct JournalConfig {
    /// `sqlite:PATH`.
    pub(crate) url: Option<String>,
    /// The key that derived tool call ids are made with; made with mode 0600 at the first start.
    pub(crate) identity_key_file: Option<PathBuf>,
    /// How long one wait for the journal may last, whatever the caller's deadline.
    pub(crate) max_wait: Span,
    /// Most appends that may wait.
    pub(crate) max_queue: usize,
    /// Whether outcomes keep the messages of provider failures.
    pub(crate) keep_failure_messages: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct PolicyConfig {
    /// The bundle.
    pub(crate) directory: PathBuf,
    /// How long the directory must be unchanged before it counts.
    pub(crate) settle: Span,
    /// A bundle of hooks of this sidecar's own, loaded once at start.
    pub(crate) local_hooks: Option<PathBuf>,
    /// What decides where no hook says anything.
    pub(crate) when_no_hook_matches: WhenNoHookMatches,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct DecisionConfig {
    /// How long an ALLOW may be acted on.
    pub(crate) validity: Span,
    /// How long a decision may take for a caller without a deadline.
    pub(crate) default_timeout: Span,
    /// How long a decision may take for any caller.
    pub(crate) max_timeout: Span,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct LimitsConfig {
    /// Most calls in flight.
    pub(crate) in_flight: usize,
    /// Most KiB of arguments in flight.
    pub(crate) in_flight_kib: u32,
    /// Most calls in a second.
    pub(crate) per_second: Option<NonZeroU32>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ListenersConfig {
    /// The data door; by default 127.0.0.1:7433 and data.sock in the state directory.
    pub(crate) data: Option<Vec<ListenerConfig>>,
    /// The read door; by default read.sock in the state directory.
    pub(crate) read: Option<Vec<ListenerConfig>>,
}

/// One listener: where, who may connect, and whom they may speak for.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListenerConfig {
    /// `ADDRESS:PORT` or `unix:PATH`.
    pub(crate) listen: Place,
    /// For a Unix socket, its mode.
    #[serde(default)]
    pub(crate) mode: Option<Mode>,
    /// For a Unix socket, its group, by name or number.
    #[serde(default)]
    pub(crate) group: Option<String>,
    /// For a Unix socket, user ids of peers that may connect; empty means all whom the mode lets in.
    #[serde(default)]
    pub(crate) peer_uids: Vec<u32>,
    /// Tenants that callers may speak for; empty means any.
    #[serde(default)]
    pub(crate) tenants: Vec<TenantId>,
    /// Workspaces that callers may speak for; empty means any.
    #[serde(default)]
    pub(crate) workspaces: Vec<WorkspaceId>,
    /// Agents that callers may speak as; empty means any.
    #[serde(default)]
    pub(crate) agents: Vec<AgentId>,
    /// Whether claimed groups, attributes and approvals of these callers reach policy.
    #[serde(default)]
    pub(crate) trust_claims: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct MetricsConfig {
    /// Where Prometheus scrapes; no metrics are served when absent.
    pub(crate) listen: Option<std::net::SocketAddr>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct LogConfig {
    /// `text` or `json`.
    pub(crate) format: LogFormat,
    /// A level, or directives such as `info,tollgate_policy=debug`.
    pub(crate) level: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogFormat {
    /// Lines for people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ShutdownConfig {
    /// How long calls in flight may take to finish.
    pub(crate) drain: Span,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            state_dir: PathBuf::from(".tollgate"),
            sidecar_id: None,
            journal: JournalConfig::default(),
            policy: PolicyConfig::default(),
            decision: DecisionConfig::default(),
            limits: LimitsConfig::default(),
            listeners: ListenersConfig::default(),
            metrics: MetricsConfig::default(),
            log: LogConfig::default(),
            shutdown: ShutdownConfig::default(),
        }
    }
}

impl Default for JournalConfig {
    fn default() -> Self {
        Self {
            url: None,
            identity_key_file: None,
            max_wait: Span(Duration::from_secs(5)),
            max_queue: 4_096,
            keep_failure_messages: true,
        }
    }
}

impl Default for PolicyConfig {
    fn default() -> Self {
        Self {
            directory: PathBuf::from("policies"),
            settle: Span(Duration::from_millis(500)),
            local_hooks: None,
            when_no_hook_matches: WhenNoHookMatches::Deny,
        }
    }
}

impl Default for DecisionConfig {
    fn default() -> Self {
        Self {
            validity: Span(Duration::from_mins(1)),
            default_timeout: Span(Duration::from_secs(10)),
            max_timeout: Span(Duration::from_mins(1)),
        }
    }
}

impl Default for LimitsConfig {
    fn default() -> Self {
        Self { in_flight: 1_024, in_flight_kib: 32_768, per_second: None }
    }
}

impl Default for LogConfig {
    fn default() -> Self {
        Self { format: LogFormat::Text, level: "info".to_owned() }
    }
}

impl Default for ShutdownConfig {
    fn default() -> Self {
        Self { drain: Span(Duration::from_secs(10)) }
    }
}

impl ListenerConfig {
    /// A listener with nothing but its place.
    pub(crate) fn at(listen: Place) -> Self {
        Self {
            listen,
            mode: None,
            group: None,
            peer_uids: Vec::new(),
            tenants: Vec::new(),
            workspaces: Vec::new(),
            agents: Vec::new(),
            trust_claims: false,
        }
    }
}

impl Config {
    /// A configuration from its text; an empty one has no key, and every key its default.
    pub(crate) fn parse(text: &str) -> Result<Self, serde_saphyr::Error> {
        if text.trim().is_empty() { Ok(Self::default()) } else { serde_saphyr::from_str(text) }
    }

    /// The journal's file.
    pub(crate) fn journal_path(&self) -> anyhow::Result<PathBuf> {
        match &self.journal.url {
            None => Ok(self.state_dir.join("journal.db")),
            Some(url) => match url.strip_prefix("sqlite:") {
                // Names that SQLite itself would read otherwise: in memory, or with parameters.
                Some(path) if !path.is_empty() && !path.starts_with(':') && !path.contains('?') => Ok(PathBuf::from(path)),
                _ => anyhow::bail!("journal.url is {url:?}: write sqlite:PATH; a journal is a file, and its path has no '?'"),
            },
        }
    }

    /// The identity key's file.
    pub(crate) fn identity_key_path(&self) -> PathBuf {
        self.journal.identity_key_file.clone().unwrap_or_else(|| self.state_dir.join("identity.key"))
    }

    /// The listeners of the data door.
    pub(crate) fn data_listeners(&self) -> Vec<ListenerConfig> {
        let default = || {
            let loopback = std::net::SocketAddr::from((std::net::Ipv4Addr::LOCALHOST, 7433));
            vec![ListenerConfig::at(Place::Tcp(loopback)), ListenerConfig::at(Place::Unix(self.state_dir.join("data.sock")))]
        };
        self.listeners.data.clone().unwrap_or_else(default)
    }

    /// The listeners of the read door.
    pub(crate) fn read_listeners(&self) -> Vec<ListenerConfig> {
        let default = || vec![ListenerConfig::at(Place::Unix(self.state_dir.join("read.sock")))];
        self.listeners.read.clone().unwrap_or_else(default)
    }
}

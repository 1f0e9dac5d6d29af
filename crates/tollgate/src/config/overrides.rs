//! The keys that the environment and flags can set: every scalar one, and the places to listen.

use std::{net::SocketAddr, num::NonZeroU32, path::PathBuf};

use clap::Args;
use tollgate_domain::{SidecarId, WhenNoHookMatches};

use super::{
    file::{Config, ListenerConfig, LogFormat},
    text::{Place, Span},
};

/// Flags of `serve`, each with the environment variable of the same name. A flag is stronger than its
/// variable, and a variable than the file.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Overrides {
    /// The configuration file, YAML.
    #[arg(long, env = "TOLLGATE_CONFIG", value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Where the sidecar keeps its journal, key and sockets [default: .tollgate].
    #[arg(long, env = "TOLLGATE_STATE_DIR", value_name = "DIR")]
    pub(crate) state_dir: Option<PathBuf>,
    /// The name of this sidecar in facts, for a new journal [default: a fresh UUID].
    #[arg(long, env = "TOLLGATE_SIDECAR_ID", value_name = "ID")]
    pub(crate) sidecar_id: Option<SidecarId>,
    /// The journal: sqlite:PATH [default: journal.db in the state directory].
    #[arg(long, env = "TOLLGATE_JOURNAL_URL", value_name = "URL")]
    pub(crate) journal_url: Option<String>,
    /// The key that derived tool call ids are made with [default: identity.key in the state directory].
    #[arg(long, env = "TOLLGATE_JOURNAL_IDENTITY_KEY_FILE", value_name = "FILE")]
    pub(crate) journal_identity_key_file: Option<PathBuf>,
    /// How long one wait for the journal may last [default: 5s].
    #[arg(long, env = "TOLLGATE_JOURNAL_MAX_WAIT", value_name = "DURATION")]
    pub(crate) journal_max_wait: Option<Span>,
    /// Most appends that may wait for the journal [default: 4096].
    #[arg(long, env = "TOLLGATE_JOURNAL_MAX_QUEUE", value_name = "COUNT")]
    pub(crate) journal_max_queue: Option<usize>,
    /// Whether outcomes keep the messages of provider failures [default: true].
    #[arg(long, env = "TOLLGATE_JOURNAL_KEEP_FAILURE_MESSAGES", value_name = "BOOL")]
    pub(crate) journal_keep_failure_messages: Option<bool>,
    /// The bundle's directory [default: policies].
    #[arg(long = "policy-dir", env = "TOLLGATE_POLICY_DIR", value_name = "DIR")]
    pub(crate) policy_directory: Option<PathBuf>,
    /// How long the directory must be unchanged before it counts [default: 500ms].
    #[arg(long, env = "TOLLGATE_POLICY_SETTLE", value_name = "DURATION")]
    pub(crate) policy_settle: Option<Span>,
    /// A bundle of hooks of this sidecar's own [default: none].
    #[arg(long, env = "TOLLGATE_POLICY_LOCAL_HOOKS", value_name = "DIR")]
    pub(crate) policy_local_hooks: Option<PathBuf>,
    /// What decides where no hook says anything: deny or allow [default: deny].
    #[arg(long, env = "TOLLGATE_POLICY_WHEN_NO_HOOK_MATCHES", value_name = "DECISION", value_parser = when_no_hook_matches)]
    pub(crate) policy_when_no_hook_matches: Option<WhenNoHookMatches>,
    /// How long an ALLOW may be acted on [default: 60s].
    #[arg(long, env = "TOLLGATE_DECISION_VALIDITY", value_name = "DURATION")]
    pub(crate) decision_validity: Option<Span>,
    /// How long a decision may take for a caller without a deadline [default: 10s].
    #[arg(long, env = "TOLLGATE_DECISION_DEFAULT_TIMEOUT", value_name = "DURATION")]
    pub(crate) decision_default_timeout: Option<Span>,
    /// How long a decision may take for any caller [default: 60s].
    #[arg(long, env = "TOLLGATE_DECISION_MAX_TIMEOUT", value_name = "DURATION")]
    pub(crate) decision_max_timeout: Option<Span>,
    /// Most calls in flight [default: 1024].
    #[arg(long, env = "TOLLGATE_LIMITS_IN_FLIGHT", value_name = "COUNT")]
    pub(crate) limits_in_flight: Option<usize>,
    /// Most KiB of arguments in flight [default: 32768].
    #[arg(long, env = "TOLLGATE_LIMITS_IN_FLIGHT_KIB", value_name = "KIB")]
    pub(crate) limits_in_flight_kib: Option<u32>,
    /// Most calls in a second [default: no limit].
    #[arg(long, env = "TOLLGATE_LIMITS_PER_SECOND", value_name = "COUNT")]
    pub(crate) limits_per_second: Option<NonZeroU32>,
    /// Places of the data door, ADDRESS:PORT or unix:PATH [default: 127.0.0.1:7433 and data.sock in the state directory].
    #[arg(long, env = "TOLLGATE_DATA_LISTEN", value_name = "PLACE", value_delimiter = ',')]
    pub(crate) data_listen: Vec<Place>,
    /// Places of the read door [default: read.sock in the state directory].
    #[arg(long, env = "TOLLGATE_READ_LISTEN", value_name = "PLACE", value_delimiter = ',')]
    pub(crate) read_listen: Vec<Place>,
    /// Where Prometheus scrapes, ADDRESS:PORT [default: nowhere].
    #[arg(long, env = "TOLLGATE_METRICS_LISTEN", value_name = "ADDRESS")]
    pub(crate) metrics_listen: Option<SocketAddr>,
    /// How to log: text or json [default: text].
    #[arg(long, env = "TOLLGATE_LOG_FORMAT", value_name = "FORMAT")]
    pub(crate) log_format: Option<LogFormat>,
    /// What to log: a level, or directives such as info or debug [default: info].
    #[arg(long, env = "TOLLGATE_LOG_LEVEL", value_name = "LEVEL")]
    pub(crate) log_level: Option<String>,
    /// How long calls in flight may take to finish at shutdown [default: 10s].
    #[arg(long, env = "TOLLGATE_SHUTDOWN_DRAIN", value_name = "DURATION")]
    pub(crate) shutdown_drain: Option<Span>,
}

impl Overrides {
    /// Puts what is given over a configuration.
    pub(crate) fn apply(self, config: &mut Config) {
        fn put<T>(key: &mut T, value: Option<T>) {
            if let Some(value) = value {
                *key = value;
            }
        }
        fn put_some<T>(key: &mut Option<T>, value: Option<T>) {
            if value.is_some() {
                *key = value;
            }
        }
        fn places(key: &mut Option<Vec<ListenerConfig>>, places: Vec<Place>) {
            if !places.is_empty() {
                *key = Some(places.into_iter().map(ListenerConfig::at).collect());
            }
        }
        put(&mut config.state_dir, self.state_dir);
        put_some(&mut config.sidecar_id, self.sidecar_id);
        put_some(&mut config.journal.url, self.journal_url);
        put_some(&mut config.journal.identity_key_file, self.journal_identity_key_file);
        put(&mut config.journal.max_wait, self.journal_max_wait);
        put(&mut config.journal.max_queue, self.journal_max_queue);
        put(&mut config.journal.keep_failure_messages, self.journal_keep_failure_messages);
        put(&mut config.policy.directory, self.policy_directory);
        put(&mut config.policy.settle, self.policy_settle);
        put_some(&mut config.policy.local_hooks, self.policy_local_hooks);
        put(&mut config.policy.when_no_hook_matches, self.policy_when_no_hook_matches);
        put(&mut config.decision.validity, self.decision_validity);
        put(&mut config.decision.default_timeout, self.decision_default_timeout);
        put(&mut config.decision.max_timeout, self.decision_max_timeout);
        put(&mut config.limits.in_flight, self.limits_in_flight);
        put(&mut config.limits.in_flight_kib, self.limits_in_flight_kib);
        put_some(&mut config.limits.per_second, self.limits_per_second);
        places(&mut config.listeners.data, self.data_listen);
        places(&mut config.listeners.read, self.read_listen);
        put_some(&mut config.metrics.listen, self.metrics_listen);
        put(&mut config.log.format, self.log_format);
        put(&mut config.log.level, self.log_level);
        put(&mut config.shutdown.drain, self.shutdown_drain);
    }
}

fn when_no_hook_matches(text: &str) -> Result<WhenNoHookMatches, String> {
    match text {
        "deny" => Ok(WhenNoHookMatches::Deny),
        "allow" => Ok(WhenNoHookMatches::Allow),
        _ => Err("must be deny or allow".to_owned()),
    }
}

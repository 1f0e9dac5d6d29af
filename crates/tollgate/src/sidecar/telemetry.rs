//! Logs, metrics, and what a panic may say.

use std::{net::SocketAddr, sync::Arc};

use anstream::{AutoStream, ColorChoice};
use anyhow::{Context, Result};
use metrics_exporter_prometheus::PrometheusBuilder;
use tollgate_engine::Engine;
use tracing_subscriber::{EnvFilter, fmt, layer::SubscriberExt, util::SubscriberInitExt};

use crate::config::{Config, LogFormat};

/// Bounds of the buckets of durations, in seconds: from a decision in memory to the longest time-out.
const SECONDS_BUCKETS: [f64; 14] = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0];

/// The file watcher tells of every notice, and of every watch that ends with its directory. Where the log lies
/// beside the bundle, telling of a notice is the next one.
const WATCHER: &str = "notify=error";

/// Logs to standard error from here on, and decides on when nobody can take the log; a panic says where it happened and nothing else.
pub(crate) fn init(config: &Config) -> Result<()> {
    let filter = EnvFilter::try_new(&config.log.level)
        .with_context(|| format!("log.level is {:?}: write a level such as info, or directives", config.log.level))?
        .add_directive(WATCHER.parse()?);
    let registry = tracing_subscriber::registry().with(filter);
    // A subscriber that is there already belongs to a test of this process.
    let installed = match config.log.format {
        LogFormat::Text => {
            let coloured = AutoStream::choice(&std::io::stderr()) != ColorChoice::Never;
            let lines = fmt::layer().with_writer(std::io::stderr).with_ansi(coloured).with_target(false);
            registry.with(lines.log_internal_errors(false)).try_init()
        }
        LogFormat::Json => registry.with(fmt::layer().json().with_writer(std::io::stderr).log_internal_errors(false)).try_init(),
    };
    drop(installed);
    hide_panic_payloads();
    Ok(())
}

/// The payload of a panic may quote what was being judged, so that only its place is logged.
fn hide_panic_payloads() {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        tracing::error!(place, "a panic: a defect of Tollgate; the call that met it is not approved");
    }));
}

/// Serves metrics for Prometheus until the sidecar stops.
pub(crate) fn serve_metrics(address: SocketAddr, engine: &Arc<Engine>) -> Result<()> {
    let builder = PrometheusBuilder::new().with_http_listener(address).set_buckets(&SECONDS_BUCKETS)?;
    let (recorder, exporter) = builder.build().with_context(|| format!("cannot serve metrics on {address}"))?;
    metrics::set_global_recorder(recorder).context("metrics are served already")?;
    describe();
    let draining = engine.draining();
    engine.spawn(async move {
        tokio::select! {
            () = draining.cancelled() => {}
            ended = exporter => if ended.is_err() {
                tracing::error!("the metrics listener failed");
            }
        }
    });
    Ok(())
}

fn describe() {
    use metrics::{describe_counter, describe_gauge, describe_histogram};
    describe_counter!("tollgate_decisions_total", "Decisions answered, by decision");
    describe_counter!("tollgate_hook_verdicts_total", "What hooks said, by hook, enforcement and verdict");
    describe_gauge!("tollgate_ready", "1 while a generation is active and the journal accepts appends, else 0");
    describe_counter!("tollgate_undecided_total", "Calls that got no decision");
    describe_counter!("tollgate_journal_refusals_total", "Calls without a decision for the journal's sake, by cause");
    describe_counter!("tollgate_generation_changes_total", "Bundles activated and refused, by result");
    describe_gauge!("tollgate_generation_number", "The generation that decides");
    describe_histogram!("tollgate_evaluate_seconds", "From a call's arrival to its durable answer, in seconds");
}

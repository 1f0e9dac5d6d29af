//! gRPC health: readiness follows the engine, liveness does not.
//!
//! `""` and every service of a door are SERVING only while a generation is active, the journal accepts
//! appends and the sidecar is not draining. `tollgate.liveness` is SERVING as long as the process answers.

use tokio::sync::watch;
use tollgate_engine::Readiness;
use tonic_health::{ServingStatus, server::HealthReporter};

/// The service name that a liveness probe asks for.
pub(crate) const LIVENESS: &str = "tollgate.liveness";

/// Reports until the engine is gone.
pub(crate) async fn follow(reporter: HealthReporter, names: Vec<&'static str>, mut readiness: watch::Receiver<Readiness>) {
    reporter.set_service_status(LIVENESS, ServingStatus::Serving).await;
    loop {
        let now = *readiness.borrow_and_update();
        let status = match now {
            Readiness::Serving => ServingStatus::Serving,
            Readiness::NoGeneration | Readiness::Journal(_) | Readiness::ShuttingDown => ServingStatus::NotServing,
        };
        for name in &names {
            reporter.set_service_status(name, status).await;
        }
        if now == Readiness::ShuttingDown {
            end_watches(reporter, &names).await;
            return;
        }
        if readiness.changed().await.is_err() {
            return;
        }
    }
}

/// Ends the streams of those who watch, once they are told, so that none holds its connection, and with it
/// the shutdown, open. Nobody new can ask any more: the listeners close when the engine drains.
async fn end_watches(mut reporter: HealthReporter, names: &[&'static str]) {
    for name in names.iter().copied().chain([LIVENESS]) {
        reporter.clear_service_status(name).await;
    }
}

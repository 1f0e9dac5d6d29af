//! `tollgate serve`.

use anyhow::Result;
use tokio::signal::unix::{SignalKind, signal};

use crate::{
    cli::Serve,
    config,
    exit::Exit,
    sidecar::{Sidecar, init_telemetry},
};

pub(crate) async fn run(serve: Serve) -> Result<Exit> {
    let config = config::load(serve.overrides)?;
    init_telemetry(&config)?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut signal = async || {
        tokio::select! {
            _ = terminate.recv() => "SIGTERM",
            _ = interrupt.recv() => "SIGINT",
        }
    };
    let sidecar = tokio::select! {
        started = Sidecar::start(&config) => started?,
        // Nothing was answered yet, so that nothing has to be finished.
        _ = signal() => return Ok(Exit::Success),
    };
    sidecar.announce(&config);
    let signal = signal().await;
    tracing::info!(signal, "shutting down");
    sidecar.shut_down().await;
    tracing::info!("everything is recorded; bye");
    Ok(Exit::Success)
}

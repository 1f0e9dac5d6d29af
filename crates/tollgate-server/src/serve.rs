//! Serving doors: which services stand behind a listener, and how it closes.

use std::{fs, sync::Arc, time::Duration};

use tokio_util::sync::CancellationToken;
use tollgate_domain::{Reader, Rights, SidecarId};
use tollgate_engine::Engine;
use tollgate_proto::{
    FILE_DESCRIPTOR_SET,
    v1::{
        governance_service_server::GovernanceServiceServer, journal_service_server::JournalServiceServer,
        policy_service_server::PolicyServiceServer,
    },
};
use tonic::{
    service::{Routes, RoutesBuilder},
    transport::Server,
};

use crate::{
    REQUEST_MAX_BYTES,
    admission::Admission,
    governance::{EvaluateLimits, Governance},
    health,
    journal::Journal,
    listener::{Bound, tcp_connections, unix_connections},
    policy::Policy,
};

/// Streams that a client may reset before they were looked at.
const RESETS_MAX_COUNT: usize = 1_024;
/// How often a silent peer is asked whether it lives.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(30);
/// How long its answer may take.
const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(20);
/// What one stream may have sent unread: the default of HTTP/2 (RFC 9113).
const STREAM_WINDOW_BYTES: u32 = 65_535;
/// What all streams of a connection may have sent unread.
const CONNECTION_WINDOW_BYTES: u32 = 4 * 1_048_576;

/// Which group of services a listener gives access to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Door {
    /// Evaluate and Complete: all that a governed agent may reach.
    Data,
    /// The journal and the status of policy.
    Read,
}

/// What the services stand on.
#[derive(Clone, Debug)]
pub struct Services {
    /// The decision path.
    pub engine: Arc<Engine>,
    /// The journal's reader.
    pub reader: Arc<dyn Reader>,
    /// How many calls are taken.
    pub admission: Admission,
    /// How long they may take.
    pub limits: EvaluateLimits,
    /// The sidecar's name.
    pub sidecar: SidecarId,
}

/// Serves one door on one listener until `stop`; then takes no new connection, and ends when the open ones did.
pub async fn serve(
    services: Services,
    door: Door,
    rights: Rights,
    bound: Bound,
    stop: CancellationToken,
) -> Result<(), tonic::transport::Error> {
    let router = transport().add_routes(routes(services, door, Arc::new(rights)).await);
    match bound {
        Bound::Tcp(listener) => router.serve_with_incoming_shutdown(tcp_connections(listener), stop.cancelled_owned()).await,
        Bound::Unix { listener, path, peer_uids } => {
            let incoming = unix_connections(listener, peer_uids);
            let served = router.serve_with_incoming_shutdown(incoming, stop.cancelled_owned()).await;
            // Gone already if somebody else took the path over.
            drop(fs::remove_file(path));
            served
        }
    }
}

/// HTTP/2 as many small calls on one connection need it.
fn transport() -> Server {
    Server::builder()
        // A client whose many calls pass their deadlines at once resets them all; that is no attack.
        .http2_max_pending_accept_reset_streams(Some(RESETS_MAX_COUNT))
        // A peer that is gone without a word is noticed.
        .http2_keepalive_interval(Some(KEEPALIVE_INTERVAL))
        .http2_keepalive_timeout(Some(KEEPALIVE_TIMEOUT))
        // The transport ends a connection that holds too many small unread frames, by a measure that grows
        // with the connection's window. So one stream's window is kept small against that: a stream whose
        // elements are not read is held up, and its connection lives.
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
}

async fn routes(services: Services, door: Door, rights: Arc<Rights>) -> Routes {
    let Services { engine, reader, admission, limits, sidecar } = services;
    let (reporter, health_service) = tonic_health::server::health_reporter();
    let mut routes = RoutesBuilder::default();
    routes.add_service(health_service);
    if let Ok(reflection) = reflection() {
        routes.add_service(reflection);
    } else {
        tracing::error!("reflection is not served: the committed descriptors cannot be read");
    }
    let mut names = vec![""];
    match door {
        Door::Data => {
            let governance = Governance { engine: Arc::clone(&engine), rights, admission, limits };
            routes.add_service(GovernanceServiceServer::new(governance).max_decoding_message_size(REQUEST_MAX_BYTES));
            names.push("tollgate.v1.GovernanceService");
        }
        Door::Read => {
            let journal = Journal { reader: Arc::clone(&reader), rights: Arc::clone(&rights) };
            routes.add_service(JournalServiceServer::new(journal));
            routes.add_service(PolicyServiceServer::new(Policy { engine: Arc::clone(&engine), reader, rights, sidecar }));
            names.extend(["tollgate.v1.JournalService", "tollgate.v1.PolicyService"]);
        }
    }
    // Registered before the first answer, so that no probe finds the names unknown.
    for name in &names {
        reporter.set_service_status(name, tonic_health::ServingStatus::NotServing).await;
    }
    engine.spawn(health::follow(reporter, names, engine.readiness()));
    routes.routes()
}

fn reflection() -> Result<
    tonic_reflection::server::v1::ServerReflectionServer<impl tonic_reflection::server::v1::ServerReflection>,
    tonic_reflection::server::Error,
> {
    tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(FILE_DESCRIPTOR_SET)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        .build_v1()
}

//! The sidecar on a journal of choice, put together as the program does it, with the defaults of its configuration.

use std::{sync::Arc, time::Duration};

use tokio_util::sync::CancellationToken;
use tollgate_domain::{Clock, DecisionRules, IdentityKey, Reader, Rights, SidecarId, Store, WhenNoHookMatches};
use tollgate_engine::{Engine, EngineOptions, EngineParts};
use tollgate_journal::{SqliteJournal, SqliteOptions};
use tollgate_policy::{DirectoryOptions, DirectorySource};
use tollgate_server::{Admission, Door, EvaluateLimits, Listen, Services, SocketAccess, serve as serve_door};

use crate::{
    Place,
    world::{SystemClock, fresh_invocation},
};

const IN_FLIGHT: usize = 1_024;
const IN_FLIGHT_KIB: u32 = 32_768;

/// A journal as the program opens it.
pub(crate) async fn sqlite(place: &Place) -> SqliteJournal {
    let key = key();
    let path = place.directory.join("state/journal.db");
    SqliteJournal::open(SqliteOptions::new(path, (key.id(), key.check_value()), id())).await.unwrap()
}

/// Serves until it is killed.
pub(crate) async fn serve<J: Store + Reader + 'static>(place: &Place, journal: Arc<J>) {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let parts = EngineParts {
        store: Arc::clone(&journal) as Arc<dyn Store>,
        clock: Arc::clone(&clock),
        fresh_invocation: Box::new(fresh_invocation),
        key: key(),
        local_hooks: Vec::new(),
    };
    let options = EngineOptions {
        rules: DecisionRules { when_no_hook_matches: WhenNoHookMatches::Deny, validity_us: 60_000_000, sidecar: id() },
        journal_max_wait: Duration::from_secs(5),
        cancelled_record_wait: Duration::from_secs(2),
        keep_failure_messages: true,
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let engine = Engine::new(parts, options);
    engine.start(&[]).await.unwrap();
    let services = Services {
        engine: Arc::clone(&engine),
        reader: journal as Arc<dyn Reader>,
        admission: Admission::new(IN_FLIGHT, IN_FLIGHT_KIB, None),
        limits: EvaluateLimits { default_timeout: Duration::from_secs(10), max_timeout: Duration::from_mins(1) },
        sidecar: id(),
    };
    let unix = |name: &str| Listen::Unix { path: place.directory.join(name), access: SocketAccess::default() };
    let listeners =
        [(Door::Data, Listen::Tcp(place.tcp)), (Door::Data, unix("data.sock")), (Door::Read, unix("state/read.sock"))];
    for (door, listen) in listeners {
        let bound = listen.bind().await.unwrap();
        let serving = serve_door(services.clone(), door, Rights::default(), bound, CancellationToken::new());
        engine.spawn(async move { serving.await.unwrap() });
    }
    engine.keep_generations(Box::new(DirectorySource::new(place.bundle.clone(), DirectoryOptions::default(), clock)));
    std::future::pending::<()>().await;
}

fn key() -> IdentityKey {
    IdentityKey::from_bytes(&[7; 32]).unwrap()
}

fn id() -> SidecarId {
    SidecarId::parse("bench").unwrap()
}

//! A host with the real engine on it, a journal that fails, and the smallest protocol that can cancel and hang up.

use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering::Relaxed},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    sync::Notify,
};
use tokio_util::sync::CancellationToken;
use tollgate_domain::{Clock, DecisionRules, IdentityKey, Monotonic, Rights, SidecarId, Store, Timestamp, WhenNoHookMatches};
use tollgate_engine::{Engine, EngineOptions, EngineParts};
use turmoil::net::{TcpListener, TcpStream};

use crate::{
    hooks::{self, Bundles},
    world::{Ask, Asked, World},
};

pub(crate) const PORT: u16 = 7_000;
pub(crate) const CANCELLED_RECORD_WAIT: Duration = Duration::from_millis(200);
const JOURNAL_MAX_WAIT: Duration = Duration::from_millis(400);
/// Short, so that some are asked for again too late.
const VALIDITY_US: u64 = 1_500_000;

/// One sidecar, through all its processes.
#[derive(Debug)]
pub(crate) struct Sidecar {
    pub(crate) name: &'static str,
    pub(crate) id: SidecarId,
    pub(crate) clock: Arc<SimulatedClock>,
    pub(crate) stop: Notify,
}

/// The time of the simulation; the wall clock can be set apart.
#[derive(Debug, Default)]
pub(crate) struct SimulatedClock {
    jumped_us: AtomicI64,
}

impl SimulatedClock {
    pub(crate) fn jump(&self, micros: i64) {
        self.jumped_us.fetch_add(micros, Relaxed);
    }
}

impl Clock for SimulatedClock {
    fn now(&self) -> Timestamp {
        let passed = i64::try_from(elapsed().as_micros()).unwrap();
        Timestamp::from_micros(1_700_000_000_000_000 + passed + self.jumped_us.load(Relaxed))
    }

    fn monotonic(&self) -> Monotonic {
        Monotonic::from_nanos(u64::try_from(elapsed().as_nanos()).unwrap())
    }
}

fn elapsed() -> Duration {
    turmoil::sim_elapsed().unwrap_or_default()
}

impl Sidecar {
    pub(crate) fn new(name: &'static str) -> Arc<Self> {
        Arc::new(Self { name, id: name.parse().unwrap(), clock: Arc::default(), stop: Notify::new() })
    }

    /// One process of it, from start to shutdown.
    pub(crate) async fn run(self: Arc<Self>, world: Arc<World>, store: Arc<dyn Store>) -> turmoil::Result {
        world.starts(&self);
        let fresh = Arc::clone(&world);
        let parts = EngineParts {
            store,
            clock: Arc::<SimulatedClock>::clone(&self.clock),
            fresh_invocation: Box::new(move || fresh.fresh("fresh")),
            key: IdentityKey::from_bytes(&[7; 32]).unwrap(),
            local_hooks: hooks::local_hooks(&world),
        };
        let rules =
            DecisionRules { when_no_hook_matches: WhenNoHookMatches::Deny, validity_us: VALIDITY_US, sidecar: self.id.clone() };
        let options = EngineOptions {
            rules,
            journal_max_wait: JOURNAL_MAX_WAIT,
            cancelled_record_wait: CANCELLED_RECORD_WAIT,
            keep_failure_messages: true,
            version: "0.0.0-simulation".to_owned(),
        };
        let engine = Engine::new(parts, options);
        // Where the program would end and be started again.
        while engine.start(&[]).await.is_err() {
            world.chance.pause(20..=60).await;
        }
        engine.keep_generations(Box::new(Bundles::new(Arc::clone(&world))));
        let listener = TcpListener::bind(("0.0.0.0", PORT)).await?;
        loop {
            tokio::select! {
                biased;
                () = self.stop.notified() => break,
                accepted = listener.accept() => {
                    let (sidecar, world, engine) = (Arc::clone(&self), Arc::clone(&world), Arc::clone(&engine));
                    let (stream, _) = accepted?;
                    tokio::spawn(async move { sidecar.serve(&world, &engine, stream).await.ok() });
                }
            }
        }
        engine.shut_down().await;
        world.count("shutdowns");
        world.note(|| format!("{} has stopped", self.name));
        Ok(())
    }

    /// One question and its answer. A byte from the caller cancels; the end of its side hangs up.
    async fn serve(&self, world: &World, engine: &Arc<Engine>, mut stream: TcpStream) -> std::io::Result<()> {
        let number = usize::try_from(stream.read_u64().await?).unwrap();
        let asked = Asked::now(number);
        match world.asked(number) {
            Ask::Evaluate { call, timeout, .. } => {
                let cancel = CancellationToken::new();
                let rights = Rights::default();
                let mut evaluating = pin!(engine.evaluate(&rights, *call, timeout, &cancel));
                let answer = loop {
                    tokio::select! {
                        biased;
                        answer = &mut evaluating => break answer,
                        byte = stream.read_u8(), if !cancel.is_cancelled() => match byte {
                            Ok(_) => {
                                world.note(|| format!("{} sees {number} cancelled", self.name));
                                cancel.cancel();
                            }
                            Err(gone) => {
                                world.note(|| format!("{} sees {number} hung up", self.name));
                                return Err(gone);
                            }
                        },
                    }
                };
                world.evaluated(self, asked, cancel.is_cancelled(), &answer);
            }
            Ask::Complete { id: (run, invocation), reported, timeout } => {
                let answer = engine.complete(&Rights::default(), run, invocation, reported, timeout).await;
                world.completed(self, asked, &answer);
            }
        }
        stream.write_u8(0).await
    }
}

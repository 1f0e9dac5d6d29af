//! The two journals of the simulation: a disk of a sidecar's own under the real group commit, and a database that
//! sidecars share.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use tokio::time::Instant;
use tollgate_domain::{
    AppendError, BundleName, Entry, GenerationNumbers, InvocationId, InvocationKey, InvocationRecord, LastActivated, Lookup,
    NumberRequest, Receipt, RunKey, SidecarId, Started, Store, StoreHealth, ToolCallId, Unavailable, UnavailableCause,
};
use tollgate_journal::{Fate, MemoryJournal, SyncFailed};

use crate::world::World;

const CAUSES: [UnavailableCause; 4] =
    [UnavailableCause::Full, UnavailableCause::ReadOnly, UnavailableCause::Io, UnavailableCause::Other];

/// What befalls a sidecar's own disk.
#[derive(Debug)]
pub(crate) struct DiskFate(pub(crate) Arc<World>);

#[async_trait]
impl Fate for DiskFate {
    async fn write(&self) -> Result<(), UnavailableCause> {
        let Self(world) = self;
        world.chance.pause(0..=2).await;
        if world.chance.strikes(40) {
            world.count("write refused");
            return Err(world.chance.pick(&CAUSES));
        }
        Ok(())
    }

    async fn sync(&self) -> Result<(), SyncFailed> {
        let Self(world) = self;
        world.chance.pause(1..=10).await;
        if world.chance.strikes(25) {
            world.count("sync stalled");
            world.chance.pause(50..=1_200).await;
        }
        if world.chance.strikes(25) {
            let landed = world.chance.one_in(2);
            world.count(if landed { "sync failed and landed" } else { "sync failed" });
            return Err(SyncFailed { cause: world.chance.pick(&CAUSES), landed });
        }
        Ok(())
    }

    async fn read(&self) -> Result<(), UnavailableCause> {
        let Self(world) = self;
        if world.chance.strikes(60) {
            world.count("read failed");
            return Err(world.chance.pick(&CAUSES));
        }
        if world.chance.strikes(60) {
            world.count("read stalled");
            world.chance.pause(50..=900).await;
        }
        world.chance.pause(0..=1).await;
        Ok(())
    }

    async fn heal(&self) -> Result<(), UnavailableCause> {
        let Self(world) = self;
        world.chance.pause(0..=5).await;
        if world.chance.strikes(3) { Err(world.chance.pick(&CAUSES)) } else { Ok(()) }
    }
}

/// One sidecar's connection to a database that others write to as well, which is durable by itself.
#[derive(Debug)]
pub(crate) struct SharedStore {
    world: Arc<World>,
    database: Arc<MemoryJournal>,
    /// Until when the connection is broken, and why.
    broken: Mutex<Option<(Instant, UnavailableCause)>>,
    changed: tokio::sync::Notify,
    closed: std::sync::atomic::AtomicBool,
}

impl SharedStore {
    pub(crate) fn connect(world: &Arc<World>) -> Self {
        Self {
            world: Arc::clone(world),
            database: Arc::clone(&world.durable),
            broken: Mutex::new(None),
            changed: tokio::sync::Notify::new(),
            closed: std::sync::atomic::AtomicBool::new(false),
        }
    }

    /// Before anything is sent.
    async fn send(&self) -> Result<(), Unavailable> {
        let refused = |cause| Err(Unavailable { cause, may_have_landed: false });
        if let StoreHealth::Failing(cause) = self.health() {
            return refused(cause);
        }
        let chance = &self.world.chance;
        chance.pause(0..=4).await;
        if chance.strikes(50) {
            self.world.count("write refused");
            let cause = chance.pick(&CAUSES);
            if chance.one_in(2) {
                let until = Instant::now() + chance.millis(20..=600);
                *self.broken.lock().unwrap() = Some((until, cause));
                self.changed.notify_waiters();
            }
            return refused(cause);
        }
        if chance.strikes(40) {
            self.world.count("write stalled");
            chance.pause(50..=1_200).await;
        }
        Ok(())
    }

    /// While the answer is on its way: whether it is lost.
    async fn lost(&self) -> Result<(), Unavailable> {
        let chance = &self.world.chance;
        chance.pause(0..=4).await;
        if chance.strikes(30) {
            self.world.count("answer of the store stalled");
            chance.pause(50..=1_200).await;
        }
        if chance.strikes(25) {
            self.world.count("answer of the store lost");
            return Err(Unavailable { cause: chance.pick(&CAUSES), may_have_landed: true });
        }
        Ok(())
    }

    async fn read(&self) -> Result<(), Unavailable> {
        let chance = &self.world.chance;
        if chance.strikes(60) {
            self.world.count("read stalled");
            chance.pause(50..=900).await;
        }
        chance.pause(0..=3).await;
        if chance.strikes(60) {
            self.world.count("read failed");
            return Err(Unavailable { cause: chance.pick(&CAUSES), may_have_landed: false });
        }
        Ok(())
    }
}

#[async_trait]
impl Store for SharedStore {
    async fn append(&self, entry: Entry) -> Result<Receipt, AppendError> {
        self.send().await?;
        let appended = self.database.append(entry).await;
        self.lost().await?;
        appended
    }

    async fn lookup(&self, run: &RunKey, tool_call: &ToolCallId, invocation: &InvocationId) -> Result<Lookup, Unavailable> {
        self.read().await?;
        let found = self.database.lookup(run, tool_call, invocation).await;
        self.read().await?;
        found
    }

    async fn invocation(&self, run: &RunKey, invocation: &InvocationId) -> Result<Option<InvocationRecord>, Unavailable> {
        self.read().await?;
        let found = self.database.invocation(run, invocation).await;
        self.read().await?;
        found
    }

    async fn undecided(&self) -> Result<Vec<(RunKey, InvocationKey, Started)>, Unavailable> {
        self.read().await?;
        let found = self.database.undecided().await;
        self.read().await?;
        found
    }

    async fn number(&self, request: NumberRequest) -> Result<GenerationNumbers, Unavailable> {
        self.send().await?;
        let numbers = self.database.number(request).await;
        self.lost().await?;
        numbers
    }

    async fn last_activated(&self, bundle: &BundleName, sidecar: &SidecarId) -> Result<Option<LastActivated>, Unavailable> {
        self.read().await?;
        self.database.last_activated(bundle, sidecar).await
    }

    fn health(&self) -> StoreHealth {
        if self.closed.load(std::sync::atomic::Ordering::Relaxed) {
            return StoreHealth::Failing(UnavailableCause::Closed);
        }
        match *self.broken.lock().unwrap() {
            Some((until, cause)) if Instant::now() < until => StoreHealth::Failing(cause),
            Some(_) | None => StoreHealth::Serving,
        }
    }

    async fn health_changed(&self, seen: StoreHealth) -> StoreHealth {
        loop {
            let now = self.health();
            if now != seen {
                return now;
            }
            let broken = self.broken.lock().unwrap().map(|(until, _)| until).filter(|until| *until > Instant::now());
            match broken {
                Some(until) => tokio::time::sleep_until(until).await,
                None => self.changed.notified().await,
            }
        }
    }

    async fn close(&self) {
        self.closed.store(true, std::sync::atomic::Ordering::Relaxed);
        self.changed.notify_waiters();
    }
}

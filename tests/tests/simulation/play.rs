//! One world from its seed: hosts, a network, and what goes wrong when; then calm, and the reckoning.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, UNIX_EPOCH},
};

use tollgate_domain::Store;
use tollgate_journal::{MemoryJournal, SimulatedDisk, SimulatedJournal};
use turmoil::Sim;

use crate::{
    caller::Caller,
    record::Record,
    sidecar::Sidecar,
    storage::{DiskFate, SharedStore},
    world::World,
};

/// Which journal, and how many sidecars write to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Setting {
    /// One sidecar and its own disk.
    Own,
    /// Two sidecars on one database.
    Shared,
}

/// What came of a world.
pub(crate) struct Played {
    pub(crate) transcript: String,
    pub(crate) figures: BTreeMap<&'static str, usize>,
    /// What did not hold.
    pub(crate) broken: Vec<String>,
}

const TICK: Duration = Duration::from_millis(4);
/// How long things go wrong.
const FOUL: Duration = Duration::from_secs(6);
/// Longer than any wait of the product: then nothing is under way.
const QUIET: Duration = Duration::from_secs(6);
/// More than any world takes.
const END: Duration = Duration::from_mins(5);
/// A multiple of the number of lists in which a runtime of one thread keeps its tasks.
const TASK_LISTS: usize = 64;
const NAMES: [&str; 2] = ["sidecar-1", "sidecar-2"];

/// Something that goes wrong, to a sidecar by its place.
#[derive(Clone, Copy, Debug)]
enum Event {
    Crash(usize),
    Stop(usize),
    Start(usize),
    Part(usize, usize),
    Join(usize, usize),
    Jump(usize, i64),
}

struct Play<'a> {
    sim: Sim<'a>,
    world: Arc<World>,
    sidecars: Vec<Arc<Sidecar>>,
    callers: Vec<String>,
    probes: usize,
}

/// Plays one seed to its end, or to the first thing that does not hold.
pub(crate) fn play(setting: Setting, seed: u64) -> Played {
    align_tasks();
    let disk = SimulatedDisk::default();
    let durable = match setting {
        Setting::Own => Arc::clone(disk.durable()),
        Setting::Shared => Arc::new(MemoryJournal::new()),
    };
    let world = World::new(seed, durable);
    let mut play = Play::new(setting, seed, &disk, &world);
    if play.foul() && play.calm() {
        play.restart();
    }
    drop(play);
    let end = &mut *world.seen();
    Played {
        transcript: std::mem::take(&mut end.transcript),
        figures: std::mem::take(&mut end.figures),
        broken: std::mem::take(&mut end.broken),
    }
}

/// A runtime drops the tasks of a process that crashes list by list, which one a task is in follows from its number, and
/// numbers go on from world to world. Without this a world would depend on those that were played before it.
fn align_tasks() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    while runtime.spawn(async {}).id().to_string().parse::<usize>().unwrap() % TASK_LISTS != 0 {}
}

impl Play<'_> {
    fn new(setting: Setting, seed: u64, disk: &SimulatedDisk, world: &Arc<World>) -> Self {
        let mut sim = turmoil::Builder::new()
            .rng_seed(seed)
            .epoch(UNIX_EPOCH + Duration::from_secs(1_700_000_000))
            .tick_duration(TICK)
            .min_message_latency(Duration::ZERO)
            .max_message_latency(Duration::from_millis(8))
            .simulation_duration(END)
            .enable_tokio_io()
            .build();
        let count = if setting == Setting::Own { 1 } else { 2 };
        let sidecars: Vec<_> = NAMES.iter().take(count).map(|name| Sidecar::new(name)).collect();
        for sidecar in &sidecars {
            let (sidecar, world, disk) = (Arc::clone(sidecar), Arc::clone(world), disk.clone());
            sim.host(sidecar.name, move || {
                let (sidecar, world, disk) = (Arc::clone(&sidecar), Arc::clone(&world), disk.clone());
                async move {
                    let store: Arc<dyn Store> = match setting {
                        Setting::Own => {
                            if !disk.is_synced() {
                                world.count("write cut by a crash");
                                disk.settle(world.chance.one_in(2));
                            }
                            Arc::new(SimulatedJournal::open(disk, Arc::new(DiskFate(Arc::clone(&world)))))
                        }
                        Setting::Shared => Arc::new(SharedStore::connect(&world)),
                    };
                    sidecar.run(world, store).await
                }
            });
        }
        let names: Arc<[&'static str]> = sidecars.iter().map(|sidecar| sidecar.name).collect();
        let callers: Vec<_> = (1..=3).map(|number| format!("caller-{number}")).collect();
        for name in &callers {
            let caller = Caller { name: name.clone(), world: Arc::clone(world), sidecars: Arc::clone(&names) };
            sim.client(name.as_str(), caller.run());
        }
        Self { sim, world: Arc::clone(world), sidecars, callers, probes: 0 }
    }

    /// Draws what goes wrong, and when it is put right.
    fn events(&self) -> BTreeMap<(Duration, usize), Event> {
        let chance = &self.world.chance;
        let mut events = BTreeMap::new();
        let mut add = |at: Duration, event| {
            let number = events.len();
            events.insert((at.min(FOUL), number), event);
        };
        for sidecar in 0..self.sidecars.len() {
            let mut at = chance.millis(200..=2_500);
            while at < FOUL {
                let down = chance.millis(1..=500);
                add(at, if chance.one_in(4) { Event::Stop(sidecar) } else { Event::Crash(sidecar) });
                // Shutdown takes its time.
                add(at + down, Event::Start(sidecar));
                at += down + chance.millis(100..=3_000);
            }
            for _ in 0..chance.of(0..=3) {
                let at = chance.millis(100..=5_000);
                let caller = usize::try_from(chance.of(0..=self.callers.len() as u64 - 1)).unwrap();
                add(at, Event::Part(sidecar, caller));
                add(at + chance.millis(10..=800), Event::Join(sidecar, caller));
            }
            for _ in 0..chance.of(0..=2) {
                let micros = i64::try_from(chance.of(0..=8_000_000)).unwrap() - 4_000_000;
                add(chance.millis(100..=5_500), Event::Jump(sidecar, micros));
            }
        }
        events
    }

    fn happen(&mut self, event: Event) {
        self.world.note(|| format!("{event:?}"));
        let name = |sidecar: usize| NAMES[sidecar];
        match event {
            Event::Crash(sidecar) => self.sim.crash(name(sidecar)),
            // To a process that does not serve yet it says nothing, and to the next one neither.
            Event::Stop(sidecar) => self.sidecars[sidecar].stop.notify_waiters(),
            Event::Start(sidecar) => self.sim.bounce(name(sidecar)),
            Event::Part(sidecar, caller) => self.sim.partition(name(sidecar), self.callers[caller].as_str()),
            Event::Join(sidecar, caller) => self.sim.repair(name(sidecar), self.callers[caller].as_str()),
            Event::Jump(sidecar, micros) => self.sidecars[sidecar].clock.jump(micros),
        }
    }

    /// Whether everything held so far; after one more step.
    fn step(&mut self) -> bool {
        self.sim.step().unwrap();
        self.world.seen().broken.is_empty()
    }

    fn foul(&mut self) -> bool {
        for ((at, _), event) in self.events() {
            while self.sim.elapsed() < at {
                if !self.step() {
                    return false;
                }
            }
            if matches!(event, Event::Crash(_)) {
                self.world.count("crashes");
            }
            self.happen(event);
        }
        true
    }

    /// Nothing fails any more: what is under way comes to an end, and every sidecar decides.
    fn calm(&mut self) -> bool {
        self.world.chance.clear_up();
        self.world.note(|| "calm".to_owned());
        self.rest() && self.probe() && {
            let record = Record::of(&self.world, &self.sidecars);
            record.check_settled(&self.world, &self.sidecars);
            self.world.seen().broken.is_empty()
        }
    }

    /// Every process ends at once and is started again: what survived is the record.
    fn restart(&mut self) {
        for sidecar in 0..self.sidecars.len() {
            self.happen(Event::Crash(sidecar));
        }
        for sidecar in 0..self.sidecars.len() {
            self.happen(Event::Start(sidecar));
        }
        if self.probe() {
            let record = Record::of(&self.world, &self.sidecars);
            record.check_decisions(&self.world);
            record.check_told(&self.world);
            record.check_restarted(&self.world);
        }
    }

    /// Waits until nothing has happened for longer than anything takes.
    fn rest(&mut self) -> bool {
        let mut seen = (0, self.sim.elapsed());
        while self.sim.elapsed() < seen.1 + QUIET {
            if !self.step() {
                return false;
            }
            let length = self.world.seen().transcript.len();
            if length != seen.0 {
                seen = (length, self.sim.elapsed());
            }
        }
        true
    }

    fn probe(&mut self) -> bool {
        self.probes += 1;
        let name = format!("probe-{}", self.probes);
        let sidecars = self.sidecars.iter().map(|sidecar| sidecar.name).collect();
        let probe = Caller { name: name.clone(), world: Arc::clone(&self.world), sidecars };
        // A start takes a moment.
        let until = self.sim.elapsed() + Duration::from_secs(1);
        while self.sim.elapsed() < until {
            if !self.step() {
                return false;
            }
        }
        self.sim.client(name, probe.probe());
        loop {
            let ended = self.sim.step().unwrap();
            if !self.world.seen().broken.is_empty() {
                return false;
            }
            if ended {
                return true;
            }
        }
    }
}

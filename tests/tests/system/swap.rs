//! Two bundles that contradict each other are swapped while clients ask: every answer, every trace and every stamp is of
//! one of them, and of the one that it names.

mod askers;
mod rivals;

use std::{
    collections::{BTreeMap, HashMap},
    path::Path,
    sync::atomic::Ordering,
    time::Duration,
};

use askers::{Answers, Askers};
use rivals::Rival;
use tokio::time::{MissedTickBehavior, interval};
use tollgate_domain::{Evaluated, Fact, GenerationActivated, History, SystemRun, invariants};
use tollgate_journal::SqliteReader;
use tollgate_tests::{
    journal_file,
    sidecar::{Setup, Sidecar, eventually},
    soak, trees, wire,
};

/// Between two swaps of the long run; the short one swaps as fast as it can.
const EVERY: Duration = Duration::from_millis(200);

/// How a bundle takes the place of another.
#[derive(Clone, Copy, Debug)]
enum Way {
    /// As Kubernetes swaps a volume's files.
    ConfigMap,
    /// Another directory by the same name, which counts when it has settled.
    Settle,
}

impl Way {
    fn put(self, rival: Rival, bundle: &Path, version: u32) {
        match self {
            Self::ConfigMap => trees::publish(&rival.tree(), bundle, version),
            Self::Settle => {
                let prepared = bundle.with_file_name("prepared");
                trees::write(&rival.tree(), &prepared);
                trees::put(&prepared, bundle);
            }
        }
    }
}

/// P03
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p03_every_answer_is_of_one_generation_while_a_config_map_is_swapped() {
    swap_under_load(Way::ConfigMap).await;
}

/// P03
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p03_every_answer_is_of_one_generation_while_directories_are_swapped() {
    swap_under_load(Way::Settle).await;
}

async fn swap_under_load(way: Way) {
    let (wanted_answers, wanted_swaps) = (soak::count(2_000, 500_000), 20);
    let setup = Setup::without_bundle();
    let mut rival = Rival::Open;
    way.put(rival, &setup.bundle(), 0);
    let sidecar = setup.start().await;
    let mut number = sidecar.generation().await.number;
    let askers = Askers::start(&sidecar, number).await;
    let mut swaps = 0;
    let mut pace = interval(if soak::is_on() { EVERY } else { Duration::from_millis(1) });
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while askers.answers() < wanted_answers || swaps < wanted_swaps {
        pace.tick().await;
        rival = rival.other();
        swaps += 1;
        way.put(rival, &sidecar.setup().bundle(), u32::try_from(swaps).unwrap());
        number = activated_after(&sidecar, number).await;
        askers.shared.visible.store(number, Ordering::SeqCst);
    }
    let answers = askers.stop().await;
    let (status, setup) = sidecar.stop().await;
    assert!(status.success());
    let faults = Faults::of(&answers, &setup).await;
    assert_eq!(faults.activations, swaps + 1, "nothing was activated but the two, by turns");
    faults.report(swaps);
    faults.assert_none(&answers);
}

/// The number of the generation after this one, once the status tells of it.
async fn activated_after(sidecar: &Sidecar, number: u64) -> u64 {
    eventually("a swap", async || Some(sidecar.generation().await.number).filter(|now| *now > number)).await
}

/// What the journal says to what was told.
#[derive(Debug, Default)]
struct Faults {
    activations: usize,
    open: usize,
    closed: usize,
    /// Traces that are not, hook by hook, those of the generation that they name.
    mixed: usize,
    /// Answers that are neither's, or not on record.
    spurious: usize,
    /// Answers that name another generation than the one that decided.
    wrongly_stamped: usize,
    /// Answers of a generation that was replaced, and seen to be, before the call was made.
    stale: usize,
}

impl Faults {
    async fn of(answers: &Answers, setup: &Setup) -> Self {
        let reader = SqliteReader::open(setup.journal_path()).await.unwrap();
        let activated = activations(&reader, setup).await;
        let mut faults = Self { activations: activated.len(), spurious: answers.spurious.len(), ..Self::default() };
        for (run, told) in &answers.told {
            let facts = journal_file::facts_from(&reader, &journal_file::history(run)).await;
            let recorded: HashMap<_, _> = facts
                .iter()
                .filter_map(|stored| match &stored.fact {
                    Fact::GovernanceEvaluated(evaluated) => Some((stored.invocation.as_ref()?.as_str(), evaluated)),
                    _ => None,
                })
                .collect();
            faults.mixed += recorded.values().filter(|evaluated| !is_of_one(evaluated, &activated)).count();
            for told in told {
                let Some(evaluated) = recorded.get(told.invocation.as_str()) else {
                    faults.spurious += 1;
                    continue;
                };
                *(if told.rival == Rival::Open { &mut faults.open } else { &mut faults.closed }) += 1;
                let (stamp, record) = (&*told.generation, &evaluated.generation);
                let same = (stamp.bundle.as_str(), stamp.number) == (record.bundle.as_str(), record.number)
                    && stamp.digest == record.digest.to_string();
                let rightly = activated.get(&stamp.number).is_some_and(|(rival, _)| *rival == told.rival);
                faults.wrongly_stamped += usize::from(!same || !rightly);
                faults.stale += usize::from(stamp.number < told.visible);
            }
        }
        reader.close().await;
        faults
    }

    fn report(&self, swaps: usize) {
        soak::report(&[
            ("swaps", swaps),
            ("evaluations while swapping: allowed", self.open),
            ("evaluations while swapping: denied", self.closed),
            ("evaluations while swapping: mixed", self.mixed),
            ("evaluations while swapping: spurious", self.spurious),
            ("evaluations while swapping: wrongly stamped", self.wrongly_stamped),
            ("evaluations while swapping: stale", self.stale),
        ]);
    }

    fn assert_none(&self, answers: &Answers) {
        let faults = self.mixed + self.spurious + self.wrongly_stamped + self.stale;
        assert_eq!(faults, 0, "{self:?} {:?}", answers.spurious.first());
        assert!(self.open > 100 && self.closed > 100, "both were asked: {self:?}");
    }
}

/// Every activation on record by its number, and whose content it is.
async fn activations(reader: &SqliteReader, setup: &Setup) -> BTreeMap<u64, (Rival, GenerationActivated)> {
    let rivals = [Rival::Open, Rival::Closed].map(|rival| {
        let directory = setup.directory().join("alone");
        trees::write(&rival.tree(), &directory);
        (tollgate_policy::load(&directory).unwrap().digest, rival)
    });
    let bundle = History::System(SystemRun::Bundle("system".parse().unwrap()));
    let facts = journal_file::facts_from(reader, &bundle).await;
    let activated = facts.into_iter().map(|stored| match stored.fact {
        Fact::GenerationActivated(activated) => {
            let (_, rival) = rivals.iter().find(|(digest, _)| *digest == activated.generation.digest).expect("one of the two");
            (activated.generation.number, (*rival, activated))
        }
        other => panic!("nothing is refused: {other:?}"),
    });
    activated.collect()
}

/// Whether a decision is, hook by hook, the one of the generation that it names.
fn is_of_one(evaluated: &Evaluated, activated: &BTreeMap<u64, (Rival, GenerationActivated)>) -> bool {
    let Some((rival, activated)) = activated.get(&evaluated.generation.number) else { return false };
    let managed = evaluated.trace.hooks.iter().all(|entry| entry.resource.is_some());
    managed && invariants::of_one_generation(evaluated, activated) && rivals::shown(&evaluated.trace) == rival.trace()
}

/// P03: a call is answered while the next generation is being compiled, by a thread of its own.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn p03_calls_are_answered_while_a_large_bundle_is_compiled() {
    let large = |version: u32| {
        let policy =
            |number| format!("@id(\"p{number}\")\npermit (principal, action, resource == Tollgate::Tool::\"desk.read\");\n");
        let policies: String = (0..1_000).map(policy).collect();
        trees::with(trees::gate(), &[("hooks/desk/desk.cedar", &format!("// version {version}\n{policies}"))])
    };
    let setup = Setup::without_bundle();
    trees::publish(&large(0), &setup.bundle(), 0);
    let sidecar = setup.start().await;
    let (gate, run) = (sidecar.gate().await, wire::run());
    // Whether a call fits into one compilation is luck; whether it can at all is not.
    for version in 1.. {
        let before = sidecar.generation().await;
        trees::publish(&large(version), &sidecar.setup().bundle(), version);
        let mut beside = 0;
        while sidecar.generation().await == before {
            let compiling = thread(sidecar.pid(), "tollgate-compil");
            let answer = gate.evaluate(wire::call(&run, "desk.read", "{}")).await.unwrap();
            let still = compiling.is_some() && thread(sidecar.pid(), "tollgate-compil") == compiling;
            if still {
                assert_eq!(answer.response().generation.as_ref(), Some(&before));
                beside += 1;
            }
        }
        if beside > 0 {
            return;
        }
        assert!(version < 20, "no call was answered while a bundle was compiled");
    }
}

/// The thread of a process that has this name, of which the kernel keeps fifteen bytes.
#[cfg(target_os = "linux")]
fn thread(process: u32, name: &str) -> Option<std::ffi::OsString> {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).unwrap();
    let is_it =
        |task: &std::fs::DirEntry| std::fs::read_to_string(task.path().join("comm")).is_ok_and(|comm| comm.trim_end() == name);
    tasks.flatten().find(is_it).map(|task| task.file_name())
}

//! What must hold of the record that survived, and of what was told, once a world has come to rest.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use futures_util::FutureExt as _;
use tollgate_domain::{
    Decision, Evaluated, Fact, GenerationActivated, History, InvocationId, InvocationState, NoticeResult, StoredFact, SystemRun,
    Terminal, WhenNoHookMatches, codes, invariants,
};
use tollgate_tests::journal_file::{is_closed_by, pages};

use crate::{
    caller,
    sidecar::Sidecar,
    world::{Told, World},
};

/// Everything that is durable.
pub(crate) struct Record {
    histories: Vec<(History, Vec<StoredFact>)>,
    lives: BTreeMap<InvocationId, Life>,
}

/// One invocation as its facts tell it.
#[derive(Debug, Default)]
struct Life {
    state: InvocationState,
    evaluated: Option<(u64, Evaluated)>,
    terminal: Option<(u64, Terminal)>,
    sidecar: String,
    /// The position of the latest fact.
    last: u64,
}

impl Record {
    /// Reads what is durable, and finds every history sound.
    pub(crate) fn of(world: &World, sidecars: &[Arc<Sidecar>]) -> Self {
        let systems = sidecars.iter().map(|sidecar| SystemRun::Sidecar(sidecar.id.clone()));
        let systems = systems.chain([SystemRun::Bundle("acme".parse().unwrap())]).map(History::System);
        let histories = caller::runs().map(History::Run).chain(systems);
        let mut record = Self {
            histories: histories
                .map(|history| (history.clone(), pages(&*world.durable, &history).now_or_never().unwrap()))
                .collect(),
            lives: BTreeMap::new(),
        };
        for (history, facts) in &record.histories {
            let mut before = None;
            for fact in facts {
                world.require(invariants::continues(history, before, fact), || format!("{fact:?} does not continue {history:?}"));
                before = Some(fact);
            }
        }
        let mut positions: Vec<_> = record.facts().map(|fact| fact.position).collect();
        positions.sort_unstable();
        world.require(positions.iter().copied().eq(1..=positions.len() as u64), || "positions have gaps".to_owned());
        record.live(world);
        record
    }

    fn facts(&self) -> impl Iterator<Item = &StoredFact> {
        self.histories.iter().flat_map(|(_, facts)| facts)
    }

    /// Follows every invocation, and counts the attempts of every tool call.
    fn live(&mut self, world: &World) {
        let mut attempts: HashMap<_, u32> = HashMap::new();
        let mut lives: BTreeMap<InvocationId, Life> = BTreeMap::new();
        for (history, facts) in &self.histories {
            for fact in facts {
                let Some(id) = &fact.invocation else { continue };
                let life = lives.entry(id.clone()).or_default();
                life.last = fact.position;
                match life.state.step(&fact.fact) {
                    Ok(state) => life.state = state,
                    Err(illegal) => world.require(false, || format!("{id}: {illegal}")),
                }
                match &fact.fact {
                    Fact::ToolCallStarted(started) => {
                        life.sidecar = started.sidecar.to_string();
                        let attempt = attempts.entry((history, &fact.tool_call)).or_default();
                        *attempt += 1;
                        world.require(fact.attempt == *attempt, || format!("{id} is attempt {} and not {attempt}", fact.attempt));
                    }
                    Fact::GovernanceEvaluated(evaluated) => life.evaluated = Some((fact.position, evaluated.clone())),
                    Fact::ToolCallCompleted(end) | Fact::ToolCallFailed(end) | Fact::ToolCallCancelled(end) => {
                        life.terminal = Some((fact.position, end.clone()));
                    }
                    _ => {}
                }
            }
        }
        self.lives = lives;
    }

    /// Every decision on record follows from its trace and from one generation, and was noticed as it should be.
    pub(crate) fn check_decisions(&self, world: &World) {
        let activations: Vec<_> = self
            .facts()
            .filter_map(|fact| match &fact.fact {
                Fact::GenerationActivated(activated) => Some((fact.position, activated)),
                _ => None,
            })
            .collect();
        for (id, life) in &self.lives {
            let Some((position, evaluated)) = &life.evaluated else { continue };
            let trace = &evaluated.trace;
            world.require(invariants::decision_follows(trace, WhenNoHookMatches::Deny), || format!("{id}: {trace:?}"));
            world.require(invariants::asked_in_order(trace), || format!("{id} was judged out of order: {trace:?}"));
            let judged_by = |(activated, generation): &&(u64, &GenerationActivated)| {
                activated < position && generation.sidecar == evaluated.sidecar && generation.generation == evaluated.generation
            };
            let generation = activations.iter().find(judged_by).map(|(_, activated)| activated);
            let of_one = generation.is_some_and(|generation| invariants::of_one_generation(evaluated, generation));
            world.require(of_one, || format!("{id} was judged by more than {:?}: {trace:?}", evaluated.generation));
            if let Some((_, terminal)) = &life.terminal {
                check_notices(world, id, evaluated, terminal);
            }
        }
    }

    /// Everything that was told is on record, in its place, and nothing else was told of it.
    pub(crate) fn check_told(&self, world: &World) {
        let told: Vec<_> = world.seen().told.iter().map(|((_, id), (told, _))| (id.clone(), told.clone())).collect();
        for (id, told) in told {
            let Some(life) = self.lives.get(&id) else {
                world.require(false, || format!("{told:?} was told and is lost"));
                continue;
            };
            let Told { decision, position, .. } = &told;
            let kept = match decision {
                Decision::Allow => life.evaluated.as_ref().map(|(position, _)| *position),
                _ => life.terminal.as_ref().map(|(position, _)| *position),
            };
            world.require(kept == Some(*position), || format!("{told:?} was told, and {life:?} is on record"));
            let by_governance = life.terminal.as_ref().is_some_and(|(_, end)| end.reported.is_none());
            world.require(!(*decision == Decision::Allow && by_governance), || {
                format!("{told:?} was told and taken back: {life:?}")
            });
        }
        let outcomes = world.seen().outcomes.clone();
        for ((_, id), outcome) in outcomes {
            let kept = self.lives.get(&id).and_then(|life| life.terminal.as_ref());
            let holds = kept.is_some_and(|(_, end)| (&end.reported, &end.governed) == (&outcome.0, &outcome.1));
            world.require(holds, || format!("{outcome:?} of {id} was told, and {kept:?} is on record"));
        }
    }

    /// No process that lives has left an ALLOW open that nobody was told, nor a beginning without an end.
    pub(crate) fn check_settled(&self, world: &World, sidecars: &[Arc<Sidecar>]) {
        for (id, life) in &self.lives {
            let told = world.seen().told.keys().any(|(_, known)| known == id);
            let alive = sidecars.iter().any(|sidecar| sidecar.name == life.sidecar && world.is_since_start(life.last, sidecar));
            let hanging = match life.state {
                InvocationState::Open => !told,
                InvocationState::Started => true,
                _ => false,
            };
            world.require(!(hanging && alive), || format!("{id} is left hanging: {life:?}"));
            if life.terminal.as_ref().is_some_and(|(_, end)| is_closed_by(end, &codes::JOURNAL_UNAVAILABLE)) {
                world.count("closed after all");
            }
        }
    }

    /// Nothing is left undecided after a start.
    pub(crate) fn check_restarted(&self, world: &World) {
        for (id, life) in &self.lives {
            let undecided = matches!(life.state, InvocationState::Started | InvocationState::Refused);
            world.require(!undecided, || format!("{id} has no end after the last start: {life:?}"));
            if life.terminal.as_ref().is_some_and(|(_, end)| is_closed_by(end, &codes::INTERRUPTED)) {
                world.count("interrupted");
            }
        }
    }
}

/// The hooks that were entered were told, in reverse; those that the record says were told saw it.
fn check_notices(world: &World, id: &InvocationId, evaluated: &Evaluated, terminal: &Terminal) {
    if is_closed_by(terminal, &codes::JOURNAL_UNAVAILABLE) || is_closed_by(terminal, &codes::INTERRUPTED) {
        world.require(terminal.notices.is_empty(), || format!("{id} was closed by governance with notices"));
        return;
    }
    let in_reverse = invariants::told_in_reverse(&evaluated.trace, &terminal.notices);
    world.require(in_reverse, || format!("{id} was noticed otherwise than it was entered: {terminal:?}"));
    let seen = world.seen().notified.get(id).cloned().unwrap_or_default();
    let mut seen = seen.into_iter();
    let kept = terminal.notices.iter().filter(|notice| notice.result != NoticeResult::NotNotified);
    let all = kept.into_iter().all(|notice| seen.any(|hook| hook == notice.hook.as_str()));
    world.require(all, || format!("{id}: hooks were not told what the record says: {terminal:?}"));
}

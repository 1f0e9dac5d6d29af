//! What the hosts of one world share beside the network: what callers ask, what engines answer, and everything
//! that is held against the record, some of it in the moment of an answer.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    fmt::{self, Write as _},
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use futures_util::FutureExt as _;
use tokio::time::Instant;
use tollgate_domain::{
    Call, Clock as _, Decided, Decision, GenerationRef, InvocationId, InvocationRecord, InvocationState, Outcome, Recorded,
    Reported, RunKey, Store as _,
};
use tollgate_engine::{CompleteError, Completion, EvaluateError};
use tollgate_journal::MemoryJournal;

use crate::{
    chance::Chance,
    hooks::{self, Script},
    sidecar::{self, Sidecar},
};

/// An invocation within all runs.
pub(crate) type Id = (RunKey, InvocationId);

/// What a caller asks. It goes by reference; only its number goes over the network.
#[derive(Clone, Debug)]
pub(crate) enum Ask {
    Evaluate { call: Box<Call>, script: Script, timeout: Duration },
    Complete { id: Id, reported: Reported, timeout: Duration },
}

impl fmt::Display for Ask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Evaluate { call, script, timeout } => {
                let id = |id: Option<String>| id.unwrap_or_else(|| "-".to_owned());
                let invocation = id(call.invocation.as_ref().map(ToString::to_string));
                let tool_call = id(call.tool_call.as_ref().map(ToString::to_string));
                write!(f, "{invocation} of {tool_call} {} for {:?} within {timeout:?}", call.tool.id, script.0)
            }
            Self::Complete { id, reported, timeout } => write!(f, "the end of {}, {reported:?}, within {timeout:?}", id.1),
        }
    }
}

/// What an engine answered.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    Decided(Told),
    Undecided,
    Completed,
    NotCompleted(CompleteError),
}

/// A decision as a caller is told it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Told {
    pub(crate) invocation: InvocationId,
    pub(crate) decision: Decision,
    hook: Option<String>,
    code: Option<String>,
    attempt: u32,
    pub(crate) generation: GenerationRef,
    pub(crate) sequence: u64,
    pub(crate) position: u64,
    repeat: bool,
}

/// The moment in which a sidecar took a question.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    pub(crate) number: usize,
    at: Instant,
}

impl Asked {
    pub(crate) fn now(number: usize) -> Self {
        Self { number, at: Instant::now() }
    }
}

#[derive(Debug)]
pub(crate) struct World {
    pub(crate) chance: Chance,
    /// What no crash can take any more.
    pub(crate) durable: Arc<MemoryJournal>,
    seen: Mutex<Seen>,
}

/// Everything that was seen.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    asks: Vec<Ask>,
    replies: HashMap<usize, Reply>,
    /// First decision that was told of each invocation, and the script that it was told for.
    pub(crate) told: HashMap<Id, (Told, Script)>,
    /// Invocations of which a decision was told that is no repeat.
    fresh_told: HashSet<Id>,
    /// First outcome that was told of each invocation.
    pub(crate) outcomes: HashMap<Id, (Option<Outcome>, Outcome)>,
    /// Notices, in order, by hook.
    pub(crate) notified: HashMap<InvocationId, Vec<&'static str>>,
    pub(crate) figures: BTreeMap<&'static str, usize>,
    fresh: u64,
    /// The last position before each sidecar's present process.
    started: HashMap<&'static str, u64>,
    /// Everything that happened, for whoever reads it and for comparing two runs of one seed.
    pub(crate) transcript: String,
    pub(crate) broken: Vec<String>,
}

impl World {
    pub(crate) fn new(seed: u64, durable: Arc<MemoryJournal>) -> Arc<Self> {
        Arc::new(Self { chance: Chance::new(seed), durable, seen: Mutex::default() })
    }

    pub(crate) fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap()
    }

    /// Something that must hold. The world ends with its next step where it does not.
    pub(crate) fn require(&self, holds: bool, what: impl FnOnce() -> String) {
        if !holds {
            let what = what();
            self.note(|| format!("BROKEN: {what}"));
            self.seen().broken.push(what);
        }
    }

    pub(crate) fn note(&self, what: impl FnOnce() -> String) {
        let at = turmoil::sim_elapsed().map_or(0, |elapsed| elapsed.as_millis());
        let what = what();
        writeln!(self.seen().transcript, "{at:>6} {what}").unwrap();
    }

    pub(crate) fn count(&self, figure: &'static str) {
        *self.seen().figures.entry(figure).or_default() += 1;
    }

    pub(crate) fn fresh(&self, of: &str) -> InvocationId {
        let mut seen = self.seen();
        seen.fresh += 1;
        InvocationId::parse(&format!("{of}-{}", seen.fresh)).unwrap()
    }

    /// A process of a sidecar begins.
    pub(crate) fn starts(&self, sidecar: &Sidecar) {
        self.note(|| format!("{} starts", sidecar.name));
        self.seen().started.insert(sidecar.name, self.durable.last_position());
    }

    /// Whether a fact at this position is from the sidecar's present process or a later one of another.
    pub(crate) fn is_since_start(&self, position: u64, sidecar: &Sidecar) -> bool {
        self.seen().started.get(sidecar.name).is_some_and(|start| position > *start)
    }

    pub(crate) fn ask(&self, ask: Ask) -> usize {
        let mut seen = self.seen();
        seen.asks.push(ask);
        seen.asks.len() - 1
    }

    pub(crate) fn asked(&self, number: usize) -> Ask {
        self.seen().asks[number].clone()
    }

    pub(crate) fn reply(&self, number: usize) -> Option<Reply> {
        self.seen().replies.get(&number).cloned()
    }

    pub(crate) fn notified(&self, hook: &'static str, invocation: &InvocationId) {
        self.note(|| format!("tell {hook} of {invocation}"));
        self.seen().notified.entry(invocation.clone()).or_default().push(hook);
    }

    /// An invocation as it would survive a crash of everything in this moment.
    pub(crate) fn durable(&self, (run, invocation): &Id) -> Option<InvocationRecord> {
        self.durable.invocation(run, invocation).now_or_never().unwrap().unwrap()
    }

    /// An engine gives a decision, or none: what must hold in this very moment.
    pub(crate) fn evaluated(&self, sidecar: &Sidecar, asked: Asked, cancelled: bool, answer: &Result<Recorded, EvaluateError>) {
        let Ask::Evaluate { call, script, timeout } = self.asked(asked.number) else { panic!("an answer to another question") };
        let took = asked.at.elapsed();
        let (told, valid_until) = match answer {
            Ok(recorded) => tell(recorded),
            Err(error) => {
                self.note(|| format!("{} answers {}: {error:?}", sidecar.name, asked.number));
                self.require(*error != EvaluateError::Internal, || format!("an internal error for {}", asked.number));
                self.count(kind_of(error));
                self.in_time(asked, took, timeout, call.invocation.as_ref());
                self.seen().replies.insert(asked.number, Reply::Undecided);
                return;
            }
        };
        self.note(|| format!("{} answers {}: {told:?}", sidecar.name, asked.number));
        let id = (call.run.clone(), told.invocation.clone());
        let what = || format!("{told:?}, told for {:?}", id.0);
        self.in_time(asked, took, timeout, Some(&told.invocation));
        self.require(call.invocation.is_none_or(|named| named == told.invocation), || format!("another invocation: {}", what()));

        let kept = self.durable(&id);
        let evaluated = kept.as_ref().and_then(|kept| kept.evaluated.as_ref());
        self.require(
            evaluated.is_some_and(|kept| {
                (kept.trace.decision, &kept.generation) == (told.decision, &told.generation)
                    && kept.trace.decided_by.as_ref().map(ToString::to_string) == told.hook
                    && kept.trace.code.as_ref().map(ToString::to_string) == told.code
            }),
            || format!("not what is durable, {kept:?}: {}", what()),
        );
        let place = kept.as_ref().map(|kept| (kept.receipt.sequence, kept.receipt.position, kept.receipt.attempt));
        self.require(place == Some((told.sequence, told.position, told.attempt)), || format!("not in its place: {}", what()));
        if told.decision == Decision::Allow {
            let state = kept.as_ref().map(|kept| kept.state);
            self.require(state == Some(InvocationState::Open), || format!("ALLOW of what is {state:?}: {}", what()));
            self.require(!cancelled, || format!("ALLOW after the cancellation: {}", what()));
            self.require(took <= timeout + TICK, || {
                format!("ALLOW {took:?} after it was asked for, with {timeout:?}: {}", what())
            });
            let now = sidecar.clock.now();
            self.require(valid_until.is_some_and(|until| now <= until), || format!("ALLOW past its validity: {}", what()));
        } else {
            let ended = kept.as_ref().is_some_and(|kept| kept.state.is_terminal());
            self.require(ended, || format!("refused without an end: {}", what()));
        }
        let flavour = hooks::flavour_of(&told.generation.digest);
        let cut = told.code.as_deref() == Some("tool_execution_cancelled");
        // A refusal may be repeated to a call whose arguments can no longer be compared.
        if !cut && (!told.repeat || told.decision == Decision::Allow) {
            let due = flavour.and_then(|flavour| hooks::verdict_of(flavour, script));
            self.require(due == Some(told.decision), || format!("{script:?} must come to {due:?}: {}", what()));
        }
        self.count(match (told.decision, told.repeat) {
            (Decision::Allow, false) => "allowed",
            (Decision::Allow, true) => "allowed again",
            (Decision::Deny, false) => "denied",
            (Decision::Failed, false) if cut => "cut",
            (_, false) => "failed",
            (_, true) => "refused again",
        });

        let mut seen = self.seen();
        let first = seen.told.entry(id.clone()).or_insert_with(|| (told.clone(), script)).clone();
        // A repeat may overtake it.
        let once = told.repeat || seen.fresh_told.insert(id.clone());
        seen.replies.insert(asked.number, Reply::Decided(told.clone()));
        drop(seen);
        let same = Told { repeat: first.0.repeat, ..told.clone() } == first.0;
        self.require(same, || format!("two decisions, {:?} and {}", first.0, what()));
        if told.decision == Decision::Allow {
            self.require(first.1 == script, || format!("ALLOW for arguments that were not judged: {}", what()));
            self.require(once, || format!("ALLOW twice without saying so: {}", what()));
        }
    }

    /// Nobody waits past the deadline, but for the refusal of a cut call, which is written on time of its own once the
    /// entered hooks were told.
    fn in_time(&self, asked: Asked, took: Duration, timeout: Duration, invocation: Option<&InvocationId>) {
        // Without a name, and without an answer that gives it one, it cannot be known how many.
        let told = invocation.map_or(HOOKS_MAX_COUNT, |id| self.seen().notified.get(id).map_or(0, Vec::len));
        let telling = NOTICE_MAX_WAIT * u32::try_from(told).unwrap();
        let bound = timeout + telling + sidecar::CANCELLED_RECORD_WAIT + TICK;
        self.require(took <= bound, || format!("question {} waited {took:?}, past {bound:?}", asked.number));
    }

    /// An engine records an outcome, or none.
    pub(crate) fn completed(&self, sidecar: &Sidecar, asked: Asked, answer: &Result<Completion, CompleteError>) {
        let Ask::Complete { id, timeout, .. } = self.asked(asked.number) else { panic!("an answer to another question") };
        let took = asked.at.elapsed();
        self.note(|| format!("{} completes {}, {}: {answer:?}", sidecar.name, asked.number, id.1));
        self.require(took <= timeout + TICK, || format!("outcome {} waited {took:?}, past {timeout:?}", asked.number));
        let reply = match answer {
            Ok(completion) => {
                let kept = self.durable(&id).and_then(|kept| kept.terminal);
                let holds =
                    kept.is_some_and(|kept| (&kept.reported, &kept.governed) == (&completion.reported, &completion.governed));
                self.require(holds, || format!("outcome of {} that is not durable: {completion:?}", id.1));
                let outcome = (completion.reported.clone(), completion.governed.clone());
                let first = self.seen().outcomes.entry(id.clone()).or_insert_with(|| outcome.clone()).clone();
                self.require(first == outcome, || format!("two outcomes of {}: {first:?} and {outcome:?}", id.1));
                self.count(if completion.repeat { "completed again" } else { "completed" });
                Reply::Completed
            }
            Err(error) => {
                self.require(*error != CompleteError::Internal, || format!("an internal error for the outcome of {}", id.1));
                self.count("not completed");
                Reply::NotCompleted(error.clone())
            }
        };
        self.seen().replies.insert(asked.number, reply);
    }
}

/// The grain of tokio's timer, up to which a wait may be longer than asked for.
const TICK: Duration = Duration::from_millis(1);
/// How long a hook may take over one notice.
const NOTICE_MAX_WAIT: Duration = Duration::from_secs(5);
/// Most hooks of one chain that are told.
const HOOKS_MAX_COUNT: usize = 4;

fn tell(recorded: &Recorded) -> (Told, Option<tollgate_domain::Timestamp>) {
    let (decision, hook, code, valid_until) = match recorded {
        Recorded::Allowed(pass) => (Decision::Allow, None, None, Some(pass.valid_until())),
        Recorded::Refused(refusal) => {
            let text = |id: &dyn ToString| id.to_string();
            (refusal.decision, refusal.hook.as_ref().map(|id| text(id)), refusal.code.as_ref().map(|id| text(id)), None)
        }
    };
    let Decided { invocation, attempt, generation, sequence, position, repeat, .. } = recorded.decided();
    let (invocation, generation) = (invocation.clone(), generation.clone());
    let told = Told {
        invocation,
        decision,
        hook,
        code,
        attempt: *attempt,
        generation,
        sequence: *sequence,
        position: *position,
        repeat: *repeat,
    };
    (told, valid_until)
}

const fn kind_of(error: &EvaluateError) -> &'static str {
    match error {
        EvaluateError::Invalid { .. } => "invalid",
        EvaluateError::PermissionDenied { .. } => "not permitted",
        EvaluateError::NoGeneration => "no generation",
        EvaluateError::Journal(_) => "journal unavailable",
        EvaluateError::InvocationReused(_) => "reused",
        EvaluateError::DecisionExpired(_) => "expired",
        EvaluateError::InvocationUnverifiable(_) => "unverifiable",
        EvaluateError::Cancelled => "cancelled",
        EvaluateError::StillInFlight(_) => "still in flight",
        EvaluateError::ShuttingDown => "shutting down",
        EvaluateError::Internal => "internal",
    }
}

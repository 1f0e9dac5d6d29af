//! An engine with a bundle on a journal in memory: what decides in a sidecar, without its doors.

use std::{
    fmt::Write as _,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use tokio_util::sync::CancellationToken;
use tollgate_domain::{
    Bundle, Call, Clock, Decision, DecisionRules, Enforcement, Evaluated, Fact, FactFilter, FactQuery, History, HookEvaluation,
    IdentityKey, InvocationId, Monotonic, PageLimit, PolicyId, Reader as _, Recorded, Rights, RunKey, SidecarId, Timestamp,
    VerdictKind, WhenNoHookMatches,
};
use tollgate_engine::{Engine, EngineOptions, EngineParts, EvaluateError};
use tollgate_journal::MemoryJournal;

/// When every call of a bench is made: 2026-03-02T10:00:00Z.
pub const NOW: Timestamp = Timestamp::from_micros(1_772_445_600_000_000);
/// The stack of threads that evaluate, as in the program.
const STACK_BYTES: usize = 16 * 1_048_576;

/// An engine that decides by one bundle.
#[derive(Debug)]
pub struct Bench {
    engine: Arc<Engine>,
    journal: Arc<MemoryJournal>,
}

/// What came of one call: the answer, and the decision as the journal holds it.
#[derive(Debug)]
pub struct Answer {
    /// What the caller is told.
    pub told: Result<Recorded, EvaluateError>,
    /// What is on record; absent where there is no decision.
    pub kept: Option<Evaluated>,
}

/// Runs a test on a thread with the stack that evaluation needs.
pub fn run<F: Future<Output = ()>>(test: impl FnOnce() -> F + Send + 'static) {
    let work = move || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test());
    let thread = thread::Builder::new().stack_size(STACK_BYTES).spawn(work).unwrap();
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

/// The bundle in a directory; fails with its findings where it has any, and says whose it is.
#[must_use]
pub fn load(directory: &Path, whose: &str) -> Bundle {
    tollgate_policy::load(directory).unwrap_or_else(|report| panic!("{whose}:\n{}", report.render(false)))
}

impl Bench {
    /// An engine that decides by a bundle.
    pub async fn of(bundle: Bundle) -> Self {
        let journal = Arc::new(MemoryJournal::new());
        let made = AtomicU64::new(0);
        let parts = EngineParts {
            store: Arc::clone(&journal) as _,
            clock: Arc::new(Stopped),
            fresh_invocation: Box::new(move || {
                let number = made.fetch_add(1, Ordering::Relaxed) + 1;
                InvocationId::parse(&format!("invocation-{number}")).unwrap()
            }),
            key: IdentityKey::from_bytes(&[7; 32]).unwrap(),
            local_hooks: Vec::new(),
        };
        let options = EngineOptions {
            rules: DecisionRules {
                when_no_hook_matches: WhenNoHookMatches::Deny,
                validity_us: 60_000_000,
                sidecar: SidecarId::parse("bench").unwrap(),
            },
            journal_max_wait: Duration::from_secs(30),
            cancelled_record_wait: Duration::from_secs(30),
            keep_failure_messages: false,
            version: "0".to_owned(),
        };
        let bench = Self { engine: Engine::new(parts, options), journal };
        bench.activate(bundle).await;
        bench
    }

    /// Makes a bundle the one that decides.
    pub async fn activate(&self, bundle: Bundle) {
        let revision = bundle.revision.clone();
        self.engine.consider(Ok(bundle)).await;
        let status = self.engine.status();
        let active = status.active.as_ref().expect("a generation is active");
        assert_eq!(active.revision(), &revision, "the bundle was not activated");
    }

    /// Asks about a call, as a caller whose claims are trusted or not.
    pub async fn ask(&self, call: Call, trust_claims: bool) -> Answer {
        let rights = Rights { trust_claims, ..Rights::default() };
        let run = call.run.clone();
        let told = self.engine.evaluate(&rights, call, Duration::from_secs(30), &CancellationToken::new()).await;
        let kept = match &told {
            Ok(recorded) => Some(self.kept(run, &recorded.decided().invocation).await),
            Err(_) => None,
        };
        let answer = Answer { told, kept };
        answer.check();
        answer
    }

    async fn kept(&self, run: RunKey, invocation: &InvocationId) -> Evaluated {
        let limit = PageLimit::new(200).unwrap();
        let query = FactQuery { history: History::Run(run), filter: FactFilter::default(), after_sequence: 0, limit };
        let page = self.journal.facts(query).await.unwrap().expect("the run is on record");
        let mut decisions = page.facts.into_iter().filter(|stored| stored.invocation.as_ref() == Some(invocation));
        let decision =
            decisions.find_map(|stored| if let Fact::GovernanceEvaluated(found) = stored.fact { Some(found) } else { None });
        decision.expect("the decision is on record")
    }
}

impl Answer {
    /// What is told is what is kept.
    fn check(&self) {
        let (Ok(told), Some(kept)) = (&self.told, &self.kept) else { return };
        assert_eq!(told.decided().generation, kept.generation);
        match told {
            Recorded::Allowed(_) => assert_eq!((kept.trace.decision, &kept.trace.code), (Decision::Allow, &None)),
            Recorded::Refused(refusal) => {
                let trace = &kept.trace;
                assert_eq!((refusal.decision, &refusal.code, &refusal.hook), (trace.decision, &trace.code, &trace.decided_by));
            }
        }
    }

    /// The decision in one word, with its code where it has one: `A`, `D no_permit`, `F policy_error`.
    #[must_use]
    pub fn short(&self) -> String {
        let Some(kept) = &self.kept else { return "no decision".to_owned() };
        let letter = match kept.trace.decision {
            Decision::Allow => "A",
            Decision::Deny => "D",
            Decision::Failed => "F",
            Decision::Mocked => "M",
        };
        kept.trace.code.as_ref().map_or_else(|| letter.to_owned(), |code| format!("{letter} {code}"))
    }

    /// The decision as people review it: what the caller is told, and below it every hook that was asked.
    #[must_use]
    pub fn in_full(&self) -> String {
        let mut text = String::new();
        let kept = match (&self.told, &self.kept) {
            (Ok(_), Some(kept)) => kept,
            (Err(error), _) => return format!("no decision: {error}\n"),
            (Ok(_), None) => panic!("a decision is kept"),
        };
        let trace = &kept.trace;
        text.push_str(match trace.decision {
            Decision::Allow => "ALLOW",
            Decision::Deny => "DENY",
            Decision::Failed => "FAILED",
            Decision::Mocked => "MOCKED",
        });
        if let Some(code) = &trace.code {
            write!(text, " {code}").unwrap();
        }
        if let Some(hook) = &trace.decided_by {
            write!(text, " by {hook}").unwrap();
        }
        if let Ok(Recorded::Refused(refusal)) = &self.told
            && let Some(message) = &refusal.message
        {
            write!(text, "\n{}", message.tell()).unwrap();
        }
        text.push('\n');
        for entry in &trace.hooks {
            writeln!(text, "{:>3}. {}", entry.position, of_hook(entry)).unwrap();
        }
        text
    }
}

fn of_hook(entry: &HookEvaluation) -> String {
    let verdict = match entry.verdict {
        VerdictKind::Allowed => "allowed",
        VerdictKind::Denied => "denied",
        VerdictKind::Failed => "failed",
        VerdictKind::Abstained => "abstained",
    };
    let mut text = format!("{:<21} {verdict}", entry.hook.as_str());
    if let Some(code) = &entry.code {
        write!(text, " {code}").unwrap();
    }
    for (what, policies) in [(" by", &entry.evidence.determining), ("; erring", &entry.evidence.erroring)] {
        if !policies.is_empty() {
            let names: Vec<_> = policies.iter().map(PolicyId::as_str).collect();
            write!(text, "{what} {}", names.join(", ")).unwrap();
        }
    }
    if entry.enforcement == Enforcement::Shadow {
        text.push_str(" (shadow)");
    }
    text
}

/// A clock that stands still, so that nothing in a test depends on when it runs.
#[derive(Debug)]
struct Stopped;

impl Clock for Stopped {
    fn now(&self) -> Timestamp {
        NOW
    }

    fn monotonic(&self) -> Monotonic {
        Monotonic::default()
    }
}

//! Facts, entries and stores to test with, and what must hold of any history.

use std::{collections::HashMap, path::Path, sync::Arc};

use tollgate_domain::{
    Agent, AgentId, AgentRevision, BundleName, CallRecord, Code, Decision, Digest, Enforcement, Entry, Evaluated, Evidence, Fact,
    FactFilter, FactQuery, FailureKind, GenerationActivated, GenerationRef, History, HookEvaluation, HookId, IdentityKey,
    InvocationId, InvocationKey, InvocationState, ManagedResource, Outcome, OwnerKind, PageLimit, Reader, ResourceId, Revision,
    RunKey, Runtime, SidecarId, Source, Started, Store, StoredFact, Subject, SystemRun, Terminal, Timestamp, ToolCallId, ToolId,
    ToolRef, Trace, VerdictKind, chain_digest,
};
use tollgate_journal::{OpenError, SqliteJournal, SqliteOptions};

/// What every store is.
pub(crate) trait Journal: Store + Reader + 'static {}
impl<T: Store + Reader + 'static> Journal for T {}

/// A store, and the directory that it needs, if it needs one.
pub(crate) struct Kept<J> {
    pub(crate) journal: Arc<J>,
    pub(crate) _directory: Option<tempfile::TempDir>,
}

pub(crate) fn key(byte: u8) -> IdentityKey {
    IdentityKey::from_bytes(&[byte; 32]).unwrap()
}

pub(crate) fn options(path: &Path) -> SqliteOptions {
    let key = key(1);
    let mut options = SqliteOptions::new(path, (key.id(), key.check_value()), sidecar("sidecar-1"));
    options.wal_bytes = 262_144;
    options
}

pub(crate) async fn open(path: &Path) -> Result<SqliteJournal, OpenError> {
    SqliteJournal::open(options(path)).await
}

pub(crate) fn sidecar(id: &str) -> SidecarId {
    SidecarId::parse(id).unwrap()
}

pub(crate) fn run(id: &str) -> RunKey {
    run_in("acme", id)
}

pub(crate) fn run_in(tenant: &str, id: &str) -> RunKey {
    RunKey {
        tenant: tenant.parse().unwrap(),
        workspace: "support".parse().unwrap(),
        owner_kind: OwnerKind::Run,
        owner: "desk".parse().unwrap(),
        run: id.parse().unwrap(),
    }
}

pub(crate) fn tool_call(id: &str) -> ToolCallId {
    id.parse().unwrap()
}

pub(crate) fn invocation(id: &str) -> InvocationId {
    id.parse().unwrap()
}

/// An invocation of a tool call of `tool`.
pub(crate) fn of(call: &str, id: &str, tool: &str) -> InvocationKey {
    InvocationKey { tool_call: tool_call(call), invocation: invocation(id), tool: tool.parse().unwrap() }
}

fn subject(tool: &str) -> Subject {
    Subject {
        agent: Agent { id: AgentId::parse("agent").unwrap(), revision: AgentRevision::parse("1").unwrap() },
        principal: None,
        tool: ToolRef { id: ToolId::parse(tool).unwrap(), provider: None, external_name: None },
    }
}

pub(crate) fn started(tool: &str, at: i64) -> Fact {
    let call = CallRecord {
        subject: subject(tool),
        arguments_bytes: 2,
        derived_with: None,
        claimed_groups: Vec::new(),
        claimed_approval: None,
        claims_trusted: false,
        runtime: Runtime::default(),
    };
    Fact::ToolCallStarted(Started { call, sidecar: sidecar("sidecar-1"), at: Timestamp::from_micros(at) })
}

/// A decision by one managed hook, `hooks/<hook>`, of a generation.
pub(crate) fn evaluated_by(tool: &str, hook: &str, decision: Decision, generation: u64) -> Fact {
    let (verdict, code) = match decision {
        Decision::Allow | Decision::Mocked => (VerdictKind::Allowed, None),
        Decision::Deny => (VerdictKind::Denied, Some(Code::parse("no").unwrap())),
        Decision::Failed => (VerdictKind::Failed, Some(Code::parse("broken").unwrap())),
    };
    let entry = HookEvaluation {
        position: 1,
        hook: HookId::parse(hook).unwrap(),
        order: 0,
        source: Source::Managed,
        enforcement: Enforcement::Enforce,
        resource: Some(ManagedResource { id: ResourceId::parse(&format!("hooks/{hook}")).unwrap(), generation: 1 }),
        digest: Some(Digest::of(hook.as_bytes())),
        verdict,
        code: code.clone(),
        evidence: Evidence::default(),
        outcome: false,
        duration_us: 3,
    };
    Fact::GovernanceEvaluated(Evaluated {
        subject: subject(tool),
        generation: generation_ref(generation),
        trace: Trace { decision, decided_by: code.as_ref().map(|_| HookId::parse(hook).unwrap()), code, hooks: vec![entry] },
        valid_until: (decision == Decision::Allow).then(|| Timestamp::from_micros(60_000_000)),
        sidecar: sidecar("sidecar-1"),
        at: Timestamp::from_micros(2),
        duration_us: 1,
    })
}

fn generation_ref(number: u64) -> GenerationRef {
    GenerationRef { bundle: BundleName::parse("acme").unwrap(), number, digest: Digest::of(&number.to_be_bytes()) }
}

pub(crate) fn evaluated(tool: &str, decision: Decision) -> Fact {
    evaluated_by(tool, "guard", decision, 1)
}

pub(crate) fn ended(governed: Outcome) -> Fact {
    Terminal {
        reported: None,
        governed,
        notices: Vec::new(),
        sidecar: sidecar("sidecar-1"),
        at: Timestamp::from_micros(9),
        duration_us: 8,
    }
    .into_fact()
}

pub(crate) fn succeeded() -> Fact {
    ended(Outcome::Succeeded { tool_error: false })
}

pub(crate) fn denied() -> Fact {
    ended(Outcome::Failed { failure: FailureKind::Denied, code: None, error_type: None, error_message: None })
}

pub(crate) fn cancelled() -> Fact {
    ended(Outcome::Cancelled { code: None })
}

pub(crate) fn activated(bundle: &str, by: &str, number: u64) -> Entry {
    let bundle = BundleName::parse(bundle).unwrap();
    let fact = GenerationActivated {
        generation: GenerationRef { bundle: bundle.clone(), number, digest: Digest::of(b"bundle") },
        revision: Revision::parse("r").unwrap(),
        serial: Some(number * 10),
        replaced: None,
        hooks: Vec::new(),
        sidecar: sidecar(by),
        at: Timestamp::from_micros(1),
    };
    Entry { history: History::System(SystemRun::Bundle(bundle)), invocation: None, facts: vec![Fact::GenerationActivated(fact)] }
}

pub(crate) fn entry(run: &RunKey, key: &InvocationKey, facts: Vec<Fact>) -> Entry {
    Entry { history: History::Run(run.clone()), invocation: Some(key.clone()), facts }
}

/// Started and decided in one entry, as a chain of in-process hooks records it.
pub(crate) fn judged(run: &RunKey, key: &InvocationKey, decision: Decision) -> Entry {
    let tool = key.tool.as_str();
    let mut facts = vec![started(tool, 1), evaluated(tool, decision)];
    if decision != Decision::Allow {
        facts.push(denied());
    }
    entry(run, key, facts)
}

pub(crate) fn limit(count: u32) -> PageLimit {
    PageLimit::new(count).unwrap()
}

/// Pages through a history, and returns all of it.
pub(crate) async fn walk(journal: &impl Reader, history: &History, filter: FactFilter, page: u32) -> Vec<StoredFact> {
    let mut facts: Vec<StoredFact> = Vec::new();
    let mut after_sequence = 0;
    loop {
        let query = FactQuery { history: history.clone(), filter: filter.clone(), after_sequence, limit: limit(page) };
        let Some(found) = journal.facts(query).await.unwrap() else { return facts };
        assert!(found.facts.len() <= page as usize, "a page is never larger than its limit");
        facts.extend(found.facts);
        match found.next {
            None => return facts,
            Some(next) => {
                assert!(next > after_sequence, "paging moves on");
                after_sequence = next;
            }
        }
    }
}

/// All facts of a run, checked by [`assert_sound`].
pub(crate) async fn facts_of(journal: &impl Reader, run: &RunKey) -> Vec<StoredFact> {
    let history = History::Run(run.clone());
    let facts = walk(journal, &history, FactFilter::default(), 200).await;
    assert_sound(&history, &facts);
    facts
}

/// What must hold of every history, whatever happened: sequences without gaps, a digest chain from
/// the genesis, rising positions, lives of invocations that the lifecycle allows, attempts in order.
pub(crate) fn assert_sound(history: &History, facts: &[StoredFact]) {
    let mut previous = history.genesis();
    let mut position = 0;
    let mut states: HashMap<InvocationId, (InvocationState, u32)> = HashMap::new();
    let mut attempts: HashMap<ToolCallId, u32> = HashMap::new();
    for (stored, sequence) in facts.iter().zip(1..) {
        assert_eq!(stored.sequence, sequence, "sequences have no gaps");
        assert_eq!(stored.previous, previous, "each fact names its predecessor's digest");
        let key = stored.key();
        let body = stored.fact.encode().unwrap();
        assert_eq!(stored.digest, chain_digest(&previous, sequence, stored.attempt, key.as_ref(), &body));
        assert!(stored.position > position, "positions rise");
        (previous, position) = (stored.digest, stored.position);
        let Some(key) = key else { continue };
        let life = states.entry(key.invocation).or_default();
        if *life == <_>::default() {
            let attempt = attempts.entry(key.tool_call).or_default();
            *attempt += 1;
            life.1 = *attempt;
        }
        assert_eq!(life.1, stored.attempt, "an attempt is the place of its Started fact among those of its tool call");
        life.0 = life.0.step(&stored.fact).expect("the lifecycle allows every fact");
    }
}

//! Callers under load who write down what they were told, and a check of that against the journal.

use std::{
    collections::HashMap,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures_util::StreamExt as _;
use tokio::{sync::mpsc, task::JoinSet, time::Instant};
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tollgate_client::{
    Gate,
    v1::{self, evaluate_stream_response::Answer},
};
use tollgate_domain::{Decision, Fact, FactKind, InvocationState, StoredFact, codes};
use tollgate_journal::SqliteReader;
use tonic_types::StatusExt as _;

use crate::{journal_file, sidecar::Sidecar, wire};

/// Callers with one call at a time.
const UNARY: usize = 8;
/// Callers with a stream.
const STREAMS: usize = 4;
/// Elements that a stream has in flight.
const PIPELINED: usize = 8;
/// How long a caller has that does not say otherwise.
pub const DEADLINE: Duration = Duration::from_secs(2);
/// How long a caller has who must get a decision, however busy the machine is.
pub const PATIENT: Duration = Duration::from_mins(1);
/// How much later than its deadline an answer may come on a machine that has other things to do.
const SLACK: Duration = Duration::from_secs(3);
/// Between two calls of a caller who was not answered.
const PAUSE: Duration = Duration::from_millis(10);

/// What callers were told.
#[derive(Debug, Default)]
pub struct Told {
    /// Decisions.
    pub decisions: Vec<(v1::RunKey, v1::EvaluateResponse)>,
    /// Outcomes that were taken.
    pub outcomes: Vec<(v1::RunKey, String, v1::CompleteResponse)>,
    /// That there is no decision.
    pub refusals: Vec<Refusal>,
    /// Calls that were not answered within their deadline.
    pub hangs: usize,
}

/// An answer without a decision.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// The run of the call.
    pub run: v1::RunKey,
    /// Its invocation.
    pub invocation: String,
    /// The sidecar's reason; none where the sidecar was not reached or went away, or where the timer of this side's
    /// own gRPC library was first.
    pub reason: Option<String>,
    /// The cause beside it, which a stream does not carry.
    pub cause: Option<String>,
}

impl Told {
    /// The causes of all refusals for this reason.
    #[must_use]
    pub fn causes(&self, reason: &str) -> Vec<&str> {
        let refusals = self.refusals.iter().filter(|refusal| refusal.reason.as_deref() == Some(reason));
        refusals.filter_map(|refusal| refusal.cause.as_deref()).collect()
    }

    /// Takes over what others were told.
    pub fn extend(&mut self, more: Self) {
        self.decisions.extend(more.decisions);
        self.outcomes.extend(more.outcomes);
        self.refusals.extend(more.refusals);
        self.hangs += more.hangs;
    }
}

/// Callers at work; each has a run of its own.
#[derive(Debug)]
pub struct Load {
    told: Arc<Mutex<Told>>,
    stop: CancellationToken,
    callers: JoinSet<()>,
}

impl Load {
    /// Sets callers to work who wait as long as [`DEADLINE`].
    pub async fn start(sidecar: &Sidecar) -> Self {
        Self::within(sidecar, DEADLINE).await
    }

    /// Sets callers to work who wait so long.
    pub async fn within(sidecar: &Sidecar, deadline: Duration) -> Self {
        let mut load = Self { told: Arc::default(), stop: CancellationToken::new(), callers: JoinSet::new() };
        for number in 0..UNARY + STREAMS {
            let caller = Caller {
                gate: sidecar.gate().await,
                run: wire::run(),
                told: Arc::clone(&load.told),
                stop: load.stop.clone(),
                deadline,
            };
            if number < UNARY {
                load.callers.spawn(caller.ask());
            } else {
                load.callers.spawn(caller.stream());
            }
        }
        load
    }

    /// How many decisions were told.
    #[must_use]
    pub fn decided(&self) -> usize {
        lock(&self.told).decisions.len()
    }

    /// How many calls got no decision, and the cause of that.
    #[must_use]
    pub fn refused(&self) -> usize {
        lock(&self.told).refusals.iter().filter(|refusal| refusal.cause.is_some()).count()
    }

    /// Waits until so many more decisions were told.
    pub async fn decides(&self, more: usize) {
        let enough = self.decided() + more;
        crate::sidecar::eventually("decisions", async || (self.decided() >= enough).then_some(())).await;
    }

    /// Waits until so many more calls got no decision, and the cause of that.
    pub async fn refuses(&self, more: usize) {
        let enough = self.refused() + more;
        crate::sidecar::eventually("refusals", async || (self.refused() >= enough).then_some(())).await;
    }

    /// Lets what is in flight end, and answers what the callers were told.
    pub async fn stop(mut self) -> Told {
        self.stop.cancel();
        while let Some(ended) = self.callers.join_next().await {
            ended.unwrap();
        }
        std::mem::take(&mut lock(&self.told))
    }
}

struct Caller {
    gate: Gate,
    run: v1::RunKey,
    told: Arc<Mutex<Told>>,
    stop: CancellationToken,
    deadline: Duration,
}

impl Caller {
    fn call(&self, number: usize) -> v1::EvaluateRequest {
        wire::call(&self.run, if number % 4 == 3 { "desk.write" } else { "desk.read" }, r#"{"a":1}"#)
    }

    /// One call after the other; most of what is allowed is completed.
    async fn ask(self) {
        for number in 0.. {
            if self.stop.is_cancelled() {
                return;
            }
            let call = self.call(number);
            let invocation = call.invocation_id.clone();
            let mut request = tonic::Request::new(call);
            request.set_timeout(self.deadline);
            let mut client = self.gate.raw();
            match tokio::time::timeout(self.deadline + SLACK, client.evaluate(request)).await {
                Err(_) => lock(&self.told).hangs += 1,
                Ok(Err(status)) => self.refused(invocation, status.get_details_error_info()).await,
                Ok(Ok(answer)) => {
                    let answer = answer.into_inner();
                    let allowed = answer.decision() == v1::Decision::Allow;
                    self.decided(answer);
                    if allowed && number % 3 != 0 {
                        self.complete(&invocation).await;
                    }
                }
            }
        }
    }

    async fn complete(&self, invocation: &str) {
        let mut request = tonic::Request::new(wire::succeeded(&self.run, invocation));
        request.set_timeout(self.deadline);
        let mut client = self.gate.raw();
        match tokio::time::timeout(self.deadline + SLACK, client.complete(request)).await {
            Err(_) => lock(&self.told).hangs += 1,
            Ok(Err(_not_taken)) => {}
            Ok(Ok(answer)) => lock(&self.told).outcomes.push((self.run.clone(), invocation.to_owned(), answer.into_inner())),
        }
    }

    /// Streams, each for as long as the sidecar lives, with some elements in flight.
    async fn stream(self) {
        while !self.stop.is_cancelled() {
            let (elements, receiver) = mpsc::channel(PIPELINED);
            let Ok(answers) = self.gate.raw().evaluate_stream(ReceiverStream::new(receiver)).await else {
                tokio::time::sleep(PAUSE).await;
                continue;
            };
            self.pipeline(elements, answers.into_inner()).await;
        }
    }

    async fn pipeline(
        &self,
        elements: mpsc::Sender<v1::EvaluateStreamRequest>,
        mut answers: tonic::Streaming<v1::EvaluateStreamResponse>,
    ) {
        let millis = u32::try_from(self.deadline.as_millis()).unwrap();
        let mut waiting: HashMap<String, Instant> = HashMap::new();
        for number in 0.. {
            if !self.stop.is_cancelled() {
                let call = self.call(number);
                waiting.insert(call.invocation_id.clone(), Instant::now());
                if elements.send(wire::timed_element(call, Some(millis))).await.is_err() {
                    return;
                }
            }
            if waiting.len() < PIPELINED && !self.stop.is_cancelled() {
                continue;
            }
            let Some(oldest) = waiting.values().min() else { return };
            let Ok(answer) = tokio::time::timeout_at(*oldest + self.deadline + SLACK, answers.next()).await else {
                lock(&self.told).hangs += 1;
                return;
            };
            let Some(Ok(answer)) = answer else { return };
            if waiting.remove(&answer.invocation_id).is_some_and(|begun| begun.elapsed() > self.deadline + SLACK) {
                lock(&self.told).hangs += 1;
            }
            match answer.answer.unwrap() {
                Answer::Response(response) => self.decided(response),
                Answer::Error(error) => {
                    let refusal = Refusal {
                        run: self.run.clone(),
                        invocation: answer.invocation_id,
                        reason: Some(error.reason),
                        cause: None,
                    };
                    lock(&self.told).refusals.push(refusal);
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    fn decided(&self, response: v1::EvaluateResponse) {
        lock(&self.told).decisions.push((self.run.clone(), response));
    }

    async fn refused(&self, invocation: String, info: Option<tonic_types::ErrorInfo>) {
        let cause = info.as_ref().and_then(|info| info.metadata.get("cause").cloned());
        let refusal = Refusal { run: self.run.clone(), invocation, reason: info.map(|info| info.reason), cause };
        lock(&self.told).refusals.push(refusal);
        tokio::time::sleep(PAUSE).await;
    }
}

fn lock(told: &Mutex<Told>) -> std::sync::MutexGuard<'_, Told> {
    told.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a journal says to what callers were told.
#[derive(Debug, Default)]
pub struct Verified {
    /// Positions of decisions that were told and are not on record as they were told.
    pub lost: Vec<u64>,
    /// The position of the last decision that is.
    pub kept: u64,
    /// Outcomes that were taken and are not on record.
    pub lost_outcomes: Vec<String>,
    /// ALLOWs without their durable fact.
    pub baseless: Vec<String>,
    /// Attempts whose caller was told that there is no decision, and whose ALLOW stands open on record.
    pub open: Vec<String>,
}

impl Verified {
    /// Fails where anything was lost.
    pub fn assert_nothing_lost(&self) {
        assert!(self.lost.is_empty() && self.lost_outcomes.is_empty() && self.baseless.is_empty(), "{self:#?}");
    }
}

/// Holds what callers were told against the journal, read by a reader of its own. Fails where a chain is not
/// sound, or a life not one that an invocation can have.
pub async fn verify(journal: &Path, told: &Told) -> Verified {
    let reader = SqliteReader::open(journal).await.expect("the journal opens");
    let mut histories: HashMap<&str, Vec<StoredFact>> = HashMap::new();
    let runs = told.decisions.iter().map(|(run, _)| run).chain(told.refusals.iter().map(|refusal| &refusal.run));
    for run in runs {
        if !histories.contains_key(run.run_id.as_str()) {
            let facts = journal_file::facts_from(&reader, &journal_file::history(run)).await;
            check_lives(&facts);
            histories.insert(&run.run_id, facts);
        }
    }
    reader.close().await;
    let lives: HashMap<_, _> = histories.iter().map(|(run, facts)| (*run, by_invocation(facts))).collect();
    let life = |run: &v1::RunKey, invocation: &str| lives[run.run_id.as_str()].get(invocation).cloned().unwrap_or_default();
    let mut verified = Verified::default();
    for (run, answer) in &told.decisions {
        let life = life(run, &answer.invocation_id);
        if answer.decision() == v1::Decision::Allow && !is_allowed(&life) {
            verified.baseless.push(answer.invocation_id.clone());
        }
        if is_on_record(&life, answer) {
            verified.kept = verified.kept.max(answer.position);
        } else {
            verified.lost.push(answer.position);
        }
    }
    for (run, invocation, answer) in &told.outcomes {
        let ended = life(run, invocation).into_iter().find(|stored| stored.fact.kind() == FactKind::ToolCallCompleted);
        if ended.is_none_or(|ended| ended.sequence != answer.sequence) {
            verified.lost_outcomes.push(format!("{invocation}: {answer:?}"));
        }
    }
    for refusal in &told.refusals {
        let life = life(&refusal.run, &refusal.invocation);
        if refusal.reason.as_deref() == Some("JOURNAL_UNAVAILABLE") && is_allowed(&life) && life.len() < 3 {
            verified.open.push(refusal.invocation.clone());
        }
    }
    verified
}

fn by_invocation(facts: &[StoredFact]) -> HashMap<&str, Vec<&StoredFact>> {
    let mut lives: HashMap<&str, Vec<&StoredFact>> = HashMap::new();
    for stored in facts {
        lives.entry(stored.invocation.as_ref().unwrap().as_str()).or_default().push(stored);
    }
    lives
}

/// The decision of a life, where it has one.
fn evaluated<'a>(life: &[&'a StoredFact]) -> Option<&'a tollgate_domain::Evaluated> {
    life.iter().find_map(|stored| if let Fact::GovernanceEvaluated(evaluated) = &stored.fact { Some(evaluated) } else { None })
}

/// Whether an ALLOW is on record that could be told: one that was closed since it could not be told is none.
fn is_allowed(life: &[&StoredFact]) -> bool {
    let untold = life.iter().any(|stored| {
        matches!(&stored.fact, Fact::ToolCallCancelled(terminal)
            if journal_file::is_closed_by(terminal, &codes::JOURNAL_UNAVAILABLE))
    });
    evaluated(life).is_some_and(|evaluated| evaluated.trace.decision == Decision::Allow) && !untold
}

/// Whether a decision is on record as it was told. The answer names the last fact of the decision: of a refusal, the
/// one that closes it.
fn is_on_record(life: &[&StoredFact], answer: &v1::EvaluateResponse) -> bool {
    let Some(last) = life.iter().find(|stored| stored.sequence == answer.sequence) else { return false };
    let Some(evaluated) = evaluated(life) else { return false };
    let decision = format!("DECISION_{}", format!("{:?}", evaluated.trace.decision).to_uppercase());
    (last.position, last.attempt) == (answer.position, answer.attempt)
        && last.tool_call.as_ref().is_some_and(|id| id.as_str() == answer.tool_call_id)
        && decision == answer.decision().as_str_name()
        && evaluated.trace.code.as_ref().map_or("", |code| code.as_str()) == answer.code
        && Some(evaluated.generation.number) == answer.generation.as_ref().map(|generation| generation.number)
}

/// Every invocation has the states that one can have, what was refused is closed, and what was closed says why.
fn check_lives(facts: &[StoredFact]) {
    for (invocation, life) in by_invocation(facts) {
        let end = life.iter().try_fold(InvocationState::default(), |state, stored| state.step(&stored.fact));
        let end = end.unwrap_or_else(|illegal| panic!("{invocation}: {illegal}"));
        assert!(end.is_terminal() || is_allowed(&life), "{invocation} is left {end:?}");
    }
    for stored in facts {
        let Fact::ToolCallCancelled(terminal) = &stored.fact else { continue };
        let known = [&codes::INTERRUPTED, &codes::JOURNAL_UNAVAILABLE, &codes::TOOL_EXECUTION_CANCELLED];
        assert!(known.iter().any(|code| journal_file::is_closed_by(terminal, code)), "{:?}", terminal.governed);
    }
}

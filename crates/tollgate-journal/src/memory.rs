//! A journal in memory, by the same rules. It is durable nowhere, so nothing is ever served from it.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use tollgate_domain::{
    AppendError, BundleName, Entry, Evaluated, FactPage, FactQuery, GenerationNumbers, History, InvocationId, InvocationKey,
    InvocationRecord, LastActivated, Lookup, NumberRequest, PageLimit, Reader, Receipt, ResourceId, RunKey, SidecarId, Started,
    Store, StoreHealth, StoredFact, Terminal, ToolCallId, ToolCallPage, ToolCallSummary, Unavailable, UnavailableCause,
    invariants,
};

use crate::{
    ledger::{Batch, Counters, Known, KnownInvocation, KnownToolCall, Ledger, Prepared},
    numbering::{LastHook, Numbered, Numbering},
    summary::{self, last_activated, last_of_decision, tool_call_summary},
};

/// A journal that ends with its process: for tests, benchmarks and simulation.
#[derive(Debug)]
pub struct MemoryJournal {
    record: Mutex<Record>,
    health: tokio::sync::watch::Sender<StoreHealth>,
}

/// Everything that was ever appended.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) ledger: Ledger,
    /// Every fact; its position is its index, from 1.
    facts: Vec<StoredFact>,
    /// The positions of each history's facts, by its id.
    histories: HashMap<u64, Vec<u64>>,
    bundles: HashMap<BundleName, Vec<(NumberRequest, GenerationNumbers)>>,
    activated: HashMap<(BundleName, SidecarId), LastActivated>,
}

impl Default for MemoryJournal {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryJournal {
    /// An empty journal.
    #[must_use]
    pub fn new() -> Self {
        let record = Record {
            ledger: Ledger::new(Counters { history: 1, position: 1 }),
            facts: Vec::new(),
            histories: HashMap::new(),
            bundles: HashMap::new(),
            activated: HashMap::new(),
        };
        Self { record: Mutex::new(record), health: tokio::sync::watch::Sender::new(StoreHealth::Serving) }
    }

    /// Makes the journal fail for this cause, or serve again with `None`: what a test needs to see
    /// how its callers bear a failure.
    pub fn fail(&self, cause: Option<UnavailableCause>) {
        self.health.send_replace(cause.map_or(StoreHealth::Serving, StoreHealth::Failing));
    }

    /// The position of the last fact; 0 while there is none.
    #[must_use]
    pub fn last_position(&self) -> u64 {
        self.record().facts.len() as u64
    }

    pub(crate) fn record(&self) -> MutexGuard<'_, Record> {
        // Every change is made only after all that could fail.
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Store for MemoryJournal {
    async fn append(&self, entry: Entry) -> Result<Receipt, AppendError> {
        self.health().check()?;
        let prepared = Prepared::new(entry)?;
        Ok(self.record().append(prepared)?)
    }

    async fn lookup(&self, run: &RunKey, tool_call: &ToolCallId, invocation: &InvocationId) -> Result<Lookup, Unavailable> {
        let record = self.record();
        let Some(known) = record.run(run) else { return Ok(Lookup::default()) };
        let call = known.tool_calls.get(tool_call);
        Ok(Lookup {
            attempts: call.map_or(0, |call| call.attempts),
            tool: call.map(|call| call.tool.clone()),
            invocation: known.invocations.get(invocation).and_then(|found| record.invocation(found)),
        })
    }

    async fn invocation(&self, run: &RunKey, invocation: &InvocationId) -> Result<Option<InvocationRecord>, Unavailable> {
        let record = self.record();
        Ok(record.run(run).and_then(|known| known.invocations.get(invocation)).and_then(|found| record.invocation(found)))
    }

    async fn undecided(&self) -> Result<Vec<(RunKey, InvocationKey, Started)>, Unavailable> {
        let record = self.record();
        let mut undecided: Vec<_> = record
            .ledger
            .histories()
            .filter_map(of_run)
            .flat_map(|(run, known)| {
                let open = known.invocations.values().filter(|found| found.state == tollgate_domain::InvocationState::Started);
                open.filter_map(|found| Some((found.started, (run.clone(), record.key(found.started)?, record.started(found)?))))
            })
            .collect();
        undecided.sort_by_key(|(position, _)| *position);
        Ok(undecided.into_iter().map(|(_, found)| found).collect())
    }

    async fn number(&self, request: NumberRequest) -> Result<GenerationNumbers, Unavailable> {
        self.health().check()?;
        Ok(self.record().number(request))
    }

    async fn last_activated(&self, bundle: &BundleName, sidecar: &SidecarId) -> Result<Option<LastActivated>, Unavailable> {
        Ok(self.record().activated.get(&(bundle.clone(), sidecar.clone())).cloned())
    }

    fn health(&self) -> StoreHealth {
        *self.health.borrow()
    }

    async fn health_changed(&self, seen: StoreHealth) -> StoreHealth {
        let mut health = self.health.subscribe();
        // The sender lives as long as the journal that is borrowed here.
        health.wait_for(|now| *now != seen).await.map_or(seen, |now| *now)
    }

    async fn close(&self) {
        self.fail(Some(UnavailableCause::Closed));
    }
}

#[async_trait]
impl Reader for MemoryJournal {
    async fn facts(&self, query: FactQuery) -> Result<Option<FactPage>, Unavailable> {
        let record = self.record();
        let Some(positions) = record.ledger.history(&query.history).and_then(|known| record.histories.get(&known.id?)) else {
            return Ok(None);
        };
        let limit = query.limit.get() as usize;
        let wanted = |fact: &&StoredFact| fact.sequence > query.after_sequence && query.filter.matches(fact);
        let mut facts: Vec<_> =
            positions.iter().filter_map(|position| record.fact(*position)).filter(wanted).take(limit + 1).cloned().collect();
        let more = facts.len() > limit;
        facts.truncate(limit);
        let next = facts.last().filter(|_| more).map(|fact| fact.sequence);
        Ok(Some(FactPage { facts, next }))
    }

    async fn tool_call(&self, run: &RunKey, tool_call: &ToolCallId) -> Result<Option<ToolCallSummary>, Unavailable> {
        let record = self.record();
        let Some(known) = record.run(run) else { return Ok(None) };
        Ok(known.tool_calls.get(tool_call).and_then(|call| record.summary(known, tool_call, call)))
    }

    async fn tool_calls(&self, run: &RunKey, after: u64, limit: PageLimit) -> Result<Option<ToolCallPage>, Unavailable> {
        let record = self.record();
        let Some(known) = record.run(run) else { return Ok(None) };
        let limit = limit.get() as usize;
        let mut calls: Vec<_> = known.tool_calls.iter().filter(|(_, call)| call.first > after).collect();
        calls.sort_by_key(|(_, call)| call.first);
        let more = calls.len() > limit;
        calls.truncate(limit);
        let next = calls.last().filter(|_| more).map(|(_, call)| call.first);
        let tool_calls = calls.into_iter().filter_map(|(id, call)| record.summary(known, id, call)).collect();
        Ok(Some(ToolCallPage { tool_calls, next }))
    }
}

impl Record {
    pub(crate) fn append(&mut self, prepared: Prepared) -> Result<Receipt, tollgate_domain::Conflict> {
        let mut batch = Batch::default();
        let facts = prepared.entry.facts.clone();
        // For the assertion below alone: what others are measured against must not pay for it.
        let history = cfg!(debug_assertions).then(|| prepared.entry.history.clone());
        let receipt = self.ledger.append(prepared, &mut batch)?;
        for (row, fact) in batch.facts.into_iter().zip(facts) {
            let (tool_call, invocation, tool) = match row.invocation {
                Some(key) => (Some(key.tool_call), Some(key.invocation), Some(key.tool)),
                None => (None, None, None),
            };
            let fact = StoredFact {
                sequence: row.sequence,
                position: row.position,
                tool_call,
                invocation,
                tool,
                attempt: row.attempt,
                previous: row.previous,
                digest: row.digest,
                fact,
            };
            debug_assert!(history.as_ref().is_none_or(|history| {
                let before = self.histories.get(&row.history).and_then(|positions| self.fact(*positions.last()?));
                invariants::continues(history, before, &fact)
            }));
            self.histories.entry(row.history).or_default().push(row.position);
            self.facts.push(fact);
        }
        for (_, activated) in batch.activations {
            let of = (activated.generation.bundle.clone(), activated.sidecar.clone());
            self.activated.insert(of, last_activated(activated));
        }
        Ok(receipt)
    }

    pub(crate) fn number(&mut self, request: NumberRequest) -> GenerationNumbers {
        let generations = self.bundles.entry(request.bundle.clone()).or_default();
        let is_same = |(before, _): &&(NumberRequest, GenerationNumbers)| {
            before.revision == request.revision && before.digest == request.digest
        };
        let mut hooks: HashMap<ResourceId, LastHook> = HashMap::new();
        for (before, numbers) in &*generations {
            for (resource, digest) in &before.hooks {
                let generation = numbers.hooks.get(resource).copied().unwrap_or_default();
                hooks.insert(resource.clone(), LastHook { number: numbers.number, generation, digest: *digest });
            }
        }
        let numbered = Numbered {
            highest: generations.last().map_or(0, |(_, numbers)| numbers.number),
            same: generations.iter().rev().find(is_same).map(|(_, numbers)| numbers.clone()),
            hooks,
        };
        match numbered.number(&request) {
            Numbering::Given(numbers) => numbers,
            Numbering::New(numbers) => {
                generations.push((request, numbers.clone()));
                numbers
            }
        }
    }

    fn run(&self, run: &RunKey) -> Option<&Known> {
        self.ledger.history(&History::Run(run.clone()))
    }

    fn fact(&self, position: u64) -> Option<&StoredFact> {
        self.facts.get(usize::try_from(position).ok()?.checked_sub(1)?)
    }

    fn key(&self, position: u64) -> Option<InvocationKey> {
        self.fact(position)?.key()
    }

    fn started(&self, found: &KnownInvocation) -> Option<Started> {
        summary::started(self.fact(found.started)?.fact.clone())
    }

    fn evaluated(&self, found: &KnownInvocation) -> Option<Evaluated> {
        summary::evaluated(self.fact(found.evaluated?)?.fact.clone())
    }

    fn terminal(&self, found: &KnownInvocation) -> Option<Terminal> {
        summary::terminal(self.fact(found.terminal?)?.fact.clone())
    }

    fn invocation(&self, found: &KnownInvocation) -> Option<InvocationRecord> {
        let place =
            |position: u64| self.fact(position).map(|fact| Receipt { sequence: fact.sequence, position, attempt: found.attempt });
        let key = self.key(found.started)?;
        let evaluated = self.evaluated(found);
        let (decided, ended) = (found.evaluated.and_then(place), found.terminal.and_then(place));
        Some(InvocationRecord {
            tool_call: key.tool_call,
            invocation: key.invocation,
            state: found.state,
            started: self.started(found)?,
            receipt: last_of_decision(place(found.started)?, decided, ended, evaluated.as_ref()),
            evaluated,
            terminal: self.terminal(found),
        })
    }

    fn summary(&self, known: &Known, id: &ToolCallId, call: &KnownToolCall) -> Option<ToolCallSummary> {
        let latest = self.key(call.latest)?.invocation;
        let found = known.invocations.get(&latest)?;
        let (evaluated, terminal) = (self.evaluated(found), self.terminal(found));
        let call = (id.clone(), call.tool.clone(), call.attempts);
        Some(tool_call_summary(call, (latest, found.state), &self.started(found)?, evaluated, terminal))
    }
}

fn of_run<'a>((history, known): (&'a History, &'a Known)) -> Option<(&'a RunKey, &'a Known)> {
    match history {
        History::Run(run) => Some((run, known)),
        History::System(_) => None,
    }
}

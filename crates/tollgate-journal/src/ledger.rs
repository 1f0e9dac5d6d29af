//! The rules of an append, once for every store: which entry may follow the record, and what it adds.
//!
//! A [`Ledger`] holds as much of the record as the entries of a batch need, the entries before them
//! in the same batch included. It does no IO: a store loads what [`Ledger::wanted`] asks for, and
//! writes the [`Batch`] that comes out.

use std::collections::{BTreeMap, HashMap, HashSet};

use tollgate_domain::{
    Conflict, Digest, Entry, Fact, FactKind, GenerationActivated, History, IllegalTransition, InvocationId, InvocationKey,
    InvocationState, Lookup, Receipt, Timestamp, ToolCallId, ToolId, Unavailable, UnavailableCause, chain_digest,
};

/// Most histories, tool calls and invocations that a ledger keeps between batches.
const KEPT_MAX_COUNT: usize = 65_536;

/// An entry whose facts are encoded already, off the writer.
#[derive(Debug)]
pub(crate) struct Prepared {
    /// The entry.
    pub(crate) entry: Entry,
    /// The bytes of each of its facts.
    pub(crate) bodies: Vec<Vec<u8>>,
}

impl Prepared {
    /// Encodes an entry; one without facts, or with one that cannot be encoded, is none.
    pub(crate) fn new(entry: Entry) -> Result<Self, Unavailable> {
        let bodies: Vec<_> = entry.facts.iter().filter_map(|fact| fact.encode().ok()).collect();
        if bodies.is_empty() || bodies.len() != entry.facts.len() {
            return Err(Unavailable::refused(UnavailableCause::Other));
        }
        Ok(Self { entry, bodies })
    }
}

/// What a ledger knows of a record.
#[derive(Debug)]
pub(crate) struct Ledger {
    histories: HashMap<History, Known>,
    next: Counters,
    /// The position after the last fact that is known to be durable.
    durable: u64,
    batch: u64,
    /// At most how many histories, tool calls and invocations are kept: three for each entry, counted when too many.
    kept: usize,
    /// Rises whenever anything is forgotten: what was read before may be older than what was.
    epoch: u64,
}

/// What a ledger cannot answer, and has to be looked up in the store.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unknown {
    /// Whether nothing is known of the history, so that it is worth learning.
    pub(crate) history: bool,
    epoch: u64,
}

/// The numbers that the next history and the next fact get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Counters {
    /// Of the next history.
    pub(crate) history: u64,
    /// Of the next fact.
    pub(crate) position: u64,
}

/// What is known of one history.
#[derive(Debug)]
pub(crate) struct Known {
    /// Its number in the store; absent until its first entry is accepted.
    pub(crate) id: Option<u64>,
    /// The sequence of its last fact.
    pub(crate) sequence: u64,
    /// The digest of its last fact.
    pub(crate) digest: Digest,
    /// Tool calls.
    pub(crate) tool_calls: HashMap<ToolCallId, KnownToolCall>,
    /// Invocations.
    pub(crate) invocations: HashMap<InvocationId, KnownInvocation>,
    /// Whether these are all that the history has, so that an absent one need not be looked for.
    complete: bool,
    used: u64,
}

/// A tool call, as its projection tells it.
#[derive(Clone, Debug)]
pub(crate) struct KnownToolCall {
    /// The position of its first Started fact.
    pub(crate) first: u64,
    /// The tool that it is bound to.
    pub(crate) tool: ToolId,
    /// How many attempts began.
    pub(crate) attempts: u32,
    /// The position of the latest attempt's Started fact.
    pub(crate) latest: u64,
}

/// An invocation, as its projection tells it.
#[derive(Clone, Debug)]
pub(crate) struct KnownInvocation {
    /// The position of its Started fact.
    pub(crate) started: u64,
    /// The position of the first Started fact of its tool call.
    pub(crate) tool_call: u64,
    /// Its number among the attempts.
    pub(crate) attempt: u32,
    /// Where it stands.
    pub(crate) state: InvocationState,
    /// The position of its GovernanceEvaluated fact.
    pub(crate) evaluated: Option<u64>,
    /// The position of its terminal fact.
    pub(crate) terminal: Option<u64>,
}

/// What an entry needs to know that the ledger does not.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Wanted {
    /// The history.
    pub(crate) history: History,
    /// The invocation and its tool call.
    pub(crate) invocation: Option<(ToolCallId, InvocationId)>,
}

/// What a store found of something [`Wanted`].
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// The history's id, last sequence and last digest; absent where it does not exist.
    pub(crate) history: Option<(u64, u64, Digest)>,
    /// The tool call.
    pub(crate) tool_call: Option<KnownToolCall>,
    /// The invocation.
    pub(crate) invocation: Option<KnownInvocation>,
}

/// Everything that a batch adds to the store.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    /// New histories, by id.
    pub(crate) histories: Vec<(u64, History)>,
    /// Facts, by position.
    pub(crate) facts: Vec<FactRow>,
    /// Tool calls as they stand after it, by the position of the first Started fact.
    pub(crate) tool_calls: BTreeMap<u64, ToolCallRow>,
    /// Invocations as they stand after it, by the position of the Started fact.
    pub(crate) invocations: BTreeMap<u64, InvocationRow>,
    /// Activations, with the positions of their facts.
    pub(crate) activations: Vec<(u64, GenerationActivated)>,
}

/// A fact as a row.
#[derive(Debug)]
pub(crate) struct FactRow {
    pub(crate) position: u64,
    pub(crate) history: u64,
    pub(crate) sequence: u64,
    pub(crate) kind: FactKind,
    pub(crate) invocation: Option<InvocationKey>,
    pub(crate) attempt: u32,
    pub(crate) at: Timestamp,
    pub(crate) previous: Digest,
    pub(crate) digest: Digest,
    pub(crate) body: Vec<u8>,
}

/// A tool call as a row.
#[derive(Debug)]
pub(crate) struct ToolCallRow {
    pub(crate) history: u64,
    pub(crate) tool_call: ToolCallId,
    pub(crate) known: KnownToolCall,
}

/// An invocation as a row.
#[derive(Debug)]
pub(crate) struct InvocationRow {
    pub(crate) history: u64,
    pub(crate) invocation: InvocationId,
    pub(crate) known: KnownInvocation,
}

impl Batch {
    /// Whether there is nothing to write.
    pub(crate) const fn is_empty(&self) -> bool {
        self.facts.is_empty()
    }
}

impl Known {
    /// A history that has nothing.
    pub(crate) fn absent(history: &History) -> Self {
        Self::new(None, 0, history.genesis(), true)
    }

    /// A history of which everything is known: id, last sequence and last digest, and all its keys.
    pub(crate) fn complete(
        (id, sequence, digest): (u64, u64, Digest),
        tool_calls: impl IntoIterator<Item = (ToolCallId, KnownToolCall)>,
        invocations: impl IntoIterator<Item = (InvocationId, KnownInvocation)>,
    ) -> Self {
        let mut known = Self::new(Some(id), sequence, digest, true);
        known.tool_calls.extend(tool_calls);
        known.invocations.extend(invocations);
        known
    }

    /// A history of which only the end is known: id, last sequence and last digest.
    pub(crate) fn incomplete((id, sequence, digest): (u64, u64, Digest)) -> Self {
        Self::new(Some(id), sequence, digest, false)
    }

    fn new(id: Option<u64>, sequence: u64, digest: Digest, complete: bool) -> Self {
        Self { id, sequence, digest, tool_calls: HashMap::new(), invocations: HashMap::new(), complete, used: 0 }
    }

    fn lacks(&self, key: &InvocationKey) -> bool {
        let both = self.tool_calls.contains_key(&key.tool_call) && self.invocations.contains_key(&key.invocation);
        !(self.complete || both)
    }

    fn weight(&self) -> usize {
        1 + self.tool_calls.len() + self.invocations.len()
    }
}

impl Ledger {
    /// A ledger that knows nothing of its record but where it ends.
    pub(crate) fn new(next: Counters) -> Self {
        Self { histories: HashMap::new(), next, durable: next.position, batch: 0, kept: 0, epoch: 0 }
    }

    /// Begins anew, after a failure: what was appended may not have become durable.
    pub(crate) fn reset(&mut self, next: Counters) {
        *self = Self { epoch: self.epoch + 1, ..Self::new(next) };
    }

    /// Notes that everything that was appended so far is durable.
    pub(crate) fn settle(&mut self) {
        self.durable = self.next.position;
    }

    /// What the record knows of a call, where the ledger can tell: nothing in it is about the invocation, and
    /// everything about the tool call is durable. An attempt that is not must not be counted, since it may never be.
    pub(crate) fn lookup(&self, history: &History, tool_call: &ToolCallId, invocation: &InvocationId) -> Result<Lookup, Unknown> {
        let unknown = |history| Unknown { history, epoch: self.epoch };
        let known = self.histories.get(history).ok_or(unknown(true))?;
        let call = known.tool_calls.get(tool_call);
        let durable = call.is_none_or(|call| call.latest < self.durable);
        if !known.complete || known.invocations.contains_key(invocation) || !durable {
            return Err(unknown(false));
        }
        Ok(Lookup { attempts: call.map_or(0, |call| call.attempts), tool: call.map(|call| call.tool.clone()), invocation: None })
    }

    /// Takes in what a lookup found of a history that was unknown when it began; unless it is known by now, or
    /// something was forgotten since, which may have been newer, or there is no room: only the writer
    /// makes some, between batches.
    pub(crate) fn remember(&mut self, unknown: Unknown, history: History, known: Known) {
        let weight = known.weight();
        if unknown.epoch != self.epoch || self.kept + weight > KEPT_MAX_COUNT || self.histories.contains_key(&history) {
            return;
        }
        self.kept += weight;
        self.histories.insert(history, Known { used: self.batch, ..known });
    }

    /// What is known of a history.
    pub(crate) fn history(&self, history: &History) -> Option<&Known> {
        self.histories.get(history)
    }

    /// The numbers that the next history and the next fact get.
    pub(crate) const fn next(&self) -> Counters {
        self.next
    }

    /// Every history that is known.
    pub(crate) fn histories(&self) -> impl Iterator<Item = (&History, &Known)> {
        self.histories.iter()
    }

    /// Begins a batch: forgets what is not likely to be needed, and tells what to load for these entries.
    pub(crate) fn wanted<'a>(&mut self, entries: impl Iterator<Item = &'a Entry>) -> Vec<Wanted> {
        self.forget();
        self.batch += 1;
        let mut wanted = HashSet::new();
        for entry in entries {
            let key = entry.invocation.as_ref();
            let missing = match self.histories.get_mut(&entry.history) {
                None => true,
                Some(known) => {
                    known.used = self.batch;
                    key.is_some_and(|key| known.lacks(key))
                }
            };
            if missing {
                let invocation = key.map(|key| (key.tool_call.clone(), key.invocation.clone()));
                wanted.insert(Wanted { history: entry.history.clone(), invocation });
            }
        }
        wanted.into_iter().collect()
    }

    /// Takes in what a store found. A history that was not found has nothing.
    pub(crate) fn learn(&mut self, wanted: Wanted, found: Found) {
        let known = self.histories.entry(wanted.history).or_insert_with_key(|history| match found.history {
            Some(last) => Known::incomplete(last),
            None => Known::absent(history),
        });
        known.used = self.batch;
        if let Some((tool_call, invocation)) = wanted.invocation {
            if let Some(found) = found.tool_call {
                known.tool_calls.entry(tool_call).or_insert(found);
            }
            if let Some(found) = found.invocation {
                known.invocations.entry(invocation).or_insert(found);
            }
        }
        self.kept += 3;
    }

    /// Appends one entry to the batch, or refuses it and leaves everything as it was.
    pub(crate) fn append(&mut self, prepared: Prepared, batch: &mut Batch) -> Result<Receipt, Conflict> {
        let Prepared { entry: Entry { history, invocation, facts }, bodies } = prepared;
        let known = self.histories.get(&history);
        let first = self.next.position;
        if invocation.is_none() {
            refuse_misplaced(&history, &facts)?;
        }
        let life = invocation.as_ref().map(|key| Life::follow(known, &history, key, &facts, first)).transpose()?;
        let attempt = life.as_ref().map_or(0, |life| life.invocation.attempt);

        let new = self.next.history;
        let known = self.histories.entry(history.clone()).or_insert_with_key(Known::absent);
        known.used = self.batch;
        let id = *known.id.get_or_insert_with(|| {
            batch.histories.push((new, history));
            self.next.history += 1;
            new
        });
        for (fact, body) in facts.into_iter().zip(bodies) {
            let previous = known.digest;
            known.sequence += 1;
            known.digest = chain_digest(&previous, known.sequence, attempt, invocation.as_ref(), &body);
            batch.facts.push(FactRow {
                position: self.next.position,
                history: id,
                sequence: known.sequence,
                kind: fact.kind(),
                invocation: invocation.clone(),
                attempt,
                at: fact.at(),
                previous,
                digest: known.digest,
                body,
            });
            if let Fact::GenerationActivated(activated) = fact {
                batch.activations.push((self.next.position, activated));
            }
            self.next.position += 1;
        }
        if let (Some(Life { tool_call, invocation: life }), Some(key)) = (life, invocation) {
            let row = ToolCallRow { history: id, tool_call: key.tool_call.clone(), known: tool_call.clone() };
            batch.tool_calls.insert(tool_call.first, row);
            let row = InvocationRow { history: id, invocation: key.invocation.clone(), known: life.clone() };
            batch.invocations.insert(life.started, row);
            known.tool_calls.insert(key.tool_call, tool_call);
            known.invocations.insert(key.invocation, life);
        }
        self.kept += 3;
        Ok(Receipt { sequence: known.sequence, position: self.next.position - 1, attempt })
    }

    /// Keeps the histories used last, where there are too many to keep all.
    fn forget(&mut self) {
        if self.kept <= KEPT_MAX_COUNT {
            return;
        }
        self.epoch += 1;
        let mut used: Vec<u64> = self.histories.values().map(|known| known.used).collect();
        let middle = used.len() / 2;
        let oldest = if used.is_empty() { 0 } else { *used.select_nth_unstable(middle).1 };
        self.histories.retain(|_, known| known.used > oldest);
        self.kept = self.histories.values().map(Known::weight).sum();
        if self.kept > KEPT_MAX_COUNT / 2 {
            self.histories.clear();
            self.kept = 0;
        }
    }
}

#[cfg(test)]
mod tests;

/// An invocation and its tool call as they stand after an entry.
struct Life {
    tool_call: KnownToolCall,
    invocation: KnownInvocation,
}

impl Life {
    /// Follows the facts of an entry, the first of which would get the position `first`.
    fn follow(
        known: Option<&Known>,
        history: &History,
        key: &InvocationKey,
        facts: &[Fact],
        first: u64,
    ) -> Result<Self, Conflict> {
        let tool_call = known.and_then(|known| known.tool_calls.get(&key.tool_call));
        let invocation = known.and_then(|known| known.invocations.get(&key.invocation));
        let begins = matches!(facts.first(), Some(Fact::ToolCallStarted(_)));
        let foreign = |found: &KnownInvocation| tool_call.is_none_or(|call| call.first != found.tool_call);
        if invocation.is_some_and(|found| begins || foreign(found)) {
            return Err(Conflict::InvocationExists);
        }
        if tool_call.is_some_and(|call| call.tool != key.tool) {
            return Err(Conflict::OtherTool);
        }
        if let (History::System(_), Some(fact)) = (history, facts.first()) {
            return Err(IllegalTransition { state: InvocationState::Absent, fact: fact.kind() }.into());
        }
        let attempts = tool_call.map_or(0, |call| call.attempts);
        let mut life = invocation.cloned().unwrap_or_else(|| KnownInvocation {
            started: first,
            tool_call: tool_call.map_or(first, |call| call.first),
            attempt: attempts.saturating_add(1),
            state: InvocationState::Absent,
            evaluated: None,
            terminal: None,
        });
        for (fact, position) in facts.iter().zip(first..) {
            life.state = life.state.step(fact)?;
            if life.state.is_terminal() {
                life.terminal = Some(position);
            } else if matches!(fact, Fact::GovernanceEvaluated(_)) {
                life.evaluated = Some(position);
            }
        }
        let mut tool_call =
            tool_call.cloned().unwrap_or_else(|| KnownToolCall { first, tool: key.tool.clone(), attempts: 0, latest: first });
        if begins {
            tool_call.attempts = life.attempt;
            tool_call.latest = life.started;
        }
        Ok(Self { tool_call, invocation: life })
    }
}

/// Facts that name no invocation are of the system, and stand in a history of the system.
fn refuse_misplaced(history: &History, facts: &[Fact]) -> Result<(), IllegalTransition> {
    let of_a_call = |fact: &&Fact| match fact {
        Fact::ToolCallStarted(_)
        | Fact::GovernanceEvaluated(_)
        | Fact::ToolCallCompleted(_)
        | Fact::ToolCallFailed(_)
        | Fact::ToolCallCancelled(_) => true,
        Fact::SidecarStarted(_) | Fact::ConfigurationLoosened(_) | Fact::GenerationActivated(_) | Fact::GenerationRefused(_) => {
            matches!(history, History::Run(_))
        }
    };
    match facts.iter().find(of_a_call) {
        Some(fact) => Err(IllegalTransition { state: InvocationState::Absent, fact: fact.kind() }),
        None => Ok(()),
    }
}

//! The read model: pages of facts and of tool calls, straight from the journal.

use std::fmt;

use async_trait::async_trait;

use crate::{
    clock::Timestamp,
    digest::Digest,
    fact::{Evaluated, Fact},
    ids::{InvocationId, ToolCallId, ToolId},
    journal::{InvocationKey, Unavailable},
    lifecycle::InvocationState,
    limits::{PAGE_DEFAULT_COUNT, PAGE_MAX_COUNT},
    outcome::Outcome,
    run::{History, RunKey},
    trace::{Decision, HookEvaluation, Trace, VerdictKind},
};

/// The size of a page, 1 to [`PAGE_MAX_COUNT`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageLimit(u32);

/// A query that no store is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidQuery {
    /// A page of an impossible size.
    #[error("limit must be 1 to {PAGE_MAX_COUNT}")]
    Limit,
}

impl PageLimit {
    /// A limit as asked for; zero means the default, [`PAGE_DEFAULT_COUNT`].
    pub const fn new(limit: u32) -> Result<Self, InvalidQuery> {
        match limit {
            0 => Ok(Self(PAGE_DEFAULT_COUNT)),
            1..=PAGE_MAX_COUNT => Ok(Self(limit)),
            _ => Err(InvalidQuery::Limit),
        }
    }

    /// The limit.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }
}

/// A page of one history.
#[derive(Clone, Debug)]
pub struct FactQuery {
    /// Whose.
    pub history: History,
    /// Which of its facts.
    pub filter: FactFilter,
    /// Only facts after this sequence; 0 for the first page.
    pub after_sequence: u64,
    /// How many at most.
    pub limit: PageLimit,
}

/// Which facts a reader wants. Every given condition must hold; a condition on the chain's decision
/// or hooks holds of `GovernanceEvaluated` facts only.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FactFilter {
    /// Of this tool.
    pub tool: Option<ToolId>,
    /// With an entry of this hook, by hook id or resource id.
    pub hook: Option<String>,
    /// With an entry of this verdict; together with `hook`, both hold for one entry.
    pub verdict: Option<VerdictKind>,
    /// Whose chain came to this.
    pub decision: Option<Decision>,
    /// Decided by this generation's number.
    pub generation: Option<u64>,
}

/// A fact as the journal holds it.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredFact {
    /// Its place in its history.
    pub sequence: u64,
    /// Its place in the store.
    pub position: u64,
    /// The tool call, for facts of an invocation.
    pub tool_call: Option<ToolCallId>,
    /// The invocation, for facts of one.
    pub invocation: Option<InvocationId>,
    /// The tool, for facts of an invocation.
    pub tool: Option<ToolId>,
    /// The attempt's number; 0 for facts of the system.
    pub attempt: u32,
    /// The digest of its predecessor, or the genesis of its history.
    pub previous: Digest,
    /// Its own digest.
    pub digest: Digest,
    /// The fact.
    pub fact: Fact,
}

impl StoredFact {
    /// The invocation that it is about, with its tool call and tool; none for facts of the system.
    #[must_use]
    pub fn key(&self) -> Option<InvocationKey> {
        let Self { tool_call: Some(tool_call), invocation: Some(invocation), tool: Some(tool), .. } = self else { return None };
        Some(InvocationKey { tool_call: tool_call.clone(), invocation: invocation.clone(), tool: tool.clone() })
    }
}

/// A page of facts.
#[derive(Clone, Debug)]
pub struct FactPage {
    /// The facts, by rising sequence.
    pub facts: Vec<StoredFact>,
    /// Where the next page begins after; only when there is more.
    pub next: Option<u64>,
}

/// The projection of one logical call.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolCallSummary {
    /// The logical call.
    pub tool_call: ToolCallId,
    /// Its tool.
    pub tool: ToolId,
    /// The invocation of its latest attempt.
    pub latest_invocation: InvocationId,
    /// How many attempts began.
    pub attempts: u32,
    /// Where the latest stands.
    pub state: InvocationState,
    /// When the latest began.
    pub started_at: Timestamp,
    /// From there to its end, in microseconds; absent while it has none.
    pub duration_us: Option<u64>,
    /// The trace of the latest attempt, once it was decided.
    pub trace: Option<Evaluated>,
    /// The governed outcome of the latest, once it ended.
    pub outcome: Option<Outcome>,
}

/// A page of tool calls.
#[derive(Clone, Debug)]
pub struct ToolCallPage {
    /// The tool calls, in the order of their first attempts.
    pub tool_calls: Vec<ToolCallSummary>,
    /// Where the next page begins after; only when there is more.
    pub next: Option<u64>,
}

/// Reads the journal. `None` is an unknown run or tool call.
#[async_trait]
pub trait Reader: Send + Sync + fmt::Debug {
    /// A page of a history.
    async fn facts(&self, query: FactQuery) -> Result<Option<FactPage>, Unavailable>;

    /// One tool call of a run.
    async fn tool_call(&self, run: &RunKey, tool_call: &ToolCallId) -> Result<Option<ToolCallSummary>, Unavailable>;

    /// A page of a run's tool calls; `after` is the `next` of the page before, or 0.
    async fn tool_calls(&self, run: &RunKey, after: u64, limit: PageLimit) -> Result<Option<ToolCallPage>, Unavailable>;
}

impl FactFilter {
    /// Whether a fact is wanted: the one rule, whatever the store.
    #[must_use]
    pub fn matches(&self, stored: &StoredFact) -> bool {
        let tool = self.tool.is_none() || self.tool == stored.tool;
        tool && (!self.is_of_decisions()
            || matches!(&stored.fact, Fact::GovernanceEvaluated(fact) if self.matches_decision(fact)))
    }

    fn is_of_decisions(&self) -> bool {
        self.hook.is_some() || self.verdict.is_some() || self.decision.is_some() || self.generation.is_some()
    }

    fn matches_decision(&self, fact: &Evaluated) -> bool {
        self.decision.is_none_or(|decision| decision == fact.trace.decision)
            && self.generation.is_none_or(|number| number == fact.generation.number)
            && self.matches_hooks(&fact.trace)
    }

    fn matches_hooks(&self, trace: &Trace) -> bool {
        if self.hook.is_none() && self.verdict.is_none() {
            return true;
        }
        let is_hook = |entry: &HookEvaluation| {
            self.hook.as_ref().is_none_or(|wanted| {
                entry.hook.as_str() == wanted || entry.resource.as_ref().is_some_and(|resource| resource.id.as_str() == wanted)
            })
        };
        trace.hooks.iter().any(|entry| is_hook(entry) && self.verdict.is_none_or(|verdict| verdict == entry.verdict))
    }
}

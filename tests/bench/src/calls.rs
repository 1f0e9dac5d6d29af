//! What is asked: calls with fresh ids, in many runs, and the answer that each must get.

use std::cell::Cell;

use tollgate_client::v1;
use uuid::Uuid;

/// Runs that are active at once.
const RUNS: u64 = 64;
/// Calls of a run before another takes its place.
const CALLS_OF_A_RUN: u64 = 32;
/// In the mix, one call out of so many is denied.
pub(crate) const MIX: u64 = 4;

/// A call and its answer.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) request: v1::EvaluateRequest,
    pub(crate) expected: v1::Decision,
}

/// What is asked of one server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A read that is allowed, by a bundle of [`crate::bundles`].
    Read,
    /// Three reads that are allowed and a write that is denied.
    Mix,
    /// A read that the sample bundle allows.
    Sample,
}

/// Endless calls to one server, and an account of them.
#[derive(Debug)]
pub(crate) struct Calls {
    kind: Kind,
    /// Rises from one server to the next, as a run's id should.
    prefix: String,
    made: Cell<u64>,
    answered: Cell<u64>,
    facts: Cell<u64>,
}

impl Calls {
    pub(crate) fn new(kind: Kind) -> Self {
        Self { kind, prefix: Uuid::now_v7().to_string(), made: Cell::new(0), answered: Cell::new(0), facts: Cell::new(0) }
    }

    pub(crate) fn next(&self) -> Call {
        let number = self.made.replace(self.made.get() + 1);
        let refused = self.kind == Kind::Mix && number % MIX == MIX - 1;
        let (agent, tool) = match self.kind {
            Kind::Sample => ("support-agent", "search.knowledge_base"),
            Kind::Read | Kind::Mix => ("bench-agent", if refused { "desk.write" } else { "desk.read" }),
        };
        let request = v1::EvaluateRequest {
            run: Some(self.run(number)),
            agent: Some(v1::Agent { id: agent.to_owned(), revision: "1".to_owned() }),
            tool: Some(v1::Tool { id: tool.to_owned(), ..Default::default() }),
            tool_call_id: Uuid::now_v7().to_string(),
            invocation_id: Uuid::now_v7().to_string(),
            arguments_json: br#"{"query":"refund policy for damaged goods"}"#.as_slice().into(),
            ..Default::default()
        };
        Call { request, expected: if refused { v1::Decision::Deny } else { v1::Decision::Allow } }
    }

    /// Notes an answer, which must be the expected one, and no repeat.
    pub(crate) fn check(&self, answer: &v1::EvaluateResponse, expected: v1::Decision) {
        assert_eq!((answer.decision(), answer.repeat), (expected, false), "{} by {}", answer.code, answer.hook_id);
        self.answered.set(self.answered.get() + 1);
        // A refusal ends its invocation.
        self.facts.set(self.facts.get() + if expected == v1::Decision::Allow { 2 } else { 3 });
    }

    /// How many answers were noted.
    pub(crate) fn answered(&self) -> u64 {
        self.answered.get()
    }

    /// The facts that all answers so far stand on.
    pub(crate) fn facts(&self) -> u64 {
        self.facts.get()
    }

    /// The runs of the last calls, that of the last first; each once.
    pub(crate) fn last_runs(&self) -> impl Iterator<Item = v1::RunKey> {
        let made = self.made.get();
        (made.saturating_sub(RUNS)..made).rev().map(|number| self.run(number))
    }

    fn run(&self, number: u64) -> v1::RunKey {
        let run = number % RUNS + RUNS * (number / (RUNS * CALLS_OF_A_RUN));
        v1::RunKey {
            tenant: "acme".to_owned(),
            workspace: "support-prod".to_owned(),
            owner_kind: v1::OwnerKind::Run.into(),
            owner_id: "bench".to_owned(),
            run_id: format!("{}-{run:08}", self.prefix),
        }
    }
}

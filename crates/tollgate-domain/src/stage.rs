//! The stages of one invocation on its way to an answer: Received -> Resolved -> Judged. Each is
//! consumed by the next and holds exactly what is known then; the last becomes an answer only
//! through [`crate::record`].

use std::sync::Arc;

use crate::{
    call::{Call, Claims},
    clock::Timestamp,
    fact::{CallRecord, Evaluated, Fact, Started, Terminal},
    generation::{Generation, Resolution, ResolveError},
    identity::IdentityKey,
    ids::{InvocationId, SidecarId, ToolCallId},
    invariants,
    journal::{Entry, InvocationKey},
    outcome::{FailureKind, NoticeRecord, Outcome},
    pass::Message,
    run::History,
    trace::{Decision, HookEvaluation, Trace, WhenNoHookMatches},
};

/// The two ids of an attempt, the caller's own or made for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptIds {
    /// The logical call.
    pub tool_call: ToolCallId,
    /// The physical attempt.
    pub invocation: InvocationId,
}

/// A valid call of a caller who may make it, with both ids.
#[derive(Debug)]
pub struct Received {
    call: Call,
    ids: AttemptIds,
    record: CallRecord,
    at: Timestamp,
}

impl Received {
    /// Takes a call in: derives the tool call id where there is none, and takes `fresh` as the
    /// invocation id where there is none.
    #[must_use]
    pub fn new(call: Call, key: &IdentityKey, fresh: impl FnOnce() -> InvocationId, trust_claims: bool, at: Timestamp) -> Self {
        let (tool_call, derived_with) = match &call.tool_call {
            Some(id) => (id.clone(), None),
            None => (key.tool_call(&call), Some(key.id())),
        };
        let invocation = call.invocation.clone().unwrap_or_else(fresh);
        let record = CallRecord::of(&call, derived_with, trust_claims);
        Self { call, ids: AttemptIds { tool_call, invocation }, record, at }
    }

    /// The call.
    #[must_use]
    pub const fn call(&self) -> &Call {
        &self.call
    }

    /// Its ids.
    #[must_use]
    pub const fn ids(&self) -> &AttemptIds {
        &self.ids
    }

    /// The part of the call that is kept.
    #[must_use]
    pub const fn record(&self) -> &CallRecord {
        &self.record
    }

    /// Pins a generation and resolves the chain within it.
    pub fn resolve(self, generation: Arc<Generation>, attempt: u32) -> Result<Resolved, ResolveError> {
        let resolution = generation.resolve(&self.call)?;
        Ok(Resolved { received: Box::new(self), generation, resolution, attempt, started: false })
    }
}

/// A call with the generation and the hooks that will judge it.
#[derive(Debug)]
pub struct Resolved {
    /// Boxed, as a call is moved from stage to stage and through every future on its way.
    received: Box<Received>,
    generation: Arc<Generation>,
    resolution: Resolution,
    attempt: u32,
    started: bool,
}

/// What running a chain gave, and what the record needs beside.
#[derive(Debug)]
pub struct Judgement {
    /// One entry per hook that was asked, in order.
    pub hooks: Vec<HookEvaluation>,
    /// What the refusing hook says to the caller.
    pub message: Option<Message>,
    /// When the chain was decided.
    pub at: Timestamp,
    /// How long it took, in microseconds.
    pub duration_us: u64,
}

/// The rules of the sidecar that turn a judgement into a decision.
#[derive(Clone, Debug)]
pub struct DecisionRules {
    /// What decides where no hook says anything.
    pub when_no_hook_matches: WhenNoHookMatches,
    /// How long an ALLOW may be acted on, in microseconds.
    pub validity_us: u64,
    /// The sidecar's name in facts.
    pub sidecar: SidecarId,
}

impl Resolved {
    /// The call.
    #[must_use]
    pub const fn call(&self) -> &Call {
        &self.received.call
    }

    /// Its ids.
    #[must_use]
    pub const fn ids(&self) -> &AttemptIds {
        &self.received.ids
    }

    /// The part of the call that is kept.
    #[must_use]
    pub const fn record(&self) -> &CallRecord {
        &self.received.record
    }

    /// When the call was received.
    #[must_use]
    pub const fn received_at(&self) -> Timestamp {
        self.received.at
    }

    /// A lower bound of the attempt's number.
    #[must_use]
    pub const fn attempt(&self) -> u32 {
        self.attempt
    }

    /// The pinned generation.
    #[must_use]
    pub const fn generation(&self) -> &Arc<Generation> {
        &self.generation
    }

    /// The caller's claims, where it is trusted for them.
    #[must_use]
    pub fn trusted_claims(&self) -> Option<&Claims> {
        self.received.record.claims_trusted.then_some(&self.received.call.claims)
    }

    /// The tool and the hooks to ask, or the pseudo hook that refuses instead.
    #[must_use]
    pub const fn resolution(&self) -> &Resolution {
        &self.resolution
    }

    /// The Started fact by itself, to be made durable before a remote hook is asked; the judged stage will
    /// then not repeat it.
    #[must_use]
    pub fn start_alone(&mut self, sidecar: &SidecarId) -> Entry {
        let facts = vec![self.started_fact(sidecar)];
        self.started = true;
        self.entry(facts)
    }

    /// Whether the Started fact is recorded by itself, and not with the decision.
    #[must_use]
    pub const fn is_started(&self) -> bool {
        self.started
    }

    /// Decides.
    pub fn judge(self, judgement: Judgement, rules: &DecisionRules) -> Judged {
        let trace = Trace::decide(judgement.hooks, rules.when_no_hook_matches);
        debug_assert!(invariants::decision_follows(&trace, rules.when_no_hook_matches));
        debug_assert!(invariants::asked_in_order(&trace));
        let valid_until = match trace.decision {
            Decision::Allow | Decision::Mocked => Some(judgement.at.plus_micros(rules.validity_us)),
            Decision::Deny | Decision::Failed => None,
        };
        let evaluated = Evaluated {
            subject: self.received.record.subject.clone(),
            generation: self.generation.reference().clone(),
            trace,
            valid_until,
            sidecar: rules.sidecar.clone(),
            at: judgement.at,
            duration_us: judgement.duration_us,
        };
        Judged { resolved: self, evaluated, message: judgement.message, notices: Vec::new() }
    }

    fn started_fact(&self, sidecar: &SidecarId) -> Fact {
        Fact::ToolCallStarted(Started { call: self.received.record.clone(), sidecar: sidecar.clone(), at: self.received.at })
    }

    fn entry(&self, facts: Vec<Fact>) -> Entry {
        Entry { history: History::Run(self.call().run.clone()), invocation: Some(self.key()), facts }
    }

    fn key(&self) -> InvocationKey {
        let AttemptIds { tool_call, invocation } = self.ids().clone();
        InvocationKey { tool_call, invocation, tool: self.call().tool.id.clone() }
    }
}

/// A decision that is not recorded yet, and so is none.
#[derive(Debug)]
#[must_use = "a judged call is no decision until it is recorded"]
pub struct Judged {
    pub(crate) resolved: Resolved,
    pub(crate) evaluated: Evaluated,
    pub(crate) message: Option<Message>,
    notices: Vec<NoticeRecord>,
}

impl Judged {
    /// The trace.
    #[must_use]
    pub const fn trace(&self) -> &Trace {
        &self.evaluated.trace
    }

    /// The stage before: the call, its ids and its generation.
    #[must_use]
    pub const fn resolved(&self) -> &Resolved {
        &self.resolved
    }

    /// For a refusal, the governed outcome that the terminal fact will hold.
    #[must_use]
    pub fn refused_outcome(&self) -> Option<Outcome> {
        let trace = &self.evaluated.trace;
        let code = trace.code.clone();
        let failed = |failure| Some(Outcome::Failed { failure, code: code.clone(), error_type: None, error_message: None });
        match trace.decision {
            Decision::Allow | Decision::Mocked => None,
            Decision::Deny => failed(FailureKind::Denied),
            Decision::Failed if trace.is_cancelled() => Some(Outcome::Cancelled { code: code.clone() }),
            Decision::Failed => failed(FailureKind::Hook),
        }
    }

    /// Notes what became of the outcome notices of a refusal.
    pub fn noticed(self, notices: Vec<NoticeRecord>) -> Self {
        Self { notices, ..self }
    }

    /// What the journal will hold.
    #[must_use]
    pub fn entry(&self) -> Entry {
        let evaluated = &self.evaluated;
        let mut facts = Vec::with_capacity(3);
        if !self.resolved.started {
            facts.push(self.resolved.started_fact(&evaluated.sidecar));
        }
        facts.push(Fact::GovernanceEvaluated(evaluated.clone()));
        if let Some(governed) = self.refused_outcome() {
            let terminal = Terminal {
                reported: None,
                governed,
                notices: self.notices.clone(),
                sidecar: evaluated.sidecar.clone(),
                at: evaluated.at,
                duration_us: evaluated.at.micros_since(self.resolved.received.at),
            };
            facts.push(terminal.into_fact());
        }
        self.resolved.entry(facts)
    }
}

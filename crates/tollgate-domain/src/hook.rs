//! The port of a decision maker.

use std::fmt;

use async_trait::async_trait;

use crate::{
    bundle::ToolFacts,
    call::{Call, Claims},
    clock::Timestamp,
    ids::{Code, InvocationId, ToolCallId},
    outcome::Outcome,
    trace::{Evidence, Verdict},
};

/// Where a hook decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Locality {
    /// In this process: the facts of the whole chain may share one commit.
    InProcess,
    /// Elsewhere: Started must be durable before it is asked.
    Remote,
}

/// All that a hook may know of a call.
#[derive(Clone, Copy, Debug)]
pub struct HookInput<'a> {
    /// The call, with its arguments.
    pub call: &'a Call,
    /// The tool, as the catalogue knows it.
    pub tool: &'a ToolFacts,
    /// The logical call.
    pub tool_call: &'a ToolCallId,
    /// This attempt.
    pub invocation: &'a InvocationId,
    /// A lower bound of the attempt's number, from 1; the record holds the truth.
    pub attempt: u32,
    /// The caller's claims, where it is trusted for them.
    pub claims: Option<&'a Claims>,
    /// The time of the decision.
    pub now: Timestamp,
}

/// What a hook answers.
#[derive(Clone, Debug)]
pub struct HookAnswer {
    /// Its verdict.
    pub verdict: Verdict,
    /// What the verdict rests on.
    pub evidence: Evidence,
}

impl From<Verdict> for HookAnswer {
    fn from(verdict: Verdict) -> Self {
        Self { verdict, evidence: Evidence::default() }
    }
}

/// One decision maker of a chain.
///
/// It is asked at least once per attempt and must tolerate being asked again for the same one. It
/// may be dropped at any await when the caller's deadline passes; it may panic, which counts as
/// Failed. It gets no way to change the call.
#[async_trait]
pub trait Hook: Send + Sync + fmt::Debug {
    /// Judges one call.
    async fn evaluate(&self, input: HookInput<'_>) -> HookAnswer;

    /// Where it decides.
    fn locality(&self) -> Locality {
        Locality::InProcess
    }

    /// Whether it wants to be told how invocations ended that it was asked about.
    fn wants_outcome(&self) -> bool {
        false
    }

    /// Takes an outcome notice. Cannot change the decision.
    async fn notify(&self, _notice: &Notice) -> Result<(), NoticeFailed> {
        Ok(())
    }
}

/// What an entered hook is told at the end: never the result.
#[derive(Clone, Debug)]
pub struct Notice {
    /// The logical call.
    pub tool_call: ToolCallId,
    /// The attempt.
    pub invocation: InvocationId,
    /// The attempt's number; for a refusal, which is noticed before it is recorded, a lower bound.
    pub attempt: u32,
    /// The context of the call, as recorded.
    pub context: crate::fact::CallRecord,
    /// How it ended.
    pub outcome: Outcome,
    /// When it began.
    pub started_at: Timestamp,
    /// How long it took, in microseconds.
    pub duration_us: u64,
}

/// A hook could not take an outcome notice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoticeFailed {
    /// Why.
    pub code: Code,
}

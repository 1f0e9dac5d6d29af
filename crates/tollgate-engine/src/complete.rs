//! Complete: how an allowed invocation ended, by its caller's word and by governance's.

use std::sync::Arc;

use tollgate_domain::{
    AppendError, CallRecord, Code, Decision, Entry, Evaluated, FailureKind, History, InvocationId, InvocationKey,
    InvocationRecord, InvocationState, Notice, NoticeRecord, NoticeResult, Outcome, Reported, Rights, RunKey, Terminal,
    Unavailable,
};

use crate::{
    engine::Engine,
    error::{CompleteError, JournalProblem},
    notice::tell_entered,
};

/// A recorded outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion {
    /// What the first caller reported; absent where governance ended the invocation.
    pub reported: Option<Outcome>,
    /// What governance makes of it.
    pub governed: Outcome,
    /// Whether this outcome stood already: an earlier Complete's, or governance's own.
    pub repeat: bool,
    /// The sequence of the terminal fact in its run; 0 for a repeat.
    pub sequence: u64,
    /// From the start of the invocation to its end, in microseconds.
    pub duration_us: u64,
}

impl Engine {
    pub(crate) async fn record_outcome(
        self: Arc<Self>,
        rights: Rights,
        run: RunKey,
        invocation: InvocationId,
        reported: Reported,
    ) -> Result<Completion, CompleteError> {
        let found = self.within_limit(self.store.invocation(&run, &invocation)).await?;
        let record = found.ok_or(CompleteError::NotFound)?;
        if !rights.cover_agent(&record.started.call.subject.agent.id) {
            return Err(CompleteError::NotFound);
        }
        if let Some(ended) = ended(&record)? {
            return Ok(ended);
        }
        let InvocationRecord { tool_call, started, evaluated, receipt, .. } = record;
        let active = self.generations.active();
        let waits = |evaluated: &Evaluated| evaluated.trace.entered().any(|entry| entry.outcome);
        if active.is_none() && evaluated.as_ref().is_some_and(waits) {
            // Just started: the hooks that want to be told may come with the first generation.
            return Err(CompleteError::NoGeneration);
        }
        let reported = reported.into_outcome(self.options.keep_failure_messages);
        let context: CallRecord = started.call;
        let tool = context.subject.tool.id.clone();
        let mut at = self.clock.now();
        let notice = Notice {
            tool_call: tool_call.clone(),
            invocation: invocation.clone(),
            attempt: receipt.attempt,
            context,
            outcome: reported.clone(),
            started_at: started.at,
            duration_us: at.micros_since(started.at),
        };
        let notices = match &evaluated {
            Some(evaluated) => tell_entered(&evaluated.trace, active.as_ref(), &run, &notice).await,
            None => Vec::new(),
        };
        at = at.max(self.clock.now());
        let terminal = Terminal {
            governed: govern(&reported, &notices),
            reported: Some(reported),
            notices,
            sidecar: self.options.rules.sidecar.clone(),
            at,
            duration_us: at.micros_since(started.at),
        };
        let (governed, duration_us) = (terminal.governed.clone(), terminal.duration_us);
        let completion =
            |sequence| Completion { reported: terminal.reported.clone(), governed, repeat: false, sequence, duration_us };
        let key = InvocationKey { tool_call, invocation: invocation.clone(), tool };
        let entry =
            Entry { history: History::Run(run.clone()), invocation: Some(key), facts: vec![terminal.clone().into_fact()] };
        match tokio::time::timeout(self.options.journal_max_wait, self.store.append(entry)).await {
            Ok(Ok(receipt)) => Ok(completion(receipt.sequence)),
            // Somebody was first: the first outcome stands.
            Ok(Err(AppendError::Conflict(_))) => {
                let found = self.within_limit(self.store.invocation(&run, &invocation)).await?;
                ended(&found.ok_or(CompleteError::Internal)?)?.ok_or(CompleteError::Internal)
            }
            Ok(Err(AppendError::Unavailable(Unavailable { cause, .. }))) => Err(JournalProblem::Unavailable(cause).into()),
            Err(_) => Err(JournalProblem::TooSlow.into()),
        }
    }

    /// A read of the journal within the sidecar's limit.
    async fn within_limit<T>(&self, reading: impl Future<Output = Result<T, Unavailable>>) -> Result<T, JournalProblem> {
        match tokio::time::timeout(self.options.journal_max_wait, reading).await {
            Ok(read) => read.map_err(|Unavailable { cause, .. }| JournalProblem::Unavailable(cause)),
            Err(_) => Err(JournalProblem::TooSlow),
        }
    }
}

/// The outcome that stands, where there is one; an error where there can be none.
fn ended(record: &InvocationRecord) -> Result<Option<Completion>, CompleteError> {
    let allowed = match record.evaluated.as_ref().map(|evaluated| evaluated.trace.decision) {
        Some(Decision::Allow | Decision::Mocked) => true,
        Some(Decision::Deny | Decision::Failed) | None => false,
    };
    if !allowed {
        return Err(CompleteError::NotAllowed);
    }
    match (&record.terminal, record.state) {
        (None, InvocationState::Open) => Ok(None),
        (Some(terminal), _) => Ok(Some(Completion {
            reported: terminal.reported.clone(),
            governed: terminal.governed.clone(),
            repeat: true,
            sequence: 0,
            duration_us: terminal.duration_us,
        })),
        (None, _) => Err(CompleteError::Internal),
    }
}

/// A notice that fails on success makes the governed outcome FAILED (Hook); it never takes the place
/// of another outcome.
fn govern(reported: &Outcome, notices: &[NoticeRecord]) -> Outcome {
    let failed: Option<&Code> = notices.iter().find_map(|notice| match &notice.result {
        NoticeResult::Failed(code) => Some(code),
        NoticeResult::Notified | NoticeResult::NotNotified => None,
    });
    match (reported, failed) {
        (Outcome::Succeeded { .. }, Some(code)) => {
            Outcome::Failed { failure: FailureKind::Hook, code: Some(code.clone()), error_type: None, error_message: None }
        }
        (Outcome::Succeeded { .. } | Outcome::Failed { .. } | Outcome::Cancelled { .. }, _) => reported.clone(),
    }
}

//! The life of one Evaluate, stage by stage: Received -> Resolved -> Judged -> Recorded.

use std::{pin::Pin, sync::Arc, time::Duration};

use tollgate_domain::{
    AppendError, Call, Comparison, Conflict, Entry, InvocationId, Judged, Locality, Lookup, Recalled, Received, Recorded,
    Resolution, Resolved, Rights, Unavailable, recall, record,
};

use crate::{
    cut::Cut,
    engine::Engine,
    error::{EvaluateError, JournalProblem},
    flight::{Entrance, Flight},
    settle::Unsettled,
};

/// Why a judgement came to no decision of its own.
enum Lost {
    /// Another sidecar committed the same invocation first: its record is the answer.
    Race,
    /// There is no decision.
    Error(EvaluateError),
}

impl Engine {
    pub(crate) async fn judge(self: Arc<Self>, rights: Rights, call: Call, cut: Cut) -> Result<Recorded, EvaluateError> {
        let began = self.clock.monotonic();
        let answer = self.judge_received(&rights, call, &cut).await;
        metrics::histogram!("tollgate_evaluate_seconds").record(self.clock.monotonic().seconds_since(began));
        match &answer {
            Ok(Recorded::Allowed(_)) => metrics::counter!("tollgate_decisions_total", "decision" => "allow").increment(1),
            Ok(Recorded::Refused(refusal)) => {
                let decision = if refusal.decision == tollgate_domain::Decision::Deny { "deny" } else { "failed" };
                metrics::counter!("tollgate_decisions_total", "decision" => decision).increment(1);
            }
            Err(error) => {
                if let EvaluateError::Journal(problem) = error {
                    metrics::counter!("tollgate_journal_refusals_total", "cause" => problem.cause()).increment(1);
                }
                metrics::counter!("tollgate_undecided_total").increment(1);
            }
        }
        answer
    }

    async fn judge_received(self: &Arc<Self>, rights: &Rights, call: Call, cut: &Cut) -> Result<Recorded, EvaluateError> {
        check_rights(rights, &call)?;
        let named = call.invocation.is_some();
        let received = Received::new(call, &self.key, || self.fresh_invocation(), rights.trust_claims, self.clock.now());
        let (flight, comparison) = if named {
            self.take_off(&received, cut).await?
        } else {
            // Nobody else can know this id.
            (None, Comparison::Unknown)
        };
        let mut lookup = self.look_up(&received, cut).await?;
        if let Some(invocation) = lookup.invocation.take() {
            let recalled = recall(invocation, received.ids(), received.record(), comparison, self.clock.now());
            return answer_recalled(recalled, &received.ids().invocation, cut);
        }
        if lookup.tool.as_ref().is_some_and(|tool| *tool != received.call().tool.id) {
            return Err(other_tool());
        }
        let generation = self.generations.active().ok_or(EvaluateError::NoGeneration)?;
        let ids = received.ids().clone();
        let run = received.call().run.clone();
        let record = received.record().clone();
        let resolved = received
            .resolve(generation, lookup.attempts.saturating_add(1))
            .map_err(|error| EvaluateError::Invalid { field: "tool.provider_id", problem: error.to_string() })?;
        match self.judge_resolved(resolved, flight.clone(), cut).await {
            Ok(recorded) => {
                if let Some(flight) = &flight {
                    flight.remember(told_message(&recorded));
                }
                self.still_valid(recorded)
            }
            Err(Lost::Error(error)) => Err(error),
            Err(Lost::Race) => {
                let found = self.bounded(cut, self.store.invocation(&run, &ids.invocation)).await?;
                // Its arguments were never here, so only a refusal can be repeated.
                let recall = |found| recall(found, &ids, &record, Comparison::Unknown, self.clock.now());
                answer_recalled(found.map_or(Recalled::Unverifiable, recall), &ids.invocation, cut)
            }
        }
    }

    /// A first answer as a repeat of it would be: while it was written, the clock may have been set past its validity.
    fn still_valid(&self, recorded: Recorded) -> Result<Recorded, EvaluateError> {
        if let Recorded::Allowed(pass) = &recorded
            && self.clock.now() > pass.valid_until()
        {
            return Err(EvaluateError::DecisionExpired(pass.decided().invocation.clone()));
        }
        Ok(recorded)
    }

    /// Waits for an identical call in flight, so that one invocation is judged once.
    async fn take_off(&self, received: &Received, cut: &Cut) -> Result<(Option<Arc<Flight>>, Comparison), EvaluateError> {
        let key = (received.call().run.clone(), received.ids().invocation.clone());
        let fingerprint = self.key.fingerprint(received);
        loop {
            match self.flights.enter(key.clone(), fingerprint) {
                Entrance::First(flight, comparison) => return Ok((Some(Arc::new(flight)), comparison)),
                Entrance::Different => return Err(EvaluateError::InvocationReused(key.1)),
                Entrance::Wait(landed) => tokio::select! {
                    biased;
                    () = landed.cancelled() => {}
                    () = cut.made() => return Err(EvaluateError::StillInFlight(key.1)),
                },
            }
        }
    }

    async fn look_up(&self, received: &Received, cut: &Cut) -> Result<Lookup, EvaluateError> {
        let ids = received.ids();
        self.bounded(cut, self.store.lookup(&received.call().run, &ids.tool_call, &ids.invocation)).await
    }

    async fn judge_resolved(
        self: &Arc<Self>,
        mut resolved: Resolved,
        flight: Option<Arc<Flight>>,
        cut: &Cut,
    ) -> Result<Recorded, Lost> {
        let invocation = resolved.ids().invocation.clone();
        let unsettled = Unsettled { run: resolved.call().run.clone(), invocation, _flight: flight };
        if is_remote(&resolved) {
            // A remote hook may act on being asked, so that the attempt must be on record before.
            let entry = resolved.start_alone(&self.options.rules.sidecar);
            self.append_started(entry, &unsettled, cut).await?;
        }
        let judgement = self.run_chain(&resolved, cut).await;
        let judged = resolved.judge(judgement, &self.options.rules);
        let notices = self.notice_refusal(&judged).await;
        self.record_judged(judged.noticed(notices), &unsettled, cut).await
    }

    async fn append_started(self: &Arc<Self>, entry: Entry, unsettled: &Unsettled, cut: &Cut) -> Result<(), Lost> {
        let store = Arc::clone(&self.store);
        let appending = Box::pin(async move { store.append(entry).await });
        let appended = self.in_time(appending, self.options.journal_max_wait, cut, unsettled).await?;
        appended.map(drop).map_err(|error| self.lose(&error, false, unsettled))
    }

    /// Makes the decision durable within the caller's patience.
    async fn record_judged(self: &Arc<Self>, judged: Judged, unsettled: &Unsettled, cut: &Cut) -> Result<Recorded, Lost> {
        let started = judged.resolved().is_started();
        let refused = judged.refused_outcome().is_some();
        let store = Arc::clone(&self.store);
        let recording = Box::pin(async move { record(&*store, judged).await });
        let recorded = if refused && cut.is_made() {
            // A refusal whose caller no longer waits is written on time of its own.
            let own = Cut::after(self.options.cancelled_record_wait);
            self.in_time(recording, self.options.cancelled_record_wait, &own, unsettled).await?
        } else {
            self.in_time(recording, self.options.journal_max_wait, cut, unsettled).await?
        };
        recorded.map_err(|error| self.lose(&error, started, unsettled))
    }

    /// What a write to the journal comes to within the caller's patience, and within `limit`. A write that
    /// lands later is closed, since its caller was told that there is no decision.
    async fn in_time<T: Send + 'static>(
        self: &Arc<Self>,
        mut write: Pin<Box<impl Future<Output = T> + Send + 'static>>,
        limit: Duration,
        cut: &Cut,
        unsettled: &Unsettled,
    ) -> Result<T, Lost> {
        let wait = cut.remaining(limit);
        tokio::select! {
            biased;
            // First, so that a cancelled call is never allowed, however close the race was.
            () = cut.cancel.cancelled() => {}
            written = tokio::time::timeout(wait, &mut write) => if let Ok(written) = written { return Ok(written) },
        }
        self.settle_after(async move { drop(write.await) }, unsettled.clone());
        Err(Lost::Error(too_late(cut)))
    }

    /// `on_record`: whether the invocation's Started fact is durable already, and must not stay alone.
    fn lose(self: &Arc<Self>, error: &AppendError, on_record: bool, unsettled: &Unsettled) -> Lost {
        match error {
            AppendError::Conflict(Conflict::InvocationExists | Conflict::Transition(_)) => Lost::Race,
            AppendError::Conflict(Conflict::OtherTool) => Lost::Error(other_tool()),
            AppendError::Unavailable(Unavailable { cause, may_have_landed }) => {
                if *may_have_landed || on_record {
                    self.settle_after(std::future::ready(()), unsettled.clone());
                }
                Lost::Error(JournalProblem::Unavailable(*cause).into())
            }
        }
    }

    /// A read of the journal within the caller's patience and the sidecar's limit.
    pub(crate) async fn bounded<T>(
        &self,
        cut: &Cut,
        reading: impl Future<Output = Result<T, Unavailable>>,
    ) -> Result<T, EvaluateError> {
        let wait = cut.remaining(self.options.journal_max_wait);
        match tokio::time::timeout(wait, reading).await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(Unavailable { cause, .. })) => Err(JournalProblem::Unavailable(cause).into()),
            Err(_) => Err(too_late(cut)),
        }
    }
}

fn too_late(cut: &Cut) -> EvaluateError {
    let problem = if cut.is_made() { JournalProblem::DeadlinePassed } else { JournalProblem::TooSlow };
    problem.into()
}

fn check_rights(rights: &Rights, call: &Call) -> Result<(), EvaluateError> {
    if !rights.cover_run(&call.run) {
        return Err(EvaluateError::PermissionDenied { what: "tenant and workspace" });
    }
    if !rights.cover_agent(&call.agent.id) {
        return Err(EvaluateError::PermissionDenied { what: "agent" });
    }
    Ok(())
}

fn is_remote(resolved: &Resolved) -> bool {
    match resolved.resolution() {
        Resolution::Refused(_) => false,
        Resolution::Chain { hooks, .. } => hooks.iter().any(|definition| definition.hook.locality() == Locality::Remote),
    }
}

fn answer_recalled(recalled: Recalled, invocation: &InvocationId, cut: &Cut) -> Result<Recorded, EvaluateError> {
    match recalled {
        Recalled::Repeat(Recorded::Allowed(_)) if cut.is_made() => Err(EvaluateError::Cancelled),
        Recalled::Repeat(recorded) => Ok(recorded),
        Recalled::Reused => Err(EvaluateError::InvocationReused(invocation.clone())),
        Recalled::Expired => Err(EvaluateError::DecisionExpired(invocation.clone())),
        Recalled::Unverifiable => Err(EvaluateError::InvocationUnverifiable(invocation.clone())),
    }
}

fn told_message(recorded: &Recorded) -> Option<tollgate_domain::Message> {
    match recorded {
        Recorded::Allowed(_) => None,
        Recorded::Refused(refusal) => refusal.message.clone(),
    }
}

fn other_tool() -> EvaluateError {
    EvaluateError::Invalid { field: "tool_call_id", problem: "belongs to a call of another tool".to_owned() }
}

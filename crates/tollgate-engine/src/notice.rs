//! Outcome notices: entered hooks that asked for it are told how an invocation ended, in reverse.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures_util::FutureExt;
use tollgate_domain::{
    Generation, HookDefinition, HookEvaluation, Judged, Notice, NoticeFailed, NoticeRecord, NoticeResult, RunKey, Trace, codes,
    invariants,
};

use crate::engine::Engine;

/// How long one hook may take over one notice.
const NOTICE_TIMEOUT: Duration = Duration::from_secs(5);

impl Engine {
    /// Tells the entered hooks of a refused call. A failing notice changes neither decision nor code.
    pub(crate) async fn notice_refusal(&self, judged: &Judged) -> Vec<NoticeRecord> {
        let Some(outcome) = judged.refused_outcome() else { return Vec::new() };
        let resolved = judged.resolved();
        let notice = Notice {
            tool_call: resolved.ids().tool_call.clone(),
            invocation: resolved.ids().invocation.clone(),
            attempt: resolved.attempt(),
            context: resolved.record().clone(),
            outcome,
            started_at: resolved.received_at(),
            duration_us: self.clock.now().micros_since(resolved.received_at()),
        };
        tell_entered(judged.trace(), Some(resolved.generation()), &resolved.call().run, &notice).await
    }
}

/// Tells every entered hook that asked for it, in reverse, through its present definition of the same
/// source and id. All are told even when one fails.
pub(crate) async fn tell_entered(
    trace: &Trace,
    generation: Option<&Arc<Generation>>,
    run: &RunKey,
    notice: &Notice,
) -> Vec<NoticeRecord> {
    let mut records = Vec::new();
    for entry in trace.entered().rev().filter(|entry| entry.outcome) {
        let present = generation.and_then(|generation| present_definition(generation, run, entry));
        let result = match present {
            None => NoticeResult::NotNotified,
            Some(definition) => tell(definition, notice).await,
        };
        records.push(NoticeRecord { hook: entry.hook.clone(), source: entry.source, result });
    }
    debug_assert!(invariants::told_in_reverse(trace, &records));
    records
}

async fn tell(definition: &HookDefinition, notice: &Notice) -> NoticeResult {
    let telling = AssertUnwindSafe(definition.hook.notify(notice)).catch_unwind();
    match tokio::time::timeout(NOTICE_TIMEOUT, telling).await {
        Ok(Ok(Ok(()))) => NoticeResult::Notified,
        Ok(Ok(Err(NoticeFailed { code }))) => NoticeResult::Failed(code),
        Ok(Err(_panic)) => NoticeResult::Failed(codes::HOOK_PANICKED.clone()),
        Err(_elapsed) => NoticeResult::Failed(codes::HOOK_TIMED_OUT.clone()),
    }
}

fn present_definition<'a>(generation: &'a Generation, run: &RunKey, entry: &HookEvaluation) -> Option<&'a Arc<HookDefinition>> {
    let chain = generation.chain(&run.tenant, &run.workspace);
    chain.iter().find(|definition| definition.id == entry.hook && definition.ownership.source() == entry.source)
}

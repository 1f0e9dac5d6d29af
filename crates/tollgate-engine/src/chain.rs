//! Asking the hooks of a chain in turn. Nothing that goes wrong in a hook lets a call through.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;
use tollgate_domain::{
    Code, HookAnswer, HookDefinition, HookEvaluation, HookInput, Judgement, Message, Resolution, Resolved, Verdict, VerdictKind,
    codes, pseudo_hooks,
};

use crate::{cut::Cut, engine::Engine};

impl Engine {
    /// Asks each hook until an enforced one refuses, or the caller no longer waits.
    pub(crate) async fn run_chain(&self, resolved: &Resolved, cut: &Cut) -> Judgement {
        let began = self.clock.monotonic();
        let mut asked = Vec::new();
        let mut message = None;
        match resolved.resolution() {
            Resolution::Refused(entry) => asked.push(HookEvaluation::clone(entry)),
            Resolution::Chain { tool, hooks } => {
                let input = HookInput {
                    call: resolved.call(),
                    tool,
                    tool_call: &resolved.ids().tool_call,
                    invocation: &resolved.ids().invocation,
                    attempt: resolved.attempt(),
                    claims: resolved.trusted_claims(),
                    now: resolved.received_at(),
                };
                asked.reserve(hooks.len());
                for definition in hooks {
                    let (entry, said) = self.ask(definition, input, resolved, asked.len(), cut).await;
                    let ends = entry.refusal().is_some();
                    asked.push(entry);
                    if ends {
                        message = said;
                        break;
                    }
                }
            }
        }
        // An empty chain, or one that ends in shadow hooks, is cut as well.
        if cut.is_made() && !asked.iter().any(|entry| entry.refusal().is_some()) {
            let cancelled = codes::TOOL_EXECUTION_CANCELLED.clone();
            asked.push(HookEvaluation::pseudo(asked.len(), pseudo_hooks::HOOK_GOVERNANCE, VerdictKind::Failed, cancelled));
        }
        Judgement { hooks: asked, message, at: self.clock.now(), duration_us: self.clock.monotonic().micros_since(began) }
    }

    async fn ask(
        &self,
        definition: &HookDefinition,
        input: HookInput<'_>,
        resolved: &Resolved,
        before: usize,
        cut: &Cut,
    ) -> (HookEvaluation, Option<Message>) {
        let began = self.clock.monotonic();
        let answer = judge_guarded(definition, input, cut).await;
        let duration_us = self.clock.monotonic().micros_since(began);
        let verdict = answer.verdict.kind();
        let (code, message) = match answer.verdict {
            Verdict::Allowed => (None, None),
            Verdict::Denied { code, message } => (Some(code), message),
            Verdict::Failed { code } | Verdict::Abstained { code } => (Some(code), None),
        };
        // Ids of hooks are configuration: few, and no caller's.
        metrics::counter!(
            "tollgate_hook_verdicts_total",
            "hook" => definition.id.to_string(),
            "enforcement" => definition.enforcement.as_str(),
            "verdict" => verdict.as_str()
        )
        .increment(1);
        let entry = HookEvaluation {
            position: u32::try_from(before).map_or(u32::MAX, |before| before.saturating_add(1)),
            hook: definition.id.clone(),
            order: definition.order,
            source: definition.ownership.source(),
            enforcement: definition.enforcement,
            resource: resolved.generation().resource_of(definition),
            digest: Some(definition.digest),
            verdict,
            code,
            evidence: answer.evidence,
            outcome: definition.hook.wants_outcome(),
            duration_us,
        };
        (entry, message)
    }
}

/// One hook's answer, whatever it does: a panic and the end of the caller's patience are Failed.
async fn judge_guarded(definition: &HookDefinition, input: HookInput<'_>, cut: &Cut) -> HookAnswer {
    if cut.is_made() {
        return failed(&codes::TOOL_EXECUTION_CANCELLED);
    }
    let judging = AssertUnwindSafe(definition.hook.evaluate(input)).catch_unwind();
    let answer = tokio::select! {
        biased;
        answer = judging => answer.unwrap_or_else(|_panic| failed(&codes::HOOK_PANICKED)),
        () = cut.made() => return failed(&codes::TOOL_EXECUTION_CANCELLED),
    };
    // A late allow changes nothing.
    match answer.verdict.kind() {
        VerdictKind::Allowed | VerdictKind::Abstained if cut.is_made() => failed(&codes::TOOL_EXECUTION_CANCELLED),
        VerdictKind::Allowed | VerdictKind::Abstained | VerdictKind::Denied | VerdictKind::Failed => answer,
    }
}

fn failed(code: &Code) -> HookAnswer {
    Verdict::Failed { code: code.clone() }.into()
}

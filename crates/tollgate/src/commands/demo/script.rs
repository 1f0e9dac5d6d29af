//! What the demo's agent does: each step is a real call of the sidecar.

use anyhow::{Result, ensure};
use tollgate_client::{Answer, Gate, v1, v1::complete_request::Outcome};

use super::{say, stage::Stage};
use crate::{
    run_path::RunPath,
    style::{self, paint},
    view::{decision_text, outcome_text},
    world::fresh_id,
};

/// One attempt of a tool call, and what the demo has to say of it.
struct Step {
    story: &'static str,
    tool: &'static str,
    /// The framework's id of the logical call.
    call: &'static str,
    arguments: &'static str,
    expected: v1::Decision,
    /// How the tool ends, where it may run.
    ends: Outcome,
}

/// A run of the support agent.
pub(super) fn run_of_the_demo() -> RunPath {
    RunPath(v1::RunKey {
        tenant: "acme".to_owned(),
        workspace: "support-prod".to_owned(),
        owner_kind: v1::OwnerKind::Run.into(),
        owner_id: "support-agent".to_owned(),
        run_id: fresh_id(),
    })
}

/// Plays the run: allowed calls, a denied payment, a hook that fails closed, and a retry under a changed policy.
pub(super) async fn play(gate: &Gate, stage: &Stage, run: &RunPath) -> Result<()> {
    let returns = Outcome::Succeeded(v1::Succeeded { tool_error: false });
    let throws = Outcome::ProviderFailed(v1::ProviderFailed {
        error_type: "ConnectionResetError".to_owned(),
        error_message: "the payment provider closed the connection".to_owned(),
    });
    let step = |story, tool, call, arguments, expected| Step { story, tool, call, arguments, expected, ends: returns.clone() };
    let before = [
        step(
            "The agent looks into the knowledge base",
            "search.knowledge_base",
            "call-1",
            r#"{"query":"refund policy for damaged goods"}"#,
            v1::Decision::Allow,
        ),
        step("reads the customer's record", "crm.read_record", "call-2", r#"{"record":"C-1042"}"#, v1::Decision::Allow),
        step(
            "and tries to pay 9,500 EUR out",
            "payments.transfer",
            "call-3",
            r#"{"amount":9500.00,"currency":"EUR","iban":"DE02120300000000202051"}"#,
            v1::Decision::Deny,
        ),
        step(
            "An amount that no payment can have: the hook cannot judge it, so it fails closed",
            "payments.refund",
            "call-4",
            r#"{"amount":40.00001,"currency":"EUR","order":"O-7731"}"#,
            v1::Decision::Failed,
        ),
        Step {
            ends: throws,
            ..step(
                "A refund of 40 EUR is within the limit; the payment provider breaks down while it runs",
                "payments.refund",
                "call-5",
                r#"{"amount":40.00,"currency":"EUR","order":"O-7731"}"#,
                v1::Decision::Allow,
            )
        },
    ];
    for step in before {
        attempt(gate, run, &step).await?;
    }
    say(format_args!("\nSomebody lowers the refund limit to 25 EUR: hooks/payments-limit/refunds.cedar is edited."))?;
    let generation = stage.lower_refund_limit().await?;
    say(format_args!("The sidecar has swapped to generation {generation}, all of it at once."))?;
    let after = [
        step(
            "The framework tries the same refund again: a new attempt, judged anew",
            "payments.refund",
            "call-5",
            r#"{"amount":40.00,"currency":"EUR","order":"O-7731"}"#,
            v1::Decision::Deny,
        ),
        step(
            "so the agent writes to the customer instead",
            "mail.send",
            "call-6",
            r#"{"to":"customer@example.com","subject":"Your refund","body":"A colleague will take care of it."}"#,
            v1::Decision::Allow,
        ),
    ];
    for step in after {
        attempt(gate, run, &step).await?;
    }
    Ok(())
}

async fn attempt(gate: &Gate, run: &RunPath, step: &Step) -> Result<()> {
    say(format_args!("\n{} {}", paint(style::STRONG, step.story), paint(style::DIM, format_args!("({})", step.tool))))?;
    let answer = gate.evaluate(request(run, step)).await?;
    say(format_args!("  {}", decision_text(answer.response())))?;
    let response = answer.response();
    ensure!(response.decision() == step.expected, "the demo expected {} here", step.expected.as_str_name());
    if let Answer::Allowed(allowed) = &answer {
        // Here the agent would run the tool. The demo has none, and tells the outcome that it stands for.
        let completed = gate
            .complete(v1::CompleteRequest {
                run: Some(run.0.clone()),
                invocation_id: allowed.response.invocation_id.clone(),
                outcome: Some(step.ends.clone()),
            })
            .await?;
        say(format_args!("  the tool runs: {}", outcome_text(&completed.governed.unwrap_or_default())))?;
    }
    Ok(())
}

fn request(run: &RunPath, step: &Step) -> v1::EvaluateRequest {
    v1::EvaluateRequest {
        run: Some(run.0.clone()),
        agent: Some(v1::Agent { id: "support-agent".to_owned(), revision: "1".to_owned() }),
        tool: Some(v1::Tool { id: step.tool.to_owned(), ..Default::default() }),
        tool_call_id: step.call.to_owned(),
        invocation_id: fresh_id(),
        arguments_json: step.arguments.as_bytes().to_vec().into(),
        ..Default::default()
    }
}

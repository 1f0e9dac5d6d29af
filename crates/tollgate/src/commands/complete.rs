//! `tollgate complete`: tells a running sidecar how an allowed tool call ended.

use anyhow::Result;
use tollgate_client::{Gate, connect, v1, v1::complete_request::Outcome};

use crate::{
    cli::{Complete, ReportedOutcome},
    exit::Exit,
    out, view,
};

pub(crate) async fn run(complete: Complete) -> Result<Exit> {
    let outcome = match complete.outcome {
        ReportedOutcome::Succeeded => Outcome::Succeeded(v1::Succeeded { tool_error: false }),
        ReportedOutcome::ToolError => Outcome::Succeeded(v1::Succeeded { tool_error: true }),
        ReportedOutcome::Failed => Outcome::ProviderFailed(v1::ProviderFailed {
            error_type: complete.error_type.unwrap_or_default(),
            error_message: complete.error_message.unwrap_or_default(),
        }),
        ReportedOutcome::Cancelled => Outcome::Cancelled(v1::Cancelled {}),
    };
    let gate = Gate::new(connect(&complete.address.address).await?);
    let request = v1::CompleteRequest { run: Some(complete.run.0), invocation_id: complete.invocation, outcome: Some(outcome) };
    let completed = gate.complete(request).await?;
    if complete.json {
        out::line(view::completed_json(&completed)?)?;
    } else {
        out::text(view::completed_text(&completed))?;
    }
    Ok(Exit::Success)
}

//! `tollgate journal`: reads the journal of a running sidecar.

use anyhow::Result;
use tollgate_client::{CallError, connect, journal, v1};

use crate::{
    cli::{DecisionFilter, Journal},
    exit::Exit,
    out,
    run_path::RunPath,
    view,
};

pub(crate) async fn run(command: Journal) -> Result<Exit> {
    let Journal::Show { address, run, tool, decision, json } = command;
    let decision = match decision {
        None => v1::Decision::Unspecified,
        Some(DecisionFilter::Allow) => v1::Decision::Allow,
        Some(DecisionFilter::Deny) => v1::Decision::Deny,
        Some(DecisionFilter::Failed) => v1::Decision::Failed,
    };
    let filter = v1::FactFilter { tool_id: tool.unwrap_or_default(), decision: decision.into(), ..Default::default() };
    show(&address.address, &run, filter, json).await?;
    Ok(Exit::Success)
}

/// Prints every page of a run's facts as it arrives.
pub(crate) async fn show(address: &str, run: &RunPath, filter: v1::FactFilter, json: bool) -> Result<()> {
    let mut client = journal(connect(address).await?);
    let mut timeline = view::Timeline::new(run);
    let mut after_sequence = 0;
    loop {
        let request = v1::ListFactsRequest { run: Some(run.0.clone()), filter: Some(filter.clone()), after_sequence, limit: 0 };
        let page = client.list_facts(request).await.map_err(|status| CallError::from_status(&status))?.into_inner();
        for fact in page.facts {
            if json {
                out::line(view::fact_json(&fact)?)?;
            } else {
                out::text(timeline.line(&fact))?;
            }
        }
        match page.next {
            Some(next) => after_sequence = next,
            None => return Ok(()),
        }
    }
}

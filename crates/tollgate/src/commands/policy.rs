//! `tollgate policy`: bundles on disk, and the one that decides on a running sidecar.

use std::path::Path;

use anyhow::Result;
use tollgate_client::{CallError, connect, policy, v1};
use tollgate_policy::{Report, Summary};

use super::on_runtime;
use crate::{
    cli::{CheckFormat, Policy},
    exit::Exit,
    out, style, view,
};

pub(crate) fn run(policy: Policy) -> Result<Exit> {
    match policy {
        Policy::Check { directory, format } => check(&directory, format),
        Policy::Status { address } => on_runtime(|| async move { status(&address.address).await }),
    }
}

fn check(directory: &Path, format: CheckFormat) -> Result<Exit> {
    let report = tollgate_policy::check(directory);
    match format {
        CheckFormat::Json => out::line(report.to_json())?,
        CheckFormat::Human => {
            out::text(report.render(true))?;
            out::line(verdict(directory, &report))?;
        }
    }
    Ok(if report.is_clean() { Exit::Success } else { Exit::Findings })
}

fn verdict(directory: &Path, report: &Report) -> String {
    let directory = directory.display();
    match report.summary {
        Some(Summary { hooks, policies, tools, entities }) if report.is_clean() => format!(
            "{}: {directory}: {hooks} hooks, {policies} policies, {tools} tools, {entities} entities",
            style::paint(style::GOOD, "ok")
        ),
        _ => format!("{}: {directory}: {} findings", style::paint(style::BAD, "refused"), report.findings.len()),
    }
}

async fn status(address: &str) -> Result<Exit> {
    let mut client = policy(connect(address).await?);
    let status = client.get_status(v1::GetStatusRequest {}).await.map_err(|status| CallError::from_status(&status))?;
    out::text(view::status_text(&status.into_inner()))?;
    Ok(Exit::Success)
}

//! `tollgate evaluate`: asks a running sidecar about one tool call.

use std::{
    fs,
    io::{IsTerminal, Read},
    path::Path,
};

use anyhow::{Context, Result, ensure};
use tollgate_client::{Answer, Gate, connect, v1};

use crate::{cli::Evaluate, config::Span, exit::Exit, out, view, world};

pub(crate) async fn run(evaluate: Evaluate) -> Result<Exit> {
    let Span(timeout) = evaluate.timeout;
    let json = evaluate.json;
    let address = evaluate.address.address.clone();
    let request = request(evaluate)?;
    let gate = Gate::new(connect(&address).await?);
    let answer = gate.evaluate_within(request, timeout).await?;
    if json {
        out::line(view::answer_json(&answer)?)?;
    } else {
        out::text(view::answer_text(&answer))?;
    }
    Ok(match &answer {
        Answer::Allowed(_) => Exit::Success,
        Answer::Refused(refused) if refused.response.decision() == v1::Decision::Deny => Exit::Denied,
        Answer::Refused(_) => Exit::Failed,
    })
}

fn request(evaluate: Evaluate) -> Result<v1::EvaluateRequest> {
    let (id, revision) = evaluate.agent;
    Ok(v1::EvaluateRequest {
        run: Some(evaluate.run.0),
        agent: Some(v1::Agent { id, revision }),
        tool: Some(v1::Tool {
            id: evaluate.tool,
            provider_id: evaluate.provider.unwrap_or_default(),
            external_name: evaluate.external_name.unwrap_or_default(),
        }),
        principal: evaluate.principal.map(|(kind, id)| v1::Principal { kind, id }),
        tool_call_id: evaluate.tool_call.unwrap_or_default(),
        call_key: evaluate.call_key.unwrap_or_default(),
        invocation_id: evaluate.invocation.unwrap_or_else(world::fresh_id),
        arguments_json: read_arguments(&evaluate.arguments)?.into(),
        claims: None,
        runtime: None,
    })
}

fn read_arguments(path: &Path) -> Result<Vec<u8>> {
    if path != Path::new("-") {
        return fs::read(path).with_context(|| format!("cannot read the arguments {}", path.display()));
    }
    let mut input = std::io::stdin();
    ensure!(
        !input.is_terminal(),
        "the arguments are read from standard input: pipe one JSON object in, or name a file with --arguments"
    );
    let mut bytes = Vec::new();
    input.read_to_end(&mut bytes).context("cannot read the arguments from standard input")?;
    Ok(bytes)
}

//! Messages with the sentinel in their values.

use tollgate_proto::v1;

use crate::sentinel::SENTINEL;

/// Puts it into every text, arguments and attributes included, which are then no JSON.
pub(super) fn every_value(request: &mut v1::EvaluateRequest) {
    if let Some(run) = &mut request.run {
        run_key(run);
    }
    if let Some(agent) = &mut request.agent {
        texts([&mut agent.id, &mut agent.revision]);
    }
    if let Some(tool) = &mut request.tool {
        texts([&mut tool.id, &mut tool.provider_id, &mut tool.external_name]);
    }
    if let Some(principal) = &mut request.principal {
        texts([&mut principal.kind, &mut principal.id]);
    }
    texts([&mut request.tool_call_id, &mut request.call_key, &mut request.invocation_id]);
    request.arguments_json = [SENTINEL.as_bytes(), &request.arguments_json].concat().into();
    if let Some(claims) = &mut request.claims {
        texts(claims.groups.iter_mut());
        claims.attributes_json = [SENTINEL.as_bytes(), &claims.attributes_json].concat().into();
        if let Some(approval) = &mut claims.approval {
            texts([&mut approval.id, &mut approval.approver]);
        }
    }
    if let Some(runtime) = &mut request.runtime {
        texts([
            &mut runtime.parent_run_id,
            &mut runtime.traceparent,
            &mut runtime.assistant_message_id,
            &mut runtime.executor,
            &mut runtime.tool_source,
            &mut runtime.execution_target,
            &mut runtime.device,
        ]);
        let correlation = std::mem::take(&mut runtime.correlation);
        runtime.correlation = correlation.into_iter().map(|(name, value)| (salted(&name), salted(&value))).collect();
    }
}

/// Puts it where only values go that are never kept: arguments and attributes.
pub(super) fn secrets(request: &mut v1::EvaluateRequest) {
    let json = format!("{{\"{SENTINEL}\":[\"{SENTINEL}\"]}}");
    if let Some(claims) = &mut request.claims {
        claims.attributes_json = json.clone().into();
    }
    request.arguments_json = json.into();
}

/// Puts it into every text of an outcome.
pub(super) fn completion(request: &mut v1::CompleteRequest) {
    if let Some(run) = &mut request.run {
        run_key(run);
    }
    request.invocation_id = salted(&request.invocation_id);
    if let Some(v1::complete_request::Outcome::ProviderFailed(failed)) = &mut request.outcome {
        failed.error_message = salted(&failed.error_message);
    }
}

fn run_key(run: &mut v1::RunKey) {
    texts([&mut run.tenant, &mut run.workspace, &mut run.owner_id, &mut run.run_id]);
}

fn texts<'a>(texts: impl IntoIterator<Item = &'a mut String>) {
    for text in texts {
        *text = salted(text);
    }
}

/// An absent value stays absent.
fn salted(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("{SENTINEL}{text}") }
}

//! Reading the journal over the wire: pages, filters, and the view of each tool call.

use tollgate_client::{
    Gate,
    v1::{self, complete_request::Outcome, fact::Body},
};
use tollgate_tests::{
    sidecar::{Setup, Sidecar, eventually},
    trees, wire,
};
use tonic::Code;
use tonic_types::StatusExt as _;

async fn ask(gate: &Gate, run: &v1::RunKey, tool: &str, arguments: &str) -> v1::EvaluateResponse {
    gate.evaluate(wire::call(run, tool, arguments)).await.unwrap().response().clone()
}

/// A run with every kind of decision, the last call under a second generation.
async fn play(sidecar: &Sidecar, run: &v1::RunKey) {
    let gate = sidecar.gate().await;
    for number in 0..8 {
        let allowed = ask(&gate, run, "desk.read", "{}").await;
        if number % 2 == 0 {
            gate.complete(wire::succeeded(run, &allowed.invocation_id)).await.unwrap();
        }
    }
    for (tool, arguments) in [
        ("desk.write", "{}"),
        ("pay.send", r#"{"count":1}"#),
        ("pay.send", r#"{"count":9007199254740993}"#),
        ("pay.send", r#"{"count":9223372036854775807}"#),
    ] {
        ask(&gate, run, tool, arguments).await;
    }
    let first = sidecar.generation().await;
    trees::write(&trees::with(trees::gate(), &[("entities.json", "[ ]\n")]), &sidecar.setup().bundle());
    eventually("a second generation", async || Some(sidecar.generation().await).filter(|now| *now != first)).await;
    ask(&gate, run, "desk.write", "{}").await;
}

async fn pages(sidecar: &Sidecar, run: &v1::RunKey, filter: &v1::FactFilter, limit: u32) -> Vec<v1::Fact> {
    let mut journal = sidecar.journal().await;
    let (mut facts, mut after_sequence) = (Vec::new(), 0);
    loop {
        let request = v1::ListFactsRequest { run: Some(run.clone()), filter: Some(filter.clone()), after_sequence, limit };
        let page = journal.list_facts(request).await.unwrap().into_inner();
        let full = usize::try_from(if limit == 0 { 100 } else { limit }).unwrap();
        assert!(page.facts.len() <= full);
        assert!(page.next.is_none() || page.facts.len() == full, "there is a next page only where this one is full");
        facts.extend(page.facts);
        match page.next {
            Some(next) => after_sequence = next,
            None => return facts,
        }
    }
}

#[tokio::test]
async fn g19_pages_of_any_size_walk_a_run_without_gap_or_repetition() {
    let sidecar = Setup::new().start().await;
    let run = wire::run();
    play(&sidecar, &run).await;
    let everything = pages(&sidecar, &run, &v1::FactFilter::default(), 200).await;
    let sequences: Vec<_> = everything.iter().map(|fact| fact.sequence).collect();
    assert_eq!(sequences, (1..=everything.len() as u64).collect::<Vec<_>>());
    assert!(everything.is_sorted_by_key(|fact| fact.position));
    assert!(everything.windows(2).all(|pair| pair[1].previous_digest == pair[0].digest));
    for limit in [0, 1, 2, 7, 199] {
        assert_eq!(pages(&sidecar, &run, &v1::FactFilter::default(), limit).await, everything, "pages of {limit}");
    }
    // A page that ends exactly at the end says that there is no more.
    let last = everything.len() as u64;
    let rest = v1::ListFactsRequest { run: Some(run.clone()), after_sequence: last, ..Default::default() };
    let page = sidecar.journal().await.list_facts(rest).await.unwrap().into_inner();
    assert_eq!((page.facts.len(), page.next), (0, None));
}

#[tokio::test]
async fn g20_g21_filters_hold_together_and_with_a_hook_for_one_entry_of_the_trace() {
    let sidecar = Setup::new().start().await;
    let run = wire::run();
    play(&sidecar, &run).await;
    let everything = pages(&sidecar, &run, &v1::FactFilter::default(), 200).await;
    let filter = |tool: &str, hook: &str, verdict: v1::Verdict, decision: v1::Decision, generation| v1::FactFilter {
        tool_id: tool.to_owned(),
        hook: hook.to_owned(),
        verdict: verdict.into(),
        decision: decision.into(),
        generation,
    };
    let mut seen = 0;
    for tool in ["", "desk.write", "pay.send", "desk.none"] {
        for hook in ["", "desk", "hooks/pay", "nobody"] {
            for verdict in [v1::Verdict::Unspecified, v1::Verdict::Allowed, v1::Verdict::Denied, v1::Verdict::Failed] {
                for decision in [v1::Decision::Unspecified, v1::Decision::Allow, v1::Decision::Deny, v1::Decision::Failed] {
                    for generation in [0, 1, 2, 9] {
                        let filter = filter(tool, hook, verdict, decision, generation);
                        let expected: Vec<_> =
                            everything.iter().filter(|fact| matches(fact, &filter, &everything)).cloned().collect();
                        seen += expected.len();
                        assert_eq!(pages(&sidecar, &run, &filter, 3).await, expected, "{filter:?}");
                    }
                }
            }
        }
    }
    assert!(seen > 200, "the filters find something: {seen}");
}

/// The rule of a filter, said once more.
fn matches(fact: &v1::Fact, filter: &v1::FactFilter, everything: &[v1::Fact]) -> bool {
    let started = everything.iter().find_map(|other| match &other.body {
        Some(Body::ToolCallStarted(started)) if other.invocation_id == fact.invocation_id => started.tool.clone(),
        _ => None,
    });
    if !filter.tool_id.is_empty() && started.unwrap().id != filter.tool_id {
        return false;
    }
    let of_decisions = !filter.hook.is_empty() || filter.verdict != 0 || filter.decision != 0 || filter.generation != 0;
    if !of_decisions {
        return true;
    }
    let Some(Body::GovernanceEvaluated(evaluated)) = &fact.body else { return false };
    let entry = |entry: &v1::HookEvaluation| {
        (filter.hook.is_empty() || entry.hook_id == filter.hook || entry.resource_id == filter.hook)
            && (filter.verdict == 0 || entry.verdict == filter.verdict)
    };
    (filter.decision == 0 || evaluated.decision == filter.decision)
        && (filter.generation == 0 || evaluated.generation.as_ref().unwrap().number == filter.generation)
        && ((filter.hook.is_empty() && filter.verdict == 0) || evaluated.hooks.iter().any(entry))
}

#[tokio::test]
async fn g22_a_wrong_filter_or_limit_is_refused_and_an_unknown_run_is_not_found() {
    let sidecar = Setup::new().start().await;
    let (run, mut journal) = (wire::run(), sidecar.journal().await);
    ask(&sidecar.gate().await, &run, "desk.read", "{}").await;
    let ask = |filter: v1::FactFilter, limit| v1::ListFactsRequest {
        run: Some(run.clone()),
        filter: Some(filter),
        limit,
        ..Default::default()
    };
    let wrong = [
        ("filter.verdict", ask(v1::FactFilter { verdict: 77, ..Default::default() }, 0)),
        ("filter.decision", ask(v1::FactFilter { decision: -1, ..Default::default() }, 0)),
        ("filter.tool_id", ask(v1::FactFilter { tool_id: "a".repeat(257), ..Default::default() }, 0)),
        ("filter.hook", ask(v1::FactFilter { hook: "a".repeat(257), ..Default::default() }, 0)),
        ("limit", ask(v1::FactFilter::default(), 201)),
        ("run", v1::ListFactsRequest::default()),
    ];
    for (field, request) in wrong {
        let status = journal.list_facts(request).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument, "{status:?}");
        assert_eq!(status.get_details_error_info().unwrap().metadata["field"], field);
    }
    let unknown = v1::RunKey { owner_kind: v1::OwnerKind::Flow.into(), ..run.clone() };
    let status = journal.list_facts(v1::ListFactsRequest { run: Some(unknown.clone()), ..Default::default() }).await.unwrap_err();
    assert_eq!(status.code(), Code::NotFound, "a flow and a run of the same name are two");
    assert_eq!(status.get_details_error_info().unwrap().reason, "NOT_FOUND");
    let calls = journal.list_tool_calls(v1::ListToolCallsRequest { run: Some(unknown), ..Default::default() }).await;
    assert_eq!(calls.unwrap_err().code(), Code::NotFound);
    let call = v1::GetToolCallRequest { run: Some(run), tool_call_id: "unknown".to_owned() };
    assert_eq!(journal.get_tool_call(call).await.unwrap_err().code(), Code::NotFound);
    let missing = v1::ListHistoryRequest { bundle: "none".to_owned(), ..Default::default() };
    assert_eq!(sidecar.policy().await.list_history(missing).await.unwrap_err().code(), Code::NotFound);
}

#[tokio::test]
async fn b17_g14_a_tool_call_shows_its_latest_attempt_and_the_history_keeps_every_one() {
    let sidecar = Setup::new().start().await;
    let (run, gate, mut journal) = (wire::run(), sidecar.gate().await, sidecar.journal().await);
    let attempt = |tool: &str| v1::EvaluateRequest { tool_call_id: format!("call-{tool}"), ..wire::call(&run, tool, "{}") };
    let mut show = async |tool: &str| {
        let request = v1::GetToolCallRequest { run: Some(run.clone()), tool_call_id: format!("call-{tool}") };
        journal.get_tool_call(request).await.unwrap().into_inner().tool_call.unwrap()
    };

    let first = gate.evaluate(attempt("desk.read")).await.unwrap().response().clone();
    let open = show("desk.read").await;
    assert_eq!((open.state(), open.attempts, open.outcome.clone()), (v1::InvocationState::Open, 1, None));
    assert_eq!((open.tool_id.as_str(), open.latest_invocation_id.as_str()), ("desk.read", first.invocation_id.as_str()));
    assert_eq!(open.governance.unwrap().decision(), v1::Decision::Allow);

    let thrown =
        Outcome::ProviderFailed(v1::ProviderFailed { error_type: "Timeout".to_owned(), error_message: "slow".to_owned() });
    gate.complete(wire::ended(&run, &first.invocation_id, thrown)).await.unwrap();
    let failed = show("desk.read").await;
    assert_eq!(failed.state(), v1::InvocationState::Failed);
    assert_eq!(failed.outcome.unwrap().failure_kind(), v1::FailureKind::Provider);
    assert!(failed.duration.is_some());

    let second = gate.evaluate(attempt("desk.read")).await.unwrap().response().clone();
    gate.complete(wire::ended(&run, &second.invocation_id, Outcome::Succeeded(v1::Succeeded { tool_error: true })))
        .await
        .unwrap();
    let completed = show("desk.read").await;
    assert_eq!((completed.state(), completed.attempts), (v1::InvocationState::Completed, 2));
    assert!(completed.outcome.unwrap().tool_error);

    let third = gate.evaluate(attempt("desk.read")).await.unwrap().response().clone();
    gate.complete(wire::ended(&run, &third.invocation_id, Outcome::Cancelled(v1::Cancelled {}))).await.unwrap();
    assert_eq!(show("desk.read").await.state(), v1::InvocationState::Cancelled);

    drop(gate.evaluate(attempt("desk.write")).await.unwrap());
    let denied = show("desk.write").await;
    assert_eq!((denied.state(), denied.outcome.unwrap().failure_kind()), (v1::InvocationState::Failed, v1::FailureKind::Denied));

    let list = async |after, limit| {
        let request = v1::ListToolCallsRequest { run: Some(run.clone()), after, limit };
        sidecar.journal().await.list_tool_calls(request).await.unwrap().into_inner()
    };
    let page = list(0, 1).await;
    assert_eq!(page.tool_calls[0].tool_call_id, "call-desk.read", "in the order of their first attempts");
    let rest = list(page.next.unwrap(), 1).await;
    assert_eq!((rest.tool_calls[0].tool_call_id.as_str(), rest.next), ("call-desk.write", None));

    let attempts: Vec<_> = sidecar
        .facts(&run)
        .await
        .into_iter()
        .filter(|fact| matches!(fact.body, Some(Body::ToolCallStarted(_))))
        .map(|fact| fact.attempt)
        .collect();
    assert_eq!(attempts, [1, 2, 3, 1]);
}

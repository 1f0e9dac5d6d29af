//! A hook decides as Cedar does over all policies at once, but for the rule that an error fails it.

use std::{collections::HashSet, str::FromStr, sync::LazyLock};

use cedar_policy::{Authorizer, Context, Decision, Entities, EntityUid, Policy, PolicySet, Request, Schema};
use proptest::prelude::*;
use tollgate_domain::PolicyId;

use crate::harness::{ENTITIES, Harness, call, load, say, with};

const PRINCIPALS: [&str; 4] = [
    "principal",
    "principal == Tollgate::Agent::\"bot\"",
    "principal in Tollgate::Workspace::\"acme/prod\"",
    "principal == Tollgate::Agent::\"other\"",
];
const RESOURCES: [&str; 4] = [
    "resource",
    "resource == Tollgate::Tool::\"fs.read\"",
    "resource in Tollgate::ToolProvider::\"pay\"",
    "resource is Tollgate::Tool",
];
const CONDITIONS: [&str; 8] = [
    "context.call.attempt > 0",
    "principal.tier > 1",
    "resource.effect == \"read\"",
    "resource.labels.contains(\"danger\")",
    "context.env.workspace.environment == \"production\"",
    "principal.tier + 9223372036854775806 > 0",
    "context has on_behalf_of && context.on_behalf_of in Tollgate::Group::\"staff\"",
    "principal has owner && principal.owner in Tollgate::Group::\"admins\"",
];

fn policy() -> impl Strategy<Value = String> {
    let effect = prop_oneof![Just("permit"), Just("forbid")];
    let kind = prop_oneof![Just("when"), Just("unless")];
    (effect, 0..PRINCIPALS.len(), 0..RESOURCES.len(), kind, 0..CONDITIONS.len()).prop_map(
        |(effect, principal, resource, kind, condition)| {
            format!(
                "{effect} ({}, action, {}) {kind} {{ {} }};",
                PRINCIPALS[principal], RESOURCES[resource], CONDITIONS[condition]
            )
        },
    )
}

fn asked() -> impl Strategy<Value = (&'static str, &'static str, &'static str, Option<&'static str>)> {
    (
        prop::sample::select(vec!["bot", "other", "nobody"]),
        prop::sample::select(vec!["fs.read", "fs.delete", "pay.transfer"]),
        prop::sample::select(vec!["prod", "elsewhere"]),
        prop::sample::select(vec![None, Some("ann"), Some("boss"), Some("nobody")]),
    )
}

fn uid(kind: &str, id: &str) -> EntityUid {
    EntityUid::from_type_name_and_id(kind.parse().unwrap(), cedar_policy::EntityId::new(id))
}

/// The schema and the entities, as Cedar reads them.
static WORLD: LazyLock<(Schema, Entities)> = LazyLock::new(|| {
    let schema = Schema::from_str(crate::harness::SCHEMA).unwrap();
    let tools = r#"[
      {"uid":{"type":"Tollgate::ToolProvider","id":"fs"},"attrs":{"trust":1},"parents":[]},
      {"uid":{"type":"Tollgate::ToolProvider","id":"pay"},"attrs":{"trust":3},"parents":[{"type":"Tollgate::Tenant","id":"acme"}]},
      {"uid":{"type":"Tollgate::Tool","id":"fs.read"},"attrs":{"effect":"read","open_world":false,"requires_approval":false,"labels":[]},"parents":[{"type":"Tollgate::ToolProvider","id":"fs"}]},
      {"uid":{"type":"Tollgate::Tool","id":"fs.delete"},"attrs":{"effect":"destructive","open_world":false,"requires_approval":false,"labels":["danger"]},"parents":[{"type":"Tollgate::ToolProvider","id":"fs"}]},
      {"uid":{"type":"Tollgate::Tool","id":"pay.transfer"},"attrs":{"effect":"write","open_world":true,"requires_approval":true,"labels":[]},"parents":[{"type":"Tollgate::ToolProvider","id":"pay"}]}]"#;
    let entities = Entities::from_json_str(ENTITIES, Some(&schema)).unwrap();
    let entities = entities.add_entities_from_json_str(tools, Some(&schema)).unwrap();
    (schema, entities)
});

/// Plain Cedar, from the texts alone.
fn plain(
    policies: &[String],
    agent: &str,
    tool: &str,
    workspace: &str,
    user: Option<&str>,
) -> (String, Vec<String>, Vec<String>) {
    let (schema, entities) = &*WORLD;
    let parsed = policies
        .iter()
        .enumerate()
        .map(|(index, text)| Policy::parse(Some(cedar_policy::PolicyId::new(format!("p{index}"))), text).unwrap());
    let set = PolicySet::from_policies(parsed).unwrap();
    let action = uid("Tollgate::Action", "InvokeTool");
    let mut context = serde_json::json!({
        "call": {"id": "tc-1", "attempt": 1, "depth": 0, "interactive": false, "args_bytes": 2},
        "env": {
            "tenant": {"__entity": {"type": "Tollgate::Tenant", "id": "acme"}},
            "workspace": {"__entity": {"type": "Tollgate::Workspace", "id": format!("acme/{workspace}")}},
            "now": {"__extn": {"fn": "datetime", "arg": "2026-03-01T12:00:00Z"}}},
        "runtime": {"correlation": {}}});
    if let Some(user) = user {
        context["on_behalf_of"] = serde_json::json!({"__entity": {"type": "Tollgate::User", "id": user}});
    }
    let context = Context::from_json_value(context, Some((schema, &action))).unwrap();
    let request =
        Request::new(uid("Tollgate::Agent", agent), action, uid("Tollgate::Tool", tool), context, Some(schema)).unwrap();
    let response = Authorizer::new().is_authorized(&request, &set, entities);
    let sorted = |ids: HashSet<String>| {
        let mut ids: Vec<_> = ids.into_iter().collect();
        ids.sort();
        ids
    };
    let reasons = sorted(response.diagnostics().reason().map(ToString::to_string).collect());
    let errors = sorted(
        response
            .diagnostics()
            .errors()
            .map(|error| match error {
                cedar_policy::AuthorizationError::PolicyEvaluationError(error) => error.policy_id().to_string(),
            })
            .collect(),
    );
    let verdict = match response.decision() {
        _ if !errors.is_empty() => "failed policy_error",
        Decision::Allow => "allowed",
        Decision::Deny if reasons.is_empty() => "denied no_permit",
        Decision::Deny => "denied tool_execution_denied",
    };
    (verdict.to_owned(), reasons, errors)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn a_hook_decides_as_a_full_scan_of_cedar_with_the_error_rule(
        policies in prop::collection::vec(policy(), 1..8),
        calls in prop::collection::vec(asked(), 1..12),
    ) {
        let text = policies.iter().enumerate().map(|(index, policy)| format!("@id(\"p{index}\")\n{policy}\n")).collect::<Vec<_>>().concat();
        let harness = Harness::of(load(&with(&[("hooks/main/main.cedar", &text)])));
        for (agent, tool, workspace, user) in calls {
            let mut asked = call(tool).agent(agent).workspace(workspace);
            if let Some(user) = user {
                asked = asked.principal("user", user);
            }
            let expected = plain(&policies, agent, tool, workspace, user);
            let names = |ids: &[PolicyId]| ids.iter().map(ToString::to_string).collect::<Vec<_>>();
            let shared = harness.ask(&asked);
            prop_assert_eq!((say(&shared.verdict), names(&shared.evidence.determining), names(&shared.evidence.erroring)), expected.clone());
            // Claims that add nothing make a slice; nobody can tell it from the whole.
            let sliced = harness.ask(&asked.attributes("{}").trusted());
            prop_assert_eq!((say(&sliced.verdict), names(&sliced.evidence.determining), names(&sliced.evidence.erroring)), expected);
        }
    }
}

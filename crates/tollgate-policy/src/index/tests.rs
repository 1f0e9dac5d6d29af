//! The index against the full scan: whatever the policies, entities and request, it gives the same opinion.

use std::collections::HashSet;

use cedar_policy::{Context, Entity, RestrictedExpression};
use proptest::{prelude::*, sample::select};

use super::*;

/// Scopes of a principal: by every form, with entities that exist, that do not, and of other types.
const PRINCIPALS: [&str; 16] = [
    "principal",
    "principal is Agent",
    "principal is User",
    "principal == Agent::\"a0\"",
    "principal == Agent::\"a1\"",
    "principal == Agent::\"nobody\"",
    "principal in Agent::\"a0\"",
    "principal == User::\"a0\"",
    "principal in Group::\"g0\"",
    "principal in Group::\"g1\"",
    "principal in Group::\"g2\"",
    "principal in Group::\"g3\"",
    "principal in Group::\"nowhere\"",
    "principal is Agent in Group::\"g1\"",
    "principal is User in Group::\"g1\"",
    "principal in Tenant::\"t0\"",
];
const ACTIONS: [&str; 9] = [
    "action",
    "action == Action::\"call\"",
    "action == Action::\"review\"",
    "action in Action::\"all\"",
    "action in [Action::\"call\"]",
    "action in [Action::\"review\", Action::\"call\"]",
    "action in [Action::\"call\", Action::\"all\", Action::\"call\"]",
    "action in [Action::\"unknown\", Action::\"review\"]",
    "action in []",
];
const RESOURCES: [&str; 12] = [
    "resource",
    "resource is Tool",
    "resource is Provider",
    "resource == Tool::\"x\"",
    "resource == Tool::\"y\"",
    "resource == Tool::\"unknown\"",
    "resource in Tool::\"x\"",
    "resource in Provider::\"p0\"",
    "resource in Provider::\"p1\"",
    "resource in Tenant::\"t0\"",
    "resource is Tool in Provider::\"p0\"",
    "resource is Tool in Tenant::\"t0\"",
];
/// Conditions that hold, that do not, and that err in each way that depends on the request.
const CONDITIONS: [&str; 9] = [
    "",
    "when { context.flag }",
    "unless { context.flag }",
    "when { context.missing }",
    "when { resource.effect == \"read\" }",
    "when { principal in Group::\"g1\" }",
    "when { context.number + 9223372036854775807 > 0 }",
    "when { context.flag && principal.absent }",
    "when { resource in [Provider::\"p0\", Provider::\"p1\"] } unless { context.number < 0 }",
];

fn uid(of: &str, id: &str) -> EntityUid {
    EntityUid::from_type_name_and_id(of.parse().unwrap(), cedar_policy::EntityId::new(id))
}

fn policies() -> impl Strategy<Value = Vec<String>> {
    let one = (any::<bool>(), select(&PRINCIPALS[..]), select(&ACTIONS[..]), select(&RESOURCES[..]), select(&CONDITIONS[..]));
    let one = one.prop_map(|(permits, principal, action, resource, condition)| {
        format!("{} ({principal}, {action}, {resource}) {condition};", if permits { "permit" } else { "forbid" })
    });
    prop::collection::vec(one, 0..24)
}

/// A hierarchy: which groups agents and groups are in, what tools and providers are in.
fn hierarchies() -> impl Strategy<Value = Entities> {
    prop::collection::vec(any::<bool>(), 20).prop_map(|edges| {
        let mut edge = edges.into_iter();
        let mut parents = |of: &[(&str, &str)]| -> HashSet<EntityUid> {
            of.iter().filter(|_| edge.next().unwrap()).map(|(of, id)| uid(of, id)).collect()
        };
        let plain = |uid, parents| Entity::new(uid, std::collections::HashMap::new(), parents).unwrap();
        let effect = || [("effect".to_owned(), RestrictedExpression::new_string("read".to_owned()))].into();
        let entities = [
            plain(uid("Group", "g0"), parents(&[("Group", "g1"), ("Group", "g2"), ("Tenant", "t0")])),
            plain(uid("Group", "g1"), parents(&[("Group", "g2"), ("Group", "g3")])),
            plain(uid("Group", "g2"), parents(&[("Group", "g3"), ("Tenant", "t0")])),
            plain(uid("Agent", "a0"), parents(&[("Group", "g0"), ("Group", "g1"), ("Tenant", "t0")])),
            plain(uid("Agent", "a1"), parents(&[("Group", "g2"), ("Agent", "a0")])),
            Entity::new(uid("Tool", "x"), effect(), parents(&[("Provider", "p0"), ("Provider", "p1")])).unwrap(),
            Entity::new(uid("Tool", "y"), effect(), parents(&[("Provider", "p1"), ("Tenant", "t0")])).unwrap(),
            plain(uid("Provider", "p0"), parents(&[("Tenant", "t0")])),
            plain(uid("Provider", "p1"), parents(&[("Tenant", "t0"), ("Provider", "p0")])),
            plain(uid("Action", "call"), parents(&[("Action", "all")])),
        ];
        Entities::from_entities(entities, None).unwrap()
    })
}

fn requests() -> impl Strategy<Value = Request> {
    let principals = vec![("Agent", "a0"), ("Agent", "a1"), ("Agent", "nobody"), ("User", "a0"), ("Group", "g1")];
    let resources = vec![("Tool", "x"), ("Tool", "y"), ("Tool", "unknown"), ("Provider", "p0")];
    (select(principals), select(vec!["call", "review", "other"]), select(resources), any::<bool>(), -1_i64..2).prop_map(
        |(principal, action, resource, flag, number)| {
            let context = Context::from_pairs([
                ("flag".to_owned(), RestrictedExpression::new_bool(flag)),
                ("number".to_owned(), RestrictedExpression::new_long(number)),
            ]);
            let (principal, resource) = (uid(principal.0, principal.1), uid(resource.0, resource.1));
            Request::new(principal, uid("Action", action), resource, context.unwrap(), None).unwrap()
        },
    )
}

fn parsed(texts: &[String]) -> Vec<Policy> {
    let id = |number: usize| Some(cedar_policy::PolicyId::new(format!("p{number}")));
    texts.iter().enumerate().map(|(number, text)| Policy::parse(id(number), text).unwrap()).collect()
}

/// All policies in one bucket.
fn full_scan(policies: Vec<Policy>) -> PolicyIndex {
    let set = PolicySet::from_policies(policies).unwrap();
    PolicyIndex { bounds: HashMap::new(), buckets: HashMap::from([([None; 3], set)]) }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn an_opinion_is_that_of_the_full_scan(texts in policies(), entities in hierarchies(), request in requests()) {
        let authorizer = Authorizer::new();
        let index = PolicyIndex::new(parsed(&texts)).unwrap();
        let opinion = index.evaluate(&authorizer, &request, &entities);
        prop_assert_eq!(opinion, full_scan(parsed(&texts)).evaluate(&authorizer, &request, &entities));
    }
}

/// The cost of a call follows the policies that can match it.
#[test]
fn a_policy_that_names_another_entity_is_no_candidate() {
    let names = |id: String| format!("permit (principal == Agent::\"{id}\", action, resource);");
    let texts: Vec<_> = (0..50).map(|number| names(format!("a{number}"))).collect();
    assert_eq!(candidates(&texts), ["p7"]);
}

#[test]
fn a_policy_that_names_only_other_actions_is_no_candidate() {
    let names = |actions: &str| format!("permit (principal, action in [{actions}], resource);");
    let other = r#"Action::"review", Action::"other""#;
    assert_eq!(candidates(&[names(other), names(&format!(r#"{other}, Action::"call""#)), names("")]), ["p1"]);
}

/// Of an agent `a7` that calls a tool.
fn candidates(texts: &[String]) -> Vec<String> {
    let index = PolicyIndex::new(parsed(texts)).unwrap();
    let request = Request::new(uid("Agent", "a7"), uid("Action", "call"), uid("Tool", "x"), Context::empty(), None).unwrap();
    let mut ids: Vec<_> = index
        .candidates(&request, &Entities::empty())
        .flat_map(PolicySet::policies)
        .map(|policy| policy.id().to_string())
        .collect();
    ids.sort();
    ids
}

#[test]
fn what_neither_a_principal_nor_a_resource_bounds_is_evaluated_everywhere() {
    let texts = [
        "permit (principal, action, resource);",
        "permit (principal is Agent, action == Action::\"call\", resource is Tool);",
        "permit (principal, action in [Action::\"call\", Action::\"review\"], resource);",
        "permit (principal, action == Action::\"review\", resource);",
        "permit (principal == Agent::\"a7\", action, resource);",
        "permit (principal, action, resource in Provider::\"p0\");",
        // In two buckets that the call meets, and still one policy.
        "permit (principal, action in [Action::\"call\", Action::\"all\"], resource);",
    ];
    let index = PolicyIndex::new(parsed(&texts.map(str::to_owned))).unwrap();
    let parents = [uid("Action", "all")].into();
    let call = Entity::new(uid("Action", "call"), std::collections::HashMap::new(), parents).unwrap();
    let entities = Entities::from_entities([call], None).unwrap();
    let everywhere: Vec<_> = index.everywhere(&uid("Action", "call"), &entities).into_iter().map(ToString::to_string).collect();
    assert_eq!(everywhere, ["p0", "p1", "p2", "p6"]);
}

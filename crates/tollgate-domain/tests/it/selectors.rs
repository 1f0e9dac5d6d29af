//! Which calls a hook is asked about.

use std::sync::Arc;

use tollgate_domain::{Chains, GenerationNumbers, Resolution, Selectors, ToolEffect, ToolFacts};

use crate::sample::{attributes, bundle, call, hook, organisation, workspace};

/// One row of the matrix: what the lists hold, and what the call has.
fn select(providers: &[&str], tools: &[&str], agents: &[&str], provider: Option<&str>) -> Option<bool> {
    let selectors = Selectors {
        providers: providers.iter().map(|id| id.parse().unwrap()).collect(),
        tools: tools.iter().map(|id| id.parse().unwrap()).collect(),
        agents: agents.iter().map(|id| id.parse().unwrap()).collect(),
    };
    let tool = ToolFacts {
        id: "mail.send".parse().unwrap(),
        provider: provider.map(|id| id.parse().unwrap()),
        external_name: None,
        attributes: attributes(ToolEffect::Write),
        declared: false,
    };
    selectors.select(&"helper".parse().unwrap(), &tool)
}

#[test]
fn m02_every_combination_of_lists() {
    // Each list is empty, matching, among others, or other.
    let lists = |right: &'static str| [vec![], vec![right], vec!["x", right, "y"], vec!["x", "y"]];
    let matches = |list: &[&str], right: &str| list.is_empty() || list.contains(&right);
    for providers in lists("mail") {
        for tools in lists("mail.send") {
            for agents in lists("helper") {
                let others = matches(&tools, "mail.send") && matches(&agents, "helper");
                let expected = others && matches(&providers, "mail");
                assert_eq!(select(&providers, &tools, &agents, Some("mail")), Some(expected));
                // Without a provider a hook that could apply cannot be told to.
                let unknown = if providers.is_empty() || !others { Some(others) } else { None };
                assert_eq!(select(&providers, &tools, &agents, None), unknown);
            }
        }
    }
}

#[test]
fn m02_selectors_compare_ids_byte_by_byte() {
    assert_eq!(select(&[], &["Mail.Send"], &[], None), Some(false));
    assert_eq!(select(&["MAIL"], &[], &[], Some("mail")), Some(false));
}

#[test]
fn m02_leaving_the_provider_out_never_skips_a_hook() {
    let mut picky = hook("picky", 0, organisation("picky"));
    picky.selectors.providers.insert("mail".parse().unwrap());
    let generation = Chains::build(bundle(vec![picky]), &[]).unwrap().number(GenerationNumbers::default());
    let error = generation.resolve(&call("{}")).unwrap_err();
    assert_eq!(error.hook.as_str(), "picky");
    let mut named = call("{}");
    named.tool.provider = Some("mail".parse().unwrap());
    assert_eq!(asked(&generation.resolve(&named).unwrap()), ["picky"]);
    named.tool.provider = Some("files".parse().unwrap());
    assert!(asked(&generation.resolve(&named).unwrap()).is_empty());
}

#[test]
fn m02_h23_a_hook_of_another_workspace_is_never_asked() {
    let hooks = vec![
        hook("organisation", 0, organisation("organisation")),
        hook("ours", 1, workspace("support", "ours")),
        hook("theirs", 2, workspace("sales", "theirs")),
    ];
    let generation = Chains::build(bundle(hooks), &[]).unwrap().number(GenerationNumbers::default());
    assert_eq!(asked(&generation.resolve(&call("{}")).unwrap()), ["organisation", "ours"]);
    let mut sales = call("{}");
    sales.run.workspace = "sales".parse().unwrap();
    assert_eq!(asked(&generation.resolve(&sales).unwrap()), ["organisation", "theirs"]);
    let mut nowhere = call("{}");
    nowhere.run.workspace = "Support".parse().unwrap();
    assert_eq!(asked(&generation.resolve(&nowhere).unwrap()), ["organisation"]);
    let mut other_tenant = call("{}");
    other_tenant.run.tenant = "other".parse().unwrap();
    assert_eq!(asked(&generation.resolve(&other_tenant).unwrap()), ["organisation"]);
}

#[test]
fn m03_m08_a_foreign_hook_that_got_into_the_chain_fails_the_call() {
    // A local list is merged into every chain; a workspace's hook in it is a fault of the store.
    let planted = Arc::new(hook("theirs", 0, workspace("sales", "theirs")));
    let generation = Chains::build(bundle(Vec::new()), &[planted]).unwrap().number(GenerationNumbers::default());
    let Resolution::Refused(entry) = generation.resolve(&call("{}")).unwrap() else { panic!("a foreign hook decides") };
    assert_eq!((entry.hook.as_str(), entry.code.unwrap().as_str()), ("hook-resolver", "resolution_failed"));
}

fn asked(resolution: &Resolution) -> Vec<&str> {
    match resolution {
        Resolution::Chain { hooks, .. } => hooks.iter().map(|hook| hook.id.as_str()).collect(),
        Resolution::Refused(entry) => panic!("refused: {entry:?}"),
    }
}

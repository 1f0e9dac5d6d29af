//! What a caller may speak for.

use tollgate_domain::{Rights, RunKey};

use crate::sample;

fn rights(tenants: &[&str], workspaces: &[&str], agents: &[&str]) -> Rights {
    Rights {
        tenants: tenants.iter().map(|id| id.parse().unwrap()).collect(),
        workspaces: workspaces.iter().map(|id| id.parse().unwrap()).collect(),
        agents: agents.iter().map(|id| id.parse().unwrap()).collect(),
        trust_claims: false,
    }
}

/// The sample's run is of the tenant `acme` and the workspace `support`.
#[test]
fn p12_a_run_is_covered_where_both_its_tenant_and_its_workspace_are() {
    let run: RunKey = sample::run();
    for (tenants, workspaces, covered) in [
        (&[][..], &[][..], true),
        (&["acme"], &["support"], true),
        (&["other", "acme"], &["support", "sales"], true),
        (&["acme"], &[], true),
        (&[], &["support"], true),
        (&["other"], &[], false),
        (&[], &["sales"], false),
        (&["other"], &["support"], false),
        (&["acme"], &["sales"], false),
    ] {
        assert_eq!(rights(tenants, workspaces, &[]).cover_run(&run), covered, "{tenants:?} {workspaces:?}");
    }
}

#[test]
fn p12_rights_are_narrowed_by_tenants_or_by_workspaces_and_not_by_agents() {
    assert!(!rights(&[], &[], &["helper"]).are_narrowed());
    assert!(rights(&["acme"], &[], &[]).are_narrowed());
    assert!(rights(&[], &["support"], &[]).are_narrowed());
    assert!(rights(&["acme"], &["support"], &[]).are_narrowed());
}

#[test]
fn p12_an_agent_is_covered_where_no_other_is_named_alone() {
    let agent = "helper".parse().unwrap();
    assert!(rights(&[], &[], &[]).cover_agent(&agent));
    assert!(rights(&[], &[], &["other", "helper"]).cover_agent(&agent));
    assert!(!rights(&[], &[], &["other"]).cover_agent(&agent));
}

//! From Cedar's answers to verdicts: what allows, what denies, and what fails closed.

use crate::harness::{Harness, call, files, hook, load, say, with};
use tollgate_domain::{Code, Verdict};

const MARK: &str = "s3nt1nel-9f2c";

fn ids(policies: &[tollgate_domain::PolicyId]) -> Vec<&str> {
    policies.iter().map(tollgate_domain::PolicyId::as_str).collect()
}

#[test]
fn require_permit_allows_on_a_permit_and_denies_without_one() {
    let harness = hook("@id(\"reads\") permit (principal, action, resource) when { resource.effect == \"read\" };");
    let allowed = harness.ask(&call("fs.read"));
    assert_eq!(say(&allowed.verdict), "allowed");
    assert_eq!(ids(&allowed.evidence.determining), ["reads"]);
    let denied = harness.ask(&call("fs.delete"));
    assert_eq!(say(&denied.verdict), "denied no_permit");
    assert!(denied.evidence.determining.is_empty() && denied.evidence.erroring.is_empty());
}

#[test]
fn p01_h06_forbid_only_allows_unless_a_forbid_matches_and_a_forbid_without_a_code_gets_the_default() {
    let harness = Harness::of(load(&with(&[
        ("hooks/main/hook.yaml", "id: main\nkind: cedar\norder: 0\nmode: forbid_only\n"),
        (
            "hooks/main/main.cedar",
            "@id(\"no-danger\") forbid (principal, action, resource) when { resource.labels.contains(\"danger\") };",
        ),
    ])));
    assert_eq!(harness.verdict(&call("fs.read")), "allowed");
    assert_eq!(harness.verdict(&call("fs.delete")), "denied tool_execution_denied");
}

#[test]
fn of_several_forbids_the_lowest_id_speaks_and_all_are_listed() {
    let harness = hook(
        r#"@id("z") @code("last") forbid (principal, action, resource);
           @id("B") @code("upper") @message("B comes first: ids are compared as bytes") forbid (principal, action, resource);
           @id("a") @code("lower") forbid (principal, action, resource);
           @id("p") permit (principal, action, resource);"#,
    );
    let answer = harness.ask(&call("fs.read"));
    let Verdict::Denied { code, message } = answer.verdict else { panic!("{answer:?}") };
    assert_eq!(code, Code::parse("upper").unwrap());
    assert_eq!(message.unwrap().tell(), "B comes first: ids are compared as bytes");
    assert_eq!(ids(&answer.evidence.determining), ["B", "a", "z"]);
}

#[test]
fn semantics_6_any_evaluation_error_fails_the_hook_whatever_cedar_decided() {
    // Cedar skips the forbid that errs and answers Allow.
    let skipped = hook(
        r#"@id("p") permit (principal, action, resource);
           @id("f") forbid (principal, action, resource) when { context.env.workspace.environment == "production" };"#,
    );
    let answer = skipped.ask(&call("fs.read").workspace("nowhere"));
    assert_eq!(say(&answer.verdict), "failed policy_error");
    assert_eq!((ids(&answer.evidence.determining), ids(&answer.evidence.erroring)), (vec!["p"], vec!["f"]));
    assert_eq!(skipped.verdict(&call("fs.read")), "denied tool_execution_denied");
    // An erring permit beside a matching forbid fails just the same.
    let harness = hook(
        r#"@id("p") permit (principal, action, resource) when { principal.tier + 9223372036854775807 > 0 };
           @id("f") forbid (principal, action, resource);"#,
    );
    let answer = harness.ask(&call("fs.read"));
    assert_eq!(say(&answer.verdict), "failed policy_error");
    assert_eq!((ids(&answer.evidence.determining), ids(&answer.evidence.erroring)), (vec!["f"], vec!["p"]));
}

#[test]
fn an_agent_or_workspace_that_is_not_declared_fails_closed() {
    let harness = hook("@id(\"p\") permit (principal, action, resource) when { principal.tier >= 1 };");
    assert_eq!(harness.verdict(&call("fs.read")), "allowed");
    assert_eq!(harness.verdict(&call("fs.read").agent("stranger")), "failed policy_error");
}

#[test]
fn ids_are_data_and_never_syntax() {
    let permits = hook(r#"@id("p") permit (principal == Tollgate::Agent::"bot", action, resource);"#);
    for id in [
        r#"bot" || true || ""#,
        r#"Tollgate::Agent::"bot""#,
        "bot\\",
        "bot\u{2028}",
        " bot",
        "BOT",
        "bot\u{200b}",
        "*",
        "\\u{62}ot",
    ] {
        assert_eq!(permits.verdict(&call("fs.read").agent(id)), "denied no_permit", "{id:?}");
    }
    let quoted = hook(r#"@id("p") permit (principal == Tollgate::Agent::"a\"b\\", action, resource);"#);
    assert_eq!(quoted.verdict(&call("fs.read").agent("a\"b\\")), "allowed");
}

#[test]
fn action_groups_of_the_schema_are_always_present() {
    let harness = crate::harness::typed(
        "{}",
        r#"@id("p") permit (principal, action, resource);
           @id("group") forbid (principal, action in Tollgate::Action::"CallTool", resource);"#,
    );
    assert_eq!(harness.verdict(&call("pay.transfer")), "denied tool_execution_denied");
    // Also where the call brings claims, and evaluation uses a slice.
    let claims = call("pay.transfer").principal("user", "ann").groups(&["admins"]).trusted();
    assert_eq!(harness.verdict(&claims), "denied tool_execution_denied");
}

#[test]
fn a_principal_is_on_behalf_of_where_it_is_a_user() {
    let harness = hook(
        r#"@id("p") permit (principal, action, resource) when { context has on_behalf_of && context.on_behalf_of == Tollgate::User::"ann" };"#,
    );
    assert_eq!(harness.verdict(&call("fs.read").principal("user", "ann")), "allowed");
    assert_eq!(harness.verdict(&call("fs.read").principal("service", "ann")), "denied no_permit");
    assert_eq!(harness.verdict(&call("fs.read")), "denied no_permit");
}

#[test]
fn claims_reach_policy_only_from_trusted_callers() {
    let groups = hook(
        r#"@id("p") permit (principal, action, resource) when { context has on_behalf_of && context.on_behalf_of in Tollgate::Group::"admins" };"#,
    );
    let ann = || call("fs.read").principal("user", "ann");
    assert_eq!(groups.verdict(&ann().groups(&["admins"])), "denied no_permit");
    assert_eq!(groups.verdict(&ann().groups(&["admins"]).trusted()), "allowed");
    assert_eq!(groups.verdict(&ann().groups(&["others"]).trusted()), "denied no_permit");
    let approval = hook(
        r#"@id("p") permit (principal, action, resource) when { context has approval && context.approval.approver == "boss" && context.approval.at < context.env.now };"#,
    );
    assert_eq!(approval.verdict(&call("fs.read").approved()), "denied no_permit");
    assert_eq!(approval.verdict(&call("fs.read").approved().trusted()), "allowed");
}

#[test]
fn claimed_groups_add_to_the_bundles_with_all_their_ancestors() {
    let in_staff = hook(
        r#"@id("p") permit (principal, action, resource) when { context has on_behalf_of && context.on_behalf_of in Tollgate::Group::"staff" };"#,
    );
    assert_eq!(in_staff.verdict(&call("fs.read").principal("user", "new").groups(&["admins"]).trusted()), "allowed");
    assert_eq!(in_staff.verdict(&call("fs.read").principal("user", "ann").groups(&["others"]).trusted()), "allowed");
    assert_eq!(in_staff.verdict(&call("fs.read").principal("user", "new").groups(&["others"]).trusted()), "denied no_permit");
}

#[test]
fn claimed_attributes_stand_in_the_place_of_the_bundles_and_must_fit() {
    let mfa = hook(
        r#"@id("p") permit (principal, action, resource) when { context has on_behalf_of && context.on_behalf_of has mfa && context.on_behalf_of.mfa };"#,
    );
    let ann = || call("fs.read").principal("user", "ann");
    assert_eq!(mfa.verdict(&ann()), "denied no_permit");
    assert_eq!(mfa.verdict(&ann().attributes(r#"{"mfa":true,"other":1}"#)), "denied no_permit");
    assert_eq!(mfa.verdict(&ann().attributes(r#"{"mfa":true,"other":1}"#).trusted()), "allowed");
    assert_eq!(mfa.verdict(&ann().attributes(r#"{"mfa":"yes"}"#).trusted()), "failed context_unavailable");
    let tags = hook(
        r#"@id("p") permit (principal, action, resource) when { context has on_behalf_of && context.on_behalf_of.hasTag("team") };"#,
    );
    assert_eq!(tags.verdict(&ann().attributes(r#"{"mfa":true}"#).trusted()), "allowed", "tags survive the slice");
}

#[test]
fn a_slice_holds_whatever_policies_can_reach() {
    let claims = call("fs.read").principal("user", "ann").groups(&["others"]).trusted();
    for condition in [
        "principal has owner && principal.owner has mfa && principal.owner.mfa",
        "principal has owner && principal.owner in Tollgate::Group::\"staff\"",
        "Tollgate::User::\"boss\" has mfa && Tollgate::User::\"boss\".mfa",
        "Tollgate::User::\"boss\" in Tollgate::Group::\"staff\"",
        "principal in Tollgate::Tenant::\"acme\"",
        "context.env.workspace.environment == \"production\"",
        "resource in Tollgate::ToolProvider::\"fs\"",
    ] {
        let policy = format!("@id(\"p\") permit (principal, action, resource) when {{ {condition} }};");
        assert_eq!(hook(&policy).verdict(&claims), "allowed", "{condition}");
    }
}

#[test]
fn m02_an_undeclared_tool_has_the_attributes_of_unknown_tools() {
    let unknown = "format: tollgate/v1\nname: test\nunknown_tools:\n  \"*\": { effect: destructive, open_world: true, requires_approval: true, labels: [unknown] }\n  fs: { effect: read, open_world: false, requires_approval: false }\n";
    let policy = r#"@id("p") permit (principal, action, resource) when { resource.effect == "read" && resource in Tollgate::ToolProvider::"fs" && resource in Tollgate::ToolProvider::"fs" };"#;
    let harness = Harness::of(load(&with(&[("bundle.yaml", unknown), ("hooks/main/main.cedar", policy)])));
    let mut asked = call("fs.new");
    assert_eq!(harness.verdict(&asked), "denied no_permit");
    asked.call.tool.provider = Some(tollgate_domain::ProviderId::parse("fs").unwrap());
    assert_eq!(harness.verdict(&asked), "allowed");
}

#[test]
fn a_required_fact_that_the_call_lacks_fails_the_hook() {
    let schema = crate::harness::SCHEMA.replace("\"step_index\"?: Long", "\"step_index\": Long");
    let harness = Harness::of(load(&with(&[("schema.cedarschema", &schema)])));
    let mut asked = call("fs.read");
    assert_eq!(harness.verdict(&asked), "failed context_unavailable");
    asked.call.runtime.step_index = Some(3);
    assert_eq!(harness.verdict(&asked), "allowed");
}

#[test]
fn declared_runtime_facts_are_read_and_others_ignored() {
    let harness = hook(
        r#"@id("p") permit (principal, action, resource) when { context.runtime has executor && context.runtime.executor == "client" && context.runtime.correlation has thread };"#,
    );
    let mut asked = call("fs.read");
    let text = |text| tollgate_domain::Correlation::parse(text).unwrap();
    asked.call.runtime.executor = Some(text("client"));
    asked.call.runtime.device = Some(text("phone"));
    asked.call.runtime.correlation = [(text("thread"), text("7")), (text("session"), text("8"))].into();
    assert_eq!(harness.verdict(&asked), "allowed");
}

#[test]
fn b19_no_argument_text_appears_in_any_answer() {
    let input = r#"{ "amount": Long, "host": ipaddr, "note": String }"#;
    let policies = r#"@id("overflow") forbid (principal, action == Tollgate::Action::"pay/transfer", resource) when { context.input.amount + 1 > 0 };
        @id("all") permit (principal, action, resource);"#;
    let harness = crate::harness::typed(input, policies);
    for arguments in [
        format!(r#"{{"amount":9223372036854775807,"host":"::1","note":"{MARK}"}}"#),
        format!(r#"{{"amount":1,"host":"{MARK}","note":""}}"#),
        format!(r#"{{"amount":1,"host":"::1","note":"","{MARK}":1}}"#),
        format!(r#"{{"amount":"{MARK}"}}"#),
    ] {
        let asked = call("pay.transfer")
            .arguments(&arguments)
            .principal("user", "ann")
            .attributes(&format!(r#"{{"limit":"{MARK}"}}"#))
            .trusted();
        let answer = harness.ask(&asked);
        let shown = format!("{answer:?} {:?} {:?} {:?}", harness.hook, harness.bundle, asked.call);
        assert!(say(&answer.verdict).starts_with("failed "), "{arguments}");
        assert!(!shown.contains(MARK) && !shown.contains("9223372036854775807"), "{shown}");
    }
}

#[test]
fn g_a_hook_digest_changes_exactly_with_what_it_decides_by() {
    let digest =
        |changes: &[(&str, &str)]| load(&with(changes)).hooks.iter().find(|hook| hook.id.as_str() == "main").unwrap().digest;
    let same: &[(&str, &str)] = &[
        ("bundle.yaml", "format: tollgate/v1\nname: other\nserial: 9\n"),
        ("README.md", "words"),
        ("hooks/main/README.md", "words"),
        ("tests/anything", "x: 1"),
        ("hooks/other/hook.yaml", "id: other\nkind: cedar\norder: 1\n"),
    ];
    let other_policy = ("hooks/other/x.cedar", "@id(\"x\") permit (principal, action, resource);");
    let base = digest(&[]);
    for change in same {
        assert_eq!(digest(&[*change, if change.0.contains("other/") { other_policy } else { *change }]), base, "{}", change.0);
    }
    let tools = crate::harness::TOOLS.replace("trust: 1", "trust: 2");
    let schema = format!("{}// more\n", crate::harness::SCHEMA);
    for change in [
        ("hooks/main/main.cedar", "@id(\"all\") permit (principal, action, resource);"),
        ("hooks/main/more.cedar", "@id(\"more\") permit (principal, action, resource);"),
        ("hooks/main/hook.yaml", "id: main\nkind: cedar\norder: 1\n"),
        ("hooks/main/schema.cedarschema", "namespace Tollgate { entity More; }"),
        ("schema.cedarschema", &schema),
        ("tools.yaml", &tools),
        ("entities.json", "[]"),
        (
            "bundle.yaml",
            "format: tollgate/v1\nname: test\nunknown_tools: { fs: { effect: read, open_world: false, requires_approval: false } }\n",
        ),
    ] {
        assert_ne!(digest(&[change]), base, "{}", change.0);
    }
}

#[test]
fn m01_ownership_is_by_place_and_a_disabled_hook_is_not_in_the_bundle() {
    let bundle = load(&with(&[
        (
            "workspaces/ac%2Fme/prod/hooks/own/hook.yaml",
            "id: own\nkind: cedar\norder: -5\nenforcement: shadow\ndisplay_name: Own\n",
        ),
        ("workspaces/ac%2Fme/prod/hooks/own/own.cedar", "@id(\"x\") permit (principal, action, resource);"),
        ("hooks/off/hook.yaml", "id: off\nkind: cedar\norder: 0\nenabled: false\n"),
        ("hooks/off/off.cedar", "@id(\"x\") permit (principal, action, resource);"),
    ]));
    let mut hooks: Vec<_> = bundle
        .hooks
        .iter()
        .map(|hook| format!("{} {} {:?} {:?}", hook.id, hook.display_name, hook.enforcement, hook.ownership))
        .collect();
    hooks.sort();
    assert_eq!(
        hooks,
        [
            "main main Enforce Organisation { resource: \"hooks/main\" }",
            "own Own Shadow Workspace { resource: \"workspaces/ac%2Fme/prod/hooks/own\", tenant: \"ac/me\", workspace: \"prod\" }",
        ]
    );
}

#[test]
fn local_hooks_work_with_any_bundle_and_belong_to_no_workspace() {
    let directory = crate::harness::directory(&with(&[(
        "hooks/main/main.cedar",
        "@id(\"p\") permit (principal, action, resource) when { resource.effect == \"destructive\" };",
    )]));
    let hooks = tollgate_policy::load_local(directory.path()).unwrap();
    assert!(matches!(hooks[0].ownership, tollgate_domain::Ownership::Local));
    // The tool is another bundle's: what that bundle says of it counts.
    let other = load(&with(&[(
        "tools.yaml",
        "providers: { elsewhere: {} }\ntools: { t: { provider: elsewhere, effect: destructive }, fs.read: { provider: elsewhere, effect: destructive } }\n",
    )]));
    let harness = Harness { bundle: other, hook: hooks[0].hook.clone() };
    assert_eq!(harness.verdict(&call("t")), "allowed");
    assert_eq!(harness.verdict(&call("fs.read")), "allowed");
    let with_workspace =
        crate::harness::directory(&with(&[("workspaces/a/b/hooks/own/hook.yaml", "id: own\nkind: cedar\norder: 0\n")]));
    let report = tollgate_policy::load_local(with_workspace.path()).unwrap_err();
    assert_eq!(report.findings[0].code.as_str(), "TG0108");
}

#[test]
fn the_bundle_digest_is_over_every_file_and_is_the_revision() {
    let base = load(&files());
    assert_eq!(base.revision.as_str(), base.digest.to_string());
    assert_eq!(load(&files()).digest, base.digest);
    assert_ne!(load(&with(&[("tests/x", "")])).digest, base.digest);
    assert_eq!(load(&with(&[(".git/HEAD", "")])).digest, base.digest);
}

//! Bundles that are refused: for each, every finding with its code, its place and what would be right.

use std::{fs, os::unix::fs::symlink};

use tollgate_policy::{FindingCode, Report, check, limits};

use crate::harness::{SCHEMA, directory, files, report, with};

fn codes(report: &Report) -> Vec<&str> {
    report.findings.iter().map(|found| found.code.as_str()).collect()
}

/// Code, file, line and column of every finding.
fn places(report: &Report) -> Vec<String> {
    let place =
        |found: &tollgate_policy::Diagnostic| format!("{} {}:{}:{}", found.code, found.file, found.span.line, found.span.column);
    report.findings.iter().map(place).collect()
}

macro_rules! refused {
    ($($name:ident: $changes:expr;)+) => {$(
        #[test]
        fn $name() {
            insta::assert_snapshot!(report($changes).render(false));
        }
    )+};
}

refused! {
    unknown_keys_are_found_in_every_file_at_once: &[
        ("bundle.yaml", "format: tollgate/v1\nname: test\nserail: 3\n"),
        ("tools.yaml", "providers:\n  fs: { trus: 1 }\ntools:\n  fs.read: { provider: fs, effect: read, openworld: true }\n"),
        ("hooks/main/hook.yaml", "id: main\nkind: cedar\nodrer: 5\ncommand: [sh]\nselectors:\n  tool: [fs.read]\n"),
    ];
    wrong_values_say_what_is_allowed: &[
        ("bundle.yaml", "format: tollgate/v2\nname: ''\nserial: -1\n"),
        ("hooks/main/hook.yaml", "id: hook-resolver\nkind: shell\norder: 10001\nmode: permit\nenforcement: 'yes'\nenabled: maybe\ninput: 1\nselectors:\n  agents: [' a', a, a, '']\n  tools: [fs.reed]\n"),
    ];
    yaml_that_does_not_parse: &[("hooks/main/hook.yaml", "id: main\nkind: [cedar\norder: 0\n"), ("bundle.yaml", "name: a\nname: b\n")];
    a_catalogue_that_contradicts_itself: &[(
        "tools.yaml",
        "providers:\n  fs: {}\n  a/b: {}\ntools:\n  one: { provider: fs, external_name: same, effect: read }\n  two: { provider: fs, external_name: same, effect: deletes }\n  three: { provider: fs, external_name: same, effect: write, labels: [x, x] }\n  four: { provider: none, effect: read }\n",
    )];
    policies_that_do_not_parse: &[
        ("hooks/main/main.cedar", "@id(\"one\")\npermit (principal, action resource);\n\n@id(\"two\") forbid (principal, action, resource) when { 1 + };\n"),
    ];
    policies_without_usable_ids: &[(
        "hooks/main/main.cedar",
        "permit (principal, action, resource);\n@id(\"a b\") permit (principal, action, resource);\n@id(\"x\") permit (principal, action, resource);\n@id(\"x\")\npermit (principal, action, resource);\n",
    )];
    annotations_that_are_not_known_or_not_allowed: &[(
        "hooks/main/main.cedar",
        "@id(\"a\") @cod(\"x\")\nforbid (principal, action, resource);\n@id(\"b\")\n@code(\"no_permit\") forbid (principal, action, resource);\n@id(\"c\") @code(\"with blank\") @message(\"\") forbid (principal, action, resource);\n@id(\"d\") @message(\"m\") permit (principal, action, resource);\n",
    )];
    a_template_is_refused: &[("hooks/main/main.cedar", "@id(\"t\")\npermit (principal == ?principal, action, resource);\n")];
    policies_that_do_not_pass_strict_validation: &[(
        "hooks/main/main.cedar",
        "// é: columns count characters\n@id(\"typo\") permit (principal, action, resource) when { principal.teir > 1 };\n@id(\"types\") forbid (principal, action, resource) when { resource.effect == 1 };\n@id(\"impossible\") forbid (principal is Tollgate::User, action, resource);\n@id(\"unknown\") forbid (principal, action == Tollgate::Action::\"InvokTool\", resource);\n",
    )];
    a_schema_that_does_not_parse: &[("schema.cedarschema", "namespace Tollgate {\n  entity Agent {\n}\n")];
    a_schema_that_declares_what_nobody_knows: &[("schema.cedarschema", &SCHEMA
        .replace("\"attempt\": Long", "\"atempt\": Long")
        .replace("\"workspace\": Workspace", "\"workspace\": String")
        .replace("\"labels\": Set<String> }", "\"labels\": Set<String>, \"owner\"?: User }")
        .replace("\"trust\": Long", "\"trust\": String"))];
    a_schema_that_lacks_what_the_mapping_needs: &[
        ("schema.cedarschema", "namespace Tollgate {\n  entity Agent;\n  entity ToolProvider;\n  entity Tool;\n}\n"),
        ("entities.json", "[]"),
        ("tools.yaml", "providers: { fs: {} }\n"),
    ];
    a_hook_schema_that_declares_the_base_again: &[
        ("hooks/main/schema.cedarschema", "namespace Tollgate {\n  entity Agent;\n}\n"),
    ];
    typed_hooks_need_an_action_for_every_tool_and_arguments_that_json_has: &[
        ("hooks/main/hook.yaml", "id: main\nkind: cedar\norder: 0\ninput: typed\n"),
        ("hooks/main/schema.cedarschema", "namespace Tollgate {\n  action \"fs/read\" appliesTo { principal: [Agent], resource: [Tool], context: { \"call\": Call } };\n  action \"pay/transfer\" appliesTo { principal: [Agent], resource: [Tool], context: {\n    \"input\": { \"to\": Set<User> }, \"nulls\": Set<Long> } };\n}\n"),
    ];
    entities_that_do_not_fit: &[(
        "entities.json",
        "[\n  {\"uid\": {\"type\": \"Tollgate::Agent\", \"id\": \"a\"}, \"attrs\": {\"tier\": \"two\"}, \"parents\": []},\n  {\"uid\": {\"type\": \"Tollgate::Tool\", \"id\": \"t\"}, \"attrs\": {\"effect\": \"read\", \"open_world\": true, \"requires_approval\": true, \"labels\": []}, \"parents\": []},\n  {\"uid\": {\"type\": \"Tollgate::Group\", \"id\": \"g\"}, \"attrs\": {}, \"parents\": []},\n  {\"uid\": {\"type\": \"Tollgate::Group\", \"id\": \"g\"}, \"attrs\": {}, \"parents\": []},\n  {\"uid\": {\"type\": \"Tollgate::Team\", \"id\": \"g\"}, \"attrs\": {}, \"parents\": []}\n]\n",
    )];
    entities_that_are_no_json: &[("entities.json", "[\n  {\"uid\": }\n]\n")];
    files_where_they_could_be_mistaken: &[
        ("hooks/main/hook.yml", "id: x\n"),
        ("policy.cedar", "permit(principal, action, resource);"),
        ("tool.yaml", "tools: {}\n"),
        ("hook/other/hook.yaml", "id: x\n"),
        ("hooks/stray.cedar", ""),
        ("hooks/empty/README.md", "nothing else"),
        ("hooks/no-manifest/a.cedar", "@id(\"x\") permit (principal, action, resource);"),
        ("workspaces/acme/hooks/x/hook.yaml", "id: x\n"),
        ("workspaces/a%41/b/hooks/x/hook.yaml", "id: x\n"),
    ];
    a_hook_without_policies: &[("hooks/main/main.cedar", "// nothing\n")];
    hook_ids_are_unique_in_every_chain: &[
        ("hooks/twice/hook.yaml", "id: main\nkind: cedar\norder: 0\n"),
        ("hooks/twice/a.cedar", "@id(\"x\") permit (principal, action, resource);"),
        ("workspaces/a/b/hooks/w/hook.yaml", "id: w\nkind: cedar\norder: 0\n"),
        ("workspaces/a/b/hooks/w/a.cedar", "@id(\"x\") permit (principal, action, resource);"),
        ("workspaces/a/b/hooks/w2/hook.yaml", "id: w\nkind: cedar\norder: 0\n"),
        ("workspaces/a/b/hooks/w2/a.cedar", "@id(\"x\") permit (principal, action, resource);"),
        ("workspaces/a/c/hooks/w/hook.yaml", "id: w\nkind: cedar\norder: 0\n"),
        ("workspaces/a/c/hooks/w/a.cedar", "@id(\"x\") permit (principal, action, resource);"),
    ];
    a_manifest_that_does_not_agree: &[(
        "manifest.sha256",
        "0000000000000000000000000000000000000000000000000000000000000000  bundle.yaml\nnonsense\n0000000000000000000000000000000000000000000000000000000000000000 *./gone.yaml\n",
    )];
}

#[test]
fn one_report_holds_every_finding_with_its_place() {
    let report = report(&[
        ("bundle.yaml", "format: tollgate/v1\nname: test\nextra: 1\n"),
        ("hooks/main/hook.yaml", "id: main\nkind: cedar\norder: 0\nmdoe: forbid_only\n"),
        (
            "hooks/main/main.cedar",
            "@id(\"a\") permit (principal, action, resource) when { principal.x };\n  permit (principal, action, resource);\n",
        ),
    ]);
    assert_eq!(
        places(&report),
        [
            "TG0202 bundle.yaml:3:1",
            "TG0202 hooks/main/hook.yaml:4:1",
            "TG0509 hooks/main/main.cedar:1:54",
            "TG0504 hooks/main/main.cedar:2:3",
        ]
    );
}

#[test]
fn the_json_form_has_code_place_message_and_hint() {
    let json = report(&[("bundle.yaml", "format: tollgate/v1\nname: test\nserail: 1\n")]).to_json();
    assert_eq!(
        json,
        serde_json::json!({"bundle": "test", "findings": [{
            "code": "TG0202", "severity": "error", "file": "bundle.yaml", "line": 3, "column": 1, "end_line": 3, "end_column": 7,
            "message": "unknown key `serail`", "hint": "did you mean `serial`?"}]})
    );
}

#[test]
fn directories_that_are_missing_or_empty_have_findings_of_their_own() {
    let empty = tempfile::tempdir().unwrap();
    assert_eq!(codes(&check(empty.path())), ["TG0102"]);
    assert_eq!(codes(&check(&empty.path().join("none"))), ["TG0101"]);
    let mut only_tools = files();
    only_tools.retain(|path, _| path == "tools.yaml");
    assert_eq!(codes(&check(directory(&only_tools).path())), ["TG0102", "TG0102"]);
}

#[test]
fn links_are_followed_within_the_tree_and_refused_out_of_it() {
    let directory = directory(&files());
    let root = directory.path();
    fs::rename(root.join("tools.yaml"), root.join("tests.txt")).unwrap();
    symlink("tests.txt", root.join("tools.yaml")).unwrap();
    assert!(check(root).is_clean());
    symlink("/etc/hostname", root.join("README.md")).unwrap();
    symlink("/etc", root.join("hooks/etc")).unwrap();
    symlink("nowhere", root.join("NOTES.md")).unwrap();
    assert_eq!(codes(&check(root)), ["TG0101", "TG0103", "TG0103"]);
}

#[test]
fn a_directory_is_walked_once_however_many_links_lead_to_it() {
    let directory = directory(&with(&[("tests/shared/x", "")]));
    let root = directory.path();
    symlink(".", root.join("tests/shared/self")).unwrap();
    symlink("../..", root.join("tests/shared/root")).unwrap();
    symlink("shared", root.join("tests/twice")).unwrap();
    for index in 0..20 {
        symlink(".", root.join(format!("hooks/main/l{index}"))).unwrap();
    }
    let report = check(root);
    assert_eq!((codes(&report), report.omitted), (vec!["TG0112"; 23], 0), "{}", report.render(false));
    let told = |file: &str| report.findings.iter().find(|found| found.file == file).unwrap().message.clone();
    assert_eq!(told("hooks/main/l7"), "the directory is in the bundle already, as `hooks/main`");
    assert_eq!(told("tests/shared/root"), "the directory is in the bundle already, as its root");
    assert_eq!(told("tests/twice"), "the directory is in the bundle already, as `tests/shared`");
}

#[test]
fn a_link_to_a_directory_that_is_there_only_once_is_followed() {
    let directory = directory(&files());
    let root = directory.path();
    fs::rename(root.join("hooks/main"), root.join(".main")).unwrap();
    symlink("../.main", root.join("hooks/main")).unwrap();
    let report = check(root);
    assert!(report.is_clean(), "{}", report.render(false));
    assert_eq!(report.summary.unwrap().hooks, 1);
}

#[test]
fn a_walk_ends_with_one_finding_when_there_are_too_many_names() {
    // Of every kind: directories, links that lead nowhere, and names that are no part of the bundle.
    let tree = |names: usize| {
        let directory = directory(&with(&[("tests/a/x", "")]));
        let root = directory.path().join("tests");
        // `files()` and `tests/a/x` are eleven names.
        for index in 11..names {
            match index % 3 {
                0 if index < 3_000 => fs::create_dir(root.join(format!("{index}"))).unwrap(),
                1 if index < 300 => symlink("nowhere", root.join(format!("{index}"))).unwrap(),
                _ => fs::hard_link(root.join("a/x"), root.join(format!(".{index}"))).unwrap(),
            }
        }
        check(directory.path())
    };
    let too_large = |report: &Report| codes(report).iter().filter(|code| **code == "TG0105").count();
    let (most, more) = (tree(limits::TREE_MAX_NAMES), tree(limits::TREE_MAX_NAMES + 1));
    assert_eq!((too_large(&most), too_large(&more)), (0, 1), "{}", more.render(false));
}

#[test]
fn anything_but_files_and_directories_is_refused() {
    let directory = directory(&files());
    let _socket = std::os::unix::net::UnixListener::bind(directory.path().join("socket.md")).unwrap();
    assert_eq!(codes(&check(directory.path())), ["TG0104"]);
}

#[test]
fn names_and_texts_are_utf8_and_names_steer_no_terminal() {
    use std::{ffi::OsStr, os::unix::ffi::OsStrExt};
    let directory = directory(&files());
    fs::write(directory.path().join(OsStr::from_bytes(b"\xff.md")), "").unwrap();
    fs::write(directory.path().join("\u{1b}[2J.md"), "").unwrap();
    fs::write(directory.path().join("hooks/main/main.cedar"), b"// \xff").unwrap();
    let report = check(directory.path());
    assert!(codes(&report).iter().filter(|code| **code == "TG0107").count() == 3, "{}", report.render(false));
    assert!(!report.render(false).contains('\u{1b}'));
}

#[test]
fn limits_of_trees_hold_on_both_sides() {
    let largest = "#".repeat(usize::try_from(limits::FILE_MAX_BYTES).unwrap());
    assert!(report(&[("a.md", &largest)]).is_clean());
    assert_eq!(codes(&report(&[("a.md", &format!("{largest}#"))])), ["TG0106"]);
    let deep = |levels: usize| format!("tests/{}x", "d/".repeat(levels - 1));
    assert!(report(&[(&deep(limits::TREE_MAX_DEPTH), "")]).is_clean());
    assert_eq!(codes(&report(&[(&deep(limits::TREE_MAX_DEPTH + 1), "")])), ["TG0105"]);
    let many = |count: usize| {
        let mut all = files();
        all.extend((all.len()..count).map(|index| (format!("tests/{index}"), String::new())));
        codes(&check(directory(&all).path())).len()
    };
    assert_eq!((many(limits::TREE_MAX_FILES), many(limits::TREE_MAX_FILES + 1)), (0, 1));
}

#[test]
fn limits_of_policies_hold_on_both_sides() {
    let sized = |bytes: usize| {
        // Nesting is not at issue: one long text.
        let (head, tail) = ("@id(\"x\") permit (principal, action, resource) when { \"", "\" == \"\" };");
        format!("{head}{}{tail}", "a".repeat(bytes - head.len() - tail.len()))
    };
    let report = |policy: &str| report(&[("hooks/main/main.cedar", policy)]);
    assert!(!codes(&report(&sized(limits::POLICY_MAX_BYTES))).contains(&"TG0502"));
    assert_eq!(codes(&report(&sized(limits::POLICY_MAX_BYTES + 1))), ["TG0502"]);
    let nested = |depth: usize| {
        let (open, close) = ("(".repeat(depth - 1), ")".repeat(depth - 1));
        format!("@id(\"x\") permit (principal, action, resource) when {{ {open}principal.tier > 0{close} }};")
    };
    assert!(report(&nested(limits::NESTING_MAX_DEPTH)).is_clean());
    assert_eq!(codes(&report(&nested(limits::NESTING_MAX_DEPTH + 1))), ["TG0503"]);
}

#[test]
fn a_chain_of_operators_is_bounded_so_that_it_evaluates_on_8_mebibytes_of_stack() {
    let chain = |terms: usize| {
        format!(
            "@id(\"x\") permit (principal, action, resource) when {{ principal.tier > 5{} || true }};",
            " || 1 > 2".repeat(terms)
        )
    };
    let longest =
        (1..limits::EXPRESSION_MAX_DEPTH).rev().find(|terms| report(&[("hooks/main/main.cedar", &chain(*terms))]).is_clean());
    let longest = longest.unwrap();
    assert!(longest > limits::EXPRESSION_MAX_DEPTH - 10);
    assert_eq!(codes(&report(&[("hooks/main/main.cedar", &chain(longest + 1))])), ["TG0503"]);
    let harness = crate::harness::hook(&chain(longest));
    let ask = || harness.verdict(&crate::harness::call("fs.read"));
    let verdict = std::thread::scope(|scope| {
        std::thread::Builder::new().stack_size(8 << 20).spawn_scoped(scope, ask).unwrap().join().unwrap()
    });
    assert_eq!(verdict, "allowed");
}

#[test]
fn selector_limits_hold_on_both_sides() {
    let hook = |count: usize, length: usize| {
        let agents: Vec<_> = (0..count).map(|index| format!("{index:0length$}")).map(|id| format!("\"{id}\"")).collect();
        let text = format!("id: main\nkind: cedar\norder: -10000\nselectors: {{ agents: [{}] }}\n", agents.join(", "));
        codes(&report(&[("hooks/main/hook.yaml", &text)])).len()
    };
    assert_eq!((hook(256, 256), hook(257, 3), hook(1, 257)), (0, 1, 1));
}

#[test]
fn every_code_has_a_title_and_is_unique() {
    let unique: std::collections::BTreeSet<_> = FindingCode::ALL.iter().map(|code| code.as_str()).collect();
    assert_eq!(unique.len(), FindingCode::ALL.len());
    assert!(FindingCode::ALL.iter().all(|code| !code.title().is_empty()));
}

#[test]
fn a_report_tells_the_first_thousand_findings_and_counts_the_rest() {
    let report = report(&[("hooks/main/main.cedar", &"permit (principal, action, resource);\n".repeat(1_200))]);
    assert_eq!((report.findings.len(), report.omitted), (limits::FINDINGS_MAX_COUNT, 200));
    assert!(report.render(false).ends_with("and 200 more findings\n\n"));
}

#[test]
fn a_catalogue_of_ten_thousand_tools_is_no_trouble() {
    let tools = (0..10_000)
        .map(|index| format!("  t{index}: {{ provider: p, effect: read, labels: [a, b] }}\n"))
        .collect::<Vec<_>>()
        .concat();
    let report = report(&[("tools.yaml", &format!("providers: {{ p: {{}} }}\ntools:\n{tools}"))]);
    assert!(report.is_clean(), "{}", report.render(false));
    assert_eq!(report.summary.unwrap().tools, 10_000);
}

//! The ways in which a bundle can be bad: for each, how it is made, and what is told of it.

use std::{
    fs::{self, File, Permissions},
    os::unix::{
        fs::{PermissionsExt as _, symlink},
        net::UnixListener,
    },
    path::Path,
};

use rustix::fs::{CWD, Mode, mkfifoat};
use tollgate_domain::Digest;
use tollgate_policy::limits;
use tollgate_tests::trees::{Tree, gate, with};

/// The id of the sidecar's own hook.
pub(super) const LOCAL_HOOK: &str = "mine";

/// One way to be bad.
pub(super) struct Kind {
    /// In a few words.
    pub(super) what: &'static str,
    /// The code of the refusal.
    pub(super) refusal: &'static str,
    /// Code and place of the finding; none where a sound bundle is refused.
    pub(super) finding: Option<(&'static str, &'static str)>,
    /// What the log says of it.
    pub(super) says: &'static str,
    /// Makes a good bundle bad.
    pub(super) spoil: Box<dyn Fn(&Path)>,
}

/// The bundle that is spoilt.
pub(super) fn good(serial: u32) -> Tree {
    with(gate(), &[("bundle.yaml", &format!("format: tollgate/v1\nname: system\nserial: {serial}\n"))])
}

/// All of them, in the order in which a bundle comes to be: the tree, its files, its parts, its place in history.
pub(super) fn all() -> Vec<Kind> {
    let mut kinds = trees();
    kinds.extend(manifests());
    kinds.extend(yaml());
    kinds.extend(schemas_and_entities());
    kinds.extend(policies());
    kinds.extend(sound());
    kinds
}

fn trees() -> Vec<Kind> {
    const OUTSIDE: &str = "/etc/hostname";
    vec![
        source("vanished", "source_missing", "TG0101", "does not exist", |bundle| fs::remove_dir_all(bundle).unwrap()),
        source("empty", "source_empty", "TG0102", "is empty", |bundle| {
            fs::remove_dir_all(bundle).unwrap();
            fs::create_dir(bundle).unwrap();
        }),
        source("a file", "source_unreadable", "TG0101", "cannot be read", |bundle| {
            fs::remove_dir_all(bundle).unwrap();
            fs::write(bundle, "format: tollgate/v1\n").unwrap();
        }),
        at("bundle.yaml missing", "TG0102", "bundle.yaml", "has no `bundle.yaml`", |bundle| {
            fs::remove_file(bundle.join("bundle.yaml")).unwrap();
        }),
        at("a file that may not be read", "TG0101", "tools.yaml", "permission denied", |bundle| {
            fs::set_permissions(bundle.join("tools.yaml"), Permissions::from_mode(0o000)).unwrap();
        }),
        at("a link to nowhere", "TG0101", "NOTES.md", "cannot be read", |bundle| link("nowhere", bundle, "NOTES.md")),
        at("a link to itself", "TG0101", "NOTES.md", "cannot be read", |bundle| link("NOTES.md", bundle, "NOTES.md")),
        at("a link out of it", "TG0103", "NOTES.md", "ends outside", |bundle| link(OUTSIDE, bundle, "NOTES.md")),
        at("a link to a directory out of it", "TG0103", "hooks/etc", "ends outside", |bundle| link("/etc", bundle, "hooks/etc")),
        at("a link that leads back", "TG0112", "hooks/desk/up", "already, as `hooks`", |bundle| {
            link("..", bundle, "hooks/desk/up");
        }),
        at("a pipe", "TG0104", "hooks/desk/pipe.cedar", "neither a file nor", |bundle| {
            mkfifoat(CWD, bundle.join("hooks/desk/pipe.cedar"), Mode::RWXU).unwrap();
        }),
        at("a socket", "TG0104", "hooks/desk/socket", "neither a file nor", |bundle| {
            drop(UnixListener::bind(bundle.join("hooks/desk/socket")).unwrap());
        }),
        at("a file too large", "TG0106", "hooks/desk/more.cedar", "bytes long", |bundle| {
            let file = File::create(bundle.join("hooks/desk/more.cedar")).unwrap();
            file.set_len(limits::FILE_MAX_BYTES + 1).unwrap();
        }),
        at("too deep", "TG0105", "tests/d/d/d/d/d/d/d/d", "deeper than", |bundle| {
            fs::create_dir_all(bundle.join("tests/d/d/d/d/d/d/d/d")).unwrap();
        }),
        at("too many files", "TG0105", "", "files", |bundle| {
            fs::create_dir_all(bundle.join("tests")).unwrap();
            for number in 0..limits::TREE_MAX_FILES {
                File::create(bundle.join(format!("tests/{number}"))).unwrap();
            }
        }),
        at("a text that is not UTF-8", "TG0107", "hooks/desk/desk.cedar", "not UTF-8", |bundle| {
            fs::write(bundle.join("hooks/desk/desk.cedar"), b"// \xff").unwrap();
        }),
        at("a name that steers a terminal", "TG0107", "\u{fffd}[2J.md", "control character", |bundle| {
            fs::write(bundle.join("\u{1b}[2J.md"), "").unwrap();
        }),
        files(
            "a file where nothing reads it",
            "TG0108",
            "hooks/desk/hook.yml",
            "is no part of a hook",
            &[("hooks/desk/hook.yml", "id: desk\n")],
        ),
        files(
            "a workspace in another encoding",
            "TG0111",
            "workspaces/acm%65/desk",
            "names no tenant",
            &[("workspaces/acm%65/desk/hooks/one/hook.yaml", "id: one\nkind: cedar\norder: 0\n")],
        ),
    ]
}

fn manifests() -> Vec<Kind> {
    let manifest = |what, code, place, says, change: fn(String) -> String| Kind {
        refusal: "bundle_incomplete",
        ..at(what, code, place, says, move |bundle| {
            let line = |(path, text): (&String, &String)| format!("{}  {path}\n", Digest::of(text.as_bytes()));
            let manifest: String = good(1).iter().map(line).collect();
            fs::write(bundle.join("bundle.yaml"), &good(1)["bundle.yaml"]).unwrap();
            fs::write(bundle.join("manifest.sha256"), change(manifest)).unwrap();
        })
    };
    vec![
        manifest("a wrong digest", "TG0109", "manifest.sha256", "has another digest", |text| {
            format!("{}{}", "0".repeat(64), text.get(64..).unwrap())
        }),
        manifest("a listed file missing", "TG0109", "manifest.sha256", "is listed and not there", |text| {
            text.replace("tools.yaml", "tool.yaml")
        }),
        manifest("a file not listed", "TG0109", "tools.yaml", "is not listed", |text| {
            text.lines().filter(|line| !line.ends_with("tools.yaml")).flat_map(|line| [line, "\n"]).collect()
        }),
        manifest("a line that is none", "TG0110", "manifest.sha256", "the line is not", |text| format!("{text}nonsense\n")),
    ]
}

fn yaml() -> Vec<Kind> {
    let hook =
        |what, code, says, text: &'static str| files(what, code, "hooks/desk/hook.yaml", says, &[("hooks/desk/hook.yaml", text)]);
    vec![
        files("not YAML", "TG0201", "tools.yaml", "unclosed bracket", &[("tools.yaml", "providers: {desk: {}\n")]),
        hook("an unknown key", "TG0202", "unknown key `odrer`", "id: desk\nkind: cedar\nodrer: 0\norder: 0\n"),
        hook("a command", "TG0202", "unknown key `command`", "id: desk\nkind: cedar\norder: 0\ncommand: [sh]\n"),
        hook("an unknown endpoint", "TG0202", "unknown key `endpoint`", "id: desk\nkind: cedar\norder: 0\nendpoint: pager\n"),
        hook("an unknown kind of hook", "TG0205", "`shell` is not known", "id: desk\nkind: shell\norder: 0\n"),
        hook("a missing key", "TG0203", "`order` is missing", "id: desk\nkind: cedar\n"),
        hook("a wrong type", "TG0204", "this is a text", "id: desk\nkind: cedar\norder: 0\nenabled: 'yes'\n"),
        hook("a number out of range", "TG0205", "out of range", "id: desk\nkind: cedar\norder: 10001\n"),
        hook("a reserved id", "TG0208", "`hook-resolver` is reserved", "id: hook-resolver\nkind: cedar\norder: 0\n"),
        hook(
            "a tool that nobody declares",
            "TG0209",
            "`desk.reed` is not in the catalogue",
            "id: desk\nkind: cedar\norder: 0\nselectors: { tools: [desk.reed] }\n",
        ),
        files(
            "an id twice",
            "TG0206",
            "hooks/twice/hook.yaml",
            "another hook of the same chain",
            &[
                ("hooks/twice/hook.yaml", "id: desk\nkind: cedar\norder: 0\n"),
                ("hooks/twice/a.cedar", "@id(\"x\")\npermit (principal, action, resource);\n"),
            ],
        ),
        files(
            "another format",
            "TG0207",
            "bundle.yaml",
            "`tollgate/v2` is not known",
            &[("bundle.yaml", "format: tollgate/v2\nname: system\n")],
        ),
        files("no name", "TG0205", "bundle.yaml", "not allowed", &[("bundle.yaml", "format: tollgate/v1\nname: ''\n")]),
    ]
}

fn schemas_and_entities() -> Vec<Kind> {
    let schema = |what, code, says, from: &'static str, to: &'static str| {
        let text = good(1)["schema.cedarschema"].replace(from, to);
        files(what, code, "schema.cedarschema", says, &[("schema.cedarschema", &text)])
    };
    let entities = |what, code, says, text: &str| files(what, code, "entities.json", says, &[("entities.json", text)]);
    let arguments = |what, code, place, says, from: &'static str, to: &'static str| {
        let text = good(1)["hooks/pay/schema.cedarschema"].replace(from, to);
        files(what, code, place, says, &[("hooks/pay/schema.cedarschema", &text)])
    };
    vec![
        schema(
            "half a schema",
            "TG0301",
            "unexpected end",
            "    context: { call: { attempt: Long }, on_behalf_of?: User },\n  };\n}\n",
            "",
        ),
        schema(
            "a type with the name of a built-in one",
            "TG0302",
            "decimal",
            "entity Agent;",
            "entity Agent;\n  entity decimal;",
        ),
        schema("a schema without the action", "TG0303", "`InvokeTool`", "action InvokeTool", "action UseTool"),
        schema("a fact that nobody knows", "TG0304", "`context.call.atempt`", "attempt: Long", "atempt: Long"),
        schema("a fact of another type", "TG0305", "another type than it has", "attempt: Long", "attempt: String"),
        schema("a schema that contradicts itself", "TG0308", "Team", "entity Agent;", "entity Agent in [Team];"),
        arguments(
            "an argument that JSON has not",
            "TG0306",
            "hooks/pay/schema.cedarschema",
            "as an entity",
            "count: Long",
            "count: User",
        ),
        arguments(
            "a tool without its action",
            "TG0307",
            "hooks/pay/hook.yaml",
            "has no action `pay/send`",
            "pay/send",
            "pay/other",
        ),
        entities("entities that are no JSON", "TG0401", "not a JSON array", "[\n"),
        entities(
            "an entity that does not fit",
            "TG0402",
            "should not exist according to the schema",
            r#"[{"uid":{"type":"Tollgate::Agent","id":"a"},"attrs":{"tier":1},"parents":[]}]"#,
        ),
        entities(
            "an entity of the catalogue",
            "TG0403",
            "does not belong here",
            r#"[{"uid":{"type":"Tollgate::Tool","id":"desk.read"},"attrs":{"effect":"read"},"parents":[]}]"#,
        ),
    ]
}

fn policies() -> Vec<Kind> {
    const PERMIT: &str = "permit (principal, action, resource);\n";
    let policy =
        |what, code, says, text: &str| files(what, code, "hooks/desk/desk.cedar", says, &[("hooks/desk/desk.cedar", text)]);
    let nested = limits::NESTING_MAX_DEPTH;
    let nested = format!(
        "@id(\"a\")\npermit (principal, action, resource) when {{ {}true{} }};\n",
        "(".repeat(nested),
        ")".repeat(nested)
    );
    let long = format!(
        "@id(\"a\")\npermit (principal, action, resource) when {{ \"{}\" == \"\" }};\n",
        "a".repeat(limits::POLICY_MAX_BYTES)
    );
    let cut = &good(1)["hooks/desk/desk.cedar"];
    vec![
        policy("half a policy", "TG0501", "unexpected end", cut.trim_end().strip_suffix("\"desk.write\");").unwrap()),
        policy("a policy too long", "TG0502", "bytes long", &long),
        policy("nested too deeply", "TG0503", "levels deep", &nested),
        policy("a policy without an id", "TG0504", "has no `@id`", PERMIT),
        policy(
            "an id of a policy twice",
            "TG0505",
            "another policy of the hook",
            &format!("@id(\"a\")\n{PERMIT}@id(\"a\")\n{PERMIT}"),
        ),
        policy(
            "an unknown annotation",
            "TG0506",
            "`@cod`",
            &format!("@id(\"a\")\n@cod(\"x\")\n{}", PERMIT.replace("permit", "forbid")),
        ),
        policy(
            "a code that is none",
            "TG0507",
            "`@code` is not",
            &format!("@id(\"a\")\n@code(\"a b\")\n{}", PERMIT.replace("permit", "forbid")),
        ),
        policy(
            "a reserved code",
            "TG0208",
            "`no_permit` is reserved",
            &format!("@id(\"a\")\n@code(\"no_permit\")\n{}", PERMIT.replace("permit", "forbid")),
        ),
        policy("a template", "TG0508", "is a template", "@id(\"a\")\npermit (principal == ?principal, action, resource);\n"),
        policy(
            "an attribute that nothing has",
            "TG0509",
            "`colour`",
            "@id(\"a\")\npermit (principal, action, resource) when { resource.colour == \"red\" };\n",
        ),
        policy(
            "an impossible policy",
            "TG0510",
            "impossible",
            "@id(\"a\")\npermit (principal is Tollgate::User, action, resource);\n",
        ),
        files("no policies", "TG0511", "hooks/desk", "has no policies", &[("hooks/desk/desk.cedar", "// none\n")]),
    ]
}

/// Without a finding, and not for this sidecar now.
fn sound() -> Vec<Kind> {
    let sound =
        |what, refusal, says, changes: &[(&str, &str)]| Kind { refusal, finding: None, ..files(what, "", "", says, changes) };
    vec![
        sound(
            "older than the active one",
            "older_than_active",
            "serial 1 is not above",
            &[("bundle.yaml", &good(1)["bundle.yaml"])],
        ),
        sound(
            "an id of the sidecar's own",
            "duplicate_hook",
            LOCAL_HOOK,
            &[
                ("bundle.yaml", &good(3)["bundle.yaml"]),
                ("hooks/mine/hook.yaml", &format!("id: {LOCAL_HOOK}\nkind: cedar\norder: 0\nmode: forbid_only\n")),
                ("hooks/mine/a.cedar", "@id(\"x\")\nforbid (principal, action, resource);\n"),
            ],
        ),
    ]
}

/// A kind that is no tree at all.
fn source(what: &'static str, refusal: &'static str, code: &'static str, says: &'static str, spoil: fn(&Path)) -> Kind {
    Kind { refusal, ..at(what, code, "", says, spoil) }
}

/// A kind with some files put over the good ones.
fn files(what: &'static str, code: &'static str, place: &'static str, says: &'static str, changes: &[(&str, &str)]) -> Kind {
    let changes: Vec<_> = changes.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
    at(what, code, place, says, move |bundle| {
        for (path, text) in &changes {
            let path = bundle.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    })
}

fn at(what: &'static str, code: &'static str, place: &'static str, says: &'static str, spoil: impl Fn(&Path) + 'static) -> Kind {
    Kind { what, refusal: "bundle_invalid", finding: Some((code, place)), says, spoil: Box::new(spoil) }
}

fn link(target: &str, bundle: &Path, path: &str) {
    symlink(target, bundle.join(path)).unwrap();
}

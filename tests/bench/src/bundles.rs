//! Bundles to measure with: one hook with a number of policies, few of which can match, or all; and the same rules for
//! Cerbos.

use std::{fmt::Write as _, fs, path::Path};

use tollgate_tests::{review::root, trees::Tree};

const SCHEMA: &str = "namespace Tollgate {
  entity User;
  entity Agent;
  entity ToolProvider;
  entity Tool in [ToolProvider] { effect: String };
  action InvokeTool appliesTo {
    principal: [Agent],
    resource: [Tool],
    context: { call: { attempt: Long, depth: Long, interactive: Bool }, on_behalf_of?: User },
  };
}
";

/// Tools that are never called.
const OTHER_TOOLS: usize = 40;
/// Agents that never ask.
const OTHER_AGENTS: usize = 97;
/// Forbids that look at the call that is made, and do not match.
const CLOSE_FORBIDS: usize = 7;
/// Policies before the ones that make up the number: the permit of reading, and the forbid of writing.
const FIRST_POLICIES: usize = 2;
/// Policies that every bundle has, whatever the others can match.
pub(crate) const COMMON_POLICIES: usize = FIRST_POLICIES + CLOSE_FORBIDS;

/// What the policies of a bundle can match, beside the few that the calls are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Other agents and other tools: by their scope they cannot match.
    Elsewhere,
    /// Everything: only their conditions say that they do not.
    Everywhere,
}

/// A bundle with so many policies, at least ten. Generations of it differ in their digest alone.
pub(crate) fn bundle(policies: usize, reach: Reach, generation: u64) -> Tree {
    let mut tools = "providers:\n  desk: {}\ntools:\n".to_owned();
    let others = (0..OTHER_TOOLS).map(|number| format!("tool-{number}"));
    for name in ["read".to_owned(), "write".to_owned()].into_iter().chain(others) {
        writeln!(tools, "  desk.{name}: {{ provider: desk, external_name: {name}, effect: read }}").unwrap();
    }
    let mut text = format!("// generation {generation}\n");
    text += "@id(\"read\")\npermit (principal == Tollgate::Agent::\"bench-agent\", action, resource == Tollgate::Tool::\"desk.read\");\n";
    text += "@id(\"no-writing\")\n@code(\"writing_denied\")\nforbid (principal, action, resource == Tollgate::Tool::\"desk.write\");\n";
    for number in FIRST_POLICIES..policies {
        let (effect, scope) = if number < COMMON_POLICIES {
            ("forbid", "principal, action, resource == Tollgate::Tool::\"desk.read\"".to_owned())
        } else if reach == Reach::Everywhere {
            ("forbid", "principal, action, resource".to_owned())
        } else {
            let (agent, tool) = (number % OTHER_AGENTS, number % OTHER_TOOLS);
            let effect = if number % 2 == 0 { "permit" } else { "forbid" };
            let agent = format!("principal == Tollgate::Agent::\"agent-{agent}\"");
            (
                effect,
                format!("{agent}, action == Tollgate::Action::\"InvokeTool\", resource == Tollgate::Tool::\"desk.tool-{tool}\""),
            )
        };
        writeln!(
            text,
            "@id(\"policy-{number}\")\n{effect} ({scope})\nwhen {{ context.call.attempt > {} && !context.call.interactive }};",
            number + 1_000
        )
        .unwrap();
    }
    [
        ("bundle.yaml", "format: tollgate/v1\nname: bench\n"),
        ("schema.cedarschema", SCHEMA),
        ("tools.yaml", &tools),
        ("hooks/bench/hook.yaml", "id: bench\nkind: cedar\norder: 0\n"),
        ("hooks/bench/bench.cedar", &text),
    ]
    .into_iter()
    .map(|(path, text)| (path.to_owned(), text.to_owned()))
    .collect()
}

/// The same rules for Cerbos: what is asked of a tool is one resource policy.
pub(crate) fn cerbos(policies: usize) -> Tree {
    let mut rules = vec![String::new(); OTHER_TOOLS];
    let rule = |effect: &str, condition: &str| {
        let condition = format!("      condition:\n        match:\n          expr: {condition}\n");
        format!("    - actions: [invoke]\n      effect: {effect}\n      roles: [agent]\n{condition}")
    };
    let attempt = |number: usize| format!("R.attr.attempt > {} && !R.attr.interactive", number + 1_000);
    let mut read = rule("EFFECT_ALLOW", "P.id == \"bench-agent\"");
    for number in FIRST_POLICIES..policies {
        if number < COMMON_POLICIES {
            read += &rule("EFFECT_DENY", &attempt(number));
            continue;
        }
        let effect = if number % 2 == 0 { "EFFECT_ALLOW" } else { "EFFECT_DENY" };
        let condition = format!("P.id == \"agent-{}\" && {}", number % OTHER_AGENTS, attempt(number));
        rules[number % OTHER_TOOLS] += &rule(effect, &condition);
    }
    let others = rules.into_iter().enumerate().filter(|(_, rules)| !rules.is_empty());
    let others = others.map(|(number, rules)| (format!("desk.tool-{number}"), rules));
    let asked = [("desk.read".to_owned(), read), ("desk.write".to_owned(), rule("EFFECT_DENY", "\"true\""))];
    let policy = |(tool, rules): (String, String)| {
        let head = "apiVersion: api.cerbos.dev/v1\nresourcePolicy:\n  version: default\n";
        (format!("{tool}.yaml"), format!("{head}  resource: {tool}\n  rules:\n{rules}"))
    };
    asked.into_iter().chain(others).map(policy).collect()
}

/// The bundle that is shipped.
pub(crate) fn sample() -> Tree {
    let mut tree = Tree::new();
    let policies = root().join("policies");
    read(&policies, &policies, &mut tree);
    tree
}

fn read(root: &Path, directory: &Path, tree: &mut Tree) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            read(root, &path, tree);
        } else {
            let name = path.strip_prefix(root).unwrap().to_string_lossy().into_owned();
            tree.insert(name, fs::read_to_string(&path).unwrap());
        }
    }
}

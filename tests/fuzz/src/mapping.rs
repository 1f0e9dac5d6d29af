//! Arguments as Cedar values: what a typed hook says of them is what an independent reading of the declared types
//! says, and nothing of a value is in its answer.

mod expected;

use std::sync::OnceLock;

use tollgate_domain::{Arguments, Call, HookDefinition, ToolFacts, Verdict};

use crate::{
    bundle::Files,
    call,
    sentinel::{self, SENTINEL, assert_unprinted},
};
use expected::Expected;

/// A bundle with one tool, whose arguments are declared with every type that there is, and one hook that tells two
/// numbers apart. `expected.rs` reads the same declaration.
const BUNDLE: &str = include_str!("mapping/bundle.txt");

/// Checks the mapping with these bytes as the arguments.
pub fn check(data: &[u8]) {
    if sentinel::is_known_to(data) {
        return;
    }
    let Ok(arguments) = Arguments::parse(data) else { return };
    let expected = expected::of(arguments.value());
    let answer = verdict(arguments);
    match (&answer, expected) {
        (Verdict::Failed { code }, Expected::Unfit | Expected::Unknown) => {
            assert_eq!(code.as_str(), "argument_unrepresentable");
        }
        (Verdict::Allowed, Expected::Equal | Expected::Unknown) => {}
        (Verdict::Denied { code, .. }, Expected::Different | Expected::Unknown) => assert_eq!(code.as_str(), "different"),
        (answer, expected) => panic!("{answer:?} where {expected:?} was expected"),
    }
    let text = String::from_utf8_lossy(data);
    let secret = text.replacen(":\"", &format!(":\"{SENTINEL}"), 8);
    if let Ok(arguments) = Arguments::parse(secret.as_bytes()) {
        verdict(arguments);
    }
}

fn verdict(arguments: Arguments) -> Verdict {
    static GATE: OnceLock<(HookDefinition, ToolFacts)> = OnceLock::new();
    let (hook, tool) = GATE.get_or_init(gate);
    let answer = call::ask(&*hook.hook, &call::of(tool.id.clone(), arguments), tool);
    assert_unprinted(&answer);
    answer.verdict
}

fn gate() -> (HookDefinition, ToolFacts) {
    let mut bundle = Files::parse(BUNDLE.as_bytes()).load().unwrap_or_else(|report| panic!("{}", report.render(false)));
    let call: Call = call::of("tool".parse().unwrap(), Arguments::parse(b"{}").unwrap());
    let tool = bundle.catalogue.find(&call.tool).unwrap();
    (bundle.hooks.remove(0), tool)
}

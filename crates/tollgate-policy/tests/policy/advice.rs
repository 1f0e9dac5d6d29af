//! What works and could be better: told, and never a reason to refuse.

use tollgate_policy::{Report, Severity, limits::EVERYWHERE_MAX_COUNT};

use crate::harness::report;

fn policies(count: usize, scope: &str) -> String {
    let policies: Vec<_> = (0..count).map(|number| format!("@id(\"p{number}\")\npermit ({scope});\n")).collect();
    policies.concat()
}

/// Advice by code, severity and place, on a bundle that has no findings.
fn advice(report: &Report) -> Vec<String> {
    assert!(report.is_clean() && report.summary.is_some(), "{}", report.render(false));
    let show = |advice: &tollgate_policy::Diagnostic| {
        assert_eq!(advice.severity, Severity::Advice);
        format!("{} {}:{}:{}", advice.code, advice.file, advice.span.line, advice.span.column)
    };
    report.advice.iter().map(show).collect()
}

#[test]
fn many_policies_that_every_call_pays_for_draw_advice_at_the_first_of_them() {
    let anything = "principal, action, resource";
    let bound = policies(EVERYWHERE_MAX_COUNT + 1, "principal, action, resource == Tollgate::Tool::\"mail.send\"");
    let few = policies(EVERYWHERE_MAX_COUNT, anything);
    let many = policies(EVERYWHERE_MAX_COUNT + 1, anything);
    let second = format!("@id(\"bound\")\npermit (principal == Tollgate::Agent::\"a\", action, resource);\n{many}");
    let of = |text: &str| advice(&report(&[("hooks/main/main.cedar", text)]));
    assert_eq!(of(&bound), [""; 0]);
    assert_eq!(of(&few), [""; 0]);
    assert_eq!(of(&many), ["TG0512 hooks/main/main.cedar:1:1"]);
    assert_eq!(of(&second), ["TG0512 hooks/main/main.cedar:3:1"]);
}

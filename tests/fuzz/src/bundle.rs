//! Whole bundles, as a tree of files: refused with findings that point into it, or loaded into hooks that answer.

mod files;

use std::collections::BTreeSet;

use tollgate_domain::{Arguments, Bundle, ToolRef};
use tollgate_policy::{FindingCode, Report};

use crate::{
    call,
    sentinel::{self, SENTINEL, assert_unprinted},
};
pub(crate) use files::Files;

/// Most tools of a bundle that its hooks are asked about.
const ASKED_MAX: usize = 4;

/// Checks the loading of a bundle with these bytes as its files, in the form that `Files` reads.
pub fn check(data: &[u8]) {
    if sentinel::is_known_to(data) {
        return;
    }
    let files = Files::parse(data);
    match files.load() {
        Ok(bundle) => sound(&bundle),
        Err(report) => explained(&report, &files),
    }
}

/// A bundle that was loaded has hooks of different ids, which answer and tell no argument.
fn sound(bundle: &Bundle) {
    assert!(!bundle.name.as_str().is_empty());
    assert_eq!(bundle.revision.as_str(), bundle.digest.to_string());
    let resources: BTreeSet<_> = bundle.hooks.iter().map(|hook| format!("{:?}", hook.ownership)).collect();
    assert_eq!(resources.len(), bundle.hooks.len(), "two hooks of one place");

    let arguments = Arguments::parse(format!("{{\"{SENTINEL}\":\"{SENTINEL}\"}}").as_bytes()).unwrap();
    for tool in bundle.catalogue.tools.keys().take(ASKED_MAX) {
        let named = ToolRef { id: tool.clone(), provider: None, external_name: None };
        let facts = bundle.catalogue.find(&named).unwrap();
        for hook in &bundle.hooks {
            assert_unprinted(&call::ask(&*hook.hook, &call::of(tool.clone(), arguments.clone()), &facts));
        }
    }
}

/// A report has findings, each with a place that exists, in every form that it is told in.
pub(crate) fn explained(report: &Report, files: &Files) {
    assert!(!report.is_clean(), "refused without a finding");
    for finding in &report.findings {
        assert_ne!(finding.code, FindingCode::NotCompiled, "{}", finding.message);
        assert!(!finding.message.is_empty());
        let span = finding.span;
        if span.line > 0 {
            let text = files.text(&finding.file).unwrap_or_else(|| panic!("a place in {:?}, which is no text", finding.file));
            assert!(span.start <= span.end && span.end <= text.len(), "a place outside of {:?}", finding.file);
            assert!(text.is_char_boundary(span.start) && text.is_char_boundary(span.end), "half a character");
            assert!((span.line, span.column) <= (span.end_line, span.end_column));
        }
    }
    assert_eq!(report.kept().len(), report.findings.len());
    assert!(report.to_json().is_object());
    let rendered = report.render(false);
    let loud = rendered.chars().find(|character| character.is_control() && *character != '\n');
    assert_eq!(loud, None, "a terminal would obey a bundle");
}

//! Findings as a compiler prints them: code, source, place, hint.

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

use crate::diagnostic::{Diagnostic, Report, Severity};

impl Report {
    /// The report for a person; with colours for a terminal, or as plain text.
    #[must_use]
    pub fn render(&self, colours: bool) -> String {
        let renderer = if colours { Renderer::styled() } else { Renderer::plain() };
        let mut out = String::new();
        for finding in self.findings.iter().chain(&self.advice) {
            out.push_str(&renderer.render(&[self.group(finding)]));
            out.push_str("\n\n");
        }
        if self.omitted > 0 {
            out.push_str("and ");
            out.push_str(&self.omitted.to_string());
            out.push_str(" more findings\n\n");
        }
        out
    }

    fn group<'a>(&'a self, finding: &'a Diagnostic) -> Group<'a> {
        let level = match finding.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
            Severity::Advice => Level::NOTE.with_name("advice"),
        };
        let title = level.primary_title(finding.message.as_str()).id(finding.code.as_str());
        let file = if finding.file.is_empty() { "." } else { finding.file.as_str() };
        let mut group = match self.source(&finding.file) {
            Some(source) if finding.span.line > 0 => {
                let mark = AnnotationKind::Primary.span(finding.span.start..finding.span.end);
                title.element(Snippet::source(source).path(file).annotation(mark))
            }
            _ => title.element(annotate_snippets::Origin::path(file)),
        };
        if let Some(hint) = &finding.hint {
            group = group.element(Level::HELP.message(hint.as_str()));
        }
        group
    }
}

//! Findings and the report of them: what is wrong with a bundle, where, and what would be right.

use std::{collections::BTreeMap, ops::Range, sync::Arc};

use serde::Serialize;
use tollgate_domain::{BundleName, Finding};

use crate::{codes::FindingCode, limits::FINDINGS_MAX_COUNT};

/// How much it matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// It is wrong.
    Error,
    /// It is allowed by Cedar, and almost certainly not what was meant.
    Warning,
    /// It works, and there is a better way. Refuses nothing.
    Advice,
}

/// A place in a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Span {
    /// The first byte.
    #[serde(skip)]
    pub start: usize,
    /// The byte after the last.
    #[serde(skip)]
    pub end: usize,
    /// The line of the first character, from 1; 0 for the file as a whole.
    pub line: u32,
    /// Its column, from 1, in characters.
    pub column: u32,
    /// The line after the last character.
    pub end_line: u32,
    /// Its column.
    pub end_column: u32,
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    /// What it is about.
    pub code: FindingCode,
    /// How much it matters.
    pub severity: Severity,
    /// The file, relative to the bundle; empty for the bundle as a whole.
    pub file: String,
    /// The place in the file.
    #[serde(flatten)]
    pub span: Span,
    /// What is wrong.
    pub message: String,
    /// What would be right.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// What a bundle holds, where it has no findings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// Enabled hooks.
    pub hooks: usize,
    /// Their policies.
    pub policies: usize,
    /// Declared tools.
    pub tools: usize,
    /// Entities, catalogue and actions included.
    pub entities: usize,
}

/// Every finding about a bundle, with the text that they point into.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// The bundle's name, as far as it could be read.
    pub bundle: Option<BundleName>,
    /// The findings, by file and place. Any of them, warnings too, refuses the bundle.
    pub findings: Vec<Diagnostic>,
    /// What is worth a thought, and refuses nothing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub advice: Vec<Diagnostic>,
    /// What the bundle holds; absent where there are findings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<Summary>,
    /// How many findings there are beyond these.
    #[serde(skip_serializing_if = "is_zero")]
    pub omitted: usize,
    #[serde(skip)]
    sources: BTreeMap<String, Arc<str>>,
}

impl Report {
    /// Whether there is nothing to complain of.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }

    /// The report as one JSON object.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::to_value(self).unwrap_or_default()
    }

    /// The findings by place and code, without their texts: what the journal may keep.
    #[must_use]
    pub fn kept(&self) -> Vec<Finding> {
        let keep = |found: &Diagnostic| Finding {
            code: found.code.as_str().to_owned(),
            path: found.file.clone(),
            line: found.span.line,
        };
        self.findings.iter().map(keep).collect()
    }

    pub(crate) fn source(&self, file: &str) -> Option<&str> {
        self.sources.get(file).map(|text| &**text)
    }
}

/// A text file of the bundle, as findings point into it.
#[derive(Clone, Debug)]
pub(crate) struct SourceText {
    pub(crate) path: Arc<str>,
    pub(crate) text: Arc<str>,
}

/// Collects findings while a bundle is read; nothing stops at the first.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    found: Vec<Diagnostic>,
    /// The last one that there was no room for.
    omitted: Option<Diagnostic>,
    count: usize,
    advice: Vec<Diagnostic>,
    sources: BTreeMap<String, Arc<str>>,
}

impl Findings {
    /// A finding at a place in a text.
    pub(crate) fn at(
        &mut self,
        code: FindingCode,
        source: &SourceText,
        range: Range<usize>,
        message: impl Into<String>,
    ) -> &mut Diagnostic {
        self.show(source);
        // Places cost a walk through the text: none for findings that nobody will see.
        let span = if self.is_full() { Span::default() } else { span(&source.text, range) };
        self.push(code, &source.path, span, message.into())
    }

    /// A finding about a file as a whole.
    pub(crate) fn about(&mut self, code: FindingCode, file: &str, message: impl Into<String>) -> &mut Diagnostic {
        self.push(code, file, Span::default(), message.into())
    }

    /// A piece of advice, which is no finding.
    pub(crate) fn advise(
        &mut self,
        code: FindingCode,
        source: &SourceText,
        range: Range<usize>,
        message: String,
    ) -> &mut Diagnostic {
        self.show(source);
        let severity = Severity::Advice;
        self.advice.push_mut(Diagnostic::new(code, severity, &source.path, span(&source.text, range), message))
    }

    /// How many there are, told or not.
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// A line for each finding that is told, and one for how many there are.
    pub(crate) fn told(&self) -> impl Iterator<Item = String> {
        let count = (self.count > 0).then(|| self.count.to_string());
        self.found.iter().map(|found| format!("{}\0{}\0{}", found.file, found.code, found.message)).chain(count)
    }

    fn is_full(&self) -> bool {
        self.found.len() >= FINDINGS_MAX_COUNT
    }

    pub(crate) fn into_report(mut self, bundle: Option<BundleName>, summary: Summary) -> Report {
        self.found.sort_by(|a, b| (&a.file, a.span.start, a.code, &a.message).cmp(&(&b.file, b.span.start, b.code, &b.message)));
        let omitted = self.count - self.found.len();
        self.found.dedup();
        let summary = self.found.is_empty().then_some(summary);
        Report { bundle, findings: self.found, advice: self.advice, summary, omitted, sources: self.sources }
    }

    fn push(&mut self, code: FindingCode, file: &str, span: Span, message: String) -> &mut Diagnostic {
        let warning = matches!(code, FindingCode::SchemaWarning | FindingCode::PolicyWarning);
        let severity = if warning { Severity::Warning } else { Severity::Error };
        let found = Diagnostic::new(code, severity, file, span, message);
        self.count += 1;
        if self.is_full() { self.omitted.insert(found) } else { self.found.push_mut(found) }
    }

    fn show(&mut self, source: &SourceText) {
        self.sources.entry(source.path.to_string()).or_insert_with(|| shown(&source.text));
    }
}

impl Diagnostic {
    fn new(code: FindingCode, severity: Severity, file: &str, span: Span, message: String) -> Self {
        let file = file.replace(char::is_control, "\u{fffd}");
        Self { code, severity, file, span, message: quiet(message), hint: None }
    }

    /// Adds what would be right.
    pub(crate) fn hint(&mut self, hint: impl Into<String>) {
        self.hint = Some(quiet(hint.into()));
    }
}

/// A bundle's words are printed, logged and told: none may steer a terminal.
fn quiet(text: String) -> String {
    let is_loud = |character: char| character.is_control() && !matches!(character, '\n' | '\t');
    if text.contains(is_loud) { text.replace(is_loud, "\u{fffd}") } else { text }
}

/// A text as it is printed beside findings. The printer stands in for the control characters of ASCII; for the
/// others stands what is as long, so that places stay.
fn shown(text: &Arc<str>) -> Arc<str> {
    let is_loud = |character: char| character.is_control() && !character.is_ascii();
    if text.contains(is_loud) { text.replace(is_loud, "\u{b7}").into() } else { Arc::clone(text) }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

fn span(text: &str, range: Range<usize>) -> Span {
    let start = text.floor_char_boundary(range.start.min(text.len()));
    let end = text.ceil_char_boundary(range.end.clamp(start, text.len()));
    let (line, column) = position(text, start);
    let (end_line, end_column) = position(text, end);
    Span { start, end, line, column, end_line, end_column }
}

fn position(text: &str, offset: usize) -> (u32, u32) {
    let before = text.get(..offset).unwrap_or_default();
    let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    (u32::try_from(line).unwrap_or(u32::MAX), u32::try_from(column).unwrap_or(u32::MAX))
}

//! Policies of one hook: bounded, parsed one by one, named by `@id`, strictly validated.

use std::{
    collections::{HashMap, HashSet},
    ops::Range,
};

use cedar_policy::{Effect, Policy, PolicySet, Template, ValidationMode, Validator};
use tollgate_domain::{Code, PolicyId, codes, limits::MESSAGE_MAX_BYTES};

use crate::{
    cedar_errors,
    cedar_text::{self, Statement},
    codes::FindingCode,
    diagnostic::{Findings, SourceText},
    limits::{EXPRESSION_MAX_DEPTH, NESTING_MAX_DEPTH, POLICIES_MAX_COUNT, POLICY_ID_MAX_BYTES, POLICY_MAX_BYTES},
    names,
    schema::CompiledSchema,
    yaml::nearest,
};

/// What a forbid says when it determines a denial.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Speech {
    pub(crate) code: Option<Code>,
    pub(crate) message: Option<String>,
}

/// The policies of one hook.
#[derive(Debug, Default)]
pub(crate) struct Policies {
    pub(crate) parsed: Vec<Policy>,
    pub(crate) speeches: HashMap<PolicyId, Speech>,
    /// Where each policy begins, by the id under which Cedar knows it.
    pub(crate) places: HashMap<cedar_policy::PolicyId, Place>,
}

/// A first line in a text.
pub(crate) type Place = (SourceText, Range<usize>);

/// The annotations that mean something.
const ANNOTATIONS: [&str; 3] = ["id", "code", "message"];

/// Reads every policy of a hook. `schema` is absent where it has findings of its own.
pub(crate) fn read(hook: &str, sources: &[SourceText], schema: Option<&CompiledSchema>, findings: &mut Findings) -> Policies {
    let mut reading = Reading { findings, policies: Policies::default() };
    let mut statements = 0_usize;
    for source in sources {
        for statement in cedar_text::statements(&source.text) {
            reading.statement(source, &statement);
            statements += 1;
        }
    }
    let count = reading.policies.places.len();
    if count > POLICIES_MAX_COUNT {
        let message = format!("the hook has {count} policies");
        reading.findings.about(FindingCode::NoPolicies, hook, message).hint(format!("at most {POLICIES_MAX_COUNT} are allowed"));
    } else if let Some(schema) = schema {
        reading.validate(schema);
    }
    if statements == 0 {
        let hint = "add a *.cedar file; a hook without policies decides nothing";
        reading.findings.about(FindingCode::NoPolicies, hook, "the hook has no policies").hint(hint);
    }
    reading.policies
}

struct Reading<'a> {
    findings: &'a mut Findings,
    policies: Policies,
}

impl Reading<'_> {
    fn statement(&mut self, source: &SourceText, statement: &Statement) {
        let place = statement.range.clone();
        let head = head(source, statement);
        if place.len() > POLICY_MAX_BYTES {
            let message = format!("the policy is {} bytes long", place.len());
            self.findings
                .at(FindingCode::PolicyTooLong, source, head, message)
                .hint(format!("at most {POLICY_MAX_BYTES} bytes are allowed; split it"));
            return;
        }
        if statement.depth > NESTING_MAX_DEPTH {
            let message = format!("brackets are nested {} levels deep", statement.depth);
            self.findings
                .at(FindingCode::NestedTooDeep, source, head, message)
                .hint(format!("at most {NESTING_MAX_DEPTH} levels are allowed"));
            return;
        }
        let text = source.text.get(place.clone()).unwrap_or_default();
        let policy = match Policy::parse(None, text) {
            Ok(policy) => policy,
            Err(_) if Template::parse(None, text).is_ok_and(|template| template.slots().next().is_some()) => {
                self.findings
                    .at(FindingCode::Template, source, head, "the policy is a template")
                    .hint("write the principal or resource in place of the slot");
                return;
            }
            Err(errors) => {
                cedar_errors::record(self.findings, FindingCode::PolicySyntax, source, place.start, (&errors).into());
                return;
            }
        };
        if policy.to_json().is_ok_and(|json| depth(&json) > 2 * EXPRESSION_MAX_DEPTH) {
            let message = format!("operators are nested deeper than {EXPRESSION_MAX_DEPTH} levels");
            let hint = "a chain of operators nests, too: use a set, as in `[…].contains(…)`, or split the policy";
            self.findings.at(FindingCode::NestedTooDeep, source, head, message).hint(hint);
            return;
        }
        self.unknown_annotations(source, statement, &policy);
        let id = self.id(source, statement, &policy);
        let speech = self.speech(source, statement, &policy);
        // A policy without a usable id is validated all the same, so that its other findings show too.
        let known = id.as_ref().map_or_else(|| format!("{}#{}", source.path, place.start), ToString::to_string);
        let known = names::policy(&known);
        self.policies.parsed.push(policy.new_id(known.clone()));
        self.policies.places.insert(known, (source.clone(), head));
        if let Some(id) = id {
            self.policies.speeches.insert(id, speech);
        }
    }

    fn unknown_annotations(&mut self, source: &SourceText, statement: &Statement, policy: &Policy) {
        for (name, _) in policy.annotations().filter(|(name, _)| !ANNOTATIONS.contains(name)) {
            let hint = match nearest(name, &ANNOTATIONS) {
                Some(known) => format!("did you mean `@{known}`?"),
                None => "known are @id, @code and @message".to_owned(),
            };
            let place = annotation(source, statement, name);
            self.findings.at(FindingCode::UnknownAnnotation, source, place, format!("unknown annotation `@{name}`")).hint(hint);
        }
    }

    fn id(&mut self, source: &SourceText, statement: &Statement, policy: &Policy) -> Option<PolicyId> {
        let Some(text) = policy.annotation("id") else {
            let message = "the policy has no `@id`";
            self.findings
                .at(FindingCode::PolicyIdMissing, source, head(source, statement), message)
                .hint("put `@id(\"…\")` before it: facts name policies by it");
            return None;
        };
        let place = annotation(source, statement, "id");
        let parsed = Code::parse(text).ok().and_then(|code| PolicyId::parse(code.as_str()).ok());
        let Some(id) = parsed else {
            let hint = format!(
                "it must be 1 to {POLICY_ID_MAX_BYTES} characters of A-Z, a-z, 0-9, '.', '_' and '-', beginning with a letter or digit"
            );
            self.findings.at(FindingCode::PolicyIdInvalid, source, place, "the `@id` is not allowed").hint(hint);
            return None;
        };
        if self.policies.speeches.contains_key(&id) {
            self.findings
                .at(FindingCode::PolicyIdInvalid, source, place, format!("another policy of the hook has the `@id` `{id}`"))
                .hint("ids are unique in a hook");
            return None;
        }
        Some(id)
    }

    fn speech(&mut self, source: &SourceText, statement: &Statement, policy: &Policy) -> Speech {
        let mut speech = Speech::default();
        for name in ["code", "message"] {
            let Some(text) = policy.annotation(name) else { continue };
            let place = annotation(source, statement, name);
            if policy.effect() == Effect::Permit {
                self.findings
                    .at(FindingCode::InvalidAnnotation, source, place, format!("`@{name}` on a permit is never told"))
                    .hint("only a forbid denies; remove it");
            } else if name == "message" {
                if text.is_empty() || text.len() > MESSAGE_MAX_BYTES {
                    self.findings
                        .at(FindingCode::InvalidAnnotation, source, place, "the `@message` is not allowed")
                        .hint(format!("it must be 1 to {MESSAGE_MAX_BYTES} bytes long"));
                }
                speech.message = Some(text.to_owned());
            } else if codes::ALL.contains(&text) {
                self.findings
                    .at(FindingCode::Reserved, source, place, format!("the code `{text}` is reserved"))
                    .hint("Tollgate itself gives it; choose another");
            } else {
                match Code::parse(text) {
                    Ok(code) => speech.code = Some(code),
                    Err(error) => self
                        .findings
                        .at(FindingCode::InvalidAnnotation, source, place, "the `@code` is not allowed")
                        .hint(format!("it {error}")),
                }
            }
        }
        speech
    }

    fn validate(&mut self, schema: &CompiledSchema) {
        let Ok(set) = PolicySet::from_policies(self.policies.parsed.iter().cloned()) else {
            // Every id is unique by now.
            self.findings.about(FindingCode::NotCompiled, "", "the policies do not form a set");
            return;
        };
        let result = Validator::new(cedar_policy::Schema::clone(&schema.schema)).validate(&set, ValidationMode::Strict);
        let wrong: HashSet<_> = result.validation_errors().map(|error| error.policy_id().clone()).collect();
        for error in result.validation_errors() {
            self.validation(FindingCode::PolicyInvalid, error.policy_id(), error.into());
        }
        // A policy that is wrong draws warnings that say no more.
        for warning in result.validation_warnings().filter(|warning| !wrong.contains(warning.policy_id())) {
            self.validation(FindingCode::PolicyWarning, warning.policy_id(), warning.into());
        }
    }

    fn validation(&mut self, code: FindingCode, policy: &cedar_policy::PolicyId, error: cedar_policy::ffi::DetailedError) {
        if let Some((source, head)) = self.policies.places.get(policy) {
            cedar_errors::record(self.findings, code, source, head.start, error);
        } else {
            self.findings.about(code, "", error.message);
        }
    }
}

/// How deeply JSON nests. In Cedar's JSON form of a policy, every operator takes two levels.
fn depth(json: &serde_json::Value) -> usize {
    match json {
        serde_json::Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or_default(),
        serde_json::Value::Array(items) => items.iter().map(depth).max().unwrap_or_default(),
        serde_json::Value::Null | serde_json::Value::Bool(_) | serde_json::Value::Number(_) | serde_json::Value::String(_) => 0,
    }
}

/// The first line of a statement.
fn head(source: &SourceText, statement: &Statement) -> Range<usize> {
    let text = source.text.get(statement.range.clone()).unwrap_or_default();
    statement.range.start..statement.range.start + text.lines().next().unwrap_or_default().len()
}

/// Where an annotation stands.
fn annotation(source: &SourceText, statement: &Statement, name: &str) -> Range<usize> {
    let ends = statement.annotations.iter().skip(1).copied().chain([statement.range.end]);
    let found = statement.annotations.iter().copied().zip(ends).find(|(start, end)| {
        let text = source.text.get(*start..*end).unwrap_or_default();
        let rest = text.strip_prefix('@').map(str::trim_start).and_then(|text| text.strip_prefix(name));
        rest.is_some_and(|rest| !rest.starts_with(|next: char| next.is_alphanumeric() || next == '_'))
    });
    let Some((start, end)) = found else { return head(source, statement) };
    let text = source.text.get(start..end).unwrap_or_default();
    let mut quoted = text.match_indices('"').filter(|(at, _)| !text.get(..*at).is_some_and(|before| before.ends_with('\\')));
    let closing = quoted.nth(1).and_then(|(at, _)| text.get(at..)?.find(')').map(|bracket| at + bracket + 1));
    start..start + closing.unwrap_or(1)
}

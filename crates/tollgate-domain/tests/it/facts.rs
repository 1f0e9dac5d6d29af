//! The stored form of every kind of fact. A change here is a change of every journal there is.

use std::collections::BTreeMap;

use tollgate_domain::{
    ActivatedHook, Approval, CallRecord, Code, ConfigurationLoosened, Correlation, Decision, Digest, Enforcement, Evaluated,
    Evidence, Fact, FactKind, FailureKind, Finding, GenerationActivated, GenerationRef, GenerationRefused, HookEvaluation,
    HookId, IdentityKey, ManagedResource, NoticeRecord, NoticeResult, Outcome, Principal, Runtime, SidecarStarted, Source,
    Started, Subject, Terminal, Timestamp, ToolRef, Trace, VerdictKind,
};

use crate::sample;

fn at() -> Timestamp {
    Timestamp::from_micros(1_700_000_000_123_456)
}

fn code(text: &str) -> Code {
    text.parse().unwrap()
}

fn hook(text: &str) -> HookId {
    text.parse().unwrap()
}

fn text(text: &str) -> Correlation {
    Correlation::parse(text).unwrap()
}

fn full_subject() -> Subject {
    Subject {
        agent: sample::call("{}").agent,
        principal: Some(Principal { kind: "user".parse().unwrap(), id: "ann".parse().unwrap() }),
        tool: ToolRef {
            id: "mail.send".parse().unwrap(),
            provider: Some("mail".parse().unwrap()),
            external_name: Some("send_mail".parse().unwrap()),
        },
    }
}

fn full_started() -> Started {
    let runtime = Runtime {
        step_index: Some(3),
        call_index: Some(1),
        depth: 2,
        interactive: true,
        parent_run: Some("run-0".parse().unwrap()),
        traceparent: Some(text("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")),
        assistant_message_id: Some(text("message-9")),
        executor: Some(text("client")),
        tool_source: Some(text("mcp")),
        execution_target: Some(text("sandbox")),
        device: Some(text("laptop")),
        correlation: BTreeMap::from([(text("session"), text("s-1")), (text("thread"), text("t-1"))]),
    };
    let call = CallRecord {
        subject: full_subject(),
        arguments_bytes: 4_096,
        derived_with: Some(IdentityKey::from_bytes(&[1; 32]).unwrap().id()),
        claimed_groups: vec!["finance".parse().unwrap()],
        claimed_approval: Some(Approval { id: "approval-1".parse().unwrap(), approver: "bob".parse().unwrap(), at: at() }),
        claims_trusted: true,
        runtime,
    };
    Started { call, sidecar: "sidecar-1".parse().unwrap(), at: at() }
}

fn generation() -> GenerationRef {
    GenerationRef { bundle: "acme".parse().unwrap(), number: 12, digest: Digest::of(b"acme") }
}

fn full_evaluated() -> Evaluated {
    let denied = HookEvaluation {
        position: 1,
        hook: hook("payments"),
        order: -10,
        source: Source::Managed,
        enforcement: Enforcement::Enforce,
        resource: Some(ManagedResource { id: "hooks/payments".parse().unwrap(), generation: 4 }),
        digest: Some(Digest::of(b"payments")),
        verdict: VerdictKind::Denied,
        code: Some(code("over_limit")),
        evidence: Evidence { determining: vec!["limit".parse().unwrap()], erroring: vec!["broken".parse().unwrap()] },
        outcome: true,
        duration_us: 42,
    };
    let shadow = HookEvaluation {
        source: Source::Local,
        enforcement: Enforcement::Shadow,
        resource: None,
        outcome: false,
        evidence: Evidence::default(),
        ..denied.clone()
    };
    let trace = Trace {
        decision: Decision::Deny,
        decided_by: Some(hook("payments")),
        code: Some(code("over_limit")),
        hooks: vec![denied, shadow],
    };
    Evaluated {
        subject: full_subject(),
        generation: generation(),
        trace,
        valid_until: Some(at()),
        sidecar: "sidecar-1".parse().unwrap(),
        at: at(),
        duration_us: 77,
    }
}

fn terminal(reported: Option<Outcome>, governed: Outcome, notices: Vec<NoticeRecord>) -> Terminal {
    Terminal { reported, governed, notices, sidecar: "sidecar-1".parse().unwrap(), at: at(), duration_us: 1_500 }
}

fn notice(id: &str, result: NoticeResult) -> NoticeRecord {
    NoticeRecord { hook: hook(id), source: Source::Managed, result }
}

fn provider_failure() -> Outcome {
    Outcome::Failed {
        failure: FailureKind::Provider,
        code: None,
        error_type: Some("TimeoutError".to_owned()),
        error_message: Some("no answer".to_owned()),
    }
}

fn governed(failure: FailureKind, why: &str) -> Outcome {
    Outcome::Failed { failure, code: Some(code(why)), error_type: None, error_message: None }
}

/// Every kind of fact, as full and as empty as it can be.
fn every_fact() -> Vec<Fact> {
    let sidecar = || "sidecar-1".parse().unwrap();
    let succeeded = |tool_error| Outcome::Succeeded { tool_error };
    vec![
        Fact::ToolCallStarted(full_started()),
        Fact::ToolCallStarted(sample::started()),
        Fact::GovernanceEvaluated(full_evaluated()),
        Fact::GovernanceEvaluated(sample::evaluated(VerdictKind::Allowed, Some(5))),
        Fact::GovernanceEvaluated(Evaluated {
            trace: Trace { decision: Decision::Allow, decided_by: None, code: None, hooks: Vec::new() },
            ..sample::evaluated(VerdictKind::Allowed, None)
        }),
        terminal(Some(succeeded(true)), succeeded(true), vec![notice("a", NoticeResult::Notified)]).into_fact(),
        terminal(
            Some(succeeded(false)),
            governed(FailureKind::Hook, "audit_down"),
            vec![notice("a", NoticeResult::Failed(code("audit_down"))), notice("b", NoticeResult::NotNotified)],
        )
        .into_fact(),
        terminal(Some(provider_failure()), provider_failure(), Vec::new()).into_fact(),
        terminal(None, governed(FailureKind::Denied, "over_limit"), Vec::new()).into_fact(),
        terminal(None, Outcome::Cancelled { code: Some(code("interrupted")) }, Vec::new()).into_fact(),
        Fact::SidecarStarted(SidecarStarted {
            sidecar: sidecar(),
            version: "0.1.0".to_owned(),
            identity_key: IdentityKey::from_bytes(&[1; 32]).unwrap().id(),
            interrupted: 2,
            at: at(),
        }),
        Fact::ConfigurationLoosened(ConfigurationLoosened {
            key: "when_no_hook_matches".to_owned(),
            value: "allow".to_owned(),
            sidecar: sidecar(),
            at: at(),
        }),
        Fact::GenerationActivated(GenerationActivated {
            generation: generation(),
            revision: "9f1c".parse().unwrap(),
            serial: Some(7),
            replaced: Some(11),
            hooks: vec![ActivatedHook {
                resource: "hooks/payments".parse().unwrap(),
                generation: 4,
                digest: Digest::of(b"payments"),
            }],
            sidecar: sidecar(),
            at: at(),
        }),
        Fact::GenerationRefused(GenerationRefused {
            bundle: "acme".parse().unwrap(),
            revision: "9f1c".parse().unwrap(),
            code: code("invalid_bundle"),
            findings: vec![Finding { code: "TG0204".to_owned(), path: "hooks/payments/hook.yaml".to_owned(), line: 3 }],
            findings_count: 40,
            sidecar: sidecar(),
            at: at(),
        }),
    ]
}

#[test]
fn the_stored_form_of_every_kind_of_fact() {
    let stored = every_fact().iter().map(|fact| String::from_utf8(fact.encode().unwrap()).unwrap()).collect::<Vec<_>>();
    insta::assert_snapshot!(stored.join("\n"));
}

#[test]
fn every_kind_is_among_them() {
    let kinds: std::collections::HashSet<_> = every_fact().iter().map(Fact::kind).collect();
    assert_eq!(kinds.len(), FactKind::ALL.len());
}

#[test]
fn a_fact_is_read_back_as_it_was_written() {
    for fact in every_fact() {
        let stored = fact.encode().unwrap();
        let read = Fact::decode(&stored).unwrap();
        assert_eq!(read, fact);
        assert_eq!(read.encode().unwrap(), stored);
        assert_eq!((read.kind(), read.at()), (fact.kind(), fact.at()));
    }
}

#[test]
fn a_fact_of_a_later_version_with_one_more_field_is_still_read() {
    for fact in every_fact() {
        let stored = String::from_utf8(fact.encode().unwrap()).unwrap();
        let later = stored.replacen('{', r#"{"added_later":{"x":[1]},"#, 1);
        assert_eq!(Fact::decode(later.as_bytes()).unwrap(), fact);
    }
}

#[test]
fn bytes_that_are_no_fact_are_refused() {
    for bytes in [&b""[..], b"{}", br#"{"fact":"ToolCallApproved"}"#, br#"{"fact":"ToolCallStarted"}"#, b"\xff"] {
        assert!(Fact::decode(bytes).is_err());
    }
}

#[test]
fn g09_every_verdict_decision_and_source_has_its_stored_name() {
    let names = serde_json::to_string(&(
        [VerdictKind::Allowed, VerdictKind::Denied, VerdictKind::Failed, VerdictKind::Abstained],
        [Decision::Allow, Decision::Deny, Decision::Failed, Decision::Mocked],
        [Source::Managed, Source::Local, Source::Registered, Source::Environment, Source::Builtin],
        [FailureKind::Denied, FailureKind::Hook, FailureKind::Provider],
    ))
    .unwrap();
    insta::assert_snapshot!(names, @r#"
    [["ALLOWED","DENIED","FAILED","ABSTAINED"],["ALLOW","DENY","FAILED","MOCKED"],["MANAGED","LOCAL","REGISTERED","ENVIRONMENT","BUILTIN"],["DENIED","HOOK","PROVIDER"]]
    "#);
}

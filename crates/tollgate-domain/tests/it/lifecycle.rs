//! The life of an invocation: the whole table of states and facts.

use std::fmt::Write as _;

use tollgate_domain::{
    BundleName, ConfigurationLoosened, Digest, Fact, GenerationActivated, GenerationRef, GenerationRefused, InvocationState,
    Outcome, SidecarStarted, Terminal, Timestamp, VerdictKind,
};

use crate::sample::{evaluated, started};

const STATES: [InvocationState; 7] = [
    InvocationState::Absent,
    InvocationState::Started,
    InvocationState::Open,
    InvocationState::Refused,
    InvocationState::Completed,
    InvocationState::Failed,
    InvocationState::Cancelled,
];

fn terminal() -> Terminal {
    Terminal {
        reported: None,
        governed: Outcome::Cancelled { code: None },
        notices: Vec::new(),
        sidecar: "sidecar-1".parse().unwrap(),
        at: Timestamp::from_micros(3_000),
        duration_us: 0,
    }
}

/// Every fact, with both kinds of decision.
fn facts() -> Vec<(&'static str, Fact)> {
    let sidecar: tollgate_domain::SidecarId = "sidecar-1".parse().unwrap();
    let at = Timestamp::from_micros(1);
    let generation = GenerationRef { bundle: BundleName::unnamed(), number: 1, digest: Digest::of(b"") };
    let identity_key = tollgate_domain::IdentityKey::from_bytes(&[1; 32]).unwrap().id();
    vec![
        ("Started", Fact::ToolCallStarted(started())),
        ("Evaluated ALLOW", Fact::GovernanceEvaluated(evaluated(VerdictKind::Allowed, Some(9)))),
        ("Evaluated DENY", Fact::GovernanceEvaluated(evaluated(VerdictKind::Denied, None))),
        ("Evaluated FAILED", Fact::GovernanceEvaluated(evaluated(VerdictKind::Failed, None))),
        ("Completed", Fact::ToolCallCompleted(terminal())),
        ("Failed", Fact::ToolCallFailed(terminal())),
        ("Cancelled", Fact::ToolCallCancelled(terminal())),
        (
            "SidecarStarted",
            Fact::SidecarStarted(SidecarStarted {
                sidecar: sidecar.clone(),
                version: String::new(),
                identity_key,
                interrupted: 0,
                at,
            }),
        ),
        (
            "ConfigurationLoosened",
            Fact::ConfigurationLoosened(ConfigurationLoosened {
                key: String::new(),
                value: String::new(),
                sidecar: sidecar.clone(),
                at,
            }),
        ),
        (
            "GenerationActivated",
            Fact::GenerationActivated(GenerationActivated {
                generation,
                revision: "first".parse().unwrap(),
                serial: None,
                replaced: None,
                hooks: Vec::new(),
                sidecar: sidecar.clone(),
                at,
            }),
        ),
        (
            "GenerationRefused",
            Fact::GenerationRefused(GenerationRefused {
                bundle: BundleName::unnamed(),
                revision: "first".parse().unwrap(),
                code: "broken".parse().unwrap(),
                findings: Vec::new(),
                findings_count: 0,
                sidecar,
                at,
            }),
        ),
    ]
}

#[test]
fn b12_every_state_and_every_fact() {
    let mut table = String::new();
    for (name, fact) in facts() {
        for state in STATES {
            let after = state.step(&fact).map_or("-", InvocationState::as_str);
            writeln!(table, "{:<10}+ {name:<22}= {after}", state.as_str()).unwrap();
        }
    }
    insta::assert_snapshot!(table, @"
    absent    + Started               = started
    started   + Started               = -
    open      + Started               = -
    refused   + Started               = -
    completed + Started               = -
    failed    + Started               = -
    cancelled + Started               = -
    absent    + Evaluated ALLOW       = -
    started   + Evaluated ALLOW       = open
    open      + Evaluated ALLOW       = -
    refused   + Evaluated ALLOW       = -
    completed + Evaluated ALLOW       = -
    failed    + Evaluated ALLOW       = -
    cancelled + Evaluated ALLOW       = -
    absent    + Evaluated DENY        = -
    started   + Evaluated DENY        = refused
    open      + Evaluated DENY        = -
    refused   + Evaluated DENY        = -
    completed + Evaluated DENY        = -
    failed    + Evaluated DENY        = -
    cancelled + Evaluated DENY        = -
    absent    + Evaluated FAILED      = -
    started   + Evaluated FAILED      = refused
    open      + Evaluated FAILED      = -
    refused   + Evaluated FAILED      = -
    completed + Evaluated FAILED      = -
    failed    + Evaluated FAILED      = -
    cancelled + Evaluated FAILED      = -
    absent    + Completed             = -
    started   + Completed             = -
    open      + Completed             = completed
    refused   + Completed             = -
    completed + Completed             = -
    failed    + Completed             = -
    cancelled + Completed             = -
    absent    + Failed                = -
    started   + Failed                = -
    open      + Failed                = failed
    refused   + Failed                = failed
    completed + Failed                = -
    failed    + Failed                = -
    cancelled + Failed                = -
    absent    + Cancelled             = -
    started   + Cancelled             = cancelled
    open      + Cancelled             = cancelled
    refused   + Cancelled             = cancelled
    completed + Cancelled             = -
    failed    + Cancelled             = -
    cancelled + Cancelled             = -
    absent    + SidecarStarted        = -
    started   + SidecarStarted        = -
    open      + SidecarStarted        = -
    refused   + SidecarStarted        = -
    completed + SidecarStarted        = -
    failed    + SidecarStarted        = -
    cancelled + SidecarStarted        = -
    absent    + ConfigurationLoosened = -
    started   + ConfigurationLoosened = -
    open      + ConfigurationLoosened = -
    refused   + ConfigurationLoosened = -
    completed + ConfigurationLoosened = -
    failed    + ConfigurationLoosened = -
    cancelled + ConfigurationLoosened = -
    absent    + GenerationActivated   = -
    started   + GenerationActivated   = -
    open      + GenerationActivated   = -
    refused   + GenerationActivated   = -
    completed + GenerationActivated   = -
    failed    + GenerationActivated   = -
    cancelled + GenerationActivated   = -
    absent    + GenerationRefused     = -
    started   + GenerationRefused     = -
    open      + GenerationRefused     = -
    refused   + GenerationRefused     = -
    completed + GenerationRefused     = -
    failed    + GenerationRefused     = -
    cancelled + GenerationRefused     = -
    ");
}

#[test]
fn nothing_follows_an_end() {
    for state in STATES.into_iter().filter(|state| state.is_terminal()) {
        for (name, fact) in facts() {
            let error = state.step(&fact).unwrap_err();
            assert_eq!((error.state, error.fact), (state, fact.kind()), "{name}");
        }
    }
}

#[test]
fn a_state_is_read_back_by_its_name() {
    for state in STATES {
        assert_eq!(InvocationState::from_name(state.as_str()), Some(state));
    }
    assert_eq!(InvocationState::from_name("Open"), None);
}

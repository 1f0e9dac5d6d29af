//! Calls, hooks and facts to test with.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use async_trait::async_trait;
use tollgate_domain::{
    Agent, Arguments, Bundle, Call, CallRecord, Catalogue, Claims, Digest, Enforcement, Evaluated, Evidence, GenerationRef, Hook,
    HookAnswer, HookDefinition, HookEvaluation, HookInput, OwnerKind, Ownership, ResourceId, RunKey, Runtime, Selectors, Source,
    Started, Subject, Timestamp, ToolAttributes, ToolEffect, ToolRef, Trace, Verdict, VerdictKind, WhenNoHookMatches,
};

pub(crate) fn run() -> RunKey {
    RunKey {
        tenant: "acme".parse().unwrap(),
        workspace: "support".parse().unwrap(),
        owner_kind: OwnerKind::Run,
        owner: "desk".parse().unwrap(),
        run: "run-1".parse().unwrap(),
    }
}

/// A call without ids of its own.
pub(crate) fn call(arguments: &str) -> Call {
    Call {
        run: run(),
        agent: Agent { id: "helper".parse().unwrap(), revision: "7".parse().unwrap() },
        tool: ToolRef { id: "mail.send".parse().unwrap(), provider: None, external_name: None },
        principal: None,
        tool_call: None,
        call_key: None,
        invocation: None,
        arguments: Arguments::parse(arguments.as_bytes()).unwrap(),
        claims: Claims::default(),
        runtime: Runtime::default(),
    }
}

/// A hook that nobody asks in these tests.
#[derive(Debug)]
pub(crate) struct Silent;

#[async_trait]
impl Hook for Silent {
    async fn evaluate(&self, _input: HookInput<'_>) -> HookAnswer {
        Verdict::Allowed.into()
    }
}

pub(crate) fn hook(id: &str, order: i32, ownership: Ownership) -> HookDefinition {
    HookDefinition {
        id: id.parse().unwrap(),
        display_name: id.to_owned(),
        order,
        enforcement: Enforcement::Enforce,
        ownership,
        selectors: Selectors::default(),
        digest: Digest::of(id.as_bytes()),
        hook: Arc::new(Silent),
    }
}

pub(crate) fn organisation(id: &str) -> Ownership {
    Ownership::Organisation { resource: ResourceId::parse(&format!("hooks/{id}")).unwrap() }
}

pub(crate) fn workspace(workspace: &str, id: &str) -> Ownership {
    Ownership::Workspace {
        resource: ResourceId::parse(&format!("workspaces/acme/{workspace}/hooks/{id}")).unwrap(),
        tenant: "acme".parse().unwrap(),
        workspace: workspace.parse().unwrap(),
    }
}

pub(crate) fn attributes(effect: ToolEffect) -> ToolAttributes {
    ToolAttributes { effect, open_world: false, requires_approval: false, labels: BTreeSet::new() }
}

pub(crate) fn bundle(hooks: Vec<HookDefinition>) -> Bundle {
    Bundle {
        name: "acme".parse().unwrap(),
        serial: None,
        revision: "first".parse().unwrap(),
        digest: Digest::of(b"first"),
        catalogue: Catalogue { tools: HashMap::new(), unknown_of: HashMap::new(), unknown: Some(attributes(ToolEffect::Write)) },
        hooks,
    }
}

pub(crate) fn entry(position: u32, verdict: VerdictKind, enforcement: Enforcement) -> HookEvaluation {
    let code = (verdict != VerdictKind::Allowed).then(|| format!("code-{position}").parse().unwrap());
    HookEvaluation {
        position,
        hook: format!("hook-{position}").parse().unwrap(),
        order: 0,
        source: Source::Managed,
        enforcement,
        resource: None,
        digest: None,
        verdict,
        code,
        evidence: Evidence::default(),
        outcome: false,
        duration_us: 0,
    }
}

pub(crate) fn subject() -> Subject {
    let call = call("{}");
    Subject { agent: call.agent, principal: call.principal, tool: call.tool }
}

pub(crate) fn started() -> Started {
    Started {
        call: CallRecord::of(&call("{}"), None, false),
        sidecar: "sidecar-1".parse().unwrap(),
        at: Timestamp::from_micros(1_000),
    }
}

/// A decision of one enforced hook, of which an ALLOW is valid until `valid_until`.
pub(crate) fn evaluated(verdict: VerdictKind, valid_until: Option<i64>) -> Evaluated {
    Evaluated {
        subject: subject(),
        generation: GenerationRef { bundle: "acme".parse().unwrap(), number: 3, digest: Digest::of(b"acme") },
        trace: Trace::decide(vec![entry(1, verdict, Enforcement::Enforce)], WhenNoHookMatches::Deny),
        valid_until: valid_until.map(Timestamp::from_micros),
        sidecar: "sidecar-1".parse().unwrap(),
        at: Timestamp::from_micros(2_000),
        duration_us: 1_000,
    }
}

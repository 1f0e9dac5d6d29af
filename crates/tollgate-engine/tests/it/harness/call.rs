//! Calls to ask about.

use tollgate_domain::{Agent, Arguments, Call, Claims, OwnerKind, RunKey, Runtime, ToolRef};

/// The run that tests ask about unless they say otherwise.
pub(crate) fn run() -> RunKey {
    RunKey {
        tenant: "acme".parse().unwrap(),
        workspace: "support".parse().unwrap(),
        owner_kind: OwnerKind::Run,
        owner: "desk".parse().unwrap(),
        run: "run-1".parse().unwrap(),
    }
}

/// A call of `mail.send` as invocation `invocation` of tool call `call-1`.
pub(crate) fn call(invocation: &str) -> Call {
    Call {
        run: run(),
        agent: Agent { id: "helper".parse().unwrap(), revision: "7".parse().unwrap() },
        tool: ToolRef { id: "mail.send".parse().unwrap(), provider: None, external_name: None },
        principal: None,
        tool_call: Some("call-1".parse().unwrap()),
        call_key: None,
        invocation: Some(invocation.parse().unwrap()),
        arguments: Arguments::parse(br#"{"to":"ann"}"#).unwrap(),
        claims: Claims::default(),
        runtime: Runtime::default(),
    }
}

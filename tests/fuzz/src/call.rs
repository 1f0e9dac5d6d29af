//! One call to vary, and a hook's answer to it.

use std::{
    pin::pin,
    task::{Context, Poll, Waker},
};

use tollgate_domain::{
    Agent, Arguments, Call, Claims, Hook, HookAnswer, HookInput, OwnerKind, RunKey, Runtime, Timestamp, ToolFacts, ToolId,
    ToolRef,
};

/// The call of a tool with these arguments.
pub(crate) fn of(tool: ToolId, arguments: Arguments) -> Call {
    Call {
        run: RunKey {
            tenant: "acme".parse().unwrap(),
            workspace: "prod".parse().unwrap(),
            owner_kind: OwnerKind::Run,
            owner: "owner".parse().unwrap(),
            run: "run".parse().unwrap(),
        },
        agent: Agent { id: "bot".parse().unwrap(), revision: "1".parse().unwrap() },
        tool: ToolRef { id: tool, provider: None, external_name: None },
        principal: None,
        tool_call: None,
        call_key: None,
        invocation: None,
        arguments,
        claims: Claims::default(),
        runtime: Runtime::default(),
    }
}

/// What a hook that decides in this process says of a call.
pub(crate) fn ask(hook: &dyn Hook, call: &Call, tool: &ToolFacts) -> HookAnswer {
    let input = HookInput {
        call,
        tool,
        tool_call: &"tool-call".parse().unwrap(),
        invocation: &"invocation".parse().unwrap(),
        attempt: 1,
        claims: Some(&call.claims),
        now: Timestamp::from_micros(1_772_366_400_000_000),
    };
    match pin!(hook.evaluate(input)).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => answer,
        Poll::Pending => panic!("a hook of this process waited"),
    }
}

//! One evaluation of a hook before it serves: what is made at first use is made now.

use tollgate_domain::{
    Agent, AgentId, AgentRevision, Arguments, Call, Claims, HookInput, InvocationId, OwnerId, OwnerKind, RunId, RunKey, Runtime,
    Selectors, TenantId, Timestamp, ToolCallId, ToolFacts, ToolRef, WorkspaceId,
};

use crate::{files::ToolsFile, hook::CedarHook};

/// Judges a call that nobody makes, and forgets the verdict.
pub(super) fn up(hook: &CedarHook, tools: &ToolsFile, selectors: &Selectors) {
    let tool = tools.tools.iter().find(|(id, tool)| selectors.reach(id, &tool.provider));
    let Some((id, declared)) = tool else { return };
    let facts = ToolFacts {
        id: id.clone(),
        provider: Some(declared.provider.clone()),
        external_name: Some(declared.external_name.clone()),
        attributes: declared.attributes.clone(),
        declared: true,
    };
    let tool = ToolRef { id: id.clone(), provider: None, external_name: None };
    if let Some((call, tool_call, invocation)) = call(tool) {
        let input = HookInput {
            call: &call,
            tool: &facts,
            tool_call: &tool_call,
            invocation: &invocation,
            attempt: 1,
            claims: None,
            now: Timestamp::default(),
        };
        drop(hook.judge(&input));
    }
}

fn call(tool: ToolRef) -> Option<(Call, ToolCallId, InvocationId)> {
    const NAME: &str = "warm-up";
    let run = RunKey {
        tenant: TenantId::parse(NAME).ok()?,
        workspace: WorkspaceId::parse(NAME).ok()?,
        owner_kind: OwnerKind::Run,
        owner: OwnerId::parse(NAME).ok()?,
        run: RunId::parse(NAME).ok()?,
    };
    let call = Call {
        run,
        agent: Agent { id: AgentId::parse(NAME).ok()?, revision: AgentRevision::parse(NAME).ok()? },
        tool,
        principal: None,
        tool_call: None,
        call_key: None,
        invocation: None,
        arguments: Arguments::parse(b"{}").ok()?,
        claims: Claims::default(),
        runtime: Runtime::default(),
    };
    Some((call, ToolCallId::parse(NAME).ok()?, InvocationId::parse(NAME).ok()?))
}

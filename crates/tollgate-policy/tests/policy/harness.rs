//! A small bundle to vary, and calls to judge by it.

use std::{collections::BTreeMap, fs, path::Path, sync::Arc};

use tempfile::TempDir;
use tollgate_domain::{
    Agent, AgentId, AgentRevision, Approval, ApprovalId, Arguments, Bundle, Call, Claims, GroupId, Hook, HookAnswer, HookInput,
    InvocationId, OwnerId, OwnerKind, Principal, PrincipalId, PrincipalKind, RunId, RunKey, Runtime, TenantId, Timestamp,
    ToolCallId, ToolId, ToolRef, Verdict, WorkspaceId,
};

pub(crate) const SCHEMA: &str = r#"namespace Tollgate {
  entity Tenant;
  entity Workspace in [Tenant] { "environment": String };
  entity Group in [Group, Tenant];
  entity User in [Group, Tenant] { "mfa"?: Bool, "limit"?: decimal } tags String;
  entity Agent in [Group, Workspace, Tenant] { "tier": Long, "owner"?: User };
  entity ToolProvider in [Tenant] { "trust": Long };
  entity Tool in [ToolProvider] { "effect": String, "open_world": Bool, "requires_approval": Bool, "labels": Set<String> };
  type Call = { "id": String, "attempt": Long, "depth": Long, "interactive": Bool, "args_bytes": Long, "step_index"?: Long };
  type Env = { "tenant": Tenant, "workspace": Workspace, "now": datetime };
  type Approval = { "id": String, "approver": String, "at": datetime };
  action "InvokeTool" appliesTo {
    principal: [Agent], resource: [Tool],
    context: { "call": Call, "env": Env, "on_behalf_of"?: User, "approval"?: Approval, "runtime": { "executor"?: String, "correlation": { "thread"?: String } } }
  };
  action "CallTool";
}
"#;

pub(crate) const TOOLS: &str = "providers:
  fs: { trust: 1 }
  pay: { trust: 3, tenant: acme }
tools:
  fs.read: { provider: fs, external_name: read, effect: read }
  fs.delete: { provider: fs, external_name: delete, effect: destructive, labels: [danger] }
  pay.transfer: { provider: pay, external_name: transfer, effect: write, open_world: true, requires_approval: true }
";

pub(crate) const ENTITIES: &str = r#"[
  {"uid": {"type": "Tollgate::Tenant", "id": "acme"}, "attrs": {}, "parents": []},
  {"uid": {"type": "Tollgate::Workspace", "id": "acme/prod"}, "attrs": {"environment": "production"}, "parents": [{"type": "Tollgate::Tenant", "id": "acme"}]},
  {"uid": {"type": "Tollgate::Group", "id": "staff"}, "attrs": {}, "parents": []},
  {"uid": {"type": "Tollgate::Group", "id": "admins"}, "attrs": {}, "parents": [{"type": "Tollgate::Group", "id": "staff"}]},
  {"uid": {"type": "Tollgate::User", "id": "ann"}, "attrs": {"mfa": false}, "parents": [{"type": "Tollgate::Group", "id": "staff"}], "tags": {"team": "core"}},
  {"uid": {"type": "Tollgate::User", "id": "boss"}, "attrs": {"mfa": true}, "parents": [{"type": "Tollgate::Group", "id": "admins"}]},
  {"uid": {"type": "Tollgate::Agent", "id": "bot"}, "attrs": {"tier": 2, "owner": {"__entity": {"type": "Tollgate::User", "id": "boss"}}}, "parents": [{"type": "Tollgate::Workspace", "id": "acme/prod"}]}
]
"#;

/// Files of a bundle that has one hook, `main`, which permits everything.
pub(crate) fn files() -> BTreeMap<String, String> {
    [
        ("bundle.yaml", "format: tollgate/v1\nname: test\n"),
        ("schema.cedarschema", SCHEMA),
        ("tools.yaml", TOOLS),
        ("entities.json", ENTITIES),
        ("hooks/main/hook.yaml", "id: main\nkind: cedar\norder: 0\n"),
        ("hooks/main/main.cedar", "@id(\"all\")\npermit (principal, action, resource);\n"),
    ]
    .map(|(path, text)| (path.to_owned(), text.to_owned()))
    .into()
}

/// The bundle's files with some in the place of others.
pub(crate) fn with(changes: &[(&str, &str)]) -> BTreeMap<String, String> {
    let mut files = files();
    files.extend(changes.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())));
    files
}

pub(crate) fn write(root: &Path, files: &BTreeMap<String, String>) {
    for (path, text) in files {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

pub(crate) fn directory(files: &BTreeMap<String, String>) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), files);
    directory
}

#[track_caller]
pub(crate) fn load(files: &BTreeMap<String, String>) -> Bundle {
    let directory = directory(files);
    tollgate_policy::load(directory.path()).unwrap_or_else(|report| panic!("{}", report.render(false)))
}

/// The hook `main` with these policies and without arguments.
#[track_caller]
pub(crate) fn hook(policies: &str) -> Harness {
    Harness::of(load(&with(&[("hooks/main/main.cedar", policies)])))
}

/// The hook `main` for `pay.transfer`, with this input type and these policies.
#[track_caller]
pub(crate) fn typed(input: &str, policies: &str) -> Harness {
    let schema = format!(
        "namespace Tollgate {{ action \"pay/transfer\" in [Action::\"CallTool\"] appliesTo {{ principal: [Agent], resource: [Tool], context: {{ \"call\": Call, \"input\": {input}, \"nulls\": Set<String> }} }}; }}"
    );
    Harness::of(load(&with(&[
        ("hooks/main/hook.yaml", "id: main\nkind: cedar\norder: 0\ninput: typed\nselectors: { tools: [pay.transfer] }\n"),
        ("hooks/main/schema.cedarschema", &schema),
        ("hooks/main/main.cedar", policies),
    ])))
}

pub(crate) struct Harness {
    pub(crate) bundle: Bundle,
    pub(crate) hook: Arc<dyn Hook>,
}

impl Harness {
    pub(crate) fn of(bundle: Bundle) -> Self {
        let hook = bundle.hooks.iter().find(|hook| hook.id.as_str() == "main").unwrap().hook.clone();
        Self { bundle, hook }
    }

    pub(crate) fn ask(&self, asked: &Asked) -> HookAnswer {
        let tool = self.bundle.catalogue.find(&asked.call.tool).unwrap();
        self.ask_of(asked, &tool)
    }

    pub(crate) fn ask_of(&self, asked: &Asked, tool: &tollgate_domain::ToolFacts) -> HookAnswer {
        let (tool_call, invocation) = (ToolCallId::parse("tc-1").unwrap(), InvocationId::parse("inv-1").unwrap());
        let input = HookInput {
            call: &asked.call,
            tool,
            tool_call: &tool_call,
            invocation: &invocation,
            attempt: 1,
            claims: asked.trusted.then_some(&asked.call.claims),
            now: Timestamp::from_micros(1_772_366_400_000_000),
        };
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(self.hook.evaluate(input))
    }

    /// The verdict in one line: `allowed`, `denied <code>`, `failed <code>`.
    pub(crate) fn verdict(&self, asked: &Asked) -> String {
        say(&self.ask(asked).verdict)
    }
}

pub(crate) fn say(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Allowed => "allowed".to_owned(),
        Verdict::Denied { code, .. } => format!("denied {code}"),
        Verdict::Failed { code } => format!("failed {code}"),
        Verdict::Abstained { code } => format!("abstained {code}"),
    }
}

/// A call under construction.
pub(crate) struct Asked {
    pub(crate) call: Call,
    pub(crate) trusted: bool,
}

pub(crate) fn call(tool: &str) -> Asked {
    let run = RunKey {
        tenant: TenantId::parse("acme").unwrap(),
        workspace: WorkspaceId::parse("prod").unwrap(),
        owner_kind: OwnerKind::Run,
        owner: OwnerId::parse("owner").unwrap(),
        run: RunId::parse("run").unwrap(),
    };
    let call = Call {
        run,
        agent: Agent { id: AgentId::parse("bot").unwrap(), revision: AgentRevision::parse("1").unwrap() },
        tool: ToolRef { id: ToolId::parse(tool).unwrap(), provider: None, external_name: None },
        principal: None,
        tool_call: None,
        call_key: None,
        invocation: None,
        arguments: Arguments::parse(b"{}").unwrap(),
        claims: Claims::default(),
        runtime: Runtime::default(),
    };
    Asked { call, trusted: false }
}

impl Asked {
    pub(crate) fn agent(mut self, id: &str) -> Self {
        self.call.agent.id = AgentId::parse(id).unwrap();
        self
    }

    pub(crate) fn workspace(mut self, id: &str) -> Self {
        self.call.run.workspace = WorkspaceId::parse(id).unwrap();
        self
    }

    pub(crate) fn principal(mut self, kind: &str, id: &str) -> Self {
        self.call.principal = Some(Principal { kind: PrincipalKind::parse(kind).unwrap(), id: PrincipalId::parse(id).unwrap() });
        self
    }

    pub(crate) fn arguments(mut self, json: &str) -> Self {
        self.call.arguments = Arguments::parse(json.as_bytes()).unwrap();
        self
    }

    pub(crate) fn groups(mut self, groups: &[&str]) -> Self {
        self.call.claims.groups = groups.iter().map(|group| GroupId::parse(group).unwrap()).collect();
        self
    }

    pub(crate) fn attributes(mut self, json: &str) -> Self {
        self.call.claims.attributes = Some(Arguments::parse(json.as_bytes()).unwrap());
        self
    }

    pub(crate) fn approved(mut self) -> Self {
        self.call.claims.approval = Some(Approval {
            id: ApprovalId::parse("ok-1").unwrap(),
            approver: PrincipalId::parse("boss").unwrap(),
            at: Timestamp::from_micros(1_772_366_000_000_000),
        });
        self
    }

    pub(crate) fn trusted(mut self) -> Self {
        self.trusted = true;
        self
    }
}

pub(crate) fn report(changes: &[(&str, &str)]) -> tollgate_policy::Report {
    tollgate_policy::check(directory(&with(changes)).path())
}

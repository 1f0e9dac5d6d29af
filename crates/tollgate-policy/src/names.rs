//! The fixed names of the mapping, and the only place where entity ids are made.
//!
//! Ids are data: they are never put into Cedar text, so no id can be read as syntax.

use std::sync::LazyLock;

use cedar_policy::{EntityId, EntityTypeName, EntityUid, PolicyId};

/// The namespace of everything that the mapping names.
pub(crate) const NAMESPACE: &str = "Tollgate";
/// The action of hooks that see no argument.
pub(crate) const INVOKE_TOOL: &str = "InvokeTool";

macro_rules! entity_types {
    ($($constant:ident, $type_name:ident, $make:ident = $name:literal;)+) => {$(
        pub(crate) const $constant: &str = $name;
        static $type_name: LazyLock<EntityTypeName> = LazyLock::new(|| type_name($name));

        pub(crate) fn $make(id: &str) -> EntityUid {
            EntityUid::from_type_name_and_id($type_name.clone(), EntityId::new(id))
        }
    )+};
}

entity_types! {
    TENANT, TENANT_TYPE, tenant = "Tollgate::Tenant";
    WORKSPACE, WORKSPACE_TYPE, workspace = "Tollgate::Workspace";
    GROUP, GROUP_TYPE, group = "Tollgate::Group";
    USER, USER_TYPE, user = "Tollgate::User";
    AGENT, AGENT_TYPE, agent = "Tollgate::Agent";
    PROVIDER, PROVIDER_TYPE, provider = "Tollgate::ToolProvider";
    TOOL, TOOL_TYPE, tool = "Tollgate::Tool";
    ACTION, ACTION_TYPE, action = "Tollgate::Action";
}

#[expect(clippy::expect_used, reason = "called with the constants above only, each of which every test parses")]
fn type_name(name: &str) -> EntityTypeName {
    name.parse().expect("a valid entity type name")
}

/// A policy's id as Cedar's type.
pub(crate) fn policy(id: &str) -> PolicyId {
    PolicyId::new(id)
}

/// The id of a tool's typed action. Provider ids hold no `/`, so no two tools share one.
pub(crate) fn typed_action(provider: &str, external_name: &str) -> String {
    format!("{provider}/{external_name}")
}

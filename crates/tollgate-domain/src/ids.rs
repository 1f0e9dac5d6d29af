//! Identifiers: bounded, validated once, cheap to clone.
//!
//! An id is 1 to [`ID_MAX_BYTES`] bytes of UTF-8 without control characters. Two ids are equal when
//! their bytes are: nothing is trimmed, folded or normalised, so that no variant of an id can dodge
//! a policy that names it.

use std::{fmt, str::FromStr, sync::Arc};

use serde::{Deserialize, Deserializer, Serialize};

use crate::limits::{CODE_MAX_BYTES, ID_MAX_BYTES};

/// Why a text is no id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidId {
    /// No bytes at all.
    #[error("must not be empty")]
    Empty,
    /// More than [`ID_MAX_BYTES`].
    #[error("is {0} bytes long; at most {ID_MAX_BYTES} are allowed")]
    TooLong(usize),
    /// A control character, which would corrupt logs and terminals.
    #[error("contains a control character")]
    Control,
    /// A `/` where it separates parts, as in `provider/tool`.
    #[error("contains '/', which separates a provider from its tool")]
    Slash,
}

fn check(text: &str) -> Result<(), InvalidId> {
    if text.is_empty() {
        Err(InvalidId::Empty)
    } else if text.len() > ID_MAX_BYTES {
        Err(InvalidId::TooLong(text.len()))
    } else if text.chars().any(char::is_control) {
        Err(InvalidId::Control)
    } else {
        Ok(())
    }
}

fn check_provider(text: &str) -> Result<(), InvalidId> {
    if text.contains('/') { Err(InvalidId::Slash) } else { check(text) }
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident: $check:path => $error:ty;)+) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Validates a text as this kind of id.
            pub fn parse(text: &str) -> Result<Self, $error> {
                $check(text)?;
                Ok(Self(Arc::from(text)))
            }

            /// The id as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", &*self.0)
            }
        }

        impl FromStr for $name {
            type Err = $error;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Self::parse(text)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                Self::parse(&text).map_err(serde::de::Error::custom)
            }
        }
    )+};
}

ids! {
    /// The organisation's customer or division that owns workspaces.
    TenantId: check => InvalidId;
    /// A workspace within a tenant.
    WorkspaceId: check => InvalidId;
    /// The agent deployment or flow that owns a run.
    OwnerId: check => InvalidId;
    /// One execution of an owner.
    RunId: check => InvalidId;
    /// The agent that asks.
    AgentId: check => InvalidId;
    /// The revision of the agent's definition.
    AgentRevision: check => InvalidId;
    /// A tool's canonical id, the same whatever provider serves it under whatever name.
    ToolId: check => InvalidId;
    /// Who serves a tool. Contains no `/`.
    ProviderId: check_provider => InvalidId;
    /// The name under which a provider offers a tool.
    ExternalToolName: check => InvalidId;
    /// One logical intended effect; survives retry, replay and resume.
    ToolCallId: check => InvalidId;
    /// One physical attempt of a tool call.
    InvocationId: check => InvalidId;
    /// Sets apart two intended calls with equal arguments, where the tool call id is derived.
    CallKey: check => InvalidId;
    /// An opaque text of the runtime, for correlation.
    Correlation: check => InvalidId;
    /// Who the agent acts for.
    PrincipalId: check => InvalidId;
    /// What kind of identity a principal is, such as `user` or `service`.
    PrincipalKind: check => InvalidId;
    /// A group that a call claims for its principal.
    GroupId: check => InvalidId;
    /// A human's consent, given outside the chain.
    ApprovalId: check => InvalidId;
    /// One decision maker in the chain.
    HookId: check => InvalidId;
    /// The place of a managed hook in its bundle, such as `hooks/payments`.
    ResourceId: check => InvalidId;
    /// The `@id` of a Cedar policy.
    PolicyId: check => InvalidId;
    /// The name of a bundle; generations are numbered within it.
    BundleName: check => InvalidId;
    /// A source's name for its content: a commit of Git, or the digest of a directory.
    Revision: check => InvalidId;
    /// The sidecar that wrote a fact.
    SidecarId: check => InvalidId;
    /// A stable, machine-readable reason: 1 to 128 of `[A-Za-z0-9][A-Za-z0-9._-]*`.
    Code: check_code => InvalidCode;
}

/// Why a text is no [`Code`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be 1 to {CODE_MAX_BYTES} characters of A-Z, a-z, 0-9, '.', '_' and '-', beginning with a letter or digit")]
pub struct InvalidCode;

fn check_code(text: &str) -> Result<(), InvalidCode> {
    let first = text.bytes().next().ok_or(InvalidCode)?;
    let tail = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
    if first.is_ascii_alphanumeric() && tail && text.len() <= CODE_MAX_BYTES { Ok(()) } else { Err(InvalidCode) }
}

impl Code {
    /// A code that the product itself defines. Only for constants, which a test parses one by one.
    pub(crate) fn builtin(text: &'static str) -> Self {
        debug_assert!(check_code(text).is_ok());
        Self(Arc::from(text))
    }
}

impl HookId {
    /// An id that the product itself defines.
    pub(crate) fn literal(text: &'static str) -> Self {
        debug_assert!(check(text).is_ok());
        Self(Arc::from(text))
    }
}

impl BundleName {
    /// The name under which content is refused that told none.
    #[must_use]
    pub fn unnamed() -> Self {
        Self(Arc::from("unnamed"))
    }
}

impl InvocationId {
    /// An id from a UUID that the caller of this function made (version 7, so that ids rise with time).
    #[must_use]
    pub fn from_uuid(uuid: uuid::Uuid) -> Self {
        Self(Arc::from(uuid.to_string()))
    }
}

impl ToolCallId {
    /// An id that [`crate::IdentityKey`] derived: always within the limits.
    pub(crate) fn derived(text: &str) -> Self {
        debug_assert!(check(text).is_ok());
        Self(Arc::from(text))
    }
}

//! Verdicts of hooks, and what a chain of them comes to.

use serde::{Deserialize, Serialize};

use crate::{
    digest::Digest,
    ids::{Code, HookId, PolicyId, ResourceId},
    pass::Message,
};

/// What one hook says.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// The call may go on.
    Allowed,
    /// The call must not be made.
    Denied {
        /// Why, for machines.
        code: Code,
        /// Why, for the caller; told, never kept.
        message: Option<Message>,
    },
    /// The hook could not decide; never lets the call through.
    Failed {
        /// Why, for machines.
        code: Code,
    },
    /// A remote hook gave no verdict; neither lets the call through nor stops it.
    Abstained {
        /// Why, for machines.
        code: Code,
    },
}

/// The kind of a [`Verdict`], as it is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum VerdictKind {
    /// The call may go on.
    Allowed,
    /// The call must not be made.
    Denied,
    /// The hook could not decide.
    Failed,
    /// No verdict.
    Abstained,
}

/// What the chain comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Decision {
    /// The tool may be run, once.
    Allow,
    /// The tool must not be run.
    Deny,
    /// It could not be decided; the tool must not be run.
    Failed,
    /// The tool must not be run; a mock's result stands in for it.
    Mocked,
}

/// Whether a hook's verdict counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Enforcement {
    /// It counts.
    #[default]
    Enforce,
    /// It is recorded only.
    Shadow,
}

/// Where a hook comes from; the bands of the chain in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Source {
    /// The bundle.
    Managed,
    /// The sidecar's configuration.
    Local,
    /// Registered for the operation.
    Registered,
    /// The sidecar's environment.
    Environment,
    /// Tollgate itself: the pseudo hooks.
    Builtin,
}

/// The policies that a Cedar hook's verdict rests on. Their ids are configuration, so they may be kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// Ids of the policies that determined the verdict, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub determining: Vec<PolicyId>,
    /// Ids of the policies whose evaluation erred, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub erroring: Vec<PolicyId>,
}

/// A managed hook as a versioned resource of its bundle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManagedResource {
    /// Its place in the bundle.
    pub id: ResourceId,
    /// Its own generation, which rises with every change of its content.
    pub generation: u64,
}

/// One entry of a trace: what one hook said, without anything that the call carried.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookEvaluation {
    /// Its position among the hooks asked, from 1.
    pub position: u32,
    /// The hook.
    pub hook: HookId,
    /// Its place in the chain's order.
    pub order: i32,
    /// Where it comes from.
    pub source: Source,
    /// Whether its verdict counted.
    #[serde(default)]
    pub enforcement: Enforcement,
    /// For a managed hook, which resource in which generation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<ManagedResource>,
    /// The digest of the hook's whole content; absent for pseudo hooks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
    /// What it said.
    pub verdict: VerdictKind,
    /// Why; absent for Allowed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<Code>,
    /// What the verdict rests on.
    #[serde(flatten)]
    pub evidence: Evidence,
    /// Whether it asked to be told the outcome.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub outcome: bool,
    /// How long it took, in microseconds.
    pub duration_us: u64,
}

/// What decides where no enforced hook said Allowed and none refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WhenNoHookMatches {
    /// Deny, with code `no_hook_matched`.
    #[default]
    Deny,
    /// Allow. Announced loudly wherever it is set.
    Allow,
}

/// The entries of a chain and the decision that follows from them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trace {
    /// What the chain came to.
    pub decision: Decision,
    /// The hook that refused, where one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_by: Option<HookId>,
    /// Why it was refused; absent for Allow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<Code>,
    /// One entry per hook that was asked, in order.
    pub hooks: Vec<HookEvaluation>,
}

impl Trace {
    /// Decides a chain: ALLOW exactly when an enforced hook said Allowed and none said Denied or
    /// Failed; the first that did gives the decision. Silence is decided by `otherwise`.
    #[must_use]
    pub fn decide(hooks: Vec<HookEvaluation>, otherwise: WhenNoHookMatches) -> Self {
        let allows = |entry: &HookEvaluation| entry.enforcement == Enforcement::Enforce && entry.verdict == VerdictKind::Allowed;
        let refusal = hooks.iter().find_map(|entry| Some((entry.refusal()?, entry)));
        let (decision, decided_by, code) = match refusal {
            Some((decision, entry)) => (decision, Some(entry.hook.clone()), entry.code.clone()),
            None if hooks.iter().any(allows) => (Decision::Allow, None, None),
            None => match otherwise {
                WhenNoHookMatches::Allow => (Decision::Allow, None, None),
                WhenNoHookMatches::Deny => (Decision::Deny, None, Some(codes::NO_HOOK_MATCHED.clone())),
            },
        };
        Self { decision, decided_by, code, hooks }
    }

    /// Whether the chain was cut by cancellation or by the caller's deadline.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.code.as_ref() == Some(&*codes::TOOL_EXECUTION_CANCELLED)
    }

    /// The entered hooks: enforced ones that were asked, the refusing one included.
    #[must_use]
    pub fn entered(&self) -> impl DoubleEndedIterator<Item = &HookEvaluation> {
        self.hooks.iter().filter(|entry| entry.enforcement == Enforcement::Enforce && entry.source != Source::Builtin)
    }
}

impl HookEvaluation {
    /// What the chain comes to by this entry alone, where it ends it: an enforced Denied or Failed.
    #[must_use]
    pub fn refusal(&self) -> Option<Decision> {
        match (self.enforcement, self.verdict) {
            (Enforcement::Enforce, VerdictKind::Denied) => Some(Decision::Deny),
            (Enforcement::Enforce, VerdictKind::Failed) => Some(Decision::Failed),
            (Enforcement::Enforce, VerdictKind::Allowed | VerdictKind::Abstained) | (Enforcement::Shadow, _) => None,
        }
    }

    /// The entry of one of [`pseudo_hooks`], after `asked` others.
    #[must_use]
    pub fn pseudo(asked: usize, hook: &'static str, verdict: VerdictKind, code: Code) -> Self {
        debug_assert!(pseudo_hooks::ALL.contains(&hook));
        Self {
            position: u32::try_from(asked).map_or(u32::MAX, |asked| asked.saturating_add(1)),
            hook: HookId::literal(hook),
            order: 0,
            source: Source::Builtin,
            enforcement: Enforcement::Enforce,
            resource: None,
            digest: None,
            verdict,
            code: Some(code),
            evidence: Evidence::default(),
            outcome: false,
            duration_us: 0,
        }
    }
}

impl Enforcement {
    /// The name in bundles and metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Enforce => "enforce",
            Self::Shadow => "shadow",
        }
    }
}

impl VerdictKind {
    /// The name in metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Denied => "denied",
            Self::Failed => "failed",
            Self::Abstained => "abstained",
        }
    }
}

impl Verdict {
    /// The kind, as recorded.
    #[must_use]
    pub const fn kind(&self) -> VerdictKind {
        match self {
            Self::Allowed => VerdictKind::Allowed,
            Self::Denied { .. } => VerdictKind::Denied,
            Self::Failed { .. } => VerdictKind::Failed,
            Self::Abstained { .. } => VerdictKind::Abstained,
        }
    }
}

macro_rules! builtin_codes {
    ($($(#[$doc:meta])* $name:ident = $text:literal;)+) => {
        /// The codes that Tollgate itself gives; reserved, so no bundle may declare one.
        pub mod codes {
            use std::sync::LazyLock;

            use crate::ids::Code;

            $($(#[$doc])* pub static $name: LazyLock<Code> = LazyLock::new(|| Code::builtin($text));)+

            /// All of them, as text.
            pub const ALL: &[&str] = &[$($text),+];
        }
    };
}

builtin_codes! {
    /// A hook denied and gave no code of its own.
    TOOL_EXECUTION_DENIED = "tool_execution_denied";
    /// A hook could not decide.
    TOOL_EXECUTION_HOOK_FAILED = "tool_execution_hook_failed";
    /// The caller cancelled, or its deadline passed, while the chain ran.
    TOOL_EXECUTION_CANCELLED = "tool_execution_cancelled";
    /// A hook took longer than it may.
    HOOK_TIMED_OUT = "hook_timed_out";
    /// A hook panicked.
    HOOK_PANICKED = "hook_panicked";
    /// No enforced hook said anything.
    NO_HOOK_MATCHED = "no_hook_matched";
    /// `require_permit`, and no permit matched.
    NO_PERMIT = "no_permit";
    /// A Cedar policy's evaluation erred.
    POLICY_ERROR = "policy_error";
    /// An argument does not fit the type that the hook's schema declares for it.
    ARGUMENT_UNREPRESENTABLE = "argument_unrepresentable";
    /// The hook's schema has no action for the tool.
    ACTION_UNDECLARED = "action_undeclared";
    /// A fact that the hook's schema requires is not known of this call.
    CONTEXT_UNAVAILABLE = "context_unavailable";
    /// The catalogue does not declare the tool.
    UNKNOWN_TOOL = "unknown_tool";
    /// The call's provider or external name is not the catalogue's.
    TOOL_MISMATCH = "tool_mismatch";
    /// The chain could not be resolved.
    RESOLUTION_FAILED = "resolution_failed";
    /// The sidecar ended before the invocation was decided.
    INTERRUPTED = "interrupted";
    /// The decision became durable after its caller had been told that it could not.
    JOURNAL_UNAVAILABLE = "journal_unavailable";
    /// A bundle whose serial is not above that of the last activated one.
    OLDER_THAN_ACTIVE = "older_than_active";
    /// A bundle whose hooks share an id with each other or with a local hook.
    DUPLICATE_HOOK = "duplicate_hook";
    /// A remote hook gave no verdict.
    HOOK_NO_VERDICT = "hook_no_verdict";
    /// A remote hook's answer was an error.
    HOOK_CONTROL_ERROR = "hook_control_error";
    /// A remote hook denied and gave no code of its own.
    HOOK_DENIED = "hook_denied";
}

/// The ids under which Tollgate itself appears in a trace; reserved, so no hook may have one.
pub mod pseudo_hooks {
    /// Refuses tools that the catalogue does not know, or knows otherwise.
    pub const TOOL_CATALOGUE: &str = "tool-catalogue";
    /// Could not build the chain.
    pub const HOOK_RESOLVER: &str = "hook-resolver";
    /// Stands for the call itself: refuses one that was cut where no hook was left to be cut.
    pub const HOOK_GOVERNANCE: &str = "hook-governance";
    /// All of them.
    pub const ALL: &[&str] = &[TOOL_CATALOGUE, HOOK_RESOLVER, HOOK_GOVERNANCE];
}

//! The vocabulary of Tollgate: what a call is, how hooks judge it, what is recorded, and the ports
//! through which the engine meets the world.
//!
//! This crate knows no IO, no clock, no async runtime, no wire format and no policy language. What
//! must hold everywhere is expressed here as types: a [`Pass`] exists only for an ALLOW that a store
//! acknowledged, a [`Sensitive`] value cannot be printed or serialised, and the life of an
//! invocation has one transition function, [`InvocationState::step`].

mod arguments;
mod bundle;
mod call;
mod clock;
mod digest;
mod fact;
mod generation;
mod hook;
mod identity;
mod ids;
pub mod invariants;
mod journal;
mod json;
mod lifecycle;
pub mod limits;
mod outcome;
mod pass;
mod read;
mod rights;
mod run;
mod sensitive;
mod stage;
mod trace;

pub use arguments::{Arguments, InvalidArguments};
pub use bundle::{
    Bundle, BundleSource, Candidate, Catalogue, Finding, HookDefinition, Ownership, Refused, Selectors, ToolAttributes,
    ToolDeclaration, ToolEffect, ToolFacts,
};
pub use call::{Agent, Approval, Call, Claims, Principal, Runtime, ToolRef};
pub use clock::{Clock, Monotonic, Timestamp};
pub use digest::Digest;
pub use fact::{
    ActivatedHook, CallRecord, ConfigurationLoosened, Evaluated, Fact, FactKind, GenerationActivated, GenerationRefused,
    SidecarStarted, Started, Subject, Terminal,
};
pub use generation::{Chain, Chains, DuplicateHook, Generation, GenerationNumbers, GenerationRef, Resolution, ResolveError};
pub use hook::{Hook, HookAnswer, HookInput, Locality, Notice, NoticeFailed};
pub use identity::{IdentityKey, KeyId};
pub use ids::{
    AgentId, AgentRevision, ApprovalId, BundleName, CallKey, Code, Correlation, ExternalToolName, GroupId, HookId, InvalidCode,
    InvalidId, InvocationId, OwnerId, PolicyId, PrincipalId, PrincipalKind, ProviderId, ResourceId, Revision, RunId, SidecarId,
    TenantId, ToolCallId, ToolId, WorkspaceId,
};
pub use journal::{
    AppendError, Conflict, Entry, InvocationKey, InvocationRecord, LastActivated, Lookup, NumberRequest, Receipt, Store,
    StoreHealth, Unavailable, UnavailableCause, chain_digest, kept_findings,
};
pub use json::{InvalidJson, Json};
pub use lifecycle::{IllegalTransition, InvocationState};
pub use outcome::{FailureKind, NoticeRecord, NoticeResult, Outcome, Reported};
pub use pass::{Comparison, Decided, Message, Pass, Recalled, Recorded, Refusal, recall, record};
pub use read::{FactFilter, FactPage, FactQuery, InvalidQuery, PageLimit, Reader, StoredFact, ToolCallPage, ToolCallSummary};
pub use rights::Rights;
pub use run::{History, OwnerKind, RunKey, SystemRun};
pub use sensitive::Sensitive;
pub use stage::{AttemptIds, DecisionRules, Judged, Judgement, Received, Resolved};
pub use trace::{
    Decision, Enforcement, Evidence, HookEvaluation, ManagedResource, Source, Trace, Verdict, VerdictKind, WhenNoHookMatches,
    codes, pseudo_hooks,
};

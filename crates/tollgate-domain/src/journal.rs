//! The port of the durable journal: what the engine appends to, and answers out of.

use std::fmt;

use async_trait::async_trait;

use crate::{
    bundle::Finding,
    digest::Digest,
    fact::{Evaluated, Fact, Started, Terminal},
    generation::GenerationNumbers,
    ids::{BundleName, InvocationId, ResourceId, Revision, SidecarId, ToolCallId, ToolId},
    lifecycle::{IllegalTransition, InvocationState},
    run::{History, RunKey},
};

/// Facts that become durable together or not at all.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Whose history they continue.
    pub history: History,
    /// The invocation that they are about; absent for facts of the system.
    pub invocation: Option<InvocationKey>,
    /// The facts, in order; never empty.
    pub facts: Vec<Fact>,
}

/// An invocation within its run, and the tool that its tool call is bound to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvocationKey {
    /// The logical call.
    pub tool_call: ToolCallId,
    /// The attempt.
    pub invocation: InvocationId,
    /// The canonical tool; one tool call never names two.
    pub tool: ToolId,
}

/// A store's word that an entry is durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// The sequence of the entry's last fact in its history, from 1 without gaps.
    pub sequence: u64,
    /// The store-wide position of that fact; rises in commit order.
    pub position: u64,
    /// The number of the invocation's Started fact among those of its tool call, from 1; 0 for facts of the system.
    pub attempt: u32,
}

/// Why an entry was not acknowledged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AppendError {
    /// The entry contradicts the record; nothing of it was written.
    #[error(transparent)]
    Conflict(#[from] Conflict),
    /// The store cannot write, or could not say in time that it did.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}

/// How an entry contradicts the record.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Conflict {
    /// The invocation id is taken.
    #[error("the invocation exists already")]
    InvocationExists,
    /// The tool call is bound to another tool.
    #[error("the tool call belongs to another tool")]
    OtherTool,
    /// The invocation is not in a state that the fact can follow.
    #[error(transparent)]
    Transition(#[from] IllegalTransition),
}

/// The store cannot serve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the journal is unavailable: {cause}")]
pub struct Unavailable {
    /// Why.
    pub cause: UnavailableCause,
    /// Whether the entry may have become durable all the same.
    pub may_have_landed: bool,
}

impl Unavailable {
    /// A refusal of which nothing can have become durable.
    #[must_use]
    pub const fn refused(cause: UnavailableCause) -> Self {
        Self { cause, may_have_landed: false }
    }

    /// A failure after which nobody knows what has become durable.
    #[must_use]
    pub const fn unknown(cause: UnavailableCause) -> Self {
        Self { cause, may_have_landed: true }
    }
}

/// Why a store cannot serve. A closed list: texts of drivers are never passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum UnavailableCause {
    /// The disk or the quota is full.
    #[error("no space is left on its device")]
    Full,
    /// The file system or the database is read-only.
    #[error("it is read-only")]
    ReadOnly,
    /// Reading or writing failed.
    #[error("input or output failed")]
    Io,
    /// The database is damaged.
    #[error("it is damaged")]
    Corrupt,
    /// More appends wait than may.
    #[error("too many appends wait")]
    Overloaded,
    /// It was closed, for shutdown.
    #[error("it is closed")]
    Closed,
    /// Anything else.
    #[error("its database failed")]
    Other,
}

impl UnavailableCause {
    /// The name in metrics, status and error details.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::ReadOnly => "read_only",
            Self::Io => "io",
            Self::Corrupt => "corrupt",
            Self::Overloaded => "overloaded",
            Self::Closed => "closed",
            Self::Other => "other",
        }
    }
}

/// Whether a store accepts appends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreHealth {
    /// Its last write succeeded.
    Serving,
    /// Its last write failed, and it is trying again by itself; or it was closed, for good.
    Failing(UnavailableCause),
}

impl StoreHealth {
    /// Refuses while the store fails.
    ///
    /// # Errors
    ///
    /// The cause of the failure; nothing became durable.
    pub const fn check(self) -> Result<(), Unavailable> {
        match self {
            Self::Serving => Ok(()),
            Self::Failing(cause) => Err(Unavailable::refused(cause)),
        }
    }
}

/// What the record knows of a call before it is judged.
#[derive(Clone, Debug, Default)]
pub struct Lookup {
    /// How many attempts of the tool call began.
    pub attempts: u32,
    /// The tool that the tool call is bound to.
    pub tool: Option<ToolId>,
    /// The invocation, where it exists.
    pub invocation: Option<InvocationRecord>,
}

/// An invocation as its facts tell it.
#[derive(Clone, Debug)]
pub struct InvocationRecord {
    /// The logical call.
    pub tool_call: ToolCallId,
    /// The attempt.
    pub invocation: InvocationId,
    /// Where it stands.
    pub state: InvocationState,
    /// How it began.
    pub started: Started,
    /// How it was decided, if it was.
    pub evaluated: Option<Evaluated>,
    /// How it ended, if it did.
    pub terminal: Option<Terminal>,
    /// The place of the last fact of its decision: for a refusal its terminal fact, for an ALLOW
    /// `GovernanceEvaluated`; without a decision, of its Started fact.
    pub receipt: Receipt,
}

/// What a store needs to number a generation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NumberRequest {
    /// The bundle.
    pub bundle: BundleName,
    /// The source's name for its content.
    pub revision: Revision,
    /// The digest of its content.
    pub digest: Digest,
    /// Its managed hooks and the digests of their content.
    pub hooks: Vec<(ResourceId, Digest)>,
    /// The number that the sidecar ran last, in this process or before; the new one is not below it.
    pub last: Option<u64>,
}

/// What a sidecar activated last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastActivated {
    /// The generation's number.
    pub number: u64,
    /// Its revision.
    pub revision: Revision,
    /// The highest serial that was activated so far, where any bundle had one.
    pub serial: Option<u64>,
}

/// The durable journal.
///
/// An append resolves only when the entry is durable. A future of it that is dropped before its
/// entry was taken into a batch leaves nothing; one dropped later may land.
#[async_trait]
pub trait Store: Send + Sync + fmt::Debug {
    /// Appends an entry. Conflicts are of this entry only and never fail another.
    async fn append(&self, entry: Entry) -> Result<Receipt, AppendError>;

    /// What the record knows of a tool call and an invocation.
    async fn lookup(&self, run: &RunKey, tool_call: &ToolCallId, invocation: &InvocationId) -> Result<Lookup, Unavailable>;

    /// One invocation of a run.
    async fn invocation(&self, run: &RunKey, invocation: &InvocationId) -> Result<Option<InvocationRecord>, Unavailable>;

    /// Invocations that began and were never decided: at start, those that a crash cut.
    async fn undecided(&self) -> Result<Vec<(RunKey, InvocationKey, Started)>, Unavailable>;

    /// Gives a generation its number, and its hooks theirs.
    ///
    /// The number belongs to (bundle, revision, digest) and is given again for the same; unless the sidecar
    /// already ran a higher one, when the content has returned to what it was and gets a new one.
    /// A hook's rises with every change of its content against the generation before.
    async fn number(&self, request: NumberRequest) -> Result<GenerationNumbers, Unavailable>;

    /// What this sidecar activated last of a bundle.
    async fn last_activated(&self, bundle: &BundleName, sidecar: &SidecarId) -> Result<Option<LastActivated>, Unavailable>;

    /// Whether it accepts appends.
    fn health(&self) -> StoreHealth;

    /// Waits until [`Store::health`] is something else than `seen`.
    async fn health_changed(&self, seen: StoreHealth) -> StoreHealth;

    /// Makes everything that was accepted durable, and closes. Later appends are refused as closed.
    async fn close(&self);
}

/// Digests a fact in its chain: over its predecessor's digest, its place, the invocation that it is
/// about, and its bytes as stored.
///
/// `SHA-256(previous ‖ sequence ‖ attempt ‖ tool call ‖ invocation ‖ tool ‖ body)`, integers as 64-bit
/// big-endian, each id preceded by its length as such an integer, which is zero for facts of the system.
#[must_use]
pub fn chain_digest(previous: &Digest, sequence: u64, attempt: u32, invocation: Option<&InvocationKey>, body: &[u8]) -> Digest {
    let ids = invocation.map_or([""; 3], |key| [key.tool_call.as_str(), key.invocation.as_str(), key.tool.as_str()]);
    let mut bytes = Vec::with_capacity(192 + body.len());
    bytes.extend_from_slice(previous.as_bytes());
    bytes.extend_from_slice(&sequence.to_be_bytes());
    bytes.extend_from_slice(&u64::from(attempt).to_be_bytes());
    for id in ids {
        bytes.extend_from_slice(&(id.len() as u64).to_be_bytes());
        bytes.extend_from_slice(id.as_bytes());
    }
    bytes.extend_from_slice(body);
    Digest::of(&bytes)
}

/// Keeps the first findings that a refusal fact has room for.
#[must_use]
pub fn kept_findings(findings: &[Finding]) -> Vec<Finding> {
    findings.iter().take(crate::limits::REFUSAL_FINDINGS_MAX_COUNT).cloned().collect()
}

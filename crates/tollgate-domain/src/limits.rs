//! Every limit of the contract, once, with its unit in the name.
//!
//! A limit is asserted where outside input is parsed and again where it would be written, so that a
//! caller inside the process cannot bypass it either.

/// Longest identifier, in bytes of UTF-8.
pub const ID_MAX_BYTES: usize = 256;
/// Longest stable code, in bytes of ASCII.
pub const CODE_MAX_BYTES: usize = 128;
/// Longest human-readable message of a hook, in bytes of UTF-8. It is told, never kept.
pub const MESSAGE_MAX_BYTES: usize = 2_048;
/// Largest argument object, in bytes as sent.
pub const ARGUMENTS_MAX_BYTES: usize = 1_048_576;
/// Deepest nesting of the argument object; the object itself is level one.
pub const ARGUMENTS_MAX_DEPTH: usize = 64;
/// Most values in the argument object, nested ones and the object itself included: what a value costs in memory
/// does not follow from its bytes.
pub const ARGUMENTS_MAX_VALUES: usize = 65_536;
/// Longest W3C `traceparent`, in bytes.
pub const TRACEPARENT_MAX_BYTES: usize = 128;
/// Most groups that one call may claim for its principal.
pub const CLAIMED_GROUPS_MAX_COUNT: usize = 64;
/// Most correlation ids that one call may carry.
pub const CORRELATION_MAX_COUNT: usize = 16;
/// Deepest nesting of sub-agents that a call may state.
pub const DEPTH_MAX: u32 = 1_000;
/// Largest step or call index that a call may state.
pub const INDEX_MAX: u64 = 1_000_000_000;
/// Lowest order of a hook in the chain.
pub const ORDER_MIN: i32 = -10_000;
/// Highest order of a hook in the chain.
pub const ORDER_MAX: i32 = 10_000;
/// Most values in one selector list of a hook.
pub const SELECTOR_MAX_COUNT: usize = 256;
/// Longest exception type of a reported failure, in bytes of UTF-8.
pub const FAILURE_TYPE_MAX_BYTES: usize = 256;
/// Longest exception message that an outcome keeps, in bytes of UTF-8; longer ones are cut at a character.
pub const FAILURE_MESSAGE_MAX_BYTES: usize = 1_024;
/// Largest page of a reader, in facts or tool calls.
pub const PAGE_MAX_COUNT: u32 = 200;
/// Size of a page where the reader names none.
pub const PAGE_DEFAULT_COUNT: u32 = 100;
/// Most findings that a refusal fact keeps; the count of all of them is kept beside.
pub const REFUSAL_FINDINGS_MAX_COUNT: usize = 32;

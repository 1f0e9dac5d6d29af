//! The limits of a bundle, with their units. `docs/reference/bundle-v1.md` names each.

use std::time::Duration;

/// Most files of a tree.
pub const TREE_MAX_FILES: usize = 4_096;
/// Most names of a tree that are looked at: files, directories, links, and those that are no part of it.
pub const TREE_MAX_NAMES: usize = 16_384;
/// Deepest directory of a tree; the root is level 0.
pub const TREE_MAX_DEPTH: usize = 8;
/// Largest file, in bytes.
pub const FILE_MAX_BYTES: u64 = 4 * 1_048_576;
/// Largest `entities.json`, in bytes.
pub const ENTITIES_MAX_BYTES: u64 = 32 * 1_048_576;
/// Largest tree, in bytes of all its files.
pub const TREE_MAX_BYTES: u64 = 64 * 1_048_576;
/// Longest policy, in bytes.
pub const POLICY_MAX_BYTES: usize = 10_000;
/// Deepest nesting of brackets in Cedar text: Cedar's parser has no guard of its own.
pub const NESTING_MAX_DEPTH: usize = 64;
/// Deepest nesting of operators in a policy's condition, chains of `||` included, so that every policy
/// evaluates on 8 MiB of stack: one that exhausts it errs, and fails its hook, at each call.
pub const EXPRESSION_MAX_DEPTH: usize = 100;
/// Most policies of one hook.
pub const POLICIES_MAX_COUNT: usize = 20_000;
/// Most policies of one hook that are evaluated for every call without a report advising against them: each costs a
/// decision about a microsecond.
pub const EVERYWHERE_MAX_COUNT: usize = 50;
/// Longest policy id and longest code, in bytes.
pub const POLICY_ID_MAX_BYTES: usize = tollgate_domain::limits::CODE_MAX_BYTES;
/// Most labels of a tool.
pub const LABELS_MAX_COUNT: usize = 64;
/// Most findings of one report; more are counted and not told.
pub const FINDINGS_MAX_COUNT: usize = 1_000;
/// Stack of the thread that parses and validates, in bytes.
pub const COMPILE_STACK_BYTES: usize = 64 * 1_048_576;

/// How long a tree without a manifest must stay unchanged before it counts.
pub const SETTLE_DEFAULT: Duration = Duration::from_millis(500);
/// How many times `settle` the tree that is there at the start must be unchanged already to count at once.
pub const RESTED_TIMES: u32 = 20;
/// How often a directory is looked at even when nothing was heard of it.
pub const POLL_DEFAULT: Duration = Duration::from_secs(5);
/// How many times `settle` a tree may disagree with its manifest, unchanged, before it is refused.
pub const MANIFEST_PATIENCE: u32 = 10;

//! The YAML files of a bundle, each read into its own type.

mod bundle_file;
mod hook_file;
mod tools_file;

pub(crate) use bundle_file::{BundleFile, UnknownTools};
pub(crate) use hook_file::{HookFile, Input, Mode};
pub(crate) use tools_file::ToolsFile;

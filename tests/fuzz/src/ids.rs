//! Ids and other words: accepted exactly by the rule that the contract states, kept byte for byte, and never told
//! in a refusal.

#[path = "../../../crates/tollgate/src/run_path.rs"]
mod run_path;

use std::{fmt::Display, str::FromStr};

use serde::{Serialize, de::DeserializeOwned};
use tollgate_domain::{
    AgentId, BundleName, Code, Correlation, Digest, HookId, InvocationId, PolicyId, ProviderId, RunId, TenantId, ToolCallId,
    ToolId, WorkspaceId,
};

use crate::sentinel::{self, SENTINEL, assert_untold};
use run_path::RunPath;

/// Checks every kind of id with these bytes as its text.
pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if sentinel::is_known_to(data) {
        return;
    }
    let plain = (1..=256).contains(&text.len()) && !text.chars().any(char::is_control);
    kind::<TenantId>(text, plain);
    kind::<WorkspaceId>(text, plain);
    kind::<RunId>(text, plain);
    kind::<AgentId>(text, plain);
    kind::<ToolId>(text, plain);
    kind::<ToolCallId>(text, plain);
    kind::<InvocationId>(text, plain);
    kind::<Correlation>(text, plain);
    kind::<HookId>(text, plain);
    kind::<PolicyId>(text, plain);
    kind::<BundleName>(text, plain);
    kind::<ProviderId>(text, plain && !text.contains('/'));
    kind::<Code>(text, is_code(text));
    digest(text);
    run_on_the_command_line(text);
}

fn kind<T>(text: &str, acceptable: bool)
where
    T: FromStr<Err: Display> + Display + Serialize + DeserializeOwned + PartialEq,
{
    let json = serde_json::to_string(text).unwrap();
    let parsed = text.parse::<T>().ok();
    assert_eq!(parsed.is_some(), acceptable, "the rule says otherwise");
    assert!(serde_json::from_str::<T>(&json).ok() == parsed, "the stored form says otherwise");
    if let Some(id) = parsed {
        assert_eq!(id.to_string(), text);
        assert_eq!(serde_json::to_string(&id).unwrap(), json);
    }
    if let Err(refusal) = format!("{SENTINEL}{text}\n").parse::<T>() {
        assert_untold(&refusal.to_string());
    }
}

fn is_code(text: &str) -> bool {
    let mut characters = text.chars();
    characters.next().is_some_and(|first| first.is_ascii_alphanumeric())
        && characters.all(|other| other.is_ascii_alphanumeric() || matches!(other, '.' | '_' | '-'))
        && text.len() <= 128
}

fn digest(text: &str) {
    if let Some(digest) = Digest::from_hex(text) {
        assert_eq!(digest.to_string(), text.to_ascii_lowercase());
        assert_eq!(Digest::from_bytes(digest.as_bytes()), Some(digest));
    }
}

fn run_on_the_command_line(text: &str) {
    if let Ok(run) = text.parse::<RunPath>() {
        assert!(run.to_string().parse() == Ok(run), "a run is read otherwise than it is written");
    }
}

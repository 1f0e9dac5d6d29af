//! Arguments: accepted exactly when a second reader accepts them, read as it reads them, and given a derived id
//! that is equal for equal values and different for different ones.

mod reference;
mod rewrite;

use tollgate_domain::{
    Arguments, IdentityKey, InvalidArguments, InvalidJson, Json, ToolCallId,
    limits::{ARGUMENTS_MAX_BYTES, ARGUMENTS_MAX_DEPTH, ARGUMENTS_MAX_VALUES},
};

use crate::call;
use reference::Plain;

/// Above this, two correct readers may differ in whether a double can hold a number.
const NEARLY_INFINITE: f64 = 1.7e308;

/// Checks the reader of arguments with these bytes as the arguments.
pub fn check(data: &[u8]) {
    let theirs = reference::read(data);
    let arguments = match Arguments::parse(data) {
        Ok(arguments) => arguments,
        Err(refusal) => return assert!(may_refuse(refusal, data, theirs.as_ref()), "refused: {refusal}"),
    };
    let theirs = theirs.filter(Plain::is_acceptable);
    match theirs {
        Some(theirs) => assert!(theirs.equals(arguments.value()), "two readers read different values"),
        None => assert!(has_nearly_infinite(arguments.value()), "accepted what another reader refuses"),
    }
    derived_ids(&arguments);
}

/// Whether the second reader agrees that these bytes are no arguments.
fn may_refuse(refusal: InvalidArguments, data: &[u8], theirs: Option<&Plain>) -> bool {
    match refusal {
        InvalidArguments::TooLong(len) => len == data.len() && len > ARGUMENTS_MAX_BYTES,
        InvalidArguments::NotAnObject => theirs.is_none_or(|theirs| !matches!(theirs, Plain::Object(_))),
        InvalidArguments::Json(InvalidJson::NumberRange) => theirs.is_none_or(Plain::is_nearly_infinite),
        InvalidArguments::Json(InvalidJson::TooDeep) => theirs.is_none_or(|theirs| theirs.depth() > ARGUMENTS_MAX_DEPTH),
        InvalidArguments::Json(InvalidJson::TooMany) => theirs.is_none_or(|theirs| theirs.count() > ARGUMENTS_MAX_VALUES),
        InvalidArguments::Json(InvalidJson::DuplicateName) => theirs.is_none_or(Plain::has_duplicates),
        InvalidArguments::Json(InvalidJson::Malformed) => theirs.is_none(),
    }
}

fn has_nearly_infinite(value: &Json) -> bool {
    match value {
        Json::Number(text) => text.parse::<f64>().is_ok_and(|number| number.abs() > NEARLY_INFINITE),
        Json::Array(items) => items.iter().any(has_nearly_infinite),
        Json::Object(members) => members.iter().any(|(_, value)| has_nearly_infinite(value)),
        Json::Null | Json::Bool(_) | Json::String(_) => false,
    }
}

/// The derived id follows the value, and not how it is written.
fn derived_ids(arguments: &Arguments) {
    let id = derived(arguments.clone());
    match Arguments::parse(rewrite::otherwise(arguments.value()).as_bytes()) {
        Ok(again) => assert_eq!(derived(again), id, "the same value, written otherwise, is another call"),
        Err(refusal) => assert!(matches!(refusal, InvalidArguments::TooLong(_)), "written otherwise, refused: {refusal}"),
    }
    if let Ok(other) = Arguments::parse(rewrite::changed(arguments.value()).as_bytes()) {
        assert_ne!(derived(other), id, "another value is the same call");
    }
}

fn derived(arguments: Arguments) -> ToolCallId {
    let key = IdentityKey::from_bytes(&[7; 32]).unwrap();
    key.tool_call(&call::of("tool".parse().unwrap(), arguments))
}

//! A value written otherwise, and a value that differs in one place.

use std::fmt::Write;

use tollgate_domain::Json;

/// The same value: members from last to first, every character escaped, white space wherever it may be.
pub(super) fn otherwise(value: &Json) -> String {
    let mut out = String::new();
    write(value, &mut out);
    out
}

/// Another value: the first scalar has changed, or where there is none, a member has come.
pub(super) fn changed(value: &Json) -> String {
    let mut value = value.clone();
    if !change(&mut value)
        && let Json::Object(members) = &mut value
    {
        members.push(("new".into(), Json::Null));
    }
    otherwise(&value)
}

fn write(value: &Json, out: &mut String) {
    match value {
        Json::Null => out.push_str(" null "),
        Json::Bool(value) => writeln!(out, "\t{value}").unwrap(),
        Json::Number(text) => out.push_str(text),
        Json::String(text) => write_string(text, out),
        Json::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                out.push(if index == 0 { '[' } else { ',' });
                write(item, out);
            }
            out.push_str(if items.is_empty() { "[ ]" } else { "\r]" });
        }
        Json::Object(members) => {
            for (index, (name, value)) in members.iter().rev().enumerate() {
                out.push(if index == 0 { '{' } else { ',' });
                write_string(name, out);
                out.push(':');
                write(value, out);
            }
            out.push_str(if members.is_empty() { "{ }" } else { " }" });
        }
    }
}

fn write_string(text: &str, out: &mut String) {
    out.push('"');
    for unit in text.encode_utf16() {
        write!(out, "\\u{unit:04X}").unwrap();
    }
    out.push('"');
}

fn change(value: &mut Json) -> bool {
    match value {
        Json::Null => *value = Json::Bool(false),
        Json::Bool(own) => *own = !*own,
        Json::Number(text) => *value = next_to(text),
        Json::String(text) => *text = format!("{text}x").into(),
        Json::Array(items) => return items.iter_mut().any(change),
        Json::Object(members) => return members.iter_mut().any(|(_, value)| change(value)),
    }
    true
}

/// The integer beside it, which no reader may take for the same one. Another number as a text: the double beside it
/// has no short name.
fn next_to(number: &str) -> Json {
    match number.bytes().next_back() {
        Some(digit @ b'0'..=b'9') if !number.contains(['.', 'e', 'E']) => {
            let beside = if digit == b'9' { '0' } else { char::from(digit + 1) };
            let mut number = number.to_owned();
            number.pop();
            number.push(beside);
            Json::Number(number.into())
        }
        _ => Json::String(number.into()),
    }
}

//! JSON as callers send it: every key once, every number with its exact text.

use std::fmt;

use json_event_parser::{JsonEvent, JsonSyntaxError, SliceJsonParser};

use crate::limits::{ARGUMENTS_MAX_DEPTH, ARGUMENTS_MAX_VALUES};

/// Some parsers skip it and some refuse it (RFC 8259, section 8.1), so that nobody may send it.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// A JSON value that keeps the text of its numbers, so that no digit is lost before it is judged.
///
/// `Debug` shows nothing and there is no `Serialize`: it holds argument values.
#[derive(Clone, PartialEq, Eq)]
pub enum Json {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number as it was written.
    Number(Box<str>),
    /// A string, unescaped.
    String(Box<str>),
    /// An array, in order.
    Array(Vec<Json>),
    /// An object: members in the order of the text, each name once.
    Object(Vec<(Box<str>, Json)>),
}

/// Why bytes are no acceptable JSON. Carries no part of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidJson {
    /// Not JSON, not UTF-8, a lone surrogate, or something after the value.
    #[error("is not one well-formed JSON value in UTF-8 (I-JSON, RFC 7493)")]
    Malformed,
    /// The same name twice in one object.
    #[error("names the same member twice in one object")]
    DuplicateName,
    /// Nested deeper than [`ARGUMENTS_MAX_DEPTH`].
    #[error("is nested deeper than {ARGUMENTS_MAX_DEPTH} levels")]
    TooDeep,
    /// More values than [`ARGUMENTS_MAX_VALUES`].
    #[error("has more than {ARGUMENTS_MAX_VALUES} values")]
    TooMany,
    /// A number that no double can hold even roughly.
    #[error("has a number outside the range of IEEE 754 double precision")]
    NumberRange,
}

impl From<JsonSyntaxError> for InvalidJson {
    fn from(_: JsonSyntaxError) -> Self {
        Self::Malformed
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[json]")
    }
}

enum Open {
    Array(Vec<Json>),
    Object(Vec<(Box<str>, Json)>, Option<Box<str>>),
}

impl Json {
    /// Parses one value under the rules of I-JSON (RFC 7493).
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, InvalidJson> {
        if bytes.starts_with(BYTE_ORDER_MARK) {
            return Err(InvalidJson::Malformed);
        }
        let mut parser = SliceJsonParser::new(bytes);
        let mut count = 0;
        let mut open: Vec<Open> = Vec::new();
        let mut done = None;
        loop {
            let value = match parser.parse_next()? {
                JsonEvent::Eof => return done.ok_or(InvalidJson::Malformed),
                JsonEvent::Null => Self::Null,
                JsonEvent::Boolean(value) => Self::Bool(value),
                JsonEvent::Number(text) => {
                    let finite = text.parse::<f64>().is_ok_and(f64::is_finite);
                    if !finite {
                        return Err(InvalidJson::NumberRange);
                    }
                    Self::Number(text.into())
                }
                JsonEvent::String(text) => Self::String(text.into()),
                JsonEvent::StartArray => {
                    open_level(&mut open, Open::Array(Vec::new()))?;
                    continue;
                }
                JsonEvent::StartObject => {
                    open_level(&mut open, Open::Object(Vec::new(), None))?;
                    continue;
                }
                JsonEvent::ObjectKey(name) => {
                    if let Some(Open::Object(_, pending)) = open.last_mut() {
                        *pending = Some(name.into());
                    }
                    continue;
                }
                JsonEvent::EndArray | JsonEvent::EndObject => match open.pop().ok_or(InvalidJson::Malformed)? {
                    Open::Array(items) => Self::Array(items),
                    Open::Object(members, _) => {
                        refuse_duplicates(&members)?;
                        Self::Object(members)
                    }
                },
            };
            count += 1;
            if count > ARGUMENTS_MAX_VALUES {
                return Err(InvalidJson::TooMany);
            }
            match open.last_mut() {
                None => done = Some(value),
                Some(Open::Array(items)) => items.push(value),
                Some(Open::Object(members, pending)) => members.push((pending.take().ok_or(InvalidJson::Malformed)?, value)),
            }
        }
    }

    /// Appends the canonical form of RFC 8785, except that integers keep their exact decimal text:
    /// a canonical form through doubles would make different 64-bit integers equal.
    pub(crate) fn write_canonical(&self, out: &mut String) {
        match self {
            Self::Null => out.push_str("null"),
            Self::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
            Self::Number(text) => write_canonical_number(text, out),
            Self::String(text) => write_canonical_string(text, out),
            Self::Array(items) => {
                out.push('[');
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        out.push(',');
                    }
                    item.write_canonical(out);
                }
                out.push(']');
            }
            Self::Object(members) => {
                let mut sorted: Vec<_> = members.iter().collect();
                sorted.sort_by(|(a, _), (b, _)| a.encode_utf16().cmp(b.encode_utf16()));
                out.push('{');
                for (index, (name, value)) in sorted.into_iter().enumerate() {
                    if index > 0 {
                        out.push(',');
                    }
                    write_canonical_string(name, out);
                    out.push(':');
                    value.write_canonical(out);
                }
                out.push('}');
            }
        }
    }
}

fn open_level(open: &mut Vec<Open>, level: Open) -> Result<(), InvalidJson> {
    if open.len() >= ARGUMENTS_MAX_DEPTH {
        return Err(InvalidJson::TooDeep);
    }
    open.push(level);
    Ok(())
}

fn refuse_duplicates(members: &[(Box<str>, Json)]) -> Result<(), InvalidJson> {
    let mut names: Vec<&str> = members.iter().map(|(name, _)| &**name).collect();
    names.sort_unstable();
    if names.windows(2).any(|pair| pair.first() == pair.last()) { Err(InvalidJson::DuplicateName) } else { Ok(()) }
}

fn write_canonical_number(text: &str, out: &mut String) {
    let digits = text.strip_prefix('-').unwrap_or(text);
    if digits.bytes().all(|byte| byte.is_ascii_digit()) {
        out.push_str(if text == "-0" { "0" } else { text });
    } else if let Ok(value) = text.parse::<f64>() {
        out.push_str(ryu_js::Buffer::new().format(value));
    }
}

fn write_canonical_string(text: &str, out: &mut String) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\u{c}' => out.push_str("\\f"),
            '\r' => out.push_str("\\r"),
            control if control < ' ' => {
                out.push_str("\\u00");
                out.push_str(&hex::encode([control as u8]));
            }
            other => out.push(other),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests;

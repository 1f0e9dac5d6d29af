//! The second reader: `serde_json`, made to keep every member.

use std::{collections::HashSet, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, SeqAccess, Visitor},
};
use tollgate_domain::{
    Json,
    limits::{ARGUMENTS_MAX_BYTES, ARGUMENTS_MAX_DEPTH, ARGUMENTS_MAX_VALUES},
};

/// How far apart two readers may see one number: `serde_json` rounds to within a few units in the last place.
const TOLERANCE: f64 = 1e-15;

/// A value as the second reader reads it.
#[derive(Debug)]
pub(super) enum Plain {
    Null,
    Bool(bool),
    /// Exact.
    Integer(i128),
    Double(f64),
    String(String),
    Array(Vec<Plain>),
    Object(Vec<(String, Plain)>),
}

/// Reads one value, and nothing after it.
pub(super) fn read(bytes: &[u8]) -> Option<Plain> {
    if bytes.len() > ARGUMENTS_MAX_BYTES { None } else { serde_json::from_slice(bytes).ok() }
}

impl Plain {
    /// Whether it keeps what the contract asks of arguments beyond being JSON.
    pub(super) fn is_acceptable(&self) -> bool {
        matches!(self, Self::Object(_))
            && self.depth() <= ARGUMENTS_MAX_DEPTH
            && self.count() <= ARGUMENTS_MAX_VALUES
            && !self.has_duplicates()
    }

    pub(super) fn depth(&self) -> usize {
        match self {
            Self::Array(_) | Self::Object(_) => 1 + self.children().map(Self::depth).max().unwrap_or_default(),
            Self::Null | Self::Bool(_) | Self::Integer(_) | Self::Double(_) | Self::String(_) => 0,
        }
    }

    pub(super) fn count(&self) -> usize {
        1 + self.children().map(Self::count).sum::<usize>()
    }

    pub(super) fn has_duplicates(&self) -> bool {
        let own = if let Self::Object(members) = self {
            let mut names = HashSet::new();
            !members.iter().all(|(name, _)| names.insert(name))
        } else {
            false
        };
        own || self.children().any(Self::has_duplicates)
    }

    pub(super) fn is_nearly_infinite(&self) -> bool {
        let own = matches!(self, Self::Double(number) if number.abs() > super::NEARLY_INFINITE);
        own || self.children().any(Self::is_nearly_infinite)
    }

    /// Whether it is the value that the product read, member by member in order.
    pub(super) fn equals(&self, ours: &Json) -> bool {
        match (self, ours) {
            (Self::Null, Json::Null) => true,
            (Self::Bool(theirs), Json::Bool(ours)) => theirs == ours,
            (Self::Integer(theirs), Json::Number(ours)) => ours.parse() == Ok(*theirs),
            (Self::Double(theirs), Json::Number(ours)) => ours.parse().is_ok_and(|ours| are_close(*theirs, ours)),
            (Self::String(theirs), Json::String(ours)) => **theirs == **ours,
            (Self::Array(theirs), Json::Array(ours)) => {
                theirs.len() == ours.len() && theirs.iter().zip(ours).all(|(theirs, ours)| theirs.equals(ours))
            }
            (Self::Object(theirs), Json::Object(ours)) => {
                let mut pairs = theirs.iter().zip(ours);
                theirs.len() == ours.len() && pairs.all(|(theirs, ours)| *theirs.0 == *ours.0 && theirs.1.equals(&ours.1))
            }
            _ => false,
        }
    }

    fn children(&self) -> Box<dyn Iterator<Item = &Self> + '_> {
        match self {
            Self::Array(items) => Box::new(items.iter()),
            Self::Object(members) => Box::new(members.iter().map(|(_, value)| value)),
            Self::Null | Self::Bool(_) | Self::Integer(_) | Self::Double(_) | Self::String(_) => Box::new(std::iter::empty()),
        }
    }
}

fn are_close(a: f64, b: f64) -> bool {
    // Nothing is relative to a number that has lost digits by being small.
    (a - b).abs() <= a.abs() * TOLERANCE || (a.abs() < 1e-300 && b.abs() < 1e-300)
}

impl<'de> Deserialize<'de> for Plain {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Plain;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Plain, E> {
        Ok(Plain::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Plain, E> {
        Ok(Plain::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Plain, E> {
        Ok(Plain::Integer(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Plain, E> {
        Ok(Plain::Integer(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Plain, E> {
        Ok(Plain::Double(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Plain, E> {
        Ok(Plain::String(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Plain, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element()? {
            items.push(item);
        }
        Ok(Plain::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Plain, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = access.next_entry()? {
            members.push(member);
        }
        Ok(Plain::Object(members))
    }
}

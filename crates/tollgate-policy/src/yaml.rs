//! YAML with places: a tree that is walked key by key, so that every mistake is found and not just the first.

use std::{collections::HashSet, fmt, ops::Range};

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, SeqAccess, Visitor},
};
use serde_saphyr::Spanned;

use crate::{
    codes::FindingCode,
    diagnostic::{Findings, SourceText},
};

/// A value and its place.
pub(crate) type Node = Spanned<Value>;

/// A YAML value.
#[derive(Debug)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    Integer(i64),
    /// A number that is no 64-bit integer.
    Number,
    Text(String),
    List(Vec<Node>),
    Map(Vec<(Spanned<String>, Node)>),
}

impl Value {
    const fn kind(&self) -> &'static str {
        match self {
            Self::Null => "nothing",
            Self::Bool(_) => "a boolean",
            Self::Integer(_) | Self::Number => "a number",
            Self::Text(_) => "a text",
            Self::List(_) => "a list",
            Self::Map(_) => "a mapping",
        }
    }
}

/// A YAML file that is being read.
pub(crate) struct Reader<'a> {
    pub(crate) source: &'a SourceText,
    pub(crate) findings: &'a mut Findings,
}

/// A mapping that is being read: every key that is asked for counts as known.
pub(crate) struct Fields<'n> {
    place: Range<usize>,
    entries: &'n [(Spanned<String>, Node)],
    known: Vec<&'static str>,
}

impl Reader<'_> {
    /// Parses the file.
    pub(crate) fn parse(&mut self) -> Option<Node> {
        // Duplicate keys pass, and are findings of their own when the mapping is read.
        let duplicate_keys = serde_saphyr::options::DuplicateKeyPolicy::PassThrough;
        let options = serde_saphyr::options! { strict_booleans: true, with_snippet: false, duplicate_keys: duplicate_keys };
        match serde_saphyr::from_str_with_options::<Node>(&self.source.text, options) {
            Ok(node) => Some(node),
            Err(error) => {
                let place = error.location().map_or(0..0, |location| self.range(location));
                let message = error.render();
                let message = message.lines().next().unwrap_or_default();
                // The place is a field of the finding.
                let message = message.split_once(" at line ").map_or(message, |(message, _)| message).to_owned();
                self.findings.at(FindingCode::YamlSyntax, self.source, place, message);
                None
            }
        }
    }

    pub(crate) fn place<T>(&self, node: &Spanned<T>) -> Range<usize> {
        self.range(node.referenced)
    }

    fn range(&self, location: serde_saphyr::Location) -> Range<usize> {
        let span = location.span();
        let text = &self.source.text;
        let bytes = |chars: u64| {
            let chars = usize::try_from(chars).unwrap_or(usize::MAX);
            text.char_indices().nth(chars).map_or(text.len(), |(offset, _)| offset)
        };
        let start =
            span.byte_offset().map_or_else(|| bytes(span.offset()), |offset| usize::try_from(offset).unwrap_or(usize::MAX));
        let end = match span.byte_len() {
            Some(len) => start.saturating_add(usize::try_from(len).unwrap_or(0)),
            None => bytes(span.offset() + span.len()),
        };
        // A collection's place is where it begins; its span is of no use to a reader.
        start..end.max(start + 1)
    }

    pub(crate) fn find<T>(&mut self, code: FindingCode, node: &Spanned<T>, message: impl Into<String>, hint: impl Into<String>) {
        let place = self.place(node);
        self.findings.at(code, self.source, place, message).hint(hint);
    }

    fn expect(&mut self, node: &Node, what: &str) {
        self.find(FindingCode::WrongType, node, format!("this is {}", node.value.kind()), format!("it must be {what}"));
    }

    pub(crate) fn fields<'n>(&mut self, node: &'n Node) -> Option<Fields<'n>> {
        let Value::Map(entries) = &node.value else {
            self.expect(node, "a mapping of keys to values");
            return None;
        };
        self.duplicates(entries);
        Some(Fields { place: self.place(node), entries, known: Vec::new() })
    }

    pub(crate) fn map<'n>(&mut self, node: &'n Node) -> &'n [(Spanned<String>, Node)] {
        if let Value::Map(entries) = &node.value {
            self.duplicates(entries);
            return entries;
        }
        self.expect(node, "a mapping of names to values");
        &[]
    }

    fn duplicates(&mut self, entries: &[(Spanned<String>, Node)]) {
        let mut seen = HashSet::new();
        for (key, _) in entries.iter().filter(|(key, _)| !seen.insert(&key.value)) {
            let message = format!("the key `{}` is there twice", key.value);
            self.find(FindingCode::Duplicate, key, message, "remove one of them");
        }
    }

    pub(crate) fn list<'n>(&mut self, node: &'n Node) -> &'n [Node] {
        if let Value::List(items) = &node.value {
            return items;
        }
        self.expect(node, "a list, such as [a, b]");
        &[]
    }

    pub(crate) fn text<'n>(&mut self, node: &'n Node) -> Option<&'n str> {
        if let Value::Text(text) = &node.value {
            return Some(text);
        }
        self.expect(node, "a text; put quotes around it");
        None
    }

    pub(crate) fn boolean(&mut self, node: &Node) -> Option<bool> {
        if let Value::Bool(value) = node.value {
            return Some(value);
        }
        self.expect(node, "true or false");
        None
    }

    pub(crate) fn integer(&mut self, node: &Node, min: i64, max: i64) -> Option<i64> {
        match node.value {
            Value::Integer(value) if (min..=max).contains(&value) => return Some(value),
            Value::Integer(_) | Value::Number => {
                self.find(
                    FindingCode::InvalidValue,
                    node,
                    "the number is out of range",
                    format!("it must be an integer from {min} to {max}"),
                );
            }
            Value::Null | Value::Bool(_) | Value::Text(_) | Value::List(_) | Value::Map(_) => self.expect(node, "an integer"),
        }
        None
    }

    pub(crate) fn choice<T: Copy>(&mut self, node: &Node, choices: &[(&'static str, T)]) -> Option<T> {
        let text = self.text(node)?;
        if let Some((_, value)) = choices.iter().find(|(name, _)| *name == text) {
            return Some(*value);
        }
        let names: Vec<_> = choices.iter().map(|(name, _)| format!("`{name}`")).collect();
        self.find(
            FindingCode::InvalidValue,
            node,
            format!("`{text}` is not known here"),
            format!("it must be {}", names.join(" or ")),
        );
        None
    }

    /// A text that some type of the domain accepts.
    pub(crate) fn id<T, E: fmt::Display>(&mut self, node: &Node, parse: impl FnOnce(&str) -> Result<T, E>) -> Option<T> {
        let text = self.text(node)?;
        parse(text)
            .map_err(|error| self.find(FindingCode::InvalidValue, node, "the value is not allowed", format!("it {error}")))
            .ok()
    }

    /// A key that some type of the domain accepts.
    pub(crate) fn key<T, E: fmt::Display>(
        &mut self,
        key: &Spanned<String>,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<T> {
        parse(&key.value)
            .map_err(|error| self.find(FindingCode::InvalidValue, key, "the name is not allowed", format!("it {error}")))
            .ok()
    }
}

impl<'n> Fields<'n> {
    pub(crate) fn optional(&mut self, name: &'static str) -> Option<&'n Node> {
        self.known.push(name);
        self.entries.iter().find(|(key, _)| key.value == name).map(|(_, node)| node)
    }

    pub(crate) fn required(&mut self, name: &'static str, reader: &mut Reader<'_>) -> Option<&'n Node> {
        let found = self.optional(name);
        if found.is_none() {
            let source = reader.source;
            let message = format!("the key `{name}` is missing");
            reader.findings.at(FindingCode::MissingKey, source, self.place.clone(), message).hint(format!("add `{name}: …`"));
        }
        found
    }

    /// Every key that nobody asked for is unknown.
    pub(crate) fn finish(self, reader: &mut Reader<'_>) {
        for (key, _) in self.entries {
            if !self.known.contains(&key.value.as_str()) {
                let hint = match nearest(&key.value, &self.known) {
                    Some(name) => format!("did you mean `{name}`?"),
                    None => format!("known keys are {}", self.known.join(", ")),
                };
                reader.find(FindingCode::UnknownKey, key, format!("unknown key `{}`", key.value), hint);
            }
        }
    }
}

/// The name that was probably meant.
pub(crate) fn nearest<'k>(name: &str, known: &[&'k str]) -> Option<&'k str> {
    let distances = known.iter().map(|candidate| (distance(name, candidate), *candidate));
    distances.min().filter(|(distance, candidate)| *distance <= candidate.len().div_ceil(3)).map(|(_, candidate)| candidate)
}

/// Edits between two names, a swap of neighbours counting as one.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().take(64).collect(), b.chars().collect());
    let mut rows: Vec<Vec<usize>> = vec![(0..=b.len()).collect()];
    let cell =
        |rows: &[Vec<usize>], i: usize, j: usize| rows.get(i).and_then(|row| row.get(j)).copied().unwrap_or(usize::MAX / 2);
    for (i, left) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, right) in b.iter().enumerate() {
            let mut best = (cell(&rows, i, j) + usize::from(left != right)).min(cell(&rows, i, j + 1) + 1);
            best = best.min(row.last().copied().unwrap_or_default() + 1);
            if i > 0 && j > 0 && a.get(i - 1) == Some(right) && b.get(j - 1) == Some(left) {
                best = best.min(cell(&rows, i - 1, j - 1) + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    cell(&rows, a.len(), b.len())
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a YAML value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Integer(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(i64::try_from(value).map_or(Value::Number, Value::Integer))
    }

    fn visit_i128<E>(self, _: i128) -> Result<Value, E> {
        Ok(Value::Number)
    }

    fn visit_u128<E>(self, _: u128) -> Result<Value, E> {
        Ok(Value::Number)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Value, E> {
        Ok(Value::Number)
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element()? {
            items.push(item);
        }
        Ok(Value::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut entries: Vec<(Spanned<String>, Node)> = Vec::new();
        while let Some((key, value)) = access.next_entry::<Spanned<String>, Node>()? {
            entries.push((key, value));
        }
        Ok(Value::Map(entries))
    }
}

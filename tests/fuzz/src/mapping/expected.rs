//! What the declared types make of arguments, read again from scratch: numbers by moving their point within the text of
//! all their digits, never by arithmetic.

use tollgate_domain::Json;

/// What a hook should say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expected {
    /// Some value does not fit its type.
    Unfit,
    /// All fit, and no pair of numbers differs.
    Equal,
    /// All fit, and a pair of numbers differs.
    Different,
    /// It hangs on a text that Cedar itself parses.
    Unknown,
}

enum Type {
    Bool,
    Long,
    Decimal,
    Text,
    /// A text that Cedar parses.
    Parsed,
    Set(&'static Type),
    Record(&'static [(&'static str, bool, Type)]),
}

const INPUT: Type = Type::Record(&[
    ("long", false, Type::Long),
    ("other_long", false, Type::Long),
    ("decimal", false, Type::Decimal),
    ("other_decimal", false, Type::Decimal),
    ("text", false, Type::Text),
    ("flag", false, Type::Bool),
    ("when", false, Type::Parsed),
    ("span", false, Type::Parsed),
    ("address", false, Type::Parsed),
    ("longs", false, Type::Set(&Type::Long)),
    (
        "record",
        false,
        Type::Record(&[
            ("needed", true, Type::Long),
            ("more", false, Type::Text),
            ("deeper", false, Type::Record(&[("flag", true, Type::Bool)])),
        ]),
    ),
    ("records", false, Type::Set(&Type::Record(&[("needed", false, Type::Decimal)]))),
    ("__entity", false, Type::Record(&[("type", true, Type::Text), ("id", true, Type::Text)])),
]);

/// What these arguments should come to.
pub(super) fn of(arguments: &Json) -> Expected {
    match fits(arguments, &INPUT) {
        Some(false) => Expected::Unfit,
        None => Expected::Unknown,
        Some(true) if differ(arguments, "long", 0) || differ(arguments, "decimal", 4) => Expected::Different,
        Some(true) => Expected::Equal,
    }
}

/// Whether a value fits; `None` where only Cedar can tell.
fn fits(value: &Json, declared: &Type) -> Option<bool> {
    Some(match (declared, value) {
        (Type::Bool, Json::Bool(_)) | (Type::Text, Json::String(_)) => true,
        (Type::Long, Json::Number(text)) => shifted(text, 0).is_some(),
        (Type::Decimal, Json::Number(text)) => shifted(text, 4).is_some(),
        (Type::Parsed, Json::String(_)) => return None,
        (Type::Set(element), Json::Array(items)) => return all(items.iter().map(|item| fits(item, element))),
        (Type::Record(fields), Json::Object(members)) => {
            let given = |name: &str| members.iter().any(|(own, _)| **own == *name);
            if fields.iter().any(|(name, required, _)| *required && !given(name)) {
                return Some(false);
            }
            return all(members.iter().map(|(name, value)| {
                let Some((_, required, declared)) = fields.iter().find(|(own, ..)| **own == **name) else { return Some(false) };
                if *value == Json::Null { Some(!required) } else { fits(value, declared) }
            }));
        }
        _ => false,
    })
}

fn all(each: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let each: Vec<_> = each.collect();
    if each.contains(&Some(false)) {
        Some(false)
    } else if each.contains(&None) {
        None
    } else {
        Some(true)
    }
}

fn differ(arguments: &Json, name: &str, places: usize) -> bool {
    let Json::Object(members) = arguments else { return false };
    let number = |name: &str| {
        let (_, value) = members.iter().find(|(own, _)| **own == *name)?;
        if let Json::Number(text) = value { shifted(text, places) } else { None }
    };
    matches!((number(name), number(&format!("other_{name}"))), (Some(a), Some(b)) if a != b)
}

/// A number with its point moved to the right, where it is then a whole one of 64 bits.
fn shifted(text: &str, places: usize) -> Option<i64> {
    let lower = text.to_ascii_lowercase();
    let (digits, exponent) = lower.split_once('e').unwrap_or((&lower, "0"));
    let (sign, digits) = digits.strip_prefix('-').map_or(("", digits), |digits| ("-", digits));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let digits = format!("{whole}{fraction}");
    let digits = digits.as_str();
    if digits.bytes().all(|digit| digit == b'0') {
        return Some(0);
    }
    let point = i64::try_from(whole.len() + places).ok()?.checked_add(exponent.parse().ok()?)?;
    let point = usize::try_from(point).ok()?;
    let (left, right) = digits.split_at(point.min(digits.len()));
    let left = left.trim_start_matches('0');
    let zeros = point - point.min(digits.len());
    if right.bytes().any(|digit| digit != b'0') || left.len() + zeros > 19 {
        return None;
    }
    format!("{sign}0{left}{}", "0".repeat(zeros)).parse().ok()
}

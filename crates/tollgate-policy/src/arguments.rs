//! JSON values as Cedar values of a declared type. What does not fit is refused; nothing is guessed.
//!
//! Values are built one by one, never by Cedar's reading of JSON: there, an object with the key
//! `__entity` or `__extn` would become an entity or an extension value that the caller chose.

use cedar_policy::{Context, RestrictedExpression};
use tollgate_domain::Json;

use crate::{
    number::{decimal_text, scaled},
    shape::{Fields, Shape},
};

/// A value does not fit its declared type. Says nothing of the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unrepresentable;

/// A record as far as it is built: its values, and the names of those that were null.
#[derive(Default)]
pub(crate) struct Built {
    pub(crate) values: Vec<(String, RestrictedExpression)>,
    pub(crate) nulls: Vec<String>,
}

/// An object as a record with the declared attributes: every required one, and no other.
pub(crate) fn record(value: &Json, fields: &Fields) -> Result<Built, Unrepresentable> {
    let mut built = Built::default();
    built.values = members(value, fields, "", &mut built.nulls)?;
    Ok(built)
}

/// One value that cannot be null.
pub(crate) fn value(value: &Json, shape: &Shape) -> Result<RestrictedExpression, Unrepresentable> {
    build(value, shape, "", &mut Vec::new())
}

fn members(
    value: &Json,
    fields: &Fields,
    path: &str,
    nulls: &mut Vec<String>,
) -> Result<Vec<(String, RestrictedExpression)>, Unrepresentable> {
    let Json::Object(members) = value else { return Err(Unrepresentable) };
    let mut values = Vec::with_capacity(members.len());
    let mut required = fields.values().filter(|field| field.required).count();
    for (name, value) in members {
        let field = fields.get(&**name).ok_or(Unrepresentable)?;
        let path = join(path, name);
        if *value == Json::Null && !field.required {
            nulls.push(path);
            continue;
        }
        required -= usize::from(field.required);
        values.push((name.to_string(), build(value, &field.shape, &path, nulls)?));
    }
    if required == 0 { Ok(values) } else { Err(Unrepresentable) }
}

fn build(value: &Json, shape: &Shape, path: &str, nulls: &mut Vec<String>) -> Result<RestrictedExpression, Unrepresentable> {
    Ok(match (shape, value) {
        (Shape::Bool, Json::Bool(value)) => RestrictedExpression::new_bool(*value),
        (Shape::Long, Json::Number(text)) => RestrictedExpression::new_long(scaled(text, 0).ok_or(Unrepresentable)?),
        (Shape::Decimal, Json::Number(text)) => {
            RestrictedExpression::new_decimal(decimal_text(scaled(text, 4).ok_or(Unrepresentable)?))
        }
        (Shape::String, Json::String(text)) => RestrictedExpression::new_string(text.to_string()),
        (Shape::Datetime, Json::String(text)) => parsed(RestrictedExpression::new_datetime(text))?,
        (Shape::Duration, Json::String(text)) => parsed(RestrictedExpression::new_duration(text))?,
        (Shape::Ip, Json::String(text)) => parsed(RestrictedExpression::new_ip(text))?,
        (Shape::Set(element), Json::Array(items)) => {
            let items = items.iter().enumerate();
            let items = items.map(|(index, item)| build(item, element, &join(path, &index.to_string()), nulls));
            RestrictedExpression::new_set(items.collect::<Result<Vec<_>, _>>()?)
        }
        (Shape::Record(fields), value) => {
            RestrictedExpression::new_record(members(value, fields, path, nulls)?).map_err(|_| Unrepresentable)?
        }
        (
            Shape::Bool
            | Shape::Long
            | Shape::Decimal
            | Shape::String
            | Shape::Datetime
            | Shape::Duration
            | Shape::Ip
            | Shape::Set(_)
            | Shape::Entity(_),
            Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) | Json::Array(_) | Json::Object(_),
        ) => return Err(Unrepresentable),
    })
}

/// Extension values are calls of their constructors, which fail only when they are evaluated: done here, one by one.
fn parsed(expression: RestrictedExpression) -> Result<RestrictedExpression, Unrepresentable> {
    let probe = Context::from_pairs([("value".to_owned(), expression.clone())]);
    if probe.is_ok() { Ok(expression) } else { Err(Unrepresentable) }
}

fn join(path: &str, name: &str) -> String {
    let name = name.replace('~', "~0").replace('/', "~1");
    if path.is_empty() { name } else { format!("{path}/{name}") }
}

//! From a call to a Cedar context: planned once against the declared type, then followed for each call.

use cedar_policy::{Context, RestrictedExpression};
use tollgate_domain::{Code, HookInput, codes};

use crate::{
    arguments,
    facts::{self, ARGUMENTS, FACTS, Known, Read},
    shape::{Fields, Shape},
};

/// How to build the context of one action.
#[derive(Debug, Default)]
pub(crate) struct Plan(Vec<Step>);

#[derive(Debug)]
struct Step {
    name: String,
    required: bool,
    source: From,
}

#[derive(Debug)]
enum From {
    Fact(Read),
    Group(Plan, fn(&HookInput<'_>) -> bool),
    Correlation(Vec<(String, bool)>),
    Input(Fields),
    Nulls,
}

/// Why a declared context cannot be planned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Misfit {
    /// Tollgate knows no such fact.
    Unknown { path: String },
    /// It knows it with another type.
    Type { path: String, expected: String },
    /// An argument has a type that no JSON value has.
    Argument { path: String },
    /// A typed action without arguments.
    NoInput,
}

impl Plan {
    /// Plans the context of an action, with arguments or without.
    pub(crate) fn of(context: &Fields, typed: bool, misfits: &mut Vec<Misfit>) -> Self {
        if typed && !context.contains_key("input") {
            misfits.push(Misfit::NoInput);
        }
        let arguments = if typed { ARGUMENTS } else { &[] };
        Self::group(context, &[FACTS, arguments], "", misfits)
    }

    fn group(fields: &Fields, known: &[&'static [(&'static str, Known)]], path: &str, misfits: &mut Vec<Misfit>) -> Self {
        let mut steps = Vec::with_capacity(fields.len());
        for (name, field) in fields {
            let path = format!("{path}{name}");
            let found = known.iter().copied().flatten().find(|(known, _)| known == name);
            let Some((_, known)) = found else {
                misfits.push(Misfit::Unknown { path });
                continue;
            };
            if let Some(source) = From::declared(known, &field.shape, path, misfits) {
                steps.push(Step { name: name.clone(), required: field.required, source });
            }
        }
        // The nulls are known when the arguments are built.
        steps.sort_by_key(|step| matches!(step.source, From::Nulls));
        Self(steps)
    }

    /// The context of one call, or the code with which the hook fails.
    pub(crate) fn context(&self, call: &HookInput<'_>) -> Result<Context, Code> {
        // Each value was built by its declared type and parsed where it needs parsing: were one still
        // not to fit, it would be a fact that this call cannot give.
        Context::from_pairs(self.values(call, &mut Vec::new())?).map_err(|_| codes::CONTEXT_UNAVAILABLE.clone())
    }

    fn values(&self, call: &HookInput<'_>, nulls: &mut Vec<String>) -> Result<Vec<(String, RestrictedExpression)>, Code> {
        let mut values = Vec::with_capacity(self.0.len());
        for Step { name, required, source } in &self.0 {
            match source.read(call, nulls)? {
                Some(value) => values.push((name.clone(), value)),
                None if *required => return Err(codes::CONTEXT_UNAVAILABLE.clone()),
                None => {}
            }
        }
        Ok(values)
    }
}

impl From {
    fn declared(known: &Known, shape: &Shape, path: String, misfits: &mut Vec<Misfit>) -> Option<Self> {
        let expected = match (known, shape) {
            (Known::Fact(expected, read), shape) if *shape == expected.shape() => return Some(Self::Fact(*read)),
            (Known::Group(known, present), Shape::Record(fields)) => {
                return Some(Self::Group(Plan::group(fields, &[known], &format!("{path}."), misfits), *present));
            }
            (Known::Correlation, Shape::Record(fields)) if fields.values().all(|field| field.shape == Shape::String) => {
                return Some(Self::Correlation(fields.iter().map(|(name, field)| (name.clone(), field.required)).collect()));
            }
            (Known::Input, Shape::Record(fields)) => {
                unrepresentable(fields, &format!("{path}."), misfits);
                return Some(Self::Input(fields.clone()));
            }
            (Known::Nulls, Shape::Set(element)) if **element == Shape::String => return Some(Self::Nulls),
            (Known::Fact(expected, _), _) => describe(&expected.shape()),
            (Known::Group(..) | Known::Input, _) => "a record".to_owned(),
            (Known::Correlation, _) => "a record of String".to_owned(),
            (Known::Nulls, _) => "Set<String>".to_owned(),
        };
        misfits.push(Misfit::Type { path, expected });
        None
    }

    fn read(&self, call: &HookInput<'_>, nulls: &mut Vec<String>) -> Result<Option<RestrictedExpression>, Code> {
        Ok(match self {
            Self::Fact(read) => read(call),
            Self::Group(plan, present) if present(call) => Some(record(plan.values(call, nulls)?)?),
            Self::Group(..) => None,
            Self::Correlation(names) => {
                let mut values = Vec::new();
                for (name, required) in names {
                    let found = call.call.runtime.correlation.iter().find(|(key, _)| key.as_str() == name);
                    match facts::correlation(found.map(|(_, value)| value)) {
                        Some(value) => values.push((name.clone(), value)),
                        None if *required => return Err(codes::CONTEXT_UNAVAILABLE.clone()),
                        None => {}
                    }
                }
                Some(record(values)?)
            }
            Self::Input(fields) => {
                let built = arguments::record(call.call.arguments.value(), fields);
                let built = built.map_err(|_| codes::ARGUMENT_UNREPRESENTABLE.clone())?;
                *nulls = built.nulls;
                Some(record(built.values)?)
            }
            Self::Nulls => Some(RestrictedExpression::new_set(nulls.drain(..).map(RestrictedExpression::new_string))),
        })
    }
}

fn record(values: Vec<(String, RestrictedExpression)>) -> Result<RestrictedExpression, Code> {
    RestrictedExpression::new_record(values).map_err(|_| codes::CONTEXT_UNAVAILABLE.clone())
}

/// No JSON value is an entity.
fn unrepresentable(fields: &Fields, path: &str, misfits: &mut Vec<Misfit>) {
    for (name, field) in fields {
        let path = format!("{path}{name}");
        let mut shape = &field.shape;
        while let Shape::Set(element) = shape {
            shape = element;
        }
        match shape {
            Shape::Entity(_) => misfits.push(Misfit::Argument { path }),
            Shape::Record(fields) => unrepresentable(fields, &format!("{path}."), misfits),
            Shape::Bool
            | Shape::Long
            | Shape::String
            | Shape::Decimal
            | Shape::Datetime
            | Shape::Duration
            | Shape::Ip
            | Shape::Set(_) => {}
        }
    }
}

/// A type as a schema writes it.
pub(crate) fn describe(shape: &Shape) -> String {
    match shape {
        Shape::Bool => "Bool".to_owned(),
        Shape::Long => "Long".to_owned(),
        Shape::String => "String".to_owned(),
        Shape::Decimal => "decimal".to_owned(),
        Shape::Datetime => "datetime".to_owned(),
        Shape::Duration => "duration".to_owned(),
        Shape::Ip => "ipaddr".to_owned(),
        Shape::Set(element) => format!("Set<{}>", describe(element)),
        Shape::Record(_) => "a record".to_owned(),
        Shape::Entity(name) => name.clone(),
    }
}

//! The types that a schema declares, resolved: Cedar keeps them to itself, so they are read from its JSON form.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// A declared type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Bool,
    Long,
    String,
    Decimal,
    Datetime,
    Duration,
    Ip,
    Set(Box<Shape>),
    Record(Fields),
    /// An entity type, with its namespace.
    Entity(String),
}

/// The attributes of a record or entity type.
pub(crate) type Fields = BTreeMap<String, Field>;

/// One attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) shape: Shape,
    pub(crate) required: bool,
}

/// An entity type as far as the mapping cares.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct EntityShape {
    pub(crate) attributes: Fields,
    /// The types of entities that it may be in.
    pub(crate) member_of: Vec<String>,
}

/// An action as far as the mapping cares.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ActionShape {
    pub(crate) principals: Vec<String>,
    pub(crate) resources: Vec<String>,
    pub(crate) context: Fields,
}

/// Every declaration of a schema, by its name with namespace.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shapes {
    common: BTreeMap<String, (String, Value)>,
    entities: BTreeMap<String, (String, Value)>,
    actions: BTreeMap<String, BTreeMap<String, Value>>,
}

/// A type that nests deeper than any valid schema's.
const MAX_DEPTH: usize = 64;

impl Shapes {
    /// Adds the declarations of one fragment, in the JSON form of Cedar schemas.
    pub(crate) fn add(&mut self, fragment: Value) {
        let Value::Object(namespaces) = fragment else { return };
        for (namespace, mut body) in namespaces {
            for (name, declared) in take(&mut body, "commonTypes") {
                self.common.insert(qualify(&namespace, &name), (namespace.clone(), declared));
            }
            for (name, declared) in take(&mut body, "entityTypes") {
                self.entities.insert(qualify(&namespace, &name), (namespace.clone(), declared));
            }
            self.actions.entry(namespace.clone()).or_default().extend(take(&mut body, "actions"));
        }
    }

    /// An entity type by its full name.
    pub(crate) fn entity(&self, name: &str) -> Option<EntityShape> {
        let (namespace, declared) = self.entities.get(name)?;
        let attributes = declared.get("shape").and_then(|shape| self.resolve(namespace, shape, 0));
        let member_of = names(declared.get("memberOfTypes")).map(|name| self.entity_name(namespace, name)).collect();
        Some(EntityShape { attributes: record(attributes), member_of })
    }

    /// An action by its namespace and id.
    pub(crate) fn action(&self, namespace: &str, id: &str) -> Option<ActionShape> {
        let applies = self.actions.get(namespace)?.get(id)?.get("appliesTo")?;
        let types = |key| names(applies.get(key)).map(|name| self.entity_name(namespace, name)).collect();
        let context = applies.get("context").and_then(|context| self.resolve(namespace, context, 0));
        Some(ActionShape { principals: types("principalTypes"), resources: types("resourceTypes"), context: record(context) })
    }

    fn resolve(&self, namespace: &str, declared: &Value, depth: usize) -> Option<Shape> {
        if depth > MAX_DEPTH {
            return None;
        }
        let name = |key| declared.get(key).and_then(Value::as_str);
        Some(match name("type")? {
            "Boolean" | "Bool" => Shape::Bool,
            "Long" => Shape::Long,
            "String" => Shape::String,
            "Set" => Shape::Set(Box::new(self.resolve(namespace, declared.get("element")?, depth + 1)?)),
            "Record" => {
                let mut fields = Fields::new();
                for (key, declared) in declared.get("attributes")?.as_object()? {
                    let required = declared.get("required").and_then(Value::as_bool).unwrap_or(true);
                    fields.insert(key.clone(), Field { shape: self.resolve(namespace, declared, depth + 1)?, required });
                }
                Shape::Record(fields)
            }
            "Extension" => extension(name("name")?)?,
            "Entity" => Shape::Entity(self.entity_name(namespace, name("name")?)),
            "EntityOrCommon" => self.named(namespace, name("name")?, depth)?,
            common => self.named(namespace, common, depth)?,
        })
    }

    /// Resolves a name as Cedar does: the namespace at hand, then the empty one, then what Cedar has built in.
    fn named(&self, namespace: &str, name: &str, depth: usize) -> Option<Shape> {
        for candidate in candidates(namespace, name) {
            if let Some((home, declared)) = self.common.get(&candidate) {
                return self.resolve(home, declared, depth + 1);
            }
            if self.entities.contains_key(&candidate) {
                return Some(Shape::Entity(candidate));
            }
        }
        match name.strip_prefix("__cedar::").unwrap_or(name) {
            "Bool" | "Boolean" => Some(Shape::Bool),
            "Long" => Some(Shape::Long),
            "String" => Some(Shape::String),
            other => extension(other),
        }
    }

    fn entity_name(&self, namespace: &str, name: &str) -> String {
        let found = candidates(namespace, name).find(|candidate| self.entities.contains_key(candidate));
        found.unwrap_or_else(|| qualify(namespace, name))
    }
}

fn extension(name: &str) -> Option<Shape> {
    match name {
        "decimal" => Some(Shape::Decimal),
        "datetime" => Some(Shape::Datetime),
        "duration" => Some(Shape::Duration),
        "ipaddr" => Some(Shape::Ip),
        _ => None,
    }
}

fn record(shape: Option<Shape>) -> Fields {
    if let Some(Shape::Record(fields)) = shape { fields } else { Fields::new() }
}

fn qualify(namespace: &str, name: &str) -> String {
    if namespace.is_empty() || name.contains("::") { name.to_owned() } else { format!("{namespace}::{name}") }
}

fn candidates(namespace: &str, name: &str) -> impl Iterator<Item = String> {
    [qualify(namespace, name), name.to_owned()].into_iter()
}

fn names(list: Option<&Value>) -> impl Iterator<Item = &str> {
    list.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

fn take(body: &mut Value, key: &str) -> Map<String, Value> {
    match body.get_mut(key).map(Value::take) {
        Some(Value::Object(map)) => map,
        _ => Map::new(),
    }
}

//! What definitions say of a field: its type and its limits, without any description.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::rules::{Rule, rules_of};

/// How deep schemas are followed.
const MAX_DEPTH: usize = 60;
/// The largest whole number that a float holds exactly.
const MAX_EXACT: f64 = 9_007_199_254_740_992.0;

/// A field's type and limits.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Node {
    pub shape: Shape,
    /// Of text its length, of numbers their value, of lists and objects how much is in them.
    pub range: Range,
    pub pattern: Option<String>,
    pub format: Option<String>,
    /// All values that are allowed, in the definition's order.
    pub values: Option<Vec<String>>,
    /// A scalar that stands where nothing is given.
    pub default: Option<Value>,
    /// What fields below ask of each other.
    pub rules: BTreeSet<Rule>,
}

/// A type.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum Shape {
    #[default]
    Any,
    Object {
        fields: BTreeMap<String, Field>,
        keeps_others: bool,
    },
    Map(Box<Node>),
    List {
        item: Box<Node>,
        unique: Option<Vec<String>>,
    },
    Text,
    Integer,
    Number,
    Boolean,
    IntegerOrText,
}

/// A named field of an object.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Field {
    pub is_required: bool,
    pub node: Node,
}

/// What a number is between.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Range {
    pub min: Option<Bound>,
    pub max: Option<Bound>,
}

/// An end of a range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Bound {
    pub at: f64,
    pub is_exclusive: bool,
}

impl Range {
    fn from_schema(schema: &Value, keys: (&str, &str)) -> Self {
        let bound = |key: &str, exclusive: &str| {
            let at = schema[key].as_f64().filter(|at| at.abs() <= MAX_EXACT)?;
            Some(Bound { at, is_exclusive: schema[exclusive] == true })
        };
        let min = bound(keys.0, "exclusiveMinimum").filter(|min| keys.0 == "minimum" || min.at > 0.0);
        Self { min, max: bound(keys.1, "exclusiveMaximum") }
    }

    /// What both ranges and all between them allow.
    fn widened(self, other: Self) -> Self {
        let pick = |a: Option<Bound>, b: Option<Bound>, is_min: bool| {
            let (a, b) = a.zip(b)?;
            let a_is_wider = if is_min { a.at < b.at } else { a.at > b.at };
            if a.at.total_cmp(&b.at).is_eq() {
                return Some(Bound { is_exclusive: a.is_exclusive && b.is_exclusive, ..a });
            }
            Some(if a_is_wider { a } else { b })
        };
        Self { min: pick(self.min, other.min, true), max: pick(self.max, other.max, false) }
    }
}

impl Node {
    /// The root of an object: without what every object has, and without what only the operator writes.
    pub(super) fn of_object(schema: &Value) -> Self {
        let mut root = Self::from_schema(schema, 0);
        if let Shape::Object { fields, .. } = &mut root.shape {
            for own in ["apiVersion", "kind", "metadata", "status"] {
                fields.remove(own);
            }
        }
        root.default = None;
        root.rules.retain(|rule| !rule.fields().any(|field| field.starts_with("status")));
        root
    }

    fn from_schema(schema: &Value, depth: usize) -> Self {
        if depth > MAX_DEPTH || !schema.is_object() {
            return Self::default();
        }
        let shape = Shape::from_schema(schema, depth);
        let (low, high) = match shape {
            Shape::Text => ("minLength", "maxLength"),
            Shape::List { .. } => ("minItems", "maxItems"),
            Shape::Object { .. } | Shape::Map(_) => ("minProperties", "maxProperties"),
            _ => ("minimum", "maximum"),
        };
        let has_number = matches!(shape, Shape::Integer | Shape::Number);
        let is_text = matches!(shape, Shape::Text | Shape::IntegerOrText);
        let is_open = matches!(shape, Shape::Any | Shape::Boolean | Shape::IntegerOrText);
        let default = schema.get("default").filter(|it| !it.is_null()).cloned();
        let mut node = Self {
            range: if is_open { Range::default() } else { Range::from_schema(schema, (low, high)) },
            pattern: schema["pattern"].as_str().filter(|_| is_text).map(str::to_owned),
            format: schema["format"].as_str().filter(|_| shape == Shape::Text).map(str::to_owned),
            values: (has_number || shape == Shape::Text).then(|| values(schema)).flatten(),
            default,
            rules: BTreeSet::new(),
            shape,
        };
        node.add_all_of(schema);
        for (steps, rule) in rules_of(schema) {
            if let Some(below) = node.descendant(&steps) {
                below.rules.insert(rule);
            }
        }
        node
    }

    /// Limits of one field that were written in several places.
    fn add_all_of(&mut self, schema: &Value) {
        for part in schema["allOf"].as_array().into_iter().flatten() {
            if self.shape != Shape::Text {
                continue;
            }
            let range = Range::from_schema(part, ("minLength", "maxLength"));
            self.range.min = self.range.min.or(range.min);
            self.range.max = self.range.max.or(range.max);
            self.pattern = self.pattern.take().or_else(|| part["pattern"].as_str().map(str::to_owned));
            self.values = self.values.take().or_else(|| values(part));
        }
    }

    /// The node that steps lead to: names of fields, and `[]` for the items of a list.
    fn descendant(&mut self, steps: &[String]) -> Option<&mut Self> {
        let Some((first, rest)) = steps.split_first() else { return Some(self) };
        let inner = match &mut self.shape {
            Shape::List { item, .. } if first == "[]" => item,
            Shape::Object { fields, .. } => &mut fields.get_mut(first)?.node,
            _ => return None,
        };
        inner.descendant(rest)
    }

    /// What either of two versions accepts.
    pub(super) fn widen(&mut self, other: Self) {
        let shape = std::mem::take(&mut self.shape);
        let Some(shape) = shape.widened(other.shape) else {
            *self = Self::default();
            return;
        };
        self.shape = shape;
        self.range = self.range.widened(other.range);
        let same = |a: &mut Option<String>, b: Option<String>| {
            if *a != b {
                *a = None;
            }
        };
        same(&mut self.pattern, other.pattern);
        same(&mut self.format, other.format);
        self.values = self.values.take().zip(other.values).map(|(mut own, others)| {
            own.extend(others.into_iter().filter(|value| !own.contains(value)).collect::<Vec<_>>());
            own
        });
        if self.default != other.default {
            self.default = None;
        }
        self.rules = Rule::common(&self.rules, &other.rules);
    }

    /// Takes away what is asked to be there: something completes objects before they are judged.
    pub(super) fn require_nothing(&mut self) {
        self.rules.retain(|rule| !rule.asks_for_a_field());
        match &mut self.shape {
            Shape::Object { fields, .. } => {
                for field in fields.values_mut() {
                    field.is_required = false;
                    field.node.require_nothing();
                }
            }
            Shape::Map(inner) | Shape::List { item: inner, .. } => inner.require_nothing(),
            _ => {}
        }
    }

    /// Whether this names fields.
    pub(super) fn has_fields(&self) -> bool {
        matches!(&self.shape, Shape::Object { fields, .. } if !fields.is_empty())
    }
}

impl Shape {
    fn from_schema(schema: &Value, depth: usize) -> Self {
        let flag = |name: &str| schema[name] == true;
        let inner = |part: &Value| Box::new(Node::from_schema(part, depth + 1));
        if flag("x-kubernetes-int-or-string") || schema["format"] == "int-or-string" {
            return Self::IntegerOrText;
        }
        if flag("x-kubernetes-embedded-resource") {
            return Self::Any;
        }
        let keeps_others = flag("x-kubernetes-preserve-unknown-fields") || flag("additionalProperties");
        match schema["type"].as_str() {
            Some("string") => Self::Text,
            Some("integer") => Self::Integer,
            Some("number") => Self::Number,
            Some("boolean") => Self::Boolean,
            Some("array") if schema["items"].is_object() => {
                Self::List { item: inner(&schema["items"]), unique: unique(schema) }
            }
            Some("object") if schema["additionalProperties"].is_object() => {
                Self::Map(inner(&schema["additionalProperties"]))
            }
            Some("object") => {
                let properties = schema["properties"].as_object().into_iter().flatten();
                let required: Vec<&str> =
                    schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
                let field = |(name, part): (&String, &Value)| {
                    let node = *inner(part);
                    let is_required = required.contains(&name.as_str()) && node.default.is_none();
                    (name.clone(), Field { is_required, node })
                };
                let fields: BTreeMap<String, Field> = properties.map(field).collect();
                // Of an object without a field the cluster keeps nothing. That is rarely what was meant.
                if fields.is_empty() { Self::Any } else { Self::Object { fields, keeps_others } }
            }
            _ => Self::Any,
        }
    }

    /// What either accepts; nothing if they have nothing in common.
    fn widened(self, other: Self) -> Option<Self> {
        Some(match (self, other) {
            (
                Self::Object { fields: mut own, keeps_others: a },
                Self::Object { fields: others, keeps_others: b },
            ) => {
                own.iter_mut().filter(|(name, _)| !others.contains_key(*name)).for_each(|(_, field)| {
                    field.is_required = false;
                });
                for (name, field) in others {
                    match own.get_mut(&name) {
                        Some(known) => {
                            known.is_required &= field.is_required;
                            known.node.widen(field.node);
                        }
                        None => drop(own.insert(name, Field { is_required: false, ..field })),
                    }
                }
                Self::Object { fields: own, keeps_others: a || b }
            }
            (Self::Map(mut a), Self::Map(b)) => {
                a.widen(*b);
                Self::Map(a)
            }
            (Self::List { mut item, unique: a }, Self::List { item: other, unique: b }) => {
                item.widen(*other);
                Self::List { item, unique: a.filter(|a| Some(a) == b.as_ref()) }
            }
            (Self::IntegerOrText, Self::Integer | Self::Text)
            | (Self::Integer | Self::Text, Self::IntegerOrText) => Self::IntegerOrText,
            (Self::Integer, Self::Number) | (Self::Number, Self::Integer) => Self::Number,
            (a, b) if a == b => a,
            _ => return None,
        })
    }
}

/// The keys by which no two items of a list are the same; none of them for a set.
fn unique(schema: &Value) -> Option<Vec<String>> {
    let keys = schema["x-kubernetes-list-map-keys"].as_array().into_iter().flatten();
    match schema["x-kubernetes-list-type"].as_str() {
        Some("set") => Some(Vec::new()),
        Some("map") => Some(keys.filter_map(|key| key.as_str().map(str::to_owned)).collect()),
        _ => None,
    }
}

/// The values that a schema lists, if they can be written between brackets.
fn values(schema: &Value) -> Option<Vec<String>> {
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    let mut listed: Vec<String> = Vec::new();
    for value in schema["enum"].as_array()? {
        let value = text(value)?;
        if !listed.contains(&value) {
            listed.push(value);
        }
    }
    let can_be_written = |value: &String| !value.contains(['|', '(', ')', '\n']);
    (listed.iter().all(can_be_written) && !are_releases(&listed, schema)).then_some(listed)
}

/// Whether texts are the releases of something, to which the next months add one.
fn are_releases(values: &[String], schema: &Value) -> bool {
    const MANY: usize = 5;
    let is_release = |value: &&String| {
        let mut parts = value.trim_start_matches('v').split('.');
        parts.all(|part| !part.is_empty() && part.chars().all(|c| c.is_ascii_digit()))
    };
    schema["type"] != "integer" && values.iter().filter(is_release).count() >= MANY
}

//! How the tables are written, and what their lines come to as schemas.
//!
//! A table has, in this order, patterns (`~NAME PATTERN`), objects that occur in several places (`@NAME`),
//! and kinds (`GROUP/VERSION,VERSION KIND,KIND`), which begin in the first column. Below an object or a kind
//! stand its fields, one blank deeper for each level: the name, `!` if the field has to be there, and the
//! type:
//!
//! | text | type |
//! |---|---|
//! | `s` `i` `n` `b` | text, whole number, number, Boolean |
//! | `x` | whole number or text |
//! | `o`, `o+` | an object with the fields below; with `+` others are kept, too |
//! | `@NAME` | an object of the table, or with dots in its name a type of Kubernetes |
//! | `*` | anything |
//! | `[`, `[^:`, `[^KEY,KEY:` before a type | a list of it; a set; a list of items that differ in these |
//! | `{` before a type | a map of it |
//!
//! Behind `[`, `{` or a type stands how many items, fields or signs there may be, or between which numbers a
//! number is: `1..64`, `..64`, `0<..` (more than 0). Then follow, each only where there is one, a format
//! (`%date-time`), the values that are allowed (`(a|b)`), the default (` =a`), and a pattern (` ~NAME`, or
//! ` /PATTERN` up to the end of the line).
//!
//! Lines that begin with `?` say what fields ask of each other; see [`super::field_rules`].

use std::collections::HashMap;

use tiphys_value::{Map, Value, json};

use super::{
    core_types::{self, anything},
    field_rules::{FieldRule, FieldRules},
};

/// How deep objects of the table may refer to each other.
const MAX_DEPTH: usize = 60;

/// The table of a group.
pub(super) struct Table {
    patterns: HashMap<&'static str, &'static str>,
    /// Objects by name, as the text that begins with their fields.
    objects: HashMap<&'static str, &'static str>,
}

/// The lines that are still to be read.
type Lines = std::iter::Peekable<std::str::Lines<'static>>;

impl Table {
    pub(super) fn new(text: &'static str) -> Self {
        let (mut patterns, mut objects) = (HashMap::new(), HashMap::new());
        let mut rest = text;
        while let Some((line, after)) = rest.split_once('\n') {
            rest = after;
            if let Some((name, pattern)) = line.strip_prefix('~').and_then(|it| it.split_once(' ')) {
                patterns.insert(name, pattern);
            } else if let Some(name) = line.strip_prefix('@') {
                objects.insert(name, after);
            } else if !line.starts_with(' ') {
                break;
            }
        }
        Self { patterns, objects }
    }

    /// The schema and the rules of the object whose fields a text begins with.
    pub(super) fn object(&self, fields: &'static str) -> (Value, FieldRules) {
        let (mut schema, rules) = self.fields(&mut fields.lines().peekable(), 1, 0);
        schema["properties"]["status"] = anything();
        (schema, rules)
    }

    /// The fields of a level, and what is below them.
    fn fields(&self, lines: &mut Lines, depth: usize, nested: usize) -> (Value, FieldRules) {
        let (mut properties, mut required) = (Map::new(), Vec::new());
        let mut rules = FieldRules::default();
        while let Some(line) = lines.next_if(|line| indent(line) >= depth) {
            let line = line.trim_start_matches(' ');
            if let Some(rule) = line.strip_prefix("? ") {
                rules.here.extend(FieldRule::read(rule));
                continue;
            }
            let Some(field) = FieldLine::read(line) else { continue };
            if field.is_required {
                required.push(Value::from(field.name));
            }
            let (mut schema, inner) = self.field_schema(&field, lines, depth, nested);
            schema["nullable"] = true.into();
            properties.insert(field.name.to_owned(), schema);
            rules.add_field(field.name, inner);
        }
        (json!({"type": "object", "properties": properties, "required": required}), rules)
    }

    fn field_schema(
        &self,
        field: &FieldLine,
        lines: &mut Lines,
        depth: usize,
        nested: usize,
    ) -> (Value, FieldRules) {
        let (mut schema, mut rules) = match field.ty.name {
            "o" => self.fields(lines, depth + 1, nested),
            "@" => self.object_by_name(field.ty.object, nested),
            other => (scalar(other), FieldRules::default()),
        };
        if field.ty.keeps_others {
            schema["x-kubernetes-preserve-unknown-fields"] = true.into();
        }
        let (low, high) = match field.ty.name {
            "s" => ("minLength", "maxLength"),
            "i" | "n" => ("minimum", "maximum"),
            _ => ("minProperties", "maxProperties"),
        };
        field.ty.range.add_to(&mut schema, low, high);
        if let Some(format) = field.ty.format {
            schema["format"] = format.into();
        }
        if let Some(values) = field.ty.values {
            let values: Vec<Value> = values.split('|').map(|value| typed(field.ty.name, value)).collect();
            schema["enum"] = values.into();
        }
        if let Some(pattern) = field.pattern(&self.patterns) {
            schema["pattern"] = pattern.into();
        }
        for list in field.ty.around.iter().rev() {
            schema = match list {
                Around::Map(range) => {
                    let mut map = json!({"type": "object", "additionalProperties": schema});
                    range.add_to(&mut map, "minProperties", "maxProperties");
                    map
                }
                Around::List(range, unique) => {
                    let mut list = json!({"type": "array", "items": schema});
                    range.add_to(&mut list, "minItems", "maxItems");
                    match *unique {
                        None => {}
                        Some("") => list["x-kubernetes-list-type"] = "set".into(),
                        Some(keys) => {
                            list["x-kubernetes-list-type"] = "map".into();
                            list["x-kubernetes-list-map-keys"] = keys.split(',').collect::<Vec<_>>().into();
                        }
                    }
                    list
                }
            };
            rules = FieldRules::of_items(rules);
        }
        if let Some(default) = field.default {
            schema["default"] = typed(field.ty.name, default);
        }
        (schema, rules)
    }

    /// An object of the table, or a type of Kubernetes.
    fn object_by_name(&self, name: &str, nested: usize) -> (Value, FieldRules) {
        if name.contains('.') {
            return (core_types::schema(name), FieldRules::default());
        }
        match self.objects.get(name).filter(|_| nested < MAX_DEPTH) {
            Some(text) => self.fields(&mut text.lines().peekable(), 1, nested + 1),
            None => (anything(), FieldRules::default()),
        }
    }

    /// The lines that say nothing.
    #[cfg(test)]
    pub(super) fn unread_lines(&self, text: &'static str) -> Vec<&'static str> {
        let is_known = |name: &str| match name.contains('.') {
            true => tiphys_schema::Catalog::latest().reference(&format!("io.k8s.{name}")).is_some(),
            false => self.objects.contains_key(name),
        };
        let is_read = |line: &'static str| {
            let line = line.trim_start_matches(' ');
            if let Some(rule) = line.strip_prefix("? ") {
                return FieldRule::read(rule).is_some();
            }
            FieldLine::read(line).is_some_and(|field| {
                let known = field.ty.name != "@" || is_known(field.ty.object);
                known && (field.rest.is_empty() || field.pattern(&self.patterns).is_some())
            })
        };
        text.lines().filter(|line| line.starts_with(' ') && !is_read(line)).collect()
    }
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

/// A line of a field.
struct FieldLine {
    name: &'static str,
    is_required: bool,
    ty: FieldType,
    default: Option<&'static str>,
    /// The pattern.
    rest: &'static str,
}

impl FieldLine {
    fn read(line: &'static str) -> Option<Self> {
        let (name, text) = line.split_once(' ')?;
        let known = name.trim_end_matches('!');
        let (ty, mut rest) = FieldType::read(text)?;
        let mut default = None;
        if let Some(text) = rest.strip_prefix(" =") {
            let (value, after) = text.split_at(text.find(' ').unwrap_or(text.len()));
            (default, rest) = (Some(value), after);
        }
        Some(Self { name: known, is_required: known != name, ty, default, rest })
    }

    fn pattern(&self, patterns: &HashMap<&'static str, &'static str>) -> Option<&'static str> {
        match self.rest.strip_prefix(" ~") {
            Some(name) => patterns.get(name).copied(),
            None => self.rest.strip_prefix(" /"),
        }
    }
}

/// A type with the limits that stand in one word.
struct FieldType {
    around: Vec<Around>,
    /// A letter, or `@`.
    name: &'static str,
    /// The name behind `@`.
    object: &'static str,
    keeps_others: bool,
    range: Range,
    format: Option<&'static str>,
    values: Option<&'static str>,
}

/// What a type is in.
enum Around {
    /// A list, with the fields in which its items differ.
    List(Range, Option<&'static str>),
    Map(Range),
}

impl FieldType {
    fn read(text: &'static str) -> Option<(Self, &'static str)> {
        let (mut rest, mut around) = (text, Vec::new());
        loop {
            if let Some(after) = rest.strip_prefix('[') {
                let (unique, after) = match after.strip_prefix('^') {
                    Some(keys) => {
                        let (keys, after) = keys.split_once(':')?;
                        (Some(keys), after)
                    }
                    None => (None, after),
                };
                let (range, after) = Range::read(after)?;
                around.push(Around::List(range, unique));
                rest = after;
            } else if let Some(after) = rest.strip_prefix('{') {
                let (range, after) = Range::read(after)?;
                around.push(Around::Map(range));
                rest = after;
            } else {
                break;
            }
        }
        let (name, mut rest) = rest.split_at_checked(1)?;
        if !["o", "s", "i", "n", "b", "x", "*", "@"].contains(&name) {
            return None;
        }
        let mut object = "";
        if name == "@" {
            (object, rest) = rest.split_at(rest.find([' ', '+', ':']).unwrap_or(rest.len()));
        }
        let keeps_others = rest.starts_with('+');
        let rest = rest.strip_prefix('+').unwrap_or(rest);
        let (range, mut rest) = Range::read(rest.strip_prefix(':').unwrap_or(rest))?;
        let mut format = None;
        if let Some(text) = rest.strip_prefix('%') {
            let (word, after) = text.split_at(text.find(['(', ' ']).unwrap_or(text.len()));
            (format, rest) = (Some(word), after);
        }
        let mut values = None;
        if let Some(text) = rest.strip_prefix('(') {
            let (listed, after) = text.split_once(')')?;
            (values, rest) = (Some(listed), after);
        }
        Some((Self { around, name, object, keeps_others, range, format, values }, rest))
    }
}

/// What a number or a count is between.
#[derive(Default)]
struct Range {
    min: &'static str,
    max: &'static str,
}

impl Range {
    fn read(text: &'static str) -> Option<(Self, &'static str)> {
        let end = text.find(|c: char| !(c.is_ascii_digit() || "-.<".contains(c))).unwrap_or(text.len());
        let (range, rest) = text.split_at(end);
        if range.is_empty() {
            return Some((Self::default(), rest));
        }
        let (min, max) = range.split_once("..")?;
        Some((Self { min, max }, rest))
    }

    fn add_to(&self, schema: &mut Value, low: &str, high: &str) {
        for (bound, key, exclusive) in
            [(self.min, low, "exclusiveMinimum"), (self.max, high, "exclusiveMaximum")]
        {
            let number = bound.trim_matches('<');
            let read =
                number.parse::<i64>().map(Value::from).or_else(|_| number.parse::<f64>().map(Value::from));
            let Ok(read) = read else { continue };
            schema[key] = read;
            if number != bound {
                schema[exclusive] = true.into();
            }
        }
    }
}

fn scalar(name: &str) -> Value {
    match name {
        "s" => json!({"type": "string"}),
        "i" => json!({"type": "integer"}),
        "n" => json!({"type": "number"}),
        "b" => json!({"type": "boolean"}),
        "x" => json!({"x-kubernetes-int-or-string": true}),
        _ => anything(),
    }
}

/// A value that the table writes without its type.
fn typed(name: &str, value: &str) -> Value {
    let number =
        || value.parse::<i64>().map(Value::from).or_else(|_| value.parse::<f64>().map(Value::from)).ok();
    let read = match name {
        "i" | "n" => number(),
        "x" => value.parse::<i64>().map(Value::from).ok(),
        "b" => value.parse::<bool>().map(Value::from).ok(),
        _ => None,
    };
    read.unwrap_or_else(|| value.into())
}

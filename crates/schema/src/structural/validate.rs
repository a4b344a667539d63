//! Validation of a value by a structural schema, in the API server's words.

use std::{
    collections::{HashMap, HashSet},
    sync::OnceLock,
};

use serde_json::{Map, Value};
use tiphys_gocompat::regex::Regex;

use super::{MAX_DEPTH, flag, formats};
use crate::{ErrorKind, ErrorList, FieldError, FieldRule, JsonType, Path};

/// The patterns of a schema, each compiled when the first value is held against it: most never are. A
/// pattern that does not compile here accepts everything: the API server has refused the definition, or its
/// dialect is wider than ours.
#[derive(Debug, Default)]
pub(super) struct Patterns(HashMap<String, OnceLock<Option<Regex>>>);

impl Patterns {
    /// Every pattern in a schema.
    pub(super) fn from_schema(schema: &Value) -> Self {
        let mut found = Self::default();
        found.collect(schema, 0);
        found
    }

    fn collect(&mut self, schema: &Value, depth: usize) {
        if depth > MAX_DEPTH {
            return;
        }
        match schema {
            Value::Object(map) => {
                if let Some(pattern) = map.get("pattern").and_then(Value::as_str) {
                    self.0.entry(pattern.to_owned()).or_default();
                }
                map.values().for_each(|inner| self.collect(inner, depth + 1));
            }
            Value::Array(items) => items.iter().for_each(|inner| self.collect(inner, depth + 1)),
            _ => {}
        }
    }

    /// Whether a text is refused by a pattern.
    fn refuses(&self, pattern: &str, text: &str) -> bool {
        let compiled = self.0.get(pattern).map(|cell| cell.get_or_init(|| Regex::compile(pattern).ok()));
        compiled.is_some_and(|regex| regex.as_ref().is_some_and(|regex| !regex.is_match(text)))
    }
}

/// Faults of an object; values equal to those of `old` at the same place are forgiven.
pub(super) fn validate(
    schema: &Value,
    patterns: &Patterns,
    object: &Value,
    old: Option<&Value>,
) -> ErrorList {
    let mut validator = Validator { patterns, errors: ErrorList::new() };
    validator.resource(schema, object, old, &Path::root());
    validator.errors
}

struct Validator<'a> {
    patterns: &'a Patterns,
    errors: ErrorList,
}

impl Validator<'_> {
    /// The root: its metadata is validated elsewhere.
    fn resource(&mut self, schema: &Value, object: &Value, old: Option<&Value>, path: &Path) {
        let mut object = object.clone();
        if let (Value::Object(map), true) = (&mut object, schema["properties"]["metadata"].is_null()) {
            map.remove("metadata");
        }
        self.value(schema, &object, old, path, 0);
    }

    fn invalid(&mut self, path: &Path, value: &Value, detail: &str) {
        let detail = format!("{path} in body {detail}");
        self.errors.push(FieldError::invalid(path, value.clone(), detail));
    }

    fn value(&mut self, schema: &Value, value: &Value, old: Option<&Value>, path: &Path, depth: usize) {
        let unchanged = old.is_some_and(|old| old == value);
        if depth > MAX_DEPTH || unchanged || (value.is_null() && flag(schema, "nullable")) {
            return;
        }
        if !self.is_of_type(schema, value, path) {
            self.allowed(schema, value, path);
            return;
        }
        self.combinations(schema, value, path, depth);
        match value {
            Value::String(text) => self.string(schema, text, value, path),
            Value::Number(number) => self.number(schema, number.as_f64().unwrap_or_default(), value, path),
            Value::Array(items) => self.array(schema, items, old, path, depth),
            _ => {}
        }
        self.allowed(schema, value, path);
        if let Value::Object(map) = value {
            self.object(schema, map, old, path, depth);
        }
    }

    fn is_of_type(&mut self, schema: &Value, value: &Value, path: &Path) -> bool {
        let found = type_name(value);
        let expected = schema["type"].as_str().unwrap_or_default();
        let int_or_string = flag(schema, "x-kubernetes-int-or-string");
        let fits = match expected {
            "" if int_or_string => matches!(found, "integer" | "string"),
            "" => true,
            "number" => matches!(found, "number" | "integer"),
            expected => expected == found,
        };
        if !fits {
            // A number's or a text's format is what the API server misses first.
            let format = schema["format"].as_str().filter(|format| !format.is_empty());
            let (expected, found) = match format.zip(format_name(value)) {
                Some((format, own)) => (format, own),
                None if int_or_string => ("integer,string", found),
                None => (expected, found),
            };
            let detail = format!("{path} in body must be of type {expected}: \"{found}\"");
            let detail = detail.trim_start_matches("<nil>").trim_start().to_owned();
            let rule = FieldRule::JsonType {
                found: JsonType::from_name(found),
                wanted: JsonType::from_name(expected),
            };
            let error = FieldError::new(ErrorKind::TypeInvalid, path, Some(found.into()), detail);
            self.errors.push(error.by_rule(rule));
        }
        fits
    }

    fn allowed(&mut self, schema: &Value, value: &Value, path: &Path) {
        let Some(allowed) = schema["enum"].as_array() else { return };
        if !allowed.contains(value) {
            let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let texts: Vec<String> = allowed.iter().map(text).collect();
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            self.errors.push(FieldError::not_supported(path, value.clone(), &texts));
        }
    }

    fn string(&mut self, schema: &Value, text: &str, value: &Value, path: &Path) {
        let length = text.chars().count() as u64;
        if let Some(limit) = schema["maxLength"].as_u64().filter(|limit| length > *limit) {
            self.errors.push(FieldError::too_long(path, limit as usize));
        }
        if let Some(limit) = schema["minLength"].as_u64().filter(|limit| length < *limit) {
            self.invalid(path, value, &format!("should be at least {limit} chars long"));
        }
        if let Some(pattern) = schema["pattern"].as_str()
            && self.patterns.refuses(pattern, text)
        {
            self.invalid(path, value, &format!("should match '{pattern}'"));
        }
        if let Some(format) = schema["format"].as_str().filter(|format| !formats::fits(format, text)) {
            let detail = format!("{path} in body must be of type {format}: {}", crate::quote(text));
            let rule = FieldRule::JsonType { found: JsonType::String, wanted: JsonType::Other };
            let error = FieldError::new(ErrorKind::TypeInvalid, path, Some(value.clone()), detail);
            self.errors.push(error.by_rule(rule));
        }
    }

    fn number(&mut self, schema: &Value, number: f64, value: &Value, path: &Path) {
        if let Some(limit) = schema["maximum"].as_f64() {
            let exclusive = flag(schema, "exclusiveMaximum");
            if number > limit || (exclusive && number == limit) {
                let or = if exclusive { "" } else { " or equal to" };
                self.invalid(path, value, &format!("should be less than{or} {}", schema["maximum"]));
            }
        }
        if let Some(limit) = schema["minimum"].as_f64() {
            let exclusive = flag(schema, "exclusiveMinimum");
            if number < limit || (exclusive && number == limit) {
                let or = if exclusive { "" } else { " or equal to" };
                self.invalid(path, value, &format!("should be greater than{or} {}", schema["minimum"]));
            }
        }
        let step = schema["multipleOf"].as_f64().filter(|step| *step > 0.0);
        if step.is_some_and(|step| (number / step).fract() != 0.0) {
            self.invalid(path, value, &format!("should be a multiple of {}", schema["multipleOf"]));
        }
    }

    fn array(&mut self, schema: &Value, items: &[Value], old: Option<&Value>, path: &Path, depth: usize) {
        let count = items.len() as u64;
        if let Some(limit) = schema["minItems"].as_u64().filter(|limit| count < *limit) {
            self.invalid(path, &count.into(), &format!("should have at least {limit} items"));
        }
        if let Some(limit) = schema["maxItems"].as_u64().filter(|limit| count > *limit) {
            self.errors.push(FieldError::too_many(path, items.len(), limit as usize));
        }
        let keys: Vec<&str> = match schema["x-kubernetes-list-type"].as_str() {
            Some("map") => schema["x-kubernetes-list-map-keys"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .collect(),
            _ => Vec::new(),
        };
        let old = old.and_then(Value::as_array).filter(|_| !keys.is_empty());
        let id = |item: &Value| keys.iter().map(|key| item[*key].clone()).collect::<Vec<_>>();
        for (at, item) in items.iter().enumerate() {
            let before = old.and_then(|old| old.iter().find(|other| id(other) == id(item)));
            self.value(&schema["items"], item, before, &path.index(at), depth + 1);
        }
        self.duplicates(schema, items, &keys, path);
    }

    fn duplicates(&mut self, schema: &Value, items: &[Value], keys: &[&str], path: &Path) {
        let set = schema["x-kubernetes-list-type"] == "set";
        if !set && keys.is_empty() {
            return;
        }
        let odd = items.iter().position(|item| !item.is_object() && !item.is_null());
        if let Some(at) = odd.filter(|_| !set) {
            let detail = "must be an object for an array of list-type map";
            self.errors.push(FieldError::invalid(&path.index(at), items[at].clone(), detail));
            return;
        }
        let mut seen = HashSet::new();
        for (at, item) in items.iter().enumerate() {
            let id = match set {
                true => item.clone(),
                false => {
                    let pairs =
                        keys.iter().filter_map(|key| Some(((*key).to_owned(), item.get(*key)?.clone())));
                    Value::Object(pairs.collect())
                }
            };
            if !seen.insert(id.to_string()) {
                self.errors.push(FieldError::duplicate(&path.index(at), id));
            }
        }
    }

    fn object(
        &mut self,
        schema: &Value,
        map: &Map<String, Value>,
        old: Option<&Value>,
        path: &Path,
        depth: usize,
    ) {
        let count = map.len() as u64;
        if let Some(limit) = schema["minProperties"].as_u64().filter(|limit| count < *limit) {
            self.invalid(path, &count.into(), &format!("should have at least {limit} properties"));
        }
        if let Some(limit) = schema["maxProperties"].as_u64().filter(|limit| count > *limit) {
            self.errors.push(FieldError::too_many(path, map.len(), limit as usize));
        }
        let others = &schema["additionalProperties"];
        let is_map = others.is_object();
        for (name, inner) in map {
            let before = old.and_then(|old| old.get(name));
            match schema["properties"].get(name) {
                Some(property) => self.value(property, inner, before, &path.child(name), depth + 1),
                None if is_map => self.value(others, inner, before, &path.child(name), depth + 1),
                None => {}
            }
        }
        let required = schema["required"].as_array().map_or(&[][..], Vec::as_slice);
        let own = ["apiVersion", "kind"].map(Value::from);
        let own = own
            .iter()
            .filter(|name| flag(schema, "x-kubernetes-embedded-resource") && !required.contains(name));
        for name in required.iter().chain(own).filter_map(Value::as_str) {
            if !map.contains_key(name) {
                self.errors.push(FieldError::required(&path.child(name), ""));
            }
        }
    }

    fn combinations(&mut self, schema: &Value, value: &Value, path: &Path, depth: usize) {
        let holds = |inner: &Value| {
            let mut trial = Validator { patterns: self.patterns, errors: ErrorList::new() };
            trial.value(inner, value, None, path, depth + 1);
            trial.errors.is_empty()
        };
        let all =
            |key: &str| schema[key].as_array().map(|list| list.iter().filter(|inner| holds(inner)).count());
        let (any, one, every) = (all("anyOf"), all("oneOf"), all("allOf"));
        let not = schema.get("not").is_some_and(&holds);
        let every_failed = every.is_some_and(|count| Some(count) != schema["allOf"].as_array().map(Vec::len));
        let mut fault = |detail: String| {
            let detail = format!("\"{}\" must {detail}", path.to_string().trim_start_matches("<nil>"));
            self.errors.push(FieldError::invalid(&Path::root(), "", detail));
        };
        if any == Some(0) && !flag(schema, "x-kubernetes-int-or-string") {
            fault("validate at least one schema (anyOf)".into());
        }
        match one {
            Some(0) => fault("validate one and only one schema (oneOf). Found none valid".into()),
            Some(count) if count > 1 => {
                fault(format!("validate one and only one schema (oneOf). Found {count} valid alternatives"));
            }
            _ => {}
        }
        if every_failed {
            fault("validate all the schemas (allOf)".into());
        }
        if not {
            fault("not validate the schema (not)".into());
        }
    }
}

/// The format that the API server sees in a value of these types.
fn format_name(value: &Value) -> Option<&'static str> {
    match value {
        Value::Bool(_) | Value::Object(_) => Some(""),
        Value::Number(_) if type_name(value) == "integer" => Some("int64"),
        Value::Number(_) => Some("double"),
        Value::Null | Value::String(_) | Value::Array(_) => None,
    }
}

/// Whether the faults are such that the rules of the schema cannot be looked at.
pub fn prevents_rules(errors: &ErrorList) -> bool {
    errors.iter().any(|error| {
        matches!(
            error.kind,
            ErrorKind::NotSupported
                | ErrorKind::Required
                | ErrorKind::TooLong
                | ErrorKind::TooMany
                | ErrorKind::TypeInvalid
        )
    })
}

/// Adds the remark that rules could not be looked at if a fault is of a kind that prevents it.
pub(super) fn remark_unchecked_rules(errors: &mut ErrorList) {
    if prevents_rules(errors) {
        errors.push(FieldError::unchecked_rules(&Path::root()));
    }
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.as_f64().is_some_and(|f| f.fract() == 0.0) => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// All CEL rules below a schema.
pub(super) fn collect_rules(schema: &Value, path: &Path, out: &mut Vec<(String, String)>, depth: usize) {
    if depth > MAX_DEPTH {
        return;
    }
    for rule in schema["x-kubernetes-validations"].as_array().into_iter().flatten() {
        out.push((path.to_string(), rule["rule"].as_str().unwrap_or_default().to_owned()));
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        collect_rules(property, &path.child(name), out, depth + 1);
    }
    for (key, inner) in [("*", &schema["items"]), ("*", &schema["additionalProperties"])] {
        if inner.is_object() {
            collect_rules(inner, &path.key(key), out, depth + 1);
        }
    }
}

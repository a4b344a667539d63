//! Checking a value against a schema.

use std::collections::BTreeSet;

use regex::Regex;
use tiphys_value::{Map, Value};

use super::{
    compile::{Root, Target},
    error::{Fault, FaultKind, quote},
    format,
};

/// How deep schemas and references may lead.
const MAX_DEPTH: usize = 300;

/// What of a value its schema has judged, for `unevaluated…`.
#[derive(Debug, Default)]
struct Seen {
    properties: BTreeSet<String>,
    items: BTreeSet<usize>,
}

impl Seen {
    fn add(&mut self, other: Seen) {
        self.properties.extend(other.properties);
        self.items.extend(other.items);
    }
}

/// The name that JSON Schema gives to the type of a value.
pub(crate) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn has_type(value: &Value, name: &str) -> bool {
    type_name(value) == name
        || (name == "integer" && value.as_f64().is_some_and(|number| number.fract() == 0.0))
}

fn display(value: &Value) -> String {
    match value {
        Value::String(text) => quote(text),
        Value::Array(_) | Value::Object(_) => "value".to_owned(),
        Value::Null => "<nil>".to_owned(),
        other => other.to_string(),
    }
}

/// A number with thousands grouped, as the validator prints them in English.
fn grouped(number: f64) -> String {
    let text = number.to_string();
    let (sign, rest) = text.strip_prefix('-').map_or(("", text.as_str()), |rest| ("-", rest));
    let (whole, fraction) = rest.split_once('.').unwrap_or((rest, ""));
    let mut digits = String::new();
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at) % 3 == 0 {
            digits.push(',');
        }
        digits.push(digit);
    }
    let point = if fraction.is_empty() { "" } else { "." };
    format!("{sign}{digits}{point}{fraction}")
}

fn join_quoted(names: &[&str]) -> String {
    names.iter().map(|name| quote(name)).collect::<Vec<_>>().join(", ")
}

fn strings(value: Option<&Value>) -> Vec<&str> {
    value.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
}

fn count(schema: &Map<String, Value>, keyword: &str) -> Option<usize> {
    schema.get(keyword).and_then(Value::as_f64).filter(|it| *it >= 0.0).map(|it| {
        // Non-negative by the filter; larger counts than memory holds compare the same.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        {
            it as usize
        }
    })
}

/// Checks values against one document.
pub(crate) struct Checker<'a> {
    root: &'a Root,
}

/// A schema at work on a value.
struct Visit<'a> {
    schema: &'a Map<String, Value>,
    at: Vec<String>,
    depth: usize,
    faults: Vec<Fault>,
    seen: Seen,
}

impl<'a> Checker<'a> {
    /// A checker for a document.
    pub(crate) fn new(root: &'a Root) -> Self {
        Self { root }
    }

    /// Checks a whole value.
    ///
    /// # Errors
    /// Why it does not fit.
    pub(crate) fn check(&self, value: &Value) -> Result<(), Fault> {
        self.visit(&self.root.document, value, &[], 0).map(|_| ())
    }

    fn visit(&self, schema: &'a Value, value: &Value, at: &[String], depth: usize) -> Result<Seen, Fault> {
        if depth > MAX_DEPTH {
            return Err(Fault::text(
                at,
                format!("schema references nest deeper than the limit of {MAX_DEPTH}"),
            ));
        }
        let schema = match schema {
            Value::Bool(false) => return Err(Fault::text(at, "false schema")),
            Value::Object(schema) => schema,
            _ => return Ok(Seen::default()),
        };
        let mut visit =
            Visit { schema, at: at.to_vec(), depth: depth + 1, faults: Vec::new(), seen: Seen::default() };
        self.check_kind(&visit, value)?;
        if let Some(Value::String(reference)) = schema.get("$ref") {
            let done = self.follow(&visit, reference, value);
            if self.root.draft < 2019 {
                return done;
            }
            visit.take(done);
        }
        match value {
            Value::Object(map) => self.check_object(&mut visit, map),
            Value::Array(items) => self.check_array(&mut visit, items),
            Value::String(text) => check_string(&mut visit, text),
            Value::Number(number) => check_number(&mut visit, number.as_f64().unwrap_or_default()),
            _ => {}
        }
        if self.root.draft >= 2019 {
            for keyword in ["$recursiveRef", "$dynamicRef"] {
                if let Some(Value::String(reference)) = schema.get(keyword) {
                    let done = self.follow(&visit, reference, value);
                    visit.take(done);
                }
            }
        }
        self.check_combined(&mut visit, value);
        if self.root.draft >= 2019 {
            self.check_unevaluated(&mut visit, value);
        }
        Fault::join(&visit.at, visit.faults)?;
        Ok(visit.seen)
    }

    /// Type, constant, enumeration and format: the first that fails is the only fault.
    fn check_kind(&self, visit: &Visit<'a>, value: &Value) -> Result<(), Fault> {
        let fail = |text: String| Err(Fault::text(&visit.at, text));
        let wanted: Vec<&str> = match visit.schema.get("type") {
            Some(Value::String(name)) => vec![name],
            types => strings(types),
        };
        if !wanted.is_empty() && !wanted.iter().any(|name| has_type(value, name)) {
            return fail(format!("got {}, want {}", type_name(value), wanted.join(" or ")));
        }
        if let Some(constant) = visit.schema.get("const").filter(|_| self.root.draft > 4)
            && !equal(constant, value)
        {
            return fail(match constant {
                Value::Array(_) | Value::Object(_) => "'const' failed".to_owned(),
                plain => format!("value must be {}", display(plain)),
            });
        }
        if let Some(Value::Array(wanted)) = visit.schema.get("enum")
            && !wanted.iter().any(|it| equal(it, value))
        {
            return fail(match wanted.as_slice() {
                many if many.iter().any(|it| it.is_array() || it.is_object()) => "'enum' failed".to_owned(),
                [one] => format!("value must be {}", display(one)),
                many => {
                    let many: Vec<_> = many.iter().map(display).collect();
                    format!("value must be one of {}", many.join(", "))
                }
            });
        }
        if let (Some(Value::String(name)), Value::String(text)) = (visit.schema.get("format"), value)
            && self.root.draft < 2019
            && let Some(reason) = format::fault(name, text)
        {
            return fail(format!("{} is not valid {name}: {reason}", quote(text)));
        }
        Ok(())
    }

    fn follow(&self, visit: &Visit<'a>, reference: &str, value: &Value) -> Result<Seen, Fault> {
        match self.root.resolve(reference) {
            Err(text) => Err(Fault::text(&visit.at, text)),
            Ok(Target::Anything) => Ok(Seen::default()),
            Ok(Target::Schema(schema, url)) => {
                self.visit(schema, value, &visit.at, visit.depth).map_err(|fault| {
                    let causes =
                        if matches!(fault.kind, FaultKind::Group) { fault.causes } else { vec![fault] };
                    Fault { at: visit.at.clone(), kind: FaultKind::Reference(url), causes }
                })
            }
        }
    }

    fn below(&self, visit: &mut Visit<'a>, schema: &'a Value, value: &Value, token: &str) {
        visit.at.push(token.to_owned());
        let done = self.visit(schema, value, &visit.at, visit.depth);
        visit.at.pop();
        visit.faults.extend(done.err());
    }

    fn check_object(&self, visit: &mut Visit<'a>, map: &Map<String, Value>) {
        let schema = visit.schema;
        if let Some(want) = count(schema, "minProperties").filter(|want| map.len() < *want) {
            visit.fail(format!("minProperties: got {}, want {want}", map.len()));
        }
        if let Some(want) = count(schema, "maxProperties").filter(|want| map.len() > *want) {
            visit.fail(format!("maxProperties: got {}, want {want}", map.len()));
        }
        let missing: Vec<_> =
            strings(schema.get("required")).into_iter().filter(|it| !map.contains_key(*it)).collect();
        match missing.as_slice() {
            [] => {}
            [one] => visit.fail(format!("missing property {}", quote(one))),
            many => visit.fail(format!("missing properties {}", join_quoted(many))),
        }
        self.check_dependent(visit, map);
        self.check_properties(visit, map);
        if let Some(names) = schema.get("propertyNames").filter(|_| self.root.draft > 4) {
            for name in map.keys() {
                let text = Value::String(name.clone());
                if let Err(fault) = self.visit(names, &text, &[], visit.depth) {
                    let causes =
                        if matches!(fault.kind, FaultKind::Group) { fault.causes } else { vec![fault] };
                    let kind = FaultKind::Text(format!("invalid propertyName {}", quote(name)));
                    visit.faults.push(Fault { at: Vec::new(), kind, causes });
                }
            }
        }
    }

    fn check_dependent(&self, visit: &mut Visit<'a>, map: &Map<String, Value>) {
        for keyword in ["dependencies", "dependentSchemas", "dependentRequired"] {
            let Some(Value::Object(dependent)) = visit.schema.get(keyword) else { continue };
            for (name, wanted) in dependent.iter().filter(|(name, _)| map.contains_key(*name)) {
                if wanted.is_array() {
                    let missing: Vec<_> =
                        strings(Some(wanted)).into_iter().filter(|it| !map.contains_key(*it)).collect();
                    if !missing.is_empty() {
                        let (missing, name) = (join_quoted(&missing), quote(name));
                        visit.fail(format!("properties {missing} required, if {name} exists"));
                    }
                } else {
                    let value = Value::Object(map.clone());
                    let done = self.visit(wanted, &value, &visit.at, visit.depth);
                    visit.take(done);
                }
            }
        }
    }

    fn check_properties(&self, visit: &mut Visit<'a>, map: &Map<String, Value>) {
        let schema = visit.schema;
        let patterns: Vec<(Regex, &'a Value)> = match schema.get("patternProperties") {
            Some(Value::Object(patterns)) => patterns
                .iter()
                .filter_map(|(pattern, schema)| Some((Regex::new(pattern).ok()?, schema)))
                .collect(),
            _ => Vec::new(),
        };
        let properties = schema.get("properties").and_then(Value::as_object);
        let mut additional = Vec::new();
        for (name, value) in map {
            let mut judged = false;
            if let Some(schema) = properties.and_then(|properties| properties.get(name)) {
                judged = true;
                self.below(visit, schema, value, name);
            }
            for (_, schema) in patterns.iter().filter(|(pattern, _)| pattern.is_match(name)) {
                judged = true;
                self.below(visit, schema, value, name);
            }
            match schema.get("additionalProperties").filter(|_| !judged) {
                Some(Value::Bool(false)) => additional.push(name.as_str()),
                Some(schema) => self.below(visit, schema, value, name),
                None if !judged => continue,
                None => {}
            }
            visit.seen.properties.insert(name.clone());
        }
        if !additional.is_empty() {
            visit.fail(format!("additional properties {} not allowed", join_quoted(&additional)));
        }
    }

    fn check_array(&self, visit: &mut Visit<'a>, items: &[Value]) {
        let schema = visit.schema;
        if let Some(want) = count(schema, "minItems").filter(|want| items.len() < *want) {
            visit.fail(format!("minItems: got {}, want {want}", items.len()));
        }
        if let Some(want) = count(schema, "maxItems").filter(|want| items.len() > *want) {
            visit.fail(format!("maxItems: got {}, want {want}", items.len()));
        }
        if schema.get("uniqueItems") == Some(&Value::Bool(true)) {
            let pairs = (1..items.len()).flat_map(|j| (0..j).map(move |i| (i, j)));
            if let Some((i, j)) = pairs.into_iter().find(|(i, j)| equal(&items[*i], &items[*j])) {
                visit.fail(format!("items at {i} and {j} are equal"));
            }
        }
        let (first, rest) = match (self.root.draft >= 2020, schema.get("items")) {
            (true, rest) => (schema.get("prefixItems"), rest),
            (false, items @ Some(Value::Array(_))) => (items, schema.get("additionalItems")),
            (false, items) => (None, items),
        };
        let first: &[Value] = first.and_then(Value::as_array).map_or(&[], Vec::as_slice);
        for (index, item) in items.iter().enumerate() {
            let schema = match first.get(index) {
                Some(schema) => schema,
                None => match rest {
                    Some(Value::Bool(false)) if self.root.draft < 2020 => {
                        visit.fail(format!("last {} additionalItem(s) not allowed", items.len() - index));
                        break;
                    }
                    Some(schema) => schema,
                    None => break,
                },
            };
            visit.seen.items.insert(index);
            self.below(visit, schema, item, &index.to_string());
        }
        self.check_contains(visit, items);
    }

    fn check_contains(&self, visit: &mut Visit<'a>, items: &[Value]) {
        let Some(contains) = visit.schema.get("contains").filter(|_| self.root.draft > 4) else { return };
        let (mut causes, mut matched) = (Vec::new(), Vec::new());
        for (index, item) in items.iter().enumerate() {
            let mut at = visit.at.clone();
            at.push(index.to_string());
            match self.visit(contains, item, &at, visit.depth) {
                Ok(_) => matched.push(index),
                Err(fault) => causes.push(fault),
            }
        }
        let shown: Vec<_> = matched.iter().map(ToString::to_string).collect();
        let shown = shown.join(" ");
        match count(visit.schema, "minContains").filter(|_| self.root.draft >= 2019) {
            None if matched.is_empty() => visit.fail_with("no items match contains schema", causes),
            Some(want) if matched.is_empty() && want > 0 => visit.fail_with(
                &format!("min {want} items required to match contains schema, but none matched"),
                causes,
            ),
            Some(want) if matched.len() < want => visit.fail_with(
                &format!(
                    "min {want} items required to match contains schema, but matched {} items at {shown}",
                    matched.len()
                ),
                causes,
            ),
            _ => {}
        }
        if let Some(want) = count(visit.schema, "maxContains").filter(|want| matched.len() > *want) {
            visit.fail(format!(
                "max {want} items required to match contains schema, but matched {} items at {shown}",
                matched.len()
            ));
        }
        if self.root.draft >= 2020 {
            visit.seen.items.extend(matched);
        }
    }

    fn check_combined(&self, visit: &mut Visit<'a>, value: &Value) {
        let schema = visit.schema;
        let run = |schema: &'a Value, visit: &Visit<'a>| self.visit(schema, value, &visit.at, visit.depth);
        if schema.get("not").is_some_and(|not| run(not, visit).is_ok()) {
            visit.fail("'not' failed".to_owned());
        }
        if let Some(Value::Array(all)) = schema.get("allOf") {
            let mut causes = Vec::new();
            for schema in all {
                match run(schema, visit) {
                    Ok(seen) => visit.seen.add(seen),
                    Err(fault) => causes.push(fault),
                }
            }
            if !causes.is_empty() {
                visit.fail_with("'allOf' failed", causes);
            }
        }
        if let Some(Value::Array(any)) =
            schema.get("anyOf").filter(|it| it.as_array().is_some_and(|it| !it.is_empty()))
        {
            let (mut causes, mut matched) = (Vec::new(), false);
            for schema in any {
                match run(schema, visit) {
                    Ok(seen) => {
                        matched = true;
                        visit.seen.add(seen);
                    }
                    Err(fault) => causes.push(fault),
                }
            }
            if !matched {
                visit.fail_with("'anyOf' failed", causes);
            }
        }
        if let Some(Value::Array(one)) = schema.get("oneOf") {
            self.check_one_of(visit, one, value);
        }
        if let Some(condition) = schema.get("if").filter(|_| self.root.draft >= 7) {
            let branch = match run(condition, visit) {
                Ok(seen) => {
                    visit.seen.add(seen);
                    schema.get("then")
                }
                Err(_) => schema.get("else"),
            };
            if let Some(branch) = branch {
                let done = run(branch, visit);
                visit.take(done);
            }
        }
    }

    fn check_one_of(&self, visit: &mut Visit<'a>, one: &'a [Value], value: &Value) {
        let (mut causes, mut first) = (Vec::new(), None);
        for (index, schema) in one.iter().enumerate() {
            match (self.visit(schema, value, &visit.at, visit.depth), first) {
                (Ok(seen), None) => {
                    first = Some(index);
                    visit.seen.add(seen);
                }
                (Ok(_), Some(first)) => {
                    return visit.fail(format!("'oneOf' failed, subschemas {first}, {index} matched"));
                }
                (Err(fault), None) => causes.push(fault),
                (Err(_), Some(_)) => {}
            }
        }
        if first.is_none() && !one.is_empty() {
            visit.fail_with("'oneOf' failed, none matched", causes);
        }
    }

    fn check_unevaluated(&self, visit: &mut Visit<'a>, value: &Value) {
        if let (Some(schema), Value::Object(map)) = (visit.schema.get("unevaluatedProperties"), value) {
            for (name, value) in map {
                if visit.seen.properties.insert(name.clone()) {
                    self.below(visit, schema, value, name);
                }
            }
        }
        if let (Some(schema), Value::Array(items)) = (visit.schema.get("unevaluatedItems"), value) {
            for (index, item) in items.iter().enumerate() {
                if visit.seen.items.insert(index) {
                    self.below(visit, schema, item, &index.to_string());
                }
            }
        }
    }
}

impl Visit<'_> {
    fn fail(&mut self, text: String) {
        self.faults.push(Fault::text(&self.at, text));
    }

    fn fail_with(&mut self, text: &str, causes: Vec<Fault>) {
        self.faults.push(Fault { at: self.at.clone(), kind: FaultKind::Text(text.to_owned()), causes });
    }

    fn take(&mut self, done: Result<Seen, Fault>) {
        match done {
            Ok(seen) => self.seen.add(seen),
            Err(fault) => self.faults.push(fault),
        }
    }
}

fn check_string(visit: &mut Visit<'_>, text: &str) {
    let length = text.chars().count();
    if let Some(want) = count(visit.schema, "minLength").filter(|want| length < *want) {
        visit.fail(format!("minLength: got {length}, want {want}"));
    }
    if let Some(want) = count(visit.schema, "maxLength").filter(|want| length > *want) {
        visit.fail(format!("maxLength: got {length}, want {want}"));
    }
    if let Some(Value::String(pattern)) = visit.schema.get("pattern") {
        match Regex::new(pattern) {
            Ok(regex) if !regex.is_match(text) => {
                visit.fail(format!("{} does not match pattern {}", quote(text), quote(pattern)));
            }
            Ok(_) => {}
            Err(_) => visit.fail(format!("{} is not valid regex", quote(pattern))),
        }
    }
}

fn check_number(visit: &mut Visit<'_>, number: f64) {
    let bound = |keyword: &str| visit.schema.get(keyword).and_then(Value::as_f64);
    let exclusive = |keyword: &str| visit.schema.get(keyword) == Some(&Value::Bool(true));
    let mut texts = Vec::new();
    let mut fail = |keyword: &str, want: f64| {
        texts.push(format!("{keyword}: got {}, want {}", grouped(number), grouped(want)));
    };
    // In draft 4 the exclusive keywords are flags beside the bounds.
    if let Some(want) = bound("minimum") {
        if exclusive("exclusiveMinimum") && number <= want {
            fail("exclusiveMinimum", want);
        } else if number < want {
            fail("minimum", want);
        }
    }
    if let Some(want) = bound("maximum") {
        if exclusive("exclusiveMaximum") && number >= want {
            fail("exclusiveMaximum", want);
        } else if number > want {
            fail("maximum", want);
        }
    }
    if let Some(want) = bound("exclusiveMinimum").filter(|want| number <= *want) {
        fail("exclusiveMinimum", want);
    }
    if let Some(want) = bound("exclusiveMaximum").filter(|want| number >= *want) {
        fail("exclusiveMaximum", want);
    }
    if let Some(want) = bound("multipleOf").filter(|want| *want > 0.0 && !is_multiple(number, *want)) {
        fail("multipleOf", want);
    }
    texts.into_iter().for_each(|text| visit.fail(text));
}

fn is_multiple(number: f64, of: f64) -> bool {
    let quotient = number / of;
    (quotient - quotient.round()).abs() < 1e-9 * quotient.abs().max(1.0)
}

/// Equality of JSON values, numbers by what they are worth.
fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| equal(a, b)))
        }
        (a, b) => a == b,
    }
}

#[cfg(test)]
mod tests {
    use tiphys_value::json;

    use super::*;

    fn faults(schema: Value, value: Value) -> String {
        let root = Root::new(schema).unwrap();
        Checker::new(&root).check(&value).err().map(|fault| fault.print()).unwrap_or_default()
    }

    #[test]
    fn prints_places_and_reasons_as_helm() {
        let schema = json!({
            "$schema": "http://json-schema.org/draft-07/schema#",
            "required": ["image"],
            "properties": {
                "age": { "type": "integer", "minimum": 0 },
                "port": { "type": ["string", "integer"] },
                "mode": { "enum": ["a", "b"] },
            },
            "additionalProperties": false,
        });
        let text = faults(schema, json!({ "age": -5, "port": true, "mode": "c", "x": 1 }));
        assert_eq!(
            text,
            "- at '': missing property 'image'\n\
             - at '/age': minimum: got -5, want 0\n\
             - at '/mode': value must be one of 'a', 'b'\n\
             - at '/port': got boolean, want string or integer\n\
             - at '': additional properties 'x' not allowed"
        );
    }

    #[test]
    fn combined_schemas_nest_their_causes() {
        let schema =
            json!({ "properties": { "a": { "oneOf": [{ "type": "string" }, { "type": "null" }] } } });
        assert_eq!(
            faults(schema, json!({ "a": 1 })),
            "- at '/a': 'oneOf' failed, none matched\n  - at '/a': got number, want string\n  - at '/a': got number, want null"
        );
        let schema =
            json!({ "properties": { "data": { "type": "array", "contains": { "type": "string" } } } });
        assert_eq!(
            faults(schema, json!({ "data": [12] })),
            "- at '/data': no items match contains schema\n  - at '/data/0': got number, want string"
        );
    }

    #[test]
    fn references_conditions_and_unevaluated() {
        let schema = json!({
            "$defs": { "p": { "type": "integer", "maximum": 65535 } },
            "properties": { "port": { "$ref": "#/$defs/p" } },
            "if": { "required": ["tls"] },
            "then": { "required": ["cert"] },
            "unevaluatedProperties": false,
        });
        assert_eq!(
            faults(schema.clone(), json!({ "port": 70000 })),
            "- at '/port': maximum: got 70,000, want 65,535"
        );
        assert_eq!(
            faults(schema, json!({ "tls": 1 })),
            "- at '': missing property 'cert'\n- at '/tls': false schema"
        );
    }

    #[test]
    fn reference_cycles_end() {
        let schema = json!({ "$ref": "#" });
        assert!(faults(schema, json!({})).contains("deeper than the limit"));
    }
}

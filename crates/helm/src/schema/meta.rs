//! The drafts' own schemas: what a keyword may hold.

use tiphys_gocompat::regex::Regex;
use tiphys_value::{Map, Value, json};

use super::draft::Draft;

/// What a keyword may hold.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    Any,
    Text,
    Bool,
    Number,
    /// A number above nought.
    Positive,
    Count,
    /// A count that is nought by default.
    CountOrNone,
    List,
    /// Different values, one at least.
    Choices,
    Strings,
    Types,
    Uri,
    Reference,
    Id,
    Anchor,
    Pattern,
    Vocabulary,
    Schema,
    Flag,
    Schemas,
    SchemaOrList,
    Map,
    PatternMap,
    Dependencies,
    RequiredMap,
}

use Draft::{D4, D6, D7, D2019, D2020};
use Shape::{
    Anchor, Any, Bool, Choices, Count, CountOrNone, Dependencies, Flag, Id, List, Number, PatternMap,
    Positive, Reference, RequiredMap, SchemaOrList, Schemas, Strings, Text, Types, Uri, Vocabulary,
};

/// Keyword, vocabulary since 2019, first and last draft, shape.
type Row = (&'static str, &'static str, Draft, Draft, Shape);

const KEYWORDS: [Row; 73] = [
    ("id", "", D4, D4, Text),
    ("$id", "", D6, D7, Reference),
    ("$id", "core", D2019, D2020, Id),
    ("$schema", "core", D4, D2020, Uri),
    ("$ref", "", D4, D4, Text),
    ("$ref", "core", D6, D2020, Reference),
    ("$anchor", "core", D2019, D2020, Anchor),
    ("$recursiveRef", "core", D2019, D2019, Reference),
    ("$recursiveAnchor", "core", D2019, D2019, Bool),
    ("$recursiveRef", "", D2020, D2020, Reference),
    ("$recursiveAnchor", "", D2020, D2020, Anchor),
    ("$dynamicRef", "core", D2020, D2020, Reference),
    ("$dynamicAnchor", "core", D2020, D2020, Anchor),
    ("$vocabulary", "core", D2019, D2020, Vocabulary),
    ("$comment", "core", D7, D2020, Text),
    ("$defs", "core", D2019, D2020, Shape::Map),
    ("definitions", "", D4, D2020, Shape::Map),
    ("dependencies", "", D4, D2020, Dependencies),
    ("additionalItems", "", D4, D4, Flag),
    ("additionalItems", "applicator", D6, D2019, Shape::Schema),
    ("unevaluatedItems", "applicator", D2019, D2019, Shape::Schema),
    ("unevaluatedProperties", "applicator", D2019, D2019, Shape::Schema),
    ("unevaluatedItems", "unevaluated", D2020, D2020, Shape::Schema),
    ("unevaluatedProperties", "unevaluated", D2020, D2020, Shape::Schema),
    ("prefixItems", "applicator", D2020, D2020, Schemas),
    ("items", "applicator", D4, D2019, SchemaOrList),
    ("items", "applicator", D2020, D2020, Shape::Schema),
    ("contains", "applicator", D6, D2020, Shape::Schema),
    ("additionalProperties", "", D4, D4, Flag),
    ("additionalProperties", "applicator", D6, D2020, Shape::Schema),
    ("properties", "applicator", D4, D2020, Shape::Map),
    ("patternProperties", "", D4, D6, Shape::Map),
    ("patternProperties", "applicator", D7, D2020, PatternMap),
    ("dependentSchemas", "applicator", D2019, D2020, Shape::Map),
    ("propertyNames", "applicator", D6, D2020, Shape::Schema),
    ("if", "applicator", D7, D2020, Shape::Schema),
    ("then", "applicator", D7, D2020, Shape::Schema),
    ("else", "applicator", D7, D2020, Shape::Schema),
    ("allOf", "applicator", D4, D2020, Schemas),
    ("anyOf", "applicator", D4, D2020, Schemas),
    ("oneOf", "applicator", D4, D2020, Schemas),
    ("not", "applicator", D4, D2020, Shape::Schema),
    ("type", "validation", D4, D2020, Types),
    ("const", "validation", D6, D2020, Any),
    ("enum", "", D4, D7, Choices),
    ("enum", "validation", D2019, D2020, List),
    ("multipleOf", "validation", D4, D2020, Positive),
    ("maximum", "validation", D4, D2020, Number),
    ("minimum", "validation", D4, D2020, Number),
    ("exclusiveMaximum", "", D4, D4, Bool),
    ("exclusiveMinimum", "", D4, D4, Bool),
    ("exclusiveMaximum", "validation", D6, D2020, Number),
    ("exclusiveMinimum", "validation", D6, D2020, Number),
    ("maxLength", "validation", D4, D2020, Count),
    ("minLength", "validation", D4, D2020, CountOrNone),
    ("pattern", "validation", D4, D2020, Shape::Pattern),
    ("maxItems", "validation", D4, D2020, Count),
    ("minItems", "validation", D4, D2020, CountOrNone),
    ("uniqueItems", "validation", D4, D2020, Bool),
    ("maxContains", "validation", D2019, D2020, Count),
    ("minContains", "validation", D2019, D2020, Count),
    ("maxProperties", "validation", D4, D2020, Count),
    ("minProperties", "validation", D4, D2020, CountOrNone),
    ("required", "validation", D4, D2020, Strings),
    ("dependentRequired", "validation", D2019, D2020, RequiredMap),
    ("title", "meta-data", D4, D2020, Text),
    ("description", "meta-data", D4, D2020, Text),
    ("deprecated", "meta-data", D2019, D2020, Bool),
    ("readOnly", "meta-data", D7, D2020, Bool),
    ("writeOnly", "meta-data", D7, D2020, Bool),
    ("examples", "meta-data", D7, D2020, List),
    ("contentMediaType", "content", D7, D2020, Text),
    ("contentEncoding", "content", D7, D2020, Text),
];

/// Keywords of the vocabularies that are named differently by draft.
const FORMAT: &str = "format";

const TYPES: [&str; 7] = ["array", "boolean", "integer", "null", "number", "object", "string"];

/// Vocabularies of a draft's schema, in its order.
fn vocabularies(draft: Draft) -> &'static [&'static str] {
    if draft == D2019 {
        &["core", "applicator", "validation", "meta-data", "format", "content"]
    } else {
        &["core", "applicator", "unevaluated", "validation", "meta-data", "format-annotation", "content"]
    }
}

/// A schema of the drafts by its address, `None` if the address is not one of theirs.
pub(super) fn document(url: &str) -> Option<Value> {
    if let Some(draft) = Draft::from_url(url) {
        return Some(if draft < D2019 { flat(draft) } else { whole(draft) });
    }
    let path = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"))?;
    [D2019, D2020].into_iter().find_map(|draft| {
        let base = draft.url().strip_prefix("https://")?.strip_suffix("schema")?;
        let name = path.strip_prefix(base)?.strip_prefix("meta/")?;
        let known = vocabularies(draft).contains(&name) || (draft == D2020 && name == "format-assertion");
        known.then(|| vocabulary(draft, name))
    })
}

fn rows(draft: Draft) -> impl Iterator<Item = &'static Row> {
    KEYWORDS.iter().filter(move |(_, _, first, last, _)| *first <= draft && draft <= *last)
}

/// The schema of an old draft.
fn flat(draft: Draft) -> Value {
    let mut properties: Map<String, Value> =
        rows(draft).map(|(keyword, .., shape)| ((*keyword).to_owned(), shape.schema(draft))).collect();
    properties.insert(FORMAT.to_owned(), json!({ "type": "string" }));
    let id = format!("{}#", draft.url());
    let mut schema = json!({ "$schema": id, "properties": properties, "$defs": definitions(draft) });
    if draft == D4 {
        schema["type"] = json!("object");
        schema["dependencies"] = json!({ "exclusiveMaximum": ["maximum"], "exclusiveMinimum": ["minimum"] });
    } else {
        schema["$id"] = json!(id);
        schema["type"] = json!(["object", "boolean"]);
    }
    schema
}

/// The schema of a new draft, which joins those of its vocabularies.
fn whole(draft: Draft) -> Value {
    let parts: Vec<Value> =
        vocabularies(draft).iter().map(|name| json!({ "$ref": format!("meta/{name}") })).collect();
    let mut schema = vocabulary(draft, "");
    schema["$id"] = json!(draft.url());
    schema["allOf"] = Value::Array(parts);
    schema
}

fn vocabulary(draft: Draft, name: &str) -> Value {
    let mut properties: Map<String, Value> = rows(draft)
        .filter(|(_, vocabulary, ..)| *vocabulary == name)
        .map(|(keyword, .., shape)| ((*keyword).to_owned(), shape.schema(draft)))
        .collect();
    if name.starts_with(FORMAT) {
        properties.insert(FORMAT.to_owned(), json!({ "type": "string" }));
    }
    if name == "content" {
        properties.insert("contentSchema".to_owned(), Shape::Schema.schema(draft));
    }
    let base = draft.url().trim_end_matches("schema");
    let mut schema = json!({
        "$schema": draft.url(),
        "$id": format!("{base}meta/{name}"),
        "type": ["object", "boolean"],
        "properties": properties,
        "$defs": definitions(draft),
    });
    if draft == D2019 {
        schema["$recursiveAnchor"] = json!(true);
    } else {
        schema["$dynamicAnchor"] = json!("meta");
    }
    schema
}

/// A schema of the draft.
fn any_schema(draft: Draft) -> Value {
    match draft {
        D4 | D6 | D7 => json!({ "$ref": "#" }),
        D2019 => json!({ "$recursiveRef": "#" }),
        D2020 => json!({ "$dynamicRef": "#meta" }),
    }
}

/// What several keywords hold, defined once as the drafts do: several faults behind a reference are told
/// together.
fn definitions(draft: Draft) -> Value {
    let mut strings = json!({ "type": "array", "items": { "type": "string" }, "uniqueItems": true });
    if draft == D4 {
        strings["minItems"] = json!(1);
    }
    json!({
        "reference": { "type": "string", "format": "uri-reference" },
        "schemas": { "type": "array", "minItems": 1, "items": any_schema(draft) },
        "strings": strings,
        "count": { "type": "integer", "minimum": 0 },
    })
}

fn defined(name: &str) -> Value {
    json!({ "$ref": format!("#/$defs/{name}") })
}

impl Shape {
    /// The shape as a schema.
    fn schema(self, draft: Draft) -> Value {
        let schema = || any_schema(draft);
        let (list, strings) = (|| defined("schemas"), || defined("strings"));
        let count = defined("count");
        match self {
            Any => json!(true),
            Text => json!({ "type": "string" }),
            Bool => json!({ "type": "boolean" }),
            Number => json!({ "type": "number" }),
            Positive if draft == D4 => json!({ "type": "number", "minimum": 0, "exclusiveMinimum": true }),
            Positive => json!({ "type": "number", "exclusiveMinimum": 0 }),
            CountOrNone if draft < D2019 => json!({ "allOf": [count, {}] }),
            Count | CountOrNone => count,
            List => json!({ "type": "array" }),
            Choices => json!({ "type": "array", "minItems": 1, "uniqueItems": true }),
            Strings => strings(),
            Types => {
                let items = json!({ "enum": TYPES });
                let several = json!({ "type": "array", "items": items, "minItems": 1, "uniqueItems": true });
                json!({ "anyOf": [items, several] })
            }
            Uri => json!({ "type": "string", "format": "uri" }),
            Reference => json!({ "type": "string", "format": "uri-reference" }),
            Id if draft == D2020 => json!({ "$ref": "#/$defs/reference", "pattern": "^[^#]*#?$" }),
            Id => json!({ "type": "string", "format": "uri-reference", "pattern": "^[^#]*#?$" }),
            Anchor if draft == D2019 => json!({ "type": "string", "pattern": "^[A-Za-z][-A-Za-z0-9.:_]*$" }),
            Anchor => json!({ "type": "string", "pattern": "^[A-Za-z_][-A-Za-z0-9._]*$" }),
            Shape::Pattern => json!({ "type": "string", "format": "regex" }),
            Vocabulary => json!({
                "type": "object",
                "propertyNames": { "type": "string", "format": "uri" },
                "additionalProperties": { "type": "boolean" },
            }),
            Shape::Schema => schema(),
            Flag => json!({ "anyOf": [{ "type": "boolean" }, schema()] }),
            Schemas => list(),
            SchemaOrList => json!({ "anyOf": [schema(), list()] }),
            Shape::Map => json!({ "type": "object", "additionalProperties": schema() }),
            PatternMap => json!({
                "type": "object",
                "additionalProperties": schema(),
                "propertyNames": { "format": "regex" },
            }),
            Dependencies => {
                json!({ "type": "object", "additionalProperties": { "anyOf": [schema(), strings()] } })
            }
            RequiredMap => json!({ "type": "object", "additionalProperties": strings() }),
        }
    }

    /// Whether a value is surely of the shape.
    fn matches(self, value: &Value, draft: Draft, depth: usize) -> bool {
        let schema = |value: &Value| is_valid_quick(value, draft, depth + 1);
        let list = |value: &Value| value.as_array().is_some_and(|it| !it.is_empty() && it.iter().all(schema));
        let strings = |value: &Value| {
            let different = |list: &Vec<Value>| {
                let texts: std::collections::BTreeSet<_> = list.iter().filter_map(Value::as_str).collect();
                texts.len() == list.len() && (draft > D4 || !list.is_empty())
            };
            value.as_array().is_some_and(different)
        };
        let map = |value: &Value, each: &dyn Fn(&Value) -> bool| {
            value.as_object().is_some_and(|map| map.values().all(each))
        };
        let text = |plain: &str| {
            let known = |byte: u8| byte.is_ascii_alphanumeric() || plain.as_bytes().contains(&byte);
            value.as_str().is_some_and(|text| text.bytes().all(known))
        };
        match self {
            Any => true,
            Text => value.is_string(),
            Bool => value.is_boolean(),
            Number => value.is_number(),
            Positive => value.as_f64().is_some_and(|number| number > 0.0),
            Count | CountOrNone => value.is_u64(),
            List => value.is_array(),
            Choices => value.as_array().is_some_and(|list| list.len() == 1) || strings(value),
            Strings => strings(value),
            Types => {
                let known = |value: &Value| value.as_str().is_some_and(|name| TYPES.contains(&name));
                known(value)
                    || (strings(value)
                        && value.as_array().is_some_and(|it| !it.is_empty() && it.iter().all(known)))
            }
            Uri => text("/.-_#:") && value.as_str().is_some_and(|it| it.starts_with("http")),
            Reference => text("/.-_#$"),
            Id => text("/.-_"),
            Anchor => text("") && value.as_str().is_some_and(|it| it.starts_with(char::is_alphabetic)),
            Shape::Pattern => value.as_str().is_some_and(|pattern| Regex::check(pattern).is_ok()),
            Vocabulary => false,
            Shape::Schema => schema(value),
            Flag => value.is_boolean() || schema(value),
            Schemas => list(value),
            SchemaOrList => list(value) || schema(value),
            Shape::Map => map(value, &schema),
            PatternMap => {
                let names = |map: &Map<String, Value>| map.keys().all(|name| Regex::check(name).is_ok());
                value.as_object().is_some_and(names) && map(value, &schema)
            }
            Dependencies => map(value, &|value| strings(value) || schema(value)),
            RequiredMap => map(value, &strings),
        }
    }
}

/// Whether a schema is surely one of the draft: a quick look that leaves doubts to the draft's own schema.
pub(super) fn is_valid_quick(schema: &Value, draft: Draft, depth: usize) -> bool {
    let object = match schema {
        Value::Bool(_) => return draft > D4,
        Value::Object(object) if depth <= 100 => object,
        _ => return false,
    };
    let needs = |flag: &str, bound: &str| !object.contains_key(flag) || object.contains_key(bound);
    if draft == D4 && !(needs("exclusiveMaximum", "maximum") && needs("exclusiveMinimum", "minimum")) {
        return false;
    }
    object.iter().all(|(keyword, value)| match keyword.as_str() {
        FORMAT => value.is_string(),
        "contentSchema" if draft >= D2019 => is_valid_quick(value, draft, depth + 1),
        keyword => {
            rows(draft).find(|row| row.0 == keyword).is_none_or(|row| row.4.matches(value, draft, depth))
        }
    })
}

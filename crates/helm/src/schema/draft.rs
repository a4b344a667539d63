//! The drafts of JSON Schema: their addresses, and where schemas stand in a schema.

use tiphys_value::{Map, Value};

use super::schema_address::split;

/// A draft, older ones first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Draft {
    D4,
    D6,
    D7,
    D2019,
    D2020,
}

/// How a keyword holds schemas.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Holds {
    One,
    Map,
    List,
}

/// Keywords that hold schemas, and the draft that brought them.
const SCHEMAS: [(&str, Holds, Draft); 23] = [
    ("definitions", Holds::Map, Draft::D4),
    ("not", Holds::One, Draft::D4),
    ("allOf", Holds::List, Draft::D4),
    ("anyOf", Holds::List, Draft::D4),
    ("oneOf", Holds::List, Draft::D4),
    ("properties", Holds::Map, Draft::D4),
    ("additionalProperties", Holds::One, Draft::D4),
    ("patternProperties", Holds::Map, Draft::D4),
    ("items", Holds::One, Draft::D4),
    ("items", Holds::List, Draft::D4),
    ("additionalItems", Holds::One, Draft::D4),
    ("dependencies", Holds::Map, Draft::D4),
    ("propertyNames", Holds::One, Draft::D6),
    ("contains", Holds::One, Draft::D6),
    ("if", Holds::One, Draft::D7),
    ("then", Holds::One, Draft::D7),
    ("else", Holds::One, Draft::D7),
    ("$defs", Holds::Map, Draft::D2019),
    ("dependentSchemas", Holds::Map, Draft::D2019),
    ("unevaluatedProperties", Holds::One, Draft::D2019),
    ("unevaluatedItems", Holds::One, Draft::D2019),
    ("contentSchema", Holds::One, Draft::D2019),
    ("prefixItems", Holds::List, Draft::D2020),
];

impl Draft {
    /// All drafts.
    pub(super) const ALL: [Self; 5] = [Self::D4, Self::D6, Self::D7, Self::D2019, Self::D2020];

    /// The address of the draft's own schema.
    pub(super) fn url(self) -> &'static str {
        match self {
            Self::D4 => "http://json-schema.org/draft-04/schema",
            Self::D6 => "http://json-schema.org/draft-06/schema",
            Self::D7 => "http://json-schema.org/draft-07/schema",
            Self::D2019 => "https://json-schema.org/draft/2019-09/schema",
            Self::D2020 => "https://json-schema.org/draft/2020-12/schema",
        }
    }

    /// The draft that `$schema` names, if it names one.
    pub(super) fn from_url(url: &str) -> Option<Self> {
        let (url, fragment) = split(url);
        let path = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://")).unwrap_or(url);
        if !fragment.is_empty() {
            return None;
        }
        if path == "json-schema.org/schema" {
            return Some(Self::D2020);
        }
        Self::ALL.into_iter().find(|draft| draft.url().split_once("://").is_some_and(|(_, it)| it == path))
    }

    /// The keyword that gives a schema an address.
    pub(super) fn id_keyword(self) -> &'static str {
        if self == Self::D4 { "id" } else { "$id" }
    }

    /// The address that a schema gives itself, without fragment; empty if it gives none.
    pub(super) fn id(self, schema: &Map<String, Value>) -> &str {
        if self < Self::D2019 && schema.contains_key("$ref") {
            return "";
        }
        schema.get(self.id_keyword()).and_then(Value::as_str).map_or("", |id| split(id).0)
    }

    /// The schemas right below a schema, each with its keyword, and its key or index.
    pub(super) fn subschemas(
        self,
        schema: &Map<String, Value>,
    ) -> Vec<(&'static str, Option<String>, &Value)> {
        let mut found = Vec::new();
        for (keyword, holds, since) in SCHEMAS {
            if since > self {
                continue;
            }
            match (schema.get(keyword), holds) {
                (Some(value), Holds::One) => found.push((keyword, None, value)),
                (Some(Value::Object(map)), Holds::Map) => {
                    found.extend(map.iter().map(|(key, value)| (keyword, Some(key.clone()), value)));
                }
                (Some(Value::Array(list)), Holds::List) => found.extend(
                    list.iter().enumerate().map(|(at, value)| (keyword, Some(at.to_string()), value)),
                ),
                _ => {}
            }
        }
        found
    }
}

//! The schema document: its draft, and the schemas that references lead to.

use std::collections::BTreeMap;

use tiphys_value::Value;

use super::error::quote;

/// The URL under which Helm registers a chart's schema.
const BASE: &str = "file:///values.schema.json";

/// How deep a schema document may nest.
const MAX_DEPTH: usize = 200;

/// A schema document.
#[derive(Debug)]
pub(crate) struct Root {
    pub(crate) document: Value,
    /// Year of the draft; 4, 6 and 7 for the older ones.
    pub(crate) draft: u16,
    /// JSON pointers of schemas that have a name of their own, by `$id`, `id` and `$anchor`.
    names: BTreeMap<String, String>,
}

/// What a reference leads to.
pub(crate) enum Target<'a> {
    /// A schema of this document, with the URL that errors print.
    Schema(&'a Value, String),
    /// A URN, which Helm takes for a schema that allows everything.
    Anything,
}

impl Root {
    /// Looks through a document.
    ///
    /// # Errors
    /// The document is no schema, or refers to one outside it.
    pub(crate) fn new(document: Value) -> Result<Self, String> {
        let draft = match document.get("$schema").and_then(Value::as_str) {
            Some(url) if url.contains("draft-04") => 4,
            Some(url) if url.contains("draft-06") => 6,
            Some(url) if url.contains("draft-07") => 7,
            Some(url) if url.contains("2019-09") => 2019,
            _ => 2020,
        };
        if !document.is_object() && !document.is_boolean() {
            return Err(format!(
                "\"{BASE}#\" is not valid against metaschema: jsonschema validation failed with 'https://json-schema.org/draft/2020-12/schema#'\n- at '': got {}, want boolean or object",
                super::check::type_name(&document)
            ));
        }
        let mut root = Self { document, draft, names: BTreeMap::new() };
        let mut names = BTreeMap::new();
        collect_names(&root.document, String::new(), 0, &mut names)?;
        root.names = names;
        Ok(root)
    }

    /// The schema that a reference means.
    ///
    /// # Errors
    /// It leads outside the document or nowhere.
    pub(crate) fn resolve(&self, reference: &str) -> Result<Target<'_>, String> {
        if reference.starts_with("urn:") {
            return Ok(Target::Anything);
        }
        let (name, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let base = if name.is_empty() || name == BASE || name == "values.schema.json" {
            String::new()
        } else {
            let known = self.names.get(name).or_else(|| {
                let last = name.rsplit('/').next().unwrap_or(name);
                self.names.iter().find(|(id, _)| id.ends_with(&format!("/{last}"))).map(|(_, at)| at)
            });
            known.cloned().ok_or_else(|| {
                format!("failing loading {reference:?}: schemas outside the chart are not read")
            })?
        };
        let pointer = if fragment.is_empty() || fragment.starts_with('/') {
            format!("{base}{}", percent_decode(fragment))
        } else {
            let name = format!("#{fragment}");
            self.names.get(&name).cloned().ok_or_else(|| missing(reference))?
        };
        let schema = self.document.pointer(&pointer).ok_or_else(|| missing(reference))?;
        Ok(Target::Schema(schema, format!("{BASE}#{pointer}")))
    }
}

fn missing(reference: &str) -> String {
    format!("json-pointer in {} not found", quote(reference))
}

fn collect_names(
    value: &Value,
    pointer: String,
    depth: usize,
    names: &mut BTreeMap<String, String>,
) -> Result<(), String> {
    if depth > MAX_DEPTH {
        return Err(format!("values.schema.json nests deeper than the limit of {MAX_DEPTH}"));
    }
    match value {
        Value::Object(map) => {
            for (keyword, prefix) in [("$id", ""), ("id", ""), ("$anchor", "#"), ("$dynamicAnchor", "#")] {
                if let Some(Value::String(name)) = map.get(keyword) {
                    names.insert(format!("{prefix}{}", name.trim_end_matches('#')), pointer.clone());
                }
            }
            for (key, below) in map {
                let key = key.replace('~', "~0").replace('/', "~1");
                collect_names(below, format!("{pointer}/{key}"), depth + 1, names)?;
            }
        }
        Value::Array(items) => {
            for (index, below) in items.iter().enumerate() {
                collect_names(below, format!("{pointer}/{index}"), depth + 1, names)?;
            }
        }
        _ => {}
    }
    Ok(())
}

fn percent_decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let hex = after.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        match (first, hex.and_then(|hex| u8::from_str_radix(hex, 16).ok())) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            _ => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

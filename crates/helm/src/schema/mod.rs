//! `values.schema.json`: JSON Schema, drafts 4 to 2020-12, with the texts of the validator in Helm.

mod check;
mod compile;
mod document;
mod draft;
mod error;
mod format;
mod meta;
mod number;
mod schema_address;

use std::sync::{Arc, OnceLock};

use tiphys_gocompat::json;
use tiphys_value::{Budget, JsonError, Value, json_within};

use crate::{
    Chart, Compat,
    values::{Table, Val, Warnings},
};
use check::Checker;
use compile::{Compiler, Schema};

/// The address under which Helm registers a chart's schema.
const ADDRESS: &str = "file:///values.schema.json";

/// Fetches schemas that a chart's schema refers to by an HTTP address.
pub trait SchemaLoader: Send + Sync {
    /// The text of a schema.
    ///
    /// # Errors
    /// Why it could not be had.
    fn load(&self, url: &str) -> Result<Vec<u8>, String>;
}

/// A chart's schema, compiled when first needed and kept over renderings.
#[derive(Debug, Default)]
pub(crate) struct SchemaCache(OnceLock<Vec<Schema>>);

/// One validation of a chart with its subcharts.
struct Validation<'a> {
    loader: Option<&'a dyn SchemaLoader>,
    compat: Compat,
    warnings: &'a mut Warnings,
}

/// Checks the values of a chart and of its subcharts against their schemas.
///
/// # Errors
/// The names of the charts whose values do not fit, each with the places and reasons.
pub(crate) fn validate(
    chart: &Chart,
    values: &Table,
    loader: Option<&dyn SchemaLoader>,
    compat: Compat,
    warnings: &mut Warnings,
) -> Result<(), String> {
    let mut faults = String::new();
    Validation { loader, compat, warnings }.collect(chart, values, &mut faults);
    if faults.is_empty() { Ok(()) } else { Err(faults) }
}

impl Validation<'_> {
    fn collect(&mut self, chart: &Chart, values: &Table, faults: &mut String) {
        if let Some(schema) = &chart.schema
            && let Err(text) = self.validate_chart(schema, &chart.schema_cache, values)
        {
            faults.push_str(&format!("{}:\n{text}", chart.name()));
        }
        for subchart in &chart.dependencies {
            match values.get(subchart.name()) {
                None | Some(Val::Null) => {}
                Some(Val::Table(table)) => self.collect(subchart, table, faults),
                Some(other) => faults.push_str(&format!(
                    "{}:\ninvalid type for values: expected object (map), got {}\n",
                    subchart.name(),
                    other.go_type()
                )),
            }
        }
    }

    fn validate_chart(
        &mut self,
        schema: &Arc<[u8]>,
        cache: &SchemaCache,
        values: &Table,
    ) -> Result<(), String> {
        let schemas = match cache.0.get() {
            Some(schemas) => schemas,
            None => {
                let compiled = self.compile(schema)?;
                cache.0.get_or_init(|| compiled)
            }
        };
        let instance = Val::Table(Arc::new(values.clone())).to_json();
        Checker::new(schemas).check(0, &instance).map_err(|fault| format!("{}\n", fault.print()))
    }

    fn compile(&mut self, schema: &[u8]) -> Result<Vec<Schema>, String> {
        let mut compiler = Compiler::new(ADDRESS, decode(schema)?, self.loader);
        compiler.compile(ADDRESS)?;
        let (schemas, urns) = compiler.finish();
        for urn in urns {
            self.warnings.push(match self.compat {
                Compat::Helm4 => format!(
                    "level=WARN msg=\"unresolved URN reference ignored; using permissive schema\" urn={urn}"
                ),
                Compat::Helm3 => {
                    format!("jsonschema.go:192: WARNING: unresolved URN reference ignored; using permissive schema: {urn}")
                }
            });
        }
        Ok(schemas)
    }
}

/// Whether a text ends within `true`, `false` or `null`.
fn is_cut(text: &str) -> bool {
    let fault = json::check(&format!("{text}?")).err().unwrap_or_default();
    fault.starts_with("invalid character '?' in literal")
        && !json::check(text).is_err_and(|sooner| sooner == fault)
}

/// Reads a schema document.
fn decode(text: &[u8]) -> Result<Value, String> {
    let read = match json_within(text, &Budget::of_document()) {
        Err(JsonError::Budget(fault)) => return Err(fault.to_string()),
        Err(JsonError::Syntax(error)) => Err(error),
        Ok(value) => Ok(value),
    };
    read.map_err(|error| {
        let text = String::from_utf8_lossy(text);
        match json::check(&text) {
            Err(error) if text.trim().is_empty() || error.starts_with("unexpected end") || is_cut(&text) => {
                if text.trim().is_empty() {
                    "EOF".to_owned()
                } else {
                    "unexpected EOF".to_owned()
                }
            }
            Err(error) if error.ends_with("after top-level value") => {
                "invalid character after top-level value".to_owned()
            }
            Err(error) => error,
            Ok(()) => error.to_string(),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::decode;

    #[test]
    fn what_ends_too_early_is_told_as_go_s_decoder_tells_it() {
        for (text, expected) in [
            ("", "EOF"),
            ("{\"a\": [", "unexpected EOF"),
            ("{\"not\": fal", "unexpected EOF"),
            ("tr", "unexpected EOF"),
            ("{\"a\": tr }", "invalid character ' ' in literal true (expecting 'u')"),
            ("{\"a\": nu?", "invalid character '?' in literal null (expecting 'l')"),
        ] {
            assert_eq!(decode(text.as_bytes()).unwrap_err(), expected, "{text:?}");
        }
    }
}

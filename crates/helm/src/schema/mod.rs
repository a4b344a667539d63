//! `values.schema.json`: JSON Schema, drafts 4 to 2020-12, with the texts of the validator in Helm.

mod cache;
mod check;
mod compile;
mod decode;
mod document;
mod draft;
mod error;
mod format;
mod loader;
mod meta;
mod number;
mod schema_address;

use std::sync::Arc;

pub(crate) use cache::SchemaCache;
pub use loader::SchemaLoader;

use crate::{
    Chart, Compat,
    values::{Table, Val, Warnings},
};
use check::Checker;
use compile::{Compiler, Schema};
use decode::decode;

/// The address under which Helm registers a chart's schema.
const ADDRESS: &str = "file:///values.schema.json";

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

//! `values.schema.json`: JSON Schema, drafts 4 to 2020-12, with the texts of the validator in Helm.

mod check;
mod compile;
mod error;
mod format;

use std::sync::Arc;

use tiphys_value::Value;

use crate::{
    Chart,
    values::{Table, Val},
};
use check::Checker;
use compile::Root;

/// Checks the values of a chart and of its subcharts against their schemas.
///
/// # Errors
/// The names of the charts whose values do not fit, each with the places and reasons.
pub(crate) fn validate(chart: &Chart, values: &Table) -> Result<(), String> {
    let mut faults = String::new();
    collect(chart, values, &mut faults);
    if faults.is_empty() { Ok(()) } else { Err(faults) }
}

fn collect(chart: &Chart, values: &Table, faults: &mut String) {
    if let Some(schema) = &chart.schema
        && let Err(text) = validate_one(schema, values)
    {
        faults.push_str(&format!("{}:\n{text}", chart.name()));
    }
    for subchart in &chart.dependencies {
        match values.get(subchart.name()) {
            None | Some(Val::Null) => {}
            Some(Val::Table(table)) => collect(subchart, table, faults),
            Some(other) => faults.push_str(&format!(
                "{}:\ninvalid type for values: expected object (map), got {}\n",
                subchart.name(),
                other.go_type()
            )),
        }
    }
}

fn validate_one(schema: &Arc<[u8]>, values: &Table) -> Result<(), String> {
    let schema: Value = serde_json::from_slice(schema).map_err(|error| error.to_string())?;
    let root = Root::new(schema)?;
    let instance = Val::Table(Arc::new(values.clone())).to_json();
    match Checker::new(&root).check(&instance) {
        Ok(()) => Ok(()),
        Err(fault) => Err(format!("{}\n", fault.print())),
    }
}

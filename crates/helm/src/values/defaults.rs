//! A chart's own values, and what is worked out of them once for all renderings.

use std::{
    ops::Deref,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use super::{Table, Warnings, coalesce::has_null, merge_values};
use crate::{Chart, Compat, HelmError};

/// The values of a chart's `values.yaml`.
#[derive(Debug, Default)]
pub(crate) struct Defaults {
    table: Table,
    has_null: OnceLock<bool>,
}

impl Defaults {
    /// Whether there is a `null` in tables, at any depth.
    pub(super) fn has_null(&self) -> bool {
        *self.has_null.get_or_init(|| has_null(&self.table))
    }
}

impl From<Table> for Defaults {
    fn from(table: Table) -> Self {
        Self { table, has_null: OnceLock::new() }
    }
}

impl Deref for Defaults {
    type Target = Table;

    fn deref(&self) -> &Table {
        &self.table
    }
}

/// What the last rendering made of a chart's own values and those of its subcharts.
#[derive(Debug, Default)]
pub(crate) struct MergeCache(Mutex<Option<Merged>>);

#[derive(Debug)]
struct Merged {
    /// What it was made of.
    compat: Compat,
    charts: Vec<Part>,
    values: Arc<Defaults>,
    warnings: Warnings,
}

/// A chart by what merging takes from it.
#[derive(Debug)]
struct Part {
    name: String,
    /// How many charts stand below it.
    below: usize,
    values: Arc<Defaults>,
}

/// The values of a chart over those of its subcharts, `null`s kept: made anew only if other subcharts take
/// part than in the last rendering, or have other values.
///
/// # Errors
/// As [`merge_values`].
pub(crate) fn merged_defaults(
    chart: &Chart,
    compat: Compat,
    warnings: &mut Warnings,
) -> Result<Arc<Defaults>, HelmError> {
    let mut cached = chart.merge_cache.0.lock().unwrap_or_else(PoisonError::into_inner);
    let mut charts = Vec::new();
    add_parts(chart, &mut charts);
    if let Some(merged) = &*cached
        && merged.compat == compat
        && merged.charts.len() == charts.len()
        && merged.charts.iter().zip(&charts).all(|(known, part)| known.is_same(part))
    {
        warnings.extend_from_slice(&merged.warnings);
        return Ok(merged.values.clone());
    }
    let mut own_warnings = Warnings::new();
    let values = merge_values(chart, &Table::new(), compat, &mut own_warnings);
    warnings.extend_from_slice(&own_warnings);
    let values: Arc<Defaults> = Arc::new(values?.into());
    *cached = Some(Merged { compat, charts, values: values.clone(), warnings: own_warnings });
    Ok(values)
}

fn add_parts(chart: &Chart, parts: &mut Vec<Part>) {
    let at = parts.len();
    parts.push(Part { name: chart.name().to_owned(), below: 0, values: chart.values.clone() });
    chart.dependencies.iter().for_each(|subchart| add_parts(subchart, parts));
    parts[at].below = parts.len() - at - 1;
}

impl Part {
    fn is_same(&self, other: &Self) -> bool {
        self.name == other.name && self.below == other.below && Arc::ptr_eq(&self.values, &other.values)
    }
}

#[cfg(test)]
mod tests {
    use tiphys_vfs::MemTree;

    use super::*;
    use crate::values::Val;

    fn chart() -> Chart {
        let tree = MemTree::from_files([
            ("Chart.yaml", "apiVersion: v2\nname: c\nversion: 1.0.0\n"),
            ("values.yaml", "s: {a: {b: 1}, x: null}\ng: 1\n"),
            ("charts/s/Chart.yaml", "apiVersion: v2\nname: s\nversion: 1.0.0\n"),
            ("charts/s/values.yaml", "a: {b: 2, c: {d: null}}\nx: 1\n"),
            ("charts/t/Chart.yaml", "apiVersion: v2\nname: t\nversion: 1.0.0\n"),
            ("charts/t/values.yaml", "y: 1\n"),
        ]);
        Chart::load(&tree, "").expect("the chart loads")
    }

    fn merged(chart: &Chart) -> Arc<Defaults> {
        let (mut warnings, mut expected) = (Warnings::new(), Warnings::new());
        let values = merged_defaults(chart, Compat::Helm4, &mut warnings).expect("it merges");
        let anew = merge_values(chart, &Table::new(), Compat::Helm4, &mut expected).expect("it merges");
        assert_eq!((&**values, warnings), (&anew, expected));
        values
    }

    #[test]
    fn what_is_merged_again_is_what_was_merged() {
        let chart = chart();
        assert!(Arc::ptr_eq(&merged(&chart), &merged(&chart)));
    }

    #[test]
    fn another_set_of_subcharts_is_merged_anew() {
        let (all, mut fewer) = (chart(), chart());
        fewer.merge_cache = all.merge_cache.clone();
        let first = merged(&all);
        fewer.dependencies.pop();
        assert!(!Arc::ptr_eq(&first, &merged(&fewer)));
        let mut renamed = all.clone();
        renamed.dependencies[0].metadata.name = "z".to_owned();
        assert!(merged(&renamed).contains_key("z"));
        let mut other = all.clone();
        other.values = Arc::new(Table::from([(Arc::from("n"), Val::Int(1))]).into());
        assert!(merged(&other).contains_key("n"));
    }

    #[test]
    fn nulls_are_found_at_any_depth_of_tables() {
        let chart = chart();
        assert!(chart.values.has_null() && chart.dependencies[0].values.has_null());
        assert!(!chart.dependencies[1].values.has_null());
    }
}

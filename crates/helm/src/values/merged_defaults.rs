//! The values of a chart over those of its subcharts, worked out once for all renderings.

use std::sync::Arc;

use super::{
    Table, Warnings,
    defaults::{Defaults, Part},
    merge_values,
};
use crate::{Chart, Compat, HelmError};

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
    let mut charts = Vec::new();
    add_parts(chart, &mut charts);
    let merge = |warnings: &mut Warnings| merge_values(chart, &Table::new(), compat, warnings);
    chart.merge_cache.get_or_merge(compat, charts, warnings, merge)
}

fn add_parts(chart: &Chart, parts: &mut Vec<Part>) {
    let at = parts.len();
    parts.push(Part { name: chart.name().to_owned(), below: 0, values: chart.values.clone() });
    chart.dependencies.iter().for_each(|subchart| add_parts(subchart, parts));
    parts[at].below = parts.len() - at - 1;
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

//! Which subcharts take part, under which names, and what their parents import from them.

use std::sync::Arc;

use tiphys_gocompat::strconv::quote;
use tiphys_value::Value;

use crate::{
    Chart, Compat, HelmError,
    chart::Dependency,
    log_text::log_text,
    semver::is_compatible,
    values::{Table, Val, Warnings, coalesce_values, merge_tables, merged_defaults, path_value, table_at},
};

/// Renames aliased subcharts, drops those that conditions and tags switch off, and imports values
/// into parents.
///
/// # Errors
/// Values that cannot be coalesced.
pub(crate) fn process(
    chart: &mut Chart,
    values: &Table,
    compat: Compat,
    warnings: &mut Warnings,
) -> Result<(), HelmError> {
    let result = enable(chart, values, "", compat, warnings);
    result.and_then(|()| import_all(chart, compat, warnings)).map_err(|error| {
        if compat == Compat::Helm4 {
            let reason = log_text(&error.to_string());
            warnings.push(format!("level=ERROR msg=\"chart dependencies processing failed\" error={reason}"));
        }
        HelmError::Values(match compat {
            Compat::Helm4 => format!("chart dependencies processing failed: {error}"),
            Compat::Helm3 => error.to_string(),
        })
    })
}

fn enable(
    chart: &mut Chart,
    values: &Table,
    path: &str,
    compat: Compat,
    warnings: &mut Warnings,
) -> Result<(), HelmError> {
    if !chart.metadata.names_dependencies {
        return Ok(());
    }
    rename(chart);
    // Go logs the same warnings again when the values are finally put together.
    let values = coalesce_values(chart, values, compat, warnings)?;
    let wanted = &mut chart.metadata.dependencies;
    by_tags(wanted, &values, compat, warnings);
    by_conditions(wanted, &values, path, compat, warnings);
    let disabled: Vec<String> =
        wanted.iter().filter(|wanted| !wanted.enabled).map(|wanted| wanted.name.clone()).collect();
    wanted.retain(|wanted| !disabled.contains(&wanted.name));
    chart.dependencies.retain(|subchart| !disabled.contains(&subchart.metadata.name));
    for subchart in &mut chart.dependencies {
        let below = format!("{path}{}.", subchart.name());
        enable(subchart, &values, &below, compat, warnings)?;
    }
    Ok(())
}

/// Puts the subcharts that `Chart.yaml` names under the names it gives them, once for each entry;
/// subcharts it does not name stay, in front.
fn rename(chart: &mut Chart) {
    let present = std::mem::take(&mut chart.dependencies);
    let is_named = |subchart: &Chart| {
        chart.metadata.dependencies.iter().any(|wanted| {
            subchart.name() == wanted.name && is_compatible(&wanted.version, &subchart.metadata.version)
        })
    };
    let mut renamed: Vec<Chart> = present.iter().filter(|subchart| !is_named(subchart)).cloned().collect();
    for wanted in &mut chart.metadata.dependencies {
        let found = present.iter().find(|subchart| {
            subchart.name() == wanted.name && is_compatible(&wanted.version, &subchart.metadata.version)
        });
        if let Some(found) = found {
            let mut subchart = found.clone();
            if !wanted.alias.is_empty() {
                subchart.metadata.name.clone_from(&wanted.alias);
            }
            renamed.push(subchart);
        }
        if !wanted.alias.is_empty() {
            wanted.name.clone_from(&wanted.alias);
        }
        wanted.enabled = true;
    }
    chart.dependencies = renamed;
}

fn by_tags(wanted: &mut [Dependency], values: &Table, compat: Compat, warnings: &mut Warnings) {
    let Ok(tags) = table_at(values, "tags") else { return };
    for dependency in wanted {
        let (mut on, mut off) = (false, false);
        for tag in &dependency.tags {
            match tags.get(tag.as_str()) {
                None => {}
                Some(Val::Bool(value)) => {
                    on |= *value;
                    off |= !*value;
                }
                Some(_) => warnings.push(match compat {
                    Compat::Helm4 => format!(
                        "level=WARN msg=\"returned non-bool value\" tag={tag} chart={}",
                        dependency.name
                    ),
                    Compat::Helm3 => {
                        format!(
                            "dependencies.go:95: Warning: Tag '{tag}' for chart {} returned non-bool value",
                            dependency.name
                        )
                    }
                }),
            }
        }
        dependency.enabled = on || !off;
    }
}

fn by_conditions(
    wanted: &mut [Dependency],
    values: &Table,
    path: &str,
    compat: Compat,
    warnings: &mut Warnings,
) {
    for dependency in wanted {
        for condition in dependency.condition.trim().split(',').filter(|it| !it.is_empty()) {
            match path_value(values, &format!("{path}{condition}")) {
                None => {}
                Some(Val::Bool(value)) => {
                    dependency.enabled = *value;
                    break;
                }
                Some(_) => warnings.push(match compat {
                    Compat::Helm4 => format!(
                        "level=WARN msg=\"returned non-bool value\" path={condition} chart={}",
                        dependency.name
                    ),
                    Compat::Helm3 => format!(
                        "dependencies.go:64: Warning: Condition path '{condition}' for chart {} returned non-bool value",
                        dependency.name
                    ),
                }),
            }
        }
    }
}

fn import_all(chart: &mut Chart, compat: Compat, warnings: &mut Warnings) -> Result<(), HelmError> {
    for subchart in &mut chart.dependencies {
        import_all(subchart, compat, warnings)?;
    }
    import(chart, compat, warnings)
}

/// Puts what `import-values` names under the chart's own values.
fn import(chart: &mut Chart, compat: Compat, warnings: &mut Warnings) -> Result<(), HelmError> {
    if chart.metadata.dependencies.is_empty() {
        return Ok(());
    }
    let merged = merged_defaults(chart, compat, warnings)?;
    if chart.metadata.dependencies.iter().all(|dependency| dependency.import_values.is_empty()) {
        chart.values = merged;
        return Ok(());
    }
    let mut values = (**merged).clone();
    let mut imported = Table::new();
    let mut lists = Vec::new();
    for dependency in &chart.metadata.dependencies {
        let mut list = Vec::new();
        for entry in &dependency.import_values {
            let Some((child, parent)) = pair(entry) else { continue };
            list.push(tiphys_value::json!({ "child": child, "parent": parent }));
            match table_at(&values, &format!("{}.{child}", dependency.name)) {
                Ok(table) => {
                    merge_tables(&mut imported, path_to_table(&parent, table.clone()), compat, warnings);
                }
                Err(error) => {
                    let named = if entry.is_string() { None } else { Some(&dependency.name) };
                    warnings.push(missing_table(named, &error.to_string(), compat));
                }
            }
        }
        lists.push(list);
    }
    for (dependency, list) in chart.metadata.dependencies.iter_mut().zip(lists) {
        dependency.import_values = list;
    }
    merge_tables(&mut values, imported, compat, warnings);
    chart.values = Arc::new(values.into());
    Ok(())
}

/// What Helm logs of an import without a table to import. It tells the chart where the entry names child and
/// parent.
fn missing_table(chart: Option<&String>, error: &str, compat: Compat) -> String {
    const TEXT: &str = "ImportValues missing table";
    match (compat, chart) {
        (Compat::Helm4, Some(chart)) => {
            format!("level=WARN msg=\"{TEXT} from chart\" chart={chart} error={}", quote(error))
        }
        (Compat::Helm4, None) => format!("level=WARN msg=\"{TEXT}\" error={}", quote(error)),
        (Compat::Helm3, Some(chart)) => {
            format!("dependencies.go:270: Warning: {TEXT} from chart {chart}: {error}")
        }
        (Compat::Helm3, None) => format!("dependencies.go:283: Warning: {TEXT}: {error}"),
    }
}

/// Child and parent path of an entry of `import-values`; a name alone means `exports.<name>`, put at
/// the top.
fn pair(entry: &Value) -> Option<(String, String)> {
    match entry {
        Value::String(name) => Some((format!("exports.{name}"), ".".to_owned())),
        Value::Object(map) => {
            let print = |key: &str| {
                map.get(key).map_or_else(|| "<nil>".to_owned(), |it| Val::from_json(it.clone()).go_print())
            };
            Some((print("child"), print("parent")))
        }
        _ => None,
    }
}

fn path_to_table(path: &str, table: Table) -> Table {
    if path == "." {
        return table;
    }
    path.split('.')
        .rev()
        .fold(table, |below, key| Table::from([(Arc::from(key), Val::Table(Arc::new(below)))]))
}

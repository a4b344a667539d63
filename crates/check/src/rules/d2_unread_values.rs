//! # Values that nothing reads
//!
//! A chart with nothing but dependencies hands to each of them the values under its name. A key that is the
//! name of none of them is read by nobody: what it says has no effect, and nothing tells so.
//!
//! Of much used charts that are out of reach it is known which values they read, at every level, and which
//! their schemas refuse. A value that no template of such a chart reads is told, with the value that is meant
//! where that is plain. Maps that templates hand on as they are take every key, and nothing is said of them.
//!
//! People see: nothing: the default values are in force. Where the chart has a schema: `values don't meet the
//! specifications of the schema(s)`, and no release.
//!
//! ## Bad
//! ```yaml
//! # Chart.yaml: dependencies: [{name: traefik}]
//! replicas: 3
//! ```
//! ## Good
//! ```yaml
//! traefik:
//!   replicas: 3
//! ```
//! ## When to suppress
//! Where another tool reads the file.

use std::{collections::BTreeSet, sync::Arc};

use tiphys_diag::{Severity, similar_names};
use tiphys_graph::{Files, Survey};
use tiphys_value::{Location, Value};
use tiphys_yaml::{Content, Profile};

use super::unread_chart_values;
use crate::{
    Context, Finding, Report, Rule,
    support::{
        chart_templates::{self, in_chart},
        chart_uses::ChartUse,
        known_values::KnownValues,
        kustomization_entries, placeholders,
        pods::{list, text},
        several_values,
    },
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "D2-unread-values",
    incident: "D2",
    severity: Severity::Warning,
    title: "values that no chart reads",
    page: page!("d2_unread_values.rs"),
    check,
};

/// How many values of one file are shown.
const MOST: usize = 5;
/// Words in the names of values files that are there to be read: a copy of a chart's own values.
const FOR_READING: [&str; 6] = ["default", "defaults", "upstream", "orig", "example", "sample"];

fn check(context: &Context<'_>, report: &mut Report) {
    let files = &context.survey.files;
    for path in files.ending(&["/Chart.yaml"]).filter(|path| !placeholders::is_skeleton(path)) {
        let folder = path.trim_end_matches("Chart.yaml").to_owned();
        // Where a kustomization is built, the chart beside it is for another tool, which gives it the values
        // in its own way.
        if kustomization_entries::of_folder(files, folder.trim_end_matches('/')).next().is_some() {
            continue;
        }
        let Some(read) = read_by_dependencies(files, path, &folder) else { continue };
        for file in values_files(context.survey, path, &folder) {
            check_values_file(context, &file, (path, &read), report);
        }
    }
    beside_dependencies(context, report);
    unread_chart_values::check(context, report);
}

/// Values at the top of a chart with templates of its own that read nothing of them, while its dependency has
/// values of this name.
fn beside_dependencies(context: &Context<'_>, report: &mut Report) {
    const OF_EVERY_CHART: [&str; 6] = ["global", "tags", "enabled", "image", "labels", "annotations"];
    let files = &context.survey.files;
    for used in context.chart_uses() {
        let (Some(folder), Some(known)) = (used.parent.as_deref(), KnownValues::of_use(used)) else {
            continue;
        };
        let chart = in_chart(folder, "Chart.yaml");
        let Some(text) = files.text(&chart) else { continue };
        let own: String =
            chart_templates::templates(files, folder).fold(String::new(), |all, (_, text)| all + &text);
        // Without templates of its own the chart is told of above; what reads all values may read these.
        let reads_all =
            ["index .Values", "toYaml .Values }", "toYaml .Values|", ".Values |", "range $", "include \""];
        if own.is_empty() || reads_all.iter().any(|it| own.contains(it)) {
            continue;
        }
        let is_read = |key: &str| own.contains(&format!(".Values.{key}")) || text.contains(key);
        let is_odd = |key: &str| known.has_top(key) && !is_read(key) && !OF_EVERY_CHART.contains(&key);
        for file in values_files(context.survey, &chart, &in_chart(folder, "")) {
            let mut odd = maps_at_the_top(files, &file);
            odd.retain(|(name, _)| is_odd(name));
            if !odd.is_empty() {
                report.add(beside_dependency(files, used, &odd));
            }
        }
    }
}

/// The keys at the top of a values file that hold maps with something in them, each with its place.
fn maps_at_the_top(files: &Files, file: &Arc<str>) -> Vec<(String, Location)> {
    let documents = files.text(file).and_then(|text| tiphys_yaml::parse_documents(&text, Profile::Go2).ok());
    let root = documents.as_ref().and_then(|documents| documents.first()).map(|it| &it.root.content);
    let Some(Content::Mapping(pairs)) = root else { return Vec::new() };
    let found = pairs.iter().filter_map(|(key, value)| match (&key.content, &value.content) {
        (Content::Scalar(name), Content::Mapping(below)) if !below.is_empty() => {
            Some((name.to_string(), Location::new(file.clone(), key.span.start.line, key.span.start.column)))
        }
        _ => None,
    });
    found.collect()
}

fn beside_dependency(files: &Files, used: &ChartUse, odd: &[(String, Location)]) -> Finding {
    let chart = &used.chart;
    let called = used.release.as_ref().map_or(chart.as_str(), |it| &it.chart_name);
    let names: Vec<&str> = odd.iter().map(|(name, _)| name.as_str()).collect();
    let values = several_values::the_values(&names);
    let message = match names.len() {
        1 => format!(
            "{values} is read by nobody: it stands beside the values of chart {chart}, which has one of this name"
        ),
        _ => format!(
            "{values} are read by nobody: they stand beside the values of chart {chart}, which has some of these names"
        ),
    };
    let spans = odd.iter().map(|(_, place)| files.span(place));
    let diagnostic =
        several_values::at_each(RULE.diagnostic(message), spans, "has no effect", "nor has this")
            .because("a chart hands to a dependency what stands under its name")
            .help(format!("put {} below {called}", if names.len() == 1 { "it" } else { "them" }));
    Finding::new(RULE.incident, diagnostic).likely()
}

/// The keys that a chart without templates of its own hands on; nothing for every other chart.
fn read_by_dependencies(files: &Files, path: &str, folder: &str) -> Option<BTreeSet<String>> {
    let chart = files.value(path)?;
    let (templates, charts) = (format!("{folder}templates/"), format!("{folder}charts/"));
    let crds = format!("{folder}crds/");
    let has_own = files.paths().any(|it| it.starts_with(&templates) || it.starts_with(&crds));
    let mut dependencies = list(&chart, "dependencies").to_vec();
    let requirements = format!("{folder}requirements.yaml");
    if files.contains(&requirements) {
        let old = files.value(&requirements)?;
        dependencies.extend(list(&old, "dependencies").iter().cloned());
    }
    if has_own || dependencies.is_empty() || text(&chart, "type") == "library" {
        return None;
    }
    let mut read: BTreeSet<String> = ["global", "tags"].map(str::to_owned).into();
    for dependency in &dependencies {
        let alias = text(dependency, "alias");
        read.insert(if alias.is_empty() { text(dependency, "name") } else { alias }.to_owned());
        let conditions =
            text(dependency, "condition").split(',').filter_map(|it| it.trim().split('.').next());
        read.extend(conditions.filter(|name| !name.is_empty()).map(str::to_owned));
        // What a chart imports stands where the importing chart says.
        if dependency.get("import-values").is_some_and(Value::is_array) {
            return None;
        }
    }
    let vendored = files.paths().filter_map(|it| it.strip_prefix(charts.as_str())?.split('/').next());
    read.extend(vendored.map(str::to_owned));
    Some(read)
}

/// The values files of a chart: those beside it, and those that Applications give it.
fn values_files(survey: &Survey, chart: &str, folder: &str) -> BTreeSet<Arc<str>> {
    let is_values = |path: &str| {
        let base = path.strip_prefix(folder).unwrap_or_default();
        base.starts_with("values")
            && !base.contains('/')
            && (base.ends_with(".yaml") || base.ends_with(".yml"))
            && !base.split(['.', '-', '_']).any(|word| FOR_READING.contains(&word))
    };
    let mut found: BTreeSet<Arc<str>> =
        survey.files.paths().filter(|path| is_values(path)).cloned().collect();
    for app in survey.apps.iter().filter(|app| app.read.contains(chart)) {
        let sources = app.application.spec.effective_sources();
        let [only] = sources.as_slice() else { continue };
        for file in only.helm.iter().flat_map(|helm| &helm.value_files) {
            let name = file.rsplit('/').next().unwrap_or(file);
            let named = app.read.iter().filter(|path| path.rsplit('/').next() == Some(name));
            found.extend(named.filter(|path| path.starts_with(folder) || !is_shared(survey, path)).cloned());
        }
    }
    found
}

/// Whether a values file is for several Applications, each of which reads what it knows.
fn is_shared(survey: &Survey, file: &str) -> bool {
    survey.apps.iter().filter(|app| app.read.contains(file)).count() > 1
}

fn check_values_file(
    context: &Context<'_>,
    file: &Arc<str>,
    (chart, read): (&str, &BTreeSet<String>),
    report: &mut Report,
) {
    let files = &context.survey.files;
    let Some(content) = files.text(file) else { return };
    let Ok(documents) = tiphys_yaml::parse_documents(&content, Profile::Go2) else { return };
    let Some(Content::Mapping(pairs)) = documents.first().map(|it| &it.root.content) else { return };
    let mut found = Vec::new();
    for (key, value) in pairs {
        let Content::Scalar(name) = &key.content else { continue };
        let line = content.lines().nth(key.span.start.line as usize - 1).unwrap_or_default();
        // An anchor is there to be referred to; an alias is what it stands for.
        let is_shared = line.contains(": &") || matches!(value.content, Content::Alias(_));
        let is_aside = name.starts_with(['.', '_', '$']) || name.starts_with("x-") || &**name == "<<";
        let is_empty = matches!(&value.content, Content::Scalar(text) if text.is_empty())
            || matches!(&value.content, Content::Mapping(pairs) if pairs.is_empty());
        // Nothing would be other if it were read.
        let is_as_ever =
            &**name == "enabled" && matches!(&value.content, Content::Scalar(text) if &**text == "true");
        let has_meaning = !(is_shared || is_aside || is_empty || is_as_ever);
        if read.contains(&**name) || !has_meaning || line.contains("{{") {
            continue;
        }
        found.push((name.to_string(), key.span.start));
    }
    // Where nothing of it is for a dependency, and no Application reads it, people may hand it to that chart
    // itself.
    const WHOLE: usize = 3;
    let is_for_another = found.len() >= WHOLE
        && context.survey.apps.iter().all(|app| !app.read.contains(chart))
        && pairs.iter().all(|(key, _)| match &key.content {
            Content::Scalar(name) => matches!(&**name, "global" | "tags") || !read.contains(&**name),
            _ => true,
        });
    let Some((first, _)) = found.first() else { return };
    let known: Vec<&str> =
        read.iter().map(String::as_str).filter(|it| !matches!(*it, "global" | "tags")).collect();
    let what = match found.len() - 1 {
        0 => format!(
            "the value {first} is read by nobody: the chart has no templates, and no dependency of this name"
        ),
        more => format!(
            "the value {first} and {more} more are read by nobody: the chart has no templates, and no dependencies of these names"
        ),
    };
    let mut diagnostic = RULE
        .diagnostic(what)
        .because(format!("a chart hands to a dependency what stands under its name: {}", known.join(", ")));
    for (index, (name, at)) in found.iter().enumerate().take(MOST) {
        let span = files.span(&Location::new(file.clone(), at.line, at.column));
        diagnostic = match index {
            0 => diagnostic.at(span, "has no effect"),
            _ => diagnostic.see(span, "nor has this"),
        };
        if let Some(nearest) = similar_names::nearest_slip(name, known.iter().copied()) {
            diagnostic = diagnostic.help(format!("perhaps {nearest} is meant with {name}"));
        }
    }
    diagnostic = diagnostic.help("put it below the name of the dependency that it is for");
    if is_for_another {
        diagnostic.severity = Severity::Info;
    }
    report.add(Finding::new(RULE.incident, diagnostic));
}

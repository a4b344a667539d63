//! What is told of a repository in which no Application is found, or not all that it declares.

use std::collections::BTreeMap;

use tiphys_graph::{Outcome, Survey, Unit, UnitKind};
use tiphys_vfs::{base_name, parent, shown_path};

/// Other engines whose objects somebody may take for Applications: a mark of their files, and what they are
/// called.
const OTHER_ENGINES: [(&str, &str); 5] = [
    ("toolkit.fluxcd.io/", "Flux"),
    ("fleet.cattle.io/", "Fleet"),
    ("apps.open-cluster-management.io/", "Open Cluster Management"),
    ("app.k8s.io/", "the Application controller of SIG Apps"),
    ("cd.jenkins.io/", "Jenkins X"),
];
const MANIFESTS: [&str; 3] = [".yaml", ".yml", ".json"];

/// What is told of a repository in which no Application is found.
pub(crate) fn nothing_found(survey: &Survey, folder: &str) -> String {
    let place = if folder.is_empty() { "the repository" } else { folder };
    let mut text = format!(
        "no Application found in {place}: looked through {} YAML and JSON files for kind: Application and ApplicationSet of argoproj.io/v1alpha1",
        survey.files.ending(&MANIFESTS).count()
    );
    for (engine, count) in of_other_engines(survey) {
        let (files, hold) = if count == 1 { ("file", "holds") } else { ("files", "hold") };
        text.push_str(&format!(
            "\n{count} {files} {hold} objects of {engine}, which is another engine: tiphys runs Argo CD's Applications"
        ));
    }
    let without = survey.units.iter().filter(|unit| renders_none(survey, unit));
    let without = without.map(|unit| wants_values(survey, &unit.path));
    for told in super::faults(survey).into_iter().chain(without).chain(out_of_reach(survey)) {
        text.push_str("\n\n");
        text.push_str(&told);
    }
    text
}

/// How many files hold objects of other engines.
fn of_other_engines(survey: &Survey) -> BTreeMap<&'static str, usize> {
    let mut counts = BTreeMap::new();
    for path in survey.files.ending(&MANIFESTS) {
        let Some(text) = survey.files.text(path) else { continue };
        let versions: Vec<&str> = text.lines().filter(|line| line.starts_with("apiVersion:")).collect();
        for (mark, engine) in OTHER_ENGINES {
            if versions.iter().any(|line| line.contains(mark)) {
                *counts.entry(engine).or_default() += 1;
            }
        }
    }
    counts
}

/// Whether a template of a chart declares Applications.
fn declares(survey: &Survey, chart: &str) -> bool {
    let templates = if chart.is_empty() { "templates/".to_owned() } else { format!("{chart}/templates/") };
    let mut files = survey.files.paths().filter(|path| path.starts_with(templates.as_str()));
    files.any(|path| {
        let text = survey.files.text(path);
        text.is_some_and(|text| text.contains("argoproj.io/") && text.contains("kind: Application"))
    })
}

/// The charts whose templates speak of Applications and that do not render as they stand, each with why.
pub(super) fn unrenderable(survey: &Survey) -> Vec<String> {
    let is_chart = |unit: &&Unit| unit.kind == UnitKind::Chart && declares(survey, &unit.path);
    let has_roots = |unit: &&Unit| {
        survey.roots.iter().any(|root| root.unit.is_some_and(|id| survey.units[id.0].path == unit.path))
    };
    let charts = survey.units.iter().filter(is_chart).filter(|unit| !has_roots(unit));
    charts
        .filter_map(|unit| {
            let why = match &unit.outcome {
                Outcome::Failed(error) => error.to_string(),
                Outcome::Unseen(why) => why.clone(),
                Outcome::Rendered | Outcome::Duplicate(_) => return None,
            };
            Some(format!(
                "the chart {} declares Applications, and does not render with its own values alone: {why}",
                shown_path(&unit.path)
            ))
        })
        .collect()
}

/// Whether a chart that declares Applications renders as it stands, to none.
fn renders_none(survey: &Survey, unit: &Unit) -> bool {
    let is_rendered = matches!(unit.outcome, Outcome::Rendered);
    let kinds = || unit.objects.iter().map(|id| survey.object(*id).key.kind.as_str());
    let has_one = || kinds().any(|kind| matches!(kind, "Application" | "ApplicationSet"));
    unit.kind == UnitKind::Chart && is_rendered && declares(survey, &unit.path) && !has_one()
}

/// What is told of a chart whose templates declare Applications for values that it does not have of its own.
fn wants_values(survey: &Survey, chart: &str) -> String {
    let beside = survey.files.paths().filter(|path| parent(path).unwrap_or_default() == chart);
    let names = beside.map(|path| base_name(path));
    let values: Vec<&str> = names.filter(|name| name.contains("values") && *name != "values.yaml").collect();
    let others =
        if values.is_empty() { String::new() } else { format!(" (there are others: {})", values.join(", ")) };
    format!(
        "the chart {} declares Applications, and renders none with its own values alone{others}; an Application that \
         names its values is what `tiphys` runs",
        shown_path(chart)
    )
}

/// What could not be had, which may declare Applications: told where nothing else does.
pub(crate) fn out_of_reach(survey: &Survey) -> Option<String> {
    const TOLD: usize = 5;
    let mut told: Vec<String> =
        survey.unseen.iter().map(|unseen| format!("  {}: {}", unseen.what, unseen.why)).collect();
    let more = told.len().saturating_sub(TOLD);
    told.truncate(TOLD);
    if more > 0 {
        told.push(format!("  and {more} more"));
    }
    let what = "some of what charts and kustomizations here are made of cannot be had, so nobody knows whether it \
                declares Applications:";
    (!told.is_empty()).then(|| format!("{what}\n{}", told.join("\n")))
}

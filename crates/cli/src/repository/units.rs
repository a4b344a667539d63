//! Applications that no file declares as they stand, but that a chart or kustomization renders: one that somebody is
//! meant to install first.

use std::collections::BTreeSet;

use tiphys_controller::Checkouts;
use tiphys_graph::{Declaration, Input, Object, Outcome, Survey, Unit, UnitKind, put_away::put_away};
use tiphys_model::names::TRACKING_ID;
use tiphys_schema::names;
use tiphys_value::{ObjectExt, Value};

use super::{Found, Repository};

/// The namespace that a chart is rendered into if nobody says another.
const DEFAULT_NAMESPACE: &str = "default";

/// A kind, a namespace and a name.
type Named = (String, (String, String));

fn named(found: &Found) -> Named {
    (found.object.kind().to_owned(), found.id())
}

impl Repository {
    /// Looks for Applications in what charts and kustomizations render: overlays over files that declare some, charts
    /// whose templates do and that no Application renders, and all others where no file declares any.
    pub fn look_into_units(&mut self) {
        self.leave_put_away();
        self.leave_templates();
        self.look_into_overlays();
        if self.scan.declared().next().is_none() {
            self.take_all_units();
        } else {
            self.take_charts();
        }
    }

    fn survey(&self) -> Survey {
        let settings = self.scan.render_settings();
        let checkouts = Checkouts::new(&self.repositories).with_settings(settings);
        Survey::of(&Input {
            tree: self.tree.clone(),
            folder: &self.folder,
            sources: &checkouts,
            is_given: &|url| self.repositories.is_given(url),
            clusters: Vec::new(),
            kube_version: "",
            progress: &|_, _| {},
        })
    }

    /// Takes the Applications of the charts that declare some and that nothing renders: somebody is meant to install
    /// them beside the Applications in files, or before them.
    fn take_charts(&mut self) {
        let rendered = self.folders_of_applications();
        let mut charts = self.scan.charts.clone();
        charts.retain(|chart| !rendered.contains_key(chart) && put_away(&format!("{chart}/")).is_none());
        if charts.is_empty() {
            return;
        }
        let is_first = !std::mem::replace(&mut self.in_units, true);
        let survey = self.survey();
        let others = self.scan.projects.iter().chain(&self.scan.clusters);
        let known: BTreeSet<Named> = self.scan.declared().chain(others).map(named).collect();
        let is_one = |unit: &&Unit| unit.kind == UnitKind::Chart && charts.contains(&unit.path);
        for unit in survey.units.iter().filter(is_one) {
            if self.take_unit(&survey, unit, &known) && is_first {
                let place = if unit.path.is_empty() { "." } else { &unit.path };
                self.notices.push(format!(
                    "no Application renders the chart {place}; those that it declares are taken from what it renders to as it stands"
                ));
            }
        }
    }

    /// Takes what a chart or kustomization renders that is of concern, but for what is known. Whether Applications are
    /// among it.
    fn take_unit(&mut self, survey: &Survey, unit: &Unit, known: &BTreeSet<Named>) -> bool {
        let mut declares = false;
        for object in unit.objects.iter().map(|id| survey.object(*id)) {
            let value = object.value();
            let found = found(unit, object);
            if self.scan.list_of(value).is_none() || known.contains(&named(&found)) {
                continue;
            }
            if !names::dns1123_subdomain(value.name()).is_empty() {
                self.scan.faults.push(unnamed(unit, value));
            } else if let Some(list) = self.scan.list_of(value) {
                list.push(found);
                declares |= matches!(value.kind(), "Application" | "ApplicationSet");
            }
        }
        declares
    }

    fn take_all_units(&mut self) {
        let is_first = !std::mem::replace(&mut self.in_units, true);
        let survey = self.survey();
        let mut from = BTreeSet::new();
        for unit in survey.units.iter().filter(|unit| unit.kind != UnitKind::Manifest) {
            if self.take_unit(&survey, unit, &BTreeSet::new()) {
                from.insert(unit.path.clone());
            }
        }
        // Somebody applies a file among the templates of a chart by hand, which then renders that chart.
        let is_plain = |file: &str| survey.files.text(file).is_some_and(|text| !text.contains("{{"));
        let by_hand = survey.apps.iter().filter(|app| {
            matches!(app.declaration, Declaration::File) && is_plain(&app.declared.location.file)
        });
        for app in by_hand.filter(|_| from.is_empty()) {
            let location = &app.declared.location;
            let found = Found {
                file: location.file.to_string(),
                line: location.line,
                object: app.declared.value.clone(),
            };
            self.scan.applications.push(found);
            self.notices.extend(is_first.then(|| {
                format!("the Application {} is taken from the template {}", app.name(), location.file)
            }));
        }
        self.scan.faults.extend(unrenderable(&survey));
        if self.scan.applications.is_empty() && self.scan.sets.is_empty() {
            let without = self.scan.charts.iter().filter(|chart| renders_none(&survey, chart));
            let without: Vec<String> = without.map(|chart| wants_values(&survey, chart)).collect();
            self.scan.faults.extend(without);
            self.scan.faults.extend(out_of_reach(&survey));
        }
        survey.adopted.iter().for_each(|url| self.repositories.add_address(url));
        if is_first {
            // The survey sees no more than the folder that was asked for.
            self.adopt_addresses();
        }
        if !from.is_empty() && is_first {
            let from: Vec<String> = from.into_iter().collect();
            self.notices.push(format!(
                "no file declares an Application; they are taken from what {} renders to as it stands",
                from.join(", ")
            ));
        }
    }
}

/// Why an object is left out whose name wants values that the unit does not have of its own.
fn unnamed(unit: &Unit, object: &Value) -> String {
    let what = if unit.kind == UnitKind::Chart { "the chart" } else { "the kustomization" };
    let place = if unit.path.is_empty() { "." } else { &unit.path };
    format!(
        "{what} {place} renders {} {:?} as it stands, which is no name that a cluster takes: it is left out",
        object.kind(),
        object.name()
    )
}

/// The charts whose templates speak of Applications and that do not render as they stand, each with why.
fn unrenderable(survey: &Survey) -> Vec<String> {
    let charts = survey.units.iter().filter(|unit| unit.kind == UnitKind::Chart);
    charts
        .filter_map(|unit| {
            let why = match &unit.outcome {
                Outcome::Failed(error) => error.to_string(),
                Outcome::Unseen(why) => why.clone(),
                Outcome::Rendered | Outcome::Duplicate(_) => return None,
            };
            let templates = if unit.path.is_empty() { "templates/".to_owned() } else { format!("{}/templates/", unit.path) };
            let mut files = survey.files.paths().filter(|path| path.starts_with(templates.as_str()));
            let declares = files.any(|path| {
                survey.files.text(path).is_some_and(|text| {
                    text.contains("argoproj.io/") && text.contains("kind: Application")
                })
            });
            let place = if unit.path.is_empty() { "." } else { &unit.path };
            declares.then(|| format!("the chart {place} declares Applications, and does not render with its own values alone: {why}"))
        })
        .collect()
}

/// Whether a chart renders as it stands, to no Application.
fn renders_none(survey: &Survey, chart: &str) -> bool {
    let of_chart = |unit: &&Unit| unit.kind == UnitKind::Chart && unit.path == chart;
    survey.units.iter().find(of_chart).is_some_and(|unit| matches!(unit.outcome, Outcome::Rendered))
}

/// What is told of a chart whose templates declare Applications for values that it does not have of its own.
fn wants_values(survey: &Survey, chart: &str) -> String {
    let beside = survey.files.paths().filter(|path| tiphys_vfs::parent(path).unwrap_or_default() == chart);
    let names = beside.map(|path| tiphys_vfs::base_name(path));
    let values: Vec<&str> = names.filter(|name| name.contains("values") && *name != "values.yaml").collect();
    let others =
        if values.is_empty() { String::new() } else { format!(" (there are others: {})", values.join(", ")) };
    let place = if chart.is_empty() { "." } else { chart };
    format!(
        "the chart {place} declares Applications, and renders none with its own values alone{others}; an Application that \
         names its values is what `tiphys` runs"
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

/// The object as somebody would apply it: without the mark of an Application that does not exist.
fn found(unit: &Unit, object: &Object) -> Found {
    let mut value = object.value().clone();
    let is_chart = unit.kind == UnitKind::Chart;
    if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            annotations.remove(TRACKING_ID);
        }
        if is_chart && metadata.get("namespace").and_then(Value::as_str) == Some(DEFAULT_NAMESPACE) {
            metadata.remove("namespace");
        }
    }
    let location = &object.rendered.location;
    Found { file: location.file.to_string(), line: location.line, object: value }
}

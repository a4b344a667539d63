//! Charts and kustomizations: where they are, and which of them another one refers to.

use std::collections::BTreeSet;

use tiphys_value::{ObjectExt, Value, json};
use tiphys_vfs::{base_name, join, parent};

use super::{Files, UnitKind, here::THIS_REPOSITORY};

/// A chart or kustomization of the repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub kind: UnitKind,
    pub folder: String,
    /// What `Chart.yaml` calls the chart; empty for kustomizations.
    pub name: String,
    /// Whether Flux is there to build it, see [`AS_FLUX`].
    pub is_of_flux: bool,
}

/// The version of kustomize that stands for the one in Flux's kustomize-controller, which reads files anywhere in the
/// repository.
pub const AS_FLUX: &str = "flux";

/// Whether an object tells Flux what to build.
pub fn is_of_flux(object: &Value) -> bool {
    let group = object.api_version().split('/').next().unwrap_or_default().to_owned();
    matches!(
        (group.as_str(), object.kind()),
        ("kustomize.toolkit.fluxcd.io", "Kustomization") | ("fluxcd.controlplane.io", "FluxInstance")
    )
}

/// The charts and kustomizations that no other chart or kustomization of the repository refers to.
pub fn tops(files: &Files, is_of_flux: bool) -> Vec<Place> {
    let mut places = Vec::new();
    let mut referred = BTreeSet::new();
    for path in files.paths() {
        let folder = parent(path).unwrap_or_default().to_owned();
        if tiphys_kustomize::FILE_NAMES.contains(&base_name(path)) {
            let Some(content) = read(files, path) else { continue };
            referred.extend(references(&content, &folder));
            if content.get("kind").and_then(Value::as_str) != Some("Component") {
                let name = String::new();
                places.push(Place { kind: UnitKind::Kustomization, folder, name, is_of_flux });
            }
        } else if base_name(path) == "Chart.yaml" {
            let Some(content) = read(files, path) else { continue };
            referred.extend(local_dependencies(&content, &folder));
            let is_library = content.get("type").and_then(Value::as_str) == Some("library");
            // A chart in another chart's `charts/` folder is that chart's business.
            let vendored = files.contains(&vendoring_chart(&folder));
            if !is_library && !vendored {
                let name = content.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
                places.push(Place { kind: UnitKind::Chart, folder, name, is_of_flux: false });
            }
        }
    }
    places.retain(|place| !referred.contains(&place.folder));
    places
}

/// `Chart.yaml` of the chart in whose `charts/` folder another chart lies.
fn vendoring_chart(folder: &str) -> String {
    let above = parent(folder).unwrap_or_default();
    if base_name(above) != "charts" {
        return String::new();
    }
    match parent(above) {
        Some("") | None => "Chart.yaml".to_owned(),
        Some(outer) => format!("{outer}/Chart.yaml"),
    }
}

fn read(files: &Files, path: &str) -> Option<Value> {
    tiphys_yaml::from_yaml(&files.text(path)?).ok()
}

/// The folders that a kustomization builds on.
fn references(content: &Value, folder: &str) -> Vec<String> {
    let lists = ["resources", "bases", "components", "generators", "transformers", "validators"];
    let listed = lists.iter().filter_map(|key| content.get(key)).filter_map(Value::as_array).flatten();
    let mut found: Vec<String> =
        listed.filter_map(Value::as_str).filter_map(|entry| join(folder, entry).ok()).collect();
    let home =
        content.get("helmGlobals").and_then(|globals| globals.get("chartHome")).and_then(Value::as_str);
    for chart in content.get("helmCharts").and_then(Value::as_array).into_iter().flatten() {
        let Some(name) = chart.get("name").and_then(Value::as_str) else { continue };
        found.extend(join(folder, &format!("{}/{name}", home.unwrap_or("charts"))));
    }
    found
}

/// The folders of the charts that a chart depends on by `file://`.
fn local_dependencies(content: &Value, folder: &str) -> Vec<String> {
    let all = content.get("dependencies").and_then(Value::as_array).into_iter().flatten();
    let local = all.filter_map(|it| it.get("repository")?.as_str()?.strip_prefix("file://"));
    local.filter_map(|path| join(folder, path).ok()).collect()
}

/// An Application that renders a chart or kustomization as it stands.
pub fn application(place: &Place) -> Value {
    let path = if place.folder.is_empty() { "." } else { &place.folder };
    let name = if place.name.is_empty() { base_name(&place.folder) } else { &place.name };
    // `helm template` renders into this namespace unless it is told another.
    let namespace = if place.kind == UnitKind::Chart { "default" } else { "" };
    let mut source = json!({"repoURL": THIS_REPOSITORY, "path": path});
    if place.is_of_flux {
        source["kustomize"] = json!({"version": AS_FLUX});
    }
    json!({
        "apiVersion": tiphys_model::names::API_VERSION,
        "kind": "Application",
        "metadata": {"name": if name.is_empty() { "repository" } else { name }},
        "spec": {"project": "default", "destination": {"namespace": namespace}, "source": source},
    })
}

/// The files of which one makes a folder what it is.
pub fn marks(place: &Place) -> Vec<String> {
    let names: &[&str] =
        if place.kind == UnitKind::Chart { &["Chart.yaml"] } else { &tiphys_kustomize::FILE_NAMES };
    let below = |name: &&str| {
        if place.folder.is_empty() { (*name).to_owned() } else { format!("{}/{name}", place.folder) }
    };
    names.iter().map(below).collect()
}

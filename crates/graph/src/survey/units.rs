//! Charts and kustomizations: where they are, and which of them another one refers to.

use std::{
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
    sync::Arc,
};

use tiphys_model::names;
use tiphys_schema::names::dns1123_subdomain;
use tiphys_value::{ObjectExt, RenderedObject, Value, json};
use tiphys_vfs::{FileTree as _, base_name, join, parent};

use super::{
    Files, UnitKind, environment,
    names::{AS_FLUX, THIS_REPOSITORY},
};

/// A chart or kustomization of the repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct UnitFolder {
    pub kind: UnitKind,
    pub folder: String,
    /// What `Chart.yaml` calls the chart; empty for kustomizations.
    pub name: String,
    /// Whether Flux is there to build it, see [`AS_FLUX`].
    pub is_of_flux: bool,
    /// What Flux adds to it.
    pub added: Added,
    /// The values file of an environment that a chart is rendered with; empty for its own values alone.
    pub values: String,
}

/// What a Kustomization of Flux adds to the kustomization of the folder that it builds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Added {
    /// Its `components`.
    pub components: Vec<String>,
    /// Its `targetNamespace`; empty if it has none.
    pub namespace: String,
}

impl Added {
    fn from_spec(spec: &Value) -> Self {
        // What is filled in later leads nowhere yet.
        let is_plain = |text: &&str| !text.contains("${");
        let listed = spec["components"].as_array().into_iter().flatten();
        let namespace = spec["targetNamespace"].as_str().filter(is_plain).unwrap_or_default();
        Self {
            components: listed.filter_map(Value::as_str).filter(is_plain).map(str::to_owned).collect(),
            namespace: namespace.to_owned(),
        }
    }

    /// What is sure where another Kustomization builds the same folder: no namespace but the one that both
    /// give, and the components of the first that adds any.
    fn beside(&mut self, other: Self) {
        if self.components.is_empty() {
            self.components = other.components;
        }
        if self.namespace != other.namespace {
            self.namespace.clear();
        }
    }
}

/// Whether an object tells Flux what to build.
pub fn is_of_flux(object: &Value) -> bool {
    let group = object.api_version().split('/').next().unwrap_or_default().to_owned();
    matches!(
        (group.as_str(), object.kind()),
        ("kustomize.toolkit.fluxcd.io", "Kustomization") | ("fluxcd.controlplane.io", "FluxInstance")
    )
}

/// What Flux adds to the kustomizations of folders.
fn added<'a>(flux: impl Iterator<Item = &'a Value>) -> BTreeMap<String, Added> {
    let mut found: BTreeMap<String, Added> = BTreeMap::new();
    for object in flux {
        let spec = &object["spec"];
        let Some(folder) = spec["path"].as_str().and_then(|path| join("", path).ok()) else { continue };
        match found.entry(folder) {
            Entry::Vacant(entry) => {
                entry.insert(Added::from_spec(spec));
            }
            Entry::Occupied(mut entry) => entry.get_mut().beside(Added::from_spec(spec)),
        }
    }
    found
}

/// The charts and kustomizations that no other chart or kustomization of the repository refers to. `flux` are
/// the objects that tell Flux what to build.
pub(super) fn tops<'a>(files: &Files, flux: impl Iterator<Item = &'a Value>) -> Vec<UnitFolder> {
    let mut flux = flux.peekable();
    let is_of_flux = flux.peek().is_some();
    let added = added(flux);
    let mut places = Vec::new();
    let mut referred = BTreeSet::new();
    let mut named: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for path in files.paths() {
        let folder = parent(path).unwrap_or_default().to_owned();
        if tiphys_kustomize::FILE_NAMES.contains(&base_name(path)) {
            let Some(content) = files.value(path) else { continue };
            let others: Vec<String> = references(&content, &folder).into_iter().collect();
            referred.extend(others.iter().cloned());
            named.entry(folder.clone()).or_default().extend(others);
            if content.get("kind").and_then(Value::as_str) != Some("Component") {
                let name = String::new();
                let added = added.get(&folder).cloned().unwrap_or_default();
                let kind = UnitKind::Kustomization;
                places.push(UnitFolder { kind, folder, name, is_of_flux, added, values: String::new() });
            }
        } else if base_name(path) == "Chart.yaml" {
            let Some(content) = files.value(path) else { continue };
            referred.extend(local_dependencies(&content, &folder));
            let is_library = content.get("type").and_then(Value::as_str) == Some("library");
            // A chart in another chart's `charts/` folder is that chart's business.
            let vendored = files.contains(&vendoring_chart(&folder));
            if !is_library && !vendored {
                let name = content.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
                let (kind, added) = (UnitKind::Chart, Added::default());
                places.push(UnitFolder {
                    kind,
                    folder,
                    name,
                    is_of_flux: false,
                    added,
                    values: String::new(),
                });
            }
        }
    }
    let in_circles = circles(&named, places.iter().map(|it| &it.folder).filter(|it| !referred.contains(*it)));
    places.retain(|place| !referred.contains(&place.folder) || in_circles.contains(&place.folder));
    places
}

/// Of kustomizations that name each other in a circle, and that nothing outside of it names, one each. `tops`
/// are the folders that nothing names.
fn circles<'a>(
    named: &'a BTreeMap<String, Vec<String>>,
    tops: impl Iterator<Item = &'a String>,
) -> BTreeSet<String> {
    let mut reached: BTreeSet<&String> = BTreeSet::new();
    let reach = |from: &'a String, reached: &mut BTreeSet<&'a String>| {
        let mut open = vec![from];
        while let Some(folder) = open.pop() {
            for below in named.get(folder).into_iter().flatten() {
                if reached.insert(below) {
                    open.push(below);
                }
            }
        }
    };
    tops.for_each(|top| reach(top, &mut reached));
    let mut found = BTreeSet::new();
    for folder in named.keys() {
        let mut below = BTreeSet::new();
        if !reached.contains(folder) {
            reach(folder, &mut below);
        }
        if below.contains(folder) {
            found.insert(folder.clone());
            reached.append(&mut below);
        }
    }
    found
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
pub(super) fn application(place: &UnitFolder) -> Value {
    let path = tiphys_vfs::shown_path(&place.folder);
    let name = [&place.name, base_name(&place.folder)].into_iter().find(|name| is_release_name(name));
    let namespace = if place.kind == UnitKind::Chart { DEFAULT_NAMESPACE } else { "" };
    let mut source = json!({"repoURL": THIS_REPOSITORY, "path": path});
    if !place.values.is_empty() {
        source["helm"] = json!({"valueFiles": [place.values]});
    }
    if place.is_of_flux {
        source["kustomize"] = json!({"version": AS_FLUX});
        if !place.added.components.is_empty() {
            source["kustomize"]["components"] = json!(place.added.components);
        }
        if !place.added.namespace.is_empty() {
            source["kustomize"]["namespace"] = json!(place.added.namespace);
        }
    }
    json!({
        "apiVersion": names::API_VERSION,
        "kind": "Application",
        "metadata": {"name": name.unwrap_or("repository")},
        "spec": {"project": "default", "destination": {"namespace": namespace}, "source": source},
    })
}

/// Whether Helm takes a name for a release: what a chart calls itself need not be one.
fn is_release_name(name: &str) -> bool {
    const MAX_NAME: usize = 53;
    name.len() <= MAX_NAME && dns1123_subdomain(name).is_empty()
}

/// Of an object that a chart or kustomization renders, what somebody would apply: without the mark of an
/// Application that does not exist, and without a namespace that nobody said.
pub(super) fn as_applied(place: &UnitFolder, mut object: RenderedObject) -> RenderedObject {
    let Some(metadata) = object.value.get_mut("metadata").and_then(Value::as_object_mut) else {
        return object;
    };
    if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
        annotations.remove(names::TRACKING_ID);
    }
    let namespace = metadata.get("namespace").and_then(Value::as_str);
    if place.kind == UnitKind::Chart && namespace == Some(DEFAULT_NAMESPACE) {
        metadata.remove("namespace");
    }
    object
}

/// The namespace that `helm template` renders into unless it is told another.
const DEFAULT_NAMESPACE: &str = "default";

/// The values files beside a chart of which each is for an environment (`values-prod.yaml`,
/// `prod-values.yaml`), by the environment. A word that is no usual name of an environment is one if a script,
/// Terraform or a pipeline names the file, or makes its name of a variable.
pub(super) fn values_of_environments(files: &Files, place: &UnitFolder) -> BTreeMap<String, String> {
    let word = |path: &std::sync::Arc<str>| {
        let is_beside = parent(path).unwrap_or_default() == place.folder;
        let stem = base_name(path).strip_suffix(".yaml").or_else(|| base_name(path).strip_suffix(".yml"))?;
        Some((value_file_word(stem).filter(|_| is_beside)?.to_owned(), base_name(path).to_owned()))
    };
    let beside: Vec<(String, String)> = files.paths().filter_map(word).collect();
    let is_usual = |word: &str| environment::worded(word).is_some();
    let open = beside.iter().filter(|(word, _)| !is_usual(word)).map(|(_, file)| file.as_str());
    let named = named_by_tools(files, open.collect());
    let name = |word: &str| match place.folder.as_str() {
        "" => word.to_owned(),
        folder => format!("{folder}/{word}"),
    };
    let of_environments =
        beside.iter().filter(|(word, file)| is_usual(word) || named.contains(file.as_str()));
    of_environments.map(|(word, file)| (name(word), file.clone())).collect()
}

/// What is left of the name of a values file: `eu` of `values-eu` and `eu.values`; nothing of one that is for
/// all environments, or for none.
fn value_file_word(stem: &str) -> Option<&str> {
    const SIGNS: [char; 3] = ['-', '_', '.'];
    // `values-seed.yaml` is for the first installation alone; what that leads to has the chart's own values.
    const OF_NONE: [&str; 18] = [
        "all",
        "base",
        "bootstrap",
        "ci",
        "common",
        "default",
        "defaults",
        "example",
        "global",
        "init",
        "initial",
        "override",
        "overrides",
        "sample",
        "schema",
        "secret",
        "secrets",
        "seed",
    ];
    let before = stem.strip_suffix("values").and_then(|rest| rest.strip_suffix(SIGNS));
    let word = stem.strip_prefix("values").and_then(|rest| rest.strip_prefix(SIGNS)).or(before)?;
    (!word.is_empty() && !OF_NONE.contains(&word)).then_some(word)
}

/// Of some values files those that a script, Terraform, a pipeline or a playbook names, or may make of a
/// variable: `values-${ENVIRONMENT}.yaml`.
fn named_by_tools<'a>(files: &Files, wanted: Vec<&'a str>) -> BTreeSet<&'a str> {
    const TOOLS: [&str; 12] = [
        ".tf", ".hcl", ".tfvars", ".tpl", ".sh", ".py", ".ps1", ".yaml", ".yml", "Makefile", "Taskfile",
        "justfile",
    ];
    const VARIABLES: [&str; 8] =
        ["values-$", "values-{{", "values-%", "values-<", "values.$", "values_$", "}-values.y", "}.values.y"];
    if wanted.is_empty() {
        return BTreeSet::new();
    }
    let mut named = BTreeSet::new();
    for text in files.ending(&TOOLS).filter_map(|path| files.text(path)) {
        if VARIABLES.iter().any(|mark| text.contains(mark)) {
            return wanted.into_iter().collect();
        }
        named.extend(wanted.iter().copied().filter(|file| text.contains(file)));
    }
    named
}

/// Whether a chart, or a kustomization with what it builds on, may declare Applications: a file of it speaks
/// of some.
pub(super) fn may_declare(files: &Files, place: &UnitFolder) -> bool {
    let speaks = |path: &str| {
        files
            .text(path)
            .is_some_and(|text| text.contains("argoproj.io/") && text.contains("kind: Application"))
    };
    if place.kind == UnitKind::Chart {
        let folder = if place.folder.is_empty() { String::new() } else { format!("{}/", place.folder) };
        let of_templates = |path: &&std::sync::Arc<str>| {
            path.strip_prefix(folder.as_str()).is_some_and(|below| below.contains("templates/"))
        };
        return files.paths().filter(of_templates).any(|path| speaks(path));
    }
    // What a kustomization builds on may lie outside of the folder that is looked at.
    let tree = files.tree();
    let (mut seen, mut open) = (BTreeSet::new(), vec![place.folder.clone()]);
    while let Some(path) = open.pop().filter(|_| seen.len() < MAX_REACHED) {
        if !seen.insert(path.clone()) {
            continue;
        }
        if tree.is_file(&path) && speaks(&path) {
            return true;
        }
        let content = kustomization_of(files, &path);
        open.extend(content.iter().flat_map(|content| references(content, &path)));
    }
    false
}

/// How many files and folders of one kustomization are looked at.
const MAX_REACHED: usize = 10_000;

/// The kustomization of a folder.
fn kustomization_of(files: &Files, folder: &str) -> Option<Arc<Value>> {
    let beside =
        |name: &&str| if folder.is_empty() { (*name).to_owned() } else { format!("{folder}/{name}") };
    let mut names = tiphys_kustomize::FILE_NAMES.iter().map(beside);
    files.value(&names.find(|file| files.tree().is_file(file))?)
}

/// The files that kustomizations take as patches, and as nothing else: they look like the objects that they
/// change.
pub(super) fn patches(files: &Files) -> BTreeSet<String> {
    let (mut patches, mut resources) = (BTreeSet::new(), BTreeSet::new());
    let kustomizations = files.paths().filter(|path| tiphys_kustomize::FILE_NAMES.contains(&base_name(path)));
    for path in kustomizations {
        let (Some(content), folder) = (files.value(path), parent(path).unwrap_or_default()) else { continue };
        let list = |key: &str| content.get(key).and_then(Value::as_array).into_iter().flatten();
        let merged = list("patchesStrategicMerge").filter_map(Value::as_str);
        let named = ["patches", "patchesJson6902"].into_iter().flat_map(list);
        let named = named.filter_map(|patch| patch.str_at(&["path"]));
        patches.extend(merged.chain(named).filter_map(|file| join(folder, file).ok()));
        resources.extend(references(&content, folder));
    }
    patches.difference(&resources).cloned().collect()
}

/// The files of which one makes a folder what it is.
pub(super) fn marks(place: &UnitFolder) -> Vec<String> {
    let names: &[&str] =
        if place.kind == UnitKind::Chart { &["Chart.yaml"] } else { &tiphys_kustomize::FILE_NAMES };
    let below = |name: &&str| {
        if place.folder.is_empty() { (*name).to_owned() } else { format!("{}/{name}", place.folder) }
    };
    names.iter().map(below).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::{circles, value_file_word};

    #[test]
    fn values_files_say_what_they_are_for() {
        for (stem, word) in [
            ("values-eu-prod", Some("eu-prod")),
            ("hub.values", Some("hub")),
            ("values_x", Some("x")),
            ("values", None),
            ("values-secret", None),
            ("values-seed", None),
            ("valuesx", None),
        ] {
            assert_eq!(value_file_word(stem), word, "{stem}");
        }
    }

    #[test]
    fn one_of_a_circle_is_looked_at() {
        let named = |pairs: &[(&str, &[&str])]| -> BTreeMap<String, Vec<String>> {
            let to = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
            pairs.iter().map(|(name, others)| ((*name).to_owned(), to(others))).collect()
        };
        let found = |pairs: &[(&str, &[&str])], tops: &[&str]| -> BTreeSet<String> {
            let (named, tops): (_, Vec<String>) =
                (named(pairs), tops.iter().map(ToString::to_string).collect());
            circles(&named, tops.iter())
        };
        let circle: &[(&str, &[&str])] = &[("a", &["b"]), ("b", &["a"])];
        assert_eq!(found(circle, &[]), BTreeSet::from(["a".to_owned()]));
        // What something outside leads to is told of there.
        let led_to: &[(&str, &[&str])] = &[("a", &["b"]), ("b", &["a"]), ("top", &["b"])];
        assert!(found(led_to, &["top"]).is_empty());
        assert!(found(&[("base", &[]), ("component", &["base"])], &[]).is_empty());
    }
}

//! ApplicationSets: what their generators are told of the repository and its clusters.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use parking_lot::Mutex;
use tiphys_appset::{ClusterInfo, Generated, GitFiles, Inputs, Params, generate};
use tiphys_model::names;
use tiphys_value::{ObjectExt, RenderedObject, Value};
use tiphys_vfs::FileTree;

use super::{Input, render_cache::MAX_APPLICATIONS, settings_text};

/// What an ApplicationSet yields.
pub(super) struct Yielded {
    pub apps: Vec<Generated>,
    /// How many more it yields than are looked at.
    pub left_out: usize,
    pub fault: Option<String>,
    /// Why not all of what it yields can be used.
    pub partly: Option<String>,
    pub symbolic: bool,
    /// What a generator asked for and could not be had: what, and why.
    pub missed: Vec<(String, String)>,
}

/// Evaluates an ApplicationSet.
pub(super) fn evaluate(set: &Value, input: &Input<'_>, secrets: &[ClusterInfo]) -> Yielded {
    let mut clusters: Vec<ClusterInfo> = input.clusters.clone();
    clusters.extend(secrets.iter().cloned());
    let knows_none = clusters.iter().all(|cluster| !cluster.declared) && mentions_clusters(set, 0);
    let symbolic = knows_none && input.options.any_cluster;
    if symbolic {
        clusters.extend(symbolic_clusters(set));
    }
    clusters.push(ClusterInfo {
        name: names::IN_CLUSTER_NAME.into(),
        server: names::IN_CLUSTER_SERVER.into(),
        ..ClusterInfo::default()
    });
    let asked = Asked { input, clusters, set: set.name(), missed: Mutex::default() };
    let mut partly = None;
    let (mut apps, fault) = match generate(set, &asked) {
        // Names that do not tell clusters apart are meant for one: that which only the installation knows.
        Ok(mut apps) if symbolic => {
            let mut names = BTreeSet::new();
            let name =
                |it: &Generated| (it.application.namespace().to_owned(), it.application.name().to_owned());
            apps.retain(|it| names.insert(name(it)));
            (apps, None)
        }
        Ok(apps) if apps.is_empty() && knows_none => (apps, Some(NO_CLUSTER.to_owned())),
        Ok(mut apps) => {
            partly = apps.iter().find_map(|one| {
                let fault = one.fault.as_ref()?;
                Some(format!("Application {:?}: {fault}", one.application.name()))
            });
            apps.retain(|one| one.fault.is_none());
            (apps, None)
        }
        Err(error) => (Vec::new(), Some(error.to_string())),
    };
    let missed = asked.missed.into_inner();
    let left_out = apps.len().saturating_sub(MAX_APPLICATIONS);
    apps.truncate(MAX_APPLICATIONS);
    Yielded { left_out, apps, fault, partly, symbolic, missed }
}

/// Why a set yields nothing for which clusters would have to be known.
const NO_CLUSTER: &str = "its generators ask for clusters, and none is known but the engine's own";

/// The clusters that Secrets among objects declare (Argo CD docs, "Declarative setup", Clusters).
pub(super) fn clusters<'a>(objects: impl Iterator<Item = &'a RenderedObject>) -> Vec<ClusterInfo> {
    objects.filter_map(|object| cluster(&object.value)).collect()
}

fn cluster(secret: &Value) -> Option<ClusterInfo> {
    if secret.kind() != "Secret" || secret.label(names::SECRET_TYPE) != Some("cluster") {
        return None;
    }
    // A form: the API server takes no capitals in a name.
    if secret.name().contains(|c: char| c.is_ascii_uppercase()) {
        return None;
    }
    let text = |key: &str| settings_text(secret, key).unwrap_or_default();
    let name = Some(text("name")).filter(|name| !name.is_empty()).unwrap_or_else(|| secret.name().to_owned());
    let map = |key: &str| -> BTreeMap<String, String> {
        let map = secret.at(&["metadata", key]).and_then(Value::as_object);
        let pairs = map.into_iter().flatten();
        pairs.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
    };
    Some(ClusterInfo {
        server: Some(text("server"))
            .filter(|it| it.is_empty() || is_address(it))
            .map(|it| if it.is_empty() { format!("https://{name}") } else { it })
            .unwrap_or_else(|| format!("https://{name}.{UNTOLD}")),
        name,
        project: text("project"),
        labels: map("labels"),
        annotations: map("annotations"),
        declared: true,
    })
}

/// What the addresses of clusters end with that have a name and no address yet.
pub const UNTOLD: &str = "untold.invalid";

/// Whether a text is the address of one cluster, and not what stands for that of any:
/// `https://CLUSTER_ADDRESS`.
fn is_address(text: &str) -> bool {
    let host = text.split_once("://").map_or(text, |(_, rest)| rest);
    let is_constant =
        |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || matches!(c, '_' | '-' | ':' | '/');
    !text.is_empty() && !text.contains(['<', '{', '$']) && !host.chars().all(is_constant)
}

/// What the names of clusters begin with that only the installation knows.
pub const ANY_CLUSTER: &str = "any-cluster";

/// Whether a set asks for clusters. Generators nest two deep at most (Argo CD docs, "Matrix generator").
fn mentions_clusters(value: &Value, depth: usize) -> bool {
    const MAX_DEPTH: usize = 8;
    let lists = ["generators", "spec", "matrix", "merge"];
    value.get("clusters").is_some()
        || (depth < MAX_DEPTH
            && lists.iter().filter_map(|key| value.get(key)).any(|below| match below {
                Value::Array(items) => items.iter().any(|item| mentions_clusters(item, depth + 1)),
                other => mentions_clusters(other, depth + 1),
            }))
}

/// For each selector of a cluster generator, a cluster that it finds; where a list is merged with it, a
/// cluster for each of its elements. All selectors are one cluster where none is. They bear what templates
/// and generators ask for.
fn symbolic_clusters(set: &Value) -> Vec<ClusterInfo> {
    let mut selectors = Vec::new();
    collect_selectors(set, &mut selectors, 0);
    selectors.dedup();
    let named = |index: usize, labels: BTreeMap<String, String>| ClusterInfo {
        name: if index == 0 { ANY_CLUSTER.to_owned() } else { format!("{ANY_CLUSTER}-{}", index + 1) },
        server: format!("https://{ANY_CLUSTER}-{}.invalid", index + 1),
        labels,
        declared: true,
        ..ClusterInfo::default()
    };
    let mut clusters = Vec::new();
    collect_merged(set, &mut clusters, 0);
    if clusters.is_empty() {
        clusters = selectors.into_iter().enumerate().map(|(index, labels)| named(index, labels)).collect();
    }
    let labels = asked_of_clusters(set, "metadata.labels");
    let annotations = asked_of_clusters(set, "metadata.annotations");
    for cluster in &mut clusters {
        let stand_in = |key: &String| (key.clone(), ANY_CLUSTER.to_owned());
        let missing: Vec<_> =
            labels.iter().filter(|key| !cluster.labels.contains_key(*key)).map(stand_in).collect();
        cluster.labels.extend(missing);
        cluster.annotations.extend(annotations.iter().map(stand_in));
    }
    clusters
}

/// The keys of labels or annotations of clusters that the texts of a set ask for, as
/// `{{metadata.labels.region}}` or `{{index .metadata.labels "region"}}`.
fn asked_of_clusters(value: &Value, map: &str) -> BTreeSet<String> {
    let is_key = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/');
    let mut found = BTreeSet::new();
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        match value {
            Value::String(text) => {
                for part in text.split(map).skip(1) {
                    let part = part.trim_start_matches([')', ' ']);
                    let key = match (part.strip_prefix('.'), part.strip_prefix('"')) {
                        (Some(rest), _) => rest.split(|c| !is_key(c)).next(),
                        (_, Some(rest)) => rest.split('"').next(),
                        _ => None,
                    };
                    let key = key.filter(|key| !key.is_empty() && key.chars().all(is_key));
                    found.extend(key.map(str::to_owned));
                }
            }
            Value::Object(map) => open.extend(map.values()),
            Value::Array(items) => open.extend(items),
            _ => {}
        }
    }
    found
}

/// The clusters that the list of a merge names beside a cluster generator: what is merged by name or address
/// is meant for these.
fn collect_merged(value: &Value, found: &mut Vec<ClusterInfo>, depth: usize) {
    const MAX_DEPTH: usize = 8;
    if depth > MAX_DEPTH {
        return;
    }
    if let Some(generators) = value.at(&["merge", "generators"]).and_then(Value::as_array) {
        let of_clusters = generators.iter().find_map(|generator| generator.get("clusters"));
        let lists = generators.iter().filter_map(|it| it.at(&["list", "elements"])?.as_array()).flatten();
        if let Some(of_clusters) = of_clusters {
            let labels = satisfying(of_clusters.get("selector"));
            found.extend(lists.filter_map(|element| named_cluster(element, &labels)));
        }
    }
    match value {
        Value::Object(map) => map.values().for_each(|below| collect_merged(below, found, depth + 1)),
        Value::Array(items) => items.iter().for_each(|below| collect_merged(below, found, depth + 1)),
        _ => {}
    }
}

/// The cluster that an element of a list names, by its name or its address.
fn named_cluster(element: &Value, labels: &BTreeMap<String, String>) -> Option<ClusterInfo> {
    let text = |key: &str| element.str_at(&[key]).filter(|text| !text.is_empty() && !text.contains("{{"));
    let (name, server) = (text("name").or_else(|| text("nameNormalized")), text("server"));
    let name = name.or(server)?;
    let of_name = || format!("https://{name}.{UNTOLD}");
    Some(ClusterInfo {
        name: name.to_owned(),
        server: server.map_or_else(of_name, str::to_owned),
        labels: labels.clone(),
        declared: true,
        ..ClusterInfo::default()
    })
}

fn collect_selectors(value: &Value, found: &mut Vec<BTreeMap<String, String>>, depth: usize) {
    const MAX_DEPTH: usize = 8;
    if depth > MAX_DEPTH {
        return;
    }
    if let Some(generator) = value.get("clusters") {
        found.push(satisfying(generator.get("selector")));
    }
    match value {
        Value::Object(map) => map.values().for_each(|below| collect_selectors(below, found, depth + 1)),
        Value::Array(items) => items.iter().for_each(|below| collect_selectors(below, found, depth + 1)),
        _ => {}
    }
}

/// Labels that a selector finds.
fn satisfying(selector: Option<&Value>) -> BTreeMap<String, String> {
    let mut labels = BTreeMap::from([(names::SECRET_TYPE.to_owned(), "cluster".to_owned())]);
    let Some(selector) = selector else { return labels };
    let equal = selector.get("matchLabels").and_then(Value::as_object);
    for (key, value) in equal.into_iter().flatten() {
        labels.insert(key.clone(), value.as_str().unwrap_or_default().to_owned());
    }
    for rule in selector.get("matchExpressions").and_then(Value::as_array).into_iter().flatten() {
        let Some(key) = rule.str_at(&["key"]) else { continue };
        let first = rule.at(&["values"]).and_then(|values| values.get(0)).and_then(Value::as_str);
        match rule.str_at(&["operator"]) {
            Some("In") => labels.insert(key.to_owned(), first.unwrap_or_default().to_owned()),
            Some("Exists") => labels.entry(key.to_owned()).or_insert_with(|| "true".into()).clone().into(),
            _ => None,
        };
    }
    labels
}

/// Answers generators.
struct Asked<'a> {
    input: &'a Input<'a>,
    clusters: Vec<ClusterInfo>,
    /// The name of the ApplicationSet.
    set: &'a str,
    missed: Mutex<Vec<(String, String)>>,
}

impl Asked<'_> {
    fn miss(&self, what: &str, why: &str) -> String {
        let missed = (what.to_owned(), why.to_owned());
        self.missed.lock().push(missed);
        why.to_owned()
    }
}

impl Inputs for Asked<'_> {
    fn clusters(&self) -> Result<Vec<ClusterInfo>, String> {
        Ok(self.clusters.clone())
    }

    fn git(&self, repo_url: &str, revision: &str) -> Result<Arc<dyn GitFiles>, String> {
        if (self.input.is_given)(repo_url) {
            if !self.input.options.at_revisions || revision.is_empty() {
                return Ok(Arc::new(TreeFiles(self.input.tree.clone())));
            }
        } else if !self.input.options.foreign {
            let why = format!("its generators read another repository, {repo_url}");
            return Err(self.miss(repo_url, &why));
        }
        let source = self.input.sources.repository(repo_url, revision);
        source
            .map(|it| Arc::new(TreeFiles(it.tree)) as Arc<dyn GitFiles>)
            .map_err(|error| self.miss(repo_url, error.headline()))
    }

    fn decisions(&self, _generator: &Value) -> Result<Vec<Params>, String> {
        let why = "the clusterDecisionResource generator reads a status that only a cluster has";
        Err(self.miss(&format!("the clusterDecisionResource of ApplicationSet {}", self.set), why))
    }

    fn plugin(&self, _generator: &Value) -> Result<Vec<Params>, String> {
        let why = "the plugin generator asks a service that only a cluster has";
        Err(self.miss(&format!("the plugin generator of ApplicationSet {}", self.set), why))
    }
}

struct TreeFiles(Arc<dyn FileTree>);

impl GitFiles for TreeFiles {
    fn files(&self) -> Vec<String> {
        tiphys_vfs::walk(self.0.as_ref(), "").unwrap_or_default()
    }

    fn read(&self, path: &str) -> Result<String, String> {
        tiphys_render::manifest::read_text(self.0.as_ref(), path).map_err(|error| error.headline().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use tiphys_value::json;

    use super::*;

    #[test]
    fn stand_ins_bear_what_is_asked_of_them() {
        let set = json!({"spec": {
            "generators": [{"clusters": {"selector": {"matchLabels": {"env": "prod"}}}}],
            "template": {"metadata": {"name": "{{.metadata.labels.region}}-web"}, "spec": {"source": {
                "path": "{{ index .metadata.annotations \"example.com/path\" }}",
            }}},
        }});
        let clusters = symbolic_clusters(&set);
        assert_eq!(clusters.len(), 1);
        assert_eq!(clusters[0].labels["env"], "prod");
        assert_eq!(clusters[0].labels["region"], ANY_CLUSTER);
        assert_eq!(clusters[0].annotations["example.com/path"], ANY_CLUSTER);
    }

    #[test]
    fn what_a_list_merges_into_clusters_names_them() {
        let set = json!({"spec": {"generators": [{"merge": {"mergeKeys": ["name"], "generators": [
            {"clusters": {"selector": {"matchLabels": {"env": "prod"}}}},
            {"list": {"elements": [{"name": "eu", "path": "a"}, {"name": "us", "path": "b"}]}},
        ]}}]}});
        let clusters = symbolic_clusters(&set);
        let names: Vec<&str> = clusters.iter().map(|cluster| cluster.name.as_str()).collect();
        assert_eq!(names, ["eu", "us"]);
        assert_eq!(clusters[1].labels["env"], "prod");
    }
}

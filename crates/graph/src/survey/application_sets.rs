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
    let asked = Asked { input, clusters, set, missed: Mutex::default(), has_placeholders: Mutex::default() };
    let mut partly = None;
    let generated = generate(set, &asked);
    let symbolic = symbolic || asked.has_placeholders.into_inner();
    let (mut apps, fault) = match generated {
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
    /// The ApplicationSet.
    set: &'a Value,
    missed: Mutex<Vec<(String, String)>>,
    /// Whether a generator was answered with placeholders.
    has_placeholders: Mutex<bool>,
}

impl Asked<'_> {
    fn miss(&self, what: &str, why: &str) -> String {
        let missed = (what.to_owned(), why.to_owned());
        self.missed.lock().push(missed);
        why.to_owned()
    }

    /// One set of parameters for a generator that only an installation can ask: a placeholder for each that
    /// the set reads. So the rest of the template is looked at.
    fn placeholders(&self, kind: &str, why: &str) -> Result<Vec<Params>, String> {
        if !self.input.options.any_cluster {
            return Err(self.miss(&format!("the {kind} of ApplicationSet {}", self.set.name()), why));
        }
        *self.has_placeholders.lock() = true;
        Ok(vec![placeholder_parameters(self.set)])
    }
}

/// A placeholder for each parameter that the texts of a set read, and that no other generator of it gives.
fn placeholder_parameters(set: &Value) -> Params {
    // Those of clusters, and of files and folders in Git.
    const OF_OTHERS: [&str; 8] =
        ["name", "nameNormalized", "server", "metadata", "path", "values", "generator", "index"];
    let spec = set.get("spec");
    let is_go = spec.and_then(|spec| spec.get("goTemplate")) == Some(&Value::Bool(true));
    let is_alone = spec
        .and_then(|spec| spec.get("generators"))
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .all(|generator| generator.get("matrix").is_none() && generator.get("merge").is_none());
    let mut found = Params::new();
    let mut given = BTreeSet::new();
    let mut open: Vec<&Value> = spec.into_iter().collect();
    while let Some(value) = open.pop() {
        match value {
            Value::String(text) => {
                for name in read_names(text, is_go) {
                    insert_placeholder(&mut found, &name);
                }
            }
            Value::Object(map) => {
                let elements = map.get("elements").and_then(Value::as_array);
                given.extend(
                    elements.into_iter().flatten().filter_map(Value::as_object).flat_map(|one| one.keys()),
                );
                open.extend(map.values());
            }
            Value::Array(items) => open.extend(items),
            _ => {}
        }
    }
    let is_given = |name: &str| given.iter().any(|it| it.as_str() == name) || OF_OTHERS.contains(&name);
    found.retain(|name, _| is_alone && !matches!(name.as_str(), "values" | "generator") || !is_given(name));
    found
}

/// The parameters that a text reads: `{{ .shop.host }}` in Go templates, `{{shop.host}}` in plain ones.
fn read_names(text: &str, is_go: bool) -> Vec<String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut found = Vec::new();
    for action in text.split("{{").skip(1) {
        let Some((action, _)) = action.split_once("}}") else { continue };
        if !is_go {
            let name = action.trim();
            if !name.is_empty() && name.chars().all(|c| is_part(c) || matches!(c, '.' | '-')) {
                found.push(name.to_owned());
            }
            continue;
        }
        // A list is no text.
        if action.trim_start_matches(['-', ' ']).starts_with("range") {
            continue;
        }
        let mut before = ' ';
        for (at, c) in action.char_indices() {
            if c == '.' && matches!(before, ' ' | '(' | '$' | '\t' | '\n') {
                let rest = &action[at + 1..];
                let name: &str = rest.split(|c: char| !is_part(c) && c != '.').next().unwrap_or_default();
                let name = name.trim_end_matches('.');
                if name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
                    found.push(name.to_owned());
                }
            }
            before = c;
        }
    }
    found
}

/// Puts a placeholder under a name with dots, below maps.
fn insert_placeholder(params: &mut Params, name: &str) {
    const MAX_DEPTH: usize = 8;
    let mut map = params;
    let steps: Vec<&str> = name.split('.').take(MAX_DEPTH).collect();
    let Some((last, above)) = steps.split_last() else { return };
    for step in above {
        let below = map.entry(*step).or_insert_with(|| Value::Object(Params::new()));
        if !below.is_object() {
            *below = Value::Object(Params::new());
        }
        let Value::Object(below) = below else { return };
        map = below;
    }
    map.entry(*last).or_insert_with(|| Value::String(ANY_CLUSTER.to_owned()));
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
        self.placeholders("clusterDecisionResource", why)
    }

    fn plugin(&self, _generator: &Value) -> Result<Vec<Params>, String> {
        let why = "the plugin generator asks a service that only a cluster has";
        self.placeholders("plugin generator", why)
    }

    fn hosted(&self, kind: &str, _generator: &Value) -> Result<Vec<Params>, String> {
        if !self.input.options.any_cluster {
            return Err(format!("generator {kind} is not supported"));
        }
        self.placeholders(kind, "")
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
    fn placeholders_stand_for_what_is_read() {
        let set = json!({"spec": {"goTemplate": true,
            "generators": [{"plugin": {"configMapRef": {"name": "secrets"}}}],
            "template": {"metadata": {"name": "web-{{ .region }}"}, "spec": {"source": {"helm": {
                "values": "host: {{ .shop.host }}\n{{ range .hosts }}- {{ . }}{{ end }}",
            }}}},
        }});
        let found = placeholder_parameters(&set);
        assert_eq!(found["region"], json!(ANY_CLUSTER));
        assert_eq!(found["shop"], json!({"host": ANY_CLUSTER}));
        assert!(!found.contains_key("hosts"));
    }

    #[test]
    fn placeholders_leave_out_what_other_generators_give() {
        let set = json!({"spec": {
            "generators": [{"matrix": {"generators": [
                {"list": {"elements": [{"tier": "a"}]}},
                {"pullRequest": {"github": {"owner": "shop", "repo": "web"}}},
            ]}}],
            "template": {"metadata": {"name": "{{tier}}-{{branch}}"}},
        }});
        let found = placeholder_parameters(&set);
        assert_eq!(found.keys().collect::<Vec<_>>(), ["branch"]);
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

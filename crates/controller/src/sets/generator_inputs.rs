//! What generators ask for: repositories as Applications see them, clusters, and objects of the engine's
//! namespace.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use tiphys_appset::{ClusterInfo, GitFiles, Inputs, Params};
use tiphys_cluster::LiveCache;
use tiphys_model::{
    ArgoSettings,
    settings::{self, SetParams},
};
use tiphys_render::Sources;
use tiphys_source::{Access, Footprint, Repositories, post_json};
use tiphys_value::{GroupKind, ObjectExt, ResourceKey, Value, json};
use tiphys_vfs::{EntryKind, FileTree};

use crate::{Checkouts, clusters, source_integrity::Integrity};

/// Folders that no commit holds.
const SKIPPED: [&str; 2] = [".git", ".tiphys"];
/// How long a plugin may take, unless its ConfigMap says.
const PLUGIN_TIMEOUT: Duration = Duration::from_secs(30);
/// Deeper trees are not walked.
const MAX_DEPTH: usize = 128;

/// Serves one run of a set's generators, and notes what it depends on.
pub struct SetInputs<'a> {
    checkouts: Checkouts<'a>,
    clusters: Vec<ClusterInfo>,
    /// The live state, if there is a cluster.
    cache: Option<&'a LiveCache>,
    namespace: String,
    set: String,
    kinds: Mutex<BTreeSet<GroupKind>>,
    /// The addresses of the repositories that were looked into.
    addresses: Mutex<BTreeSet<String>>,
    /// Whether a plugin was asked.
    asks_plugin: AtomicBool,
}

/// What a run of generators depends on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Dependencies {
    /// What was read of the working tree.
    pub footprint: Footprint,
    /// Whether anything else was read, which changes without notice.
    pub reads_remotes: bool,
    /// Kinds whose objects of the engine's namespace were read.
    pub kinds: BTreeSet<GroupKind>,
    /// The addresses of the repositories that generators looked into, with parameters put in.
    pub addresses: BTreeSet<String>,
    /// Whether a plugin was asked, of which nobody knows what it reads.
    pub asks_plugin: bool,
}

impl<'a> SetInputs<'a> {
    /// What the cluster says of ApplicationSets; without one, what holds unless it is said.
    fn flags(&self) -> SetParams {
        let Some(cache) = self.cache else { return SetParams::default() };
        self.note(GroupKind::new("", "ConfigMap"));
        let params =
            cache.get(&ResourceKey::new("", "ConfigMap", &self.namespace, settings::PARAMS_CONFIG_MAP));
        ArgoSettings::from_objects(None, params.as_deref()).sets
    }

    /// Without a cluster: the engine's own is the only one, and generators that read objects fail.
    pub fn offline(repositories: &'a Repositories) -> Self {
        Self::with_clusters(repositories, Vec::new())
    }

    /// Without a cluster, but with declared ones.
    pub fn with_clusters(repositories: &'a Repositories, declared: Vec<ClusterInfo>) -> Self {
        Self {
            checkouts: Checkouts::new(repositories),
            clusters: clusters::with_own(declared),
            cache: None,
            namespace: String::new(),
            set: String::new(),
            kinds: Mutex::default(),
            addresses: Mutex::default(),
            asks_plugin: AtomicBool::default(),
        }
    }

    /// For a set whose Applications are of a project, if that is the same for all of them.
    #[must_use]
    pub(crate) fn for_project(mut self, project: &str) -> Self {
        if !project.contains("{{") {
            self.checkouts = self.checkouts.for_project(project);
        }
        self
    }

    /// For a set whose repositories need the signatures that a project demands.
    #[must_use]
    pub(crate) fn demanding(mut self, integrity: Integrity) -> Self {
        self.checkouts = self.checkouts.demanding(integrity);
        self
    }

    /// With the objects of an engine's namespace.
    pub fn live(repositories: &'a Repositories, cache: &'a LiveCache, namespace: &str, set: &str) -> Self {
        Self {
            checkouts: Checkouts::new(repositories),
            clusters: clusters::known_clusters(cache, namespace),
            cache: Some(cache),
            namespace: namespace.to_owned(),
            set: set.to_owned(),
            kinds: Mutex::default(),
            addresses: Mutex::default(),
            asks_plugin: AtomicBool::default(),
        }
    }

    pub(crate) fn dependencies(&self) -> Dependencies {
        Dependencies {
            footprint: self.checkouts.footprint(),
            reads_remotes: self.checkouts.reads_remotes(),
            kinds: self.kinds.lock().clone(),
            addresses: self.addresses.lock().clone(),
            asks_plugin: self.asks_plugin.load(Ordering::Relaxed),
        }
    }

    fn note(&self, kind: GroupKind) {
        self.kinds.lock().insert(kind);
    }

    /// An object of the engine's namespace.
    fn object(&self, kind: &str, name: &str) -> Result<Arc<Value>, String> {
        let cache = self.cache.ok_or_else(|| format!("{kind} {name} cannot be read: there is no cluster"))?;
        self.note(GroupKind::new("", kind));
        cache
            .get(&ResourceKey::new("", kind, &self.namespace, name))
            .ok_or_else(|| format!("{kind} {name} not found in namespace {}", self.namespace))
    }

    /// The objects that a `clusterDecisionResource` names.
    fn decision_objects(&self, spec: &Value, config: &Value) -> Result<Vec<Arc<Value>>, String> {
        let data = |key: &str| config.str_at(&["data", key]).unwrap_or_default();
        let (plural, api_version) = (data("kind"), data("apiVersion"));
        let (group, _) = api_version
            .split_once('/')
            .filter(|(group, _)| !group.is_empty() && !plural.is_empty())
            .ok_or("there is a problem with the apiVersion, kind or resourceName provided")?;
        let name = spec.str_at(&["name"]).unwrap_or_default();
        let none = json!({});
        let selector = spec.get("labelSelector").unwrap_or(&none);
        if name.is_empty() == tiphys_appset::selects_nothing(selector) {
            return Err(
                "there is a problem with the definition of the ClusterDecisionResource generator: either a name or \
                 a labelSelector that selects by something has to be given"
                    .into(),
            );
        }
        tiphys_appset::check_selector(selector)
            .map_err(|error| format!("failed to get dynamic resources: labelSelector: {error}"))?;
        let Some(cache) = self.cache else { return Err("there is no cluster".into()) };
        let discovery = cache.cluster().discovery();
        let served = discovery.kinds().find(|resource| {
            resource.gvk.group == group && (resource.plural == plural || resource.gvk.kind == plural)
        });
        let kind =
            served.ok_or_else(|| format!("the cluster serves no {plural} of {group}"))?.gvk.group_kind();
        self.note(kind.clone());
        let mut found = Vec::new();
        for object in cache.of_kind(&kind) {
            let selected = object.namespace() == self.namespace
                && if name.is_empty() {
                    tiphys_appset::selects(selector, &|key| label(&object, key))?
                } else {
                    object.name() == name
                };
            if selected {
                found.push(object);
            }
        }
        if found.is_empty() {
            return Err("no clusterDecisionResources found".into());
        }
        Ok(found)
    }
}

fn is_empty(status: &Value) -> bool {
    status.is_null() || status.as_object().is_some_and(serde_json::Map::is_empty)
}

fn label(object: &Value, key: &str) -> Option<String> {
    Some(object.at(&["metadata", "labels"])?.get(key)?.as_str()?.to_owned())
}

impl Inputs for SetInputs<'_> {
    fn clusters(&self) -> Result<Vec<ClusterInfo>, String> {
        self.note(GroupKind::new("", "Secret"));
        Ok(self.clusters.clone())
    }

    fn git(&self, repo_url: &str, revision: &str) -> Result<Arc<dyn GitFiles>, String> {
        self.addresses.lock().insert(repo_url.to_owned());
        let opened = self.checkouts.repository(repo_url, revision).map_err(|error| format!("{error:#}"))?;
        let mut paths = Vec::new();
        walk(opened.tree.as_ref(), "", 0, &mut paths);
        paths.sort();
        Ok(Arc::new(Files { tree: opened.tree, paths }))
    }

    fn has_new_file_globbing(&self) -> bool {
        self.flags().new_git_file_globbing
    }

    fn sees_hidden_directories(&self) -> bool {
        self.flags().include_hidden_directories
    }

    fn decisions(&self, spec: &Value) -> Result<Vec<Params>, String> {
        let reference = spec.str_at(&["configMapRef"]).unwrap_or_default();
        let config = self
            .object("ConfigMap", reference)
            .map_err(|error| format!("error reading configMapRef: {error}"))?;
        let data = |key: &str| config.str_at(&["data", key]).unwrap_or_default().to_owned();
        let list_key =
            if data("statusListKey").is_empty() { "clusters".to_owned() } else { data("statusListKey") };
        let match_key = data("matchKey");
        let mut sets = Vec::new();
        for object in self.decision_objects(spec, &config)? {
            // Nothing was decided yet.
            let Some(status) = object.get("status").filter(|status| !is_empty(status)) else { continue };
            // Decided was something that cannot be read, which is not the same as nothing.
            let shown = format!("{} {}", object.kind(), object.name());
            let decisions = status
                .get(&list_key)
                .and_then(Value::as_array)
                .ok_or_else(|| format!("status.{list_key} of {shown} is no list"))?;
            for decision in decisions {
                let decision = decision
                    .as_object()
                    .ok_or_else(|| format!("status.{list_key} of {shown} has an item that is no mapping"))?;
                let named = decision.get(&match_key).map(tiphys_appset::print_field).unwrap_or_default();
                // Clusters need no name; a decision that names none means none of those.
                let is_meant = |cluster: &&ClusterInfo| !named.is_empty() && cluster.name == named;
                let Some(cluster) = self.clusters.iter().find(is_meant) else { continue };
                let mut set = Params::new();
                set.insert("name".into(), cluster.name.clone().into());
                set.insert("server".into(), cluster.server.clone().into());
                for (key, value) in decision {
                    set.insert(key.clone(), tiphys_appset::print_field(value).into());
                }
                sets.push(set);
            }
        }
        Ok(sets)
    }

    fn plugin(&self, spec: &Value) -> Result<Vec<Params>, String> {
        self.asks_plugin.store(true, Ordering::Relaxed);
        let reference = spec.str_at(&["configMapRef", "name"]).unwrap_or_default();
        let config = self
            .object("ConfigMap", reference)
            .map_err(|error| format!("error fetching ConfigMap: {error}"))?;
        let data = |key: &str| config.str_at(&["data", key]).filter(|text| !text.is_empty());
        let base = data("baseUrl").ok_or("baseUrl not found in ConfigMap")?;
        let token = data("token").ok_or("token not found in ConfigMap")?;
        let (secret, key) = clusters::secret_reference(token)
            .ok_or("token does not reference a secret key starting with '$'")?;
        let secret =
            self.object("Secret", secret).map_err(|error| format!("error fetching Secret token: {error}"))?;
        let token =
            clusters::secret_text(&secret, key).ok_or_else(|| format!("the Secret has no key {key}"))?;
        let seconds = data("requestTimeout").and_then(|text| text.trim().parse().ok());
        let url = format!("{}/api/v1/getparams.execute", base.trim_end_matches('/'));
        let refused = self.checkouts.repositories().refuse_offline(&url);
        refused.map_err(|error| format!("error listing params: {error}"))?;
        let parameters = spec.at(&["input", "parameters"]).cloned().unwrap_or_else(|| json!({}));
        let question = json!({"applicationSetName": self.set, "input": {"parameters": parameters}});
        let access = Access { bearer_token: Some(token.trim().to_owned()), ..Access::default() };
        let answer = post_json(&url, &access, &question, seconds.map_or(PLUGIN_TIMEOUT, Duration::from_secs))
            .map_err(|error| format!("error listing params: {error}"))?;
        let sets =
            answer.at(&["output", "parameters"]).and_then(Value::as_array).cloned().unwrap_or_default();
        sets.into_iter()
            .map(|set| match set {
                Value::Object(map) => Ok(map),
                other => Err(format!("the plugin answers {other} where a set of parameters is due")),
            })
            .collect()
    }
}

/// All files below a folder; links are passed over, as Git's listing has it.
fn walk(tree: &dyn FileTree, folder: &str, depth: usize, paths: &mut Vec<String>) {
    let Ok(entries) = tree.read_dir(folder) else { return };
    for entry in entries {
        let path = if folder.is_empty() { entry.name.clone() } else { format!("{folder}/{}", entry.name) };
        match entry.kind {
            EntryKind::File => paths.push(path),
            EntryKind::Dir if entry.is_symlink || SKIPPED.contains(&entry.name.as_str()) => {}
            EntryKind::Dir if depth < MAX_DEPTH => walk(tree, &path, depth + 1, paths),
            EntryKind::Dir => {}
        }
    }
}

/// The files of a repository at a revision.
struct Files {
    tree: Arc<dyn FileTree>,
    paths: Vec<String>,
}

impl GitFiles for Files {
    fn files(&self) -> Vec<String> {
        self.paths.clone()
    }

    fn read(&self, path: &str) -> Result<String, String> {
        let bytes = self.tree.read(path).map_err(|error| error.to_string())?;
        String::from_utf8(bytes.to_vec()).map_err(|_| format!("{path} is no text"))
    }
}

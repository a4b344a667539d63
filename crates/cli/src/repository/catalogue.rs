//! All Applications that a repository leads to, and which of them nothing else renders.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{Arc, LazyLock},
};

use tiphys_appset::ClusterInfo;
use tiphys_controller::{Checkouts, SetInputs, declared_cluster};
use tiphys_model::{
    Application, ArgoSettings, Destination, Timestamp, Tracking, names,
    settings::{CONFIG_MAP, RenderSettings},
};
use tiphys_render::{Context, RenderError, Rendered, render};
use tiphys_source::Repositories;
use tiphys_value::{ObjectExt, ResourceKey, Value};

use super::{Found, Scan};
use crate::ENGINE_NAMESPACE;

/// How many Applications may lead to one another.
const MAX_APPLICATIONS: usize = 20_000;

/// Namespace and name of an object of Argo CD's API.
pub type Id = (String, String);

/// An Application or an ApplicationSet: they may have the same name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Node {
    /// Whether it is an ApplicationSet.
    pub is_set: bool,
    /// Its id.
    pub id: Id,
}

impl Node {
    /// Whether an object is what this stands for.
    pub fn is(&self, object: &Value) -> bool {
        let kind = if self.is_set { "ApplicationSet" } else { "Application" };
        object.kind() == kind && object.gvk().group == "argoproj.io" && id_of(object) == self.id
    }
}

/// How much of what is found is rendered, and how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    /// Applications of which no source is of the given repositories too: their charts are fetched.
    pub foreign: bool,
    /// With the origins of fields.
    pub origins: bool,
}

/// An Application and what it renders to.
pub struct Entry {
    /// The Application.
    pub object: Value,
    /// The cluster and namespace that it is for.
    pub destination: Destination,
    /// What it renders to, or why not.
    pub rendered: Result<Rendered, RenderError>,
}

/// All Applications that a repository leads to.
#[derive(Default)]
pub struct Catalogue {
    /// The Applications by namespace and name. Of two of one name in files, the first.
    pub entries: BTreeMap<Id, Entry>,
    /// The ApplicationSets, and why what they generate is not known, or not all of it.
    pub sets: BTreeMap<Id, Option<String>>,
    /// Which Applications and sets each Application renders, and each set generates.
    pub(super) children: BTreeMap<Node, BTreeSet<Node>>,
    /// The AppProjects and cluster Secrets that Applications render, and those Applications.
    pub(super) others: BTreeMap<(String, Id), BTreeSet<Id>>,
    /// The projects that Applications name.
    projects: BTreeSet<String>,
    /// Settings of the renderers, if other than the defaults.
    settings: Option<RenderSettings>,
}

impl Catalogue {
    /// Renders what was found, and what that renders, and so on. Applications of other repositories
    /// are taken as they stand unless the scope has them too; so are sets whose generators need them.
    ///
    /// The settings of the renderers are those of the repository's own `argocd-cm`, be it a file or an object
    /// that an Application renders.
    pub fn build(scan: &Scan, repositories: &Repositories, scope: Scope) -> Self {
        let settings = scan.render_settings();
        let built = Self::build_under(scan, repositories, scope, &settings);
        match built.rendered_settings() {
            Some(rendered) if rendered != settings => Self::build_under(scan, repositories, scope, &rendered),
            _ => built,
        }
    }

    /// What a rendered `argocd-cm` says of the renderers, if there is exactly one.
    fn rendered_settings(&self) -> Option<RenderSettings> {
        let mut found = self.rendered_config_maps().filter(|object| object.get("data").is_some());
        let only = found.next().filter(|_| found.next().is_none())?;
        Some(ArgoSettings::from_objects(Some(only), None).rendering)
    }

    /// What Applications render of the kinds that other objects name without a namespace, by kind and name: classes,
    /// volumes, and the ServiceAccounts of Argo CD.
    pub fn rendered_classes(&self) -> BTreeSet<(String, String)> {
        const KINDS: [&str; 5] =
            ["StorageClass", "PersistentVolume", "RuntimeClass", "PriorityClass", "ServiceAccount"];
        let rendered = self.entries.values().filter_map(|entry| entry.rendered.as_ref().ok());
        let objects = rendered.flat_map(|rendered| &rendered.objects).map(|object| &object.value);
        let named = objects.filter(|object| KINDS.contains(&object.kind()));
        named.map(|object| (object.kind().to_owned(), object.name().to_owned())).collect()
    }

    /// Every `argocd-cm` among the rendered objects.
    fn rendered_config_maps(&self) -> impl Iterator<Item = &Value> {
        let rendered = self.entries.values().filter_map(|entry| entry.rendered.as_ref().ok());
        let objects = rendered.flat_map(|rendered| &rendered.objects).map(|object| &object.value);
        objects.filter(|object| object.kind() == "ConfigMap" && object.name() == CONFIG_MAP)
    }

    fn build_under(
        scan: &Scan,
        repositories: &Repositories,
        scope: Scope,
        settings: &RenderSettings,
    ) -> Self {
        let mut catalogue = Self { settings: Some(settings.clone()), ..Self::default() };
        let declared = scan.clusters.iter().map(|found| declared_cluster(&found.object));
        let clusters: Vec<ClusterInfo> = declared.chain(scan.more_clusters.iter().cloned()).collect();
        let found = scan.applications.iter().chain(&scan.sets);
        let mut open: Vec<Value> = found.map(|found| found.object.clone()).collect();
        open.reverse();
        while let Some(object) = open.pop() {
            let node = node_of(&object);
            if catalogue.children.contains_key(&node) || catalogue.children.len() >= MAX_APPLICATIONS {
                continue;
            }
            let children = if node.is_set {
                let (children, fault) = generated(&object, repositories, &clusters);
                catalogue.sets.insert(node.id.clone(), fault);
                children
            } else {
                let Ok(app) = Application::from_value(&object) else { continue };
                catalogue.rendered(&node.id, (object, &app), repositories, scope)
            };
            catalogue.children.insert(node, children.iter().map(node_of).collect());
            open.extend(children);
        }
        catalogue
    }

    /// Renders an Application, and returns the Applications and sets among its objects.
    fn rendered(
        &mut self,
        id: &Id,
        (object, app): (Value, &Application),
        repositories: &Repositories,
        scope: Scope,
    ) -> Vec<Value> {
        self.projects.insert(app.spec.project.clone());
        let is_ours =
            app.spec.effective_sources().iter().any(|source| repositories.is_given(&source.repo_url));
        let rendered = if is_ours || scope.foreign {
            render_one(app, repositories, scope.origins, self.settings.as_ref(), "")
        } else {
            Ok(Rendered::default())
        };
        let mut children = Vec::new();
        for object in rendered.iter().flat_map(|rendered| &rendered.objects) {
            let object = &object.value;
            match object.kind() {
                "Application" | "ApplicationSet" if object.api_version() == names::API_VERSION => {
                    children.push(object.clone());
                }
                "AppProject" | "Secret" => {
                    let key = (object.kind().to_owned(), id_of(object));
                    self.others.entry(key).or_default().insert(id.clone());
                }
                _ => {}
            }
        }
        let destination = app.spec.destination.clone();
        self.entries.insert(id.clone(), Entry { object, destination, rendered });
        children
    }

    /// The found Applications and ApplicationSets that nothing else renders or generates. Of those that
    /// only lead to each other, the first; of what these lead to, none.
    pub fn roots<'a>(&self, scan: &'a Scan) -> Vec<&'a Found> {
        let led_to: BTreeSet<&Node> = self
            .children
            .iter()
            .flat_map(|(parent, all)| all.iter().filter(move |child| *child != parent))
            .collect();
        let all = || scan.applications.iter().chain(&scan.sets);
        let mut roots: Vec<&Found> = all().filter(|found| !led_to.contains(&found.node())).collect();
        let mut reached = BTreeSet::new();
        roots.iter().for_each(|found| self.reach(found.node(), &mut reached));
        let mut again = reached.clone();
        let circular = self.unreached(all(), &mut reached);
        // A later one may lead to an earlier one, never the other way round.
        let mut last = self.unreached(circular.into_iter().rev(), &mut again);
        last.reverse();
        roots.extend(last);
        roots
    }

    /// One after the other, those that are not reached yet, each with what it leads to.
    fn unreached<'a>(
        &self,
        all: impl Iterator<Item = &'a Found>,
        reached: &mut BTreeSet<Node>,
    ) -> Vec<&'a Found> {
        let mut begun = Vec::new();
        for found in all {
            if !reached.contains(&found.node()) {
                begun.push(found);
                self.reach(found.node(), reached);
            }
        }
        begun
    }

    /// Whether an Application renders an Application or set that is no other's, itself included.
    pub fn is_rendered(&self, node: &Node) -> bool {
        let mut parents = self.children.iter().filter(|(parent, _)| !parent.is_set);
        parents.any(|(_, all)| all.contains(node))
    }

    /// Whether an Application or set is known, whoever leads to it.
    pub fn knows(&self, node: &Node) -> bool {
        self.children.contains_key(node)
    }

    /// Whether an Application renders Argo CD's settings.
    pub fn brings_settings(&self) -> bool {
        self.rendered_config_maps().next().is_some()
    }

    /// The projects that Applications name, of a repository that declares none at all: somebody made them by
    /// other means. Where some are declared, a missing one is a mistake.
    pub fn undeclared_projects(&self, scan: &Scan) -> Vec<&str> {
        let is_rendered = self.others.keys().any(|(kind, _)| kind == "AppProject");
        if is_rendered || !scan.projects.is_empty() {
            return Vec::new();
        }
        let names = self.projects.iter().map(String::as_str);
        names.filter(|name| !matches!(*name, "" | "default")).collect()
    }

    /// The clusters other than the engine's own that Applications name, if two Applications for different clusters
    /// have an object in common: in one cluster they would fight over it. Empty otherwise.
    pub fn clusters_apart(&self) -> Vec<Destination> {
        let mut owners: HashMap<ResourceKey, (&str, &str)> = HashMap::new();
        let mut collide = false;
        let mut foreign: BTreeMap<(&str, &str), &Destination> = BTreeMap::new();
        for entry in self.entries.values() {
            let cluster = cluster_of(&entry.destination);
            if cluster != HOME {
                foreign.insert(cluster, &entry.destination);
            }
            for object in entry.rendered.iter().flat_map(|rendered| &rendered.objects) {
                let owner = owners.entry(object.value.resource_key()).or_insert(cluster);
                collide |= *owner != cluster;
            }
        }
        if collide { foreign.into_values().cloned().collect() } else { Vec::new() }
    }

    /// Everything that an Application or set leads to, itself included.
    pub fn reach(&self, from: Node, reached: &mut BTreeSet<Node>) {
        let mut open = vec![from];
        while let Some(node) = open.pop() {
            if reached.insert(node.clone()) {
                open.extend(self.children.get(&node).into_iter().flatten().cloned());
            }
        }
    }
}

/// The engine's own cluster, as [`cluster_of`] names it.
pub const HOME: (&str, &str) = (names::IN_CLUSTER_SERVER, "");

/// What tells the cluster of a destination from others: its address, or else its name.
pub fn cluster_of(destination: &Destination) -> (&str, &str) {
    let server = destination.server.trim_end_matches('/');
    let is_home = server == names::IN_CLUSTER_SERVER || destination.name == names::IN_CLUSTER_NAME;
    // One without either is no destination at all, and told of elsewhere.
    if is_home || (server.is_empty() && destination.name.is_empty()) {
        HOME
    } else {
        (server, &destination.name)
    }
}

/// The Applications that a set generates from the given repository, and why those are not all; none if it asks for
/// more.
fn generated(
    set: &Value,
    repositories: &Repositories,
    clusters: &[ClusterInfo],
) -> (Vec<Value>, Option<String>) {
    let generators = set.at(&["spec", "generators"]).unwrap_or(&Value::Null);
    let addresses = crate::generators::repositories(generators);
    if let Some(other) = addresses.iter().find(|url| !repositories.is_given(url)) {
        return (Vec::new(), Some(format!("its generators read another repository, {other}")));
    }
    let inputs = SetInputs::with_clusters(repositories, clusters.to_vec());
    let asks = || crate::generators::ask_for_clusters(generators);
    match tiphys_appset::generate(set, &inputs) {
        Err(error) => (Vec::new(), Some(error.to_string())),
        Ok(all) if all.is_empty() && clusters.is_empty() && asks() => {
            let why = "its generators ask for clusters, and none is known but the engine's own";
            (Vec::new(), Some(why.to_owned()))
        }
        Ok(all) => {
            let fault = all.iter().find_map(|one| {
                let fault = one.fault.as_ref()?;
                Some(format!("Application {:?}: {fault}", one.application.name()))
            });
            let usable = all.into_iter().filter(|one| one.fault.is_none());
            (usable.map(|one| one.application).collect(), fault)
        }
    }
}

/// Namespace and name of an object; the engine's namespace if it names none.
fn id_of(object: &Value) -> Id {
    let namespace = object.namespace();
    let namespace = if namespace.is_empty() { ENGINE_NAMESPACE } else { namespace };
    (namespace.to_owned(), object.name().to_owned())
}

/// What an object is, and which.
pub(super) fn node_of(object: &Value) -> Node {
    Node { is_set: object.kind() == "ApplicationSet", id: id_of(object) }
}

/// The time that all Applications of a run see: two states of a repository are to differ in nothing but their files.
static NOW: LazyLock<Timestamp> = LazyLock::new(Timestamp::now);

/// Renders one Application without a cluster, under the settings of an installation. A version that is empty is the
/// newest that charts are rendered for.
pub fn render_one(
    app: &Application,
    repositories: &Repositories,
    origins: bool,
    settings: Option<&RenderSettings>,
    kube_version: &str,
) -> Result<Rendered, RenderError> {
    let checkouts = Checkouts::new(repositories);
    let checkouts = match settings {
        Some(settings) => checkouts.with_settings(settings.clone()),
        None => checkouts,
    };
    let tracking = Arc::new(Tracking::default());
    render(
        app,
        &Context {
            sources: &checkouts,
            kube_version,
            api_versions: &[],
            tracking: &tracking,
            engine_namespace: ENGINE_NAMESPACE,
            is_namespaced: &crate::scope::is_namespaced,
            origins,
            mock_secrets: false,
            now: Some(*NOW),
        },
    )
}

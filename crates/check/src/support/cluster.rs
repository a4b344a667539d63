//! What the Applications of one environment bring into one cluster, and what of it is not seen.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use tiphys_graph::{App, Object, ObjectScope, Outcome, Owner, Survey};
use tiphys_schema::Catalog;
use tiphys_value::{ObjectExt, ResourceKey, Value};

use super::{
    pods::{self, Pod},
    selectors,
};

/// Positions of pods by namespace, and by a label in it; without a label all of the namespace.
type PodsByLabel<'a> = HashMap<(&'a str, Option<(&'a str, &'a str)>), Vec<usize>>;

/// A cluster as the Applications of one environment fill it.
pub(crate) struct Cluster<'a> {
    survey: &'a Survey,
    world: ObjectScope,
    /// Its objects.
    pub objects: Vec<&'a Object>,
    /// The pods of its workloads.
    pub pods: Vec<Pod<'a>>,
    pods_by_label: PodsByLabel<'a>,
    /// The custom resources of kinds that may bring pods, by namespace.
    operators: HashMap<&'a str, Vec<&'a Object>>,
    /// Namespaces into which an Application renders that was not seen; `None` if it does not say which.
    hidden: BTreeSet<Option<String>>,
    /// Namespaces with objects of which the name has still to be filled in; `None` for any.
    open: BTreeSet<Option<String>>,
    /// The texts in custom resources, by the namespace of the resource.
    mentioned: BTreeMap<&'a str, BTreeSet<&'a str>>,
    /// The names of Flux's HelmReleases elsewhere.
    released: BTreeSet<&'a str>,
    /// The names of custom resources, by namespace, without HelmReleases.
    operated: BTreeMap<&'a str, BTreeSet<&'a str>>,
    /// The names of HelmReleases of which nothing more is seen, by namespace.
    installed: BTreeMap<&'a str, BTreeSet<&'a str>>,
    /// The files and names of Flux's HelmReleases here.
    releases: HashSet<(&'a str, &'a str)>,
}

/// Every cluster of every environment. What no Application reaches is no part of one.
pub(crate) fn all(survey: &Survey) -> Vec<Cluster<'_>> {
    of_worlds(survey, |world| matches!(world, ObjectScope::Cluster(..)))
}

/// What no Application reaches, as clusters of which only a part is seen: those of some units.
pub(crate) fn of_units<'a>(survey: &'a Survey, units: &HashSet<&ObjectScope>) -> Vec<Cluster<'a>> {
    of_worlds(survey, |world| units.contains(world))
}

fn of_worlds<'a>(survey: &'a Survey, is_meant: impl Fn(&ObjectScope) -> bool) -> Vec<Cluster<'a>> {
    let releases: Vec<&Object> = survey.objects.iter().filter(|it| it.key.kind == "HelmRelease").collect();
    let worlds = survey.worlds().filter(|(world, _)| is_meant(world));
    worlds
        .map(|(world, objects)| Cluster::from_objects(survey, world, objects.collect(), &releases))
        .collect()
}

impl<'a> Cluster<'a> {
    fn from_objects(
        survey: &'a Survey,
        world: &ObjectScope,
        objects: Vec<&'a Object>,
        releases: &[&'a Object],
    ) -> Self {
        let mut hidden = BTreeSet::new();
        // No Application fills what none reaches.
        let is_cluster = matches!(world, ObjectScope::Cluster(..));
        let unseen = survey.apps.iter().filter(|app| is_cluster && !matches!(app.outcome, Outcome::Rendered));
        for app in unseen {
            if fills(app, world) {
                let namespace = &app.application.spec.destination.namespace;
                hidden.insert(Some(namespace.clone()).filter(|namespace| !namespace.is_empty()));
                hidden.extend(sole_namespace(survey, app).map(Some));
            }
        }
        let open: BTreeSet<Option<String>> = objects
            .iter()
            .filter(|it| is_open(it.value()))
            .map(|it| {
                let namespace = &it.key.namespace;
                (!namespace.is_empty() && !namespace.contains(VARIABLE)).then(|| namespace.clone())
            })
            .collect();
        hidden.extend(open.iter().cloned());
        let mut mentioned: BTreeMap<&'a str, BTreeSet<&'a str>> = BTreeMap::new();
        let mut operated: BTreeMap<&'a str, BTreeSet<&'a str>> = BTreeMap::new();
        // Of Kustomizations and releases that are seen, what they make is there to be looked at.
        let seen: BTreeSet<(&str, &str)> = match survey.is_of_flux {
            true => survey.apps.iter().filter(|app| app.is_rendered()).map(declared).collect(),
            false => BTreeSet::new(),
        };
        let is_seen = |object: &Object| {
            matches!(object.key.kind.as_str(), "HelmRelease" | "Kustomization")
                && seen.contains(&(object.rendered.location.file.as_ref(), object.key.name.as_str()))
        };
        let mut installed: BTreeMap<&'a str, BTreeSet<&'a str>> = BTreeMap::new();
        for object in objects.iter().copied().filter(|object| makes_objects(object) && !is_seen(object)) {
            let texts = mentioned.entry(&object.key.namespace).or_default();
            // What these make has the name that they say, and so have the Secrets of an Ingress.
            const PRECISE: [&str; 3] = ["bitnami.com", "cert-manager.io", "external-secrets.io"];
            if object.key.kind == "HelmRelease" {
                installed.entry(&object.key.namespace).or_default().insert(&object.key.name);
            } else if object.key.kind != "Ingress" && !PRECISE.contains(&object.key.group.as_str()) {
                operated.entry(&object.key.namespace).or_default().insert(&object.key.name);
            }
            texts.insert(&object.key.name);
            gather(object.value(), texts, 0);
            // Knative's operator calls the Services of its ingresses as the settings that turn them on.
            if object.key.group == "operator.knative.dev" {
                let ingresses = object.value().at(&["spec", "ingress"]).and_then(Value::as_object);
                texts.extend(ingresses.into_iter().flat_map(|map| map.keys()).map(String::as_str));
            }
        }
        // What is released in another cluster may be on its way to this one.
        let others = releases.iter().filter(|it| it.world() != *world);
        let released = others.map(|it| it.key.name.as_str()).collect();
        let own = releases.iter().filter(|it| it.world() == *world);
        let own = own.map(|it| (it.rendered.location.file.as_ref(), it.key.name.as_str())).collect();
        let pods: Vec<Pod<'a>> = objects.iter().filter_map(|object| pods::pod_of(object)).collect();
        Self {
            survey,
            world: world.clone(),
            pods_by_label: by_label(&pods),
            operators: operators(survey, &objects),
            objects,
            pods,
            hidden,
            open,
            mentioned,
            operated,
            installed,
            released,
            releases: own,
        }
    }

    /// The pods that a Service selects.
    pub(crate) fn selected_by<'s>(&'s self, service: &'s Object) -> impl Iterator<Item = &'s Pod<'a>> + 's {
        let namespace = service.key.namespace.as_str();
        let of_label =
            |label| self.pods_by_label.get(&(namespace, label)).map(Vec::as_slice).unwrap_or_default();
        let labels = selectors::labels(service);
        // What a controller adds to pods, their templates do not have.
        let written = labels.iter().copied().filter(|(key, _)| !selectors::GIVEN.contains(key));
        let fewest = written.map(|label| of_label(Some(label))).min_by_key(|found| found.len());
        let candidates = if labels.is_empty() { &[] } else { fewest.unwrap_or_else(|| of_label(None)) };
        candidates.iter().map(|at| &self.pods[*at]).filter(move |pod| selectors::selects(service, pod))
    }

    /// Where its objects live.
    pub(crate) fn scope(&self) -> &ObjectScope {
        &self.world
    }

    /// Whether a namespace has objects of which the name has still to be filled in.
    pub(crate) fn has_open_names(&self, namespace: &str) -> bool {
        self.open.contains(&None) || self.open.contains(&Some(namespace.to_owned()))
    }

    /// The objects of a key.
    pub(crate) fn find(&self, key: &ResourceKey) -> Option<&'a Object> {
        self.survey.with_key(key).find(|object| object.world() == self.world)
    }

    /// The object of a kind of the core group in a namespace.
    pub(crate) fn core(&self, kind: &str, namespace: &str, name: &str) -> Option<&'a Object> {
        self.find(&ResourceKey::new("", kind, namespace, name))
    }

    /// Whether an Application fills this cluster.
    pub(crate) fn is_filled_by(&self, app: &App) -> bool {
        fills(app, &self.world)
    }

    /// Whether everything that its Applications bring was seen.
    pub(crate) fn is_whole(&self) -> bool {
        self.hidden.is_empty()
    }

    /// Whether something that was not seen may bring objects into a namespace.
    pub(crate) fn is_partly_hidden(&self, namespace: &str) -> bool {
        namespace.is_empty()
            || matches!(self.world, ObjectScope::Unit(_))
            || self.hidden.contains(&None)
            || self.hidden.contains(&Some(namespace.to_owned()))
    }

    /// Whether a custom resource, or an Ingress that asks for certificates, names an object or has a name
    /// that the object's begins with: a controller may make it.
    pub(crate) fn may_be_made(&self, namespace: &str, name: &str) -> bool {
        let is_begun = |text: &&str| text.len() >= SHORTEST_BEGIN && name.starts_with(*text);
        let installed = |namespace: &str| self.installed.get(namespace).into_iter().flatten().any(is_begun);
        self.is_mentioned(namespace, name)
            || self.is_begun_by(namespace, name)
            || [namespace, ""].iter().any(|namespace| installed(namespace))
    }

    /// Whether an object's name begins like that of a custom resource other than a HelmRelease, or of a
    /// release elsewhere: what comes of these is called so.
    pub(crate) fn is_begun_by(&self, namespace: &str, name: &str) -> bool {
        let is_begun = |text: &&str| text.len() >= SHORTEST_BEGIN && name.starts_with(*text);
        let begun = |namespace: &str| self.operated.get(namespace).into_iter().flatten().any(is_begun);
        [namespace, ""].iter().any(|namespace| begun(namespace)) || self.released.iter().any(is_begun)
    }

    /// The HelmReleases of a namespace that an object's name begins like.
    pub(crate) fn begun_by_releases<'s>(
        &'s self,
        namespace: &'s str,
        name: &'s str,
    ) -> impl Iterator<Item = &'a str> + 's {
        let installed = self.installed.get(namespace).into_iter().flatten().copied();
        installed.filter(move |it| it.len() >= SHORTEST_BEGIN && name.starts_with(it))
    }

    /// Whether an Application of Flux's clusters is a HelmRelease.
    pub(crate) fn is_release(&self, app: &App) -> bool {
        self.releases.contains(&declared(app))
    }

    /// Whether a custom resource of a namespace, or of none, names an object: a controller may make it.
    pub(crate) fn is_mentioned(&self, namespace: &str, name: &str) -> bool {
        let named = |namespace: &str| self.mentioned.get(namespace).is_some_and(|texts| texts.contains(name));
        [namespace, ""].iter().any(|namespace| named(namespace))
    }

    /// Whether a Service is Argo CD's own, which who installed it made, and nothing that is seen brings Argo
    /// CD.
    pub(crate) fn belongs_to_argocd(&self, namespace: &str, name: &str) -> bool {
        const SERVICES: [&str; 5] = [
            "argocd-applicationset-controller",
            "argocd-dex-server",
            "argocd-metrics",
            "argocd-repo-server",
            "argocd-server",
        ];
        let is_own = |pod: &Pod<'_>| {
            pod.object.key.namespace == namespace
                && pod.containers().any(|container| container.image().contains("argocd"))
        };
        SERVICES.contains(&name) && !self.pods.iter().any(is_own)
    }

    /// Whether a namespace has custom resources of a kind that may bring pods.
    pub(crate) fn has_operated_pods(&self, namespace: &str) -> bool {
        self.operators_of(namespace).next().is_some()
    }

    /// Whether a custom resource of a namespace may bring pods with one of some labels: its name, or a text
    /// in it, is a part of the label's value, or the other way round.
    pub(crate) fn may_have_operated_pods(&self, namespace: &str, labels: &[(&str, &str)]) -> bool {
        const SHORTEST: usize = 3;
        let has = |long: &str, short: &str| short.len() >= SHORTEST && long.contains(short);
        self.operators_of(namespace).any(|object| {
            let text = object.value().to_string();
            let name = object.key.name.as_str();
            labels.iter().any(|(_, value)| has(&text, value) || has(value, name))
        })
    }

    /// The custom resources of a namespace that are of a kind that may bring pods.
    fn operators_of(&self, namespace: &str) -> impl Iterator<Item = &'a Object> + '_ {
        self.operators.get(namespace).into_iter().flatten().copied()
    }
}

/// The custom resources of kinds that may bring pods, by namespace.
fn operators<'a>(survey: &Survey, objects: &[&'a Object]) -> HashMap<&'a str, Vec<&'a Object>> {
    const PODLESS: [&str; 29] = [
        "argoproj.io",
        "autoscaling.k8s.io",
        "bitnami.com",
        "cert-manager.io",
        "cilium.io",
        "crd.projectcalico.org",
        "external-secrets.io",
        "gateway.envoyproxy.io",
        "gateway.networking.k8s.io",
        "image.toolkit.fluxcd.io",
        "karpenter.k8s.aws",
        "karpenter.sh",
        "keda.sh",
        "kustomize.toolkit.fluxcd.io",
        "kyverno.io",
        "metallb.io",
        "monitoring.coreos.com",
        "networking.istio.io",
        "notification.toolkit.fluxcd.io",
        "policy.networking.k8s.io",
        "projectcalico.org",
        "projectcontour.io",
        "route.openshift.io",
        "secrets-store.csi.x-k8s.io",
        "security.istio.io",
        "source.toolkit.fluxcd.io",
        "traefik.containo.us",
        "traefik.io",
        "trust.cert-manager.io",
    ];
    // Of a release that is seen, so are its pods; of any other the namespace is hidden.
    let is_release = |object: &Object| survey.is_of_flux && object.key.kind == "HelmRelease";
    let brings = |object: &Object| {
        !PODLESS.contains(&object.key.group.as_str())
            && Catalog::latest().kind(&object.value().gvk()).is_none()
            && !is_release(object)
    };
    let mut found: HashMap<&str, Vec<&Object>> = HashMap::new();
    for object in objects.iter().copied().filter(|object| brings(object)) {
        found.entry(object.key.namespace.as_str()).or_default().push(object);
    }
    found
}

/// The positions of pods by namespace, and by each label in it.
fn by_label<'a>(pods: &[Pod<'a>]) -> PodsByLabel<'a> {
    let mut found = PodsByLabel::new();
    for (at, pod) in pods.iter().enumerate() {
        let namespace = pod.object.key.namespace.as_str();
        found.entry((namespace, None)).or_default().push(at);
        for label in pod.labels() {
            found.entry((namespace, Some(label))).or_default().push(at);
        }
    }
    found
}

/// Whether an Application fills a cluster.
fn fills(app: &App, world: &ObjectScope) -> bool {
    matches!(world, ObjectScope::Cluster(environment, cluster)
        if *environment == app.environment && app.cluster() == cluster.as_ref())
}

/// How long a name is at least that others are called after.
const SHORTEST_BEGIN: usize = 3;

/// How a variable begins that something else puts a value in place of.
const VARIABLE: &str = "${";

/// Whether what an object is called, or what decides which others it goes with, has still to be filled in.
fn is_open(object: &Value) -> bool {
    const DECIDING: [&[&str]; 7] = [
        &["metadata", "name"],
        &["metadata", "namespace"],
        &["metadata", "labels"],
        &["spec", "selector"],
        &["spec", "ports"],
        &["spec", "template", "metadata"],
        &["spec", "target", "name"],
    ];
    // A Kustomization of Flux decides nothing itself.
    object.kind() != "HelmRelease"
        && DECIDING.iter().filter_map(|path| object.at(path)).any(|it| it.to_string().contains(VARIABLE))
}

/// The namespace that all of what is seen of an Application lies in: a kustomization may set another one than
/// the Application's, and what is not seen goes there, too.
fn sole_namespace(survey: &Survey, app: &App) -> Option<String> {
    let own = survey.objects.iter().filter(|it| it.owner == Owner::App(app.id));
    let mut namespaces: BTreeSet<&str> = own.map(|it| it.key.namespace.as_str()).collect();
    namespaces.remove("");
    let only = namespaces.pop_first().filter(|_| namespaces.is_empty())?;
    Some(only.to_owned())
}

/// The file and name of what an Application stands for.
fn declared(app: &App) -> (&str, &str) {
    (app.declared.location.file.as_ref(), app.name())
}

/// The names of the objects that an object may be the cause of: a controller makes others from it, and it
/// holds their names.
pub(crate) fn names_from(object: &Object) -> BTreeSet<&str> {
    let mut texts = BTreeSet::new();
    if makes_objects(object) {
        gather(object.value(), &mut texts, 0);
    }
    texts
}

/// Whether other objects are made from an object by a controller.
fn makes_objects(object: &Object) -> bool {
    if object.key.kind == "Ingress" {
        let annotations = object.value().at(&["metadata", "annotations"]).and_then(Value::as_object);
        let mut keys = annotations.into_iter().flat_map(|map| map.keys());
        return keys.any(|key| key.starts_with("cert-manager.io/") || key.contains("acme"));
    }
    // What Applications make is rendered, or known to be hidden.
    const OF_ARGOCD: [&str; 3] = ["Application", "ApplicationSet", "AppProject"];
    if object.key.group == "argoproj.io" && OF_ARGOCD.contains(&object.key.kind.as_str()) {
        return false;
    }
    // Routes name what others make.
    const ROUTES: [&str; 6] = [
        "gateway.networking.k8s.io",
        "networking.istio.io",
        "projectcontour.io",
        "security.istio.io",
        "traefik.io",
        "traefik.containo.us",
    ];
    const MONITORS: [&str; 4] = ["ServiceMonitor", "PodMonitor", "PrometheusRule", "Probe"];
    if ROUTES.contains(&object.key.group.as_str()) || MONITORS.contains(&object.key.kind.as_str()) {
        return false;
    }
    let is_service_ca = |key: &str| object.value().annotation(key).is_some();
    Catalog::latest().kind(&object.value().gvk()).is_none()
        || is_service_ca("service.beta.openshift.io/serving-cert-secret-name")
        || is_service_ca("service.alpha.openshift.io/serving-cert-secret-name")
}

fn gather<'a>(value: &'a Value, texts: &mut BTreeSet<&'a str>, depth: usize) {
    const MAX_DEPTH: usize = 32;
    const LONGEST_NAME: usize = 253;
    if depth > MAX_DEPTH {
        return;
    }
    match value {
        Value::String(text) if text.len() <= LONGEST_NAME => drop(texts.insert(text)),
        Value::Array(items) => items.iter().for_each(|item| gather(item, texts, depth + 1)),
        Value::Object(map) => map.values().for_each(|below| gather(below, texts, depth + 1)),
        _ => {}
    }
}

//! Definitions that stand in for those out of reach: of the chart that cannot be fetched, of the platform
//! that the repository was written for, of what an operator would install at run time.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::LazyLock,
};

use tiphys_cluster::{Cluster, LiveCache};
use tiphys_model::{Application, names};
use tiphys_value::{GroupKind, ObjectExt, Value, json};
use tiphys_world::{Behaviours, Settings, behaviour::Operator};

pub(crate) use super::args::When;
use super::{app_rows::Row, apply_options, wait_messages};

/// Groups that platforms serve by themselves; those below them too.
const OF_PLATFORMS: [&str; 7] = [
    "openshift.io",
    "operators.coreos.com",
    "open-cluster-management.io",
    "networking.gke.io",
    "cloud.google.com",
    "k8s.amazonaws.com",
    "cattle.io",
];

/// Kinds whose objects have operators bring further kinds at run time.
const BRINGERS: [(&str, &str); 6] = [
    ("operators.coreos.com", "Subscription"),
    ("pkg.crossplane.io", "Provider"),
    ("pkg.crossplane.io", "Configuration"),
    ("apiextensions.crossplane.io", "CompositeResourceDefinition"),
    ("kro.run", "ResourceGraphDefinition"),
    ("templates.gatekeeper.sh", "ConstraintTemplate"),
];

/// The operators that the cluster can play. They are asked for at every look, and the list is long.
static OPERATORS: LazyLock<Vec<Operator>> = LazyLock::new(|| Settings::default().behaviours.operators);

/// Kinds that live outside of namespaces.
const CLUSTER_KINDS: &str = include_str!("../../data/cluster-kinds.txt");

/// Kinds called after clusters that live in namespaces all the same.
const NAMESPACED: [&str; 9] = [
    "Cluster",
    "ClusterServiceVersion",
    "ClusterDeployment",
    "ClusterClaim",
    "ClusterPool",
    "ClusterClass",
    "ClusterInstance",
    "ClusterLogging",
    "ClusterLogForwarder",
];

/// The kinds that objects wait for.
pub(crate) type Kinds = BTreeMap<GroupKind, Asked>;

/// What is asked of a kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Asked {
    /// The versions.
    versions: BTreeSet<String>,
    /// Objects of it are in a namespace: they or their Applications' destinations name one.
    is_in_namespace: bool,
}

impl Asked {
    /// In one version.
    pub(crate) fn in_version(version: &str) -> Self {
        Self { versions: BTreeSet::from([version.to_owned()]), is_in_namespace: true }
    }

    /// Also in another version, by an object that is in a namespace or not.
    pub(crate) fn add(&mut self, version: &str, is_in_namespace: bool) {
        self.versions.insert(version.to_owned());
        self.is_in_namespace |= is_in_namespace;
    }
}

/// The kinds that objects of Applications wait for because a cluster does not have them. The Applications are
/// in the first.
pub(crate) fn missing(caches: &[LiveCache], rows: &[Row]) -> Kinds {
    let waited: BTreeSet<(&str, &str)> =
        rows.iter().flat_map(|row| &row.waits).filter_map(wait_messages::missing_kind).collect();
    let mut kinds = Kinds::new();
    let Some(home) = caches.first().filter(|_| !waited.is_empty()) else { return kinds };
    for app in applications(home) {
        for resource in &app.status.resources {
            if waited.contains(&(resource.group.as_str(), resource.kind.as_str())) {
                let kind = GroupKind::new(&resource.group, &resource.kind);
                let asked = kinds.entry(kind).or_default();
                asked.versions.insert(resource.version.clone());
                asked.is_in_namespace |= !resource.namespace.is_empty();
            }
        }
    }
    // Of a kind that is served the manifest's version is what is missing, and no definition brings that back.
    let is_served = |kind: &GroupKind| caches.iter().all(|cache| is_served_by(cache.cluster(), kind));
    kinds.retain(|kind, _| kind.group.contains('.') && !is_served(kind));
    kinds
}

/// The kinds of objects that a cluster does not serve.
pub(crate) fn unserved<'a>(cluster: &Cluster, objects: impl Iterator<Item = &'a Value>) -> Kinds {
    let mut kinds = Kinds::new();
    for object in objects {
        let gvk = object.gvk();
        let kind = gvk.group_kind();
        if kind.group.contains('.') && !is_served_by(cluster, &kind) {
            kinds.entry(kind).or_default().add(&gvk.version, !object.namespace().is_empty());
        }
    }
    kinds
}

fn is_served_by(cluster: &Cluster, kind: &GroupKind) -> bool {
    cluster.discovery().preferred_resource(kind).is_some()
}

/// Those of them that something out of reach may bring. `unreachable`: a source of the repository's
/// Applications cannot be fetched.
pub(crate) fn excused(kinds: Kinds, cache: &LiveCache, unreachable: bool) -> Kinds {
    let is_brought = || {
        applications(cache).any(|app| {
            app.status.resources.iter().any(|it| BRINGERS.contains(&(it.group.as_str(), it.kind.as_str())))
        })
    };
    if unreachable || is_brought() {
        return kinds;
    }
    kinds.into_iter().filter(|(kind, _)| is_of_platform(&kind.group)).collect()
}

/// The Applications that can be read.
pub(crate) fn applications(cache: &LiveCache) -> impl Iterator<Item = Application> {
    let apps = cache.of_kind(&GroupKind::new(names::GROUP, "Application"));
    apps.into_iter().filter_map(|app| Application::from_value(&app).ok())
}

/// The kinds and names of the objects of a group that Applications bring.
pub(crate) fn brought(cache: &LiveCache, group: &str) -> BTreeSet<(String, String)> {
    let resources = applications(cache).flat_map(|app| app.status.resources);
    resources
        .filter(|resource| resource.group == group)
        .map(|resource| (resource.kind, resource.name))
        .collect()
}

fn is_of_platform(group: &str) -> bool {
    let is_below =
        |above: &str| group.strip_suffix(above).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    OF_PLATFORMS.into_iter().any(is_below)
}

/// Namespaces that something waits for.
pub(crate) fn namespaces(rows: &[Row]) -> BTreeSet<String> {
    rows.iter().flat_map(Row::missing_namespaces).map(str::to_owned).collect()
}

/// Whether a platform has a namespace from the beginning.
pub(crate) fn is_namespace_of_platform(name: &str) -> bool {
    name.starts_with("openshift-")
}

/// Projects that Applications belong to and that are not there, and those for which ApplicationSets yield
/// nothing: something out of reach may bring them.
pub(crate) fn projects(cache: &LiveCache) -> BTreeSet<String> {
    let there = cache.of_kind(&GroupKind::new(names::GROUP, "AppProject"));
    // Those of other namespaces are of other installations.
    let there: BTreeSet<(&str, &str)> =
        there.iter().map(|project| (project.namespace(), project.name())).collect();
    let is_there = |app: &Application| {
        [crate::ENGINE_NAMESPACE, &app.metadata.namespace]
            .iter()
            .any(|namespace| there.contains(&(*namespace, app.spec.project.as_str())))
    };
    let without = applications(cache).filter(|app| !app.spec.project.is_empty() && !is_there(app));
    let awaited = cache.of_kind(&GroupKind::new(names::GROUP, "ApplicationSet"));
    let awaited = awaited.iter().flat_map(|set| awaited_by(set));
    without.map(|app| app.spec.project).chain(awaited).collect()
}

/// The projects without which an ApplicationSet says that it yields nothing.
fn awaited_by(set: &Value) -> Vec<String> {
    let conditions = set.at(&["status", "conditions"]).and_then(Value::as_array).into_iter().flatten();
    let messages = conditions.filter_map(|it| it.str_at(&["message"]));
    let named = messages.filter_map(|text| {
        text.split_once("application references project ")?.1.split_once(" which does not exist")
    });
    named.map(|(name, _)| name.to_owned()).collect()
}

/// The kinds whose objects nobody has looked at, though the cluster could play their operator: none of its
/// pods is there, so it comes from something out of reach.
pub(crate) fn unattended(caches: &[LiveCache]) -> BTreeSet<GroupKind> {
    let of_kind = |kind: &GroupKind| caches.iter().flat_map(|cache| cache.of_kind(kind)).collect::<Vec<_>>();
    let pods = of_kind(&GroupKind::new("", "Pod"));
    let containers =
        |pod| Value::at(pod, &["spec", "containers"]).and_then(Value::as_array).into_iter().flatten();
    let images: BTreeSet<&str> = pods
        .iter()
        .flat_map(|pod| containers(pod.as_ref()))
        .filter_map(|container| container.str_at(&["image"]))
        .collect();
    let away = OPERATORS.iter().filter(|operator| {
        operator.image.as_ref().is_some_and(|image| !images.iter().any(|it| image.matches_image(it)))
    });
    let kinds = away.map(|operator| GroupKind::new(&operator.group, &operator.kind));
    kinds.filter(|kind| of_kind(kind).iter().any(|object| object.get("status").is_none())).collect()
}

/// What is told of kinds whose operators are played.
pub(crate) fn told_of_operators(kinds: &BTreeSet<GroupKind>) -> String {
    format!(
        "the operators of these kinds come from something out of reach, and are played (--stand-ins never leaves their objects alone): {}",
        listed(kinds.iter())
    )
}

fn listed<'a>(kinds: impl Iterator<Item = &'a GroupKind>) -> String {
    kinds.map(|kind| format!("{}.{}", kind.kind, kind.group)).collect::<Vec<_>>().join(", ")
}

/// Puts definitions in place that take any field, but for kinds that the cluster has, and has the known
/// operators of `all` kinds for which some do work without pods.
///
/// # Errors
/// The cluster refuses one.
pub(crate) async fn provide(
    cluster: &Cluster,
    kinds: &Kinds,
    all: &BTreeSet<GroupKind>,
) -> anyhow::Result<()> {
    for (kind, asked) in kinds.iter().filter(|(kind, _)| !is_served_by(cluster, kind)) {
        let definition = definition(kind, asked);
        cluster.apply(&definition, &apply_options()).await.map_err(|error| {
            anyhow::anyhow!("nothing can stand in for {}.{}: {error}", kind.kind, kind.group)
        })?;
    }
    let is_stood_in = |group: &str, kind: &str| all.contains(&GroupKind::new(group, kind));
    if let Some(rules) = Behaviours::operators_without_pods(is_stood_in) {
        cluster.apply(&rules, &apply_options()).await?;
    }
    Ok(())
}

/// What is told of it.
pub(crate) fn notice(kinds: &Kinds) -> String {
    format!(
        "nothing in reach defines these kinds, so definitions that take any field stand in, and known operators of them are played (--stand-ins never leaves them missing): {}",
        listed(kinds.keys())
    )
}

/// A definition of a kind that takes anything.
pub(crate) fn definition(kind: &GroupKind, Asked { versions, is_in_namespace }: &Asked) -> Value {
    let plural = plural(&kind.kind);
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let last = versions.last();
    let versions: Vec<Value> = versions
        .iter()
        .map(|version| {
            json!({"name": version, "served": true, "storage": Some(version) == last,
                "schema": {"openAPIV3Schema": any}, "subresources": {"status": {}}})
        })
        .collect();
    let mut metadata = json!({"name": format!("{plural}.{}", kind.group)});
    if kind.group.ends_with(".k8s.io") || kind.group.ends_with(".kubernetes.io") {
        metadata["annotations"] =
            json!({"api-approved.kubernetes.io": "unapproved, stands in for a definition out of reach"});
    }
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": metadata,
        "spec": {
            "group": kind.group,
            "scope": if is_cluster_wide(kind) || !is_in_namespace { "Cluster" } else { "Namespaced" },
            "names": {"kind": kind.kind, "listKind": format!("{}List", kind.kind), "plural": plural, "singular": kind.kind.to_lowercase()},
            "versions": versions,
        },
    })
}

/// Whether objects of a kind live outside of namespaces, as far as that is known.
fn is_cluster_wide(kind: &GroupKind) -> bool {
    let fits = |group: &str| match group.strip_prefix('.') {
        Some(_) => kind.group.ends_with(group),
        None => kind.group == group,
    };
    for line in CLUSTER_KINDS.lines().filter(|line| !line.starts_with('#')) {
        let mut words = line.split(' ');
        if !words.next().is_some_and(fits) {
            continue;
        }
        let words: Vec<&str> = words.collect();
        let excepted = words.iter().any(|word| word.strip_prefix('-') == Some(&kind.kind));
        return !excepted && (words.contains(&"*") || words.contains(&kind.kind.as_str()));
    }
    kind.kind.starts_with("Cluster") && !NAMESPACED.contains(&kind.kind.as_str())
}

/// The plural as definitions usually have it.
fn plural(kind: &str) -> String {
    let kind = kind.to_lowercase();
    let before_last = kind.chars().rev().nth(1);
    let is_consonant = before_last.is_some_and(|c| !"aeiou".contains(c));
    if kind.ends_with("constraints") {
        kind
    } else if ["s", "x", "z", "ch", "sh"].iter().any(|end| kind.ends_with(end)) {
        format!("{kind}es")
    } else if kind.ends_with('y') && is_consonant {
        format!("{}ies", &kind[..kind.len() - 1])
    } else {
        format!("{kind}s")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plurals_are_the_usual_ones() {
        let rows = [
            ("HTTPRoute", "httproutes"),
            ("GatewayClass", "gatewayclasses"),
            ("NetworkPolicy", "networkpolicies"),
            ("Gateway", "gateways"),
            ("Prometheus", "prometheuses"),
            ("SecurityContextConstraints", "securitycontextconstraints"),
        ];
        for (kind, expected) in rows {
            assert_eq!(plural(kind), expected);
        }
    }

    #[test]
    fn scopes_are_those_of_the_real_definitions() {
        let is_wide = |group: &str, kind: &str| is_cluster_wide(&GroupKind::new(group, kind));
        assert!(is_wide("gateway.networking.k8s.io", "GatewayClass"));
        assert!(!is_wide("gateway.networking.k8s.io", "HTTPRoute"));
        assert!(is_wide("cert-manager.io", "ClusterIssuer"));
        assert!(!is_wide("postgresql.cnpg.io", "Cluster"));
        assert!(is_wide("operator.openshift.io", "Console"));
        assert!(!is_wide("operator.openshift.io", "IngressController"));
        assert!(is_wide("s3.aws.upbound.io", "Bucket"));
        assert!(!is_wide("operators.coreos.com", "Subscription"));
    }

    #[test]
    fn what_is_in_no_namespace_stands_outside_of_them() {
        let scope = |kind: &str, is_in_namespace| {
            let asked = Asked { is_in_namespace, ..Asked::in_version("v1") };
            definition(&GroupKind::new("example.com", kind), &asked)["spec"]["scope"].clone()
        };
        assert_eq!(scope("Agent", true), "Namespaced");
        assert_eq!(scope("Agent", false), "Cluster");
        assert_eq!(scope("ClusterAgent", true), "Cluster");
    }

    #[test]
    fn groups_of_platforms_are_known_by_their_end() {
        assert!(is_of_platform("route.openshift.io"));
        assert!(is_of_platform("networking.gke.io"));
        assert!(!is_of_platform("myopenshift.io"));
        assert!(!is_of_platform("traefik.io"));
    }
}

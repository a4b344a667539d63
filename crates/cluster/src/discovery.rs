//! What a cluster serves (Kubernetes API concepts, "API Discovery").

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use tiphys_value::{GroupKind, GroupVersionKind, GroupVersionResource, ResourceKey};

/// One kind as it is served.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Resource {
    /// Group, version and kind.
    pub gvk: GroupVersionKind,
    /// Plural name in paths.
    pub plural: String,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// Verbs that it takes.
    pub verbs: Vec<String>,
}

impl Resource {
    /// Group, version and plural name.
    pub fn gvr(&self) -> GroupVersionResource {
        GroupVersionResource::new(&self.gvk.group, &self.gvk.version, &self.plural)
    }

    /// Whether it takes a verb.
    pub fn has_verb(&self, verb: &str) -> bool {
        self.verbs.iter().any(|have| have == verb)
    }

    /// The path of an object, or of the collection if the name is empty. An empty namespace means
    /// all namespaces.
    pub fn path(&self, namespace: &str, name: &str) -> String {
        let GroupVersionKind { group, version, .. } = &self.gvk;
        let mut path =
            if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") };
        if self.namespaced && !namespace.is_empty() {
            path.push_str("/namespaces/");
            path.push_str(&escape_segment(namespace));
        }
        path.push('/');
        path.push_str(&self.plural);
        if !name.is_empty() {
            path.push('/');
            path.push_str(&escape_segment(name));
        }
        path
    }

    /// The key of an object of this kind: no namespace where the kind has none.
    pub fn key(&self, namespace: &str, name: &str) -> ResourceKey {
        let namespace = if self.namespaced { namespace } else { "" };
        ResourceKey::new(&self.gvk.group, &self.gvk.kind, namespace, name)
    }
}

/// Percent-encodes what may not stand in a step of a path (names of RBAC objects hold `:` and more).
pub(crate) fn escape_segment(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~:@!$'()*+,;".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

/// All kinds that a cluster serves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Discovery {
    /// Every served version of every kind.
    by_gvk: BTreeMap<GroupVersionKind, Resource>,
    /// The preferred version of every kind.
    preferred: BTreeMap<GroupKind, Resource>,
    /// `group/version` of what is listed and does not answer.
    unavailable: BTreeSet<String>,
}

impl Discovery {
    /// The resource of a kind in exactly this version.
    pub fn resource(&self, gvk: &GroupVersionKind) -> Option<&Resource> {
        self.by_gvk.get(gvk)
    }

    /// The key of the definition of a kind, if it is a custom resource.
    pub fn definition_key(&self, gvk: &GroupVersionKind) -> Option<ResourceKey> {
        let plural = self.resource(gvk)?.gvr().resource;
        let name = format!("{plural}.{}", gvk.group);
        Some(ResourceKey::new("apiextensions.k8s.io", "CustomResourceDefinition", "", &name))
    }

    /// The resource of a kind in the version that the cluster prefers.
    pub fn preferred_resource(&self, kind: &GroupKind) -> Option<&Resource> {
        self.preferred.get(kind)
    }

    /// Every kind once, in its preferred version.
    pub fn kinds(&self) -> impl Iterator<Item = &Resource> {
        self.preferred.values()
    }

    /// `group/version` and `group/version/Kind` of everything served, as Helm's
    /// `.Capabilities.APIVersions` holds them, sorted.
    pub fn api_versions(&self) -> Vec<String> {
        let mut all: Vec<String> = Vec::new();
        for gvk in self.by_gvk.keys() {
            all.push(gvk.api_version());
            all.push(format!("{}/{}", gvk.api_version(), gvk.kind));
        }
        all.sort();
        all.dedup();
        all
    }

    /// Whether `group/version` or `group/version/Kind` is served.
    pub fn has_api_version(&self, wanted: &str) -> bool {
        let mut kinds = self.by_gvk.keys();
        kinds.any(|gvk| {
            wanted.strip_prefix(&gvk.api_version()).is_some_and(|rest| {
                rest.is_empty() || rest.strip_prefix('/').is_some_and(|kind| kind == gvk.kind)
            })
        })
    }

    /// Adds a group's version; versions are added in the group's order of preference.
    pub(crate) fn add(&mut self, group: &str, version: &str, list: ResourceList) {
        for entry in list.resources {
            if entry.name.contains('/') {
                continue;
            }
            let gvk = GroupVersionKind::new(group, version, entry.kind);
            self.insert(Resource {
                gvk,
                plural: entry.name,
                namespaced: entry.namespaced,
                verbs: entry.verbs,
            });
        }
    }

    /// Adds a group's version; versions are added in the group's order of preference.
    pub(crate) fn add_aggregated(&mut self, group: &str, version: &AggregatedVersion) {
        for entry in version.resources.iter().flatten() {
            let Some(kind) = entry.response_kind.as_ref().filter(|kind| !kind.kind.is_empty()) else {
                continue;
            };
            self.insert(Resource {
                gvk: GroupVersionKind::new(group, &version.version, &kind.kind),
                plural: entry.resource.clone(),
                namespaced: entry.scope == "Namespaced",
                verbs: entry.verbs.clone().unwrap_or_default(),
            });
        }
    }

    /// `group/version` of what the cluster lists and cannot ask: the API server behind an APIService does not
    /// answer.
    pub fn unavailable(&self) -> impl Iterator<Item = &str> {
        self.unavailable.iter().map(String::as_str)
    }

    /// Notes that a group's version does not answer.
    pub(crate) fn add_unavailable(&mut self, group: &str, version: &str) {
        self.unavailable.insert(format!("{group}/{version}"));
    }

    /// Takes over what was known of a group's version.
    pub(crate) fn keep(&mut self, known: &Self, group: &str, version: &str) {
        let kept = known.by_gvk.values().filter(|r| r.gvk.group == group && r.gvk.version == version);
        kept.cloned().for_each(|resource| self.insert(resource));
    }

    fn insert(&mut self, resource: Resource) {
        self.preferred.entry(resource.gvk.group_kind()).or_insert_with(|| resource.clone());
        self.by_gvk.insert(resource.gvk.clone(), resource);
    }
}

/// The media types by which everything is told at once, and what API servers answer that do not know them.
pub(crate) const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
    application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";

/// `APIGroupDiscoveryList`, or something else that bears another kind.
#[derive(Deserialize)]
pub(crate) struct AggregatedList {
    kind: String,
    #[serde(default)]
    items: Vec<AggregatedGroup>,
}

impl AggregatedList {
    /// Whether it is what was asked for.
    pub(crate) fn is_one(&self) -> bool {
        self.kind == "APIGroupDiscoveryList"
    }

    /// Every version with its group, those of a group in its order of preference.
    pub(crate) fn versions(&self) -> impl Iterator<Item = (&str, &AggregatedVersion)> {
        self.items
            .iter()
            .flat_map(|group| group.versions.iter().map(|version| (group.metadata.name.as_str(), version)))
    }
}

/// `APIGroupDiscovery`.
#[derive(Deserialize)]
struct AggregatedGroup {
    /// The core group's has no name.
    #[serde(default)]
    metadata: Named,
    #[serde(default)]
    versions: Vec<AggregatedVersion>,
}

#[derive(Default, Deserialize)]
struct Named {
    #[serde(default)]
    name: String,
}

/// `APIVersionDiscovery`.
#[derive(Deserialize)]
pub(crate) struct AggregatedVersion {
    pub version: String,
    #[serde(default)]
    resources: Option<Vec<AggregatedResource>>,
    #[serde(default)]
    freshness: String,
}

impl AggregatedVersion {
    /// Whether the API server could not ask the one behind it what it serves. What it may have served before
    /// cannot be listed either.
    pub(crate) fn is_stale(&self) -> bool {
        self.freshness == "Stale"
    }
}

/// `APIResourceDiscovery`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AggregatedResource {
    resource: String,
    /// None where only a subresource is served.
    #[serde(default)]
    response_kind: Option<ResponseKind>,
    #[serde(default)]
    scope: String,
    #[serde(default)]
    verbs: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct ResponseKind {
    #[serde(default)]
    kind: String,
}

/// `APIVersions`.
#[derive(Deserialize)]
pub(crate) struct CoreVersions {
    pub versions: Vec<String>,
}

/// `APIGroupList`.
#[derive(Deserialize)]
pub(crate) struct GroupList {
    pub groups: Vec<Group>,
}

/// `APIGroup`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Group {
    pub name: String,
    pub versions: Vec<GroupVersion>,
    #[serde(default)]
    pub preferred_version: Option<GroupVersion>,
}

impl Group {
    /// The versions, the preferred one first.
    pub(crate) fn ordered_versions(&self) -> Vec<String> {
        let preferred = self.preferred_version.as_ref().map(|v| v.version.as_str());
        let mut versions: Vec<String> = self.versions.iter().map(|v| v.version.clone()).collect();
        versions.sort_by_key(|version| Some(version.as_str()) != preferred);
        versions
    }
}

/// `GroupVersionForDiscovery`.
#[derive(Deserialize)]
pub(crate) struct GroupVersion {
    pub version: String,
}

/// `APIResourceList`.
#[derive(Deserialize)]
pub(crate) struct ResourceList {
    pub resources: Vec<ResourceEntry>,
}

/// `APIResource`.
#[derive(Deserialize)]
pub(crate) struct ResourceEntry {
    pub name: String,
    pub kind: String,
    #[serde(default)]
    pub namespaced: bool,
    #[serde(default)]
    pub verbs: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource(group: &str, namespaced: bool) -> Resource {
        Resource {
            gvk: GroupVersionKind::new(group, "v1", "Role"),
            plural: "roles".into(),
            namespaced,
            verbs: vec!["get".into()],
        }
    }

    #[test]
    fn paths_of_objects_and_collections() {
        let role = resource("rbac.authorization.k8s.io", true);
        assert_eq!(
            role.path("n", "system:a/b"),
            "/apis/rbac.authorization.k8s.io/v1/namespaces/n/roles/system:a%2Fb"
        );
        assert_eq!(role.path("", ""), "/apis/rbac.authorization.k8s.io/v1/roles");
        assert_eq!(resource("", false).path("ignored", "x"), "/api/v1/roles/x");
    }

    #[test]
    fn everything_is_told_at_once() {
        let answer: AggregatedList = serde_json::from_value(serde_json::json!({"kind": "APIGroupDiscoveryList", "items": [
            {"metadata": {}, "versions": [{"version": "v1", "freshness": "Current", "resources": [
                {"resource": "pods", "responseKind": {"group": "", "version": "v1", "kind": "Pod"}, "scope": "Namespaced",
                 "verbs": ["get"], "subresources": [{"subresource": "log", "responseKind": {"kind": "Pod"}, "verbs": ["get"]}]},
                {"resource": "only", "scope": "Cluster", "subresources": [{"subresource": "part", "verbs": null}]}]}]},
            {"metadata": {"name": "metrics.k8s.io"}, "versions": [{"version": "v1beta1", "freshness": "Stale", "resources": [
                {"resource": "pods", "responseKind": {"kind": "PodMetrics"}, "scope": "Namespaced", "verbs": ["list"]}]}]}]}))
        .unwrap();
        assert!(answer.is_one());
        let mut discovery = Discovery::default();
        let (stale, current): (Vec<_>, Vec<_>) =
            answer.versions().partition(|(_, version)| version.is_stale());
        current.into_iter().for_each(|(group, version)| discovery.add_aggregated(group, version));
        assert_eq!(stale.iter().map(|(group, _)| *group).collect::<Vec<_>>(), ["metrics.k8s.io"]);
        let pods = Resource {
            gvk: GroupVersionKind::new("", "v1", "Pod"),
            plural: "pods".into(),
            namespaced: true,
            verbs: vec!["get".into()],
        };
        assert_eq!(discovery.kinds().collect::<Vec<_>>(), [&pods]);
    }

    #[test]
    fn the_first_version_added_is_preferred_and_subresources_are_no_kinds() {
        let list = |names: &[&str]| ResourceList {
            resources: names
                .iter()
                .map(|name| ResourceEntry {
                    name: (*name).into(),
                    kind: "Thing".into(),
                    namespaced: true,
                    verbs: Vec::new(),
                })
                .collect(),
        };
        let mut discovery = Discovery::default();
        discovery.add("g", "v2", list(&["things", "things/status"]));
        discovery.add("g", "v1", list(&["things"]));
        let kind = GroupKind::new("g", "Thing");
        assert_eq!(discovery.preferred_resource(&kind).map(|r| r.gvk.version.as_str()), Some("v2"));
        assert!(discovery.resource(&GroupVersionKind::new("g", "v1", "Thing")).is_some());
        assert_eq!(discovery.kinds().count(), 1);
        assert_eq!(discovery.api_versions(), ["g/v1", "g/v1/Thing", "g/v2", "g/v2/Thing"]);
    }
}

//! What kustomize tells objects apart by: group, version, kind, name, namespace.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

/// Namespace under which cluster-scoped objects are filed.
pub(crate) const CLUSTER_SCOPE: &str = "_non_namespaceable_";

/// Group, version and kind; in a selector an empty part means any.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Gvk {
    #[serde(skip_serializing_if = "SmolStr::is_empty")]
    pub group: SmolStr,
    #[serde(skip_serializing_if = "SmolStr::is_empty")]
    pub version: SmolStr,
    #[serde(skip_serializing_if = "SmolStr::is_empty")]
    pub kind: SmolStr,
}

/// The id of an object, current or earlier.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ResId {
    pub gvk: Gvk,
    pub name: SmolStr,
    pub namespace: SmolStr,
    pub cluster_scoped: bool,
}

/// Kinds that come first in kustomize's own order of kinds.
const FIRST: [&str; 22] = [
    "Namespace",
    "ResourceQuota",
    "StorageClass",
    "CustomResourceDefinition",
    "ServiceAccount",
    "PodSecurityPolicy",
    "Role",
    "ClusterRole",
    "RoleBinding",
    "ClusterRoleBinding",
    "ConfigMap",
    "Secret",
    "Endpoints",
    "Service",
    "LimitRange",
    "PriorityClass",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "Deployment",
    "StatefulSet",
    "CronJob",
    "PodDisruptionBudget",
];

/// Kinds that come last.
const LAST: [&str; 2] = ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"];

/// Kustomize's default order of kinds: those to come first, those to come last.
pub(crate) fn default_order() -> (&'static [&'static str], &'static [&'static str]) {
    (&FIRST, &LAST)
}

impl Gvk {
    /// From an `apiVersion`, split at its first slash, and a kind.
    pub(crate) fn new(api_version: &str, kind: &str) -> Self {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        Self { group: group.into(), version: version.into(), kind: kind.into() }
    }

    /// Whether a selector names this kind; its empty parts match all.
    pub(crate) fn is_selected_by(&self, selector: &Gvk) -> bool {
        let fits = |wanted: &SmolStr, have: &SmolStr| wanted.is_empty() || wanted == have;
        fits(&selector.group, &self.group)
            && fits(&selector.version, &self.version)
            && fits(&selector.kind, &self.kind)
    }

    /// As [`Self::is_selected_by`], of a selector, without making the kind's id.
    pub(crate) fn selects(&self, api_version: &str, kind: &str) -> bool {
        if !self.kind.is_empty() && self.kind != kind {
            return false;
        }
        if self.group.is_empty() && self.version.is_empty() {
            return true;
        }
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        (self.group.is_empty() || self.group == group) && (self.version.is_empty() || self.version == version)
    }

    /// Group, version and kind joined, with marks for empty parts, by which lists are sorted.
    pub(crate) fn sort_text(&self) -> String {
        let or = |part: &SmolStr, empty: &'static str| {
            if part.is_empty() { empty.to_owned() } else { part.to_string() }
        };
        format!("{}_{}_{}", or(&self.group, "~G"), or(&self.version, "~V"), or(&self.kind, "~K"))
    }

    /// The order in which kustomize sorts field specs.
    pub(crate) fn compare(&self, other: &Gvk) -> Ordering {
        let rank = |kind: &SmolStr| -> i32 {
            let at = |list: &[&str]| list.iter().position(|name| name == kind);
            match (at(&FIRST), at(&LAST)) {
                (Some(index), _) => index as i32 - FIRST.len() as i32,
                (None, Some(index)) => 1 + index as i32,
                (None, None) => 0,
            }
        };
        rank(&self.kind).cmp(&rank(&other.kind)).then_with(|| self.sort_text().cmp(&other.sort_text()))
    }
}

/// `Kind.version.group`, as kustomize prints it.
impl std::fmt::Display for Gvk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let or = |part: &SmolStr, empty: &'static str| {
            if part.is_empty() { SmolStr::new_static(empty) } else { part.clone() }
        };
        write!(
            f,
            "{}.{}.{}",
            or(&self.kind, "[noKind]"),
            or(&self.version, "[noVer]"),
            or(&self.group, "[noGrp]")
        )
    }
}

/// The namespace that an id counts for: `default` where it is empty, a mark of its own where the
/// object is cluster-scoped.
pub(crate) fn effective_namespace(namespace: &str, cluster_scoped: bool) -> &str {
    match namespace {
        _ if cluster_scoped => CLUSTER_SCOPE,
        "" => "default",
        namespace => namespace,
    }
}

impl ResId {
    /// The namespace that the id counts for.
    pub(crate) fn effective_namespace(&self) -> &str {
        effective_namespace(&self.namespace, self.cluster_scoped)
    }

    /// Whether two ids name one object.
    pub(crate) fn same(&self, other: &ResId) -> bool {
        self.name == other.name
            && self.gvk == other.gvk
            && self.effective_namespace() == other.effective_namespace()
    }
}

/// `Kind.version.group/name.namespace`, as kustomize prints it.
impl std::fmt::Display for ResId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = if self.name.is_empty() { "[noName]" } else { &self.name };
        let namespace = if self.namespace.is_empty() { "[noNs]" } else { &self.namespace };
        write!(f, "{}/{name}.{namespace}", self.gvk)
    }
}

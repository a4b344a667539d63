//! The names by which the Kubernetes API tells kinds, resources and objects apart
//! (Kubernetes API concepts, "Resource URIs").

use std::fmt;

use serde::{Deserialize, Serialize};

/// An API group and a kind in it; the core group is the empty string.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct GroupKind {
    /// API group, empty for the core group.
    pub group: String,
    /// Kind, such as `Deployment`.
    pub kind: String,
}

/// An API group, a version of it and a kind in it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct GroupVersionKind {
    /// API group, empty for the core group.
    pub group: String,
    /// Version, such as `v1`.
    pub version: String,
    /// Kind, such as `Deployment`.
    pub kind: String,
}

/// An API group, a version of it and the plural name under which objects are served.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct GroupVersionResource {
    /// API group, empty for the core group.
    pub group: String,
    /// Version, such as `v1`.
    pub version: String,
    /// Plural resource name, such as `deployments`.
    pub resource: String,
}

/// What identifies an object in a cluster whatever its version: group, kind, namespace, name.
/// The namespace is empty for cluster-scoped objects.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ResourceKey {
    /// API group, empty for the core group.
    pub group: String,
    /// Kind, such as `Deployment`.
    pub kind: String,
    /// Namespace, empty for cluster-scoped objects.
    pub namespace: String,
    /// Object name.
    pub name: String,
}

impl GroupKind {
    /// Makes a group and kind from its parts.
    pub fn new(group: impl Into<String>, kind: impl Into<String>) -> Self {
        Self { group: group.into(), kind: kind.into() }
    }
}

impl GroupVersionKind {
    /// Makes a group, version and kind from its parts.
    pub fn new(group: impl Into<String>, version: impl Into<String>, kind: impl Into<String>) -> Self {
        Self { group: group.into(), version: version.into(), kind: kind.into() }
    }

    /// Splits an `apiVersion` (`v1` or `apps/v1`) at its slash.
    pub fn from_api_version(api_version: &str, kind: impl Into<String>) -> Self {
        let (group, version) = split_api_version(api_version);
        Self::new(group, version, kind)
    }

    /// The `apiVersion` field: `group/version`, or `version` alone in the core group.
    pub fn api_version(&self) -> String {
        join_api_version(&self.group, &self.version)
    }

    /// Drops the version.
    pub fn group_kind(&self) -> GroupKind {
        GroupKind::new(&self.group, &self.kind)
    }
}

impl GroupVersionResource {
    /// Makes a group, version and resource from its parts.
    pub fn new(group: impl Into<String>, version: impl Into<String>, resource: impl Into<String>) -> Self {
        Self { group: group.into(), version: version.into(), resource: resource.into() }
    }

    /// The `apiVersion` field: `group/version`, or `version` alone in the core group.
    pub fn api_version(&self) -> String {
        join_api_version(&self.group, &self.version)
    }
}

impl ResourceKey {
    /// Makes a key from its parts.
    pub fn new(
        group: impl Into<String>,
        kind: impl Into<String>,
        namespace: impl Into<String>,
        name: impl Into<String>,
    ) -> Self {
        Self { group: group.into(), kind: kind.into(), namespace: namespace.into(), name: name.into() }
    }

    /// Drops namespace and name.
    pub fn group_kind(&self) -> GroupKind {
        GroupKind::new(&self.group, &self.kind)
    }
}

/// Splits an `apiVersion` into group and version.
fn split_api_version(api_version: &str) -> (&str, &str) {
    api_version.split_once('/').unwrap_or(("", api_version))
}

fn join_api_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

/// `Kind` in the core group, `Kind.group` elsewhere, as the API server prints it in errors.
impl fmt::Display for GroupKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.group.is_empty() {
            f.write_str(&self.kind)
        } else {
            write!(f, "{}.{}", self.kind, self.group)
        }
    }
}

/// `group/version, Kind=kind`, as client-go prints it.
impl fmt::Display for GroupVersionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}, Kind={}", self.group, self.version, self.kind)
    }
}

/// `resource` in the core group, `resource.group` elsewhere, as kubectl prints it.
impl fmt::Display for GroupVersionResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.group.is_empty() {
            f.write_str(&self.resource)
        } else {
            write!(f, "{}.{}", self.resource, self.group)
        }
    }
}

/// `group/Kind/namespace/name`; empty group and namespace are left out.
impl fmt::Display for ResourceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in [&self.group, &self.kind, &self.namespace] {
            if !part.is_empty() {
                write!(f, "{part}/")?;
            }
        }
        f.write_str(&self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn api_version_round_trips_with_and_without_group() {
        for api_version in ["v1", "apps/v1", "networking.k8s.io/v1"] {
            assert_eq!(GroupVersionKind::from_api_version(api_version, "X").api_version(), api_version);
        }
    }

    #[test]
    fn resource_key_leaves_out_empty_parts() {
        assert_eq!(ResourceKey::new("", "Namespace", "", "a").to_string(), "Namespace/a");
        assert_eq!(ResourceKey::new("apps", "Deployment", "n", "a").to_string(), "apps/Deployment/n/a");
    }
}

//! Which kinds live in namespaces.

use tiphys_schema::Catalog;
use tiphys_value::{GroupVersionKind, ObjectExt, ResourceKey, Value};

/// Kinds of much used operators that live in no namespace.
const OF_CLUSTERS: [(&str, &[&str]); 13] = [
    ("cert-manager.io", &["ClusterIssuer"]),
    (
        "cilium.io",
        &["CiliumClusterwideNetworkPolicy", "CiliumLoadBalancerIPPool", "CiliumL2AnnouncementPolicy"],
    ),
    ("crd.projectcalico.org", &["FelixConfiguration", "GlobalNetworkPolicy", "GlobalNetworkSet", "IPPool"]),
    ("external-secrets.io", &["ClusterExternalSecret", "ClusterPushSecret", "ClusterSecretStore"]),
    ("gateway.networking.k8s.io", &["GatewayClass"]),
    ("karpenter.k8s.aws", &["EC2NodeClass"]),
    ("karpenter.sh", &["NodeClaim", "NodePool"]),
    ("kyverno.io", &["ClusterCleanupPolicy", "ClusterPolicy"]),
    ("nmstate.io", &["NMState", "NodeNetworkConfigurationPolicy", "NodeNetworkState"]),
    ("operator.tigera.io", &["APIServer", "Goldmane", "Installation", "Whisker"]),
    ("projectcalico.org", &["FelixConfiguration", "GlobalNetworkPolicy", "GlobalNetworkSet", "IPPool"]),
    ("snapshot.storage.k8s.io", &["VolumeSnapshotClass", "VolumeSnapshotContent"]),
    ("trust.cert-manager.io", &["Bundle"]),
];

/// Whether a kind lives in namespaces: the built-in ones, those of the Argo projects, and those of much used
/// operators that do not; `None` for others.
pub fn is_namespaced(kind: &GroupVersionKind) -> Option<bool> {
    if kind.group == tiphys_model::names::GROUP {
        return Some(!kind.kind.starts_with("Cluster"));
    }
    let is_of_clusters =
        |(group, kinds): &(&str, &[&str])| *group == kind.group && kinds.contains(&kind.kind.as_str());
    if OF_CLUSTERS.iter().any(is_of_clusters) {
        return Some(false);
    }
    Catalog::latest().kind(kind).map(|known| known.namespaced)
}

/// The key of an object: a namespace that a cluster-scoped kind bears does not count.
pub(super) fn key_of(object: &Value) -> ResourceKey {
    let mut key = object.resource_key();
    if is_namespaced(&object.gvk()) == Some(false) {
        key.namespace.clear();
    }
    key
}

//! The order in which Helm installs kinds.

use std::cmp::Ordering;

use crate::Compat;

/// Kinds in Helm 4's order.
const INSTALL_ORDER: [&str; 38] = [
    "PriorityClass",
    "Namespace",
    "NetworkPolicy",
    "ResourceQuota",
    "LimitRange",
    "PodSecurityPolicy",
    "PodDisruptionBudget",
    "ServiceAccount",
    "Secret",
    "SecretList",
    "ConfigMap",
    "StorageClass",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "CustomResourceDefinition",
    "ClusterRole",
    "ClusterRoleList",
    "ClusterRoleBinding",
    "ClusterRoleBindingList",
    "Role",
    "RoleList",
    "RoleBinding",
    "RoleBindingList",
    "Service",
    "DaemonSet",
    "Pod",
    "ReplicationController",
    "ReplicaSet",
    "Deployment",
    "HorizontalPodAutoscaler",
    "StatefulSet",
    "Job",
    "CronJob",
    "IngressClass",
    "Ingress",
    "APIService",
    "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration",
];

/// How many of [`INSTALL_ORDER`] Helm 3 knows.
const HELM3_KINDS: usize = 36;

/// Known kinds in install order, then unknown ones by name.
pub(crate) fn compare_kinds(a: &str, b: &str, compat: Compat) -> Ordering {
    let known = if compat == Compat::Helm3 { &INSTALL_ORDER[..HELM3_KINDS] } else { &INSTALL_ORDER[..] };
    let rank = |kind: &str| known.iter().position(|known| *known == kind);
    match (rank(a), rank(b)) {
        (Some(a), Some(b)) => a.cmp(&b),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => a.cmp(b),
    }
}

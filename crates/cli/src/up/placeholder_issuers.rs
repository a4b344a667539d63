//! Issuers of certificates that something out of reach would have made.

use std::{cell::LazyCell, collections::BTreeSet};

use tiphys_cluster::{Cluster, LiveCache};
use tiphys_value::{GroupKind, ObjectExt, ResourceKey, Value, json};

use super::{
    apply_options,
    placeholder_kinds::{Asked, Kinds, brought},
};

/// The group of certificates and their issuers.
const GROUP: &str = "cert-manager.io";
/// The version in which issuers are asked for.
const VERSION: &str = "v1";

/// The issuers that certificates of a cluster name, and that neither are there nor among the objects of an
/// Application.
pub(super) fn missing(cache: &LiveCache, applications: &LiveCache) -> BTreeSet<ResourceKey> {
    let brought = LazyCell::new(|| brought(applications, GROUP));
    let certificates = cache.of_kind(&GroupKind::new(GROUP, "Certificate"));
    let named = certificates.iter().filter_map(|certificate| issuer_of(certificate));
    named
        .filter(|issuer| {
            cache.get(issuer).is_none() && !brought.contains(&(issuer.kind.clone(), issuer.name.clone()))
        })
        .collect()
}

/// The issuer that a certificate names, if it is of cert-manager itself.
fn issuer_of(certificate: &Value) -> Option<ResourceKey> {
    let of = |field: &str| certificate.str_at(&["spec", "issuerRef", field]).filter(|text| !text.is_empty());
    let kind = of("kind").unwrap_or("Issuer");
    let namespace = if kind == "ClusterIssuer" { "" } else { certificate.namespace() };
    let is_own = of("group").unwrap_or(GROUP) == GROUP && matches!(kind, "Issuer" | "ClusterIssuer");
    is_own
        .then(|| ResourceKey::new(GROUP, kind, namespace, of("name").unwrap_or_default()))
        .filter(|issuer| !issuer.name.is_empty())
}

/// The kinds of issuers that a cluster does not serve.
pub(super) fn unserved(issuers: &BTreeSet<ResourceKey>, cluster: &Cluster) -> Kinds {
    let discovery = cluster.discovery();
    let kinds: BTreeSet<GroupKind> = issuers.iter().map(ResourceKey::group_kind).collect();
    let unserved = kinds.into_iter().filter(|kind| discovery.preferred_resource(kind).is_none());
    unserved.map(|kind| (kind, Asked::in_version(VERSION))).collect()
}

/// What is told of them.
pub(super) fn notice(issuers: &BTreeSet<ResourceKey>) -> String {
    let names: Vec<String> =
        issuers.iter().map(|issuer| format!("{}/{}", issuer.kind, issuer.name)).collect();
    format!(
        "issuers that certificates name and something out of reach would have made are there (--stand-ins never leaves them out): {}",
        names.join(", ")
    )
}

/// Puts them into a cluster.
///
/// # Errors
/// The cluster refuses one.
pub(super) async fn provide(cluster: &Cluster, issuers: &BTreeSet<ResourceKey>) -> anyhow::Result<()> {
    for issuer in issuers {
        let mut object = json!({
            "apiVersion": format!("{GROUP}/{VERSION}"),
            "kind": issuer.kind,
            "metadata": {"name": issuer.name},
            "spec": {"selfSigned": {}},
        });
        if !issuer.namespace.is_empty() {
            object["metadata"]["namespace"] = issuer.namespace.as_str().into();
        }
        cluster.apply(&object, &apply_options()).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_issuer_is_beside_its_certificate_unless_it_is_the_clusters() {
        let named = |reference: Value| {
            issuer_of(&json!({"metadata": {"namespace": "shop"}, "spec": {"issuerRef": reference}}))
        };
        let of = |kind: &str, namespace: &str| Some(ResourceKey::new(GROUP, kind, namespace, "ca"));
        assert_eq!(named(json!({"name": "ca"})), of("Issuer", "shop"));
        assert_eq!(
            named(json!({"name": "ca", "kind": "ClusterIssuer", "group": GROUP})),
            of("ClusterIssuer", "")
        );
        assert_eq!(named(json!({"name": "ca", "kind": "PCAIssuer", "group": "example.com"})), None);
        assert_eq!(named(json!({})), None);
    }
}

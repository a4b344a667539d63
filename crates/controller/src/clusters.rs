//! The clusters that an engine knows: its own, and those that Secrets declare (Argo CD docs,
//! "Declarative Setup", "Clusters").

use std::{collections::BTreeMap, sync::Arc};

use tiphys_appset::ClusterInfo;
use tiphys_cluster::LiveCache;
use tiphys_model::names;
use tiphys_value::{GroupKind, ObjectExt, Value};

/// The label value of cluster Secrets.
const CLUSTER: &str = "cluster";

/// Whether an object is the Secret of a cluster.
pub(crate) fn is_cluster_secret(object: &Value) -> bool {
    object.kind() == "Secret"
        && object.at(&["metadata", "labels"]).and_then(|labels| labels.get(names::SECRET_TYPE)?.as_str())
            == Some(CLUSTER)
}

/// The clusters of an engine's namespace: the declared ones by name, then the engine's own unless a
/// Secret declares it.
pub(crate) fn known_clusters(cache: &LiveCache, namespace: &str) -> Vec<ClusterInfo> {
    let secrets = cluster_secrets(cache, namespace);
    with_own(secrets.iter().map(|object| declared_cluster(object)).collect())
}

/// The cluster Secrets of a namespace, in the order of their names.
pub(crate) fn cluster_secrets(cache: &LiveCache, namespace: &str) -> Vec<Arc<Value>> {
    let mut secrets = cache.of_kind(&GroupKind::new("", "Secret"));
    secrets.retain(|object| object.namespace() == namespace && is_cluster_secret(object));
    secrets
}

/// Adds the engine's own cluster, unless it is declared.
pub(crate) fn with_own(mut clusters: Vec<ClusterInfo>) -> Vec<ClusterInfo> {
    clusters.sort_by(|a, b| a.name.cmp(&b.name));
    if !clusters.iter().any(|cluster| cluster.server == names::IN_CLUSTER_SERVER) {
        clusters.push(ClusterInfo {
            name: names::IN_CLUSTER_NAME.into(),
            server: names::IN_CLUSTER_SERVER.into(),
            ..ClusterInfo::default()
        });
    }
    clusters
}

/// Reads what a cluster Secret says of its cluster; never its credentials.
pub fn declared_cluster(secret: &Value) -> ClusterInfo {
    let text = |key: &str| secret_text(secret, key).unwrap_or_default();
    let map = |field: &str| -> BTreeMap<String, String> {
        let map = secret.at(&["metadata", field]).and_then(Value::as_object).into_iter().flatten();
        map.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
    };
    ClusterInfo {
        name: text("name"),
        server: text("server").trim_end_matches('/').to_owned(),
        project: text("project"),
        labels: map("labels"),
        annotations: map("annotations"),
        declared: true,
    }
}

/// The Secret of the installation.
pub(crate) const ARGOCD_SECRET: &str = "argocd-secret";

/// The name and key of a Secret that a value refers to: `$secret:key`, or `$key` of the installation's own
/// (Argo CD docs, "User Management", "Sensitive Data and SSO Client Secrets").
pub(crate) fn secret_reference(value: &str) -> Option<(&str, &str)> {
    let reference = value.strip_prefix('$')?;
    Some(reference.split_once(':').unwrap_or((ARGOCD_SECRET, reference)))
}

/// One value of a Secret: of `data`, decoded, or of `stringData` where no API server was asked.
pub fn secret_text(secret: &Value, key: &str) -> Option<String> {
    let plain = || secret.at(&["stringData", key]).and_then(Value::as_str).map(str::to_owned);
    let Some(encoded) = secret.at(&["data", key]).and_then(Value::as_str) else { return plain() };
    let bytes = data_encoding::BASE64.decode(encoded.trim().as_bytes()).ok()?;
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiphys_value::json;

    #[test]
    fn declared_clusters_come_first_and_the_own_one_once() {
        let secret = json!({"kind": "Secret", "metadata": {"name": "s", "labels":
            {"argocd.argoproj.io/secret-type": "cluster", "env": "prod"}},
            "data": {"name": "cHJvZA=="}, "stringData": {"server": "https://prod/"}});
        assert!(is_cluster_secret(&secret));
        let all = with_own(vec![declared_cluster(&secret)]);
        let shown: Vec<_> = all.iter().map(|c| (c.name.as_str(), c.server.as_str(), c.declared)).collect();
        assert_eq!(
            shown,
            [("prod", "https://prod", true), ("in-cluster", "https://kubernetes.default.svc", false)]
        );
        assert_eq!(all[0].labels["env"], "prod");
        let own =
            ClusterInfo { server: names::IN_CLUSTER_SERVER.into(), declared: true, ..Default::default() };
        assert_eq!(with_own(vec![own]).len(), 1);
    }
}

//! Secrets and ConfigMaps that pods name and no Application brings. Those that a tool of the repository makes
//! stand in. Those that somebody makes by hand do only where that is asked for, since one that is missing is
//! what most often keeps a new cluster from coming up.

use std::{
    cell::LazyCell,
    collections::{BTreeMap, BTreeSet},
};

use tiphys_cluster::{Cluster, LiveCache};
use tiphys_value::{GroupKind, ObjectExt, ResourceKey, Value, json};

use super::{apply_options, placeholder_kinds};

/// What a key of an object that stands in holds.
const VALUE: &str = "stands-in";

/// Objects that are missing, with the keys that pods ask for.
pub(super) type Missing = BTreeMap<ResourceKey, BTreeSet<String>>;

/// The Secrets and ConfigMaps that pods of a cluster cannot do without, and that neither are there nor among
/// the objects of an Application.
pub(super) fn missing(cache: &LiveCache, applications: &LiveCache) -> Missing {
    let brought = LazyCell::new(|| placeholder_kinds::brought(applications, ""));
    let mut missing = Missing::new();
    for pod in cache.of_kind(&GroupKind::new("", "Pod")) {
        for (kind, name, keys) in references(&pod) {
            let key = ResourceKey::new("", kind, pod.namespace(), &name);
            if cache.get(&key).is_none() && !brought.contains(&(kind.to_owned(), name)) {
                missing.entry(key).or_default().extend(keys);
            }
        }
    }
    missing
}

/// The items of a list, or none.
fn list<'a>(value: &'a Value, path: &[&str]) -> &'a [Value] {
    value.at(path).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// What a pod names that it cannot do without: kind, name and keys.
fn references(pod: &Value) -> Vec<(&'static str, String, Vec<String>)> {
    let mut found = Vec::new();
    let mut note = |kind: &'static str, source: Option<&Value>, field: &str, keys: Vec<String>| {
        let Some(source) = source.filter(|source| source.get("optional") != Some(&Value::Bool(true))) else {
            return;
        };
        if let Some(name) = source.str_at(&[field]).filter(|name| !name.is_empty()) {
            found.push((kind, name.to_owned(), keys));
        }
    };
    let keys = |source: Option<&Value>| -> Vec<String> {
        let items = source.map(|source| list(source, &["items"])).unwrap_or_default();
        items.iter().filter_map(|item| item.str_at(&["key"])).map(str::to_owned).collect()
    };
    for volume in list(pod, &["spec", "volumes"]) {
        note("Secret", volume.get("secret"), "secretName", keys(volume.get("secret")));
        note("ConfigMap", volume.get("configMap"), "name", keys(volume.get("configMap")));
        for source in list(volume, &["projected", "sources"]) {
            note("Secret", source.get("secret"), "name", keys(source.get("secret")));
            note("ConfigMap", source.get("configMap"), "name", keys(source.get("configMap")));
        }
    }
    for container in ["initContainers", "containers"].iter().flat_map(|field| list(pod, &["spec", field])) {
        for from in list(container, &["envFrom"]) {
            note("Secret", from.get("secretRef"), "name", Vec::new());
            note("ConfigMap", from.get("configMapRef"), "name", Vec::new());
        }
        for variable in list(container, &["env"]) {
            for (kind, field) in [("Secret", "secretKeyRef"), ("ConfigMap", "configMapKeyRef")] {
                let source = variable.at(&["valueFrom", field]);
                let key = source.and_then(|source| source.str_at(&["key"])).map(str::to_owned);
                note(kind, source, "name", key.into_iter().collect());
            }
        }
    }
    found
}

/// What is told of them: all that pods name, or those that a tool of the repository makes.
pub(super) fn notice(missing: &Missing, all: bool) -> String {
    let names: Vec<String> =
        missing.keys().map(|key| format!("{}/{} in {}", key.kind, key.name, key.namespace)).collect();
    let names = names.join(", ");
    if all {
        format!(
            "Secrets and ConfigMaps that pods name and nothing brings are there, with made-up values: {names}"
        )
    } else {
        format!(
            "Secrets and ConfigMaps that scripts or playbooks make are there, with made-up values (--stand-ins never leaves them out): {names}"
        )
    }
}

/// Puts them into a cluster.
///
/// # Errors
/// The cluster refuses one.
pub(super) async fn provide(cluster: &Cluster, missing: &Missing) -> anyhow::Result<()> {
    for (at, keys) in missing {
        let field = if at.kind == "Secret" { "stringData" } else { "data" };
        let data: BTreeMap<&str, &str> = keys.iter().map(|key| (key.as_str(), VALUE)).collect();
        let object = json!({
            "apiVersion": "v1",
            "kind": at.kind,
            "metadata": {"name": at.name, "namespace": at.namespace},
            field: data,
        });
        cluster.apply(&object, &apply_options()).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_pod_cannot_do_without_is_found_with_its_keys() {
        let pod = json!({"spec": {
            "volumes": [
                {"name": "a", "secret": {"secretName": "tls", "items": [{"key": "tls.crt", "path": "c"}]}},
                {"name": "b", "configMap": {"name": "settings", "optional": true}},
                {"name": "c", "projected": {"sources": [{"configMap": {"name": "roots"}}, {"serviceAccountToken": {}}]}}],
            "initContainers": [{"envFrom": [{"secretRef": {"name": "all"}}]}],
            "containers": [{"env": [
                {"name": "A", "valueFrom": {"secretKeyRef": {"name": "database", "key": "password"}}},
                {"name": "B", "valueFrom": {"configMapKeyRef": {"name": "none", "key": "x", "optional": true}}},
                {"name": "C", "value": "plain"}]}]}});
        let found: Vec<String> = references(&pod)
            .into_iter()
            .map(|(kind, name, keys)| format!("{kind}/{name} {}", keys.join(",")))
            .collect();
        assert_eq!(
            found,
            ["Secret/tls tls.crt", "ConfigMap/roots ", "Secret/all ", "Secret/database password"]
        );
    }
}

//! What a pod refers to and may not exist: volumes, environment, the node's network.

use serde_json::Value;
use tiphys_apiserver::{ResourceId, Snapshot};
use tiphys_value::ObjectExt;

use crate::{
    Cause,
    object::{MORE_KEYS, is_condition_true},
};

fn items<'a>(value: &'a Value, path: &[&str]) -> impl Iterator<Item = &'a Value> + use<'a> {
    value.at(path).and_then(Value::as_array).into_iter().flatten()
}

fn is_optional(reference: &Value) -> bool {
    reference.get("optional") == Some(&Value::Bool(true))
}

/// A ConfigMap or Secret as pods refer to it.
#[derive(Clone, Copy)]
struct Source {
    /// Its resource, in the plural.
    plural: &'static str,
    kind: &'static str,
    /// What a key is called when it is missing from a volume.
    key: &'static str,
}

const CONFIG_MAP: Source = Source { plural: "configmaps", kind: "ConfigMap", key: "config" };
const SECRET: Source = Source { plural: "secrets", kind: "Secret", key: "secret" };

impl Source {
    /// Why a reference cannot be followed.
    fn fault(self, pod: &Value, name: &str, keys: &[&str], snapshot: &Snapshot) -> Option<Cause> {
        let resource = ResourceId::new("", self.plural);
        let Some(object) = snapshot.get(&resource, pod.namespace(), name) else {
            return Some(Cause::Missing { kind: self.kind.to_lowercase(), name: name.to_owned() });
        };
        let has =
            |wanted: &str| ["data", "binaryData"].iter().any(|field| object.at(&[field, wanted]).is_some());
        if object.str_at(&["metadata", "annotations", MORE_KEYS]).is_some() {
            return None;
        }
        let missing = keys.iter().find(|wanted| !has(wanted))?;
        let name = format!("{}/{name}", pod.namespace());
        Some(Cause::MissingKey { kind: self.kind.to_owned(), name, key: (*missing).to_owned() })
    }
}

/// The first ConfigMap, Secret or key that a pod cannot start without and that is not there.
#[must_use]
pub fn missing_configuration(pod: &Value, snapshot: &Snapshot) -> Option<Cause> {
    let containers = ["initContainers", "containers"].into_iter();
    let mut containers = containers.flat_map(|field| items(pod, &["spec", field]));
    let of_volumes = unmountable(pod, snapshot).map(|(_, _, cause)| cause);
    of_volumes.or_else(|| containers.find_map(|container| environment(pod, container, snapshot)))
}

/// The first volume that cannot be mounted: its name, and why in the kubelet's words.
pub(super) fn volume(pod: &Value, snapshot: &Snapshot) -> Option<(String, String)> {
    unmountable(pod, snapshot).map(|(name, source, cause)| {
        let text = match &cause {
            Cause::MissingKey { key, .. } => format!("references non-existent {} key: {key}", source.key),
            other => other.to_string(),
        };
        (name, text)
    })
}

/// The first volume that cannot be mounted, what it is made of, and what of that is missing.
fn unmountable(pod: &Value, snapshot: &Snapshot) -> Option<(String, Source, Cause)> {
    for volume in items(pod, &["spec", "volumes"]) {
        let name = || volume.str_at(&["name"]).unwrap_or_default().to_owned();
        let projected = items(volume, &["projected", "sources"]);
        for part in std::iter::once(volume).chain(projected) {
            let of_config = part.get("configMap").map(|reference| (CONFIG_MAP, reference, "name"));
            let named = if part.at(&["secret", "secretName"]).is_some() { "secretName" } else { "name" };
            let of_secret = part.get("secret").map(|reference| (SECRET, reference, named));
            for (source, reference, field) in of_config.into_iter().chain(of_secret) {
                let keys: Vec<_> =
                    items(reference, &["items"]).filter_map(|item| item.str_at(&["key"])).collect();
                let target = reference.str_at(&[field]).unwrap_or_default();
                let fault = source.fault(pod, target, &keys, snapshot).filter(|_| !is_optional(reference));
                if let Some(cause) = fault {
                    return Some((name(), source, cause));
                }
            }
        }
    }
    None
}

/// A ConfigMap, Secret or key that a container's environment needs and that is not there.
pub(super) fn environment(pod: &Value, container: &Value, snapshot: &Snapshot) -> Option<Cause> {
    for from in items(container, &["envFrom"]) {
        for (source, field) in [(CONFIG_MAP, "configMapRef"), (SECRET, "secretRef")] {
            let Some(reference) = from.get(field).filter(|reference| !is_optional(reference)) else {
                continue;
            };
            let name = reference.str_at(&["name"]).unwrap_or_default();
            if let Some(cause) = source.fault(pod, name, &[], snapshot) {
                return Some(cause);
            }
        }
    }
    for variable in items(container, &["env"]) {
        for (source, field) in [(CONFIG_MAP, "configMapKeyRef"), (SECRET, "secretKeyRef")] {
            let reference = variable.at(&["valueFrom", field]).filter(|reference| !is_optional(reference));
            let Some(reference) = reference else { continue };
            let (name, key) = (
                reference.str_at(&["name"]).unwrap_or_default(),
                reference.str_at(&["key"]).unwrap_or_default(),
            );
            if let Some(cause) = source.fault(pod, name, &[key], snapshot) {
                return Some(cause);
            }
        }
    }
    None
}

/// Why a node cannot give a pod a network. Pods of the host's network need none.
pub(super) fn network(pod: &Value, node: &Value) -> Option<Cause> {
    let is_host = pod.at(&["spec", "hostNetwork"]) == Some(&Value::Bool(true));
    (!is_host && is_condition_true(node, "NetworkUnavailable")).then_some(Cause::NetworkNotReady)
}

//! The addresses that a pod's configuration names: variables, ConfigMaps, arguments; and where each stands.

use tiphys_cause::{Address, addresses};
use tiphys_value::{ObjectExt as _, Value};

use crate::{
    Object,
    cluster::{Cluster, items, pods},
};

/// One value of a pod's configuration.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    /// The variable, key or argument.
    pub(crate) key: String,
    pub(crate) value: String,
    /// The object that holds it: a ConfigMap, or the workload itself (an empty kind).
    pub(crate) source: Object,
    /// The container's field, as `env.DB_HOST`.
    pub(crate) field: String,
    /// The container reads it once, when it starts.
    pub(crate) is_read_once: bool,
}

/// The settings of a pod's containers that can be seen; values of Secrets are none of them.
pub(crate) fn settings(cluster: &Cluster<'_>, spec: &Value, namespace: &str) -> Vec<Setting> {
    let mut found = Vec::new();
    let own = Object::default();
    let mut add = |key: &str, value: &str, source: Object, field: String, is_read_once: bool| {
        found.push(Setting { key: key.to_owned(), value: value.to_owned(), source, field, is_read_once });
    };
    for container in pods::containers(spec) {
        for from in items(container, &["envFrom"]) {
            let Some(name) = from.str_at(&["configMapRef", "name"]) else { continue };
            for (key, value) in data(cluster, namespace, name) {
                add(key, value, Object::new("ConfigMap", namespace, name), format!("data.{key}"), true);
            }
        }
        for variable in items(container, &["env"]) {
            let key = variable.str_at(&["name"]).unwrap_or_default();
            if let Some(value) = variable.str_at(&["value"]) {
                add(key, value, own.clone(), format!("env.{key}"), true);
            }
            let reference = variable.at(&["valueFrom", "configMapKeyRef"]);
            if let Some((name, field)) =
                reference.and_then(|it| Some((it.str_at(&["name"])?, it.str_at(&["key"])?)))
                && let Some((_, value)) = data(cluster, namespace, name).find(|(key, _)| *key == field)
            {
                add(key, value, Object::new("ConfigMap", namespace, name), format!("data.{field}"), true);
            }
        }
        for field in ["command", "args"] {
            for word in items(container, &[field]).filter_map(Value::as_str) {
                add(field, word, own.clone(), field.to_owned(), true);
            }
        }
    }
    for volume in items(spec, &["volumes"]) {
        let names = volume.str_at(&["configMap", "name"]).into_iter();
        let projected =
            items(volume, &["projected", "sources"]).filter_map(|it| it.str_at(&["configMap", "name"]));
        for name in names.chain(projected) {
            for (key, value) in data(cluster, namespace, name) {
                add(key, value, Object::new("ConfigMap", namespace, name), format!("data.{key}"), false);
            }
        }
    }
    found
}

fn data<'a>(cluster: &Cluster<'a>, namespace: &str, name: &str) -> impl Iterator<Item = (&'a str, &'a str)> {
    let live = cluster.get("ConfigMap", namespace, name);
    let data = live.and_then(|live| live.get("data")).and_then(Value::as_object);
    data.into_iter().flatten().filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)))
}

/// Ends of the names of variables whose value is a host.
const HOST_KEYS: &[&str] = &[
    "HOST",
    "HOSTNAME",
    "SERVER",
    "ADDR",
    "ADDRESS",
    "ENDPOINT",
    "SERVICE",
    "URL",
    "URI",
    "BROKERS",
    "UPSTREAM",
    "BACKEND",
    "HOSTS",
    "ADDRESSES",
    "ENDPOINTS",
    "SERVERS",
];

/// The addresses among settings, each with its setting.
pub(crate) fn wires(settings: &[Setting]) -> Vec<(Address, &Setting)> {
    let mut found: Vec<(Address, &Setting)> = Vec::new();
    for setting in settings {
        let key = setting.key.to_ascii_uppercase().replace(['.', '-'], "_");
        let mut named = addresses(&setting.value);
        let value = setting.value.trim();
        let is_word =
            !value.is_empty() && value.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-'));
        if named.is_empty()
            && is_word
            && HOST_KEYS.iter().any(|end| key.ends_with(end))
            && value.chars().any(|c| c.is_ascii_alphabetic())
        {
            let stem = HOST_KEYS.iter().find_map(|end| key.strip_suffix(end)).unwrap_or(&key).to_owned();
            let port = settings
                .iter()
                .find(|it| it.key.to_ascii_uppercase().replace(['.', '-'], "_") == format!("{stem}PORT"));
            named.push(Address {
                scheme: String::new(),
                host: value.to_ascii_lowercase(),
                port: port.and_then(|port| port.value.trim().parse().ok()),
            });
        }
        found.extend(named.into_iter().map(|address| (address, setting)));
    }
    found
}

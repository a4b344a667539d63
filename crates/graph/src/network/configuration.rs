//! What the environment of pods takes from ConfigMaps: the addresses of their peers, as often as not.

use std::collections::HashMap;

use serde_json::Value;
use tiphys_value::{FieldPath, ObjectExt};

use super::Pod;
use crate::Object;

/// The values of ConfigMaps, by their namespaces and names.
type Values<'a> = HashMap<&'a str, HashMap<&'a str, &'a serde_json::Map<String, Value>>>;

/// Notes the values of ConfigMaps that the environment of pods takes.
pub fn note<'a>(pods: &mut [Pod], objects: impl Iterator<Item = &'a Object>) {
    let maps = objects.filter(|it| it.key.kind == "ConfigMap" && it.key.group.is_empty());
    let mut values: Values<'_> = HashMap::new();
    for map in maps {
        if let Some(data) = map.value().get("data").and_then(Value::as_object) {
            values.entry(&map.key.namespace).or_default().insert(&map.key.name, data);
        }
    }
    if values.is_empty() {
        return;
    }
    for pod in pods {
        pod.configuration = taken(pod, &values);
    }
}

fn taken(pod: &Pod, values: &Values<'_>) -> Vec<(FieldPath, String)> {
    let mut found = Vec::new();
    for list in ["initContainers", "containers"] {
        for (at, container) in items(&pod.spec, list).enumerate() {
            let base = pod.path.key(list).index(at);
            for (index, from) in items(container, "envFrom").enumerate() {
                let Some(data) = from.get("configMapRef").and_then(|it| data(pod, values, it)) else {
                    continue;
                };
                let path = base.key("envFrom").index(index).key("configMapRef").key("name");
                let texts = data.values().filter_map(Value::as_str);
                found.extend(texts.map(|text| (path.clone(), text.to_owned())));
            }
            for (index, variable) in items(container, "env").enumerate() {
                let Some(reference) = variable.at(&["valueFrom", "configMapKeyRef"]) else { continue };
                let value = data(pod, values, reference)
                    .zip(reference.str_at(&["key"]))
                    .and_then(|(data, key)| data.get(key));
                if let Some(text) = value.and_then(Value::as_str) {
                    let path =
                        base.key("env").index(index).key("valueFrom").key("configMapKeyRef").key("key");
                    found.push((path, text.to_owned()));
                }
            }
        }
    }
    found
}

/// What stands in the ConfigMap that a reference names.
fn data<'v>(pod: &Pod, values: &Values<'v>, reference: &Value) -> Option<&'v serde_json::Map<String, Value>> {
    values.get(pod.namespace.as_str())?.get(reference.str_at(&["name"])?).copied()
}

fn items<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    value.get(key).and_then(Value::as_array).into_iter().flatten()
}

//! What the environment of pods takes from ConfigMaps: the addresses of their peers, as often as not.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::Value;
use tiphys_value::{FieldPath, ObjectExt};

use crate::{
    endpoint::{Pod, Setting},
    object::Object,
};

/// The values of ConfigMaps, by their namespaces and names.
type Values<'a> = HashMap<&'a str, HashMap<&'a str, &'a serde_json::Map<String, Value>>>;

/// Notes the values of ConfigMaps that the environment of pods takes.
pub(crate) fn note<'a>(pods: &mut [Pod], objects: impl Iterator<Item = Object<'a>>) {
    let maps = objects.filter(|it| it.key.kind == "ConfigMap" && it.key.group.is_empty());
    let mut values: Values<'_> = HashMap::new();
    for map in maps {
        if let Some(data) = map.value.get("data").and_then(Value::as_object) {
            values.entry(&map.key.namespace).or_default().insert(&map.key.name, data);
        }
    }
    if values.is_empty() {
        return;
    }
    let mut takers: BTreeMap<(String, String), usize> = BTreeMap::new();
    for pod in pods.iter() {
        let names: BTreeSet<&str> =
            whole(pod).filter_map(|(_, reference)| reference.str_at(&["name"])).collect();
        for name in names {
            *takers.entry((pod.namespace.clone(), name.to_owned())).or_default() += 1;
        }
    }
    for pod in pods {
        // What several take as a whole names what any of them may need.
        let is_own = |reference: &Value| {
            let name = reference.str_at(&["name"]).unwrap_or_default();
            takers.get(&(pod.namespace.clone(), name.to_owned())) == Some(&1)
        };
        pod.configuration = configured_addresses(pod, &values, &is_own);
    }
}

/// The ConfigMaps that containers take as a whole, each with the field that names it.
fn whole(pod: &Pod) -> impl Iterator<Item = (FieldPath, &Value)> {
    ["initContainers", "containers"].into_iter().flat_map(move |list| {
        items(&pod.spec, list).enumerate().flat_map(move |(at, container)| {
            let base = pod.path.key(list).index(at).key("envFrom");
            items(container, "envFrom").enumerate().filter_map(move |(index, from)| {
                Some((base.index(index).key("configMapRef").key("name"), from.get("configMapRef")?))
            })
        })
    })
}

fn configured_addresses(pod: &Pod, values: &Values<'_>, is_own: &dyn Fn(&Value) -> bool) -> Vec<Setting> {
    let mut found = Vec::new();
    for (path, reference) in whole(pod).filter(|(_, reference)| is_own(reference)) {
        let settings = data(pod, values, reference).into_iter().flatten();
        let own = settings.filter(|(key, value)| !is_general(pod, values, key, value));
        let texts = own.filter_map(|(key, value)| Some((key, value.as_str()?)));
        found.extend(texts.map(|(key, text)| Setting {
            field: path.clone(),
            key: key.clone(),
            text: text.to_owned(),
        }));
    }
    for list in ["initContainers", "containers"] {
        for (at, container) in items(&pod.spec, list).enumerate() {
            let base = pod.path.key(list).index(at);
            for (index, variable) in items(container, "env").enumerate() {
                let Some(reference) = variable.at(&["valueFrom", "configMapKeyRef"]) else { continue };
                let value = data(pod, values, reference)
                    .zip(reference.str_at(&["key"]))
                    .and_then(|(data, key)| data.get(key));
                if let Some(text) = value.and_then(Value::as_str) {
                    let path =
                        base.key("env").index(index).key("valueFrom").key("configMapKeyRef").key("key");
                    let key = variable.str_at(&["name"]).unwrap_or_default().to_owned();
                    found.push(Setting { field: path, key, text: text.to_owned() });
                }
            }
        }
    }
    found
}

/// Whether several ConfigMaps of the namespace say the same: a list of all addresses that each program is
/// handed.
fn is_general(pod: &Pod, values: &Values<'_>, key: &str, value: &Value) -> bool {
    let maps = values.get(pod.namespace.as_str()).into_iter().flat_map(|maps| maps.values());
    maps.filter(|data| data.get(key) == Some(value)).nth(1).is_some()
}

/// What stands in the ConfigMap that a reference names.
fn data<'v>(pod: &Pod, values: &Values<'v>, reference: &Value) -> Option<&'v serde_json::Map<String, Value>> {
    values.get(pod.namespace.as_str())?.get(reference.str_at(&["name"])?).copied()
}

fn items<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    value.get(key).and_then(Value::as_array).into_iter().flatten()
}

//! Lists whose items are told by a key and that an API server stores with one key twice: it takes them so by client-side
//! apply, and of two the last counts. Server-side apply refuses the whole object.

use serde_json::Value;
use tiphys_value::ObjectExt;

/// Where the specification of pods is, by kind.
const POD_SPECS: [(&[&str], &[&str]); 3] = [
    (&["Pod"], &["spec"]),
    (
        &["Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "ReplicationController", "Job"],
        &["spec", "template", "spec"],
    ),
    (&["CronJob"], &["spec", "jobTemplate", "spec", "template", "spec"]),
];

/// The object with each item once, the last in the place of the first; `None` if none stands there twice. Two ports of
/// one number that have different names stay, for each name may be meant somewhere.
pub fn items_once(object: &Value) -> Option<Value> {
    once(object, &CONTAINER)
}

/// The same with one port of each number, whatever they are called: what server-side apply takes.
pub fn ports_once(object: &Value) -> Option<Value> {
    once(object, &[CONTAINER[0], ("ports", PORT)])
}

fn once(object: &Value, container_lists: &[KeyedList]) -> Option<Value> {
    let is_built_in = matches!(&*object.gvk().group, "" | "apps" | "batch");
    let (_, path) = POD_SPECS.iter().find(|(kinds, _)| is_built_in && kinds.contains(&object.kind()))?;
    if !lists(object.at(path)?, container_lists).any(|(list, keys)| has_twice(list, keys)) {
        return None;
    }
    let mut out = object.clone();
    let pod = path.iter().try_fold(&mut out, |value, key| value.get_mut(*key))?;
    for containers in ["initContainers", "containers"] {
        let all = pod.get_mut(containers).and_then(Value::as_array_mut);
        for container in all.into_iter().flatten() {
            container_lists.iter().for_each(|(field, keys)| reduce(container.get_mut(*field), keys));
        }
    }
    POD.iter().for_each(|(field, keys)| reduce(pod.get_mut(*field), keys));
    Some(out)
}

/// Whether a container has two ports of one number and protocol that differ in their names. Server-side apply refuses the
/// object, and neither can be left out; client-side apply stores both.
pub fn has_port_of_two_names(object: &Value) -> bool {
    ports_once(items_once(object).as_ref().unwrap_or(object)).is_some()
}

/// The fields that tell ports of a container from each other.
const PORT: &[&str] = &["containerPort", "protocol"];

/// Lists of containers and of pods that may hold a key twice, and the fields that are the key.
const CONTAINER: [KeyedList; 2] = [("env", &["name"]), ("ports", &["containerPort", "protocol", "name"])];
const POD: [KeyedList; 2] = [("imagePullSecrets", &["name"]), ("hostAliases", &["ip"])];

/// A list, and the fields that tell its items from each other.
type KeyedList = (&'static str, &'static [&'static str]);

fn lists<'a>(
    pod: &'a Value,
    container_lists: &'a [KeyedList],
) -> impl Iterator<Item = (&'a Value, &'static [&'static str])> {
    let containers =
        ["initContainers", "containers"].into_iter().filter_map(|field| pod.get(field)?.as_array());
    let of_containers = containers.flatten().flat_map(move |container| {
        container_lists.iter().filter_map(|(field, keys)| Some((container.get(*field)?, *keys)))
    });
    of_containers.chain(POD.iter().filter_map(|(field, keys)| Some((pod.get(*field)?, *keys))))
}

fn is_same(one: &Value, other: &Value, keys: &[&str]) -> bool {
    let of = |item: &Value, key: &str| match (item.get(key), key) {
        (None | Some(Value::Null), "protocol") => Value::from("TCP"),
        (value, _) => value.cloned().unwrap_or_default(),
    };
    one.is_object() && keys.iter().all(|key| of(one, key) == of(other, key))
}

fn has_twice(list: &Value, keys: &[&str]) -> bool {
    let items = list.as_array().map_or(&[][..], Vec::as_slice);
    items.iter().enumerate().any(|(at, item)| items[..at].iter().any(|before| is_same(before, item, keys)))
}

fn reduce(list: Option<&mut Value>, keys: &[&str]) {
    let Some(items) = list.and_then(Value::as_array_mut) else { return };
    let mut once: Vec<Value> = Vec::with_capacity(items.len());
    for item in items.drain(..) {
        match once.iter_mut().find(|before| is_same(before, &item, keys)) {
            Some(before) => *before = item,
            None => once.push(item),
        }
    }
    *items = once;
}

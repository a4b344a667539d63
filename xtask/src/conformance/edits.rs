//! What becomes of a manifest in its life, with something odd at every step: created, replaced, patched in
//! all four ways, applied by three managers, read as a table, deleted.

use serde_json::{Map, Value, json};
use tiphys_value::ObjectExt;

use super::{corpus::Exchange, random::Random};

const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const JSON_PATCH: &str = "application/json-patch+json";
const APPLY: &str = "application/apply-patch+yaml";
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";
/// Kinds that change what the server does with other requests: these are created with dry run only.
const MEDDLE: [&str; 9] = [
    "APIService",
    "CustomResourceDefinition",
    "FlowSchema",
    "LimitRange",
    "MutatingAdmissionPolicyBinding",
    "MutatingWebhookConfiguration",
    "ResourceQuota",
    "ValidatingAdmissionPolicyBinding",
    "ValidatingWebhookConfiguration",
];

/// The requests of one life. `collection` is where objects of its kind live; the same seed gives the same
/// ones.
pub(super) fn life(object: &Value, collection: &str, edits: usize, seed: u64) -> Vec<Exchange> {
    let mut random = Random::new(seed.wrapping_mul(7919).wrapping_add(17));
    let random = &mut random;
    let one = format!("{collection}/{}", object.name());
    let create = |query: &str, object: &Value| Exchange::new("POST", format!("{collection}?{query}"), object);
    let mut all = vec![create("dryRun=All&fieldValidation=Strict", object)];
    all.extend((0..edits).map(|_| create("dryRun=All&fieldValidation=Strict", &edited(object, random))));
    if MEDDLE.contains(&object.kind()) {
        return all;
    }
    all.push(create("fieldManager=maker", object));
    for _ in 0..edits {
        all.push(Exchange::new("PUT", format!("{one}?fieldManager=putter"), &edited(object, random)));
        let patch = |kind: &str, query: &str, body: &Value| {
            Exchange::new("PATCH", format!("{one}?{query}"), body).of_type(kind)
        };
        all.push(patch(MERGE, "fieldManager=merger", &merge_patch(object, random)));
        all.push(patch(STRATEGIC, "", &strategic_patch(object, random)));
        all.push(patch(JSON_PATCH, "fieldValidation=Strict", &json_patch(object, random)));
        for manager in ["a", "b", "c"] {
            let force = random.chance(40);
            let body = applied(object, random);
            all.push(patch(APPLY, &format!("fieldManager={manager}&force={force}"), &body));
        }
    }
    all.push(Exchange::new("GET", one.clone(), &Value::Null));
    all.push(Exchange::new("GET", one.clone(), &Value::Null).with("accept", TABLE));
    all.push(Exchange::new("DELETE", format!("{one}?gracePeriodSeconds=0"), &Value::Null));
    all
}

/// Pointers to everything in an object that is not its identity.
fn places(object: &Value) -> Vec<String> {
    let mut places = Vec::new();
    super::generate::places_of(object, String::new(), &mut places);
    places.retain(|place| {
        !matches!(place.as_str(), "" | "/apiVersion" | "/kind" | "/metadata" | "/metadata/name")
    });
    // The interesting part of an object is not what it is called and labelled with.
    let spec = places.iter().filter(|place| !place.starts_with("/metadata")).cloned().collect::<Vec<_>>();
    if spec.is_empty() { places } else { spec.into_iter().chain(places).collect() }
}

/// The object with one thing in it changed.
fn edited(object: &Value, random: &mut Random) -> Value {
    let places = places(object);
    let mut edited = object.clone();
    if places.is_empty() {
        return edited;
    }
    for _ in 0..1 + usize::from(random.chance(20)) {
        let place = random.pick(&places).clone();
        let other = object.pointer(random.pick::<String>(&places)).cloned().unwrap_or_default();
        if random.chance(20) {
            remove(&mut edited, &place);
        } else if let Some(slot) = edited.pointer_mut(&place) {
            *slot = changed(slot, other, random);
        }
    }
    edited
}

fn remove(object: &mut Value, place: &str) {
    let Some((parent, last)) = place.rsplit_once('/') else { return };
    match object.pointer_mut(parent) {
        Some(Value::Object(map)) => {
            map.remove(&last.replace("~1", "/").replace("~0", "~"));
        }
        Some(Value::Array(items)) => {
            if let Some(at) = last.parse().ok().filter(|at| *at < items.len()) {
                items.remove(at);
            }
        }
        _ => {}
    }
}

/// Another value instead of one: of the same type mostly, odd or out of range.
fn changed(value: &Value, other: Value, random: &mut Random) -> Value {
    let odd = [json!(null), json!(true), json!(7), json!("odd"), json!([]), json!({}), json!(["a"]), other];
    if random.chance(30) {
        return random.pick(&odd).clone();
    }
    match value {
        Value::String(text) => {
            let texts = [
                String::new(),
                format!("{text}!"),
                text.to_uppercase(),
                format!("-{text}"),
                format!("{text}/{text}"),
                "x".repeat(300),
                text.chars().rev().collect(),
                format!("{text}2"),
                "10".to_owned(),
                "5m".to_owned(),
            ];
            random.pick(&texts).as_str().into()
        }
        Value::Number(number) => {
            let near = number.as_i64().unwrap_or_default();
            let numbers = [
                json!(0),
                json!(-1),
                json!(near + 1),
                json!(near - 1),
                json!(70_000),
                json!(5_000_000_000_u64),
                json!(1.5),
            ];
            random.pick(&numbers).clone()
        }
        Value::Bool(flag) => (!flag).into(),
        Value::Array(items) => {
            let mut items = items.clone();
            match random.number_below(4) {
                0 => items.clear(),
                1 => items.extend(items.first().cloned()),
                2 => items.reverse(),
                _ => items.push(Value::Null),
            }
            items.into()
        }
        Value::Object(map) => {
            let mut map = map.clone();
            match random.number_below(3) {
                0 => drop(map.insert("unknownHere".into(), 1.into())),
                1 => drop(map.insert("enabled".into(), "x".into())),
                _ => map.retain(|_, _| random.chance(50)),
            }
            map.into()
        }
        Value::Null => 1.into(),
    }
}

/// A merge patch that changes or removes something.
fn merge_patch(object: &Value, random: &mut Random) -> Value {
    let places = places(object);
    if places.is_empty() {
        return json!({"metadata": {"labels": {"merged": "yes"}}});
    }
    let place = random.pick(&places).clone();
    // Lists are replaced as a whole.
    let keys: Vec<String> = keys_of(&place);
    let end = (1..keys.len()).find(|at| object.pointer(&pointer(&keys[..*at])).is_some_and(Value::is_array));
    let keys = &keys[..end.unwrap_or(keys.len())];
    let before = object.pointer(&pointer(keys)).cloned().unwrap_or_default();
    let value =
        if random.chance(25) { Value::Null } else { changed(&before, Value::String("o".into()), random) };
    keys.iter().rev().fold(value, |inner, key| json!({ key: inner }))
}

/// A strategic merge patch that leads to some place, and changes it there or gives a directive.
fn strategic_patch(object: &Value, random: &mut Random) -> Value {
    let places = places(object);
    if places.is_empty() {
        return json!({"$patch": "replace"});
    }
    let keys = keys_of(random.pick::<String>(&places));
    let before = object.pointer(&pointer(&keys)).cloned().unwrap_or_default();
    let mut value = match random.number_below(4) {
        0 => Value::Null,
        1 => before.clone(),
        _ => changed(&before, "o".into(), random),
    };
    if let Value::Object(map) = &mut value {
        direct(map, random);
    }
    for at in (0..keys.len()).rev() {
        let parent = object.pointer(&pointer(&keys[..at])).cloned().unwrap_or_default();
        value = match &parent {
            Value::Array(_) => {
                // An element of a list is found by what it is called.
                let whole = object.pointer(&pointer(&keys[..=at])).cloned().unwrap_or_default();
                if let (Value::Object(map), Value::Object(whole)) = (&mut value, whole) {
                    for key in [
                        "name",
                        "containerPort",
                        "mountPath",
                        "port",
                        "type",
                        "key",
                        "ip",
                        "topologyKey",
                        "uid",
                    ] {
                        if let Some(found) = whole.get(key).filter(|_| random.chance(95)) {
                            map.entry(key).or_insert_with(|| found.clone());
                        }
                    }
                }
                json!([value])
            }
            _ => {
                let mut map = Map::from_iter([(keys[at].clone(), value)]);
                if random.chance(8) {
                    direct(&mut map, random);
                }
                Value::Object(map)
            }
        };
    }
    value
}

/// Gives a patch of a map a directive.
fn direct(map: &mut Map<String, Value>, random: &mut Random) {
    let keys: Vec<String> = map.keys().cloned().collect();
    let key = if keys.is_empty() { "none".to_owned() } else { random.pick(&keys).clone() };
    match random.number_below(9) {
        0 => drop(map.insert("$patch".into(), "replace".into())),
        1 => drop(map.insert("$patch".into(), "delete".into())),
        2 => drop(map.insert("$patch".into(), "merge".into())),
        3 => drop(map.insert("$patch".into(), "odd".into())),
        4 => drop(map.insert("$retainKeys".into(), json!([key]))),
        5 => drop(map.insert("$retainKeys".into(), keys.into())),
        6 => drop(map.insert(format!("$setElementOrder/{key}"), json!([{"name": "a"}, "b"]))),
        7 => drop(map.insert(format!("$deleteFromPrimitiveList/{key}"), json!(["a", "b"]))),
        _ => {}
    }
}

fn json_patch(object: &Value, random: &mut Random) -> Value {
    let places = places(object);
    let any = |random: &mut Random| match places.is_empty() {
        true => "/metadata/labels".to_owned(),
        false => random.pick(&places).clone(),
    };
    let mut operations = Vec::new();
    for _ in 0..1 + random.number_below(2) {
        let place = any(random);
        let before = object.pointer(&place).cloned().unwrap_or_default();
        let end = *random.pick(&["", "", "", "", "/-", "/0", "/none/deep", "x"]);
        let path = format!("{place}{end}");
        operations.push(match random.number_below(7) {
            0 => json!({"op": "remove", "path": path}),
            1 => json!({"op": "test", "path": path, "value": before}),
            2 => json!({"op": "copy", "from": any(random), "path": path}),
            3 => json!({"op": "move", "from": any(random), "path": path}),
            4 => json!({"op": "add", "path": path, "value": changed(&before, 1.into(), random)}),
            _ => json!({"op": "replace", "path": path, "value": changed(&before, 1.into(), random)}),
        });
    }
    operations.into()
}

/// What one manager applies: a part of the object, sometimes with something changed.
fn applied(object: &Value, random: &mut Random) -> Value {
    let mut part = if random.chance(40) { edited(object, random) } else { object.clone() };
    let all = places(object);
    for _ in 0..random.number_below(4) {
        if let Some(place) = (!all.is_empty()).then(|| random.pick(&all).clone()) {
            remove(&mut part, &place);
        }
    }
    if random.chance(30) {
        part["metadata"]["labels"]["manager"] = (*random.pick(&["x", "y"])).into();
    }
    part
}

fn keys_of(place: &str) -> Vec<String> {
    place.split('/').skip(1).map(|key| key.replace("~1", "/").replace("~0", "~")).collect()
}

fn pointer(keys: &[String]) -> String {
    keys.iter().map(|key| format!("/{}", key.replace('~', "~0").replace('/', "~1"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_life_is_the_same_each_time_and_sends_every_kind_of_patch() {
        let object = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "spec": {"ports": [{"port": 80, "name": "x"}]}});
        let first = life(&object, "/api/v1/namespaces/default/services", 3, 5);
        assert_eq!(first, life(&object, "/api/v1/namespaces/default/services", 3, 5));
        for kind in [MERGE, STRATEGIC, JSON_PATCH, APPLY] {
            assert!(first.iter().any(|exchange| exchange.content_type == kind), "{kind}");
        }
        let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "a"}});
        let requests = life(&quota, "/api/v1/namespaces/default/resourcequotas", 3, 5);
        assert!(requests.iter().all(|exchange| exchange.path.contains("dryRun=All")));
    }
}

//! Saved states come without credentials. What stands in their place is no change of the cluster: without
//! this, a rehearsal on such a state would put every one of them back, and restart the pods that have them.

use std::collections::BTreeMap;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::Value;
use tiphys_value::{ObjectExt, ResourceKey};

use crate::commands::doctor::MASKED;

/// Puts the values that the repository has where a saved state has masks, also in what controllers have made
/// of a template. Returns how many objects that were.
///
/// A value that was changed by hand in the cluster, and masked, is taken to be that of the repository.
pub(super) fn unmask<'a>(objects: &mut [Value], rendered: impl Iterator<Item = &'a Value>) -> usize {
    let rendered: BTreeMap<ResourceKey, &Value> =
        rendered.map(|object| (object.resource_key(), object)).collect();
    let mut count = 0;
    let mut templates = BTreeMap::new();
    for object in &mut *objects {
        let Some(known) = rendered.get(&object.resource_key()) else { continue };
        let is_secret = object.kind() == "Secret" && object.api_version() == "v1";
        let is_filled = if is_secret { fill_secret(object, known) } else { fill(object, known) };
        if is_filled {
            count += 1;
            templates.extend(template(object));
        }
    }
    // Deployment, ReplicaSet, Pod: each is made from the one above.
    while !templates.is_empty() {
        let made = objects.iter_mut().filter_map(|object| {
            let is_filled = fill_made(object, &templates);
            template(object).filter(|_| is_filled)
        });
        templates = made.collect();
    }
    count
}

/// What controllers make of an object, by its uid.
fn template(object: &Value) -> Option<(String, Value)> {
    Some((object.uid().to_owned(), object.at(&["spec", "template"])?.clone()))
}

/// Fills in what was made from one of some templates. Whether there was something to fill in.
fn fill_made(object: &mut Value, templates: &BTreeMap<String, Value>) -> bool {
    let maker = object.controller_reference().and_then(|owner| owner.str_at(&["uid"]));
    let Some(template) = maker.and_then(|uid| templates.get(uid)) else { return false };
    let place = match object.kind() {
        "Pod" => "",
        "ControllerRevision" => "/data/spec/template",
        _ => "/spec/template",
    };
    object.pointer_mut(place).is_some_and(|made| fill(made, template))
}

/// Fills in the values of a Secret, of which the keys are left. Whether there was something to fill in.
fn fill_secret(secret: &mut Value, known: &Value) -> bool {
    let mut is_changed = false;
    let Some(data) = secret.get_mut("data").and_then(Value::as_object_mut) else { return false };
    for (key, value) in data.iter_mut().filter(|(_, value)| value.as_str() == Some("")) {
        let plain = known.str_at(&["stringData", key]).map(|text| BASE64_STANDARD.encode(text));
        let known = plain.or_else(|| known.str_at(&["data", key]).map(str::to_owned));
        if let Some(known) = known {
            is_changed |= !known.is_empty();
            *value = known.into();
        }
    }
    is_changed
}

/// Fills in where a mask stands. Whether there was something to fill in.
fn fill(value: &mut Value, known: &Value) -> bool {
    match (value, known) {
        (Value::Object(map), Value::Object(known)) => {
            let both = map.iter_mut().filter_map(|(key, value)| Some((value, known.get(key)?)));
            both.fold(false, |is_changed, (value, known)| fill(value, known) | is_changed)
        }
        (Value::Array(items), Value::Array(known)) => {
            let counterpart = |at: usize, item: &Value| match item["name"].as_str() {
                Some(name) => known.iter().find(|known| known["name"] == name),
                None => known.get(at),
            };
            let both =
                items.iter_mut().enumerate().filter_map(|(at, item)| Some((counterpart(at, item)?, item)));
            both.fold(false, |is_changed, (known, item)| fill(item, known) | is_changed)
        }
        (Value::String(text), Value::String(known)) if text.contains(MASKED) && text != known => {
            text.clone_from(known);
            true
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_masked_is_as_in_the_repository() {
        let template = |password: &str, side: bool| {
            let web = json!({"name": "web", "env": [{"name": "MODE", "value": "live"}, {"name": "PASSWORD", "value": password}]});
            let containers = if side { json!([{"name": "side"}, web]) } else { json!([web]) };
            json!({"spec": {"containers": containers}})
        };
        let workload = |kind: &str, uid: &str, owner: &str, password: &str| {
            json!({"apiVersion": "apps/v1", "kind": kind, "spec": {"template": template(password, kind != "Deployment")},
                "metadata": {"name": uid, "namespace": "shop", "uid": uid, "ownerReferences": [{"controller": true, "uid": owner}]}})
        };
        let rendered = [
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d", "namespace": "shop"},
                "spec": {"template": template("hunter2", false)}}),
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "shop"}, "stringData": {"a": "x"}}),
        ];
        let mut pod = template("***", true);
        pod["kind"] = "Pod".into();
        pod["metadata"] =
            json!({"name": "p", "namespace": "shop", "ownerReferences": [{"controller": true, "uid": "r"}]});
        let mut objects = [
            workload("Deployment", "d", "", "***"),
            workload("ReplicaSet", "r", "d", "***"),
            pod,
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "shop"}, "data": {"a": "", "b": ""}}),
            workload("Deployment", "other", "", "***"),
        ];
        assert_eq!(unmask(&mut objects, rendered.iter()), 2);
        let password = |container: &Value| container["env"][1]["value"].clone();
        assert_eq!(password(&objects[0]["spec"]["template"]["spec"]["containers"][0]), "hunter2");
        assert_eq!(password(&objects[1]["spec"]["template"]["spec"]["containers"][1]), "hunter2");
        assert_eq!(password(&objects[2]["spec"]["containers"][1]), "hunter2");
        assert_eq!(objects[3]["data"], json!({"a": "eA==", "b": ""}));
        assert_eq!(
            password(&objects[4]["spec"]["template"]["spec"]["containers"][0]),
            "***",
            "not in the repository"
        );
    }
}

use super::*;
use serde_json::json;
use tiphys_schema::Catalog;
use tiphys_value::GroupVersionKind;

fn deployment() -> TypeRef<'static> {
    Catalog::latest().type_of(&GroupVersionKind::new("apps", "v1", "Deployment")).expect("known")
}

fn request(manager: &str) -> Request<'_> {
    Request {
        ty: Some(deployment()),
        manager,
        api_version: "apps/v1",
        subresource: "",
        now: "2026-01-01T00:00:00Z",
        ignored: &["status"],
        only: "",
    }
}

fn config(spec: Value) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "x"}, "spec": spec})
}

fn containers(list: Value) -> Value {
    config(json!({"template": {"spec": {"containers": list}}}))
}

/// The fields of the spec that are set; a created object also has the empty structs of its type.
fn set_fields(object: &Value) -> Vec<&str> {
    let spec = object["spec"].as_object().expect("spec").keys().map(String::as_str);
    spec.filter(|key| !matches!(*key, "strategy" | "template")).collect()
}

#[test]
fn fields_that_are_no_longer_applied_go_away() {
    let first = config(json!({"replicas": 2, "paused": true, "selector": {"matchLabels": {"a": "b"}}}));
    let live = apply(None, &first, &request("m"), false).expect("applies");
    let second = config(json!({"paused": true, "selector": {"matchLabels": {"a": "b"}}}));
    let live = apply(Some(&live), &second, &request("m"), false).expect("applies");
    assert_eq!(set_fields(&live), set_fields(&second));
}

#[test]
fn what_another_manager_owns_stays() {
    let live = apply(None, &config(json!({"replicas": 2})), &request("a"), false).expect("applies");
    let live = apply(Some(&live), &config(json!({"replicas": 2, "paused": true})), &request("b"), false);
    let mut nothing = config(json!({}));
    nothing.as_object_mut().expect("object").remove("spec");
    let live = apply(Some(&live.expect("applies")), &nothing, &request("a"), false).expect("applies");
    assert_eq!(set_fields(&live), ["paused", "replicas"]);
    let managers = live["metadata"]["managedFields"].as_array().expect("list");
    assert_eq!(managers.len(), 1, "{managers:?}");
}

#[test]
fn conflicts_name_manager_and_field() {
    let mut live = apply(None, &config(json!({"replicas": 2})), &request("a"), false).expect("applies");
    let error =
        apply(Some(&live), &config(json!({"replicas": 3})), &request("b"), false).expect_err("conflicts");
    assert_eq!(error.to_string(), "Apply failed with 1 conflict: conflict with \"a\": .spec.replicas");
    let forced = apply(Some(&live), &config(json!({"replicas": 3})), &request("b"), true).expect("forced");
    assert_eq!(forced["spec"]["replicas"], 3);
    let old = live.clone();
    live["spec"]["replicas"] = json!(5);
    live["spec"]["paused"] = json!(true);
    track_update(Some(&old), &mut live, &request("edit"));
    let both = config(json!({"replicas": 3, "paused": false}));
    let error = apply(Some(&live), &both, &request("a"), false).expect_err("conflicts");
    let expected = "Apply failed with 2 conflicts: conflicts with \"edit\" using apps/v1:\n- .spec.paused\n- .spec.replicas";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn keyed_lists_merge_by_key_and_keep_the_appliers_order() {
    let live = apply(None, &containers(json!([{"name": "a", "image": "1"}])), &request("m"), false)
        .expect("applies");
    let next = containers(json!([{"name": "b", "image": "2"}, {"name": "a", "image": "1"}]));
    let live = apply(Some(&live), &next, &request("n"), false).expect("applies");
    let names: Vec<_> =
        live["spec"]["template"]["spec"]["containers"].as_array().expect("list").iter().collect();
    assert_eq!(names, [&json!({"name": "b", "image": "2"}), &json!({"name": "a", "image": "1"})]);
    let fields =
        &live["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"]["f:template"]["f:spec"]["f:containers"];
    assert_eq!(fields, &json!({"k:{\"name\":\"a\"}": {".": {}, "f:name": {}, "f:image": {}}}));
}

#[test]
fn applying_again_changes_nothing() {
    let object = containers(json!([{"name": "a", "ports": [{"containerPort": 80}]}]));
    let live = apply(None, &object, &request("m"), false).expect("applies");
    let later = Request { now: "2027-01-01T00:00:00Z", ..request("m") };
    assert_eq!(apply(Some(&live), &object, &later, false), Ok(live));
}

#[test]
fn what_the_endpoint_ignores_is_nobodys_conflict() {
    let mut live = config(json!({"replicas": 1}));
    live["status"] = json!({"replicas": 1});
    let by_controller = Request { subresource: "status", ignored: &["spec"], ..request("controller") };
    track_update(Some(&config(json!({"replicas": 1}))), &mut live, &by_controller);
    let mut object = config(json!({"replicas": 1}));
    object["status"] = json!({"replicas": 0});
    let applied = apply(Some(&live), &object, &request("m"), false).expect("no conflict");
    let owners = managers::read(&applied);
    assert!(owners.iter().any(|entry| entry.manager == "controller" && !entry.fields.is_empty()));
}

#[test]
fn an_item_twice_is_refused() {
    let object = containers(json!([{"name": "a"}, {"name": "a"}]));
    let error = apply(None, &object, &request("m"), false).expect_err("refused");
    assert_eq!(error.to_string(), ".spec.template.spec.containers: duplicate entries for key [name=\"a\"]");
}

#[test]
fn nulls_that_are_asked_for_in_items_of_lists_stay_for_their_type_to_decide() {
    let asked = containers(json!([{"name": "c", "image": "i", "resources": {"limits": {"cpu": null}}}]));
    let live = apply(None, &asked, &request("m"), false).expect("applies");
    let container = &live["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["resources"]["limits"], json!({"cpu": null}));
    let other = containers(json!([{"name": "c", "image": "i"}]));
    let live = apply(Some(&live), &other, &request("m"), false).expect("applies");
    let container = &live["spec"]["template"]["spec"]["containers"][0];
    assert!(
        container["resources"]["limits"].as_object().is_none_or(serde_json::Map::is_empty),
        "{container}"
    );
}

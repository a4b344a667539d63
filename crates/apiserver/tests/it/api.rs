//! The API as controllers in the same process and clients over HTTP see it.

use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Full};
use tiphys_apiserver::{
    ApiServer, ApiServerOptions, Client, DeleteOptions, ListOptions, Patch, ResourceId, ResponseBody,
};
use tiphys_value::{GroupVersionResource, ObjectExt, Value, json};
use tower::ServiceExt;

fn server() -> ApiServer {
    ApiServer::new(ApiServerOptions { seed: Some(1), ..ApiServerOptions::default() }).unwrap()
}

fn gvr(api_version: &str, plural: &str) -> GroupVersionResource {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    GroupVersionResource::new(group, version, plural)
}

fn config_maps() -> GroupVersionResource {
    gvr("v1", "configmaps")
}

fn config_map(name: &str) -> Value {
    json!({"metadata": {"name": name}, "data": {"a": "1"}})
}

fn put(client: &Client, name: &str) {
    client.create(&config_maps(), "default", config_map(name)).unwrap();
}

pub(crate) async fn send(
    server: &ApiServer,
    method: Method,
    path: &str,
    kind: &str,
    body: &str,
) -> Response<ResponseBody> {
    let request = Request::builder().method(method).uri(path).header("content-type", kind);
    let request = request.body(Full::new(Bytes::from(body.to_owned()))).unwrap();
    server.service().oneshot(request).await.unwrap()
}

pub(crate) async fn answer(
    server: &ApiServer,
    method: Method,
    path: &str,
    kind: &str,
    body: &Value,
) -> (u16, Value) {
    let response = send(server, method, path, kind, &body.to_string()).await;
    let code = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (code, serde_json::from_slice(&body).unwrap_or(Value::Null))
}

async fn fetch(server: &ApiServer, path: &str) -> (u16, Value) {
    let response = send(server, Method::GET, path, "", "").await;
    let code = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (code, serde_json::from_slice(&body).unwrap_or(Value::Null))
}

fn widgets(client: &Client) {
    let schema = json!({"type": "object", "properties": {
        "spec": {"type": "object", "required": ["size"], "properties": {
            "size": {"type": "integer", "minimum": 1}, "color": {"type": "string", "default": "red"}}},
        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}});
    let crd = json!({
        "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": schema}}]}});
    client.create(&gvr("apiextensions.k8s.io/v1", "customresourcedefinitions"), "", crd).unwrap();
}

#[tokio::test]
async fn a_field_that_the_definition_does_not_know_any_more_is_no_fault_of_a_patch() {
    let server = server();
    let client = server.client("test");
    widgets(&client);
    let object = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"},
        "spec": {"size": 1, "color": "blue"}});
    client.create(&gvr("example.com/v1", "widgets"), "default", object).unwrap();
    let gone = Patch::json(json!([{"op": "remove",
        "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/color"}]));
    let definitions = gvr("apiextensions.k8s.io/v1", "customresourcedefinitions");
    client.patch(&definitions, "", "widgets.example.com", None, &gone).unwrap();
    let applied = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"size": 2}});
    let path =
        "/apis/example.com/v1/namespaces/default/widgets/w?fieldManager=t&force=true&fieldValidation=Strict";
    let (code, answer) = answer(&server, Method::PATCH, path, "application/apply-patch+yaml", &applied).await;
    assert_eq!(code, 200, "{answer}");
    assert_eq!(answer["spec"], json!({"size": 2}));
}

#[test]
fn a_stale_write_conflicts() {
    let client = server().client("test");
    put(&client, "a");
    let stale = client.get(&config_maps(), "default", "a").unwrap().value().clone();
    let mut next = stale.clone();
    next["data"]["a"] = "2".into();
    client.update(&config_maps(), next).unwrap();
    let mut late = stale;
    late["data"]["a"] = "3".into();
    let error = client.update(&config_maps(), late).unwrap_err();
    assert!(error.is_conflict());
    assert_eq!(
        error.message(),
        "Operation cannot be fulfilled on configmaps \"a\": the object has been modified; please apply your changes to the latest version and try again"
    );
}

#[test]
fn a_write_that_changes_nothing_makes_no_revision() {
    let server = server();
    let client = server.client("test");
    put(&client, "a");
    let object = client.get(&config_maps(), "default", "a").unwrap();
    let again = client.update(&config_maps(), object.value().clone()).unwrap();
    assert_eq!(again.revision(), object.revision());
    assert_eq!(server.revision(), object.revision());
}

#[test]
fn finalizers_hold_an_object_until_they_are_gone() {
    let client = server().client("test");
    let mut object = config_map("held");
    object["metadata"]["finalizers"] = json!(["example.com/hold"]);
    client.create(&config_maps(), "default", object).unwrap();
    let marked = client.delete(&config_maps(), "default", "held", &DeleteOptions::default()).unwrap();
    assert!(marked.is_terminating());
    let free = Patch::json(json!([{"op": "remove", "path": "/metadata/finalizers"}]));
    client.patch(&config_maps(), "default", "held", None, &free).unwrap();
    assert!(client.get(&config_maps(), "default", "held").unwrap_err().is_not_found());
}

#[test]
fn forks_do_not_see_each_other_and_repeat_each_other() {
    let server = server();
    put(&server.client("test"), "before");
    let (one, two) = (server.fork(), server.fork());
    put(&one.client("test"), "only-one");
    put(&two.client("test"), "only-two");
    assert!(one.client("test").get(&config_maps(), "default", "only-two").is_err());
    assert!(server.client("test").get(&config_maps(), "default", "only-one").is_err());
    let uid = |server: &ApiServer, name: &str| {
        server.client("test").get(&config_maps(), "default", name).unwrap().uid().to_owned()
    };
    assert_eq!(uid(&one, "before"), uid(&two, "before"));
    assert_eq!(uid(&one, "only-one"), uid(&two, "only-two"), "the same random state, the same next uid");
}

#[test]
fn apply_conflicts_name_owner_and_field() {
    let server = server();
    put(&server.client("first"), "a");
    let config =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"a": "2"}});
    let second = server.client("second");
    let error =
        second.patch(&config_maps(), "default", "a", None, &Patch::apply(config.clone(), false)).unwrap_err();
    assert_eq!(error.message(), "Apply failed with 1 conflict: conflict with \"first\" using v1: .data.a");
    assert_eq!(error.causes()[0].reason, "FieldManagerConflict");
    let taken = second.patch(&config_maps(), "default", "a", None, &Patch::apply(config, true)).unwrap();
    assert_eq!(taken["data"]["a"], "2");
}

#[test]
fn what_an_aggregated_server_of_a_platform_has_is_named_as_there() {
    let server = server();
    let client = server.client("test");
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let definition = json!({"metadata": {"name": "users.user.openshift.io"},
        "spec": {"group": "user.openshift.io", "scope": "Cluster", "names": {"plural": "users", "kind": "User"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": any}}]}});
    client.create(&gvr("apiextensions.k8s.io/v1", "customresourcedefinitions"), "", definition).unwrap();
    let users = gvr("user.openshift.io/v1", "users");
    client.create(&users, "", json!({"metadata": {"name": "ldap:Ann"}})).unwrap();
    assert_eq!(client.create(&users, "", json!({"metadata": {"name": "a/b"}})).unwrap_err().code(), 422);
    widgets(&client);
    let odd = json!({"metadata": {"name": "Ann"}, "spec": {"size": 1}});
    assert_eq!(client.create(&gvr("example.com/v1", "widgets"), "default", odd).unwrap_err().code(), 422);
}

#[test]
fn custom_resources_come_and_go_with_their_definition() {
    let server = server();
    let client = server.client("test");
    let things = gvr("example.com/v1", "widgets");
    assert!(client.create(&things, "default", json!({})).unwrap_err().is_not_found());
    widgets(&client);
    let created = client
        .create(&things, "default", json!({"metadata": {"name": "w"}, "spec": {"size": 2, "unknown": 1}}))
        .unwrap();
    assert_eq!((&created["spec"]["color"], created["spec"].get("unknown")), (&json!("red"), None));
    let error = client
        .create(&things, "default", json!({"metadata": {"name": "x"}, "spec": {"size": 0}}))
        .unwrap_err();
    assert_eq!(error.code(), 422);
    assert!(
        error.message().starts_with("Widget.example.com \"x\" is invalid: spec.size: Invalid value: 0"),
        "{error}"
    );
    let mut status = created.value().clone();
    status["spec"]["size"] = 9.into();
    status["status"] = json!({"ready": true});
    let after = client.update_status(&things, status).unwrap();
    assert_eq!((&after["spec"]["size"], &after["status"]["ready"]), (&json!(2), &json!(true)));
    assert_eq!(after.generation(), 1);
    client
        .delete(
            &gvr("apiextensions.k8s.io/v1", "customresourcedefinitions"),
            "",
            "widgets.example.com",
            &DeleteOptions::default(),
        )
        .unwrap();
    assert!(client.list(&things, None, &ListOptions::default()).unwrap_err().is_not_found());
    assert_eq!(server.snapshot().count(&ResourceId::new("example.com", "widgets")), 0);
}

#[test]
fn objects_need_a_living_namespace() {
    let client = server().client("test");
    let error = client.create(&config_maps(), "none", config_map("a")).unwrap_err();
    assert_eq!(error.message(), "namespaces \"none\" not found");
    client.create(&gvr("v1", "namespaces"), "", json!({"metadata": {"name": "going"}})).unwrap();
    client.delete(&gvr("v1", "namespaces"), "", "going", &DeleteOptions::default()).unwrap();
    let error = client.create(&config_maps(), "going", config_map("a")).unwrap_err();
    assert_eq!(error.causes()[0].reason, "NamespaceTerminating");
    let error =
        client.delete(&gvr("v1", "namespaces"), "", "default", &DeleteOptions::default()).unwrap_err();
    assert_eq!(error.message(), "namespaces \"default\" is forbidden: this namespace may not be deleted");
}

#[test]
fn services_get_addresses_that_no_other_has() {
    let client = server().client("test");
    let services = gvr("v1", "services");
    let service = |name: &str, ip: &str| json!({"metadata": {"name": name}, "spec": {"clusterIP": ip, "ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}]}});
    let first = client.create(&services, "default", service("a", "")).unwrap();
    let ip = first.str_at(&["spec", "clusterIP"]).unwrap().to_owned();
    let error = client.create(&services, "default", service("b", &ip)).unwrap_err();
    assert!(
        error.message().contains(&format!("failed to allocate IP {ip}: provided IP is already allocated")),
        "{error}"
    );
    client.delete(&services, "default", "a", &DeleteOptions::default()).unwrap();
    client.create(&services, "default", service("b", &ip)).unwrap();
}

#[test]
fn a_load_balancer_that_keeps_traffic_local_has_a_health_check_port() {
    let client = server().client("test");
    let services = gvr("v1", "services");
    let port = |service: &Value| service.int_at(&["spec", "healthCheckNodePort"]);
    let object = json!({"metadata": {"name": "lb"}, "spec": {"type": "LoadBalancer", "externalTrafficPolicy": "Local",
        "ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}]}});
    let first = client.create(&services, "default", object.clone()).unwrap();
    let given = port(&first).unwrap();
    assert!((30000..=32767).contains(&given) && first["spec"]["ports"][0]["nodePort"] != given);
    let mut other = object;
    other["metadata"]["name"] = "other".into();
    other["spec"]["healthCheckNodePort"] = given.into();
    assert_eq!(client.create(&services, "default", other.clone()).unwrap_err().reason(), "Invalid");
    let cluster = Patch::merge(json!({"spec": {"externalTrafficPolicy": "Cluster"}}));
    let changed = client.patch(&services, "default", "lb", None, &cluster).unwrap();
    assert_eq!(port(&changed), None);
    assert_eq!(port(&client.create(&services, "default", other).unwrap()), Some(given));
}

#[tokio::test]
async fn lists_come_in_pages() {
    let server = server();
    for name in ["a", "b", "c"] {
        put(&server.client("test"), name);
    }
    let base = "/api/v1/namespaces/default/configmaps?limit=2";
    let (_, first) = fetch(&server, base).await;
    assert_eq!(
        (first["items"].as_array().unwrap().len(), &first["metadata"]["remainingItemCount"]),
        (2, &json!(1))
    );
    let token = first["metadata"]["continue"].as_str().unwrap();
    let (_, second) = fetch(&server, &format!("{base}&continue={token}")).await;
    assert_eq!(second["items"][0]["metadata"]["name"], "c");
    assert!(second["metadata"].get("continue").is_none());
}

#[tokio::test(start_paused = true)]
async fn a_watch_shows_what_is_there_then_what_changes() {
    let server = server();
    put(&server.client("test"), "a");
    let path = "/api/v1/configmaps?watch=1&labelSelector=!x";
    let mut body = send(&server, Method::GET, path, "", "").await.into_body();
    let mut next = async || {
        let frame =
            tokio::time::timeout(Duration::from_secs(5), body.frame()).await.unwrap().unwrap().unwrap();
        let event: Value = serde_json::from_slice(&frame.into_data().unwrap()).unwrap();
        (event["type"].as_str().unwrap().to_owned(), event["object"].name().to_owned())
    };
    assert_eq!(next().await, ("ADDED".into(), "a".into()));
    put(&server.client("test"), "b");
    assert_eq!(next().await, ("ADDED".into(), "b".into()));
    let label = Patch::merge(json!({"metadata": {"labels": {"x": "1"}}}));
    server.client("test").patch(&config_maps(), "default", "a", None, &label).unwrap();
    assert_eq!(next().await, ("DELETED".into(), "a".into()), "it left the selection");
}

#[tokio::test]
async fn a_watcher_that_does_not_read_costs_little_and_is_cut_off() {
    let server = server();
    let client = server.client("test");
    let large = |round: usize| json!({"metadata": {"name": "large", "namespace": "default"}, "data": {"a": "x".repeat(20_000), "b": round.to_string()}});
    for number in 0..40 {
        let mut object = large(0);
        object["metadata"]["name"] = format!("o-{number:02}").into();
        client.create(&config_maps(), "default", object).unwrap();
    }
    let mut body = send(&server, Method::GET, "/api/v1/configmaps?watch=1", "", "").await.into_body();
    let mut frame = async || Some(body.frame().await?.unwrap().into_data().unwrap());
    let first = frame().await.unwrap();
    assert!(first.len() < 200_000, "{} bytes at once", first.len());
    client.create(&config_maps(), "default", large(0)).unwrap();
    for round in 0..5000 {
        let mut object = large(round);
        object["data"]["a"] = "".into();
        client.update(&config_maps(), object).unwrap();
    }
    let (mut shown, mut last) = (first.iter().filter(|byte| **byte == b'\n').count(), Bytes::new());
    while let Some(more) = frame().await {
        assert!(more.len() < 200_000, "{} bytes at once", more.len());
        shown += more.iter().filter(|byte| **byte == b'\n').count();
        last = more;
    }
    let end: Value = serde_json::from_slice(&last).unwrap();
    assert_eq!((&end["type"], &end["object"]["reason"]), (&json!("ERROR"), &json!("Expired")));
    let there = client.list(&config_maps(), None, &Default::default()).unwrap().items.len();
    assert_eq!(shown, there, "what was there (without the last one), then the error");
}

#[tokio::test]
async fn bodies_nobody_should_send_get_an_error() {
    let server = server();
    let path = "/api/v1/namespaces/default/configmaps";
    let deep = format!("{{\"a\":{}", "[".repeat(100_000));
    let large = "x".repeat(4 * 1024 * 1024);
    for (kind, body, code) in [
        ("application/json", "{", 400),
        ("application/json", "[]", 400),
        ("application/json", deep.as_str(), 400),
        ("application/json", large.as_str(), 413),
        ("application/yaml", "a: b: c", 400),
        ("application/vnd.kubernetes.protobuf", "k8s", 400),
        ("text/plain", "hello", 415),
    ] {
        let response = send(&server, Method::POST, path, kind, body).await;
        assert_eq!(response.status().as_u16(), code, "{kind}");
    }
}

#[tokio::test]
async fn a_definition_appears_in_discovery() {
    let server = server();
    assert_eq!(fetch(&server, "/apis/example.com/v1").await.0, 404);
    widgets(&server.client("test"));
    let (code, list) = fetch(&server, "/apis/example.com/v1").await;
    assert_eq!((code, &list["resources"][0]["kind"]), (200, &json!("Widget")));
    let (_, table) = fetch(&server, "/openapi/v3/apis/example.com/v1").await;
    assert!(table["components"]["schemas"]["com.example.v1.Widget"]["properties"]["spec"].is_object());
}

#[tokio::test]
async fn what_definitions_say_is_published_while_they_say_it() {
    let server = server();
    let client = server.client("test");
    widgets(&client);
    let (_, document) = fetch(&server, "/openapi/v2").await;
    let widget = &document["definitions"]["com.example.v1.Widget"];
    let size = json!({"type": "integer", "minimum": 1});
    assert_eq!(widget["properties"]["spec"]["properties"]["size"], size);
    let kind = json!([{"group": "example.com", "version": "v1", "kind": "Widget"}]);
    assert_eq!(widget["x-kubernetes-group-version-kind"], kind);
    assert_eq!(
        widget["properties"]["status"],
        json!({"x-kubernetes-preserve-unknown-fields": true}),
        "who keeps unknown fields must not be told of a type"
    );
    let config_map = &document["definitions"]["io.k8s.api.core.v1.ConfigMap"];
    assert!(config_map["description"].as_str().unwrap().contains("no secret"));
    assert!(config_map["properties"]["metadata"]["description"].is_string());
    let index = async || fetch(&server, "/openapi/v3").await.1["paths"].clone();
    let before = index().await["apis/example.com/v1"].clone();
    let crds = gvr("apiextensions.k8s.io/v1", "customresourcedefinitions");
    let schema =
        json!({"type": "object", "properties": {"spec": {"type": "object", "description": "Now this."}}});
    let version =
        json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}});
    let other =
        json!({"name": "v2", "served": true, "storage": false, "schema": {"openAPIV3Schema": schema}});
    let patch = Patch::merge(json!({"spec": {"versions": [version, other]}}));
    client.patch(&crds, "", "widgets.example.com", None, &patch).unwrap();
    let after = index().await;
    assert_ne!(after["apis/example.com/v1"], before);
    let url = after["apis/example.com/v2"]["serverRelativeURL"].as_str().unwrap().to_owned();
    let (_, document) = fetch(&server, &url).await;
    let widget = &document["components"]["schemas"]["com.example.v2.Widget"];
    assert_eq!(widget["properties"]["spec"]["description"], "Now this.");
    assert!(widget["properties"]["metadata"]["allOf"][0]["$ref"].is_string());
    assert!(document["components"]["schemas"]["io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"].is_object());
    client.delete(&crds, "", "widgets.example.com", &DeleteOptions::default()).unwrap();
    let (_, document) = fetch(&server, "/openapi/v2").await;
    assert_eq!(document["definitions"].get("com.example.v1.Widget"), None);
    assert_eq!(index().await.get("apis/example.com/v2"), None);
}

#[tokio::test]
async fn what_is_stored_takes_later_defaults() {
    let server = server();
    let client = server.client("test");
    let definition = |default: Value| {
        let mut field = json!({"type": "string"});
        if !default.is_null() {
            field["default"] = default;
        }
        json!({"metadata": {"name": "lates.example.com"}, "spec": {"group": "example.com", "scope": "Cluster",
            "names": {"plural": "lates", "kind": "Late"}, "versions": [{"name": "v1", "served": true, "storage": true,
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"a": field}}}}]}})
    };
    let crds = gvr("apiextensions.k8s.io/v1", "customresourcedefinitions");
    client.create(&crds, "", definition(Value::Null)).unwrap();
    client.create(&gvr("example.com/v1", "lates"), "", json!({"metadata": {"name": "one"}})).unwrap();
    let patch = json!({"spec": definition("A".into())["spec"]});
    client.patch(&crds, "", "lates.example.com", None, &Patch::merge(patch)).unwrap();
    let (code, found) = fetch(&server, "/apis/example.com/v1/lates/one").await;
    assert_eq!((code, &found["a"]), (200, &json!("A")));
    let (_, list) = fetch(&server, "/apis/example.com/v1/lates").await;
    assert_eq!(list["items"][0]["a"], "A");
}

#[tokio::test]
async fn an_object_without_described_fields_is_applied_with_any_and_pruned() {
    let server = server();
    let client = server.client("test");
    let empty = json!({"type": "object"});
    let described = json!({"type": "object", "properties": {"in": empty}});
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "kept": {"type": "array", "items": empty, "x-kubernetes-preserve-unknown-fields": true},
        "plain": {"type": "array", "items": empty}, "empty": empty, "deep": described,
        "named": {"type": "object", "additionalProperties": empty}}}}});
    let definition = json!({"metadata": {"name": "templates.example.com"}, "spec": {"group": "example.com",
        "scope": "Cluster", "names": {"plural": "templates", "kind": "Template"}, "versions": [{"name": "v1",
        "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]}});
    client.create(&gvr("apiextensions.k8s.io/v1", "customresourcedefinitions"), "", definition).unwrap();
    let apply = |name: &str, object: Value| {
        let mut object = object;
        object["apiVersion"] = "example.com/v1".into();
        object["kind"] = "Template".into();
        object["metadata"] = json!({"name": name});
        client.patch(&gvr("example.com/v1", "templates"), "", name, None, &Patch::apply(object, false))
    };
    let item = json!({"apiVersion": "v1", "kind": "X", "spec": {"a": 1}});
    // As a kube-apiserver 1.36 answers.
    for (given, stored) in [
        (json!({"kept": [item]}), json!({"kept": [item]})),
        (json!({"plain": [item]}), json!({"plain": [{}]})),
        (json!({"empty": {"x": 1}}), json!({"empty": {}})),
        (json!({"deep": {"in": {"z": [1]}}}), json!({"deep": {"in": {}}})),
        (json!({"named": {"k": {"a": 1}}}), json!({"named": {"k": {}}})),
    ] {
        let name = given.as_object().unwrap().keys().next().unwrap().clone();
        assert_eq!(apply(&name, json!({"spec": given})).unwrap()["spec"], stored);
    }
    let refused = apply("other", json!({"spec": {"deep": {"other": 1}}})).unwrap_err().to_string();
    assert!(refused.contains(".spec.deep.other: field not declared in schema"), "{refused}");
    let refused = apply("root", json!({"other": 1})).unwrap_err().to_string();
    assert!(refused.contains(".other: field not declared in schema"), "{refused}");
}

#[tokio::test]
async fn keys_that_stand_twice_in_applied_yaml_are_told_with_their_line() {
    let server = server();
    let text = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: y\ndata:\n  foo: a\n  foo: b\n";
    let path = "/api/v1/namespaces/default/configmaps/y?fieldManager=m&fieldValidation=Strict";
    let response = send(&server, Method::PATCH, path, "application/apply-patch+yaml", text).await;
    assert_eq!(response.status().as_u16(), 400);
    let body = response.into_body().collect().await.unwrap().to_bytes();
    let message: Value = serde_json::from_slice(&body).unwrap();
    assert!(
        message["message"].as_str().unwrap().contains("line 7: key \"foo\" already set in map"),
        "{message}"
    );
}

#[tokio::test]
async fn pods_are_bound_and_resized_through_their_subresources() {
    let server = server();
    let pod = json!({"metadata": {"name": "p"}, "spec": {"automountServiceAccountToken": false, "containers": [
        {"name": "c", "image": "i", "resources": {"requests": {"cpu": "100m"}}}]}});
    let client = server.client("test");
    let account = json!({"metadata": {"name": "default"}});
    let _ = client.create(&gvr("v1", "serviceaccounts"), "default", account);
    client.create(&gvr("v1", "pods"), "default", pod).unwrap();
    let path = "/api/v1/namespaces/default/pods/p";
    let binding = json!({"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}});
    let bound = answer(&server, Method::POST, &format!("{path}/binding"), "application/json", &binding).await;
    assert_eq!(bound.0, 201, "{}", bound.1);
    let strategic = "application/strategic-merge-patch+json";
    let resources = |resources: Value| json!({"spec": {"containers": [{"name": "c", "image": "j", "resources": resources}]}});
    let more = resources(json!({"requests": {"cpu": "200m"}}));
    let resized = answer(&server, Method::PATCH, &format!("{path}/resize"), strategic, &more).await;
    assert_eq!(resized.0, 200, "{}", resized.1);
    assert_eq!(resized.1["spec"]["containers"][0]["resources"]["requests"]["cpu"], "200m");
    // Nothing but the resources is changed that way, and not by the pod itself.
    assert_eq!(resized.1["spec"]["containers"][0]["image"], "i");
    let refused =
        answer(&server, Method::PATCH, path, strategic, &resources(json!({"requests": {"cpu": "1"}}))).await;
    assert_eq!(refused.0, 422);
    let message = refused.1["message"].as_str().unwrap();
    assert!(message.contains("-     \"cpu\": \"200m\"\n+     \"cpu\": \"1\"\n"), "{message}");
}

//! The scale of an object: applied with owners and conflicts, and shown in the forms that clients ask for.

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use tiphys_apiserver::{ApiServer, ApiServerOptions};
use tiphys_value::{Value, json};
use tower::ServiceExt;

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const SCALE: &str = "/apis/apps/v1/namespaces/default/deployments/web/scale";

async fn ask(server: &ApiServer, method: &str, path: &str, headers: [&str; 2], body: &Value) -> (u16, Bytes) {
    let request = Request::builder().method(method).uri(path).header("user-agent", "kubectl/1");
    let request = request.header("content-type", headers[0]).header("accept", headers[1]);
    let text = if body.is_null() { String::new() } else { body.to_string() };
    let response =
        server.service().oneshot(request.body(Full::new(Bytes::from(text))).unwrap()).await.unwrap();
    let code = response.status().as_u16();
    (code, response.into_body().collect().await.unwrap().to_bytes())
}

async fn json_of(
    server: &ApiServer,
    method: &str,
    path: &str,
    headers: [&str; 2],
    body: &Value,
) -> (u16, Value) {
    let (code, bytes) = ask(server, method, path, headers, body).await;
    (code, serde_json::from_slice(&bytes).unwrap_or(Value::Null))
}

async fn with_deployment() -> ApiServer {
    let server = ApiServer::new(ApiServerOptions { seed: Some(1), ..ApiServerOptions::default() }).unwrap();
    let template =
        json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let spec = json!({"replicas": 2, "selector": {"matchLabels": {"a": "b"}}, "template": template});
    let body = json!({"metadata": {"name": "web"}, "spec": spec});
    let (code, _) = json_of(&server, "POST", DEPLOYMENTS, ["application/json", ""], &body).await;
    assert_eq!(code, 201);
    server
}

fn scale(replicas: i64) -> Value {
    json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "web"}, "spec": {"replicas": replicas}})
}

#[tokio::test]
async fn whoever_applies_a_scale_meets_its_owner() {
    let server = with_deployment().await;
    let apply = ["application/apply-patch+yaml", ""];
    let by = |options: &str| format!("{SCALE}?fieldManager=autoscaler{options}");
    let (code, refused) = json_of(&server, "PATCH", &by(""), apply, &scale(5)).await;
    assert_eq!(code, 409);
    let conflict =
        "Apply failed with 1 conflict: conflict with \"kubectl\" using autoscaling/v1: .spec.replicas";
    assert_eq!(refused["message"], conflict);
    let (code, taken) = json_of(&server, "PATCH", &by("&force=true"), apply, &scale(5)).await;
    assert_eq!((code, &taken["spec"]["replicas"]), (200, &json!(5)));
    // It is its own now, and nobody else owns it.
    let (code, _) = json_of(&server, "PATCH", &by(""), apply, &scale(7)).await;
    assert_eq!(code, 200);
    let (_, object) = json_of(&server, "GET", &format!("{DEPLOYMENTS}/web"), ["", ""], &Value::Null).await;
    assert_eq!(object["spec"]["replicas"], 7);
    let owners = object["metadata"]["managedFields"].as_array().unwrap();
    let owns = |entry: &&Value| entry["fieldsV1"]["f:spec"].get("f:replicas").is_some();
    let owners: Vec<&Value> = owners.iter().filter(owns).collect();
    assert_eq!(owners.len(), 1);
    let owner = owners[0];
    assert_eq!(
        (&owner["manager"], &owner["operation"], &owner["subresource"], &owner["apiVersion"]),
        (&json!("autoscaler"), &json!("Apply"), &json!("scale"), &json!("apps/v1"))
    );
}

#[tokio::test]
async fn a_scale_is_shown_as_a_table_and_as_yaml() {
    let server = with_deployment().await;
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    let (code, answer) = json_of(&server, "GET", SCALE, ["", table], &Value::Null).await;
    assert_eq!((code, &answer["kind"]), (200, &json!("Table")));
    let names: Vec<&str> = answer["columnDefinitions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|column| column["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["Name", "Desired", "Available", "Age"]);
    assert_eq!(answer["rows"][0]["cells"].as_array().unwrap()[..2], [json!("web"), json!(2)]);
    let (_, yaml) = ask(&server, "GET", SCALE, ["", "application/yaml"], &Value::Null).await;
    assert!(yaml.starts_with(b"apiVersion: autoscaling/v1\nkind: Scale\n"), "{yaml:?}");
}

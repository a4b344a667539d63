//! `kubectl logs`, `exec` and `top` where no program runs.

use http::Method;
use http_body_util::BodyExt;
use tiphys_apiserver::{ApiServer, ApiServerOptions};
use tiphys_value::{GroupVersionResource, Value, json};

use crate::api::{answer, send};

const PODS: &str = "/api/v1/namespaces/default/pods";

/// A pod on a node whose container ended once, with an event about it.
async fn cluster() -> ApiServer {
    let server = ApiServer::new(ApiServerOptions { seed: Some(1), ..ApiServerOptions::default() }).unwrap();
    let client = server.client("test");
    let gvr = |plural: &str| GroupVersionResource::new("", "v1", plural);
    let account = json!({"metadata": {"name": "default"}});
    client.create(&gvr("serviceaccounts"), "default", account).unwrap();
    let pod = json!({"metadata": {"name": "web"}, "spec": {"nodeName": "n", "containers": [{"name": "main", "image": "i"}, {"name": "side", "image": "i"}]}});
    let mut pod = client.create(&gvr("pods"), "default", pod).unwrap().value().clone();
    pod["status"]["containerStatuses"] = json!([
        {"name": "main", "image": "i", "imageID": "", "ready": false, "restartCount": 1,
         "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}},
         "lastState": {"terminated": {"exitCode": 3, "reason": "Error", "message": "panic: no database"}}},
        {"name": "side", "image": "i", "imageID": "", "ready": false, "restartCount": 0,
         "state": {"waiting": {"reason": "ContainerCreating"}}}
    ]);
    client.update_status(&gvr("pods"), pod.clone()).unwrap();
    let event = json!({"metadata": {"name": "web.1"}, "type": "Warning", "reason": "BackOff",
        "message": "Back-off restarting failed container", "lastTimestamp": "2026-01-02T03:04:05Z",
        "involvedObject": {"kind": "Pod", "namespace": "default", "name": "web", "uid": pod["metadata"]["uid"],
            "fieldPath": "spec.containers{main}"}});
    client.create(&gvr("events"), "default", event).unwrap();
    server
}

async fn text(server: &ApiServer, path: &str) -> (u16, String) {
    let response = send(server, Method::GET, path, "", "").await;
    let code = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (code, String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test]
async fn logs_say_what_is_known_of_a_program() {
    let server = cluster().await;
    let (code, log) = text(&server, &format!("{PODS}/web/log?container=main")).await;
    assert_eq!(code, 200, "{log}");
    let expected = "# 2026-01-02T03:04:05Z  Warning  BackOff: Back-off restarting failed container\npanic: no database\n# ended with code 3 (Error)\n";
    assert!(log.starts_with("# No program runs") && log.ends_with(expected), "{log}");
    let (_, tail) = text(&server, &format!("{PODS}/web/log?container=main&tailLines=1")).await;
    assert_eq!(tail, "# ended with code 3 (Error)\n");
    let (code, none) = text(&server, &format!("{PODS}/web/log?container=side")).await;
    assert_eq!(code, 400);
    assert!(none.contains("is waiting to start: ContainerCreating"), "{none}");
    let (_, choice) = text(&server, &format!("{PODS}/web/log")).await;
    assert!(choice.contains("a container name must be specified for pod web, choose one of: [main side]"));
    let (_, unknown) = text(&server, &format!("{PODS}/web/log?container=x")).await;
    assert!(unknown.contains("container x is not valid for pod web"), "{unknown}");
    let (_, previous) = text(&server, &format!("{PODS}/web/log?container=side&previous=true")).await;
    assert!(previous.contains("previous terminated container"), "{previous}");
}

#[tokio::test]
async fn exec_and_top_give_a_reason() {
    let server = cluster().await;
    let (code, body) = answer(&server, Method::POST, &format!("{PODS}/web/exec"), "", &Value::Null).await;
    assert_eq!(code, 405);
    assert!(
        body["message"].as_str().unwrap().starts_with("exec is not supported: no program runs"),
        "{body}"
    );
    let (code, body) = text(&server, "/apis/metrics.k8s.io/v1beta1/nodes").await;
    assert_eq!(code, 404);
    assert!(body.contains("nothing uses processors or memory"), "{body}");
}

use super::*;
use serde_json::json;

fn defaulted(api_version: &str, kind: &str, mut object: Value) -> Value {
    apply_defaults(&GroupVersionKind::from_api_version(api_version, kind), &mut object);
    object
}

#[test]
fn pull_policy_follows_the_tag() {
    for (image, expected) in [
        ("nginx", "Always"),
        ("nginx:latest", "Always"),
        ("nginx:1.2", "IfNotPresent"),
        ("host:5000/nginx", "Always"),
        ("host:5000/nginx:1", "IfNotPresent"),
        ("nginx@sha256:0", "IfNotPresent"),
    ] {
        let pod = defaulted("v1", "Pod", json!({"spec": {"containers": [{"image": image}]}}));
        assert_eq!(pod["spec"]["containers"][0]["imagePullPolicy"], expected, "{image}");
    }
}

#[test]
fn a_deployment_gets_its_strategy() {
    let object = defaulted("apps/v1", "Deployment", json!({"spec": {"strategy": {"type": "Recreate"}}}));
    assert_eq!(object["spec"]["strategy"], json!({"type": "Recreate"}));
    let object = defaulted("apps/v1", "Deployment", json!({"spec": {}}));
    assert_eq!(object["spec"]["replicas"], 1);
    assert_eq!(object["spec"]["strategy"]["rollingUpdate"]["maxSurge"], "25%");
}

#[test]
fn a_secrets_plain_data_is_encoded() {
    let secret = defaulted("v1", "Secret", json!({"stringData": {"a": "b"}, "data": {"c": "ZA=="}}));
    assert_eq!(secret, json!({"type": "Opaque", "data": {"a": "Yg==", "c": "ZA=="}}));
}

#[test]
fn a_parallel_job_has_no_completions() {
    let job = defaulted("batch/v1", "Job", json!({"spec": {"parallelism": 3}}));
    assert_eq!(job["spec"].get("completions"), None);
    let job = defaulted("batch/v1", "Job", json!({"spec": {}}));
    assert_eq!((&job["spec"]["completions"], &job["spec"]["backoffLimit"]), (&json!(1), &json!(6)));
}

#[test]
fn values_of_another_type_are_left_alone() {
    for kind in ["Deployment", "StatefulSet", "DaemonSet"] {
        for spec in [json!(null), json!([]), json!({"template": [], "strategy": 1, "updateStrategy": "x"})] {
            let object = defaulted("apps/v1", kind, json!({"spec": spec}));
            assert!(object.is_object());
        }
    }
}

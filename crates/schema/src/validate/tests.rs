use super::*;
use serde_json::json;

fn message(api_version: &str, kind: &str, mut object: Value) -> String {
    let gvk = GroupVersionKind::from_api_version(api_version, kind);
    crate::apply_defaults(&gvk, &mut object);
    validate_create(&gvk, &object).message()
}

#[test]
fn a_deployments_faults_come_in_the_servers_order() {
    let object = json!({"spec": {"selector": {"matchLabels": {"app": "a"}},
        "template": {"metadata": {"labels": {"app": "b"}}, "spec": {"containers": [{"name": "X"}]}}}});
    let expected = "[spec.template.metadata.labels: Invalid value: {\"app\":\"b\"}: `selector` does not match template `labels`, \
        spec.template.spec.containers[0].name: Invalid value: \"X\": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?'), \
        spec.template.spec.containers[0].image: Required value]";
    assert_eq!(message("apps/v1", "Deployment", object), expected);
}

#[test]
fn a_mount_needs_its_volume() {
    let object = json!({"spec": {"containers": [{"name": "a", "image": "b",
        "volumeMounts": [{"name": "v", "mountPath": "/"}]}]}});
    assert_eq!(message("v1", "Pod", object), "spec.containers[0].volumeMounts[0].name: Not found: \"v\"");
}

#[test]
fn requests_do_not_exceed_limits() {
    let object = json!({"spec": {"containers": [{"name": "a", "image": "b",
        "resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "2"}}}]}});
    let expected = "spec.containers[0].resources.requests: Invalid value: \"2\": must be less than or equal to cpu limit of 1";
    assert_eq!(message("v1", "Pod", object), expected);
}

#[test]
fn what_must_not_change_is_refused() {
    let update = |kind: (&str, &str), new: Value, old: Value| {
        let gvk = GroupVersionKind::from_api_version(kind.0, kind.1);
        validate_update(&gvk, &new, &old).message()
    };
    let (new, old) = (json!({"roleRef": {"name": "a"}}), json!({"roleRef": {"name": "b"}}));
    let found = update(("rbac.authorization.k8s.io/v1", "RoleBinding"), new, old);
    assert!(
        found.contains(
            "roleRef: Invalid value: {\"APIGroup\":\"\",\"Kind\":\"\",\"Name\":\"a\"}: cannot change"
        ),
        "{found}"
    );
    let (new, old) = (json!({"data": {"a": "b"}, "immutable": true}), json!({"data": {}, "immutable": true}));
    let expected = "data: Forbidden: field is immutable when `immutable` is set";
    assert_eq!(update(("v1", "ConfigMap"), new, old), expected);
}

#[test]
fn values_of_another_type_do_not_panic() {
    let kinds =
        [("v1", "Pod"), ("apps/v1", "Deployment"), ("v1", "Service"), ("networking.k8s.io/v1", "Ingress")];
    let others = [
        ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration"),
        ("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy"),
        ("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding"),
        ("v1", "ResourceQuota"),
        ("v1", "LimitRange"),
        ("v1", "PersistentVolume"),
        ("v1", "Endpoints"),
        ("discovery.k8s.io/v1", "EndpointSlice"),
        ("autoscaling/v2", "HorizontalPodAutoscaler"),
        ("networking.k8s.io/v1", "NetworkPolicy"),
        ("batch/v1", "CronJob"),
        ("storage.k8s.io/v1", "StorageClass"),
    ];
    for (api_version, kind) in others {
        for part in [
            json!(null),
            json!("x"),
            json!([1, {"a": []}]),
            json!({"hard": 1, "limits": ["x"], "metrics": [3], "capacity": "y"}),
        ] {
            let gvk = GroupVersionKind::from_api_version(api_version, kind);
            let object = json!({"spec": part, "webhooks": part, "subsets": part, "endpoints": part, "ports": part, "addressType": "IPv4"});
            // That it returns is what is looked at; some of these are valid.
            drop(validate_create(&gvk, &object));
        }
    }
    for (api_version, kind) in kinds {
        for spec in
            [json!(null), json!("x"), json!({"containers": 1, "template": [], "ports": {}, "rules": 3})]
        {
            let gvk = GroupVersionKind::from_api_version(api_version, kind);
            assert!(!validate_create(&gvk, &json!({"spec": spec})).is_empty(), "{kind}");
        }
    }
}

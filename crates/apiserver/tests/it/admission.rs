//! What may be written: rules in CEL, policies, quotas, limits, pod security, webhooks, escalation.

use std::time::Instant;

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use tiphys_apiserver::{ApiServer, ApiServerOptions, Client, Outbound, Patch};
use tiphys_value::{GroupVersionResource, ObjectExt, Value, json};
use tower::ServiceExt;

const ADMISSION: &str = "admissionregistration.k8s.io/v1";

fn gvr(api_version: &str, plural: &str) -> GroupVersionResource {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    GroupVersionResource::new(group, version, plural)
}

/// A server and a client, with a service account in the namespace `default`.
fn cluster() -> (ApiServer, Client) {
    let server = ApiServer::new(ApiServerOptions { seed: Some(1), ..ApiServerOptions::default() }).unwrap();
    let client = server.client("test");
    let account = json!({"metadata": {"name": "default"}});
    client.create(&gvr("v1", "serviceaccounts"), "default", account).unwrap();
    (server, client)
}

fn pod(name: &str, container: Value) -> Value {
    let mut one = json!({"name": "c", "image": "i"});
    one.as_object_mut().unwrap().extend(container.as_object().unwrap().clone());
    json!({"metadata": {"name": name}, "spec": {"containers": [one]}})
}

fn create(client: &Client, plural: &str, object: Value) -> Result<(), String> {
    let created = client.create(&gvr("v1", plural), "default", object);
    created.map(drop).map_err(|error| error.message().to_owned())
}

#[test]
fn rules_of_custom_resources_are_evaluated() {
    let (_server, client) = cluster();
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "min": {"type": "integer"}, "max": {"type": "integer"},
        "fixed": {"type": "string", "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "fixed is immutable"}]}},
        "x-kubernetes-validations": [{"rule": "self.min <= self.max", "messageExpression": "'min is %d'.format([self.min])"}]}}});
    let definition = |schema: Value| {
        json!({
        "metadata": {"name": "ranges.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "ranges", "kind": "Range"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]}})
    };
    let crds = gvr("apiextensions.k8s.io/v1", "customresourcedefinitions");
    let mut wrong = schema.clone();
    wrong["properties"]["spec"]["x-kubernetes-validations"][0]["rule"] = "self.mni <= self.max".into();
    let error = client.create(&crds, "", definition(wrong)).unwrap_err();
    assert!(error.message().contains("undefined field 'mni'"), "{error}");
    client.create(&crds, "", definition(schema)).unwrap();
    let ranges = gvr("example.com/v1", "ranges");
    let range = |min: i64| json!({"apiVersion": "example.com/v1", "kind": "Range", "metadata": {"name": "r"}, "spec": {"min": min, "max": 3, "fixed": "a"}});
    let error = client.create(&ranges, "default", range(5)).unwrap_err();
    assert_eq!(error.message(), "Range.example.com \"r\" is invalid: spec: Invalid value: min is 5");
    client.create(&ranges, "default", range(1)).unwrap();
    let change = Patch::merge(json!({"spec": {"fixed": "b"}}));
    let error = client.patch(&ranges, "default", "r", None, &change).unwrap_err();
    assert!(error.message().ends_with("spec.fixed: Invalid value: \"b\": fixed is immutable"), "{error}");
}

#[test]
fn a_policy_denies_and_warns() {
    let (_server, client) = cluster();
    let policy = json!({"metadata": {"name": "p"}, "spec": {
        "matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}]},
        "matchConditions": [{"name": "named", "expression": "object.metadata.name.startsWith('x')"}],
        "variables": [{"name": "size", "expression": "has(object.data) ? object.data.size() : 0"}],
        "validations": [{"expression": "variables.size < 2", "messageExpression": "'has ' + string(variables.size)"},
            {"expression": "authorizer.group('').resource('pods').check('create').allowed()"}]}});
    client.create(&gvr(ADMISSION, "validatingadmissionpolicies"), "", policy).unwrap();
    let map = |name: &str| json!({"metadata": {"name": name}, "data": {"a": "1", "b": "2"}});
    create(&client, "configmaps", map("x0")).unwrap();
    let binding =
        json!({"metadata": {"name": "b"}, "spec": {"policyName": "p", "validationActions": ["Deny"]}});
    client.create(&gvr(ADMISSION, "validatingadmissionpolicybindings"), "", binding).unwrap();
    create(&client, "configmaps", map("y")).unwrap();
    let why = create(&client, "configmaps", map("x1")).unwrap_err();
    assert_eq!(
        why,
        "configmaps \"x1\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: has 2"
    );
}

#[test]
fn a_policy_changes_what_is_written() {
    let (_server, client) = cluster();
    let policy = json!({"metadata": {"name": "m"}, "spec": {
        "matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}]},
        "variables": [{"name": "mark", "expression": "'by-' + object.metadata.name"}],
        "reinvocationPolicy": "Never",
        "mutations": [
            {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "Object{metadata: Object.metadata{labels: Object.metadata.labels{mark: variables.mark}}}"}},
            {"patchType": "JSONPatch", "jsonPatch": {"expression": "[JSONPatch{op: 'add', path: '/data', value: {'k': 'v'}}]"}}]}});
    client.create(&gvr(ADMISSION, "mutatingadmissionpolicies"), "", policy).unwrap();
    let binding = json!({"metadata": {"name": "m"}, "spec": {"policyName": "m"}});
    client.create(&gvr(ADMISSION, "mutatingadmissionpolicybindings"), "", binding).unwrap();
    let made =
        client.create(&gvr("v1", "configmaps"), "default", json!({"metadata": {"name": "x"}})).unwrap();
    assert_eq!(made["metadata"]["labels"], json!({"mark": "by-x"}));
    assert_eq!(made["data"], json!({"k": "v"}));
}

#[test]
fn events_count_for_no_quota() {
    let (_server, client) = cluster();
    let quota =
        json!({"metadata": {"name": "q"}, "spec": {"hard": {"count/events": "0", "count/configmaps": "0"}}});
    create(&client, "resourcequotas", quota).unwrap();
    let event = json!({"metadata": {"name": "e"}, "involvedObject": {"kind": "Pod", "namespace": "default", "name": "p"},
        "reason": "Started", "type": "Normal"});
    create(&client, "events", event).unwrap();
    create(&client, "configmaps", json!({"metadata": {"name": "c"}})).unwrap_err();
}

#[test]
fn a_quota_bounds_a_namespace_and_tells_its_use() {
    let (_server, client) = cluster();
    let quota = json!({"metadata": {"name": "q"}, "spec": {"hard": {"pods": "1", "requests.cpu": "1", "configmaps": "1"}}});
    create(&client, "resourcequotas", quota).unwrap();
    // In a cluster its controller takes over what is hard; the API server then keeps the account.
    let mut known = client.get(&gvr("v1", "resourcequotas"), "default", "q").unwrap().value().clone();
    known["status"] = json!({"hard": known["spec"]["hard"]});
    client.update_status(&gvr("v1", "resourcequotas"), known).unwrap();
    let why = create(&client, "pods", pod("none", json!({}))).unwrap_err();
    assert_eq!(why, "pods \"none\" is forbidden: failed quota: q: must specify requests.cpu for: c");
    let sized = |name: &str| pod(name, json!({"resources": {"requests": {"cpu": "500m"}}}));
    create(&client, "pods", sized("a")).unwrap();
    let why = create(&client, "pods", sized("b")).unwrap_err();
    assert_eq!(
        why,
        "pods \"b\" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1"
    );
    let found = client.get(&gvr("v1", "resourcequotas"), "default", "q").unwrap();
    assert_eq!(found["status"]["used"], json!({"pods": "1", "requests.cpu": "500m", "configmaps": "0"}));
}

/// A quota whose controller has taken it into the account.
fn counted_quota(client: &Client, name: &str, spec: Value) {
    create(client, "resourcequotas", json!({"metadata": {"name": name}, "spec": spec})).unwrap();
    let mut known = client.get(&gvr("v1", "resourcequotas"), "default", name).unwrap().value().clone();
    known["status"] = json!({"hard": known["spec"]["hard"]});
    client.update_status(&gvr("v1", "resourcequotas"), known).unwrap();
}

#[test]
fn the_account_follows_what_counts_of_an_update() {
    let (_server, client) = cluster();
    let pods = json!({"pods": "9"});
    counted_quota(&client, "all", json!({"hard": pods}));
    counted_quota(&client, "ends", json!({"hard": pods, "scopes": ["Terminating"]}));
    let used = |name: &str| {
        let quota = client.get(&gvr("v1", "resourcequotas"), "default", name).unwrap();
        quota.value()["status"]["used"]["pods"].clone()
    };
    create(&client, "pods", pod("a", json!({}))).unwrap();
    assert_eq!((used("all"), used("ends")), (json!("1"), json!("0")));
    let pod = || client.get(&gvr("v1", "pods"), "default", "a").unwrap().value().clone();
    let mut ends = pod();
    ends["spec"]["activeDeadlineSeconds"] = 60.into();
    client.update(&gvr("v1", "pods"), ends).unwrap();
    assert_eq!((used("all"), used("ends")), (json!("1"), json!("1")), "it is of another scope");
    let mut done = pod();
    done["status"] = json!({"phase": "Succeeded"});
    client.update_status(&gvr("v1", "pods"), done).unwrap();
    assert_eq!((used("all"), used("ends")), (json!("0"), json!("0")), "what has ended uses nothing");
}

#[test]
fn states_of_pods_are_written_without_counting_the_namespace() {
    const PODS: usize = 600;
    let time = |has_quota: bool| {
        let (_server, client) = cluster();
        for number in 0..PODS {
            create(&client, "pods", pod(&format!("p{number}"), json!({}))).unwrap();
        }
        if has_quota {
            counted_quota(&client, "q", json!({"hard": {"pods": "900"}}));
        }
        let start = Instant::now();
        for number in 0..PODS {
            let mut pod =
                client.get(&gvr("v1", "pods"), "default", &format!("p{number}")).unwrap().value().clone();
            pod["status"] = json!({"phase": "Running"});
            client.update_status(&gvr("v1", "pods"), pod).unwrap();
        }
        start.elapsed()
    };
    let (without, with) = (time(false), time(true));
    assert!(with < without * 6, "{without:?} without a quota, {with:?} with one");
}

#[test]
fn a_limit_range_fills_in_and_refuses() {
    let (_server, client) = cluster();
    let range = json!({"metadata": {"name": "l"}, "spec": {"limits": [{"type": "Container", "default": {"cpu": "1"}, "defaultRequest": {"cpu": "100m"}, "max": {"cpu": "2"}}]}});
    create(&client, "limitranges", range).unwrap();
    create(&client, "pods", pod("a", json!({}))).unwrap();
    let found = client.get(&gvr("v1", "pods"), "default", "a").unwrap();
    assert_eq!(
        found["spec"]["containers"][0]["resources"],
        json!({"limits": {"cpu": "1"}, "requests": {"cpu": "100m"}})
    );
    assert_eq!(
        found.annotation("kubernetes.io/limit-ranger"),
        Some("LimitRanger plugin set: cpu request for container c; cpu limit for container c")
    );
    let why = create(&client, "pods", pod("b", json!({"resources": {"limits": {"cpu": "3"}}}))).unwrap_err();
    assert_eq!(why, "pods \"b\" is forbidden: maximum cpu usage per Container is 2, but limit is 3");
}

#[test]
fn a_claim_grows_only_where_its_class_lets_it() {
    let (_server, client) = cluster();
    for (name, expands) in [("fixed", json!(null)), ("elastic", json!(true))] {
        let class = json!({"metadata": {"name": name}, "provisioner": "example.com/disk", "allowVolumeExpansion": expands});
        client.create(&gvr("storage.k8s.io/v1", "storageclasses"), "", class).unwrap();
    }
    let claims = gvr("v1", "persistentvolumeclaims");
    let grown = |class: &str, size: &str| {
        let name = format!("of-{class}");
        let claim = json!({"metadata": {"name": name}, "spec": {"accessModes": ["ReadWriteOnce"],
            "storageClassName": class, "volumeName": "v", "resources": {"requests": {"storage": "1Gi"}}}});
        drop(client.create(&claims, "default", claim));
        let bound = json!({"status": {"phase": "Bound", "capacity": {"storage": "1Gi"}}});
        client.patch(&claims, "default", &name, Some("status"), &Patch::merge(bound)).unwrap();
        let patch = json!({"spec": {"resources": {"requests": {"storage": size}}}});
        let patched = client.patch(&claims, "default", &name, None, &Patch::merge(patch));
        patched.map(drop).map_err(|error| error.message().to_owned())
    };
    assert!(grown("fixed", "2Gi").unwrap_err().contains("must support resize"));
    assert_eq!(grown("fixed", "1Gi"), Ok(()));
    assert_eq!(grown("elastic", "2Gi"), Ok(()));
    // Of a class that is not there nothing is known.
    assert_eq!(grown("elsewhere", "2Gi"), Ok(()));
}

#[test]
fn pod_security_follows_the_labels_of_a_namespace() {
    let (_server, client) = cluster();
    let label =
        Patch::merge(json!({"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "baseline"}}}));
    client.patch(&gvr("v1", "namespaces"), "", "default", None, &label).unwrap();
    create(&client, "pods", pod("a", json!({}))).unwrap();
    let why =
        create(&client, "pods", pod("b", json!({"securityContext": {"privileged": true}}))).unwrap_err();
    assert_eq!(
        why,
        "pods \"b\" is forbidden: violates PodSecurity \"baseline:latest\": privileged (container \"c\" must not set securityContext.privileged=true)"
    );
}

#[test]
fn an_unreachable_webhook_fails_as_its_policy_says() {
    let (_server, client) = cluster();
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let hook = |policy: &str| {
        json!({"metadata": {"name": "h"}, "webhooks": [{"name": "a.example.com", "sideEffects": "None",
        "admissionReviewVersions": ["v1"], "failurePolicy": policy, "timeoutSeconds": 1, "clientConfig": {"url": format!("https://{free}/x")},
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}]}]})
    };
    let hooks = gvr(ADMISSION, "validatingwebhookconfigurations");
    client.create(&hooks, "", hook("Fail")).unwrap();
    let why = create(&client, "configmaps", json!({"metadata": {"name": "a"}})).unwrap_err();
    assert_eq!(
        why,
        format!(
            "Internal error occurred: failed calling webhook \"a.example.com\": failed to call webhook: Post \"https://{free}/x?timeout=1s\": dial tcp {free}: connect: connection refused"
        )
    );
    client
        .patch(&hooks, "", "h", None, &Patch::merge(json!({"webhooks": hook("Ignore")["webhooks"]})))
        .unwrap();
    create(&client, "configmaps", json!({"metadata": {"name": "a"}})).unwrap();
}

/// A request as a user; returns code and body.
async fn send_as(server: &ApiServer, user: &str, method: Method, path: &str, body: Value) -> (u16, Value) {
    let request = Request::builder().method(method).uri(path).header("impersonate-user", user);
    let request = request.header("content-type", "application/json");
    let request = request.body(Full::new(Bytes::from(body.to_string()))).unwrap();
    let response = server.service().oneshot(request).await.unwrap();
    let code = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (code, serde_json::from_slice(&body).unwrap())
}

#[tokio::test]
async fn nobody_grants_what_they_do_not_hold() {
    let (server, client) = cluster();
    let rbac = "rbac.authorization.k8s.io/v1";
    let role = json!({"metadata": {"name": "roles"}, "rules": [{"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles"], "verbs": ["create"]}]});
    client.create(&gvr(rbac, "clusterroles"), "", role).unwrap();
    let binding = json!({"metadata": {"name": "ann"}, "subjects": [{"kind": "User", "name": "ann"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "roles"}});
    client.create(&gvr(rbac, "clusterrolebindings"), "", binding).unwrap();
    let grant = json!({"metadata": {"name": "r"}, "rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]});
    let path = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles";
    let (code, body) = send_as(&server, "ann", Method::POST, path, grant).await;
    assert_eq!(code, 403);
    let message = body["message"].as_str().unwrap();
    assert!(message.ends_with("is attempting to grant RBAC permissions not currently held:\n{APIGroups:[\"\"], Resources:[\"secrets\"], Verbs:[\"get\"]}"), "{message}");
}

#[tokio::test]
async fn malformed_bodies_are_refused_and_nothing_else() {
    let (server, _client) = cluster();
    let deep = format!("{}1{}", "[".repeat(5000), "]".repeat(5000));
    let wide = format!(
        "{{\"metadata\":{{\"name\":\"a\",\"labels\":{{{}}}}}}}",
        vec!["\"a\":\"b\""; 20_000].join(",")
    );
    let bodies = [
        "",
        "{",
        "[]",
        "\"x\"",
        "null",
        "{\"metadata\":[]}",
        "{\"metadata\":{\"name\":5}}",
        "{\"data\":{\"a\":{}}}",
        deep.as_str(),
        wide.as_str(),
        "\u{0}",
        "{\"kind\":\"Pod\"}",
    ];
    let paths = [
        "/api/v1/namespaces/default/configmaps",
        "/api/v1/namespaces/default/pods",
        "/apis/apps/v1/namespaces/default/deployments",
    ];
    let kinds = [
        "application/json",
        "application/yaml",
        "application/vnd.kubernetes.protobuf",
        "application/merge-patch+json",
        "x",
    ];
    for path in paths {
        for body in bodies {
            for kind in kinds {
                for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
                    let request = Request::builder()
                        .method(method)
                        .uri(format!("{path}/n?fieldManager=m&labelSelector={}", "a,".repeat(500)));
                    let request = request
                        .header("content-type", kind)
                        .body(Full::new(Bytes::from(body.to_owned())))
                        .unwrap();
                    let response = server.service().oneshot(request).await.unwrap();
                    assert!(response.status().as_u16() >= 400, "{path} {kind} {body:.60}");
                }
            }
        }
    }
}

/// A server on which `ann` may write cluster roles, and holds nothing else.
fn with_an_editor_of_roles() -> (ApiServer, Client) {
    let (server, client) = cluster();
    let rbac = "rbac.authorization.k8s.io/v1";
    let role = json!({"metadata": {"name": "ed"}, "rules": [{"apiGroups": ["rbac.authorization.k8s.io"],
        "resources": ["clusterroles"], "verbs": ["get", "list", "create", "update", "patch"]}]});
    client.create(&gvr(rbac, "clusterroles"), "", role).unwrap();
    let binding = json!({"metadata": {"name": "ed"}, "subjects": [{"kind": "User", "name": "ann"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "ed"}});
    client.create(&gvr(rbac, "clusterrolebindings"), "", binding).unwrap();
    (server, client)
}

#[tokio::test]
async fn who_does_not_hold_everything_aggregates_nothing() {
    let (server, client) = with_an_editor_of_roles();
    let path = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    let mut own = send_as(&server, "ann", Method::GET, &format!("{path}/ed"), Value::Null).await.1;
    own["aggregationRule"] = json!({"clusterRoleSelectors": [{}]});
    let (code, body) = send_as(&server, "ann", Method::PUT, &format!("{path}/ed"), own.clone()).await;
    assert_eq!(code, 403, "{body}");
    let message = body["message"].as_str().unwrap();
    assert!(message.ends_with("must have cluster-admin privileges to use the aggregationRule"), "{message}");
    let fresh = json!({"metadata": {"name": "fresh"}, "aggregationRule": {"clusterRoleSelectors": [{}]}});
    assert_eq!(send_as(&server, "ann", Method::POST, path, fresh).await.0, 403);
    let secrets = "/api/v1/secrets";
    assert_eq!(send_as(&server, "ann", Method::GET, secrets, Value::Null).await.0, 403);
    // The administrator may, and nobody else may loosen it afterwards.
    let rbac = gvr("rbac.authorization.k8s.io/v1", "clusterroles");
    let gathered = json!({"metadata": {"name": "gathered"}, "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}});
    client.create(&rbac, "", gathered).unwrap();
    let path = format!("{path}/gathered");
    let mut loose = send_as(&server, "ann", Method::GET, &path, Value::Null).await.1;
    loose.as_object_mut().unwrap().remove("aggregationRule");
    assert_eq!(send_as(&server, "ann", Method::PUT, &path, loose).await.0, 403);
}

#[tokio::test]
async fn a_label_that_puts_a_role_into_another_grants_its_rules() {
    let (server, client) = with_an_editor_of_roles();
    let strong = json!({"metadata": {"name": "strong"}, "rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]});
    client.create(&gvr("rbac.authorization.k8s.io/v1", "clusterroles"), "", strong).unwrap();
    let path = "/apis/rbac.authorization.k8s.io/v1/clusterroles/strong";
    let mut labelled = send_as(&server, "ann", Method::GET, path, Value::Null).await.1;
    labelled["metadata"]["labels"] = json!({"rbac.authorization.k8s.io/aggregate-to-view": "true"});
    let (code, body) = send_as(&server, "ann", Method::PUT, path, labelled).await;
    assert_eq!(code, 403, "{body}");
}

/// A request with a token; returns code and body.
async fn send_with(server: &ApiServer, token: &str, path: &str) -> u16 {
    let request = Request::builder().uri(path).header("authorization", format!("Bearer {token}"));
    let request = request.body(Full::new(Bytes::new())).unwrap();
    server.authenticated_service().oneshot(request).await.unwrap().status().as_u16()
}

/// A token of `default/default`.
async fn token(server: &ApiServer, spec: Value) -> String {
    let path = "/api/v1/namespaces/default/serviceaccounts/default/token";
    let (code, body) = send_as(server, "kubernetes-admin", Method::POST, path, json!({"spec": spec})).await;
    assert_eq!(code, 201, "{body}");
    body["status"]["token"].as_str().unwrap().to_owned()
}

/// A server on which everybody may ask for tokens and reviews.
fn with_tokens() -> (ApiServer, Client) {
    let (server, client) = cluster();
    let rbac = "rbac.authorization.k8s.io/v1";
    let binding = json!({"metadata": {"name": "all"}, "subjects": [{"kind": "User", "name": "kubernetes-admin"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}});
    client.create(&gvr(rbac, "clusterrolebindings"), "", binding).unwrap();
    (server, client)
}

async fn reviewed(server: &ApiServer, token: &str, audiences: Value) -> Value {
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview",
        "spec": {"token": token, "audiences": audiences}});
    let path = "/apis/authentication.k8s.io/v1/tokenreviews";
    send_as(server, "kubernetes-admin", Method::POST, path, review).await.1["status"].clone()
}

#[tokio::test]
async fn a_token_for_another_audience_opens_nothing_here() {
    let (server, _client) = with_tokens();
    let (ours, others) =
        (token(&server, json!({})).await, token(&server, json!({"audiences": ["vault", "b"]})).await);
    assert_eq!(send_with(&server, &ours, "/apis").await, 200);
    assert_eq!(send_with(&server, &others, "/apis").await, 401);
    let issuer = "https://kubernetes.default.svc";
    let status = reviewed(&server, &ours, json!([])).await;
    assert_eq!((&status["authenticated"], &status["audiences"]), (&json!(true), &json!([issuer])));
    let status = reviewed(&server, &others, json!(["b", "c"])).await;
    assert_eq!((&status["authenticated"], &status["audiences"]), (&json!(true), &json!(["b"])));
    let status = reviewed(&server, &others, json!(null)).await;
    assert_ne!(status["authenticated"], json!(true));
    let why = status["error"].as_str().unwrap();
    assert!(
        why.contains(&format!("[\"vault\" \"b\"] is invalid for the target audiences [\"{issuer}\"]")),
        "{why}"
    );
}

#[tokio::test]
async fn a_token_ends_with_the_pod_that_it_is_bound_to() {
    let (server, client) = with_tokens();
    create(&client, "pods", pod("p", json!({}))).unwrap();
    let bound = json!({"boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": "p"}});
    let token = token(&server, bound).await;
    assert_eq!(send_with(&server, &token, "/apis").await, 200);
    let path = "/api/v1/namespaces/default/pods/p?gracePeriodSeconds=0";
    assert_eq!(send_as(&server, "kubernetes-admin", Method::DELETE, path, json!({})).await.0, 200);
    assert_eq!(send_with(&server, &token, "/apis").await, 401);
    // Another pod of that name is another pod.
    create(&client, "pods", pod("p", json!({}))).unwrap();
    assert_eq!(send_with(&server, &token, "/apis").await, 401);
}

#[tokio::test]
async fn a_server_that_calls_nobody_outside_dials_no_webhook() {
    let options =
        ApiServerOptions { seed: Some(1), outbound: Outbound::Refuse, ..ApiServerOptions::default() };
    let server = ApiServer::new(options).unwrap();
    let client = server.client("test");
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let url = format!("https://{}/x", listener.local_addr().unwrap());
    let hook = json!({"metadata": {"name": "h"}, "webhooks": [{"name": "a.example.com", "sideEffects": "None",
        "admissionReviewVersions": ["v1"], "clientConfig": {"url": url},
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}]}]});
    client.create(&gvr(ADMISSION, "validatingwebhookconfigurations"), "", hook).unwrap();
    let error = create(&client, "configmaps", json!({"metadata": {"name": "a"}})).unwrap_err();
    assert!(error.contains("nothing outside of this cluster is called"), "{error}");
    assert!(listener.accept().is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock));
}

#[tokio::test]
async fn what_grows_out_of_a_small_body_is_too_large() {
    let (server, client) = cluster();
    create(&client, "configmaps", json!({"metadata": {"name": "a"}, "data": {"k": "x".repeat(100)}}))
        .unwrap();
    let send = async |kind: &str, body: String| {
        let path = "/api/v1/namespaces/default/configmaps/a?fieldManager=m";
        let request = Request::builder().method(Method::PATCH).uri(path).header("content-type", kind);
        let request = request.body(Full::new(Bytes::from(body))).unwrap();
        server.service().oneshot(request).await.unwrap().status().as_u16()
    };
    let copies: Vec<Value> =
        (0..40).map(|at| json!({"op": "copy", "from": "/data", "path": format!("/data/a{at}")})).collect();
    assert_eq!(send("application/json-patch+json", Value::from(copies).to_string()).await, 413);
    let aliases = format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a}}\ns: &s \"{}\"\nd: [{}1]\n",
        "x".repeat(100_000),
        "*s,".repeat(20_000)
    );
    assert_eq!(send("application/apply-patch+yaml", aliases).await, 413);
}

//! Whatever is sent to the API gets an answer of HTTP and a Status that can be read: never a panic.

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use proptest::prelude::*;
use tiphys_apiserver::{ApiServer, ApiServerOptions};
use tiphys_value::{Value, json};
use tower::ServiceExt;

const PATHS: &[&str] = &[
    "/api/v1/namespaces/default/configmaps",
    "/api/v1/namespaces/default/configmaps/a",
    "/api/v1/namespaces/default/pods",
    "/api/v1/namespaces/default/pods/p",
    "/api/v1/namespaces/default/pods/p/status",
    "/api/v1/namespaces/default/pods/p/eviction",
    "/api/v1/namespaces/default/pods/p/binding",
    "/api/v1/namespaces/default/pods/p/log",
    "/api/v1/namespaces/default/services",
    "/api/v1/namespaces/default/services/s",
    "/api/v1/namespaces/default/serviceaccounts/default/token",
    "/api/v1/namespaces/default/finalize",
    "/apis/apps/v1/namespaces/default/deployments",
    "/apis/apps/v1/namespaces/default/deployments/d",
    "/apis/apps/v1/namespaces/default/deployments/d/scale",
    "/apis/batch/v1/namespaces/default/jobs",
    "/apis/batch/v1/namespaces/default/cronjobs",
    "/apis/networking.k8s.io/v1/namespaces/default/ingresses",
    "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies",
    "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
    "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
    "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers",
    "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
    "/apis/example.com/v1/namespaces/default/widgets",
    "/apis/example.com/v1/namespaces/default/widgets/w",
    "/openapi/v2",
    "/openapi/v3/apis/apps/v1",
    "/apis",
    "/version",
];

const QUERIES: &[&str] = &[
    "dryRun",
    "fieldManager",
    "force",
    "fieldValidation",
    "labelSelector",
    "fieldSelector",
    "limit",
    "continue",
    "resourceVersion",
    "resourceVersionMatch",
    "propagationPolicy",
    "gracePeriodSeconds",
    "timeoutSeconds",
    "allowWatchBookmarks",
    "sendInitialEvents",
    "pretty",
    "includeObject",
];

const TYPES: &[&str] = &[
    "application/json",
    "application/yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
    "application/vnd.kubernetes.protobuf",
    "application/cbor",
    "text/plain; charset=utf-8",
];

const ACCEPTED: &[&str] = &[
    "application/json",
    "application/json;as=Table;v=v1;g=meta.k8s.io",
    "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
    "application/vnd.kubernetes.protobuf",
    "application/yaml",
    "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
];

/// Words of the API, so that what is generated gets past the first check.
const WORDS: &[&str] = &[
    "a",
    "p",
    "s",
    "d",
    "w",
    "",
    "default",
    "v1",
    "Pod",
    "Deployment",
    "kind",
    "apiVersion",
    "metadata",
    "name",
    "namespace",
    "labels",
    "annotations",
    "finalizers",
    "ownerReferences",
    "uid",
    "resourceVersion",
    "generateName",
    "managedFields",
    "spec",
    "status",
    "replicas",
    "selector",
    "matchLabels",
    "matchExpressions",
    "template",
    "containers",
    "image",
    "ports",
    "containerPort",
    "protocol",
    "port",
    "targetPort",
    "volumes",
    "volumeMounts",
    "resources",
    "requests",
    "limits",
    "cpu",
    "memory",
    "1Gi",
    "100m",
    "1e400",
    "-1",
    "env",
    "valueFrom",
    "schedule",
    "*/5 * * * *",
    "rules",
    "verbs",
    "group",
    "names",
    "plural",
    "versions",
    "schema",
    "openAPIV3Schema",
    "properties",
    "type",
    "x-kubernetes-validations",
    "rule",
    "self.a == 1",
    "expression",
    "op",
    "path",
    "value",
    "add",
    "remove",
    "replace",
    "test",
    "/metadata/labels/a",
    "/spec/0/-",
    "$patch",
    "$setElementOrder/containers",
    "$retainKeys",
    "app in (a,b),!c",
    "metadata.name=a",
    "2026-01-01T00:00:00Z",
];

fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => prop::sample::select(WORDS).prop_map(str::to_owned),
        1 => ".{0,12}",
    ]
}

/// JSON of the API's words, with numbers at the edges.
fn tree() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        prop::sample::select(vec![0, 1, -1, 65536, i64::MAX, i64::MIN]).prop_map(Value::from),
        Just(json!(1e300)),
        word().prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 48, 6, |inner| {
        prop_oneof![
            2 => prop::collection::btree_map(word(), inner.clone(), 0..6).prop_map(|map| json!(map)),
            1 => prop::collection::vec(inner, 0..4).prop_map(Value::from),
        ]
    })
}

/// A valid object, with which something was done.
fn object() -> impl Strategy<Value = Value> {
    let meta = |name: &str| json!({"name": name, "labels": {"a": "b"}});
    let pod = json!({"containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 80}]}]});
    let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": pod});
    let valid = vec![
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta("a"), "data": {"k": "v"}}),
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": meta("p"), "spec": pod}),
        json!({"apiVersion": "v1", "kind": "Service", "metadata": meta("s"), "spec": {"selector": {"a": "b"}, "ports": [{"port": 80}]}}),
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta("d"), "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template}}),
        json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": meta("j"), "spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": template}}}}),
        json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": meta("w"), "spec": {"size": 1}}),
        widgets(),
    ];
    let place = (prop::collection::vec(any::<prop::sample::Index>(), 1..6), tree());
    (prop::sample::select(valid), prop::collection::vec(place, 0..3)).prop_map(|(mut object, changes)| {
        for (steps, value) in changes {
            graft(&mut object, &steps, value);
        }
        object
    })
}

/// Puts a value somewhere inside another.
fn graft(object: &mut Value, steps: &[prop::sample::Index], value: Value) {
    let Some((step, rest)) = steps.split_first() else {
        *object = value;
        return;
    };
    match object {
        Value::Object(map) if !map.is_empty() => {
            let at = step.index(map.len());
            if let Some((_, inner)) = map.iter_mut().nth(at) {
                graft(inner, rest, value);
            }
        }
        Value::Array(list) if !list.is_empty() => {
            let at = step.index(list.len());
            graft(&mut list[at], rest, value);
        }
        other => *other = value,
    }
}

fn body() -> impl Strategy<Value = Vec<u8>> {
    let text = prop_oneof![
        4 => object().prop_map(|value| value.to_string().into_bytes()),
        2 => tree().prop_map(|value| value.to_string().into_bytes()),
        1 => prop::collection::vec(tree(), 0..4).prop_map(|list| json!(list).to_string().into_bytes()),
        1 => prop::collection::vec(any::<u8>(), 0..64),
        1 => prop::collection::vec(any::<u8>(), 0..64).prop_map(|bytes| [b"k8s\0".to_vec(), bytes].concat()),
    ];
    // Some are cut off, some have a byte changed.
    (text, prop::option::weighted(0.2, (any::<prop::sample::Index>(), any::<u8>(), any::<bool>()))).prop_map(
        |(mut text, damage)| {
            if let Some((at, byte, is_cut)) = damage.filter(|_| !text.is_empty()) {
                let at = at.index(text.len());
                text[at] = byte;
                if is_cut {
                    text.truncate(at);
                }
            }
            text
        },
    )
}

fn path() -> impl Strategy<Value = String> {
    prop_oneof![
        9 => prop::sample::select(PATHS).prop_map(str::to_owned),
        1 => prop::collection::vec("[a-zA-Z0-9%._~-]{0,8}", 0..9).prop_map(|parts| format!("/{}", parts.join("/"))),
    ]
}

fn query() -> impl Strategy<Value = String> {
    let value = prop_oneof![
        word().prop_map(|word| percent(&word)),
        prop::sample::select(vec![
            "All",
            "true",
            "Strict",
            "Background",
            "Orphan",
            "0",
            "1",
            "-1",
            "99999999999999999999",
            "%ff",
            "NotOlderThan"
        ])
        .prop_map(str::to_owned),
    ];
    let pair = (prop::sample::select(QUERIES), value).prop_map(|(name, value)| format!("{name}={value}"));
    prop::collection::vec(pair, 0..4).prop_map(|pairs| pairs.join("&"))
}

fn percent(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

fn widgets() -> Value {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}, "scale": {
                "specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object",
                    "properties": {"size": {"type": "integer", "default": 3}},
                    "x-kubernetes-validations": [{"rule": "self.size < 10 || self.size > oldSelf.size"}]},
                    "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}}}]}})
}

/// Sends a request; returns the code and the body.
async fn send(server: &ApiServer, request: Request<Full<Bytes>>) -> (u16, Bytes) {
    let response = server.service().oneshot(request).await.unwrap();
    let code = response.status().as_u16();
    (code, response.into_body().collect().await.unwrap().to_bytes())
}

/// A server on which the paths above lead somewhere.
async fn prepared() -> ApiServer {
    let server = ApiServer::new(ApiServerOptions { seed: Some(1), ..ApiServerOptions::default() }).unwrap();
    let template =
        json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let objects = [
        ("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", widgets()),
        ("/api/v1/namespaces/default/serviceaccounts", json!({"metadata": {"name": "default"}})),
        ("/api/v1/namespaces/default/configmaps", json!({"metadata": {"name": "a"}, "data": {"k": "v"}})),
        ("/api/v1/namespaces/default/pods", json!({"metadata": {"name": "p"}, "spec": template["spec"]})),
        (
            "/apis/apps/v1/namespaces/default/deployments",
            json!({"metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template}}),
        ),
        (
            "/apis/example.com/v1/namespaces/default/widgets",
            json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"size": 1}}),
        ),
    ];
    for (path, object) in objects {
        let request = Request::post(path).header("content-type", "application/json");
        let request = request.body(Full::new(Bytes::from(object.to_string()))).unwrap();
        let (code, body) = send(&server, request).await;
        assert_eq!(code, 201, "{}", String::from_utf8_lossy(&body));
    }
    server
}

fn method() -> impl Strategy<Value = Method> {
    prop::sample::select(vec![
        Method::POST,
        Method::PUT,
        Method::PATCH,
        Method::PATCH,
        Method::GET,
        Method::DELETE,
        Method::HEAD,
        Method::OPTIONS,
    ])
}

/// How many sequences are sent: a few hundred, or as many as `PROPTEST_CASES` says.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|number| number.parse().ok()).unwrap_or(400)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), max_shrink_iters: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_request_is_answered(
        requests in prop::collection::vec(
            (method(), path(), query(), prop::sample::select(TYPES), prop::sample::select(ACCEPTED), body()),
            1..4,
        ),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let server = SERVER.get_or_init(prepared).await.fork();
            for (method, path, query, kind, accepted, body) in requests {
                let request = Request::builder()
                    .method(method.clone())
                    .uri(format!("{path}?{query}"))
                    .header("content-type", kind)
                    .header("accept", accepted)
                    .body(Full::new(Bytes::from(body)))
                    .unwrap();
                let (code, answer) = send(&server, request).await;
                // Paths of nothing are answered in plain text, as the real server does.
                let is_plain = code == 404 && answer.starts_with(b"404 page not found");
                if code >= 400 && !is_plain && accepted.starts_with("application/json") && method != Method::HEAD {
                    let status: Value = serde_json::from_slice(&answer).unwrap();
                    assert_eq!((&status["kind"], &status["code"]), (&json!("Status"), &json!(code)));
                }
            }
        });
    }
}

static SERVER: tokio::sync::OnceCell<ApiServer> = tokio::sync::OnceCell::const_new();

#[tokio::test]
async fn what_is_too_much_is_refused() {
    let server = prepared().await;
    let maps = "/api/v1/namespaces/default/configmaps";
    let selector = |term: &str, times: usize| vec![term; times].join(",");
    let nested = format!("{}{}", "{\"a\":".repeat(200_000), "1");
    let many = format!("[{}]", vec![r#"{"op":"test","path":"/a","value":1}"#; 10_001].join(","));
    let yaml = format!("a: {}", "[".repeat(200_000));
    let bomb = (1..40).fold("a0: &a0 [x]\n".to_owned(), |text, n| {
        format!(
            "{text}a{n}: &a{n} [*a{m}, *a{m}, *a{m}, *a{m}, *a{m}, *a{m}, *a{m}, *a{m}, *a{m}]\n",
            m = n - 1
        )
    });
    let sent: [(&str, String, &str, String, &[u16]); 9] = [
        ("GET", format!("{maps}?labelSelector={}", selector("a%3Db", 9_000)), "", String::new(), &[200]),
        ("GET", format!("{maps}?labelSelector={}", "(".repeat(60_000)), "", String::new(), &[400]),
        (
            "GET",
            format!("{maps}?fieldSelector={}", selector("metadata.name%3Db", 3_000)),
            "",
            String::new(),
            &[200],
        ),
        ("GET", format!("{maps}?continue={}", "A".repeat(60_000)), "", String::new(), &[400, 410]),
        ("POST", maps.to_owned(), "application/json", nested, &[400]),
        ("POST", maps.to_owned(), "application/yaml", yaml, &[400]),
        ("POST", maps.to_owned(), "application/yaml", bomb, &[400]),
        ("PATCH", format!("{maps}/a"), "application/json-patch+json", many, &[413]),
        ("POST", maps.to_owned(), "application/json", " ".repeat(3 * 1024 * 1024 + 1), &[413]),
    ];
    for (method, path, kind, body, codes) in sent {
        let request = Request::builder().method(method).uri(&path).header("content-type", kind);
        let request = request.body(Full::new(Bytes::from(body))).unwrap();
        let (code, answer) = send(&server, request).await;
        let answer: String = String::from_utf8_lossy(&answer).chars().take(300).collect();
        assert!(codes.contains(&code), "{method} {}: {code} {answer}", &path[..path.len().min(80)]);
    }
}

//! Operators and programs that are known without being told.

use tiphys_health::HealthSettings;
use tiphys_model::HealthCode;
use tiphys_value::{GroupVersionResource, Value, json};
use tiphys_world::Behaviours;

use crate::support::{Cluster, MINUTE, pods, resource};

/// Defines a kind whose objects may hold anything.
pub(crate) fn define(cluster: &Cluster, group: &str, kind: &str) -> GroupVersionResource {
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    define_as(cluster, group, kind, json!({"openAPIV3Schema": any}))
}

/// Defines a kind with a schema.
fn define_as(cluster: &Cluster, group: &str, kind: &str, schema: Value) -> GroupVersionResource {
    let plural = format!("{}s", kind.to_lowercase());
    let version = json!({"name": "v1", "served": true, "storage": true, "schema": schema, "subresources": {"status": {}}});
    let names = json!({"plural": plural, "singular": kind.to_lowercase(), "kind": kind, "listKind": format!("{kind}List")});
    cluster.create(
        &resource("apiextensions.k8s.io", "v1", "customresourcedefinitions"),
        json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.{group}")},
            "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": [version]}}),
    );
    resource(group, "v1", &plural)
}

fn pod(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "shop"}, "spec": spec})
}

fn phase(cluster: &Cluster, name: &str) -> String {
    let pod = cluster.get(&pods(), "shop", name).unwrap();
    pod["status"]["phase"].as_str().unwrap_or_default().to_owned()
}

/// A spec with what any of the operators reads.
fn spec() -> Value {
    json!({
        "replicas": 1, "instances": 1, "secretName": "certificate", "destination": {"name": "vault"},
        "issuerRef": {"kind": "ClusterIssuer", "name": "clusterissuer"},
        "nodeSets": [{"name": "default", "count": 1}],
        "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "web", "image": "web"}]}},
    })
}

#[test]
fn every_operator_brings_its_kind_to_health_once_its_pods_are_there() {
    let mut cluster = Cluster::new();
    let operators = Behaviours::builtin().operators;
    let mut made = Vec::new();
    for operator in &operators {
        let kind = define(&cluster, &operator.group, &operator.kind);
        let name = operator.kind.to_lowercase();
        let object = json!({"apiVersion": format!("{}/v1", operator.group), "kind": operator.kind,
            "metadata": {"name": name, "namespace": "shop"}, "spec": spec()});
        cluster.create(&kind, object);
        made.push((kind, name));
    }
    cluster.run(MINUTE);
    for (kind, name) in &made {
        let object = cluster.get(kind, "shop", name).unwrap();
        assert!(object.get("status").is_none(), "{kind:?} has a status, and nobody to write it");
    }
    for (number, operator) in operators.iter().enumerate() {
        let image = operator.image.as_ref().unwrap().text().replace('*', "x");
        let containers = json!([{"name": "operator", "image": image}]);
        cluster.create(&pods(), pod(&format!("operator-{number}"), json!({"containers": containers})));
    }
    cluster.run(2 * MINUTE);
    for (kind, name) in &made {
        let object = cluster.get(kind, "shop", name).unwrap();
        let health = tiphys_health::assess(&object, &HealthSettings::default());
        let is_healthy = health.as_ref().is_none_or(|health| health.status == HealthCode::Healthy);
        assert!(is_healthy, "{name}: {health:?} {}", object["status"]);
    }
}

#[test]
fn a_status_has_the_form_that_the_definition_demands() {
    let mut cluster = Cluster::new();
    let text = json!({"type": "string"});
    let condition = json!({"type": "object", "required": ["lastUpdateTime", "type"], "properties":
        {"type": text, "status": text, "reason": text, "message": text, "lastTransitionTime": text, "lastUpdateTime": {"type": "string", "format": "date-time"}}});
    let status = json!({"type": "object", "required": ["paused"], "properties": {"paused": {"type": "boolean"}, "phase": text,
        "observedGeneration": text, "conditions": {"type": "array", "items": condition}}});
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let schema =
        json!({"openAPIV3Schema": {"type": "object", "properties": {"spec": any, "status": status}}});
    let kind = define_as(&cluster, "argoproj.io", "Rollout", schema);
    let object = json!({"apiVersion": "argoproj.io/v1", "kind": "Rollout", "metadata": {"name": "web", "namespace": "shop"}, "spec": spec()});
    cluster.create(&kind, object);
    let containers = json!([{"name": "c", "image": "argoproj/argo-rollouts:v1"}]);
    cluster.create(&pods(), pod("operator", json!({"containers": containers})));
    cluster.run(2 * MINUTE);
    let object = cluster.get(&kind, "shop", "web").unwrap();
    let status = &object["status"];
    assert_eq!(
        (&status["phase"], &status["observedGeneration"]),
        (&json!("Healthy"), &json!("1")),
        "{status}"
    );
    assert_eq!(status["paused"], false, "{status}");
    assert!(status["conditions"][0]["lastUpdateTime"].is_string(), "{status}");
}

#[test]
fn secrets_that_operators_make_are_valid_whatever_their_type() {
    let mut cluster = Cluster::new();
    let kind = define(&cluster, "external-secrets.io", "ExternalSecret");
    let types = ["dockerconfigjson", "dockercfg", "tls", "ssh-auth", "basic-auth"];
    for name in types {
        let template = json!({"type": format!("kubernetes.io/{name}"), "data": {"x": "{{ .x }}"}});
        cluster.create(
            &kind,
            json!({"apiVersion": "external-secrets.io/v1", "kind": "ExternalSecret", "metadata": {"name": name, "namespace": "shop"},
                "spec": {"target": {"template": template}, "dataFrom": [{"extract": {"key": "all"}}]}}),
        );
    }
    let operator = json!({"containers": [{"name": "c", "image": "external-secrets/external-secrets:v1"}]});
    cluster.create(&pods(), pod("operator", operator));
    cluster.run(MINUTE);
    for name in types {
        let object = cluster.get(&kind, "shop", name).unwrap();
        assert_eq!(object["status"]["conditions"][0]["status"], "True", "{object}");
        let secret = cluster.get(&resource("", "v1", "secrets"), "shop", name).unwrap();
        assert_eq!(secret["type"], format!("kubernetes.io/{name}"));
    }
}

#[test]
fn a_job_makes_the_certificate_that_a_webhook_mounts() {
    let mut cluster = Cluster::new();
    let volume = json!([{"name": "tls", "secret": {"secretName": "admission", "items": [{"key": "cert", "path": "c"}]}}]);
    cluster.create(
        &pods(),
        pod("webhook", json!({"containers": [{"name": "c", "image": "webhook"}], "volumes": volume})),
    );
    cluster.run(MINUTE);
    assert_eq!(phase(&cluster, "webhook"), "Pending");
    let certgen = |args: Value| json!({"restartPolicy": "Never", "containers": [{"name": "c", "image": "a/kube-webhook-certgen:v1", "args": args}]});
    cluster.create(&pods(), pod("patch", certgen(json!(["patch", "--secret-name=admission"]))));
    cluster.run(MINUTE);
    assert_eq!(phase(&cluster, "webhook"), "Pending");
    cluster.create(&pods(), pod("create", certgen(json!(["create", "--host=a", "--secret-name=admission"]))));
    cluster.run(3 * MINUTE);
    assert_eq!(phase(&cluster, "create"), "Succeeded");
    assert_eq!(phase(&cluster, "webhook"), "Running");
}

#[test]
fn platforms_make_what_their_own_pods_mount() {
    let programs = [
        ("quay.io/metallb/controller:v0.15", json!(["--port=7472"]), vec!["secrets/mine"]),
        (
            "docker.io/envoyproxy/gateway:v1.5.0",
            json!(["certgen"]),
            vec![
                "secrets/envoy-gateway",
                "secrets/envoy",
                "secrets/envoy-rate-limit",
                "secrets/envoy-oidc-hmac",
            ],
        ),
        (
            "ghcr.io/projectcontour/contour:v1.33.0",
            json!(["contour", "certgen", "--kube", "--secrets-name-suffix=-v1"]),
            vec!["secrets/contourcert-v1", "secrets/envoycert-v1"],
        ),
        (
            "quay.io/cilium/certgen:v0.2.4",
            json!(["--ca-generate"]),
            vec!["secrets/cilium-ca", "secrets/hubble-server-certs", "secrets/hubble-relay-client-certs"],
        ),
        ("docker.io/istio/pilot:1.28.0", json!(["discovery"]), vec!["configmaps/istio-ca-root-cert"]),
    ];
    for (image, args, makes) in programs {
        let mut cluster = Cluster::new();
        let env = json!([{"name": "METALLB_ML_SECRET_NAME", "value": "mine"}]);
        let container = json!({"name": "c", "image": image, "args": args, "env": env});
        let ends = args.to_string().contains("cert") || image.contains("certgen");
        let policy = if ends { "Never" } else { "Always" };
        cluster.create(&pods(), pod("maker", json!({"restartPolicy": policy, "containers": [container]})));
        cluster.run(3 * MINUTE);
        for made in makes {
            let (kind, name) = made.split_once('/').unwrap();
            assert!(
                cluster.get(&resource("", "v1", kind), "shop", name).is_some(),
                "{image} makes no {made}"
            );
        }
    }
}

#[test]
fn keys_that_only_the_outside_store_knows_are_taken_to_be_there() {
    let mut cluster = Cluster::new();
    let kind = define(&cluster, "external-secrets.io", "ExternalSecret");
    let external = |name: &str, spec: Value| {
        json!({"apiVersion": "external-secrets.io/v1", "kind": "ExternalSecret",
            "metadata": {"name": name, "namespace": "shop"}, "spec": spec})
    };
    cluster.create(&kind, external("listed", json!({"data": [{"secretKey": "user"}]})));
    cluster.create(&kind, external("found", json!({"dataFrom": [{"extract": {"key": "all"}}]})));
    let operator = json!({"containers": [{"name": "c", "image": "external-secrets/external-secrets:v1"}]});
    cluster.create(&pods(), pod("operator", operator));
    cluster.run(MINUTE);
    for name in ["listed", "found"] {
        let variable = json!({"name": "A", "valueFrom": {"secretKeyRef": {"name": name, "key": "password"}}});
        let containers = json!([{"name": "c", "image": "web", "env": [variable]}]);
        cluster.create(&pods(), pod(&format!("with-{name}"), json!({"containers": containers})));
    }
    cluster.run(MINUTE);
    assert_eq!(phase(&cluster, "with-listed"), "Pending");
    assert_eq!(phase(&cluster, "with-found"), "Running");
}

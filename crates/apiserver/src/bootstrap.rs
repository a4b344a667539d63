//! The objects that every cluster has from the start.

use tiphys_value::{GroupVersionResource, Value, json};

use crate::{ApiServer, Client};

const NAMESPACES: [&str; 4] = ["default", "kube-system", "kube-public", "kube-node-lease"];

/// Built-in groups: version and group, the group's priority in discovery, the version's in its group.
const API_SERVICES: [(&str, i64, i64); 21] = [
    ("v1.", 18000, 1),
    ("v1.admissionregistration.k8s.io", 16700, 15),
    ("v1.apiextensions.k8s.io", 16700, 15),
    ("v1.apps", 17800, 15),
    ("v1.authentication.k8s.io", 17700, 15),
    ("v1.authorization.k8s.io", 17600, 15),
    ("v1.autoscaling", 17500, 15),
    ("v1.batch", 17400, 15),
    ("v1.certificates.k8s.io", 17300, 15),
    ("v1.coordination.k8s.io", 16500, 15),
    ("v1.discovery.k8s.io", 16200, 15),
    ("v1.events.k8s.io", 17750, 15),
    ("v1.flowcontrol.apiserver.k8s.io", 16100, 21),
    ("v1.networking.k8s.io", 17200, 15),
    ("v1.node.k8s.io", 16300, 15),
    ("v1.policy", 17100, 15),
    ("v1.rbac.authorization.k8s.io", 17000, 15),
    ("v1.resource.k8s.io", 16200, 21),
    ("v1.scheduling.k8s.io", 16600, 15),
    ("v1.storage.k8s.io", 16800, 15),
    ("v2.autoscaling", 17500, 30),
];

/// Creates what is missing. What is there already stays as it is.
pub(crate) fn ensure(server: &ApiServer) {
    let client = server.client("kube-apiserver");
    for name in NAMESPACES {
        put(&client, "v1", "namespaces", "", namespace(name));
    }
    put(&client, "v1", "services", "default", kubernetes_service());
    put(&client, "discovery.k8s.io/v1", "endpointslices", "default", kubernetes_endpoints());
    let registry = server.registry();
    let is_served = |name: &str| {
        name.split_once('.').is_some_and(|(version, group)| registry.has_group_version(group, version))
    };
    for (group_version, priority, version_priority) in
        API_SERVICES.into_iter().filter(|(name, ..)| is_served(name))
    {
        put(
            &client,
            "apiregistration.k8s.io/v1",
            "apiservices",
            "",
            api_service(group_version, priority, version_priority),
        );
    }
    for (name, value, description) in [
        (
            "system-cluster-critical",
            2_000_000_000,
            "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
        ),
        (
            "system-node-critical",
            2_000_001_000,
            "Used for system critical pods that must not be moved from their current node.",
        ),
    ] {
        let class = json!({"metadata": {"name": name}, "value": value, "description": description});
        put(&client, "scheduling.k8s.io/v1", "priorityclasses", "", class);
    }
    for (role, rules) in roles() {
        put(&client, "rbac.authorization.k8s.io/v1", "clusterroles", "", cluster_role(role, &rules));
    }
    for (role, group) in [
        ("cluster-admin", "system:masters"),
        ("system:discovery", "system:authenticated"),
        ("system:basic-user", "system:authenticated"),
        ("system:public-info-viewer", "system:authenticated"),
    ] {
        put(&client, "rbac.authorization.k8s.io/v1", "clusterrolebindings", "", binding(role, group));
    }
}

/// Creates an object unless it is there already. A test holds that none is refused.
fn put(client: &Client, api_version: &str, plural: &str, namespace: &str, object: Value) {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let _ = client.create(&GroupVersionResource::new(group, version, plural), namespace, object);
}

fn namespace(name: &str) -> Value {
    json!({"metadata": {"name": name}})
}

fn api_service(name: &str, priority: i64, version_priority: i64) -> Value {
    let (version, group) = name.split_once('.').unwrap_or((name, ""));
    let mut spec =
        json!({"version": version, "groupPriorityMinimum": priority, "versionPriority": version_priority});
    if !group.is_empty() {
        spec["group"] = group.into();
    }
    json!({"metadata": {"name": name, "labels": {"kube-aggregator.kubernetes.io/automanaged": "onstart"}}, "spec": spec})
}

fn kubernetes_service() -> Value {
    json!({
        "metadata": {"name": "kubernetes", "labels": {"component": "apiserver", "provider": "kubernetes"}},
        "spec": {
            "clusterIP": "10.96.0.1", "clusterIPs": ["10.96.0.1"], "type": "ClusterIP", "sessionAffinity": "None",
            "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack", "internalTrafficPolicy": "Cluster",
            "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": 6443}],
        },
    })
}

fn kubernetes_endpoints() -> Value {
    json!({
        "metadata": {"name": "kubernetes", "labels": {"kubernetes.io/service-name": "kubernetes"}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["172.18.0.2"], "conditions": {"ready": true}}],
        "ports": [{"name": "https", "port": 6443, "protocol": "TCP"}],
    })
}

const READ: &[&str] = &["get", "list", "watch"];
const WRITE: &[&str] = &["create", "delete", "deletecollection", "patch", "update"];

/// The namespaced resources that `view`, `edit` and `admin` are about.
const WORKLOADS: [(&str, &[&str]); 7] = [
    (
        "",
        &[
            "configmaps",
            "endpoints",
            "events",
            "persistentvolumeclaims",
            "persistentvolumeclaims/status",
            "pods",
            "pods/log",
            "pods/status",
            "replicationcontrollers",
            "replicationcontrollers/scale",
            "serviceaccounts",
            "services",
            "services/status",
        ],
    ),
    (
        "apps",
        &[
            "controllerrevisions",
            "daemonsets",
            "daemonsets/status",
            "deployments",
            "deployments/scale",
            "deployments/status",
            "replicasets",
            "replicasets/scale",
            "replicasets/status",
            "statefulsets",
            "statefulsets/scale",
            "statefulsets/status",
        ],
    ),
    ("autoscaling", &["horizontalpodautoscalers", "horizontalpodautoscalers/status"]),
    ("batch", &["cronjobs", "cronjobs/status", "jobs", "jobs/status"]),
    ("networking.k8s.io", &["ingresses", "ingresses/status", "networkpolicies"]),
    ("policy", &["poddisruptionbudgets", "poddisruptionbudgets/status"]),
    ("discovery.k8s.io", &["endpointslices"]),
];

fn rule(group: &str, resources: &[&str], verbs: &[&str]) -> Value {
    json!({"apiGroups": [group], "resources": resources, "verbs": verbs})
}

fn roles() -> Vec<(&'static str, Vec<Value>)> {
    let view: Vec<Value> = WORKLOADS.iter().map(|(group, resources)| rule(group, resources, READ)).collect();
    let mut edit = view.clone();
    edit.extend(WORKLOADS.iter().map(|(group, resources)| rule(group, resources, WRITE)));
    edit.push(rule("", &["secrets"], &[READ, WRITE].concat()));
    edit.push(rule("", &["pods/eviction"], &["create"]));
    edit.push(rule("coordination.k8s.io", &["leases"], &[READ, WRITE].concat()));
    let mut admin = edit.clone();
    admin.push(rule("rbac.authorization.k8s.io", &["roles", "rolebindings"], &[READ, WRITE].concat()));
    admin.push(rule("authorization.k8s.io", &["localsubjectaccessreviews"], &["create"]));
    let all = vec![rule("*", &["*"], &["*"]), json!({"nonResourceURLs": ["*"], "verbs": ["*"]})];
    let paths = |urls: &[&str]| vec![json!({"nonResourceURLs": urls, "verbs": ["get"]})];
    vec![
        ("cluster-admin", all),
        ("view", view),
        ("edit", edit),
        ("admin", admin),
        (
            "system:discovery",
            paths(&[
                "/api",
                "/api/*",
                "/apis",
                "/apis/*",
                "/healthz",
                "/livez",
                "/openapi",
                "/openapi/*",
                "/readyz",
                "/version",
                "/version/",
            ]),
        ),
        ("system:public-info-viewer", paths(&["/healthz", "/livez", "/readyz", "/version", "/version/"])),
        (
            "system:basic-user",
            vec![
                rule(
                    "authorization.k8s.io",
                    &["selfsubjectaccessreviews", "selfsubjectrulesreviews"],
                    &["create"],
                ),
                rule("authentication.k8s.io", &["selfsubjectreviews"], &["create"]),
            ],
        ),
    ]
}

fn bootstrap_metadata(name: &str) -> Value {
    json!({
        "name": name,
        "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"},
        "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"},
    })
}

/// `view`, `edit` and `admin` also collect what other roles add to them by label.
fn cluster_role(name: &str, rules: &[Value]) -> Value {
    let mut role = json!({"metadata": bootstrap_metadata(name), "rules": rules});
    if matches!(name, "view" | "edit" | "admin") {
        let label = format!("rbac.authorization.k8s.io/aggregate-to-{name}");
        role["aggregationRule"] = json!({"clusterRoleSelectors": [{"matchLabels": {label: "true"}}]});
    }
    role
}

fn binding(role: &str, group: &str) -> Value {
    json!({
        "metadata": bootstrap_metadata(role),
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": group}],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ApiServerOptions, ResourceId};

    #[test]
    fn every_object_is_accepted() {
        let server = ApiServer::new(ApiServerOptions::default()).unwrap();
        let count = |group: &str, plural: &str| server.snapshot().count(&ResourceId::new(group, plural));
        assert_eq!(count("", "namespaces"), NAMESPACES.len());
        assert_eq!(count("", "services"), 1);
        assert_eq!(count("discovery.k8s.io", "endpointslices"), 1);
        assert_eq!(count("apiregistration.k8s.io", "apiservices"), API_SERVICES.len());
        assert_eq!(count("scheduling.k8s.io", "priorityclasses"), 2);
        assert_eq!(count("rbac.authorization.k8s.io", "clusterroles"), roles().len());
        assert_eq!(count("rbac.authorization.k8s.io", "clusterrolebindings"), 4);
    }
}

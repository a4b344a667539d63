//! How a server starts, and the objects that every cluster has from then on.

use std::sync::{Arc, OnceLock};

use tiphys_value::{GroupVersionResource, ObjectExt, Value, json};

use crate::{
    ApiServer, ApiServerOptions, Client, Entropy, Snapshot, StateError, TokioClock, meta, rfc3339_seconds,
    store::{Expect, ResourceId, ServiceNetwork, Store, Write},
};

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

impl ApiServer {
    /// Starts a server: opens its store and puts the objects there that every cluster has.
    pub fn new(options: ApiServerOptions) -> Result<Self, StateError> {
        let store = match &options.state_dir {
            Some(folder) => Store::open(folder)?,
            None => Store::in_memory(),
        };
        store.set_network(chosen_network(&store.snapshot(), options.service_network)?);
        let seed = options.seed.unwrap_or_else(Entropy::random_seed);
        let server = Self::assemble(
            store,
            options.clock.unwrap_or_else(|| Arc::new(TokioClock::wall())),
            Entropy::from_seed(seed),
            options.token.map_or_else(OnceLock::new, OnceLock::from),
            options.kubernetes_version,
            options.outbound,
        );
        ensure(&server);
        server.reload_registry();
        Ok(server)
    }
}

/// The network of a cluster that may exist already: its Services keep their addresses.
fn chosen_network(present: &Snapshot, asked: Option<ServiceNetwork>) -> Result<ServiceNetwork, StateError> {
    let is_fresh = present.count(&ResourceId::new("", "services")) == 0;
    let range = present.get(&ResourceId::new("networking.k8s.io", "servicecidrs"), "", "kubernetes");
    let range = range.and_then(|range| range["spec"]["cidrs"][0].as_str()?.parse().ok());
    let was: Option<ServiceNetwork> = range.or((!is_fresh).then(ServiceNetwork::default));
    match (was, asked) {
        (Some(was), Some(asked)) if was != asked => Err(StateError::Network { was, asked }),
        (was, asked) => Ok(was.or(asked).unwrap_or_default()),
    }
}

/// Creates what is missing. What is there already stays as it is.
fn ensure(server: &ApiServer) {
    let client = server.client("kube-apiserver");
    for name in NAMESPACES {
        put(&client, "v1", "namespaces", "", namespace(name));
    }
    let network = server.snapshot().service_network();
    put(&client, "v1", "services", "default", kubernetes_service(&network.first().to_string()));
    put(&client, "v1", "endpoints", "default", kubernetes_endpoints());
    put(&client, "discovery.k8s.io/v1", "endpointslices", "default", kubernetes_slice());
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
    for object in OBJECTS.lines().filter_map(|line| serde_json::from_str(line).ok()) {
        store(server, object);
    }
    store(server, service_range(&network.to_string()));
}

/// Access rules and flow control of a fresh server, one object a line (`cargo xtask schema`).
const OBJECTS: &str = include_str!("../data/bootstrap.txt");

/// Stores one of those objects as it is, unless one of its name is there.
fn store(server: &ApiServer, mut object: Value) {
    let Some((resource, _)) = server.resource_of_kind(&object.gvk()) else { return };
    let name = object.name().to_owned();
    if server.snapshot().get(&resource, "", &name).is_some() {
        return;
    }
    let now = rfc3339_seconds(server.now());
    let metadata = meta::metadata_mut(&mut object);
    metadata.insert("uid".into(), server.entropy().uuid().into());
    metadata.insert("creationTimestamp".into(), now.as_str().into());
    for entry in metadata.get_mut("managedFields").and_then(Value::as_array_mut).into_iter().flatten() {
        entry["time"] = now.as_str().into();
    }
    let conditions = object.pointer_mut("/status/conditions").and_then(Value::as_array_mut);
    for condition in conditions.into_iter().flatten() {
        condition["lastTransitionTime"] = now.as_str().into();
    }
    let write =
        Write { resource: &resource, key: &name, expect: Expect::Absent, value: object, remove: false };
    // Two servers on one store: whoever is first wins.
    drop(server.inner.store.commit(write));
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

/// The range that Services get their addresses from, as the server and its controller would have written it.
fn service_range(range: &str) -> Value {
    json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "ServiceCIDR",
        "metadata": {"name": "kubernetes", "managedFields": [
            {
                "manager": "kubernetes-service-cidr-controller", "operation": "Apply", "apiVersion": "networking.k8s.io/v1",
                "fieldsType": "FieldsV1", "subresource": "status",
                "fieldsV1": {"f:status": {"f:conditions": {"k:{\"type\":\"Ready\"}": {".": {}, "f:lastTransitionTime": {}, "f:message": {}, "f:status": {}, "f:type": {}}}}},
            },
            {
                "manager": "kube-apiserver", "operation": "Update", "apiVersion": "networking.k8s.io/v1",
                "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:cidrs": {}}},
            },
        ]},
        "spec": {"cidrs": [range]},
        "status": {"conditions": [{"type": "Ready", "status": "True", "reason": "", "message": "Kubernetes default Service CIDR is ready"}]},
    })
}

fn kubernetes_service(address: &str) -> Value {
    json!({
        "metadata": {"name": "kubernetes", "labels": {"component": "apiserver", "provider": "kubernetes"}},
        "spec": {
            "clusterIP": address, "clusterIPs": [address], "type": "ClusterIP", "sessionAffinity": "None",
            "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack", "internalTrafficPolicy": "Cluster",
            "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": 6443}],
        },
    })
}

fn kubernetes_endpoints() -> Value {
    json!({
        "metadata": {"name": "kubernetes", "labels": {"endpointslice.kubernetes.io/skip-mirror": "true"}},
        "subsets": [{
            "addresses": [{"ip": "172.18.0.2"}],
            "ports": [{"name": "https", "port": 6443, "protocol": "TCP"}],
        }],
    })
}

fn kubernetes_slice() -> Value {
    json!({
        "metadata": {"name": "kubernetes", "labels": {"kubernetes.io/service-name": "kubernetes"}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["172.18.0.2"], "conditions": {"ready": true}}],
        "ports": [{"name": "https", "port": 6443, "protocol": "TCP"}],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_object_is_accepted() {
        let server = ApiServer::new(ApiServerOptions::default()).unwrap();
        let count = |group: &str, plural: &str| server.snapshot().count(&ResourceId::new(group, plural));
        assert_eq!(count("", "namespaces"), NAMESPACES.len());
        assert_eq!(count("", "services"), 1);
        assert_eq!(count("discovery.k8s.io", "endpointslices"), 1);
        assert_eq!(count("networking.k8s.io", "servicecidrs"), 1);
        assert_eq!(count("apiregistration.k8s.io", "apiservices"), API_SERVICES.len());
        assert_eq!(count("scheduling.k8s.io", "priorityclasses"), 2);
        let kept: usize = [
            ("rbac.authorization.k8s.io", "clusterroles"),
            ("rbac.authorization.k8s.io", "clusterrolebindings"),
            ("flowcontrol.apiserver.k8s.io", "flowschemas"),
            ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations"),
        ]
        .into_iter()
        .map(|(group, plural)| count(group, plural))
        .sum();
        assert_eq!(kept, OBJECTS.lines().count());
    }
}

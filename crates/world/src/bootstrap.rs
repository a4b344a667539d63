//! What stands in a cluster before anybody asks for anything.

use serde_json::{Value, json};
use tiphys_value::GroupVersionResource;

use crate::{Settings, object::resources};

/// The name under which simulated volumes are provisioned.
pub(crate) const PROVISIONER: &str = "tiphys.dev/world";

/// The nodes and the storage class.
pub fn initial_objects(settings: &Settings) -> Vec<(GroupVersionResource, Value)> {
    let mut objects: Vec<_> =
        (1..=settings.nodes).map(|n| (resources::nodes(), node_in_zone(n, &settings.zones))).collect();
    let class = json!({
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {
            "name": "standard",
            "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
        },
        "provisioner": PROVISIONER,
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "WaitForFirstConsumer",
        "allowVolumeExpansion": true,
    });
    objects.push((resources::storage_classes(), class));
    objects
}

/// The label of nodes and volumes that tells their zone.
pub const ZONE: &str = "topology.kubernetes.io/zone";

/// A node in one of the zones, in turn.
fn node_in_zone(number: u32, zones: &[String]) -> Value {
    let mut node = node(&format!("node-{number}"));
    let turn = usize::try_from(number.saturating_sub(1)).unwrap_or_default();
    if let Some(zone) = zones.get(turn % zones.len().max(1)) {
        node["metadata"]["labels"][ZONE] = zone.as_str().into();
    }
    node
}

fn node(name: &str) -> Value {
    let resources = json!({"cpu": "8", "memory": "32Gi", "pods": "250", "ephemeral-storage": "200Gi"});
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {
            "kubernetes.io/hostname": name,
            "kubernetes.io/os": "linux",
            "kubernetes.io/arch": "amd64",
            "beta.kubernetes.io/os": "linux",
            "beta.kubernetes.io/arch": "amd64",
        }},
        "spec": {},
        "status": {
            "addresses": [
                {"type": "InternalIP", "address": node_address(name)},
                {"type": "Hostname", "address": name},
            ],
            "allocatable": resources,
            "capacity": resources,
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
            "nodeInfo": {
                "architecture": "amd64", "operatingSystem": "linux", "kubeletVersion": "v1.36.1",
                "containerRuntimeVersion": "tiphys://0", "kernelVersion": "", "osImage": "Tiphys", "bootID": "",
                "machineID": "", "systemUUID": "", "kubeProxyVersion": "",
            },
        },
    })
}

/// The address of a node: 192.168.0.10 and up, by the number at the end of its name.
pub(crate) fn node_address(node: &str) -> String {
    let number = node_number(node);
    format!("192.168.{}.{}", number / 200 % 256, 10 + number % 200)
}

/// The number at the end of a node's name; 0 without one.
pub(crate) fn node_number(node: &str) -> u32 {
    node.rsplit('-').next().and_then(|number| number.parse().ok()).unwrap_or(0)
}

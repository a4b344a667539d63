//! What real clusters have and no repository brings: classes of storage, runtimes and priorities, load balancers of
//! other classes, nodes with the labels and devices that pods ask for. Something stands in for what nothing brings.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use tiphys_cluster::{Cluster, LiveCache, PatchType};
use tiphys_model::{Application, names};
use tiphys_value::{GroupKind, GroupVersionKind, Map, ObjectExt, Value, json};

use super::{FIELD_MANAGER, apply_options};

/// The annotation of the class of claims that name none.
const DEFAULT_CLASS: &str = "storageclass.kubernetes.io/is-default-class";
/// The label that says which node a node is.
const HOSTNAME: &str = "kubernetes.io/hostname";
/// How many devices of a kind a node has.
const DEVICES: &str = "8";
/// What has pods, and thereby their classes.
const WORKLOADS: [(&str, &str); 5] =
    [("", "Pod"), ("apps", "ReplicaSet"), ("apps", "StatefulSet"), ("apps", "DaemonSet"), ("batch", "Job")];

/// A node that pods ask for: its labels, and the devices that containers want of it.
type Node = (BTreeMap<String, String>, BTreeSet<String>);

/// The claim that names a volume.
type Claim = Arc<Value>;

/// What is missing in a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Presupposed {
    storage: BTreeSet<String>,
    /// Volumes that claims name, by name, with those claims.
    volumes: BTreeMap<String, Claim>,
    runtimes: BTreeSet<String>,
    priorities: BTreeSet<String>,
    nodes: BTreeSet<Node>,
    /// Services that wait for an address, by namespace and name, and their class.
    balancers: BTreeMap<(String, String), String>,
}

/// What is missing in a cluster, and stands among the objects of no Application.
pub fn missing(cache: &LiveCache) -> Presupposed {
    let mut found = Presupposed {
        storage: classes_of_claims(cache),
        volumes: volumes_of_claims(cache),
        ..Presupposed::default()
    };
    for (group, kind) in WORKLOADS {
        for object in cache.of_kind(&GroupKind::new(group, kind)) {
            let spec = if kind == "Pod" { &["spec"][..] } else { &["spec", "template", "spec"] };
            let Some(spec) = object.at(spec) else { continue };
            let name = |field: &str| spec.str_at(&[field]).filter(|name| !name.is_empty()).map(str::to_owned);
            found.runtimes.extend(name("runtimeClassName"));
            found.priorities.extend(name("priorityClassName"));
        }
    }
    let pods = cache.of_kind(&GroupKind::new("", "Pod"));
    found.nodes = pods.iter().filter_map(|pod| node_for(pod)).collect();
    let services = cache.of_kind(&GroupKind::new("", "Service"));
    found.balancers = services.iter().filter_map(|service| waiting_balancer(service)).collect();
    for (group, kind, names) in [
        ("storage.k8s.io", "StorageClass", &mut found.storage),
        ("node.k8s.io", "RuntimeClass", &mut found.runtimes),
        ("scheduling.k8s.io", "PriorityClass", &mut found.priorities),
    ] {
        let there = cache.of_kind(&GroupKind::new(group, kind));
        let brought = brought(cache, kind);
        names.retain(|name| !there.iter().any(|class| class.name() == name) && !brought.contains(name));
    }
    found
}

/// The classes of claims for which there is no volume.
fn classes_of_claims(cache: &LiveCache) -> BTreeSet<String> {
    let class = |object: &Value| object.str_at(&["spec", "storageClassName"]).unwrap_or_default().to_owned();
    let volumes = cache.of_kind(&GroupKind::new("", "PersistentVolume"));
    let of_volumes: BTreeSet<String> = volumes.iter().map(|volume| class(volume)).collect();
    let claims = cache.of_kind(&GroupKind::new("", "PersistentVolumeClaim"));
    let waiting = claims.iter().filter(|claim| claim.str_at(&["status", "phase"]) == Some("Pending"));
    waiting.map(|claim| class(claim)).filter(|name| !name.is_empty() && !of_volumes.contains(name)).collect()
}

/// The volumes that claims wait for by name, and that neither are there nor brought: somebody made them by hand.
fn volumes_of_claims(cache: &LiveCache) -> BTreeMap<String, Claim> {
    let there = cache.of_kind(&GroupKind::new("", "PersistentVolume"));
    let brought = brought(cache, "PersistentVolume");
    let claims = cache.of_kind(&GroupKind::new("", "PersistentVolumeClaim"));
    let waiting = claims.into_iter().filter(|claim| claim.str_at(&["status", "phase"]) == Some("Pending"));
    let named = waiting.filter_map(|claim| {
        let name = claim.str_at(&["spec", "volumeName"]).filter(|name| !name.is_empty())?.to_owned();
        Some((name, claim))
    });
    named
        .filter(|(name, _)| !brought.contains(name) && !there.iter().any(|volume| volume.name() == name))
        .collect()
}

/// A volume that suits a claim.
fn volume_for(name: &str, claim: &Value) -> Value {
    let spec = |path: &[&str]| claim.at(&[&["spec"], path].concat()).cloned();
    json!({
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": spec(&["resources", "requests", "storage"]).unwrap_or_else(|| "1Gi".into())},
            "accessModes": spec(&["accessModes"]).unwrap_or_else(|| json!(["ReadWriteOnce"])),
            "storageClassName": spec(&["storageClassName"]).unwrap_or_else(|| "".into()),
            "volumeMode": spec(&["volumeMode"]).unwrap_or_else(|| "Filesystem".into()),
            "claimRef": {"namespace": claim.namespace(), "name": claim.name()},
            "persistentVolumeReclaimPolicy": "Retain",
            "hostPath": {"path": format!("/var/lib/stands-in/{name}")},
        },
    })
}

/// The names of the objects of a kind that Applications bring.
fn brought(cache: &LiveCache, kind: &str) -> BTreeSet<String> {
    let apps = cache.of_kind(&GroupKind::new(names::GROUP, "Application"));
    let apps = apps.iter().filter_map(|app| Application::from_value(app).ok());
    let of_kind = apps.flat_map(|app| app.status.resources).filter(|resource| resource.kind == kind);
    of_kind.map(|resource| resource.name).collect()
}

/// The node that a pod asks for, if it fits none because of labels or devices.
fn node_for(pod: &Value) -> Option<Node> {
    let conditions = pod.at(&["status", "conditions"])?.as_array()?;
    let refused = conditions
        .iter()
        .find(|c| c.str_at(&["type"]) == Some("PodScheduled") && c.str_at(&["status"]) == Some("False"))?;
    let why = refused.str_at(&["message"])?;
    let devices: BTreeSet<String> = devices_of(pod)
        .into_iter()
        .filter(|device| why.contains(&format!("Insufficient {device}")))
        .collect();
    let misfits = why.contains("didn't match Pod's node affinity/selector");
    (misfits || !devices.is_empty()).then(|| (labels_for(pod), devices))
}

/// The labels of a node that a pod goes to.
fn labels_for(pod: &Value) -> BTreeMap<String, String> {
    let mut labels = BTreeMap::new();
    let selector = pod.at(&["spec", "nodeSelector"]).and_then(Value::as_object);
    for (name, value) in selector.into_iter().flatten() {
        labels.insert(name.clone(), value.as_str().unwrap_or_default().to_owned());
    }
    let required = ["spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"];
    let terms = pod.at(&required).and_then(|required| required.at(&["nodeSelectorTerms"])?.as_array());
    let first = terms.and_then(|terms| terms.first()?.at(&["matchExpressions"])?.as_array());
    for expression in first.into_iter().flatten() {
        let value = expression.pointer("/values/0").and_then(Value::as_str).unwrap_or_default();
        if let (Some(name), Some("In" | "Exists")) =
            (expression.str_at(&["key"]), expression.str_at(&["operator"]))
        {
            labels.insert(name.to_owned(), value.to_owned());
        }
    }
    labels
}

/// The devices that a pod's containers ask for: resources with a vendor's name.
fn devices_of(pod: &Value) -> BTreeSet<String> {
    let containers = pod.at(&["spec", "containers"]).and_then(Value::as_array).into_iter().flatten();
    let resources = containers.flat_map(|container| {
        ["limits", "requests"].into_iter().filter_map(|part| container.at(&["resources", part])?.as_object())
    });
    resources.flat_map(Map::keys).filter(|name| name.contains('/')).cloned().collect()
}

/// A Service that waits for a load balancer of another class than the cluster's own.
fn waiting_balancer(service: &Value) -> Option<((String, String), String)> {
    let class = service.str_at(&["spec", "loadBalancerClass"]).filter(|class| !class.is_empty())?;
    let has_address = service.at(&["status", "loadBalancer", "ingress"]).is_some();
    let is_balanced = service.str_at(&["spec", "type"]) == Some("LoadBalancer");
    let place = (service.namespace().to_owned(), service.name().to_owned());
    (is_balanced && !has_address).then(|| (place, class.to_owned()))
}

impl Presupposed {
    /// Whether nothing is missing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Takes up what is missing, and returns what of it is new.
    pub fn add(&mut self, mut found: Self) -> Self {
        found.storage.retain(|name| self.storage.insert(name.clone()));
        found.volumes.retain(|name, claim| self.volumes.insert(name.clone(), claim.clone()).is_none());
        found.runtimes.retain(|name| self.runtimes.insert(name.clone()));
        found.priorities.retain(|name| self.priorities.insert(name.clone()));
        found.nodes.retain(|node| self.nodes.insert(node.clone()));
        found.balancers.retain(|place, class| self.balancers.insert(place.clone(), class.clone()).is_none());
        found
    }

    /// What is to be told, one line each.
    pub fn told(&self) -> Vec<String> {
        let classes: BTreeSet<String> = self.balancers.values().cloned().collect();
        let nodes: BTreeSet<String> = self.nodes.iter().map(shown).collect();
        let volumes: BTreeSet<String> = self.volumes.keys().cloned().collect();
        let lines = [
            ("storage classes that nothing in reach brings are there, with volumes at once", &self.storage),
            ("volumes that claims name and nothing in reach brings are there", &volumes),
            ("runtime classes that nothing in reach brings are there", &self.runtimes),
            ("priority classes that nothing in reach brings are there, of priority 0", &self.priorities),
            ("load balancers of these classes are played", &classes),
            ("nodes that pods ask for have joined", &nodes),
        ];
        let filled = lines.into_iter().filter(|(_, names)| !names.is_empty());
        let joined =
            |names: &BTreeSet<String>| names.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        filled
            .map(|(what, names)| format!("{what} (--stand-ins never leaves them out): {}", joined(names)))
            .collect()
    }

    /// Puts all of it into a cluster.
    ///
    /// # Errors
    /// The cluster refuses something.
    pub async fn provide(&self, cluster: &Cluster, cache: &LiveCache) -> anyhow::Result<()> {
        let volumes = self.volumes.iter().map(|(name, claim)| volume_for(name, claim));
        for object in self.classes(cache).into_iter().chain(volumes) {
            cluster.apply(&object, &apply_options()).await?;
        }
        for node in &self.nodes {
            join(cluster, cache, node).await?;
        }
        let services = cluster.resource(&GroupVersionKind::new("", "v1", "Service")).await?;
        for (at, (namespace, name)) in self.balancers.keys().enumerate() {
            let ingress = json!([{"ip": format!("198.51.100.{}", 1 + at % 254), "ipMode": "VIP"}]);
            let status = json!({"status": {"loadBalancer": {"ingress": ingress}}});
            cluster
                .patch(&services, (namespace, name), "status", PatchType::Merge, &status, FIELD_MANAGER)
                .await?;
        }
        Ok(())
    }

    fn classes(&self, cache: &LiveCache) -> Vec<Value> {
        let known = cache.of_kind(&GroupKind::new("storage.k8s.io", "StorageClass"));
        let own = known.iter().find(|class| class.annotation(DEFAULT_CLASS) == Some("true"));
        let storage = own.into_iter().flat_map(|own| {
            self.storage.iter().map(|name| {
                let mut class = (**own).clone();
                class["metadata"] = json!({"name": name});
                // What a class does that says nothing.
                class["volumeBindingMode"] = "Immediate".into();
                class
            })
        });
        let runtimes = self.runtimes.iter().map(|name| {
            json!({"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": name}, "handler": name})
        });
        let priorities = self.priorities.iter().map(|name| {
            json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": 0})
        });
        storage.chain(runtimes).chain(priorities).collect()
    }
}

/// A node for people.
fn shown((labels, devices): &Node) -> String {
    let labels = labels.iter().map(|(name, value)| format!("{name}={value}"));
    labels.chain(devices.iter().cloned()).collect::<Vec<_>>().join(" ")
}

/// Lets a node join that is as the others are, with these labels and devices.
async fn join(cluster: &Cluster, cache: &LiveCache, (labels, devices): &Node) -> anyhow::Result<()> {
    let nodes = cache.of_kind(&GroupKind::new("", "Node"));
    let Some(model) = nodes.first() else { return Ok(()) };
    let number = nodes.len() + 1;
    let hostname = labels.get(HOSTNAME).cloned().unwrap_or_else(|| format!("node-{number}"));
    let mut all = model.at(&["metadata", "labels"]).cloned().unwrap_or_default();
    all[HOSTNAME] = hostname.as_str().into();
    for (name, value) in labels {
        all[name] = value.as_str().into();
    }
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": hostname, "labels": all}});
    let mut status = model.at(&["status"]).cloned().unwrap_or_default();
    if let Some(map) = status.as_object_mut() {
        map.remove("conditions");
    }
    status["addresses"] = json!([
        {"type": "InternalIP", "address": format!("192.168.0.{}", 10 + number % 200)},
        {"type": "Hostname", "address": hostname},
    ]);
    for part in ["capacity", "allocatable"] {
        for device in devices {
            status[part][device] = DEVICES.into();
        }
    }
    cluster.apply(&node, &apply_options()).await?;
    let resource = cluster.resource(&GroupVersionKind::new("", "v1", "Node")).await?;
    let status = json!({"status": status});
    cluster.patch(&resource, ("", &hostname), "status", PatchType::Merge, &status, FIELD_MANAGER).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_has_the_labels_and_devices_that_a_pod_asks_for() {
        let pod = |message: &str| {
            json!({"spec": {"nodeSelector": {"disk": "ssd"}, "containers": [{"resources": {"limits": {"gpu.example.com/one": 1, "cpu": 1}}}],
                "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
                    {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "b"]}]}]}}}},
                "status": {"conditions": [{"type": "PodScheduled", "status": "False", "message": message}]}})
        };
        let (labels, devices) =
            node_for(&pod("0/3 nodes are available: 3 Insufficient gpu.example.com/one.")).unwrap();
        assert_eq!(
            labels.into_iter().map(|(k, v)| format!("{k}={v}")).collect::<Vec<_>>(),
            ["disk=ssd", "zone=a"]
        );
        assert_eq!(devices.into_iter().collect::<Vec<_>>(), ["gpu.example.com/one"]);
        assert!(node_for(&pod("3 node(s) didn't match Pod's node affinity/selector")).is_some());
        assert!(node_for(&pod("pod has unbound immediate PersistentVolumeClaims")).is_none());
    }

    #[test]
    fn a_volume_that_a_claim_names_suits_it() {
        let claim = json!({"metadata": {"namespace": "n", "name": "data"}, "spec": {"volumeName": "pv", "storageClassName": "fast",
            "accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "5Gi"}}}});
        let volume = volume_for("pv", &claim);
        assert_eq!(volume["spec"]["claimRef"], json!({"namespace": "n", "name": "data"}));
        assert_eq!(
            (&volume["spec"]["capacity"]["storage"], &volume["spec"]["storageClassName"]),
            (&json!("5Gi"), &json!("fast"))
        );
        assert_eq!(volume["spec"]["accessModes"], json!(["ReadWriteMany"]));
    }

    #[test]
    fn load_balancers_of_other_classes_are_those_without_an_address() {
        let service = |status: Value| json!({"metadata": {"namespace": "n", "name": "s"}, "spec": {"type": "LoadBalancer", "loadBalancerClass": "vpn"}, "status": status});
        assert!(waiting_balancer(&service(json!({}))).is_some_and(|(_, class)| class == "vpn"));
        assert!(
            waiting_balancer(&service(json!({"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}}))).is_none()
        );
    }
}

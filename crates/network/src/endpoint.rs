//! Workloads, Services and namespaces.

use std::collections::BTreeMap;

use serde_json::Value;
use tiphys_value::{FieldPath, ObjectExt};

use crate::{
    known_controllers::Controller,
    object::{Object, ObjectId},
    port::{PortName, Protocol},
    selector::Labels,
};

/// A port of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerPort {
    /// Its name; empty if it has none.
    pub name: String,
    /// Its number.
    pub number: u16,
    /// The protocol; two ports may share a name if theirs differ.
    pub protocol: Protocol,
}

/// A value that the environment of a pod takes from a ConfigMap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The field that takes it.
    pub field: FieldPath,
    /// What the value is called.
    pub key: String,
    /// The value.
    pub text: String,
}

/// The pods of one workload.
#[derive(Clone, Debug)]
pub struct Pod {
    /// The workload; `None` where a chart that could not be had is known to make it.
    pub object: Option<ObjectId>,
    /// `Kind/name in namespace`.
    pub title: String,
    /// Its namespace.
    pub namespace: String,
    /// The labels of its pods.
    pub labels: Labels,
    /// Whether these labels and ports are all of them.
    pub is_exact: bool,
    /// Its service account.
    pub service_account: String,
    /// Whether it mounts a token.
    pub has_token: bool,
    /// Whether it uses the node's network, which policies do not bind.
    pub uses_host_network: bool,
    /// Whether it asks the cluster's DNS.
    pub uses_cluster_dns: bool,
    /// The containers' ports.
    pub ports: Vec<ContainerPort>,
    /// The ports that the kubelet probes over the network.
    pub probes: Vec<u16>,
    /// The ports at which the API server is known to call it, of pods whose configuration nobody has.
    pub webhooks: Vec<u16>,
    /// What it is known to be.
    pub controller: Option<&'static Controller>,
    /// Why its service account has rights, if it has.
    pub rights: Option<ObjectId>,
    /// Whether they are those of a program that watches or changes objects: the right to read some is often
    /// given by a scaffold, to programs that never ask.
    pub has_active_rights: bool,
    /// The values of ConfigMaps that its environment takes.
    pub configuration: Vec<Setting>,
    /// The pod's specification.
    pub spec: Value,
    /// Where in the workload the specification is.
    pub path: FieldPath,
}

impl Pod {
    /// The pods of a workload.
    pub fn from_workload(object: Object<'_>) -> Option<Self> {
        let value = object.value;
        let steps: &[&str] = match (object.key.group.as_str(), object.key.kind.as_str()) {
            ("", "Pod") => &[],
            ("", "ReplicationController") => &["spec", "template"],
            ("apps", "Deployment" | "StatefulSet" | "DaemonSet" | "ReplicaSet") | ("batch", "Job") => {
                &["spec", "template"]
            }
            ("batch", "CronJob") => &["spec", "jobTemplate", "spec", "template"],
            _ => return None,
        };
        if value.int_at(&["spec", "replicas"]) == Some(0) {
            return None;
        }
        let pod = value.at(steps)?;
        let spec = pod.get("spec")?.clone();
        let path = steps.iter().fold(FieldPath::default(), |path, step| path.key(*step)).key("spec");
        let controller = containers(&spec)
            .filter_map(|it| it.get("image").and_then(Value::as_str))
            .find_map(Controller::of_image);
        Some(Self {
            object: Some(object.id),
            title: object.title(),
            namespace: object.key.namespace.clone(),
            labels: labels(pod.at(&["metadata", "labels"])),
            is_exact: true,
            service_account: spec
                .str_at(&["serviceAccountName"])
                .or(spec.str_at(&["serviceAccount"]))
                .unwrap_or("default")
                .to_owned(),
            has_token: spec.get("automountServiceAccountToken").and_then(Value::as_bool) != Some(false),
            uses_host_network: spec.get("hostNetwork").and_then(Value::as_bool) == Some(true),
            uses_cluster_dns: !matches!(spec.str_at(&["dnsPolicy"]), Some("None" | "Default")),
            ports: ports(&spec),
            probes: probes(&spec),
            webhooks: Vec::new(),
            controller,
            rights: None,
            has_active_rights: false,
            configuration: Vec::new(),
            spec,
            path,
        })
    }

    /// Pods whose manifest nobody has, but of which something is known: they ask the cluster's DNS, and the
    /// labels are some of theirs.
    pub fn foreseen(title: String, namespace: &str, labels: Labels) -> Self {
        Self {
            object: None,
            title,
            namespace: namespace.to_owned(),
            labels,
            is_exact: false,
            service_account: String::new(),
            has_token: false,
            uses_host_network: false,
            uses_cluster_dns: true,
            ports: Vec::new(),
            probes: Vec::new(),
            webhooks: Vec::new(),
            controller: None,
            rights: None,
            has_active_rights: false,
            configuration: Vec::new(),
            spec: Value::Null,
            path: FieldPath::default(),
        }
    }

    /// The number of a port: a name is looked up among the ports of that protocol, as Services, policies and
    /// monitors look it up.
    pub fn port(&self, port: &PortName, protocol: Protocol) -> Option<u16> {
        match port {
            PortName::Number(number) => Some(*number),
            PortName::Name(name) => {
                let found = self.ports.iter().find(|it| it.name == *name && it.protocol == protocol);
                found.map(|it| it.number)
            }
        }
    }
}

/// The containers of a pod, those that run first included.
pub(crate) fn containers(spec: &Value) -> impl Iterator<Item = &Value> + Clone {
    ["initContainers", "containers"]
        .into_iter()
        .flat_map(|key| spec.get(key).and_then(Value::as_array).into_iter().flatten())
}

/// The ports of the containers of a pod's specification.
pub fn ports(spec: &Value) -> Vec<ContainerPort> {
    let ports =
        containers(spec).flat_map(|it| it.get("ports").and_then(Value::as_array).into_iter().flatten());
    ports
        .filter_map(|port| {
            let number = u16::try_from(port.int_at(&["containerPort"])?).ok()?;
            Some(ContainerPort {
                name: port.str_at(&["name"]).unwrap_or_default().to_owned(),
                number,
                protocol: Protocol::from_name(port.str_at(&["protocol"])),
            })
        })
        .collect()
}

fn probes(spec: &Value) -> Vec<u16> {
    let known = ports(spec);
    let mut found = Vec::new();
    for container in spec.get("containers").and_then(Value::as_array).into_iter().flatten() {
        for probe in ["readinessProbe", "livenessProbe", "startupProbe"] {
            for way in ["httpGet", "tcpSocket", "grpc"] {
                let Some(port) = container.at(&[probe, way, "port"]).and_then(PortName::from_value) else {
                    continue;
                };
                let number = match port {
                    PortName::Number(number) => Some(number),
                    PortName::Name(name) => known.iter().find(|it| it.name == name).map(|it| it.number),
                };
                found.extend(number.filter(|number| !found.contains(number)));
            }
        }
    }
    found
}

/// Labels as text.
pub fn labels(value: Option<&Value>) -> Labels {
    let pairs = value.and_then(Value::as_object).into_iter().flatten();
    pairs.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}

/// A port of a Service.
#[derive(Clone, Debug)]
pub struct ServicePort {
    /// Its name; empty if it has none.
    pub name: String,
    /// The port of the Service's own address.
    pub number: u16,
    /// The port of its pods.
    pub target: PortName,
    /// The protocol.
    pub protocol: Protocol,
}

/// A Service.
#[derive(Clone, Debug)]
pub struct Service {
    /// The object.
    pub object: ObjectId,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its own labels.
    pub labels: Labels,
    /// What it selects; empty if something else fills it in.
    pub selector: Labels,
    /// Whether it takes in what comes from outside of the cluster.
    pub is_outside: bool,
    /// Its ports.
    pub ports: Vec<ServicePort>,
}

impl Service {
    /// A Service.
    pub fn from_object(object: Object<'_>) -> Option<Self> {
        if object.key.kind != "Service" || !object.key.group.is_empty() {
            return None;
        }
        let spec = object.value.get("spec")?;
        let ports = spec.get("ports").and_then(Value::as_array).into_iter().flatten();
        let ports = ports.filter_map(|port| {
            let number = u16::try_from(port.int_at(&["port"])?).ok()?;
            Some(ServicePort {
                name: port.str_at(&["name"]).unwrap_or_default().to_owned(),
                number,
                target: port
                    .get("targetPort")
                    .and_then(PortName::from_value)
                    .unwrap_or(PortName::Number(number)),
                protocol: Protocol::from_name(port.str_at(&["protocol"])),
            })
        });
        Some(Self {
            object: object.id,
            namespace: object.key.namespace.clone(),
            name: object.key.name.clone(),
            labels: labels(object.value.at(&["metadata", "labels"])),
            selector: labels(spec.get("selector")),
            // Tailscale's balancers are pods of the cluster.
            is_outside: spec.str_at(&["type"]) == Some("LoadBalancer")
                && spec.str_at(&["loadBalancerClass"]) != Some("tailscale"),
            ports: ports.collect(),
        })
    }

    /// Whether it selects pods with these labels.
    pub fn selects(&self, labels: &Labels) -> bool {
        !self.selector.is_empty() && self.selector.iter().all(|(key, value)| labels.get(key) == Some(value))
    }
}

/// The labels of namespaces, as far as they are declared.
#[derive(Clone, Debug, Default)]
pub struct Namespaces {
    declared: BTreeMap<String, Labels>,
}

impl Namespaces {
    /// Notes a Namespace; other objects are passed over.
    pub fn add(&mut self, object: &Value) {
        if object.kind() == "Namespace" && object.api_version() == "v1" {
            self.declared.insert(object.name().to_owned(), labels(object.at(&["metadata", "labels"])));
        }
    }

    /// The labels of a namespace, and whether they are all of them.
    pub fn labels(&self, name: &str) -> (Labels, bool) {
        let declared = self.declared.get(name);
        let mut labels = declared.cloned().unwrap_or_default();
        labels.insert("kubernetes.io/metadata.name".into(), name.to_owned());
        (labels, declared.is_some())
    }
}

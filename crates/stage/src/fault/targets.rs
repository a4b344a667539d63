//! What there is in a cluster that may fail.

use std::collections::BTreeSet;

use tiphys_apiserver::Snapshot;
use tiphys_value::{ObjectExt, Value};
use tiphys_world::{Settings, behaviour::image_host};

use super::{Fault, Hook, Pull, Timed};

/// How many targets a message names.
const NAMED: usize = 12;

/// What may fail.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Targets {
    nodes: BTreeSet<String>,
    images: BTreeSet<String>,
    registries: BTreeSet<String>,
    webhooks: BTreeSet<String>,
    /// Pods and what made them, by namespace and name.
    pods: BTreeSet<String>,
    /// Kinds with objects whose operators are known.
    operators: BTreeSet<String>,
    namespaces: BTreeSet<String>,
    /// Zones that nodes are in.
    zones: BTreeSet<String>,
    /// Hosts of Git repositories and charts.
    hosts: BTreeSet<String>,
}

impl Targets {
    /// What there is in a cluster.
    pub fn from_snapshot(snapshot: &Snapshot) -> Self {
        let mut all = Self::default();
        for object in snapshot.resources().flat_map(|id| snapshot.list(id, None)) {
            all.take(object.value());
        }
        all
    }

    /// Adds what there is elsewhere.
    pub fn extend(&mut self, other: Self) {
        self.nodes.extend(other.nodes);
        self.images.extend(other.images);
        self.registries.extend(other.registries);
        self.webhooks.extend(other.webhooks);
        self.pods.extend(other.pods);
        self.operators.extend(other.operators);
        self.namespaces.extend(other.namespaces);
        self.zones.extend(other.zones);
        self.hosts.extend(other.hosts);
    }

    /// Adds hosts of Git repositories and charts, which are not in a cluster.
    pub fn add_hosts(&mut self, hosts: impl Iterator<Item = String>) {
        self.hosts.extend(hosts);
    }

    fn take(&mut self, object: &Value) {
        let place = || format!("{}/{}", object.namespace(), object.name());
        let group = object.gvk().group;
        match (group.as_str(), object.kind()) {
            ("", "Node") => {
                self.nodes.insert(object.name().to_owned());
                self.zones.extend(object.label(tiphys_world::ZONE).map(str::to_owned));
            }
            ("", "Namespace") => {
                self.namespaces.insert(object.name().to_owned());
            }
            ("", "Pod") => {
                for field in ["initContainers", "containers"] {
                    let containers =
                        object.at(&["spec", field]).and_then(Value::as_array).into_iter().flatten();
                    for image in containers.filter_map(|container| container.str_at(&["image"])) {
                        self.images.insert(image.to_owned());
                        self.registries.insert(image_host(image).to_owned());
                    }
                }
                self.pods.insert(place());
            }
            ("apps", "Deployment" | "StatefulSet" | "DaemonSet") | ("batch", "Job") => {
                self.pods.insert(place());
            }
            (
                "admissionregistration.k8s.io",
                "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration",
            ) => {
                let webhooks = object.get("webhooks").and_then(Value::as_array).into_iter().flatten();
                self.webhooks
                    .extend(webhooks.filter_map(|webhook| webhook.str_at(&["name"])).map(str::to_owned));
            }
            _ if group.contains('.') && operator_groups(object.kind()).any(|known| known == group) => {
                self.operators.insert(object.kind().to_owned());
            }
            _ => {}
        }
    }

    /// Checks that what is to fail is there.
    ///
    /// # Errors
    /// With what there is.
    pub fn check(&self, timed: &Timed) -> Result<(), String> {
        let (name, what, all) = match &timed.fault {
            Fault::Node(name) => (name.clone(), "node", &self.nodes),
            Fault::Zone(name) => (name.clone(), "zone", &self.zones),
            Fault::Git(host) => (host.clone(), "host of sources", &self.hosts),
            Fault::Image(image, _) => (image.clone(), "image", &self.images),
            Fault::Registry(host, _) => (host.clone(), "registry", &self.registries),
            Fault::Webhook(name, _) => (name.clone(), "webhook", &self.webhooks),
            Fault::Pod { namespace, name, .. } => {
                (format!("{namespace}/{name}"), "pod or workload", &self.pods)
            }
            Fault::Operator(kind, _) => {
                (kind.clone(), "object of a kind with a known operator", &self.operators)
            }
            Fault::Quota(namespace) => (namespace.clone(), "namespace", &self.namespaces),
            Fault::Dns | Fault::Cni | Fault::Api(_) | Fault::Kill => return Ok(()),
        };
        if all.contains(&name) {
            return Ok(());
        }
        let shown: Vec<&str> = all.iter().take(NAMED).map(String::as_str).collect();
        let more = all.len().saturating_sub(NAMED);
        let more = if more == 0 { String::new() } else { format!(" and {more} more") };
        let there = if shown.is_empty() {
            format!(", and no other {what} either")
        } else {
            format!("; there are {}{more}", shown.join(", "))
        };
        Err(format!("fault {:?}: there is no {what} {name:?}{there}", timed.text))
    }

    /// One fault of each component.
    pub fn faults(&self) -> Vec<(String, Fault)> {
        let mut all = Vec::new();
        let mut add = |text: String, fault: Fault| all.push((text, fault));
        for node in &self.nodes {
            add(format!("node={node}"), Fault::Node(node.clone()));
        }
        for zone in &self.zones {
            add(format!("zone={zone}"), Fault::Zone(zone.clone()));
        }
        for host in &self.hosts {
            add(format!("git={host}"), Fault::Git(host.clone()));
        }
        for host in &self.registries {
            add(format!("registry={host}"), Fault::Registry(host.clone(), Pull::Timeout));
        }
        for webhook in &self.webhooks {
            add(format!("webhook={webhook}"), Fault::Webhook(webhook.clone(), Hook::Down));
        }
        for kind in &self.operators {
            add(format!("operator={kind}"), Fault::Operator(kind.clone(), None));
        }
        add("dns".to_owned(), Fault::Dns);
        add("cni".to_owned(), Fault::Cni);
        add("api:down".to_owned(), Fault::Api(super::Api::Down));
        add("api:429".to_owned(), Fault::Api(super::Api::Refuse(429)));
        add("engine:kill".to_owned(), Fault::Kill);
        all
    }
}

/// The groups in which a kind has an operator that is known.
pub(super) fn operator_groups(kind: &str) -> impl Iterator<Item = String> {
    let operators = OPERATORS.get_or_init(|| {
        Settings::default()
            .behaviours
            .operators
            .into_iter()
            .map(|operator| (operator.group, operator.kind))
            .collect()
    });
    operators
        .iter()
        .filter(move |(_, known)| known == kind)
        .map(|(group, _)| group.clone())
        .collect::<Vec<_>>()
        .into_iter()
}

/// Group and kind of all operators that are known: the list is long to read.
static OPERATORS: std::sync::OnceLock<Vec<(String, String)>> = std::sync::OnceLock::new();

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_that_are_not_there_are_told_with_those_that_are() {
        let targets = Targets { nodes: ["node-1", "node-2"].map(str::to_owned).into(), ..Targets::default() };
        let fault = |name: &str| Timed {
            text: format!("node={name}"),
            fault: Fault::Node(name.to_owned()),
            start: Default::default(),
            duration: None,
        };
        assert_eq!(targets.check(&fault("node-2")), Ok(()));
        let why = targets.check(&fault("node-9")).unwrap_err();
        assert_eq!(why, "fault \"node=node-9\": there is no node \"node-9\"; there are node-1, node-2");
    }
}

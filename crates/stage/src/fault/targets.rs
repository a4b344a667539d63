//! What there is in a cluster that may fail.

use std::collections::{BTreeMap, BTreeSet};

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
    /// The same webhooks by the name of their configuration, and by their Service, `namespace/name`.
    webhooks_by_alias: BTreeMap<String, BTreeSet<String>>,
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

    /// What there is in manifests: of workloads the images of their pods, too.
    pub fn from_objects<'a>(objects: impl Iterator<Item = &'a Value>) -> Self {
        let mut all = Self::default();
        for object in objects {
            all.take(object);
            if let Some(spec) = object.at(&["spec", "template", "spec"]) {
                all.take_images(spec);
            }
        }
        all
    }

    /// Adds the nodes that a cluster begins with, spread over zones.
    pub fn add_first_nodes(&mut self, settings: &Settings, zones: &[&str]) {
        self.nodes.extend((1..=settings.nodes).map(|number| format!("node-{number}")));
        self.zones.extend(zones.iter().map(|zone| (*zone).to_owned()));
    }

    /// Adds what there is elsewhere.
    pub fn extend(&mut self, other: Self) {
        self.nodes.extend(other.nodes);
        self.images.extend(other.images);
        self.registries.extend(other.registries);
        self.webhooks.extend(other.webhooks);
        for (alias, names) in other.webhooks_by_alias {
            self.webhooks_by_alias.entry(alias).or_default().extend(names);
        }
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
                self.take_images(object.get("spec").unwrap_or(&Value::Null));
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
                for webhook in webhooks {
                    self.take_webhook(object.name(), webhook);
                }
            }
            _ if group.contains('.') && operator_groups(object.kind()).any(|known| known == group) => {
                self.operators.insert(object.kind().to_owned());
            }
            _ => {}
        }
    }

    fn take_images(&mut self, spec: &Value) {
        for field in ["initContainers", "containers"] {
            let containers = spec.get(field).and_then(Value::as_array).into_iter().flatten();
            for image in containers.filter_map(|container| container.str_at(&["image"])) {
                self.images.insert(image.to_owned());
                self.registries.insert(image_host(image).to_owned());
            }
        }
    }

    fn take_webhook(&mut self, configuration: &str, webhook: &Value) {
        let Some(name) = webhook.str_at(&["name"]) else { return };
        let service = webhook.at(&["clientConfig", "service"]).and_then(|service| {
            Some(format!("{}/{}", service.str_at(&["namespace"])?, service.str_at(&["name"])?))
        });
        for alias in service.into_iter().chain([configuration.to_owned()]) {
            self.webhooks_by_alias.entry(alias).or_default().insert(name.to_owned());
        }
        self.webhooks.insert(name.to_owned());
    }

    /// The faults, those of webhooks by the names of the webhooks.
    pub fn with_webhooks_by_name(&self, faults: &[Timed]) -> Vec<Timed> {
        let mut all = Vec::new();
        for fault in faults {
            match &fault.fault {
                Fault::Webhook(alias, how) if !self.webhooks.contains(alias) => {
                    let names = self.webhooks_by_alias.get(alias).into_iter().flatten();
                    all.extend(
                        names
                            .map(|name| Timed { fault: Fault::Webhook(name.clone(), *how), ..fault.clone() }),
                    );
                }
                _ => all.push(fault.clone()),
            }
        }
        all
    }

    /// Checks that what is to fail is there.
    ///
    /// # Errors
    /// With what there is.
    pub fn check(&self, timed: &Timed) -> Result<(), String> {
        let (name, what, all) = match &timed.fault {
            Fault::Node(name) | Fault::Drain(name) => (name.clone(), "node", &self.nodes),
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
        let is_alias =
            matches!(timed.fault, Fault::Webhook(..)) && self.webhooks_by_alias.contains_key(&name);
        if all.contains(&name) || is_alias {
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
            add(format!("drain={node}"), Fault::Drain(node.clone()));
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

    #[test]
    fn manifests_and_first_nodes_tell_what_may_fail() {
        let deployment = tiphys_value::json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"namespace": "shop", "name": "web"},
            "spec": {"template": {"spec": {"containers": [{"image": "ghcr.io/shop/web:1"}]}}}});
        let mut targets = Targets::from_objects([&deployment].into_iter());
        targets.add_first_nodes(&Settings::default(), &["a", "b"]);
        let check = |fault: Fault| {
            targets.check(&Timed { text: String::new(), fault, start: Default::default(), duration: None })
        };
        assert_eq!(check(Fault::Registry("ghcr.io".into(), Pull::Timeout)), Ok(()));
        assert_eq!(check(Fault::Node("node-3".into())), Ok(()));
        assert!(check(Fault::Zone("c".into())).is_err());
        assert!(check(Fault::Registry("quay.io".into(), Pull::Timeout)).is_err());
    }

    #[test]
    fn webhooks_are_known_by_their_configuration_and_their_service_too() {
        let mut targets = Targets::default();
        targets.take(&tiphys_value::json!({"apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration", "metadata": {"name": "guard"},
            "webhooks": [{"name": "a.example.com", "clientConfig": {"service": {"namespace": "policy", "name": "guard"}}},
                {"name": "b.example.com", "clientConfig": {"url": "https://example.com"}}]}));
        let named = |alias: &str| {
            let fault = Fault::Webhook(alias.to_owned(), Hook::Down);
            let timed =
                Timed { text: format!("webhook={alias}"), fault, start: Default::default(), duration: None };
            targets.check(&timed)?;
            let all = targets.with_webhooks_by_name(&[timed]).into_iter();
            let name = |timed: Timed| match timed.fault {
                Fault::Webhook(name, _) => name,
                other => panic!("{other:?}"),
            };
            Ok::<Vec<String>, String>(all.map(name).collect())
        };
        assert_eq!(named("guard").unwrap(), ["a.example.com", "b.example.com"]);
        assert_eq!(named("policy/guard").unwrap(), ["a.example.com"]);
        assert_eq!(named("b.example.com").unwrap(), ["b.example.com"]);
        assert!(named("policy").unwrap_err().contains("there are a.example.com, b.example.com"));
    }
}

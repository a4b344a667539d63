//! The packets that workloads need, inferred from what is rendered.

use std::{collections::BTreeSet, sync::LazyLock};

use regex::Regex;
use serde_json::Value;
use tiphys_value::{FieldPath, ObjectExt};

use crate::{
    endpoint::{Pod, Service, ServicePort},
    flow::{Destination, Direction, Flow, Need},
    network::Network,
    object::Object,
    policy::{Action, Peer},
    port::{PortName, PortRange, Protocol},
    tri_state::Tri,
};

impl Network {
    /// Every connection that is known to be needed, but for probes; `objects` are those that it was read
    /// from.
    pub fn flows(&self, objects: &[Object<'_>]) -> Vec<Flow> {
        let mut flows = Vec::new();
        for at in 0..self.pods.len() {
            self.outward(at, &mut flows);
        }
        for object in
            objects.iter().copied().filter(|object| object.key.group == "admissionregistration.k8s.io")
        {
            self.webhooks(object, &mut flows);
        }
        self.outside(&mut flows);
        self.metrics(objects, &mut flows);
        self.routes(objects, &mut flows);
        self.gateway_routes(objects, &mut flows);
        self.chart_webhooks(&mut flows);
        self.operators(objects, &mut flows);
        self.internet(objects, &mut flows);
        flows
    }

    /// The probes of a pod, as packets of a node that is taken for something outside of the cluster.
    pub fn probes(&self, at: usize) -> Vec<Flow> {
        let ports = self.pods[at].probes.iter();
        let flow = |port: &u16| Flow {
            pod: at,
            direction: Direction::Ingress,
            other: Destination::Node,
            addresses: Vec::new(),
            ports: vec![(Protocol::Tcp, *port)],
            need: Need::Probe,
        };
        ports.map(flow).collect()
    }

    fn outward(&self, at: usize, flows: &mut Vec<Flow>) {
        let pod = &self.pods[at];
        let mut add = |other, ports: &[(Protocol, u16)], need| {
            flows.push(Flow {
                pod: at,
                direction: Direction::Egress,
                other,
                addresses: Vec::new(),
                ports: ports.to_vec(),
                need,
            });
        };
        if pod.has_token && (pod.controller.is_some() || pod.rights.is_some()) {
            let ports: &[(Protocol, u16)] = match self.is_managed {
                Some(true) => &[(Protocol::Tcp, 443)],
                Some(false) => &[(Protocol::Tcp, 6443)],
                None => &[(Protocol::Tcp, 6443), (Protocol::Tcp, 443)],
            };
            add(Destination::ApiServer, ports, Need::ApiServer);
        }
        let calls_cloud = pod.controller.is_some_and(|controller| controller.calls_cloud);
        if calls_cloud {
            add(Destination::World, &[(Protocol::Tcp, 443)], Need::CloudApi);
            if pod.object.is_none() {
                add(Destination::Metadata, &[(Protocol::Tcp, 80)], Need::Metadata);
            }
        }
        let upstreams = self.upstreams(at);
        let asks = || texts(pod).iter().any(|(_, text)| names_service(text));
        if pod.uses_cluster_dns && (calls_cloud || !upstreams.is_empty() || self.is_let_out(at) || asks()) {
            add(Destination::Dns, &[(Protocol::Udp, 53)], Need::Dns);
        }
        flows.extend(upstreams);
    }

    /// Whether a policy lets a pod call whatever is outside by HTTPS: nobody does that by address.
    pub fn is_let_out(&self, at: usize) -> bool {
        let pod = &self.pods[at];
        let https = |range: &PortRange| range.port == Some(PortName::Number(443));
        let everywhere = |peer: &Peer| match peer {
            Peer::Addresses(address) => address.block.prefix_len() == 0,
            Peer::Entity(entity) => entity == "world",
            _ => false,
        };
        let own = self.policies.iter().filter(|it| self.restricts(it, pod, Direction::Egress) == Tri::Yes);
        own.flat_map(|policy| policy.rules(Direction::Egress)).any(|rule| {
            rule.action == Action::Allow
                && rule.peers.iter().flatten().any(everywhere)
                && rule.ports.iter().flatten().any(https)
        })
    }

    /// The Services that a pod's environment and arguments name: the way out, and the way in at the other
    /// side.
    fn upstreams(&self, at: usize) -> Vec<Flow> {
        let pod = &self.pods[at];
        let mut seen: BTreeSet<(String, u16)> = BTreeSet::new();
        let mut flows = Vec::new();
        for (field, text) in texts(pod) {
            for (service, port) in self.services_in_text(pod, text) {
                let Some(port) = port_of(service, port) else { continue };
                let title = match service.namespace.is_empty() {
                    true => service.name.clone(),
                    false => format!("{}.{}", service.name, service.namespace),
                };
                let targets = self.pods.iter().enumerate().filter(|(_, other)| {
                    other.namespace == service.namespace && service.selects(&other.labels)
                });
                for (other, target_pod) in targets.filter(|(other, _)| *other != at) {
                    let Some(number) = target_pod.port(&port.target, port.protocol) else { continue };
                    if !seen.insert((title.clone(), number)) {
                        continue;
                    }
                    let need = Need::Upstream { service: title.clone(), field: field.clone(), from: at };
                    let ports = vec![(port.protocol, number)];
                    let way = |pod, direction, other| Flow {
                        pod,
                        direction,
                        other,
                        addresses: Vec::new(),
                        ports: ports.clone(),
                        need: need.clone(),
                    };
                    flows.push(way(at, Direction::Egress, Destination::Pod(other)));
                    flows.push(way(other, Direction::Ingress, Destination::Pod(at)));
                }
            }
        }
        flows
    }

    /// The Services that a text names, with the port that it gives.
    fn services_in_text<'a>(&'a self, pod: &Pod, text: &str) -> Vec<(&'a Service, Option<u16>)> {
        static FULL: LazyLock<Regex> = LazyLock::new(|| {
            Regex::new(r"([a-z0-9][a-z0-9-]*)\.([a-z0-9][a-z0-9-]*)(?:\.svc)?(?:\.cluster\.local)?\.?(?::(\d{1,5}))?(?:[/\s,;?]|$)")
                .expect("the expression is right")
        });
        static SHORT: LazyLock<Regex> = LazyLock::new(|| {
            Regex::new(r"(?:^|//|@|,)([a-z][a-z0-9-]*):(\d{1,5})(?:[/\s,;?]|$)")
                .expect("the expression is right")
        });
        let port = |found: Option<regex::Match<'_>>| found.and_then(|it| it.as_str().parse().ok());
        let full =
            FULL.captures_iter(text).filter_map(|it| Some((self.service(&it[2], &it[1])?, port(it.get(3)))));
        let short = SHORT
            .captures_iter(text)
            .filter_map(|it| Some((self.service(&pod.namespace, &it[1])?, port(it.get(2)))));
        full.chain(short).collect()
    }

    fn webhooks(&self, object: Object<'_>, flows: &mut Vec<Flow>) {
        for webhook in object.value.get("webhooks").and_then(Value::as_array).into_iter().flatten() {
            let Some(service) = webhook.at(&["clientConfig", "service"]) else { continue };
            let text = |key: &str| service.str_at(&[key]).unwrap_or_default();
            let Some(service_object) = self.service(text("namespace"), text("name")) else { continue };
            let port = service.int_at(&["port"]).and_then(|port| u16::try_from(port).ok()).unwrap_or(443);
            let Some(port) = port_of(service_object, Some(port)) else { continue };
            for (at, pod) in self.pods.iter().enumerate() {
                let is_behind =
                    pod.namespace == service_object.namespace && service_object.selects(&pod.labels);
                let number = pod.port(&port.target, port.protocol).filter(|_| is_behind);
                let Some(number) = number else { continue };
                let flow = Flow {
                    pod: at,
                    direction: Direction::Ingress,
                    other: Destination::ApiServer,
                    addresses: Vec::new(),
                    ports: vec![(Protocol::Tcp, number)],
                    need: Need::Webhook(object.id),
                };
                if !flows.contains(&flow) {
                    flows.push(flow);
                }
            }
        }
    }
}

/// The port of a Service: the one that is named, or its only one.
pub(crate) fn port_of(service: &Service, port: Option<u16>) -> Option<&ServicePort> {
    match (port, service.ports.as_slice()) {
        (Some(wanted), ports) => ports.iter().find(|port| port.number == wanted),
        (None, [only]) => Some(only),
        (None, _) => None,
    }
}

/// The texts in which a pod names what it connects to: values of its environment, arguments, command.
fn texts(pod: &Pod) -> Vec<(FieldPath, &str)> {
    let mut found = Vec::new();
    for list in ["initContainers", "containers"] {
        for (at, container) in pod.spec.get(list).and_then(Value::as_array).into_iter().flatten().enumerate()
        {
            let base = pod.path.key(list).index(at);
            found.extend(variables(container, &base).map(|(field, _, text)| (field, text)));
            for key in ["command", "args"] {
                for (index, argument) in
                    container.get(key).and_then(Value::as_array).into_iter().flatten().enumerate()
                {
                    if let Some(text) = argument.as_str() {
                        found.push((base.key(key).index(index), text));
                    }
                }
            }
        }
    }
    found.extend(pod.configuration.iter().map(|it| (it.field.clone(), it.text.as_str())));
    found
}

/// The variables of a container that have a value of their own: the field, the name and the value.
pub(crate) fn variables<'a>(
    container: &'a Value,
    base: &FieldPath,
) -> impl Iterator<Item = (FieldPath, &'a str, &'a str)> {
    let all = container.get("env").and_then(Value::as_array).into_iter().flatten().enumerate();
    all.filter_map(move |(at, variable)| {
        let name = variable.str_at(&["name"]).unwrap_or_default();
        Some((base.key("env").index(at).key("value"), name, variable.str_at(&["value"])?))
    })
}

/// Whether a text names a Service as only the cluster's DNS knows it, whether the repository has that Service
/// or not.
fn names_service(text: &str) -> bool {
    static FULL: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"(?:^|[/@,\s=])[a-z0-9][a-z0-9-]*\.[a-z0-9][a-z0-9-]*\.svc(?:\.cluster\.local)?\.?(?:[:/\s,;?]|$)")
            .expect("the expression is right")
    });
    text.contains(".svc") && FULL.is_match(text)
}

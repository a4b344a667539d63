//! Connections that come in: from outside of the cluster, from Prometheus, and from the controllers of
//! Ingresses.

use serde_json::Value;
use tiphys_value::ObjectExt;

use crate::{
    endpoint::{Pod, ServicePort},
    flow::{Destination, Direction, Flow, Need},
    network::Network,
    object::Object,
    port::{PortName, Protocol},
    selector::Selector,
    tri_state::Tri,
};

impl Network {
    /// What Services of type LoadBalancer bring in: it has the address of a client or of a node, never a
    /// pod's.
    pub(crate) fn outside(&self, flows: &mut Vec<Flow>) {
        for service in self.services.iter().filter(|service| service.is_outside) {
            for (at, pod) in self.behind(&service.namespace, |pod| service.selects(&pod.labels)) {
                for port in &service.ports {
                    let Some(number) = pod.port(&port.target, port.protocol) else { continue };
                    flows.push(Flow {
                        pod: at,
                        direction: Direction::Ingress,
                        other: Destination::World,
                        addresses: Vec::new(),
                        ports: vec![(port.protocol, number)],
                        need: Need::Outside(service.object),
                    });
                }
            }
        }
    }

    /// The API server's calls of pods that charts out of reach are known to register.
    pub(crate) fn chart_webhooks(&self, flows: &mut Vec<Flow>) {
        for (at, pod) in self.pods.iter().enumerate() {
            flows.extend(pod.webhooks.iter().map(|number| Flow {
                pod: at,
                direction: Direction::Ingress,
                other: Destination::ApiServer,
                addresses: Vec::new(),
                ports: vec![(Protocol::Tcp, *number)],
                need: Need::ChartWebhook,
            }));
        }
    }

    /// What Prometheus reads. Where there are several, it is not known which one does.
    pub(crate) fn metrics(&self, objects: &[Object<'_>], flows: &mut Vec<Flow>) {
        let mut readers = self.pods.iter().enumerate().filter(|(_, pod)| is_prometheus(pod));
        let (Some((reader, _)), None) = (readers.next(), readers.next()) else { return };
        for monitor in objects.iter().copied().filter(|object| object.key.group == "monitoring.coreos.com") {
            let found = match monitor.key.kind.as_str() {
                "ServiceMonitor" => self.of_services(monitor),
                "PodMonitor" => self.of_pods(monitor),
                _ => continue,
            };
            for (pod, number) in found {
                let flow = Flow {
                    pod,
                    direction: Direction::Ingress,
                    other: Destination::Pod(reader),
                    addresses: Vec::new(),
                    ports: vec![(Protocol::Tcp, number)],
                    need: Need::Metrics(monitor.id),
                };
                if pod != reader && !flows.contains(&flow) {
                    flows.push(flow);
                }
            }
        }
    }

    /// The pods, with their ports, of the Services that a monitor selects.
    fn of_services(&self, monitor: Object<'_>) -> Vec<(usize, u16)> {
        let selector = Selector::from_value(
            monitor.value.at(&["spec", "selector"]).unwrap_or(&Value::Null),
            str::to_owned,
        );
        let mut found = Vec::new();
        let services = self.services.iter().filter(|service| {
            covers(monitor, &service.namespace) && selector.matches(&service.labels, true) == Tri::Yes
        });
        for service in services {
            for endpoint in list(monitor, "endpoints") {
                let named =
                    |port: &&ServicePort| endpoint.str_at(&["port"]).is_some_and(|name| name == port.name);
                let Some(port) = service.ports.iter().find(named) else { continue };
                let pods = self.behind(&service.namespace, |pod| service.selects(&pod.labels));
                found.extend(pods.filter_map(|(at, pod)| Some((at, pod.port(&port.target, port.protocol)?))));
            }
        }
        found
    }

    /// The pods, with their ports, that a monitor selects.
    fn of_pods(&self, monitor: Object<'_>) -> Vec<(usize, u16)> {
        let selector = Selector::from_value(
            monitor.value.at(&["spec", "selector"]).unwrap_or(&Value::Null),
            str::to_owned,
        );
        let pods = self.pods.iter().enumerate().filter(|(_, pod)| {
            covers(monitor, &pod.namespace) && selector.matches(&pod.labels, true) == Tri::Yes
        });
        let mut found = Vec::new();
        for (at, pod) in pods {
            let ports = list(monitor, "podMetricsEndpoints").filter_map(|it| it.str_at(&["port"]));
            let names = ports.map(|name| PortName::Name(name.to_owned()));
            found.extend(names.filter_map(|name| Some((at, pod.port(&name, Protocol::Tcp)?))));
        }
        found
    }

    /// What the controllers of Ingresses send to the pods behind. Only of those whose pods are known, and
    /// whose class says which one it is, can it be told where the packet comes from.
    pub(crate) fn routes(&self, objects: &[Object<'_>], flows: &mut Vec<Flow>) {
        for ingress in objects
            .iter()
            .copied()
            .filter(|it| it.key.group == "networking.k8s.io" && it.key.kind == "Ingress")
        {
            let Some(sender) = self.sender(ingress) else { continue };
            for (name, port) in backends(ingress) {
                let Some(service) = self.service(&ingress.key.namespace, name) else { continue };
                let is_meant = |it: &&ServicePort| match &port {
                    PortName::Name(name) => it.name == *name,
                    PortName::Number(number) => it.number == *number,
                };
                let Some(port) = service.ports.iter().find(is_meant) else { continue };
                for (pod, behind) in self.behind(&service.namespace, |pod| service.selects(&pod.labels)) {
                    let Some(number) = behind.port(&port.target, port.protocol) else { continue };
                    let flow = Flow {
                        pod,
                        direction: Direction::Ingress,
                        other: Destination::Pod(sender),
                        addresses: Vec::new(),
                        ports: vec![(port.protocol, number)],
                        need: Need::Route(ingress.id),
                    };
                    if pod != sender && !flows.contains(&flow) {
                        flows.push(flow);
                    }
                }
            }
        }
    }

    /// The pods of the controller that an Ingress is for, where there is one with its class in its name.
    fn sender(&self, ingress: Object<'_>) -> Option<usize> {
        let class = ingress
            .value
            .str_at(&["spec", "ingressClassName"])
            .or_else(|| ingress.value.annotation("kubernetes.io/ingress.class"))?;
        let (_, label) = CONTROLLERS.iter().find(|(word, _)| class.contains(word))?;
        let is_it = |pod: &Pod| pod.labels.get("app.kubernetes.io/name").is_some_and(|name| name == label);
        let is_part = |pod: &Pod| {
            let part = pod.labels.get("app.kubernetes.io/component");
            part.is_some_and(|part| part != "controller")
        };
        let mut all = self.pods.iter().enumerate().filter(|(_, pod)| is_it(pod) && !is_part(pod));
        let (Some((at, pod)), None) = (all.next(), all.next()) else { return None };
        // From the node's network a packet has the address of a node.
        (!pod.uses_host_network).then_some(at)
    }

    fn behind<'a>(
        &'a self,
        namespace: &'a str,
        selects: impl Fn(&Pod) -> bool + 'a,
    ) -> impl Iterator<Item = (usize, &'a Pod)> {
        self.pods.iter().enumerate().filter(move |(_, pod)| pod.namespace == namespace && selects(pod))
    }
}

/// Controllers of Ingresses: a word in the name of their class, and the `app.kubernetes.io/name` of their pods.
const CONTROLLERS: [(&str, &str); 2] = [("nginx", "ingress-nginx"), ("traefik", "traefik")];

/// The Services that an Ingress names, each with its port.
fn backends(ingress: Object<'_>) -> Vec<(&str, PortName)> {
    let spec = ingress.value.get("spec").unwrap_or(&Value::Null);
    let rules = spec.get("rules").and_then(Value::as_array).into_iter().flatten();
    let paths = rules.filter_map(|rule| rule.at(&["http", "paths"])?.as_array()).flatten();
    let named = paths.filter_map(|path| path.at(&["backend", "service"]));
    let all = named.chain(spec.at(&["defaultBackend", "service"]));
    all.filter_map(|service| {
        let port = service.get("port")?;
        let port = port.get("name").or_else(|| port.get("number")).and_then(PortName::from_value)?;
        Some((service.get("name")?.as_str()?, port))
    })
    .collect()
}

fn list<'a>(monitor: Object<'a>, key: &str) -> impl Iterator<Item = &'a Value> {
    monitor.value.at(&["spec", key]).and_then(Value::as_array).into_iter().flatten()
}

/// Whether a monitor looks into a namespace.
fn covers(monitor: Object<'_>, namespace: &str) -> bool {
    let Some(selector) = monitor.value.at(&["spec", "namespaceSelector"]) else {
        return monitor.key.namespace == namespace;
    };
    let names = selector.get("matchNames").and_then(Value::as_array);
    selector.get("any").and_then(Value::as_bool) == Some(true)
        || names.is_some_and(|names| names.iter().any(|name| name.as_str() == Some(namespace)))
        || (names.is_none() && monitor.key.namespace == namespace)
}

fn is_prometheus(pod: &Pod) -> bool {
    !pod.is_exact && pod.labels.get("app.kubernetes.io/name").is_some_and(|name| name == "prometheus")
}

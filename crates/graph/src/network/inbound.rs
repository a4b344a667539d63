//! Connections that come in: from outside of the cluster, and from Prometheus.

use serde_json::Value;
use tiphys_model::ApplicationSource;
use tiphys_value::{FieldPath, ObjectExt};

use super::{
    Destination, Direction, Flow, Need, Network, Pod, PortName, Protocol, Selector, ServicePort, Tri,
};
use crate::{App, Object, Outcome, Survey};

impl Network {
    /// What Services of type LoadBalancer bring in: it has the address of a client or of a node, never a
    /// pod's.
    pub(super) fn outside(&self, flows: &mut Vec<Flow>) {
        for service in self.services.iter().filter(|service| service.is_outside) {
            for (at, pod) in self.behind(&service.namespace, |pod| service.selects(&pod.labels)) {
                for port in &service.ports {
                    let Some(number) = pod.port(&port.target, port.protocol) else { continue };
                    flows.push(Flow {
                        pod: at,
                        direction: Direction::Ingress,
                        other: Destination::World,
                        ports: vec![(port.protocol, number)],
                        need: Need::Outside(service.object),
                    });
                }
            }
        }
    }

    /// What Prometheus reads. Where there are several, it is not known which one does.
    pub(super) fn metrics(&self, survey: &Survey, flows: &mut Vec<Flow>) {
        let mut readers = self.pods.iter().enumerate().filter(|(_, pod)| is_prometheus(pod));
        let (Some((reader, _)), None) = (readers.next(), readers.next()) else { return };
        let objects = self.objects.iter().map(|id| survey.object(*id));
        for monitor in objects.filter(|object| object.key.group == "monitoring.coreos.com") {
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
    fn of_services(&self, monitor: &Object) -> Vec<(usize, u16)> {
        let selector = Selector::from_value(
            monitor.value().at(&["spec", "selector"]).unwrap_or(&Value::Null),
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
    fn of_pods(&self, monitor: &Object) -> Vec<(usize, u16)> {
        let selector = Selector::from_value(
            monitor.value().at(&["spec", "selector"]).unwrap_or(&Value::Null),
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

    fn behind<'a>(
        &'a self,
        namespace: &'a str,
        selects: impl Fn(&Pod) -> bool + 'a,
    ) -> impl Iterator<Item = (usize, &'a Pod)> {
        self.pods.iter().enumerate().filter(move |(_, pod)| pod.namespace == namespace && selects(pod))
    }
}

fn list<'a>(monitor: &'a Object, key: &str) -> impl Iterator<Item = &'a Value> {
    monitor.value().at(&["spec", key]).and_then(Value::as_array).into_iter().flatten()
}

/// Whether a monitor looks into a namespace.
fn covers(monitor: &Object, namespace: &str) -> bool {
    let Some(selector) = monitor.value().at(&["spec", "namespaceSelector"]) else {
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

/// The Prometheus that an Application is known to make though its chart could not be had.
pub fn unseen(app: &App) -> Option<Pod> {
    let spec = &app.application.spec;
    let mut sources = spec.source.iter().chain(&spec.sources);
    let is_unseen = matches!(app.outcome, Outcome::Unseen(_) | Outcome::Failed(_));
    // As an agent its pods are called otherwise.
    let is_agent = |source: &ApplicationSource| {
        source.helm.as_ref().is_some_and(|helm| {
            let values = helm.values_object.as_ref().map_or_else(|| helm.values.clone(), ToString::to_string);
            values.contains("agentMode")
        })
    };
    (is_unseen && sources.any(|source| source.chart == "kube-prometheus-stack" && !is_agent(source)))
        .then(|| prometheus(&spec.destination.namespace))
}

/// A Prometheus of the operator's; only the label that all of them bear is known.
fn prometheus(namespace: &str) -> Pod {
    Pod {
        object: None,
        title: format!("Prometheus in {namespace}"),
        namespace: namespace.to_owned(),
        labels: [("app.kubernetes.io/name".to_owned(), "prometheus".to_owned())].into(),
        is_exact: false,
        service_account: String::new(),
        has_token: false,
        uses_host_network: false,
        uses_cluster_dns: true,
        ports: Vec::new(),
        probes: Vec::new(),
        controller: None,
        rights: None,
        has_active_rights: false,
        configuration: Vec::new(),
        spec: Value::Null,
        path: FieldPath::default(),
    }
}

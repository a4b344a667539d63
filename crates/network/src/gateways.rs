//! The pods behind Gateways, of the Gateway API and of Istio, and what the routes of those send to.
//!
//! A controller of the Gateway API makes pods for a Gateway, with labels and in a namespace that it
//! documents; a Gateway of Istio selects pods that somebody installs.

use serde_json::Value;
use tiphys_value::ObjectExt;

use crate::{
    endpoint::Pod,
    flow::{Destination, Direction, Flow, Need},
    flows::port_of,
    network::Network,
    object::Object,
    selector::Labels,
};

/// A controller of GatewayClasses, and what it makes for a Gateway. `{}` stands for the Gateway's name and
/// `{ns}` for its namespace.
struct GatewayController {
    /// `spec.controllerName` of its classes.
    name: &'static str,
    /// Labels of the pods.
    labels: &'static [(&'static str, &'static str)],
    /// The label of the controller's own pods, if the pods are made beside these.
    beside: Option<(&'static str, &'static str)>,
}

const CONTROLLERS: [GatewayController; 3] = [
    // Envoy Gateway docs, "Customize EnvoyProxy".
    GatewayController {
        name: "gateway.envoyproxy.io/gatewayclass-controller",
        labels: &[
            ("app.kubernetes.io/component", "proxy"),
            ("app.kubernetes.io/managed-by", "envoy-gateway"),
            ("app.kubernetes.io/name", "envoy"),
            ("gateway.envoyproxy.io/owning-gateway-name", "{}"),
            ("gateway.envoyproxy.io/owning-gateway-namespace", "{ns}"),
        ],
        beside: Some(("control-plane", "envoy-gateway")),
    },
    // Istio docs, "Kubernetes Gateway API", Automated Deployment.
    GatewayController {
        name: "istio.io/gateway-controller",
        labels: &[("gateway.networking.k8s.io/gateway-name", "{}")],
        beside: None,
    },
    // kgateway docs, "Gateways".
    GatewayController {
        name: "kgateway.dev/kgateway",
        labels: &[("gateway.networking.k8s.io/gateway-name", "{}")],
        beside: None,
    },
];

const GATEWAY_API: &str = "gateway.networking.k8s.io";
const ISTIO: &str = "networking.istio.io";

impl Network {
    /// Adds the pods that controllers make for the Gateways among some objects. What may run the controllers
    /// has to be known by then.
    pub fn foresee_gateways(&mut self, objects: &[Object<'_>]) {
        // Settings of Envoy Gateway may put the pods elsewhere, or share them.
        if objects.iter().any(|it| it.key.kind == "EnvoyProxy") {
            return;
        }
        let gateways = objects.iter().filter(|it| it.key.group == GATEWAY_API && it.key.kind == "Gateway");
        for gateway in gateways.filter(|it| it.value.at(&["spec", "addresses"]).is_none()) {
            let class = gateway.value.str_at(&["spec", "gatewayClassName"]).unwrap_or_default();
            let is_class = |it: &&Object<'_>| it.key.kind == "GatewayClass" && it.key.name == class;
            let class = objects.iter().find(is_class);
            let name = class.and_then(|it| it.value.str_at(&["spec", "controllerName"]));
            let Some(controller) = CONTROLLERS.iter().find(|it| Some(it.name) == name) else { continue };
            let namespace = match controller.beside {
                None => gateway.key.namespace.clone(),
                Some((key, value)) => {
                    let is_own = |pod: &&Pod| pod.labels.get(key).is_some_and(|it| it == value);
                    let mut own = self.pods.iter().filter(is_own).map(|pod| pod.namespace.clone());
                    let Some(only) = own.next().filter(|first| own.all(|it| it == *first)) else { continue };
                    only
                }
            };
            let filled =
                |text: &str| text.replace("{ns}", &gateway.key.namespace).replace("{}", &gateway.key.name);
            let labels: Labels =
                controller.labels.iter().map(|(key, value)| ((*key).to_owned(), filled(value))).collect();
            let title = format!("the pods of {}", gateway.title());
            self.pods.push(Pod { object: Some(gateway.id), ..Pod::foreseen(title, &namespace, labels) });
        }
    }

    /// What Gateways send to the pods behind the routes that are attached to them.
    pub(crate) fn gateway_routes(&self, objects: &[Object<'_>], flows: &mut Vec<Flow>) {
        for route in objects.iter().copied() {
            let (senders, backends) = match (route.key.group.as_str(), route.key.kind.as_str()) {
                (GATEWAY_API, "HTTPRoute" | "GRPCRoute" | "TCPRoute" | "TLSRoute") => {
                    (self.senders_of_gateway_api(route, objects), backends_of_gateway_api(route))
                }
                (ISTIO, "VirtualService") => {
                    (self.senders_of_istio(route, objects), backends_of_istio(route))
                }
                _ => continue,
            };
            for sender in senders {
                for (namespace, name, port) in &backends {
                    let Some(service) = self.service(namespace, name) else { continue };
                    let Some(port) = port_of(service, *port) else { continue };
                    let behind = self.pods.iter().enumerate().filter(|(_, pod)| {
                        pod.namespace == service.namespace && service.selects(&pod.labels)
                    });
                    for (at, pod) in behind {
                        let Some(number) = pod.port(&port.target, port.protocol) else { continue };
                        let flow = Flow {
                            pod: at,
                            direction: Direction::Ingress,
                            other: Destination::Pod(sender),
                            addresses: Vec::new(),
                            ports: vec![(port.protocol, number)],
                            need: Need::Route(route.id),
                        };
                        if at != sender && !flows.contains(&flow) {
                            flows.push(flow);
                        }
                    }
                }
            }
        }
    }

    /// The pods of the Gateways that a route is attached to, as far as they are known.
    fn senders_of_gateway_api(&self, route: Object<'_>, objects: &[Object<'_>]) -> Vec<usize> {
        let parents = items(route.value.at(&["spec", "parentRefs"]));
        let gateways = parents.filter(|it| matches!(it.str_at(&["kind"]), None | Some("Gateway")));
        let found = gateways.filter_map(|parent| {
            let namespace = parent.str_at(&["namespace"]).unwrap_or(&route.key.namespace);
            let name = parent.str_at(&["name"])?;
            let gateway = gateway(objects, GATEWAY_API, namespace, name)?;
            self.pods.iter().position(|pod| pod.object == Some(gateway.id))
        });
        found.collect()
    }

    /// The pods that the Gateways of a VirtualService select, where one workload alone has the labels.
    fn senders_of_istio(&self, route: Object<'_>, objects: &[Object<'_>]) -> Vec<usize> {
        let named = items(route.value.at(&["spec", "gateways"])).filter_map(Value::as_str);
        let found = named.filter(|name| *name != "mesh").filter_map(|name| {
            let (namespace, name) = name.split_once('/').unwrap_or((&route.key.namespace, name));
            let gateway = gateway(objects, ISTIO, namespace, name)?;
            let selector = gateway.value.at(&["spec", "selector"])?.as_object()?;
            let has = |pod: &Pod| {
                let mut all = selector.iter();
                all.all(|(key, value)| pod.labels.get(key).map(String::as_str) == value.as_str())
            };
            let mut all = self.pods.iter().enumerate().filter(|(_, pod)| !selector.is_empty() && has(pod));
            let (at, pod) = all.next()?;
            (all.next().is_none() && !pod.uses_host_network).then_some(at)
        });
        found.collect()
    }
}

/// The Gateway of an API that is meant.
fn gateway<'o>(objects: &[Object<'o>], group: &str, namespace: &str, name: &str) -> Option<Object<'o>> {
    let mut gateways = objects.iter().copied().filter(|it| it.key.group == group && it.key.kind == "Gateway");
    gateways.find(|it| it.key.namespace == namespace && it.key.name == name)
}

/// The Services that a route of the Gateway API sends to: namespace, name and port.
fn backends_of_gateway_api(route: Object<'_>) -> Vec<(String, String, Option<u16>)> {
    let rules = items(route.value.at(&["spec", "rules"]));
    let backends = rules.flat_map(|rule| items(rule.get("backendRefs")));
    let services = backends.filter(|it| matches!(it.str_at(&["kind"]), None | Some("Service")));
    let found = services.filter_map(|it| {
        let namespace = it.str_at(&["namespace"]).unwrap_or(&route.key.namespace);
        let port = it.int_at(&["port"]).and_then(|port| u16::try_from(port).ok());
        Some((namespace.to_owned(), it.str_at(&["name"])?.to_owned(), port))
    });
    found.collect()
}

/// The Services that a route of Istio sends to: namespace, name and port.
fn backends_of_istio(route: Object<'_>) -> Vec<(String, String, Option<u16>)> {
    let rules = ["http", "tcp", "tls"].into_iter().flat_map(|it| items(route.value.at(&["spec", it])));
    let destinations = rules.flat_map(|rule| items(rule.get("route")));
    let found = destinations.filter_map(|it| {
        let destination = it.get("destination")?;
        let host = destination.str_at(&["host"])?;
        let mut steps = host.split('.');
        let name = steps.next()?.to_owned();
        let namespace = match steps.collect::<Vec<_>>().as_slice() {
            [] => route.key.namespace.clone(),
            [namespace] | [namespace, "svc"] | [namespace, "svc", "cluster", "local"] => {
                (*namespace).to_owned()
            }
            _ => return None,
        };
        let port = destination.int_at(&["port", "number"]).and_then(|port| u16::try_from(port).ok());
        Some((namespace, name, port))
    });
    found.collect()
}

fn items(list: Option<&Value>) -> impl Iterator<Item = &Value> {
    list.and_then(Value::as_array).into_iter().flatten()
}

//! # Endpoints by hand whose port no Service asks for
//!
//! A Service without a selector is completed by hand: an EndpointSlice with the label
//! `kubernetes.io/service-name`, or an Endpoints object of its name. The ports of both are joined by their
//! names, and nothing else: where the names differ, or the label names a Service that is not there, the
//! Service has an address and no end.
//!
//! People see: `connection refused`, `503 no available server`, `<none>` under Endpoints of `kubectl describe
//! service`.
//!
//! ## Bad
//! ```yaml
//! kind: Service
//! spec: {ports: [{name: https, port: 443}]}
//! ---
//! kind: EndpointSlice
//! ports: [{name: http, port: 8006}]
//! ```
//! ## Good
//! ```yaml
//! kind: EndpointSlice
//! ports: [{name: https, port: 8006}]
//! ```
//! ## When to suppress
//! Where something else than kube-proxy reads the slice.

use tiphys_diag::Severity;
use tiphys_graph::Object;
use tiphys_value::{FieldPath, ObjectExt, Value};

use crate::{
    Context, Report, Rule,
    support::{
        dedup::Once,
        field_paths::keys,
        placeholders,
        pods::{list, text},
    },
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "F4-endpoints",
    incident: "F4",
    severity: Severity::Warning,
    title: "endpoints by hand whose port no Service asks for",
    page: page!("f4_endpoints.rs"),
    check,
};

const SERVICE_NAME: &str = "kubernetes.io/service-name";

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    for cluster in context.clusters() {
        for object in &cluster.objects {
            let namespace = object.key.namespace.as_str();
            let (name, ports) = match (object.key.group.as_str(), object.key.kind.as_str()) {
                ("discovery.k8s.io", "EndpointSlice") => {
                    let Some(name) = object.value().label(SERVICE_NAME) else { continue };
                    (name, vec![(keys(&["ports"]), list(object.value(), "ports"))])
                }
                ("", "Endpoints") => (object.key.name.as_str(), of_subsets(object)),
                _ => continue,
            };
            let Some(service) = cluster.core("Service", namespace, name) else { continue };
            let asked = list(&service.value()["spec"], "ports");
            let has_selector = service.value().at(&["spec", "selector"]).is_some();
            if has_selector || asked.is_empty() || placeholders::has_placeholder(object.value()) {
                continue;
            }
            let names: Vec<&str> = asked.iter().map(|port| text(port, "name")).collect();
            let all = || ports.iter().flat_map(|(_, ports)| ports.iter());
            // A port more is no harm, as long as each that is asked for is there.
            let Some(lacking) = names.iter().find(|name| all().all(|port| text(port, "name") != **name))
            else {
                continue;
            };
            let Some((path, _)) = ports.iter().find(|(_, ports)| !ports.is_empty()) else { continue };
            let given = all().map(|port| port_name(text(port, "name"))).collect::<Vec<_>>().join(", ");
            let what =
                format!("{} has no port {} of {}", object.title(), port_name(lacking), service.title());
            let diagnostic = RULE
                .diagnostic(what.clone())
                .at(context.survey.span(object, &path.index(0)), format!("its ports are called {given}"))
                .see(context.survey.start(service), "this Service asks for it")
                .because("ports of a Service and of its endpoints are joined by their names: without the same name nothing answers")
                .help(format!("call the port {} in both", port_name(lacking)));
            once.add(&what, RULE.finding(context, object, diagnostic));
        }
    }
    once.report(report);
}

/// The ports of all subsets of an Endpoints object.
fn of_subsets(object: &Object) -> Vec<(FieldPath, &[Value])> {
    let subsets = list(object.value(), "subsets").iter().enumerate();
    subsets.map(|(at, subset)| (keys(&["subsets"]).index(at).key("ports"), list(subset, "ports"))).collect()
}

/// The name of a port, or that it has none.
fn port_name(name: &str) -> String {
    if name.is_empty() { "without a name".to_owned() } else { format!("{name:?}") }
}

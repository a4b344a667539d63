//! Ingresses and routes that lead to a Service, or to a port of one, that is not there: who calls them gets
//! an error.

use std::collections::BTreeSet;

use tiphys_apiserver::{ResourceId, Snapshot};
use tiphys_cause::Cause as Id;
use tiphys_diag::similar_names::nearest_slip_beside_numbers;
use tiphys_stage::{
    causes::{Cause, Repair},
    mechanism::Mechanism,
};
use tiphys_value::{ObjectExt, ResourceKey, Value};

use super::{hidden_cause::hidden_cause, service_targets::service};
use crate::{rehearse::strict_world::known_services::KnownServices, up::plan::Plan};

/// Words that tell one name of a Service from another and mean nothing.
const FILLERS: [&str; 4] = ["svc", "service", "headless", "srv"];

/// Where a route leads.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Backend {
    service: ResourceKey,
    /// The number or name of a port.
    port: Option<String>,
}

/// Routes that lead nowhere at the end. `before` is how it was before a change: what led nowhere then is not
/// told. A Service that is not there counts only if it was there before, or if the name is a slip for another
/// one: people make some by hand.
pub(super) fn without_backend(end: &Snapshot, before: Option<&Snapshot>, plan: &Plan) -> Vec<Cause> {
    let known = KnownServices::from_plan(plan);
    let routes = end
        .resources()
        .filter(|id| is_route(id))
        .flat_map(|id| end.list(id, None).map(move |route| (id, route.value())));
    let causes = routes.filter_map(|(id, route)| {
        let lost = backends(route).into_iter().find_map(|backend| {
            let fault = fault(&backend, end, &known, before)?;
            let was_lost = before.is_some_and(|before| {
                let same = before.get(id, route.namespace(), route.name());
                same.is_some_and(|old| backends(old.value()).contains(&backend))
                    && leads_nowhere(&backend, before)
            });
            (!was_lost).then_some((backend, fault))
        });
        let (backend, (text, near)) = lost?;
        let mechanism = Mechanism { id: Id::EdgeBackend, objects: vec![backend.service.clone()] };
        let repair = near.map(|near| Repair {
            text: format!("write the Service {near:?} in place of {:?}", backend.service.name),
            ..Repair::default()
        });
        Some(Cause { repair, ..hidden_cause(route.resource_key(), mechanism, text, "leads nowhere") })
    });
    causes.collect()
}

fn is_route(id: &ResourceId) -> bool {
    matches!(
        (id.group(), id.resource()),
        ("networking.k8s.io", "ingresses")
            | ("gateway.networking.k8s.io", "httproutes")
            | ("traefik.io", "ingressroutes")
    )
}

/// The Services that a route names.
fn backends(route: &Value) -> Vec<Backend> {
    let port_text = |port: &Value| match port {
        Value::Number(number) => Some(number.to_string()),
        Value::String(text) => Some(text.clone()),
        _ => None,
    };
    let backend = |namespace: &str, name: &str, port: Option<String>| Backend {
        service: ResourceKey::new("", "Service", namespace, name),
        port,
    };
    match route.kind() {
        "Ingress" => {
            let paths =
                items(route, &["spec", "rules"]).iter().flat_map(|rule| items(rule, &["http", "paths"]));
            let named = paths.filter_map(|path| path.at(&["backend", "service"]));
            let default = route.at(&["spec", "defaultBackend", "service"]);
            let all = named.chain(default);
            all.filter_map(|service| {
                let port = service.at(&["port", "number"]).or_else(|| service.at(&["port", "name"]));
                let name = service.str_at(&["name"])?;
                // Where the AWS controller has an action in place of a Service.
                let is_action = service.str_at(&["port", "name"]) == Some("use-annotation");
                (!is_action).then(|| backend(route.namespace(), name, port.and_then(port_text)))
            })
            .collect()
        }
        "HTTPRoute" | "IngressRoute" => {
            let (rules, list) = match route.kind() {
                "HTTPRoute" => (items(route, &["spec", "rules"]), "backendRefs"),
                _ => (items(route, &["spec", "routes"]), "services"),
            };
            let named = rules.iter().flat_map(|rule| items(rule, &[list]));
            named
                .filter(|it| it.str_at(&["kind"]).is_none_or(|kind| kind == "Service"))
                .filter(|it| it.str_at(&["group"]).is_none_or(str::is_empty))
                .filter_map(|it| {
                    let namespace = it.str_at(&["namespace"]).unwrap_or_else(|| route.namespace());
                    Some(backend(namespace, it.str_at(&["name"])?, it.get("port").and_then(port_text)))
                })
                .collect()
        }
        _ => Vec::new(),
    }
}

fn items<'a>(value: &'a Value, path: &[&str]) -> &'a [Value] {
    value.at(path).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// What is wrong with a backend, in words, and the Service that may be meant.
fn fault(
    backend: &Backend,
    end: &Snapshot,
    known: &KnownServices,
    before: Option<&Snapshot>,
) -> Option<(String, Option<String>)> {
    let ResourceKey { namespace, name, .. } = &backend.service;
    let Some(service) = service(end, &backend.service) else {
        let services = end.list(&ResourceId::new("", "services"), Some(namespace));
        let others: BTreeSet<&str> = services.map(|it| it.value().name()).collect();
        let near = nearest_slip_beside_numbers(name, others.iter().copied())
            .or_else(|| others.iter().copied().find(|other| means_the_same(name, other)));
        let was_there =
            before.is_some_and(|before| super::service_targets::service(before, &backend.service).is_some());
        let is_slip = near.is_some() && known.is_surely_absent(namespace, name);
        let there = near.map(|near| format!("; there is {near}")).unwrap_or_default();
        return (was_there || is_slip).then(|| {
            (
                format!("it leads to Service {namespace}/{name}, which does not exist{there}"),
                near.map(str::to_owned),
            )
        });
    };
    // Services that operators make are played with some of their ports only.
    let port = backend.port.as_ref().filter(|port| {
        known.has(namespace, name)
            && service.str_at(&["spec", "type"]) != Some("ExternalName")
            && !has_port(service, port)
    })?;
    let ports: Vec<String> = ports(service).into_iter().flatten().collect();
    let text = format!(
        "it leads to port {port} of Service {namespace}/{name}, which has {}",
        if ports.is_empty() { "none".to_owned() } else { ports.join(", ") }
    );
    Some((text, None))
}

/// Whether a backend was not there in a state of the cluster.
fn leads_nowhere(backend: &Backend, snapshot: &Snapshot) -> bool {
    let Some(service) = service(snapshot, &backend.service) else { return true };
    backend.port.as_ref().is_some_and(|port| !has_port(service, port))
}

/// Number and name of each port of a Service.
fn ports(service: &Value) -> Vec<Vec<String>> {
    let ports = service.at(&["spec", "ports"]).and_then(Value::as_array).into_iter().flatten();
    ports
        .map(|port| {
            let number = port.int_at(&["port"]).map(|number| number.to_string());
            number.into_iter().chain(port.str_at(&["name"]).map(str::to_owned)).collect()
        })
        .collect()
}

fn has_port(service: &Value, port: &str) -> bool {
    ports(service).iter().flatten().any(|it| it == port)
}

/// Whether two names differ only in words that mean nothing: `shop` and `shop-svc`.
fn means_the_same(name: &str, other: &str) -> bool {
    let words = |name: &str| -> Vec<String> {
        name.split('-').filter(|word| !FILLERS.contains(word)).map(str::to_owned).collect()
    };
    name != other && words(name) == words(other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiphys_value::json;

    #[test]
    fn routes_name_their_backends() {
        let ingress = json!({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
            "metadata": {"name": "web", "namespace": "shop"},
            "spec": {"defaultBackend": {"service": {"name": "fallback", "port": {"name": "http"}}},
                "rules": [{"http": {"paths": [
                    {"backend": {"service": {"name": "web", "port": {"number": 80}}}},
                    {"backend": {"service": {"name": "redirect", "port": {"name": "use-annotation"}}}}]}}]}});
        let named = |route: &Value| -> Vec<String> {
            let port = |backend: &Backend| backend.port.clone().unwrap_or_default();
            let name = |it: &Backend| format!("{}/{}:{}", it.service.namespace, it.service.name, port(it));
            backends(route).iter().map(name).collect()
        };
        assert_eq!(named(&ingress), ["shop/web:80", "shop/fallback:http"]);
        let route = json!({"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute",
            "metadata": {"name": "web", "namespace": "shop"},
            "spec": {"rules": [{"backendRefs": [{"name": "web", "port": 80}, {"name": "bucket", "kind": "Bucket"},
                {"name": "api", "namespace": "core", "port": 8080}]}]}});
        assert_eq!(named(&route), ["shop/web:80", "core/api:8080"]);
    }

    #[test]
    fn some_words_of_names_mean_nothing() {
        assert!(means_the_same("shop-svc", "shop") && means_the_same("shop", "shop-service"));
        assert!(!means_the_same("shop", "shop-api") && !means_the_same("shop", "shop"));
    }
}

//! What the webhook of Istio refuses (istio, `pkg/config/validation`).

use tiphys_value::{FieldPath, ObjectExt, Value};

use super::refused_fields::Refusals;
use crate::support::{
    field_paths::keys,
    pods::{list, text},
};

pub(super) fn check(kind: &str, spec: &Value, found: &mut Refusals) {
    match kind {
        "VirtualService" => virtual_service(spec, found),
        "Gateway" => gateway(spec, found),
        "ServiceEntry" => service_entry(spec, found),
        "DestinationRule" => destination_rule(spec, found),
        "Sidecar" => sidecar(spec, found),
        "RequestAuthentication" => request_authentication(spec, found),
        "PeerAuthentication" => peer_authentication(spec, found),
        "AuthorizationPolicy" => authorization_policy(spec, found),
        _ => {}
    }
}

fn texts<'v>(spec: &'v Value, field: &str) -> Vec<(FieldPath, &'v str)> {
    let place = keys(&["spec", field]);
    let all = list(spec, field).iter().enumerate();
    all.filter_map(|(at, it)| Some((place.index(at), it.as_str()?))).collect()
}

fn virtual_service(spec: &Value, found: &mut Refusals) {
    let hosts = texts(spec, "hosts");
    found.repeated(hosts.iter().cloned(), |host| format!("duplicate hosts in virtual service: {host}"));
    let gateways = texts(spec, "gateways");
    let is_of_mesh = gateways.is_empty() || gateways.iter().any(|(_, it)| *it == "mesh");
    // A delegate has no hosts.
    if let Some((field, _)) = hosts.iter().find(|(_, host)| *host == "*").filter(|_| is_of_mesh) {
        let message = "wildcard host * is not allowed for virtual services bound to the mesh gateway";
        found.add(field.clone(), message);
    }
    if !["http", "tcp", "tls"].iter().any(|protocol| !list(spec, protocol).is_empty()) {
        found.add(keys(&["spec"]), "http, tcp or tls must be provided in virtual service");
    }
    for (at, route) in list(spec, "http").iter().enumerate() {
        let place = keys(&["spec", "http"]).index(at);
        let has = |field: &str| route.get(field).is_some_and(|it| !it.is_null());
        let routes = list(route, "route");
        if routes.is_empty() && !["redirect", "directResponse", "delegate"].iter().any(|it| has(it)) {
            found.add(place.clone(), "HTTP route, redirect or direct_response is required");
        }
        if !routes.is_empty() && has("redirect") {
            found.add(place.key("redirect"), "HTTP route cannot contain both route and redirect");
        }
        if has("redirect") && has("rewrite") {
            found.add(place.key("rewrite"), "HTTP route rule cannot contain both rewrite and redirect");
        }
        let weights: Vec<i64> = routes.iter().map(|it| it["weight"].as_i64().unwrap_or_default()).collect();
        if weights.len() > 1 && weights.iter().sum::<i64>() == 0 {
            found.add(place.key("route"), "total destination weight = 0");
        }
        for (number, destination) in routes.iter().enumerate() {
            if destination.at(&["destination", "host"]).is_none() {
                found.add(place.key("route").index(number), "destination host is required");
            }
        }
    }
}

fn gateway(spec: &Value, found: &mut Refusals) {
    let servers = list(spec, "servers");
    let place = keys(&["spec", "servers"]);
    found.repeated(
        servers.iter().enumerate().map(|(at, it)| {
            (place.index(at).key("port").key("name"), it.str_at(&["port", "name"]).unwrap_or_default())
        }),
        |name| format!("port names in servers must be unique: duplicate name {name}"),
    );
    for (at, server) in servers.iter().enumerate() {
        let protocol = server.str_at(&["port", "protocol"]).unwrap_or_default().to_ascii_uppercase();
        let tls = server.get("tls").filter(|tls| tls.is_object());
        let is_plain = matches!(protocol.as_str(), "HTTP" | "HTTP2" | "GRPC" | "TCP" | "MONGO");
        if list(server, "hosts").is_empty() {
            found.add(place.index(at), "server config must contain at least one host");
        }
        match tls {
            None if matches!(protocol.as_str(), "HTTPS" | "TLS") => {
                found.add(place.index(at), "server must have TLS settings for HTTPS/TLS protocols");
            }
            Some(tls) => with_tls(tls, is_plain, &place.index(at).key("tls"), found),
            None => {}
        }
    }
}

fn with_tls(tls: &Value, is_plain: bool, place: &FieldPath, found: &mut Refusals) {
    let is_redirect = tls.get("httpsRedirect") == Some(&Value::Bool(true));
    let mode = tls.str_at(&["mode"]);
    if is_plain && !is_redirect && matches!(mode, Some("SIMPLE" | "MUTUAL" | "PASSTHROUGH")) {
        // Plain TCP may be encrypted.
        return;
    }
    let has = |field: &str| !text(tls, field).is_empty();
    let has_certificate = has("credentialName")
        || has("serverCertificate")
        || !list(tls, "credentialNames").is_empty()
        || !list(tls, "tlsCertificates").is_empty();
    if matches!(mode, Some("SIMPLE" | "MUTUAL")) && !has_certificate {
        found.add(place.clone(), format!("{} TLS requires a server certificate", mode.unwrap_or_default()));
    }
}

fn service_entry(spec: &Value, found: &mut Refusals) {
    let (resolution, hosts) = (text(spec, "resolution"), texts(spec, "hosts"));
    let has_endpoints = !list(spec, "endpoints").is_empty() || spec.get("workloadSelector").is_some();
    if hosts.is_empty() {
        found.add(keys(&["spec"]), "service entry must have at least one host");
    }
    if matches!(resolution, "" | "NONE") && !list(spec, "endpoints").is_empty() {
        found.add(keys(&["spec", "endpoints"]), "no endpoints should be provided for resolution type none");
    }
    if resolution.starts_with("DNS")
        && !has_endpoints
        && let Some((field, _)) = hosts.iter().find(|(_, host)| host.contains('*'))
    {
        let message = "hosts must be FQDN if no endpoints are provided for resolution mode DNS";
        found.add(field.clone(), message);
    }
    let place = keys(&["spec", "ports"]);
    let names = list(spec, "ports").iter().enumerate();
    found.repeated(names.map(|(at, it)| (place.index(at).key("name"), text(it, "name"))), |name| {
        format!("service entry port name {name:?} already defined")
    });
    let numbers: Vec<String> = list(spec, "ports").iter().map(|it| it["number"].to_string()).collect();
    let numbered = numbers.iter().enumerate().map(|(at, it)| (place.index(at).key("number"), it.as_str()));
    found.repeated(numbered, |number| format!("service entry port {number} already defined"));
}

fn destination_rule(spec: &Value, found: &mut Refusals) {
    if text(spec, "host").is_empty() {
        found.add(keys(&["spec"]), "destination rule host cannot be empty");
    }
    let place = keys(&["spec", "subsets"]);
    let subsets = list(spec, "subsets");
    found.repeated(
        subsets.iter().enumerate().map(|(at, it)| (place.index(at).key("name"), text(it, "name"))),
        |name| format!("duplicate subset names: {name}"),
    );
    let policies = subsets.iter().enumerate().map(|(at, it)| (place.index(at), it));
    for (place, owner) in policies.chain([(keys(&["spec"]), spec)]) {
        let Some(policy) = owner.get("trafficPolicy").filter(|it| it.is_object()) else { continue };
        let balancer = &policy["loadBalancer"];
        if balancer.get("simple").is_some() && balancer.get("consistentHash").is_some() {
            let message = "only one of simple and consistentHash can be set for a load balancer";
            found.add(place.key("trafficPolicy").key("loadBalancer"), message);
        }
        let tls = policy.get("tls").filter(|it| it.is_object());
        let lacks = |tls: &&Value, field: &str| text(tls, field).is_empty();
        let without_key = tls.filter(|tls| text(tls, "mode") == "MUTUAL" && lacks(tls, "credentialName"));
        if without_key.is_some_and(|tls| lacks(&tls, "clientCertificate") || lacks(&tls, "privateKey")) {
            let message = "client certificate and private key required for mutual tls";
            found.add(place.key("trafficPolicy").key("tls"), message);
        }
    }
}

/// Hosts of a sidecar are `NAMESPACE/HOST`.
fn sidecar(spec: &Value, found: &mut Refusals) {
    for (at, listener) in list(spec, "egress").iter().enumerate() {
        let place = keys(&["spec", "egress"]).index(at).key("hosts");
        let hosts = list(listener, "hosts");
        if hosts.is_empty() {
            found.add(place.clone(), "sidecar: egress listener must contain at least one host");
        }
        for (number, host) in hosts.iter().enumerate() {
            if host.as_str().is_some_and(|host| host.split('/').count() != 2 || host.ends_with('/')) {
                let message = format!("host {host} must be of form namespace/dnsName");
                found.add(place.index(number), message);
            }
        }
    }
}

fn request_authentication(spec: &Value, found: &mut Refusals) {
    for (at, rule) in list(spec, "jwtRules").iter().enumerate() {
        let place = keys(&["spec", "jwtRules"]).index(at);
        if text(rule, "issuer").is_empty() {
            found.add(place.clone(), "issuer must be set on JWT rule");
        }
        if !text(rule, "jwks").is_empty() && !text(rule, "jwksUri").is_empty() {
            found.add(place, "only one of jwks or jwksUri should be set on JWT rule");
        }
    }
}

fn peer_authentication(spec: &Value, found: &mut Refusals) {
    let ports = spec.get("portLevelMtls").and_then(Value::as_object).is_some_and(|map| !map.is_empty());
    let selects = spec.at(&["selector", "matchLabels"]).and_then(Value::as_object);
    if ports && selects.is_none_or(|map| map.is_empty()) {
        found.add(keys(&["spec", "portLevelMtls"]), "mTLS of single ports needs a workload selector");
    }
}

fn authorization_policy(spec: &Value, found: &mut Refusals) {
    if text(spec, "action") == "CUSTOM" && text(&spec["provider"], "name").is_empty() {
        found.add(keys(&["spec", "action"]), "`provider.name` must not be empty with action CUSTOM");
    }
    if text(spec, "action") != "CUSTOM" && spec.get("provider").is_some_and(Value::is_object) {
        found.add(keys(&["spec", "provider"]), "`provider` must not be with non CUSTOM action");
    }
    if text(spec, "action") == "DENY" && spec.get("rules").is_none() {
        found.add(
            keys(&["spec", "action"]),
            "DENY action without `rules` is meaningless as it will never be triggered",
        );
    }
}

//! Services and what is around them.

use jiff::Timestamp;
use tiphys_value::{ObjectExt, Value};

use super::{NONE, Printer, UNSET, joined, name, row, selector, text};
use crate::{http::table::cells::age, ops::items};

/// Longest address list in narrow output, in characters.
const ADDRESS_WIDTH: usize = 16;

pub(super) fn printer(kind: &str) -> Option<Printer> {
    Some(match kind {
        "Service" => (&["Name", "Type", "Cluster-IP", "External-IP", "Port(s)", "Age", "!Selector"], service),
        "Endpoints" => (&["Name", "Endpoints", "Age"], endpoints),
        "EndpointSlice" => (&["Name", "AddressType", "Ports", "Endpoints", "Age"], endpoint_slice),
        "Ingress" => (&["Name", "Class", "Hosts", "Address", "Ports", "Age"], ingress),
        "IngressClass" => (&["Name", "Controller", "Parameters", "Age"], ingress_class),
        "NetworkPolicy" => (&["Name", "Pod-Selector", "Age"], network_policy),
        _ => return None,
    })
}

fn service(object: &Value, now: Timestamp) -> Vec<Value> {
    let kind = object.str_at(&["spec", "type"]).unwrap_or("ClusterIP");
    let ports: Vec<String> = items(object, "/spec/ports").map(port).collect();
    let ports = if ports.is_empty() { NONE.to_owned() } else { ports.join(",") };
    row([
        name(object),
        kind.into(),
        text(object, &["spec", "clusterIP"]),
        external_address(object, kind).into(),
        ports.into(),
        age(object, now),
        selector(object.at(&["spec", "selector"])),
    ])
}

fn port(port: &Value) -> String {
    let number = |key: &str| port.int_at(&[key]).unwrap_or(0);
    let protocol = port.str_at(&["protocol"]).unwrap_or("TCP");
    match number("nodePort") {
        0 => format!("{}/{protocol}", number("port")),
        node => format!("{}:{node}/{protocol}", number("port")),
    }
}

fn external_address(service: &Value, kind: &str) -> String {
    let own = || items(service, "/spec/externalIPs").filter_map(Value::as_str);
    match kind {
        "ExternalName" => service.str_at(&["spec", "externalName"]).unwrap_or_default().to_owned(),
        "LoadBalancer" => {
            let given = load_balancer(service);
            match (given.is_empty(), own().next().is_some()) {
                (true, false) => "<pending>".into(),
                (true, true) => joined(own()),
                (false, false) => given.join(","),
                (false, true) => format!("{},{}", given.join(","), joined(own())),
            }
        }
        _ => joined(own()),
    }
}

fn load_balancer(object: &Value) -> Vec<&str> {
    items(object, "/status/loadBalancer/ingress")
        .filter_map(|i| i.str_at(&["ip"]).filter(|t| !t.is_empty()).or_else(|| i.str_at(&["hostname"])))
        .collect()
}

fn endpoints(object: &Value, now: Timestamp) -> Vec<Value> {
    let mut all = Vec::new();
    for subset in items(object, "/subsets") {
        for address in items(subset, "/addresses").filter_map(|a| a.str_at(&["ip"])) {
            let ports: Vec<i64> = items(subset, "/ports").filter_map(|p| p.int_at(&["port"])).collect();
            if ports.is_empty() {
                all.push(address.to_owned());
            }
            all.extend(ports.iter().map(|port| format!("{address}:{port}")));
        }
    }
    row([name(object), first_three(&all).into(), age(object, now)])
}

fn first_three(all: &[String]) -> String {
    match all.len() {
        0 => NONE.into(),
        1..=3 => all.join(","),
        more => format!("{} + {} more...", all[..3].join(","), more - 3),
    }
}

fn endpoint_slice(object: &Value, now: Timestamp) -> Vec<Value> {
    let named = |port: &Value| port.str_at(&["name"]).unwrap_or("*").to_owned();
    let ports: Vec<String> = items(object, "/ports")
        .map(|p| p.int_at(&["port"]).map_or_else(|| named(p), |n| n.to_string()))
        .collect();
    let addresses: Vec<String> = items(object, "/endpoints")
        .flat_map(|e| items(e, "/addresses"))
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect();
    let or_unset = |list: &[String]| if list.is_empty() { UNSET.to_owned() } else { first_three(list) };
    row([
        name(object),
        text(object, &["addressType"]),
        or_unset(&ports).into(),
        or_unset(&addresses).into(),
        age(object, now),
    ])
}

fn ingress(object: &Value, now: Timestamp) -> Vec<Value> {
    let class = object.str_at(&["spec", "ingressClassName"]);
    let hosts: Vec<&str> =
        items(object, "/spec/rules").filter_map(|r| r.str_at(&["host"]).filter(|h| !h.is_empty())).collect();
    let hosts = match hosts.len() {
        0 => "*".to_owned(),
        1..=3 => hosts.join(","),
        more => format!("{} + {} more...", hosts[..3].join(","), more - 3),
    };
    let mut address = load_balancer(object).join(",");
    if address.chars().count() > ADDRESS_WIDTH {
        address = format!("{}...", address.chars().take(ADDRESS_WIDTH - 3).collect::<String>());
    }
    let ports = if items(object, "/spec/tls").next().is_some() { "80, 443" } else { "80" };
    row([
        name(object),
        class.unwrap_or(NONE).into(),
        hosts.into(),
        address.into(),
        ports.into(),
        age(object, now),
    ])
}

fn ingress_class(object: &Value, now: Timestamp) -> Vec<Value> {
    let parameters = object.at(&["spec", "parameters"]).map(|p| {
        let group = p.str_at(&["apiGroup"]).map(|g| format!(".{g}")).unwrap_or_default();
        format!("{}{group}/{}", p.kind(), p.str_at(&["name"]).unwrap_or_default())
    });
    let is_default = object.annotation("ingressclass.kubernetes.io/is-default-class") == Some("true");
    row([
        if is_default { format!("{} (default)", object.name()).into() } else { name(object) },
        text(object, &["spec", "controller"]),
        parameters.unwrap_or_else(|| NONE.into()).into(),
        age(object, now),
    ])
}

fn network_policy(object: &Value, now: Timestamp) -> Vec<Value> {
    row([name(object), selector(object.at(&["spec", "podSelector"])), age(object, now)])
}

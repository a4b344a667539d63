//! Network policies, Ingresses, their classes, and the ends of Services.

use tiphys_value::{Value, json};

use super::text::{Field, below, cell, fields, number, rows, selector, value};

pub(super) fn policy(described: &[Field<'_>]) -> Value {
    let spec = fields(below(described, "Spec"));
    let types = value(&spec, "Policy Types").unwrap_or_default();
    let types: Vec<&str> = types.split(',').map(str::trim).filter(|it| !it.is_empty()).collect();
    let mut live = json!({"spec": {
        "podSelector": selector(value(&spec, "PodSelector").unwrap_or_default()),
        "policyTypes": types,
    }});
    for (title, key, ends) in
        [("Allowing ingress traffic", "ingress", "from"), ("Allowing egress traffic", "egress", "to")]
    {
        if spec.iter().any(|field| field.key == title) {
            live["spec"][key] = rules(below(&spec, title), ends);
        }
    }
    live
}

/// The rules of one direction, which lines of dashes part.
fn rules(lines: &[&str], ends: &str) -> Value {
    let is_none = lines.iter().any(|line| line.trim().starts_with("<none>"));
    let parts = lines.split(|line| line.trim().starts_with("----"));
    let read = parts.filter(|part| !is_none && !part.is_empty()).map(|part| rule(part, ends));
    read.collect()
}

fn rule(lines: &[&str], ends: &str) -> Value {
    let mut rule = json!({});
    let mut peers: Vec<Value> = Vec::new();
    let mut ports: Vec<Value> = Vec::new();
    for line in lines {
        let Some((key, told)) = line.trim().split_once(':') else { continue };
        let told = told.trim();
        match key {
            "To Port" => ports.extend(port(told)),
            "From" | "To" if told.is_empty() => peers.push(json!({})),
            "NamespaceSelector" | "PodSelector" => {
                let name = if key == "PodSelector" { "podSelector" } else { "namespaceSelector" };
                if let Some(peer) = peers.last_mut() {
                    peer[name] = selector(told);
                }
            }
            "CIDR" | "Except" => {
                if let Some(peer) = peers.last_mut() {
                    let except: Vec<&str> =
                        told.split(',').map(str::trim).filter(|it| !it.is_empty()).collect();
                    let name = if key == "CIDR" { "cidr" } else { "except" };
                    peer["ipBlock"][name] = if key == "CIDR" { json!(told) } else { json!(except) };
                }
            }
            _ => {}
        }
    }
    if !ports.is_empty() {
        rule["ports"] = json!(ports);
    }
    if !peers.is_empty() {
        rule[ends] = json!(peers);
    }
    rule
}

/// `8080/TCP`, `http/TCP`, `8000-8100/TCP`; nothing for `<any>`
fn port(text: &str) -> Option<Value> {
    let (name, protocol) = text.split_once('/')?;
    let number_of = |text: &str| text.parse::<i64>().map_or_else(|_| json!(text), |number| json!(number));
    let range = name.split_once('-').filter(|(first, _)| first.parse::<i64>().is_ok());
    match range {
        _ if name.starts_with('<') => None,
        Some((first, last)) => {
            Some(json!({"port": number_of(first), "endPort": number_of(last), "protocol": protocol}))
        }
        None => Some(json!({"port": number_of(name), "protocol": protocol})),
    }
}

pub(super) fn ingress(described: &[Field<'_>]) -> Value {
    let mut rules: Vec<Value> = Vec::new();
    let lines = below(described, "Rules").iter().filter(|line| !line.trim().is_empty()).skip(2);
    for line in lines {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            [host] if !host.contains(':') => {
                let host = if host == "*" { json!({}) } else { json!({"host": host}) };
                rules.push(host);
            }
            [path, service, ..] => {
                let Some(backend) = backend(service) else { continue };
                if rules.is_empty() {
                    rules.push(json!({}));
                }
                let Some(rule) = rules.last_mut() else { continue };
                let path = json!({"path": path, "pathType": "Prefix", "backend": backend});
                match rule["http"]["paths"].as_array_mut() {
                    Some(paths) => paths.push(path),
                    None => rule["http"] = json!({"paths": [path]}),
                }
            }
            _ => {}
        }
    }
    let tls = below(described, "TLS").iter().filter_map(|line| {
        let (secret, hosts) = line.trim().split_once(" terminates ")?;
        Some(json!({"secretName": secret, "hosts": hosts.split(',').collect::<Vec<&str>>()}))
    });
    let tls: Vec<Value> = tls.collect();
    let mut live = json!({"spec": {"rules": rules, "tls": tls}, "status": {"loadBalancer": {}}});
    if let Some(class) = value(described, "Ingress Class") {
        live["spec"]["ingressClassName"] = json!(class);
    }
    if let Some(default) = value(described, "Default backend").and_then(backend) {
        live["spec"]["defaultBackend"] = default;
    }
    if let Some(address) = value(described, "Address") {
        let all = address.split(',').map(|address| json!({"ip": address.trim()}));
        live["status"]["loadBalancer"]["ingress"] = all.collect();
    }
    live
}

/// `front:80`, with what follows it.
fn backend(text: &str) -> Option<Value> {
    let text = text.split_whitespace().next()?;
    let (name, port) = text.split_once(':')?;
    let port = port.parse::<i64>().map_or_else(|_| json!({"name": port}), |port| json!({"number": port}));
    (!name.is_empty() && !name.starts_with('<')).then(|| json!({"service": {"name": name, "port": port}}))
}

pub(super) fn class(described: &[Field<'_>]) -> Value {
    json!({"spec": {"controller": value(described, "Controller").unwrap_or_default()}})
}

pub(super) fn ends(described: &[Field<'_>]) -> Value {
    let table = rows(below(described, "Ports"));
    let ports = table.iter().map(|row| {
        let name = cell(row, "Name");
        let name = if name.starts_with('<') { "" } else { name };
        json!({"name": name, "port": number(cell(row, "Port")), "protocol": cell(row, "Protocol")})
    });
    let mut endpoints: Vec<Value> = Vec::new();
    for line in below(described, "Endpoints") {
        let Some((key, told)) = line.trim().trim_start_matches("- ").split_once(':') else { continue };
        let told = told.trim();
        if key == "Addresses" {
            endpoints.push(json!({"addresses": told.split(',').map(str::trim).collect::<Vec<&str>>()}));
        }
        let Some(last) = endpoints.last_mut() else { continue };
        match key {
            "Ready" => last["conditions"]["ready"] = json!(told == "true"),
            "NodeName" if !told.starts_with('<') => last["nodeName"] = json!(told),
            "TargetRef" => {
                if let Some((kind, name)) = told.split_once('/') {
                    last["targetRef"] = json!({"kind": kind, "name": name});
                }
            }
            _ => {}
        }
    }
    json!({
        "addressType": value(described, "AddressType").unwrap_or("IPv4"),
        "ports": ports.collect::<Vec<Value>>(),
        "endpoints": endpoints,
    })
}

//! Services.

use std::collections::HashSet;

use serde_json::Value;

use super::{faulty, list, names, one_of, text};
use crate::{ErrorList, FieldError, Path};

const TYPES: [&str; 4] = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];

pub(super) fn service(service: &Value, errors: &mut ErrorList) {
    let (spec, path) = (&service["spec"], Path::new("spec"));
    let kind = text(spec, "type");
    let headless = text(spec, "clusterIP") == "None";
    let ports = list(spec, "ports");
    if ports.is_empty() && !headless && kind != "ExternalName" {
        errors.push(FieldError::required(&path.child("ports"), ""));
    }
    match kind {
        "LoadBalancer" if headless => {
            let detail = "may not be set to 'None' for LoadBalancer services";
            errors.push(FieldError::invalid(&path.child("clusterIPs").index(0), "None", detail));
        }
        "NodePort" if headless => {
            let detail = "may not be set to 'None' for NodePort services";
            errors.push(FieldError::invalid(&path.child("clusterIPs").index(0), "None", detail));
        }
        "ExternalName" => match text(spec, "externalName").trim_end_matches('.') {
            "" => errors.push(FieldError::required(&path.child("externalName"), "")),
            name => faulty(names::dns1123_subdomain(name), name, &path.child("externalName"), errors),
        },
        _ => {}
    }
    let mut names_seen = HashSet::new();
    for (at, port) in ports.iter().enumerate() {
        one_port(port, ports.len() > 1, &mut names_seen, &path.child("ports").index(at), errors);
    }
    super::labels(&spec["selector"], &path.child("selector"), errors);
    one_of(text(spec, "sessionAffinity"), &["ClientIP", "None"], &path.child("sessionAffinity"), errors);
    one_of(kind, &TYPES, &path.child("type"), errors);
    for (at, port) in ports.iter().enumerate().filter(|_| kind == "ClusterIP") {
        if port["nodePort"].as_i64().is_some_and(|number| number != 0) {
            let path = path.child("ports").index(at).child("nodePort");
            errors.push(FieldError::forbidden(&path, "may not be used when `type` is 'ClusterIP'"));
        }
    }
    duplicate_ports(ports, &path, errors);
}

fn one_port<'a>(
    port: &'a Value,
    several: bool,
    seen: &mut HashSet<&'a str>,
    path: &Path,
    errors: &mut ErrorList,
) {
    let name = text(port, "name");
    if several && name.is_empty() {
        errors.push(FieldError::required(&path.child("name"), ""));
    } else if !name.is_empty() {
        faulty(names::dns1123_label(name), name, &path.child("name"), errors);
        if !seen.insert(name) {
            errors.push(FieldError::duplicate(&path.child("name"), name));
        }
    }
    let number = port["port"].as_i64().unwrap_or_default();
    let faults = names::port_number(number);
    errors.extend(faults.into_iter().map(|fault| FieldError::invalid(&path.child("port"), number, fault)));
    one_of(text(port, "protocol"), &["SCTP", "TCP", "UDP"], &path.child("protocol"), errors);
    match &port["targetPort"] {
        Value::Number(target) => {
            let target = target.as_i64().unwrap_or_default();
            let faults = names::port_number(target);
            let path = path.child("targetPort");
            errors.extend(faults.into_iter().map(|fault| FieldError::invalid(&path, target, fault)));
        }
        Value::String(target) => faulty(names::port_name(target), target, &path.child("targetPort"), errors),
        _ => {}
    }
}

fn duplicate_ports(ports: &[Value], path: &Path, errors: &mut ErrorList) {
    let mut seen = HashSet::new();
    for (at, port) in ports.iter().enumerate() {
        // The message shows the server's internal struct, of which only two fields are compared.
        let shown = serde_json::json!({"Name": "", "Protocol": port["protocol"], "AppProtocol": null,
            "Port": port["port"], "TargetPort": 0, "NodePort": 0});
        if !seen.insert(shown.to_string()) {
            errors.push(FieldError::duplicate(&path.child("ports").index(at), shown));
        }
    }
}

pub(super) fn update(new: &Value, old: &Value, errors: &mut ErrorList) {
    let external = |service: &Value| service["spec"]["type"] == "ExternalName";
    if external(new) || external(old) {
        return;
    }
    let before = text(&old["spec"], "clusterIP");
    let after = text(&new["spec"], "clusterIP");
    if !before.is_empty() && before != after {
        let value = list(&new["spec"], "clusterIPs").to_vec();
        let path = Path::new("spec.clusterIPs").index(0);
        errors.push(FieldError::invalid(&path, value, "may not change once set"));
    }
}

//! Pods and pod templates.

use std::collections::HashSet;

use serde_json::Value;

use super::{faulty, labels, list, names, not_negative, one_of, other, placement, security, text};
use crate::{ErrorList, FieldError, Path, Quantity};

const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];

/// A pod's spec.
pub(super) fn spec(spec: &Value, path: &Path, errors: &mut ErrorList) {
    let volumes = volumes(list(spec, "volumes"), &path.child("volumes"), errors);
    containers(spec, &volumes, path, errors);
    init_containers(spec, &volumes, path, errors);
    one_of(
        text(spec, "restartPolicy"),
        &["Always", "OnFailure", "Never"],
        &path.child("restartPolicy"),
        errors,
    );
    let dns = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
    one_of(text(spec, "dnsPolicy"), &dns, &path.child("dnsPolicy"), errors);
    labels(&spec["nodeSelector"], &path.child("nodeSelector"), errors);
    for (field, rule) in [
        ("serviceAccountName", names::dns1123_subdomain as fn(&str) -> Vec<String>),
        ("nodeName", names::dns1123_subdomain),
        ("hostname", names::dns1123_label),
        ("subdomain", names::dns1123_label),
        ("priorityClassName", names::dns1123_subdomain),
    ] {
        let name = text(spec, field);
        if !name.is_empty() {
            faulty(rule(name), name, &path.child(field), errors);
        }
    }
    tolerations(list(spec, "tolerations"), &path.child("tolerations"), errors);
    placement::affinity(&spec["affinity"], &path.child("affinity"), errors);
    let spread = path.child("topologySpreadConstraints");
    placement::spread(list(spec, "topologySpreadConstraints"), &spread, errors);
    security::pod(&spec["securityContext"], &path.child("securityContext"), errors);
    rest(spec, path, errors);
}

/// What is left of a spec: networks, gates, limits in time.
fn rest(spec: &Value, path: &Path, errors: &mut ErrorList) {
    let dns = path.child("dnsConfig");
    if spec["dnsPolicy"] == "None" && !spec["dnsConfig"].is_object() {
        errors.push(FieldError::required(&dns, "must provide `dnsConfig` when `dnsPolicy` is None"));
    } else if spec["dnsPolicy"] == "None" && list(&spec["dnsConfig"], "nameservers").is_empty() {
        let detail = "must provide at least one DNS nameserver when `dnsPolicy` is None";
        errors.push(FieldError::required(&dns.child("nameservers"), detail));
    }
    for (at, server) in list(&spec["dnsConfig"], "nameservers").iter().filter_map(Value::as_str).enumerate() {
        other::address(server, &dns.child("nameservers").index(at), errors);
    }
    for (at, alias) in list(spec, "hostAliases").iter().enumerate() {
        other::address(text(alias, "ip"), &path.child("hostAliases").index(at).child("ip"), errors);
    }
    for (at, gate) in list(spec, "readinessGates").iter().enumerate() {
        let kind = text(gate, "conditionType");
        let path = path.child("readinessGates").index(at).child("conditionType");
        faulty(names::qualified_name(kind), kind, &path, errors);
    }
    for (at, gate) in list(spec, "schedulingGates").iter().enumerate() {
        let name = text(gate, "name");
        faulty(names::qualified_name(name), name, &path.child("schedulingGates").index(at), errors);
    }
    let deadline = spec["activeDeadlineSeconds"].as_i64();
    if let Some(seconds) = deadline.filter(|seconds| !(1..=i64::from(i32::MAX)).contains(seconds)) {
        let detail = "must be between 1 and 2147483647, inclusive";
        errors.push(FieldError::invalid(&path.child("activeDeadlineSeconds"), seconds, detail));
    }
    if let Some(os) = spec["os"]["name"].as_str().filter(|os| !matches!(*os, "linux" | "windows")) {
        errors.push(FieldError::not_supported(&path.child("os"), os, &["linux", "windows"]));
    }
    if spec["hostNetwork"] == true {
        host_network_ports(spec, path, errors);
    }
}

/// In the node's network a container's port is the node's.
fn host_network_ports(spec: &Value, path: &Path, errors: &mut ErrorList) {
    for (at, container) in list(spec, "containers").iter().enumerate() {
        for (index, port) in list(container, "ports").iter().enumerate() {
            let host = port["hostPort"].as_i64().unwrap_or_default();
            if host != 0 && port["containerPort"] != port["hostPort"] {
                let path = path.child("containers").index(at).child("ports").index(index).child("hostPort");
                let detail = "must match `containerPort` when `hostNetwork` is true";
                errors.push(FieldError::invalid(&path, host, detail));
            }
        }
    }
}

/// A pod template: labels and spec.
pub(super) fn template(template: &Value, path: &Path, errors: &mut ErrorList) {
    labels(&template["metadata"]["labels"], &path.child("labels"), errors);
    spec(&template["spec"], &path.child("spec"), errors);
}

/// The names of the volumes that are right.
fn volumes(volumes: &[Value], path: &Path, errors: &mut ErrorList) -> HashSet<String> {
    let mut known = HashSet::new();
    for (at, volume) in volumes.iter().enumerate() {
        let path = path.index(at);
        let mut faults = ErrorList::new();
        volume_source(volume, &path, &mut faults);
        let name = text(volume, "name");
        match name {
            "" => faults.push(FieldError::required(&path.child("name"), "")),
            name => faulty(names::dns1123_label(name), name, &path.child("name"), &mut faults),
        }
        if known.contains(name) {
            faults.push(FieldError::duplicate(&path.child("name"), name));
        }
        if faults.is_empty() {
            known.insert(name.to_owned());
        }
        errors.extend(faults);
    }
    known
}

const HOST_PATHS: [&str; 8] =
    ["", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"];

fn volume_source(volume: &Value, path: &Path, errors: &mut ErrorList) {
    let sources: Vec<&String> =
        volume.as_object().into_iter().flatten().map(|(key, _)| key).filter(|key| *key != "name").collect();
    for extra in sources.iter().skip(1) {
        errors.push(FieldError::forbidden(&path.child(extra), "may not specify more than 1 volume type"));
    }
    let Some(first) = sources.first() else {
        errors.push(FieldError::required(path, "must specify a volume type"));
        return;
    };
    let (source, path) = (&volume[first.as_str()], path.child(first));
    match first.as_str() {
        "secret" if text(source, "secretName").is_empty() => {
            errors.push(FieldError::required(&path.child("secretName"), ""));
        }
        "configMap" if text(source, "name").is_empty() => {
            errors.push(FieldError::required(&path.child("name"), ""))
        }
        "persistentVolumeClaim" if text(source, "claimName").is_empty() => {
            errors.push(FieldError::required(&path.child("claimName"), ""));
        }
        "hostPath" if text(source, "path").is_empty() => {
            errors.push(FieldError::required(&path.child("path"), ""))
        }
        "hostPath" if !HOST_PATHS.contains(&text(source, "type")) => {
            let kind = text(source, "type");
            errors.push(FieldError::not_supported(&path.child("type"), kind, &HOST_PATHS));
        }
        "hostPath" if text(source, "path").split('/').any(|part| part == "..") => {
            errors.push(FieldError::invalid(
                &path.child("path"),
                text(source, "path"),
                "must not contain '..'",
            ));
        }
        "nfs" => {
            for key in ["server", "path"].into_iter().filter(|key| text(source, key).is_empty()) {
                errors.push(FieldError::required(&path.child(key), ""));
            }
            let place = text(source, "path");
            if !place.starts_with('/') {
                errors.push(FieldError::invalid(&path.child("path"), place, "must be an absolute path"));
            }
        }
        "csi" if text(source, "driver").is_empty() => {
            errors.push(FieldError::required(&path.child("driver"), ""));
        }
        "emptyDir" => {
            let size = source["sizeLimit"].as_str().and_then(|text| text.parse::<Quantity>().ok());
            if size.is_some_and(|size| size.signum() < 0) {
                let detail = "SizeLimit field must be a valid resource quantity";
                errors.push(FieldError::forbidden(&path.child("sizeLimit"), detail));
            }
        }
        "downwardAPI" => {
            for item in list(source, "items") {
                let place = text(item, "path");
                if place.starts_with('/') {
                    errors.push(FieldError::invalid(&path.child("path"), place, "must be a relative path"));
                }
            }
        }
        "ephemeral" => {
            let template = &source["volumeClaimTemplate"];
            if !template.is_object() {
                errors.push(FieldError::required(&path.child("volumeClaimTemplate"), ""));
            } else {
                let path = path.child("volumeClaimTemplate").child("spec");
                super::storage::claim(&template["spec"], &path, errors);
            }
        }
        _ => {}
    }
}

fn containers(spec: &Value, volumes: &HashSet<String>, path: &Path, errors: &mut ErrorList) {
    let path = path.child("containers");
    let containers = list(spec, "containers");
    if containers.is_empty() {
        errors.push(FieldError::required(&path, ""));
    }
    let mut seen = HashSet::new();
    let own_users = spec["hostUsers"] == false;
    for (at, one) in containers.iter().enumerate() {
        let path = path.index(at);
        container(one, volumes, own_users, &path, errors);
        for hook in ["postStart", "preStop"].into_iter().filter(|hook| one["lifecycle"][*hook].is_object()) {
            let given = one["lifecycle"][hook].as_object().is_some_and(|handlers| !handlers.is_empty());
            if !given {
                let path = path.child("lifecycle").child(hook);
                errors.push(FieldError::required(&path, "must specify a handler type"));
            }
        }
        if !seen.insert(text(one, "name")) {
            errors.push(FieldError::duplicate(&path.child("name"), text(one, "name")));
        }
        for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
            if one[name].is_object() {
                probe(&one[name], name, &path.child(name), errors);
            }
        }
    }
    host_ports(containers, &path, errors);
}

fn init_containers(spec: &Value, volumes: &HashSet<String>, path: &Path, errors: &mut ErrorList) {
    let path = path.child("initContainers");
    let mut seen: HashSet<&str> = list(spec, "containers").iter().map(|one| text(one, "name")).collect();
    for (at, one) in list(spec, "initContainers").iter().enumerate() {
        let path = path.index(at);
        container(one, volumes, spec["hostUsers"] == false, &path, errors);
        let name = text(one, "name");
        if !name.is_empty() && !seen.insert(name) {
            errors.push(FieldError::duplicate(&path.child("name"), name));
        }
        let sidecar = one["restartPolicy"] == "Always";
        for field in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
            if one[field].is_object() && !sidecar {
                let detail = "may not be set for init containers without restartPolicy=Always";
                errors.push(FieldError::forbidden(&path.child(field), detail));
            }
        }
    }
}

fn container(
    container: &Value,
    volumes: &HashSet<String>,
    own_users: bool,
    path: &Path,
    errors: &mut ErrorList,
) {
    match text(container, "name") {
        "" => errors.push(FieldError::required(&path.child("name"), "")),
        name => faulty(names::dns1123_label(name), name, &path.child("name"), errors),
    }
    if text(container, "image").is_empty() {
        errors.push(FieldError::required(&path.child("image"), ""));
    }
    let policies = ["File", "FallbackToLogsOnError"];
    one_of(
        text(container, "terminationMessagePolicy"),
        &policies,
        &path.child("terminationMessagePolicy"),
        errors,
    );
    ports(list(container, "ports"), &path.child("ports"), errors);
    for (at, variable) in list(container, "env").iter().enumerate() {
        environment(variable, &path.child("env").index(at), errors);
    }
    for (at, source) in list(container, "envFrom").iter().enumerate() {
        let path = path.child("envFrom");
        if !source["configMapRef"].is_object() && !source["secretRef"].is_object() {
            let detail = "must specify one of: `configMapRef` or `secretRef`";
            errors.push(FieldError::invalid(&path, "", detail));
        }
        for kind in ["configMapRef", "secretRef"].into_iter().filter(|kind| source[*kind].is_object()) {
            let name = text(&source[kind], "name");
            if name.is_empty() {
                errors.push(FieldError::required(&path.index(at).child(kind).child("name"), ""));
            }
            if !name.is_empty() {
                let path = path.index(at).child(kind).child("name");
                faulty(names::dns1123_subdomain(name), name, &path, errors);
            }
        }
    }
    mounts(list(container, "volumeMounts"), volumes, &path.child("volumeMounts"), errors);
    let policies = ["Always", "IfNotPresent", "Never"];
    one_of(text(container, "imagePullPolicy"), &policies, &path.child("imagePullPolicy"), errors);
    resources(&container["resources"], &path.child("resources"), errors);
    resize_policies(list(container, "resizePolicy"), &path.child("resizePolicy"), errors);
    security::container(&container["securityContext"], own_users, &path.child("securityContext"), errors);
}

fn resize_policies(policies: &[Value], path: &Path, errors: &mut ErrorList) {
    for policy in policies {
        for (field, known) in
            [("resourceName", ["cpu", "memory"]), ("restartPolicy", ["NotRequired", "RestartContainer"])]
        {
            let value = text(policy, field);
            if !known.contains(&value) {
                errors.push(FieldError::not_supported(path, value, &known));
            }
        }
    }
}

fn ports(ports: &[Value], path: &Path, errors: &mut ErrorList) {
    let mut seen = HashSet::new();
    for (at, port) in ports.iter().enumerate() {
        let path = path.index(at);
        let name = text(port, "name");
        if !name.is_empty() {
            let faults = names::port_name(name);
            if faults.is_empty() && !seen.insert(name) {
                errors.push(FieldError::duplicate(&path.child("name"), name));
            }
            faulty(faults, name, &path.child("name"), errors);
        }
        for (field, required) in [("containerPort", true), ("hostPort", false)] {
            let number = port[field].as_i64().unwrap_or_default();
            if number == 0 && required {
                errors.push(FieldError::required(&path.child(field), ""));
            } else if number != 0 {
                let faults = names::port_number(number);
                errors.extend(
                    faults.into_iter().map(|fault| FieldError::invalid(&path.child(field), number, fault)),
                );
            }
        }
        one_of(text(port, "protocol"), &PROTOCOLS, &path.child("protocol"), errors);
    }
}

fn host_ports(containers: &[Value], path: &Path, errors: &mut ErrorList) {
    let mut seen = HashSet::new();
    for (at, container) in containers.iter().enumerate() {
        for (index, port) in list(container, "ports").iter().enumerate() {
            let number = port["hostPort"].as_i64().unwrap_or_default();
            let taken = format!("{}/{}/{number}", text(port, "protocol"), text(port, "hostIP"));
            if number != 0 && !seen.insert(taken.clone()) {
                let path = path.index(at).child("ports").index(index).child("hostPort");
                errors.push(FieldError::duplicate(&path, taken));
            }
        }
    }
}

fn environment(variable: &Value, path: &Path, errors: &mut ErrorList) {
    match text(variable, "name") {
        "" => errors.push(FieldError::required(&path.child("name"), "")),
        name => faulty(names::env_name(name), name, &path.child("name"), errors),
    }
    let Some(source) = variable["valueFrom"].as_object() else { return };
    let path = path.child("valueFrom");
    if let Some(reference) = source.get("fieldRef") {
        let (field, path) = (text(reference, "fieldPath"), path.child("fieldRef").child("fieldPath"));
        let version = text(reference, "apiVersion");
        if field.is_empty() {
            errors.push(FieldError::required(&path, ""));
        } else if !matches!(version, "" | "v1") {
            let detail = format!("error converting fieldPath: unsupported pod version: {version}");
            errors.push(FieldError::invalid(&path, field, detail));
        } else if !is_downward(field) {
            let detail = format!("error converting fieldPath: field label not supported: {field}");
            errors.push(FieldError::invalid(&path, field, detail));
        }
    }
    for kind in ["configMapKeyRef", "secretKeyRef"] {
        let Some(reference) = source.get(kind) else { continue };
        let path = path.child(kind);
        match text(reference, "name") {
            "" => errors.push(FieldError::required(&path.child("name"), "")),
            name => faulty(names::dns1123_subdomain(name), name, &path.child("name"), errors),
        }
        match text(reference, "key") {
            "" => errors.push(FieldError::required(&path.child("key"), "")),
            key => faulty(names::config_key(key), key, &path.child("key"), errors),
        }
    }
    if source.is_empty() {
        let detail = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`";
        errors.push(FieldError::invalid(&path, "", detail));
    } else if !text(variable, "value").is_empty() {
        errors.push(FieldError::invalid(&path, "", "may not be specified when `value` is not empty"));
    } else if source.len() > 1 {
        errors.push(FieldError::invalid(&path, "", "may not have more than one field specified at a time"));
    }
}

/// Fields of a pod that its containers can be told.
fn is_downward(field: &str) -> bool {
    const FIELDS: [&str; 11] = [
        "metadata.name",
        "metadata.namespace",
        "metadata.uid",
        "spec.nodeName",
        "spec.serviceAccountName",
        "status.hostIP",
        "status.hostIPs",
        "status.podIP",
        "status.podIPs",
        "metadata.annotations",
        "metadata.labels",
    ];
    FIELDS.contains(&field)
        || field.starts_with("metadata.annotations[")
        || field.starts_with("metadata.labels[")
}

fn mounts(mounts: &[Value], volumes: &HashSet<String>, path: &Path, errors: &mut ErrorList) {
    let mut seen = HashSet::new();
    for (at, mount) in mounts.iter().enumerate() {
        let path = path.index(at);
        let (name, target) = (text(mount, "name"), text(mount, "mountPath"));
        if name.is_empty() {
            errors.push(FieldError::required(&path.child("name"), ""));
        }
        if !volumes.contains(name) {
            errors.push(FieldError::not_found(&path.child("name"), name));
        }
        if target.is_empty() {
            errors.push(FieldError::required(&path.child("mountPath"), ""));
        }
        if !seen.insert(target) {
            errors.push(FieldError::invalid(&path.child("mountPath"), target, "must be unique"));
        }
    }
}

fn amount(value: &Value) -> Option<Quantity> {
    value.as_str()?.parse().ok()
}

/// Requests and limits.
pub(super) fn resources(resources: &Value, path: &Path, errors: &mut ErrorList) {
    let (limits, requests) = (path.child("limits"), path.child("requests"));
    for (name, value) in resources["limits"].as_object().into_iter().flatten() {
        not_below_zero(value, &limits.key(name), errors);
    }
    for (part, path) in [("limits", &limits), ("requests", &requests)] {
        for name in resources[part].as_object().into_iter().flat_map(|map| map.keys()) {
            resource_name(name, &path.key(name), errors);
        }
    }
    for (name, value) in resources["requests"].as_object().into_iter().flatten() {
        not_below_zero(value, &requests.key(name), errors);
        let limit = &resources["limits"][name.as_str()];
        let (Some(request), Some(most)) = (amount(value), amount(limit)) else { continue };
        let overcommit = !name.contains('/') || name.starts_with("kubernetes.io/");
        let overcommit = overcommit && !name.starts_with("hugepages-");
        if request != most && !overcommit {
            let detail = format!("must be equal to {name} limit of {most}");
            errors.push(FieldError::invalid(&requests, request.to_string(), detail));
        } else if request > most {
            let detail = format!("must be less than or equal to {name} limit of {most}");
            errors.push(FieldError::invalid(&requests, request.to_string(), detail));
        }
    }
}

/// What containers may ask for: standard resources, and those with a domain.
fn resource_name(name: &str, path: &Path, errors: &mut ErrorList) {
    faulty(names::qualified_name(name), name, path, errors);
    let is_standard =
        matches!(name, "cpu" | "memory" | "ephemeral-storage") || name.starts_with("hugepages-");
    if name.contains('/') || is_standard {
        return;
    }
    if !matches!(name, "storage" | "requests.cpu" | "pods") {
        let detail = "must be a standard resource type or fully qualified";
        errors.push(FieldError::invalid(path, name, detail));
    }
    errors.push(FieldError::invalid(path, name, "must be a standard resource for containers"));
}

fn not_below_zero(value: &Value, path: &Path, errors: &mut ErrorList) {
    if let Some(found) = amount(value).filter(|found| found.signum() < 0) {
        errors.push(FieldError::invalid(path, found.to_string(), "must be greater than or equal to 0"));
    }
}

fn probe(probe: &Value, name: &str, path: &Path, errors: &mut ErrorList) {
    let handlers: Vec<&str> = ["exec", "httpGet", "tcpSocket", "grpc"]
        .into_iter()
        .filter(|kind| probe[*kind].is_object())
        .collect();
    for extra in handlers.iter().skip(1) {
        errors.push(FieldError::forbidden(&path.child(extra), "may not specify more than 1 handler type"));
    }
    match handlers.first() {
        None => errors.push(FieldError::required(path, "must specify a handler type")),
        Some(kind) => handler(&probe[*kind], kind, &path.child(kind), errors),
    }
    for field in
        ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"]
    {
        not_negative(&probe[field], &path.child(field), errors);
    }
    let threshold = probe["successThreshold"].as_i64().unwrap_or(1);
    if name != "readinessProbe" && threshold != 1 {
        errors.push(FieldError::invalid(&path.child("successThreshold"), threshold, "must be 1"));
    }
}

fn handler(handler: &Value, kind: &str, path: &Path, errors: &mut ErrorList) {
    match kind {
        "exec" if list(handler, "command").is_empty() => {
            errors.push(FieldError::required(&path.child("command"), ""))
        }
        "httpGet" | "tcpSocket" => {
            if kind == "httpGet" && text(handler, "path").is_empty() {
                errors.push(FieldError::required(&path.child("path"), ""));
            }
            let path = path.child("port");
            match &handler["port"] {
                Value::Number(number) => {
                    let number = number.as_i64().unwrap_or_default();
                    let faults = names::port_number(number);
                    errors.extend(faults.into_iter().map(|fault| FieldError::invalid(&path, number, fault)));
                }
                Value::String(name) => faulty(names::port_name(name), name, &path, errors),
                _ => {}
            }
        }
        _ => {}
    }
}

fn tolerations(tolerations: &[Value], path: &Path, errors: &mut ErrorList) {
    for (at, toleration) in tolerations.iter().enumerate() {
        let path = path.index(at);
        let (key, operator) = (text(toleration, "key"), text(toleration, "operator"));
        if !key.is_empty() {
            faulty(names::qualified_name(key), key, &path.child("key"), errors);
        }
        let (effect, value) = (text(toleration, "effect"), text(toleration, "value"));
        let operator_path = path.child("operator");
        if key.is_empty() && operator != "Exists" {
            let detail =
                "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
            errors.push(FieldError::invalid(&operator_path, operator, detail));
        }
        if toleration["tolerationSeconds"].is_i64() && effect != "NoExecute" {
            let detail = "effect must be 'NoExecute' when `tolerationSeconds` is set";
            errors.push(FieldError::invalid(&path.child("effect"), effect, detail));
        }
        match operator {
            "" | "Equal" => {
                let faults = names::label_value(value);
                if !faults.is_empty() {
                    errors.push(FieldError::invalid(&operator_path, value, faults.join(";")));
                }
            }
            "Exists" if !value.is_empty() => {
                let detail = "value must be empty when `operator` is 'Exists'";
                errors.push(FieldError::invalid(&operator_path, value, detail));
            }
            "Exists" => {}
            _ => errors.push(FieldError::not_supported(&operator_path, operator, &["Equal", "Exists"])),
        }
        if !effect.is_empty() && !matches!(effect, "NoSchedule" | "PreferNoSchedule" | "NoExecute") {
            let known = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
            errors.push(FieldError::not_supported(&path.child("effect"), effect, &known));
        }
    }
}

const UPDATABLE: &str = "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

/// A pod's spec hardly changes once it is there.
pub(super) fn update(new: &Value, old: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let (path, after, before) = (Path::new("spec"), &new["spec"], &old["spec"]);
    spec(after, &path, &mut errors);
    for name in ["containers", "initContainers"] {
        if !container_updates(list(after, name), list(before, name), &path.child(name), &mut errors) {
            return errors;
        }
    }
    if !deadline_update(after, before, &path.child("activeDeadlineSeconds"), &mut errors) {
        return errors;
    }
    toleration_updates(after, before, &path.child("tolerations"), &mut errors);
    let settled = settled(after, before);
    if settled != without_nulls(before) {
        let [before, after] =
            [without_nulls(before), settled].map(|spec| super::internal::indented("PodSpec", &spec));
        let difference = super::unified::difference(&before, &after);
        errors.push(FieldError::forbidden(&path, format!("{UPDATABLE}\n{difference}")));
    }
    errors
}

/// A pod's containers get more or less than before.
pub(super) fn resize(new: &Value, old: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let (path, after, before) = (Path::new("spec"), &new["spec"], &old["spec"]);
    spec(after, &path, &mut errors);
    for name in ["containers", "initContainers"] {
        let (after, before) = (list(after, name), list(before, name));
        if after.len() != before.len() {
            let detail = "containers may not be added or removed on resize";
            errors.push(FieldError::forbidden(&path.child(name), detail));
            return errors;
        }
        for (at, (after, before)) in after.iter().zip(before).enumerate() {
            one_resize(after, before, &path.child(name).index(at).child("resources"), &mut errors);
        }
    }
    let others = |spec: &Value| {
        let of = |name| list(spec, name).iter().map(without_cpu_and_memory).collect::<Vec<_>>();
        (of("containers"), of("initContainers"))
    };
    if others(after) != others(before) {
        errors.push(FieldError::forbidden(&path, "only cpu and memory resources are mutable"));
    }
    errors
}

fn one_resize(new: &Value, old: &Value, path: &Path, errors: &mut ErrorList) {
    for part in ["requests", "limits"] {
        let gone = ["cpu", "memory"].into_iter().any(|resource| {
            !old["resources"][part][resource].is_null() && new["resources"][part][resource].is_null()
        });
        if gone {
            let detail = format!("resource {part} cannot be removed");
            errors.push(FieldError::forbidden(&path.child(part), detail));
        }
    }
}

fn without_cpu_and_memory(container: &Value) -> Value {
    let mut container = without_nulls(container);
    for part in ["requests", "limits"] {
        let amounts = container.pointer_mut(&format!("/resources/{part}")).and_then(Value::as_object_mut);
        if let Some(amounts) = amounts {
            amounts.retain(|resource, _| !matches!(resource.as_str(), "cpu" | "memory"));
        }
        if let Some(resources) = container.get_mut("resources").and_then(Value::as_object_mut) {
            resources.retain(|_, amounts| *amounts != serde_json::json!({}));
        }
    }
    container
}

/// Says whether it makes sense to look at more.
fn container_updates(new: &[Value], old: &[Value], path: &Path, errors: &mut ErrorList) -> bool {
    if new.len() != old.len() {
        errors.push(FieldError::forbidden(path, "pod updates may not add or remove containers"));
        return false;
    }
    for (at, container) in new.iter().enumerate() {
        let (path, image) = (path.index(at).child("image"), text(container, "image"));
        if image.is_empty() {
            errors.push(FieldError::required(&path, ""));
        }
        if image.trim() != image {
            errors.push(FieldError::invalid(&path, image, "must not have leading or trailing whitespace"));
        }
    }
    true
}

fn deadline_update(new: &Value, old: &Value, path: &Path, errors: &mut ErrorList) -> bool {
    let seconds = |spec: &Value| spec["activeDeadlineSeconds"].as_i64();
    let detail = match (seconds(new), seconds(old)) {
        (Some(after), _) if !(0..=i64::from(i32::MAX)).contains(&after) => {
            "must be between 0 and 2147483647, inclusive"
        }
        (Some(after), Some(before)) if after > before => "must be less than or equal to previous value",
        (None, Some(_)) => {
            let detail = "must not update from a positive integer to nil value";
            errors.push(FieldError::invalid(path, Value::Null, detail));
            return true;
        }
        _ => return true,
    };
    errors.push(FieldError::invalid(path, new["activeDeadlineSeconds"].clone(), detail));
    false
}

fn toleration_updates(new: &Value, old: &Value, path: &Path, errors: &mut ErrorList) {
    let apart_from_seconds = |toleration: &Value| {
        let mut toleration = without_nulls(toleration);
        drop(toleration.as_object_mut().map(|fields| fields.remove("tolerationSeconds")));
        toleration
    };
    let kept: Vec<Value> = list(new, "tolerations").iter().map(apart_from_seconds).collect();
    if !list(old, "tolerations").iter().all(|old| kept.contains(&apart_from_seconds(old))) {
        let detail = "existing toleration can not be modified except its tolerationSeconds";
        errors.push(FieldError::forbidden(path, detail));
        return;
    }
    tolerations(list(new, "tolerations"), path, errors);
}

/// The new spec with the old one's values where it may change.
fn settled(new: &Value, old: &Value) -> Value {
    let mut spec = without_nulls(new);
    for name in ["containers", "initContainers"] {
        let before = list(old, name);
        let containers = spec.get_mut(name).and_then(Value::as_array_mut).into_iter().flatten();
        for (container, before) in containers.zip(before) {
            take(container, before, "image");
        }
    }
    for name in ["activeDeadlineSeconds", "tolerations", "schedulingGates", "ephemeralContainers"] {
        take(&mut spec, old, name);
    }
    if spec["terminationGracePeriodSeconds"] == 1
        && old["terminationGracePeriodSeconds"].as_i64().is_some_and(|seconds| seconds < 0)
    {
        take(&mut spec, old, "terminationGracePeriodSeconds");
    }
    spec
}

fn take(into: &mut Value, from: &Value, name: &str) {
    let Some(fields) = into.as_object_mut() else { return };
    match from.get(name).filter(|value| !value.is_null()) {
        Some(value) => drop(fields.insert(name.to_owned(), value.clone())),
        None => drop(fields.remove(name)),
    }
}

fn without_nulls(value: &Value) -> Value {
    let mut value = value.clone();
    if let Some(fields) = value.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
    value
}

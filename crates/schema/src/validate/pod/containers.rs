//! Containers and init containers.

use std::collections::HashSet;

use serde_json::Value;

use super::{
    environment, faulty, list, mounts, names, one_of, probes, resources, security, text, volumes::Known,
};
use crate::{ErrorList, FieldError, Path};

const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];
const RESTARTS: [&str; 3] = ["Always", "Never", "OnFailure"];

/// What containers have to know about the pod.
pub(super) struct Pod<'a> {
    pub(super) spec: &'a Value,
    pub(super) volumes: &'a Known<'a>,
}

impl<'a> Pod<'a> {
    pub(super) fn new(spec: &'a Value, volumes: &'a Known<'a>) -> Self {
        Self { spec, volumes }
    }

    fn has_own_users(&self) -> bool {
        self.spec["hostUsers"] == false
    }
}

pub(super) fn containers(pod: &Pod<'_>, path: &Path, errors: &mut ErrorList) {
    let containers = list(pod.spec, "containers");
    if containers.is_empty() {
        errors.push(FieldError::required(path, ""));
        return;
    }
    let mut seen = HashSet::new();
    for (at, container) in containers.iter().enumerate() {
        let path = path.index(at);
        common(container, pod, &path, errors);
        if !seen.insert(text(container, "name")) {
            errors.push(FieldError::duplicate(&path.child("name"), text(container, "name")));
        }
        probes::lifecycle(container, pod.spec, &path.child("lifecycle"), errors);
        probes::probes(container, &path, errors);
        restarts(container, false, &path, errors);
    }
    host_ports(containers.iter().enumerate(), path, errors);
}

pub(super) fn init_containers(pod: &Pod<'_>, path: &Path, errors: &mut ErrorList) {
    let mut seen: HashSet<&str> = list(pod.spec, "containers").iter().map(|one| text(one, "name")).collect();
    for (at, container) in list(pod.spec, "initContainers").iter().enumerate() {
        let place = path.index(at);
        common(container, pod, &place, errors);
        restarts(container, true, &place, errors);
        let name = text(container, "name");
        if !seen.insert(name) && !name.is_empty() {
            errors.push(FieldError::duplicate(&place.child("name"), name));
        }
        // The server counts each init container as the first.
        host_ports(std::iter::once((0, container)), path, errors);
        let is_sidecar = container["restartPolicy"] == "Always";
        if is_sidecar {
            probes::lifecycle(container, pod.spec, &place.child("lifecycle"), errors);
            probes::probes(container, &place, errors);
        } else {
            for field in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
                if container[field].is_object() {
                    let detail = "may not be set for init containers without restartPolicy=Always";
                    errors.push(FieldError::forbidden(&place.child(field), detail));
                }
            }
        }
        for (index, policy) in list(container, "resizePolicy").iter().enumerate().filter(|_| !is_sidecar) {
            if policy["restartPolicy"] == "RestartContainer" {
                let path = place.child("resizePolicy").index(index).child("restartPolicy");
                let detail = "must not be set to 'RestartContainer' for non-sidecar initContainers";
                errors.push(FieldError::invalid(&path, "RestartContainer", detail));
            }
        }
    }
}

/// Containers that somebody adds to look at a pod: they have few of the fields.
pub(super) fn ephemeral_containers(pod: &Pod<'_>, path: &Path, errors: &mut ErrorList) {
    const WHY: &str = "cannot be set for an Ephemeral Container";
    const FIELDS: [&str; 9] = [
        "ports",
        "resources",
        "resizePolicy",
        "restartPolicy",
        "restartPolicyRules",
        "livenessProbe",
        "readinessProbe",
        "startupProbe",
        "lifecycle",
    ];
    let others = || list(pod.spec, "containers").iter().chain(list(pod.spec, "initContainers"));
    let ephemeral = list(pod.spec, "ephemeralContainers");
    for (at, container) in ephemeral.iter().enumerate() {
        let path = path.index(at);
        common(container, pod, &path, errors);
        let image = text(container, "image");
        if image.trim() != image {
            let detail = "must not have leading or trailing whitespace";
            errors.push(FieldError::invalid(&path.child("image"), image, detail));
        }
        let name = text(container, "name");
        if others().chain(&ephemeral[..at]).any(|other| text(other, "name") == name) {
            errors.push(FieldError::duplicate(&path.child("name"), name));
        }
        let target = text(container, "targetContainerName");
        if !target.is_empty() && !others().any(|other| text(other, "name") == target) {
            errors.push(FieldError::not_found(&path.child("targetContainerName"), target));
        }
        let is_set = |value: &Value| match value {
            Value::Array(items) => !items.is_empty(),
            Value::Object(fields) => !fields.is_empty(),
            value => !value.is_null(),
        };
        for field in FIELDS.into_iter().filter(|field| is_set(&container[*field])) {
            errors.push(FieldError::forbidden(&path.child(field), WHY));
        }
        for (at, mount) in list(container, "volumeMounts").iter().enumerate() {
            for field in ["subPath", "subPathExpr"].into_iter().filter(|field| !text(mount, field).is_empty())
            {
                errors.push(FieldError::forbidden(&path.child("volumeMounts").index(at).child(field), WHY));
            }
        }
    }
}

/// What containers and init containers have in common.
fn common(container: &Value, pod: &Pod<'_>, path: &Path, errors: &mut ErrorList) {
    match text(container, "name") {
        "" => errors.push(FieldError::required(&path.child("name"), "")),
        name => faulty(names::dns1123_label(name), name, &path.child("name"), errors),
    }
    if text(container, "image").is_empty() {
        errors.push(FieldError::required(&path.child("image"), ""));
    }
    let message = text(container, "terminationMessagePolicy");
    let place = path.child("terminationMessagePolicy");
    one_of(message, &["File", "FallbackToLogsOnError"], &place, errors);
    ports(list(container, "ports"), &path.child("ports"), errors);
    environment::variables(container, &path.child("env"), errors);
    environment::sources(container, &path.child("envFrom"), errors);
    mounts::mounts(container, pod.volumes, &path.child("volumeMounts"), errors);
    mounts::devices(container, pod.volumes, &path.child("volumeDevices"), errors);
    let policies = ["Always", "IfNotPresent", "Never"];
    one_of(text(container, "imagePullPolicy"), &policies, &path.child("imagePullPolicy"), errors);
    resources::of_container(&container["resources"], pod.spec, &path.child("resources"), errors);
    resize_policies(container, pod.spec, &path.child("resizePolicy"), errors);
    security::container(
        &container["securityContext"],
        pod.has_own_users(),
        &path.child("securityContext"),
        errors,
    );
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
            let (number, path) = (port[field].as_i64().unwrap_or_default(), path.child(field));
            if number == 0 && required {
                errors.push(FieldError::required(&path, ""));
            } else if number != 0 {
                let faults = names::port_number(number);
                errors.extend(faults.into_iter().map(|fault| FieldError::invalid(&path, number, fault)));
            }
        }
        one_of(text(port, "protocol"), &PROTOCOLS, &path.child("protocol"), errors);
    }
}

/// Each port of the host is taken once.
fn host_ports<'a>(containers: impl Iterator<Item = (usize, &'a Value)>, path: &Path, errors: &mut ErrorList) {
    let mut seen = HashSet::new();
    for (at, container) in containers {
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

fn resize_policies(container: &Value, spec: &Value, path: &Path, errors: &mut ErrorList) {
    let policies = list(container, "resizePolicy");
    for (at, policy) in policies.iter().enumerate() {
        let (resource, restart) = (text(policy, "resourceName"), text(policy, "restartPolicy"));
        if policies[..at].iter().any(|other| text(other, "resourceName") == resource) {
            errors.push(FieldError::duplicate(&path.index(at), resource));
        }
        one_of(resource, &["cpu", "memory"], path, errors);
        one_of(restart, &["NotRequired", "RestartContainer"], path, errors);
        if spec["restartPolicy"] == "Never" && restart != "NotRequired" {
            let detail = "must be 'NotRequired' when pod `restartPolicy` is 'Never'";
            errors.push(FieldError::invalid(path, restart, detail));
        }
    }
}

/// When a container is restarted: its policy and its rules.
fn restarts(container: &Value, is_init: bool, path: &Path, errors: &mut ErrorList) {
    const MOST_RULES: usize = 20;
    const MOST_CODES: usize = 255;
    let rules = list(container, "restartPolicyRules");
    let place = path.child("restartPolicy");
    match container["restartPolicy"].as_str() {
        None if rules.is_empty() => return,
        None => {
            errors
                .push(FieldError::required(&place, "must specify restartPolicy when restart rules are used"));
            if is_init {
                return;
            }
        }
        Some(policy) if !RESTARTS.contains(&policy) => {
            errors.push(FieldError::not_supported(&place, policy, &RESTARTS));
        }
        Some(_) => {}
    }
    let place = path.child("restartPolicyRules");
    if rules.len() > MOST_RULES {
        errors.push(FieldError::too_many(&place, rules.len(), MOST_RULES));
    }
    for (at, rule) in rules.iter().enumerate() {
        let path = place.index(at);
        let (action, known) = (text(rule, "action"), ["Restart", "RestartAllContainers"]);
        if !known.contains(&action) {
            errors.push(FieldError::not_supported(&path.child("action"), action, &known));
        }
        let (codes, path) = (&rule["exitCodes"], path.child("exitCodes"));
        if !codes.is_object() {
            errors.push(FieldError::required(&path, "must be specified"));
            continue;
        }
        let (operator, known) = (text(codes, "operator"), ["In", "NotIn"]);
        if !known.contains(&operator) {
            errors.push(FieldError::not_supported(&path.child("operator"), operator, &known));
        }
        let count = list(codes, "values").len();
        if count > MOST_CODES {
            errors.push(FieldError::too_many(&path.child("values"), count, MOST_CODES));
        }
    }
}

//! Pods and pod templates.

use serde_json::{Value, json};

use super::{Object, child, each, object_or_new, set, set_text, text};

/// Permission bits of projected files: 0644.
const FILE_MODE: i32 = 420;

/// A pod: what templates have, requests from limits, and the host's ports on the host's network.
pub(super) fn pod(object: &mut Object) {
    if let Some(spec) = child(object, "spec") {
        let host_network = spec.get("hostNetwork") == Some(&Value::Bool(true));
        for list in ["containers", "initContainers"] {
            for one in each(spec, list) {
                requests_from_limits(one);
                each(one, "ports").filter(|_| host_network).for_each(host_port);
            }
        }
        set(spec, "enableServiceLinks", true);
        pod_spec(spec);
    }
    if let Some(status) = object_or_new(object, "status") {
        set_text(status, "phase", "Pending");
        let address = text(status, "podIP").to_owned();
        if !address.is_empty() && status.get("podIPs").and_then(Value::as_array).is_none_or(Vec::is_empty) {
            status.insert("podIPs".into(), json!([{"ip": address}]));
        }
    }
}

fn requests_from_limits(container: &mut Object) {
    let Some(resources) = child(container, "resources") else { return };
    let Some(limits) = resources.get("limits").and_then(Value::as_object).cloned() else { return };
    let Some(requests) = object_or_new(resources, "requests") else { return };
    for (name, amount) in limits {
        set(requests, &name, amount);
    }
}

/// The pod template in a field.
pub(super) fn template(object: &mut Object, key: &str) {
    if let Some(spec) = child(object, key).and_then(|template| child(template, "spec")) {
        pod_spec(spec);
    }
}

fn pod_spec(spec: &mut Object) {
    set_text(spec, "dnsPolicy", "ClusterFirst");
    set_text(spec, "restartPolicy", "Always");
    set_text(spec, "schedulerName", "default-scheduler");
    set(spec, "securityContext", json!({}));
    set(spec, "terminationGracePeriodSeconds", 30);
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        each(spec, list).for_each(container);
    }
    each(spec, "volumes").for_each(volume);
    service_account_names(spec);
}

/// The deprecated and the present field always say the same.
fn service_account_names(spec: &mut Object) {
    let name = match text(spec, "serviceAccountName") {
        "" => text(spec, "serviceAccount").to_owned(),
        name => name.to_owned(),
    };
    if !name.is_empty() {
        spec.insert("serviceAccountName".into(), name.clone().into());
        spec.insert("serviceAccount".into(), name.into());
    }
}

fn host_port(port: &mut Object) {
    if let Some(number) = port.get("containerPort").cloned() {
        set(port, "hostPort", number);
    }
}

fn container(container: &mut Object) {
    let policy = if tag(text(container, "image")) == Some("latest") { "Always" } else { "IfNotPresent" };
    set_text(container, "imagePullPolicy", policy);
    set_text(container, "terminationMessagePath", "/dev/termination-log");
    set_text(container, "terminationMessagePolicy", "File");
    for port in each(container, "ports") {
        set_text(port, "protocol", "TCP");
    }
    for variable in each(container, "env") {
        if let Some(source) = child(variable, "valueFrom") {
            field_ref(source);
        }
    }
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(found) = child(container, name) {
            probe(found);
        }
    }
    for hook in ["postStart", "preStop"] {
        let found = child(container, "lifecycle").and_then(|lifecycle| child(lifecycle, hook));
        if let Some(get) = found.and_then(|hook| child(hook, "httpGet")) {
            http_get(get);
        }
    }
}

/// The tag of an image reference, `latest` if there is neither tag nor digest; `None` with a digest only.
fn tag(image: &str) -> Option<&str> {
    // What is no reference to an image has no tag either.
    if image.contains("//") || image.contains(['$', '{', '}', ' ', '<', '>']) {
        return None;
    }
    let (name, digest) = match image.split_once('@') {
        Some((name, _)) => (name, true),
        None => (image, false),
    };
    let last = name.rsplit('/').next().unwrap_or(name);
    match last.split_once(':') {
        Some((_, tag)) => Some(tag),
        None if digest || name.is_empty() || name.chars().any(|c| c.is_uppercase()) => None,
        None => Some("latest"),
    }
}

fn field_ref(source: &mut Object) {
    if let Some(reference) = child(source, "fieldRef") {
        set_text(reference, "apiVersion", "v1");
    }
}

fn probe(probe: &mut Object) {
    set(probe, "timeoutSeconds", 1);
    set(probe, "periodSeconds", 10);
    set(probe, "successThreshold", 1);
    set(probe, "failureThreshold", 3);
    if let Some(get) = child(probe, "httpGet") {
        http_get(get);
    }
    if let Some(grpc) = child(probe, "grpc") {
        set(grpc, "service", "");
    }
}

fn http_get(get: &mut Object) {
    set_text(get, "path", "/");
    set_text(get, "scheme", "HTTP");
}

fn volume(volume: &mut Object) {
    if volume.keys().all(|key| key == "name") {
        volume.insert("emptyDir".into(), json!({}));
    }
    for kind in ["secret", "configMap", "downwardAPI", "projected"] {
        if let Some(source) = child(volume, kind) {
            set(source, "defaultMode", FILE_MODE);
            each(source, "items").for_each(field_ref);
            each(source, "sources").for_each(projection);
        }
    }
    if let Some(path) = child(volume, "hostPath") {
        set(path, "type", "");
    }
    if let Some(image) = child(volume, "image") {
        let policy = if tag(text(image, "reference")) == Some("latest") { "Always" } else { "IfNotPresent" };
        set_text(image, "pullPolicy", policy);
    }
    storage(volume);
    let claim = child(volume, "ephemeral").and_then(|ephemeral| child(ephemeral, "volumeClaimTemplate"));
    if let Some(spec) = claim.and_then(|claim| child(claim, "spec")) {
        set(spec, "volumeMode", "Filesystem");
    }
}

/// What storage is taken to be where its source does not say it: the same in pods and in persistent volumes.
pub(super) fn storage(spec: &mut Object) {
    for (kind, field, value) in [
        ("iscsi", "iscsiInterface", "default"),
        ("rbd", "pool", "rbd"),
        ("rbd", "user", "admin"),
        ("rbd", "keyring", "/etc/ceph/keyring"),
        ("scaleIO", "storageMode", "ThinProvisioned"),
        ("scaleIO", "fsType", "xfs"),
    ] {
        if let Some(source) = child(spec, kind) {
            set_text(source, field, value);
        }
    }
    if let Some(disk) = child(spec, "azureDisk") {
        set(disk, "cachingMode", "ReadWrite");
        set(disk, "kind", "Shared");
        set(disk, "fsType", "ext4");
        set(disk, "readOnly", false);
    }
}

fn projection(source: &mut Object) {
    if let Some(token) = child(source, "serviceAccountToken") {
        set(token, "expirationSeconds", 3600);
    }
    if let Some(downward) = child(source, "downwardAPI") {
        each(downward, "items").for_each(field_ref);
    }
}

//! Pods, and the containers of any description.

use tiphys_value::{Value, json};

use super::{
    conditions,
    text::{Field, below, fields, number, pairs, time, value, values},
};

pub(super) fn pod(described: &[Field<'_>]) -> Value {
    let mut spec = specification(described);
    if let Some(node) = value(described, "Node") {
        spec["nodeName"] = json!(node.split('/').next().unwrap_or(node));
    }
    let (first, start) = (containers(described, "Containers"), containers(described, "Init Containers"));
    let mut status = json!({"conditions": conditions(described)});
    for (name, found) in [("containerStatuses", &first), ("initContainerStatuses", &start)] {
        let statuses: Vec<Value> =
            found.iter().filter_map(|(name, fields)| container_status(name, fields)).collect();
        if !statuses.is_empty() {
            status[name] = json!(statuses);
        }
    }
    let phase = value(described, "Status").unwrap_or_default();
    let mut words = phase.split_whitespace();
    status["phase"] = json!(words.next().unwrap_or_default());
    for (title, key) in [("IP", "podIP"), ("Reason", "reason"), ("Message", "message")] {
        if let Some(text) = value(described, title) {
            status[key] = json!(text);
        }
    }
    json!({"spec": spec, "status": status})
}

/// What is told of the specification of pods: containers, volumes, account, node selector.
pub(super) fn specification(described: &[Field<'_>]) -> Value {
    let all = |key: &str| -> Vec<Value> {
        containers(described, key).iter().map(|(name, fields)| container(name, fields)).collect()
    };
    let mut spec = json!({"containers": all("Containers"), "volumes": volumes(described)});
    let start = all("Init Containers");
    if !start.is_empty() {
        spec["initContainers"] = json!(start);
    }
    if let Some(account) = value(described, "Service Account") {
        spec["serviceAccountName"] = json!(account);
    }
    let selector = pairs(&values(described, "Node-Selectors"));
    if !selector.is_empty() {
        spec["nodeSelector"] = selector.into_iter().map(|(key, value)| (key, json!(value))).collect();
    }
    spec
}

/// The containers of a section, each with its name.
fn containers<'a>(described: &[Field<'a>], section: &str) -> Vec<(&'a str, Vec<Field<'a>>)> {
    fields(below(described, section)).into_iter().map(|field| (field.key, fields(&field.lines))).collect()
}

fn container(name: &str, described: &[Field<'_>]) -> Value {
    let mut container = json!({"name": name, "image": value(described, "Image").unwrap_or_default()});
    let ports = ["Port", "Ports"].iter().find_map(|key| value(described, key)).unwrap_or_default();
    let ports: Vec<Value> = ports.split(',').filter_map(port).collect();
    if !ports.is_empty() {
        container["ports"] = json!(ports);
    }
    for (title, key) in [("Command", "command"), ("Args", "args")] {
        let words = values(described, title);
        if !words.is_empty() {
            container[key] = json!(words);
        }
    }
    for (title, key) in [("Limits", "limits"), ("Requests", "requests")] {
        for amount in fields(below(described, title)) {
            container["resources"][key][amount.key] = json!(amount.value);
        }
    }
    for (title, key) in
        [("Liveness", "livenessProbe"), ("Readiness", "readinessProbe"), ("Startup", "startupProbe")]
    {
        if let Some(probe) = value(described, title).and_then(probe) {
            container[key] = probe;
        }
    }
    let env: Vec<Value> = fields(below(described, "Environment")).iter().map(variable).collect();
    if !env.is_empty() {
        container["env"] = json!(env);
    }
    let from: Vec<Value> =
        below(described, "Environment Variables from").iter().filter_map(|line| source(line)).collect();
    if !from.is_empty() {
        container["envFrom"] = json!(from);
    }
    let mounts = below(described, "Mounts").iter().filter_map(|line| {
        let (path, rest) = line.trim().split_once(" from ")?;
        Some(json!({"mountPath": path, "name": rest.split(' ').next()?}))
    });
    container["volumeMounts"] = mounts.collect();
    container
}

/// `8080/TCP`, or `8080/TCP (http)`
fn port(text: &str) -> Option<Value> {
    let text = text.trim();
    let mut port = json!({"containerPort": number(text)?});
    if let Some((_, protocol)) = text.split_whitespace().next().and_then(|it| it.split_once('/')) {
        port["protocol"] = json!(protocol);
    }
    if let Some(name) = text.split_once('(').and_then(|(_, name)| name.strip_suffix(')')) {
        port["name"] = json!(name);
    }
    Some(port)
}

/// `http-get http://:8080/healthz delay=0s timeout=1s period=10s #success=1 #failure=3`
fn probe(text: &str) -> Option<Value> {
    let mut words = text.split_whitespace();
    let (kind, target) = (words.next()?, words.next().unwrap_or_default());
    let mut probe = match kind {
        "http-get" => {
            let (scheme, rest) = target.split_once("://")?;
            let (address, path) = rest.split_once('/').unwrap_or((rest, ""));
            let port = address.rsplit(':').next()?;
            let port = port.parse::<i64>().map_or_else(|_| json!(port), |port| json!(port));
            json!({"httpGet": {"scheme": scheme.to_ascii_uppercase(), "port": port, "path": format!("/{path}")}})
        }
        "tcp-socket" => {
            let port = target.rsplit(':').next()?;
            json!({"tcpSocket": {"port": port.parse::<i64>().map_or_else(|_| json!(port), |port| json!(port))}})
        }
        "exec" => {
            let command =
                text.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map_or("", |(it, _)| it);
            json!({"exec": {"command": [command]}})
        }
        _ => json!({}),
    };
    let names = [
        ("delay=", "initialDelaySeconds"),
        ("timeout=", "timeoutSeconds"),
        ("period=", "periodSeconds"),
        ("#failure=", "failureThreshold"),
    ];
    for (start, key) in names {
        let told = text.split_whitespace().find_map(|word| word.strip_prefix(start)).and_then(number);
        if let Some(told) = told {
            probe[key] = json!(told);
        }
    }
    Some(probe)
}

/// `PASSWORD:  <set to the key 'password' in secret 'pg'>  Optional: false`
fn variable(field: &Field<'_>) -> Value {
    let mut variable = json!({"name": field.key});
    let Some(reference) = field.value.strip_prefix("<set to the key ") else {
        variable["value"] = json!(field.value);
        return variable;
    };
    let words: Vec<&str> = reference.split('\'').collect();
    let key = if reference.contains("config map") { "configMapKeyRef" } else { "secretKeyRef" };
    if let [_, field, _, name, ..] = words[..] {
        variable["valueFrom"][key] = json!({"name": name, "key": field});
    }
    variable
}

/// `settings  ConfigMap  Optional: false`
fn source(line: &str) -> Option<Value> {
    let mut words = line.split_whitespace();
    let (name, kind) = (words.next()?, words.next()?);
    let key = if kind == "Secret" { "secretRef" } else { "configMapRef" };
    Some(json!({key: {"name": name}}))
}

/// What is told of a container that a kubelet looks after.
fn container_status(name: &str, described: &[Field<'_>]) -> Option<Value> {
    value(described, "State")?;
    let mut status = json!({"name": name, "ready": value(described, "Ready") == Some("True"), "state": {}, "lastState": {}});
    status["restartCount"] = json!(value(described, "Restart Count").and_then(number).unwrap_or(0));
    for (title, key) in [("State", "state"), ("Last State", "lastState")] {
        let Some(name) = value(described, title) else { continue };
        let told = fields(below(described, title));
        let mut state = json!({});
        for (title, key) in [("Reason", "reason"), ("Message", "message")] {
            if let Some(text) = value(&told, title) {
                state[key] = json!(text);
            }
        }
        for (title, key) in [("Started", "startedAt"), ("Finished", "finishedAt")] {
            if let Some(time) = value(&told, title).and_then(time) {
                state[key] = json!(time);
            }
        }
        if let Some(code) = value(&told, "Exit Code").and_then(number) {
            state["exitCode"] = json!(code);
        }
        status[key][name.to_ascii_lowercase()] = state;
    }
    Some(status)
}

fn volumes(described: &[Field<'_>]) -> Value {
    let all = fields(below(described, "Volumes"));
    let read = all.iter().map(|volume| {
        let told = fields(&volume.lines);
        let mut read = json!({"name": volume.key});
        let kind = value(&told, "Type").unwrap_or_default();
        match kind.split_whitespace().next().unwrap_or_default() {
            "PersistentVolumeClaim" => {
                read["persistentVolumeClaim"]["claimName"] =
                    json!(value(&told, "ClaimName").unwrap_or_default());
            }
            "Secret" => read["secret"]["secretName"] = json!(value(&told, "SecretName").unwrap_or_default()),
            "ConfigMap" => read["configMap"]["name"] = json!(value(&told, "Name").unwrap_or_default()),
            _ => {}
        }
        read
    });
    read.collect()
}

//! Warnings about a pod, or about the template of pods.

use std::collections::{BTreeMap, BTreeSet};

use tiphys_schema::{Path, names, quote};
use tiphys_value::{ObjectExt, Value};

use super::{GONE_VOLUMES, fractional, items};

/// Labels of nodes that have other names by now.
const OLD_LABELS: [(&str, &str); 8] = [
    ("beta.kubernetes.io/arch", "deprecated since v1.14; use \"kubernetes.io/arch\" instead"),
    ("beta.kubernetes.io/os", "deprecated since v1.14; use \"kubernetes.io/os\" instead"),
    (
        "failure-domain.beta.kubernetes.io/region",
        "deprecated since v1.17; use \"topology.kubernetes.io/region\" instead",
    ),
    (
        "failure-domain.beta.kubernetes.io/zone",
        "deprecated since v1.17; use \"topology.kubernetes.io/zone\" instead",
    ),
    (
        "beta.kubernetes.io/instance-type",
        "deprecated since v1.17; use \"node.kubernetes.io/instance-type\" instead",
    ),
    ("app.kubernetes.io/created-by", "deprecated since v1.9"),
    (
        "scheduler.alpha.kubernetes.io/preferAvoidPods",
        "deprecated since v1.22; use Taints and Tolerations instead",
    ),
    ("node-role.kubernetes.io/master", "use \"node-role.kubernetes.io/control-plane\" instead"),
];

const OLD_ANNOTATIONS: [(&str, &str); 3] = [
    (
        "scheduler.alpha.kubernetes.io/critical-pod",
        "non-functional in v1.16+; use the \"priorityClassName\" field instead",
    ),
    ("security.alpha.kubernetes.io/sysctls", "non-functional in v1.11+; use the \"sysctls\" field instead"),
    (
        "security.alpha.kubernetes.io/unsafe-sysctls",
        "non-functional in v1.11+; use the \"sysctls\" field instead",
    ),
];

/// The warnings of `{metadata, spec}` at a path, in the server's order.
pub(super) fn template_warnings(template: &Value, path: &Path, is_pod: bool) -> Vec<String> {
    let spec = &template["spec"];
    let at = path.child("spec");
    let mut warnings = Vec::new();
    placement(spec, &at, &mut warnings);
    let annotations = path.child("metadata").child("annotations");
    for (key, why) in OLD_ANNOTATIONS {
        if template.annotation(key).is_some() {
            warnings.push(format!("{}: {why}", annotations.key(key)));
        }
    }
    volumes(spec, &at.child("volumes"), &mut warnings);
    repeated(items(spec, "/hostAliases"), "ip", &at.child("hostAliases"), &mut warnings);
    repeated(items(spec, "/imagePullSecrets"), "name", &at.child("imagePullSecrets"), &mut warnings);
    for (number, secret) in items(spec, "/imagePullSecrets").enumerate() {
        if secret.str_at(&["name"]).unwrap_or_default().is_empty() {
            let path = at.child("imagePullSecrets").index(number).child("name");
            warnings.push(format!("{path}: invalid empty name \"\""));
        }
    }
    for resource in ["memory", "ephemeral-storage"] {
        warnings.extend(fractional(&spec["overhead"][resource], &at.child("overhead").key(resource)));
    }
    let seccomp = "seccomp.security.alpha.kubernetes.io/pod";
    if spec.at(&["securityContext", "seccompProfile"]).is_none() && template.annotation(seccomp).is_some() {
        warnings.push(unused(&annotations.key(seccomp), "v1.27", "seccompProfile"));
    }
    let containers = containers(spec, &at);
    for (container, path) in &containers {
        one_container(container, path, template, &annotations, is_pod, &mut warnings);
    }
    duplicate_ports(&containers, &mut warnings);
    port_names(&containers, &mut warnings);
    if spec.int_at(&["terminationGracePeriodSeconds"]).is_some_and(|seconds| seconds < 0) {
        warnings.push(format!(
            "{}: must be >= 0; negative values are invalid and will be treated as 1",
            at.child("terminationGracePeriodSeconds")
        ));
    }
    pod_affinity(spec, &at.child("affinity"), &mut warnings);
    warnings
}

fn unused(path: &Path, since: &str, field: &str) -> String {
    format!("{path}: non-functional in {since}+; use the \"{field}\" field instead")
}

fn old_label(key: &str) -> Option<&'static str> {
    OLD_LABELS.iter().find(|(label, _)| *label == key).map(|(_, why)| *why)
}

fn placement(spec: &Value, at: &Path, warnings: &mut Vec<String>) {
    for key in spec["nodeSelector"].as_object().into_iter().flat_map(|labels| labels.keys()) {
        if let Some(why) = old_label(key) {
            warnings.push(format!("{}: {why}", at.child("nodeSelector").key(key)));
        }
    }
    let affinity = at.child("affinity").child("nodeAffinity");
    let terms = affinity.child("requiredDuringSchedulingIgnoredDuringExecution").child("nodeSelectorTerms");
    let required = "/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms";
    for (number, term) in items(spec, required).enumerate() {
        node_term(term, false, &terms.index(number), warnings);
    }
    let preferred = "/affinity/nodeAffinity/preferredDuringSchedulingIgnoredDuringExecution";
    let path = affinity.child("preferredDuringSchedulingIgnoredDuringExecution");
    for (number, term) in items(spec, preferred).enumerate() {
        node_term(&term["preference"], true, &path.index(number).child("preference"), warnings);
    }
    for (number, spread) in items(spec, "/topologySpreadConstraints").enumerate() {
        let path = at.child("topologySpreadConstraints").index(number);
        let key = spread.str_at(&["topologyKey"]).unwrap_or_default();
        if let Some(why) = old_label(key) {
            warnings.push(format!("{}: {key} is {why}", path.child("topologyKey")));
        }
        warnings.extend(no_selector(spread, &path));
    }
}

fn node_term(term: &Value, checks_values: bool, path: &Path, warnings: &mut Vec<String>) {
    for (number, expression) in items(term, "/matchExpressions").enumerate() {
        let path = path.child("matchExpressions").index(number);
        let key = expression.str_at(&["key"]).unwrap_or_default();
        if let Some(why) = old_label(key) {
            warnings.push(format!("{}: {key} is {why}", path.child("key")));
        }
        for (index, value) in items(expression, "/values").enumerate().filter(|_| checks_values) {
            let value = value.as_str().unwrap_or_default();
            for fault in names::label_value(value) {
                warnings.push(format!("{}: {value} is invalid, {fault}", path.child("values").index(index)));
            }
        }
    }
}

fn no_selector(holder: &Value, path: &Path) -> Option<String> {
    let path = path.child("labelSelector");
    holder["labelSelector"]
        .is_null()
        .then(|| format!("{path}: a null labelSelector results in matching no pod"))
}

fn pod_affinity(spec: &Value, at: &Path, warnings: &mut Vec<String>) {
    for kind in ["podAffinity", "podAntiAffinity"] {
        let path = at.child(kind).child("requiredDuringSchedulingIgnoredDuringExecution");
        let required = format!("/affinity/{kind}/requiredDuringSchedulingIgnoredDuringExecution");
        for (number, term) in items(spec, &required).enumerate() {
            warnings.extend(no_selector(term, &path.index(number)));
        }
        let path = at.child(kind).child("preferredDuringSchedulingIgnoredDuringExecution");
        let preferred = format!("/affinity/{kind}/preferredDuringSchedulingIgnoredDuringExecution");
        for (number, term) in items(spec, &preferred).enumerate() {
            let path = path.index(number).child("podAffinityTerm");
            warnings.extend(no_selector(&term["podAffinityTerm"], &path));
        }
    }
}

fn volumes(spec: &Value, at: &Path, warnings: &mut Vec<String>) {
    const ORDER: [&str; 9] = [
        "photonPersistentDisk",
        "gitRepo",
        "scaleIO",
        "flocker",
        "storageos",
        "quobyte",
        "glusterfs",
        "cephfs",
        "rbd",
    ];
    for (number, volume) in items(spec, "/volumes").enumerate() {
        let path = at.index(number);
        for source in ORDER.into_iter().filter(|source| volume[*source].is_object()) {
            let since = GONE_VOLUMES.iter().find(|(gone, _)| *gone == source).map(|(_, since)| *since);
            let since = since.unwrap_or("deprecated in v1.11, and disabled by default in v1.33+");
            let shown = if source == "storageos" { "storageOS" } else { source };
            warnings.push(format!("{}: {since}", path.child(shown)));
        }
    }
    for volume in items(spec, "/volumes").filter(|volume| volume["projected"].is_object()) {
        if items(volume, "/projected/sources").next().is_none() {
            let name = quote(volume.str_at(&["name"]).unwrap_or_default());
            warnings.push(format!("volume {name} (Projected) has no sources provided"));
        }
    }
}

fn repeated<'a>(list: impl Iterator<Item = &'a Value>, field: &str, path: &Path, warnings: &mut Vec<String>) {
    let mut seen = BTreeSet::new();
    for (number, item) in list.enumerate() {
        let value = item.str_at(&[field]).unwrap_or_default();
        if !seen.insert(value) {
            warnings.push(format!("{}: duplicate {field} {}", path.index(number).child(field), quote(value)));
        }
    }
}

/// All containers with their paths.
fn containers<'a>(spec: &'a Value, at: &Path) -> Vec<(&'a Value, Path)> {
    let lists = ["initContainers", "containers", "ephemeralContainers"];
    let of = |list: &'static str| {
        items(spec, &format!("/{list}"))
            .enumerate()
            .map(|(number, container)| (container, at.child(list).index(number)))
            .collect::<Vec<_>>()
    };
    lists.into_iter().flat_map(of).collect()
}

fn one_container(
    container: &Value,
    path: &Path,
    template: &Value,
    annotations: &Path,
    is_pod: bool,
    warnings: &mut Vec<String>,
) {
    let name = container.str_at(&["name"]).unwrap_or_default();
    let seccomp = format!("container.seccomp.security.alpha.kubernetes.io/{name}");
    if container.at(&["securityContext", "seccompProfile"]).is_none()
        && template.annotation(&seccomp).is_some()
    {
        warnings.push(unused(&annotations.key(&seccomp), "v1.27", "seccompProfile"));
    }
    let apparmor = format!("container.apparmor.security.beta.kubernetes.io/{name}");
    let has_field = container.at(&["securityContext", "appArmorProfile"]).is_some()
        || template.at(&["spec", "securityContext", "appArmorProfile"]).is_some();
    if !is_pod && !has_field && template.annotation(&apparmor).is_some() {
        warnings.push(format!(
            "{}: deprecated since v1.30; use the \"appArmorProfile\" field instead",
            annotations.key(&apparmor)
        ));
    }
    for resource in ["memory", "ephemeral-storage"] {
        for part in ["limits", "requests"] {
            let path = path.child("resources").child(part).key(resource);
            warnings.extend(fractional(&container["resources"][part][resource], &path));
        }
    }
    let mut seen = BTreeSet::new();
    for (number, variable) in items(container, "/env").enumerate() {
        let name = variable.str_at(&["name"]).unwrap_or_default();
        let value = variable.str_at(&["value"]).unwrap_or_default();
        let reference = format!("$({name})");
        let extends = variable["valueFrom"].is_null() && value != reference && value.contains(&reference);
        if !seen.insert(name) && !extends {
            warnings.push(format!(
                "{}: hides previous definition of {}, which may be dropped when using apply",
                path.child("env").index(number),
                quote(name)
            ));
        }
    }
}

/// Ports of containers that mean the same, or may.
fn duplicate_ports(containers: &[(&Value, Path)], warnings: &mut Vec<String>) {
    let mut seen = BTreeMap::<String, Vec<(Path, &Value)>>::new();
    for (container, path) in containers {
        for (index, port) in items(container, "/ports").enumerate() {
            let field = path.child("ports").index(index);
            let key = format!("{}/{}", port["containerPort"], port["protocol"]);
            let others = seen.entry(key).or_default();
            let about = others.iter().filter_map(|(other, taken)| Some((other, overlap(port, taken)?)));
            warnings
                .extend(about.map(|(other, what)| format!("{field}: {what} port definition with {other}")));
            others.push((field, port));
        }
    }
}

fn port_names(containers: &[(&Value, Path)], warnings: &mut Vec<String>) {
    let mut seen = BTreeMap::<&str, Path>::new();
    for (container, path) in containers {
        for (index, port) in items(container, "/ports").enumerate() {
            let name = port.str_at(&["name"]).unwrap_or_default();
            let field = path.child("ports").index(index);
            match seen.get(name).filter(|_| !name.is_empty()) {
                Some(other) => warnings.push(format!(
                    "{field}: duplicate port name {} with {other}, services and probes that select ports by name will use {other}",
                    quote(name)
                )),
                None => drop(seen.insert(name, field)),
            }
        }
    }
}

/// What is wrong with two ports of the same number and protocol.
fn overlap(port: &Value, other: &Value) -> Option<&'static str> {
    let host = |port: &Value| port.int_at(&["hostPort"]).unwrap_or_default();
    let address = |port: &Value| port.str_at(&["hostIP"]).unwrap_or_default().to_owned();
    let (own, taken) = (host(port), host(other));
    if own == taken && address(port) == address(other) {
        Some("duplicate")
    } else if own == 0 || taken == 0 {
        Some("overlapping")
    } else if own == taken && address(port).is_empty() != address(other).is_empty() {
        Some("dangerously ambiguous")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use tiphys_value::json;

    use super::*;

    #[test]
    fn warns_of_what_is_accepted_and_of_no_use() {
        let port = json!([{"name": "http", "containerPort": 80, "protocol": "TCP"}]);
        let env = json!([{"name": "A", "value": "1"}, {"name": "A", "value": "$(A)2"}, {"name": "A", "value": "3"}]);
        let pod = json!({"metadata": {"annotations": {"scheduler.alpha.kubernetes.io/critical-pod": ""}}, "spec": {
            "nodeSelector": {"beta.kubernetes.io/os": "linux"},
            "topologySpreadConstraints": [{"topologyKey": "zone"}],
            "volumes": [{"name": "v", "gitRepo": {}}],
            "containers": [{"ports": port, "env": env, "resources": {"limits": {"memory": "100m"}}}, {"ports": port}]}});
        let template = Path::new("spec.template");
        assert_eq!(
            template_warnings(&pod, &template, false),
            [
                "spec.template.spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use \"kubernetes.io/os\" instead",
                "spec.template.spec.topologySpreadConstraints[0].labelSelector: a null labelSelector results in matching no pod",
                "spec.template.metadata.annotations[scheduler.alpha.kubernetes.io/critical-pod]: non-functional in v1.16+; use the \"priorityClassName\" field instead",
                "spec.template.spec.volumes[0].gitRepo: deprecated in v1.11, and disabled by default in v1.33+",
                "spec.template.spec.containers[0].resources.limits[memory]: fractional byte value \"100m\" is invalid, must be an integer",
                "spec.template.spec.containers[0].env[2]: hides previous definition of \"A\", which may be dropped when using apply",
                "spec.template.spec.containers[1].ports[0]: duplicate port definition with spec.template.spec.containers[0].ports[0]",
                "spec.template.spec.containers[1].ports[0]: duplicate port name \"http\" with spec.template.spec.containers[0].ports[0], services and probes that select ports by name will use spec.template.spec.containers[0].ports[0]",
            ]
        );
    }
}

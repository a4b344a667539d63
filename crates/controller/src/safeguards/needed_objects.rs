//! Which objects an object needs to go on working.

use tiphys_value::{ObjectExt, ResourceKey, Value};

/// Where kinds keep their pod specs.
fn pod_spec(object: &Value) -> Option<&Value> {
    match object.kind() {
        "Pod" => object.at(&["spec"]),
        "CronJob" => object.at(&["spec", "jobTemplate", "spec", "template", "spec"]),
        "Deployment"
        | "StatefulSet"
        | "DaemonSet"
        | "ReplicaSet"
        | "Job"
        | "ReplicationController"
        | "Rollout" => object.at(&["spec", "template", "spec"]),
        _ => None,
    }
}

/// The objects that one refers to and cannot do without: what it says is optional is left out.
pub(crate) fn objects_needed_by(object: &Value) -> Vec<ResourceKey> {
    let mut found = Vec::new();
    let namespace = object.namespace();
    if let Some(spec) = pod_spec(object) {
        of_pod(spec, namespace, &mut found);
    }
    match object.kind() {
        "StatefulSet" => of_claims(object, &mut found),
        "ServiceAccount" => {
            let list = object.get("imagePullSecrets").into_iter().chain(object.get("secrets"));
            for secret in list.filter_map(Value::as_array).flatten() {
                push(&mut found, "Secret", namespace, secret.str_at(&["name"]));
            }
        }
        "Ingress" => of_ingress(object, &mut found),
        "RoleBinding" | "ClusterRoleBinding" => {
            let kind = object.str_at(&["roleRef", "kind"]).unwrap_or_default();
            let name = object.str_at(&["roleRef", "name"]).unwrap_or_default();
            let namespace = if kind == "Role" { namespace } else { "" };
            found.push(ResourceKey::new("rbac.authorization.k8s.io", kind, namespace, name));
        }
        "APIService" => of_service(object.at(&["spec", "service"]), &mut found),
        "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration" => {
            let hooks = object.get("webhooks").and_then(Value::as_array).into_iter().flatten();
            hooks.for_each(|hook| of_service(hook.at(&["clientConfig", "service"]), &mut found));
        }
        "PersistentVolumeClaim" => {
            if let Some(name) = object.str_at(&["spec", "volumeName"]) {
                found.push(ResourceKey::new("", "PersistentVolume", "", name));
            }
        }
        _ => {}
    }
    found
}

fn push(found: &mut Vec<ResourceKey>, kind: &str, namespace: &str, name: Option<&str>) {
    if let Some(name) = name.filter(|name| !name.is_empty()) {
        found.push(ResourceKey::new("", kind, namespace, name));
    }
}

fn is_optional(reference: &Value) -> bool {
    reference.get("optional") == Some(&Value::Bool(true))
}

fn of_service(service: Option<&Value>, found: &mut Vec<ResourceKey>) {
    let Some(service) = service else { return };
    push(found, "Service", service.str_at(&["namespace"]).unwrap_or_default(), service.str_at(&["name"]));
}

fn of_pod(spec: &Value, namespace: &str, found: &mut Vec<ResourceKey>) {
    push(found, "ServiceAccount", namespace, spec.str_at(&["serviceAccountName"]));
    if let Some(class) = spec.str_at(&["priorityClassName"]).filter(|name| !name.is_empty()) {
        found.push(ResourceKey::new("scheduling.k8s.io", "PriorityClass", "", class));
    }
    let list = |of: &'static str| spec.get(of).and_then(Value::as_array).into_iter().flatten();
    for secret in list("imagePullSecrets") {
        push(found, "Secret", namespace, secret.str_at(&["name"]));
    }
    for volume in list("volumes") {
        of_volume(volume, namespace, found);
        let projected = volume.at(&["projected", "sources"]).and_then(Value::as_array);
        projected.into_iter().flatten().for_each(|source| of_volume(source, namespace, found));
    }
    for container in list("initContainers").chain(list("containers")) {
        let list = |of: &str| container.get(of).and_then(Value::as_array).cloned().unwrap_or_default();
        for from in list("envFrom") {
            add_named(&from, "configMapRef", "ConfigMap", namespace, found);
            add_named(&from, "secretRef", "Secret", namespace, found);
        }
        for entry in list("env") {
            let Some(from) = entry.get("valueFrom") else { continue };
            add_named(from, "configMapKeyRef", "ConfigMap", namespace, found);
            add_named(from, "secretKeyRef", "Secret", namespace, found);
        }
    }
}

fn of_volume(volume: &Value, namespace: &str, found: &mut Vec<ResourceKey>) {
    add_named(volume, "configMap", "ConfigMap", namespace, found);
    if let Some(secret) = volume.get("secret").filter(|secret| !is_optional(secret)) {
        // A volume names its Secret otherwise than a projected source does.
        push(found, "Secret", namespace, secret.str_at(&["secretName"]).or(secret.str_at(&["name"])));
    }
    let claim = volume.at(&["persistentVolumeClaim"]).and_then(|claim| claim.str_at(&["claimName"]));
    push(found, "PersistentVolumeClaim", namespace, claim);
}

fn add_named(holder: &Value, field: &str, kind: &str, namespace: &str, found: &mut Vec<ResourceKey>) {
    if let Some(reference) = holder.get(field).filter(|reference| !is_optional(reference)) {
        push(found, kind, namespace, reference.str_at(&["name"]));
    }
}

/// The claims that a StatefulSet makes for its pods: they hold its data.
fn of_claims(object: &Value, found: &mut Vec<ResourceKey>) {
    let replicas = object.int_at(&["spec", "replicas"]).unwrap_or(1).clamp(0, 1000);
    let templates = object.at(&["spec", "volumeClaimTemplates"]).and_then(Value::as_array);
    for template in templates.into_iter().flatten() {
        for ordinal in 0..replicas {
            let name = format!("{}-{}-{ordinal}", template.name(), object.name());
            push(found, "PersistentVolumeClaim", object.namespace(), Some(&name));
        }
    }
}

fn of_ingress(object: &Value, found: &mut Vec<ResourceKey>) {
    let namespace = object.namespace();
    if let Some(class) = object.str_at(&["spec", "ingressClassName"]) {
        found.push(ResourceKey::new("networking.k8s.io", "IngressClass", "", class));
    }
    for tls in object.at(&["spec", "tls"]).and_then(Value::as_array).into_iter().flatten() {
        push(found, "Secret", namespace, tls.str_at(&["secretName"]));
    }
    let backend = |backend: Option<&Value>, found: &mut Vec<ResourceKey>| {
        push(found, "Service", namespace, backend.and_then(|b| b.str_at(&["service", "name"])));
    };
    backend(object.at(&["spec", "defaultBackend"]), found);
    for rule in object.at(&["spec", "rules"]).and_then(Value::as_array).into_iter().flatten() {
        for path in rule.at(&["http", "paths"]).and_then(Value::as_array).into_iter().flatten() {
            backend(path.get("backend"), found);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiphys_value::json;

    #[test]
    fn what_a_workload_cannot_do_without() {
        let object = json!({"kind": "Deployment", "metadata": {"name": "d", "namespace": "n"}, "spec": {"template": {"spec": {
            "serviceAccountName": "sa",
            "volumes": [{"secret": {"secretName": "s"}}, {"configMap": {"name": "c", "optional": true}},
                {"projected": {"sources": [{"configMap": {"name": "p"}}, {"secret": {"name": "ps"}}]}},
                {"persistentVolumeClaim": {"claimName": "v"}}],
            "containers": [{"envFrom": [{"secretRef": {"name": "e"}}],
                "env": [{"name": "X", "valueFrom": {"configMapKeyRef": {"name": "k", "key": "x"}}}]}]}}}});
        let names: Vec<String> =
            objects_needed_by(&object).iter().map(|key| format!("{}/{}", key.kind, key.name)).collect();
        assert_eq!(
            names,
            [
                "ServiceAccount/sa",
                "Secret/s",
                "ConfigMap/p",
                "Secret/ps",
                "PersistentVolumeClaim/v",
                "Secret/e",
                "ConfigMap/k"
            ]
        );
    }
}

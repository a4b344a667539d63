//! What pods need: volumes, environment, service account, pull secrets.

use tiphys_value::{FieldPath, ObjectExt, Value};

use super::{edge::EdgeKind, index::pod_spec, out::Out};

pub(super) fn add(out: &mut Out<'_, '_>) {
    let Some((spec, at)) = pod_spec(out.object.value()) else { return };
    for (index, volume) in items(spec, "volumes") {
        add_volume(out, volume, &at.key("volumes").index(index));
    }
    for list in ["initContainers", "containers"] {
        for (index, container) in items(spec, list) {
            add_environment(out, container, &at.key(list).index(index));
        }
    }
    for (index, secret) in items(spec, "imagePullSecrets") {
        let Some(name) = secret.str_at(&["name"]) else { continue };
        let field = at.key("imagePullSecrets").index(index);
        out.add(EdgeKind::Pulls, out.near("", "Secret", name), field, true);
    }
    if let Some(name) = spec.str_at(&["serviceAccountName"]).filter(|name| !matches!(*name, "" | "default")) {
        out.add(EdgeKind::RunsAs, out.near("", "ServiceAccount", name), at.key("serviceAccountName"), false);
    }
}

fn items<'v>(of: &'v Value, list: &str) -> impl Iterator<Item = (usize, &'v Value)> {
    of.get(list).and_then(Value::as_array).into_iter().flatten().enumerate()
}

fn is_optional(reference: &Value) -> bool {
    reference.get("optional") == Some(&Value::Bool(true))
}

fn add_volume(out: &mut Out<'_, '_>, volume: &Value, at: &FieldPath) {
    let direct = [
        ("Secret", "secret", "secretName"),
        ("ConfigMap", "configMap", "name"),
        ("PersistentVolumeClaim", "persistentVolumeClaim", "claimName"),
    ];
    for (kind, source, field) in direct {
        let Some(of) = volume.get(source) else { continue };
        let Some(name) = of.str_at(&[field]) else { continue };
        out.add(EdgeKind::Mounts, out.near("", kind, name), at.key(source).key(field), is_optional(of));
    }
    let Some(projected) = volume.get("projected") else { return };
    for (index, source) in items(projected, "sources") {
        for (kind, key) in [("Secret", "secret"), ("ConfigMap", "configMap")] {
            let Some(of) = source.get(key) else { continue };
            let Some(name) = of.str_at(&["name"]) else { continue };
            let field = at.key("projected").key("sources").index(index).key(key).key("name");
            out.add(EdgeKind::Mounts, out.near("", kind, name), field, is_optional(of));
        }
    }
}

fn add_environment(out: &mut Out<'_, '_>, container: &Value, at: &FieldPath) {
    for (index, from) in items(container, "envFrom") {
        for (kind, key) in [("Secret", "secretRef"), ("ConfigMap", "configMapRef")] {
            let Some(of) = from.get(key) else { continue };
            let Some(name) = of.str_at(&["name"]) else { continue };
            let field = at.key("envFrom").index(index).key(key).key("name");
            out.add(EdgeKind::Env, out.near("", kind, name), field, is_optional(of));
        }
    }
    for (index, variable) in items(container, "env") {
        let Some(from) = variable.get("valueFrom") else { continue };
        for (kind, key) in [("Secret", "secretKeyRef"), ("ConfigMap", "configMapKeyRef")] {
            let Some(of) = from.get(key) else { continue };
            let Some(name) = of.str_at(&["name"]) else { continue };
            let field = at.key("env").index(index).key("valueFrom").key(key).key("name");
            out.add(EdgeKind::Env, out.near("", kind, name), field, is_optional(of));
        }
    }
}

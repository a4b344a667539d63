//! The objects that a pod cannot start without.

use tiphys_value::{FieldPath, ResourceKey, Value};

use super::pods::{Pod, list, text};

/// A pod's reference to an object of its namespace.
pub(crate) struct Reference<'a> {
    /// `ConfigMap`, `Secret`, `ServiceAccount` or `PersistentVolumeClaim`.
    pub kind: &'static str,
    /// The object's name.
    pub name: &'a str,
    /// Where it is named.
    pub path: FieldPath,
    /// Whether it is read only when a container starts.
    pub is_read_once: bool,
}

impl Reference<'_> {
    /// The key of the object, in a namespace.
    pub(crate) fn key(&self, namespace: &str) -> ResourceKey {
        ResourceKey::new("", self.kind, namespace, self.name)
    }
}

/// What a pod refers to and needs.
pub(crate) fn of_pod<'a>(pod: &Pod<'a>) -> Vec<Reference<'a>> {
    let mut found = Vec::new();
    for container in pod.containers() {
        for (at, from) in list(container.value, "envFrom").iter().enumerate() {
            let path = container.path.key("envFrom").index(at);
            add(&mut found, from, "configMapRef", "ConfigMap", &path);
            add(&mut found, from, "secretRef", "Secret", &path);
        }
        for (at, variable) in list(container.value, "env").iter().enumerate() {
            let Some(from) = variable.get("valueFrom") else { continue };
            let path = container.path.key("env").index(at).key("valueFrom");
            add(&mut found, from, "configMapKeyRef", "ConfigMap", &path);
            add(&mut found, from, "secretKeyRef", "Secret", &path);
        }
    }
    volumes(pod, &mut found);
    let spec = pod.spec();
    for field in ["serviceAccountName", "serviceAccount"] {
        let name = text(spec, field);
        if !name.is_empty() && name != "default" {
            let path = pod.spec_path().key(field);
            found.push(Reference { kind: "ServiceAccount", name, path, is_read_once: true });
            break;
        }
    }
    found
}

fn add<'a>(
    found: &mut Vec<Reference<'a>>,
    from: &'a Value,
    field: &str,
    kind: &'static str,
    path: &FieldPath,
) {
    let Some(reference) = from.get(field).filter(|it| it["optional"] != true) else { return };
    let name = text(reference, "name");
    if !name.is_empty() {
        found.push(Reference { kind, name, path: path.key(field).key("name"), is_read_once: true });
    }
}

fn volumes<'a>(pod: &Pod<'a>, found: &mut Vec<Reference<'a>>) {
    for (at, volume) in list(pod.spec(), "volumes").iter().enumerate() {
        let path = pod.spec_path().key("volumes").index(at);
        let is_read_once = is_mounted_by_sub_path(pod, text(volume, "name"));
        let before = found.len();
        let sources = [("configMap", "name", "ConfigMap"), ("secret", "secretName", "Secret")];
        for (field, name, kind) in sources {
            let Some(source) = volume.get(field).filter(|it| it["optional"] != true) else { continue };
            push(found, source, name, kind, path.key(field));
        }
        if let Some(claim) = volume.get("persistentVolumeClaim") {
            push(found, claim, "claimName", "PersistentVolumeClaim", path.key("persistentVolumeClaim"));
        }
        let projected = volume.get("projected").map(|it| list(it, "sources")).unwrap_or_default();
        for (index, source) in projected.iter().enumerate() {
            let path = path.key("projected").key("sources").index(index);
            for (field, kind) in [("configMap", "ConfigMap"), ("secret", "Secret")] {
                let Some(source) = source.get(field).filter(|it| it["optional"] != true) else { continue };
                push(found, source, "name", kind, path.key(field));
            }
        }
        found[before..].iter_mut().for_each(|it| it.is_read_once = is_read_once);
    }
}

fn push<'a>(
    found: &mut Vec<Reference<'a>>,
    source: &'a Value,
    field: &str,
    kind: &'static str,
    path: FieldPath,
) {
    let name = text(source, field);
    if !name.is_empty() {
        found.push(Reference { kind, name, path: path.key(field), is_read_once: false });
    }
}

fn is_mounted_by_sub_path(pod: &Pod<'_>, volume: &str) -> bool {
    pod.containers().any(|container| {
        let mounts = list(container.value, "volumeMounts").iter();
        mounts.into_iter().any(|mount| {
            text(mount, "name") == volume
                && (!text(mount, "subPath").is_empty() || !text(mount, "subPathExpr").is_empty())
        })
    })
}

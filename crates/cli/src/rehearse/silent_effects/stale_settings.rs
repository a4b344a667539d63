//! Settings that a change gives and running pods do not take up.

use std::collections::BTreeSet;

use tiphys_apiserver::Snapshot;
use tiphys_value::{ObjectExt, ResourceKey, Value};

use super::{
    super::effects::{AppEffects, Effect, Effects},
    workloads::{list, workloads},
};

/// Annotations by which a workload is restarted when its settings change begin with this.
const RELOADER: &str = "reloader.stakater.com/";

/// Adds to a change which workloads go on with the settings that they read when they started.
pub(in crate::rehearse) fn add_stale_readers(effects: &mut Effects, end: &Snapshot) {
    let fresh: BTreeSet<ResourceKey> = effects.applications.values().flat_map(renewed).collect();
    for app in effects.applications.values_mut() {
        let changed: Vec<ResourceKey> = app
            .objects
            .iter()
            .filter(|it| is_changed_data(&it.object, &it.effect))
            .map(|it| it.object.clone())
            .collect();
        for settings in changed {
            let readers = workloads(end).filter(|workload| {
                workload.namespace() == settings.namespace
                    && !fresh.contains(&workload.resource_key())
                    && !is_reloaded(workload)
                    && reads_at_start(workload, &settings)
            });
            app.stale.extend(readers.map(|reader| (settings.clone(), reader.resource_key())));
        }
    }
}

/// The workloads whose pods are new.
fn renewed(app: &AppEffects) -> Vec<ResourceKey> {
    let created = app.objects.iter().filter(|it| !matches!(it.effect, Effect::Changed { .. }));
    let restarted = app.restarted.iter().map(|it| it.workload.clone());
    created.map(|it| it.object.clone()).chain(restarted).collect()
}

fn is_changed_data(object: &ResourceKey, effect: &Effect) -> bool {
    let is_settings = object.group.is_empty() && matches!(object.kind.as_str(), "ConfigMap" | "Secret");
    let is_data =
        |field: &String| [".data", ".stringData", ".binaryData"].iter().any(|it| field.starts_with(it));
    is_settings && matches!(effect, Effect::Changed { fields, .. } if fields.iter().any(is_data))
}

fn is_reloaded(workload: &Value) -> bool {
    [&["metadata", "annotations"][..], &["spec", "template", "metadata", "annotations"]].iter().any(|path| {
        let annotations = workload.at(path).and_then(Value::as_object);
        annotations.into_iter().flatten().any(|(name, _)| name.starts_with(RELOADER))
    })
}

/// Whether the pods of a workload read settings only when they start: as variables, or as a file that is
/// mounted alone. Whole volumes follow by themselves.
fn reads_at_start(workload: &Value, settings: &ResourceKey) -> bool {
    let Some(pod) = workload.at(&["spec", "template", "spec"]) else { return false };
    let (of_one, of_all, volume) = match settings.kind.as_str() {
        "Secret" => ("secretKeyRef", "secretRef", ["secret", "secretName"]),
        _ => ("configMapKeyRef", "configMapRef", ["configMap", "name"]),
    };
    let is_it = |name: Option<&str>| name == Some(settings.name.as_str());
    let volumes = list(pod, "volumes");
    let names: BTreeSet<&str> =
        volumes.iter().filter(|it| is_it(it.str_at(&volume))).filter_map(|it| it.str_at(&["name"])).collect();
    let containers = ["initContainers", "containers"].into_iter().flat_map(|field| list(pod, field));
    containers.into_iter().any(|container| {
        list(container, "env").iter().any(|it| is_it(it.str_at(&["valueFrom", of_one, "name"])))
            || list(container, "envFrom").iter().any(|it| is_it(it.str_at(&[of_all, "name"])))
            || list(container, "volumeMounts").iter().any(|it| {
                it.get("subPath").is_some() && it.str_at(&["name"]).is_some_and(|name| names.contains(name))
            })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiphys_value::json;

    #[test]
    fn variables_and_single_files_are_read_at_start() {
        let settings = ResourceKey::new("", "ConfigMap", "shop", "settings");
        let reads = |container: Value| {
            let spec = json!({"containers": [container], "volumes": [{"name": "v", "configMap": {"name": "settings"}}]});
            reads_at_start(&json!({"spec": {"template": {"spec": spec}}}), &settings)
        };
        assert!(reads(json!({"envFrom": [{"configMapRef": {"name": "settings"}}]})));
        assert!(reads(
            json!({"env": [{"valueFrom": {"configMapKeyRef": {"name": "settings", "key": "a"}}}]})
        ));
        assert!(reads(json!({"volumeMounts": [{"name": "v", "mountPath": "/a", "subPath": "a"}]})));
        // A volume follows by itself, and another's settings are none of this one's.
        assert!(!reads(json!({"volumeMounts": [{"name": "v", "mountPath": "/a"}]})));
        assert!(!reads(json!({"envFrom": [{"secretRef": {"name": "settings"}}]})));
    }

    #[test]
    fn only_what_is_in_settings_counts() {
        let changed = |kind: &str, field: &str| {
            let effect = Effect::Changed { fields: vec![field.to_owned()], values: Vec::new() };
            is_changed_data(&ResourceKey::new("", kind, "shop", "settings"), &effect)
        };
        assert!(changed("ConfigMap", ".data.a") && changed("Secret", ".data.a"));
        assert!(!changed("ConfigMap", ".metadata.labels.a") && !changed("Service", ".data.a"));
    }
}

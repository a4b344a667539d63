//! Making and changing objects as controllers do.

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use tiphys_value::{GroupVersionResource, ObjectExt};

/// Marks a Secret or ConfigMap that also holds keys which only an outside store knows.
pub(crate) const MORE_KEYS: &str = "tiphys.dev/more-keys";

/// The resources that the controllers of this crate deal with.
pub(crate) mod resources {
    use super::GroupVersionResource;

    macro_rules! resources {
        ($($(#[$doc:meta])* $name:ident = $group:literal $version:literal $plural:literal;)*) => {
            $($(#[$doc])* pub(crate) fn $name() -> GroupVersionResource {
                GroupVersionResource::new($group, $version, $plural)
            })*
        };
    }

    resources! {
        pods = "" "v1" "pods";
        services = "" "v1" "services";
        namespaces = "" "v1" "namespaces";
        nodes = "" "v1" "nodes";
        secrets = "" "v1" "secrets";
        events = "" "v1" "events";
        endpoints = "" "v1" "endpoints";
        resource_quotas = "" "v1" "resourcequotas";
        leases = "coordination.k8s.io" "v1" "leases";
        controller_revisions = "apps" "v1" "controllerrevisions";
        cron_jobs = "batch" "v1" "cronjobs";
        config_maps = "" "v1" "configmaps";
        service_accounts = "" "v1" "serviceaccounts";
        claims = "" "v1" "persistentvolumeclaims";
        volumes = "" "v1" "persistentvolumes";
        deployments = "apps" "v1" "deployments";
        replication_controllers = "" "v1" "replicationcontrollers";
        replica_sets = "apps" "v1" "replicasets";
        stateful_sets = "apps" "v1" "statefulsets";
        daemon_sets = "apps" "v1" "daemonsets";
        jobs = "batch" "v1" "jobs";
        endpoint_slices = "discovery.k8s.io" "v1" "endpointslices";
        ingresses = "networking.k8s.io" "v1" "ingresses";
        ingress_classes = "networking.k8s.io" "v1" "ingressclasses";
        storage_classes = "storage.k8s.io" "v1" "storageclasses";
        definitions = "apiextensions.k8s.io" "v1" "customresourcedefinitions";
        disruption_budgets = "policy" "v1" "poddisruptionbudgets";
        autoscalers = "autoscaling" "v2" "horizontalpodautoscalers";
    }
}

/// The owner reference with which a controller claims what it makes.
pub(crate) fn owner_reference(owner: &Value) -> Value {
    json!({
        "apiVersion": owner.api_version(),
        "kind": owner.kind(),
        "name": owner.name(),
        "uid": owner.uid(),
        "controller": true,
        "blockOwnerDeletion": true,
    })
}

/// Whether `owner` controls `object`.
pub(crate) fn is_controlled_by(object: &Value, owner: &Value) -> bool {
    object.controller_reference().is_some_and(|reference| reference.str_at(&["uid"]) == Some(owner.uid()))
}

/// A pod from a workload's pod template, claimed by its owner.
pub(crate) fn pod_from_template(owner: &Value, template: &Value, name: &str) -> Value {
    let mut metadata = template.get("metadata").and_then(Value::as_object).cloned().unwrap_or_default();
    metadata.insert("name".into(), name.into());
    metadata.insert("namespace".into(), owner.namespace().into());
    metadata.insert("ownerReferences".into(), json!([owner_reference(owner)]));
    let spec = template.get("spec").cloned().unwrap_or_default();
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
}

/// The object with another status, if that changes anything.
pub(crate) fn with_status(object: &Value, status: Value) -> Option<Value> {
    if object.get("status") == Some(&status) {
        return None;
    }
    let mut changed = object.clone();
    changed["status"] = status;
    Some(changed)
}

/// The status of an object as a map to change.
pub(crate) fn status_of(object: &Value) -> Map<String, Value> {
    object.get("status").and_then(Value::as_object).cloned().unwrap_or_default()
}

/// Sets a condition; its transition time moves only when its status changes. `lastUpdateTime` is
/// kept where the kind has it (Deployment).
pub(crate) fn set_condition(status: &mut Map<String, Value>, condition: Value, now: Timestamp) {
    let conditions = status.entry("conditions").or_insert_with(|| json!([]));
    let Some(conditions) = conditions.as_array_mut() else { return };
    let mut condition = condition;
    let found = conditions.iter_mut().find(|existing| existing["type"] == condition["type"]);
    match found {
        Some(existing) => {
            let same_status = existing["status"] == condition["status"];
            let at = if same_status { existing["lastTransitionTime"].clone() } else { time(now) };
            condition["lastTransitionTime"] = at;
            if existing.get("lastUpdateTime").is_some() {
                let same = same_status && existing["reason"] == condition["reason"];
                condition["lastUpdateTime"] =
                    if same { existing["lastUpdateTime"].clone() } else { time(now) };
            }
            *existing = condition;
        }
        None => {
            condition["lastTransitionTime"] = time(now);
            conditions.push(condition);
        }
    }
}

/// Takes a condition away; an empty list of conditions goes too.
pub(crate) fn remove_condition(status: &mut Map<String, Value>, kind: &str) {
    let Some(conditions) = status.get_mut("conditions").and_then(Value::as_array_mut) else { return };
    conditions.retain(|condition| condition["type"] != kind);
    if conditions.is_empty() {
        status.remove("conditions");
    }
}

/// A condition of an object.
pub(crate) fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    let conditions = object.at(&["status", "conditions"]).and_then(Value::as_array);
    conditions.into_iter().flatten().find(|condition| condition["type"] == kind)
}

/// The finalizers of an object.
pub(crate) fn finalizers(object: &Value) -> impl Iterator<Item = &str> {
    let finalizers = object.at(&["metadata", "finalizers"]).and_then(Value::as_array);
    finalizers.into_iter().flatten().filter_map(Value::as_str)
}

/// The object without one of its finalizers.
pub(crate) fn without_finalizer(object: &Value, finalizer: &str) -> Value {
    let mut changed = object.clone();
    if let Some(finalizers) = changed["metadata"]["finalizers"].as_array_mut() {
        finalizers.retain(|existing| existing != finalizer);
    }
    changed
}

/// Whether a condition of an object is `True`.
pub(crate) fn is_condition_true(object: &Value, kind: &str) -> bool {
    condition(object, kind).is_some_and(|condition| condition["status"] == "True")
}

/// Whether a Job has completed or failed.
pub fn is_job_finished(job: &Value) -> bool {
    is_condition_true(job, "Complete") || is_condition_true(job, "Failed")
}

/// A time as the API writes it: RFC 3339, whole seconds, UTC.
pub(crate) fn time(at: Timestamp) -> Value {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string().into()
}

/// When an object was created, if that can be read.
pub(crate) fn created_at(object: &Value) -> Option<Timestamp> {
    object.str_at(&["metadata", "creationTimestamp"])?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_keeps_its_transition_time_while_its_status_stays() {
        let (first, later) = (Timestamp::UNIX_EPOCH, Timestamp::from_second(100).unwrap());
        let mut status = Map::new();
        set_condition(&mut status, json!({"type": "Ready", "status": "False"}), first);
        set_condition(&mut status, json!({"type": "Ready", "status": "False", "reason": "x"}), later);
        assert_eq!(status["conditions"][0]["lastTransitionTime"], time(first));
        set_condition(&mut status, json!({"type": "Ready", "status": "True"}), later);
        assert_eq!(status["conditions"][0]["lastTransitionTime"], time(later));
    }
}

//! PersistentVolumeClaim: bound to a volume made for it (core/v1, "Dynamic Volume Provisioning").

use serde_json::{Value, json};
use tiphys_value::ObjectExt;

use crate::{
    Change, Controller, Key, Outcome, View, Write,
    controller::Context,
    object::{resources, with_status},
};

/// Binds claims.
pub struct ClaimController;

impl Controller for ClaimController {
    fn name(&self) -> &'static str {
        "persistentvolumeclaim"
    }

    fn keys(&self, change: &Change, _: &View<'_>) -> Vec<Key> {
        if change.resource == resources::claims() {
            return vec![Key::of(&change.object)];
        }
        if change.resource == resources::pods() {
            return claims_of(&change.object);
        }
        Vec::new()
    }

    fn reconcile(&self, key: &Key, context: &Context<'_>) -> Outcome {
        let Some(claim) = context.view.get(&resources::claims(), key) else { return Outcome::done() };
        if claim.is_terminating() {
            return Outcome::done();
        }
        let class = claim.str_at(&["spec", "storageClassName"]).unwrap_or_default().to_owned();
        if !may_bind(&claim, &class, context.view) {
            let pending = with_status(&claim, json!({"phase": "Pending"}));
            return pending
                .map(|object| Write::UpdateStatus { resource: resources::claims(), object }.into())
                .unwrap_or_default();
        }
        let Some(volume) = claim.str_at(&["spec", "volumeName"]).filter(|name| !name.is_empty()) else {
            return provision(&claim, &class).into();
        };
        let bound = json!({
            "phase": "Bound",
            "accessModes": claim["spec"]["accessModes"],
            "capacity": {"storage": claim["spec"]["resources"]["requests"]["storage"]},
        });
        let mut writes = Vec::new();
        let updated = with_status(&claim, bound);
        writes.extend(updated.map(|object| Write::UpdateStatus { resource: resources::claims(), object }));
        let volume_key = Key { namespace: String::new(), name: volume.to_owned() };
        let volume = context.view.get(&resources::volumes(), &volume_key);
        let updated = volume.and_then(|volume| with_status(&volume, json!({"phase": "Bound"})));
        writes.extend(updated.map(|object| Write::UpdateStatus { resource: resources::volumes(), object }));
        writes.into()
    }
}

/// The claims that a pod mounts.
pub fn claims_of(pod: &Value) -> Vec<Key> {
    let volumes = pod.at(&["spec", "volumes"]).and_then(Value::as_array);
    let names =
        volumes.into_iter().flatten().filter_map(|v| v.str_at(&["persistentVolumeClaim", "claimName"]));
    names.map(|name| Key { namespace: pod.namespace().to_owned(), name: name.to_owned() }).collect()
}

/// A class that is unknown binds nothing; one with `WaitForFirstConsumer` waits for a pod.
fn may_bind(claim: &Value, class: &str, view: &View<'_>) -> bool {
    if claim.str_at(&["spec", "volumeName"]).is_some_and(|name| !name.is_empty()) {
        return true;
    }
    let key = Key { namespace: String::new(), name: class.to_owned() };
    let Some(class) = view.get(&resources::storage_classes(), &key) else { return false };
    if class.str_at(&["volumeBindingMode"]) != Some("WaitForFirstConsumer") {
        return true;
    }
    let wanted = Key::of(claim);
    let pods = view.list(&resources::pods(), Some(claim.namespace()));
    pods.iter().any(|pod| claims_of(pod).contains(&wanted))
}

fn provision(claim: &Value, class: &str) -> Vec<Write> {
    let name = format!("pvc-{}", claim.uid());
    let volume = json!({
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "annotations": {"pv.kubernetes.io/provisioned-by": "tiphys.dev/world"}},
        "spec": {
            "accessModes": claim["spec"]["accessModes"],
            "capacity": {"storage": claim["spec"]["resources"]["requests"]["storage"]},
            "claimRef": {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "name": claim.name(),
                "namespace": claim.namespace(),
                "uid": claim.uid(),
            },
            "hostPath": {"path": format!("/var/lib/tiphys/{name}"), "type": "DirectoryOrCreate"},
            "persistentVolumeReclaimPolicy": "Delete",
            "storageClassName": class,
        },
    });
    let mut bound = claim.clone();
    bound["spec"]["volumeName"] = name.into();
    bound["metadata"]["annotations"]["pv.kubernetes.io/bind-completed"] = "yes".into();
    vec![
        Write::Create { resource: resources::volumes(), object: volume },
        Write::Update { resource: resources::claims(), object: bound },
    ]
}

//! Ephemeral volumes: a claim for each, owned by its pod (core/v1 EphemeralVolumeSource).

use serde_json::{Value, json};
use tiphys_value::ObjectExt;

use super::{volume_claims::ephemeral_claim_name, workload::is_finished};
use crate::{
    Change, Controller, Event, Key, Outcome, Reporter, View, Write,
    controller::Context,
    object::{is_controlled_by, owner_reference, resources},
};

/// Makes the claims of ephemeral volumes.
pub(super) struct EphemeralVolumeController;

impl Controller for EphemeralVolumeController {
    fn name(&self) -> &'static str {
        "ephemeral-volume"
    }

    fn keys(&self, change: &Change, _: &View<'_>) -> Vec<Key> {
        let is_concerned = change.resource == resources::pods()
            && !change.is_deleted
            && ephemeral_volumes(&change.object).next().is_some();
        is_concerned.then(|| Key::from_object(&change.object)).into_iter().collect()
    }

    fn reconcile(&self, key: &Key, context: &Context<'_>) -> Outcome {
        let Some(pod) = context.view.get(&resources::pods(), key) else { return Outcome::done() };
        if pod.is_terminating() || is_finished(&pod) {
            return Outcome::done();
        }
        let mut writes = Vec::new();
        for volume in ephemeral_volumes(&pod) {
            let claim = claim(&pod, volume);
            match context.view.get(&resources::claims(), &Key::from_object(&claim)) {
                None => writes.push(Write::Create { resource: resources::claims(), object: claim }),
                Some(found) if !is_controlled_by(&found, &pod) => {
                    let name = claim.name();
                    let message = format!(
                        "PVC {}/{name} was not created for pod {}/{} (pod is not owner)",
                        pod.namespace(),
                        pod.namespace(),
                        pod.name()
                    );
                    let reporter = Reporter::Controller("ephemeral-volume");
                    writes.push(Event::warning(&pod, reporter, "FailedBinding", message).into());
                }
                Some(_) => {}
            }
        }
        writes.into()
    }
}

fn ephemeral_volumes(pod: &Value) -> impl Iterator<Item = &Value> {
    let volumes = pod.at(&["spec", "volumes"]).and_then(Value::as_array).into_iter().flatten();
    volumes.filter(|volume| volume.at(&["ephemeral", "volumeClaimTemplate"]).is_some())
}

fn claim(pod: &Value, volume: &Value) -> Value {
    let template = &volume["ephemeral"]["volumeClaimTemplate"];
    let mut metadata = json!({
        "name": ephemeral_claim_name(pod, volume),
        "namespace": pod.namespace(),
        "ownerReferences": [owner_reference(pod)],
    });
    for field in ["labels", "annotations"] {
        if let Some(value) = template.at(&["metadata", field]) {
            metadata[field] = value.clone();
        }
    }
    json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": template["spec"]})
}

//! PersistentVolumes: their phase, and what becomes of them once their claim is gone (core/v1, "Reclaiming").

use serde_json::{Value, json};
use tiphys_value::ObjectExt;

use super::{block_storage::PROVISIONED_BY, workload::delete};
use crate::{
    Change, Controller, Event, Key, Outcome, Reporter, View, Write,
    controller::Context,
    object::{finalizers, resources, status_of, with_status, without_finalizer},
};

const PROTECTION: &str = "kubernetes.io/pv-protection";

/// Keeps the phase of volumes.
pub(super) struct VolumeController;

impl Controller for VolumeController {
    fn name(&self) -> &'static str {
        "persistentvolume"
    }

    fn keys(&self, change: &Change, _: &View<'_>) -> Vec<Key> {
        let name = if change.resource == resources::volumes() {
            Some(change.object.name())
        } else if change.resource == resources::claims() {
            change.object.str_at(&["spec", "volumeName"])
        } else {
            None
        };
        let name = name.filter(|name| !name.is_empty());
        name.map(|name| Key { namespace: String::new(), name: name.to_owned() }).into_iter().collect()
    }

    fn reconcile(&self, key: &Key, context: &Context<'_>) -> Outcome {
        let Some(volume) = context.view.get(&resources::volumes(), key) else { return Outcome::done() };
        let of = |field| volume.str_at(&["spec", "claimRef", field]).unwrap_or_default().to_owned();
        let claim_key = Key { namespace: of("namespace"), name: of("name") };
        let claim = context.view.get(&resources::claims(), &claim_key);
        let is_claimed = !of("uid").is_empty();
        let claim = claim.filter(|claim| !is_claimed || claim.uid() == of("uid"));
        let path = volume.str_at(&["spec", "hostPath", "path"]).unwrap_or_default();
        // The volume controller itself deletes folders below /tmp, and nothing else.
        let is_ours = volume.annotation(PROVISIONED_BY).is_some() || path.starts_with("/tmp/");
        let is_deleted = volume.str_at(&["spec", "persistentVolumeReclaimPolicy"]) == Some("Delete");
        let failure = if is_ours || !is_deleted { None } else { deletion_failure(&volume) };
        let phase = match (is_claimed, &claim) {
            (false, _) => "Available",
            (true, Some(_)) => "Bound",
            (true, None) if failure.is_some() => "Failed",
            (true, None) => "Released",
        };
        if volume.is_terminating() {
            if phase == "Bound" || !finalizers(&volume).any(|finalizer| finalizer == PROTECTION) {
                return Outcome::done();
            }
            let object = without_finalizer(&volume, PROTECTION);
            return Write::Update { resource: resources::volumes(), object }.into();
        }
        let mut writes = Vec::new();
        let mut status = status_of(&volume);
        if status.insert("phase".into(), json!(phase)) != Some(json!(phase)) {
            status.insert("lastPhaseTransitionTime".into(), crate::object::time(context.now));
        }
        match (phase, &failure) {
            ("Failed", Some(failure)) => status.insert("message".into(), failure.as_str().into()),
            _ => status.remove("message"),
        };
        let updated = with_status(&volume, status.into());
        writes.extend(updated.map(|object| Write::UpdateStatus { resource: resources::volumes(), object }));
        match (phase, failure) {
            ("Released", _) if is_ours && is_deleted => writes.push(delete(resources::volumes(), &volume)),
            ("Failed", Some(failure)) if !writes.is_empty() => {
                let reporter = Reporter::Controller("persistentvolume-controller");
                writes.push(Event::warning(&volume, reporter, "VolumeFailedDelete", failure).into());
            }
            _ => {}
        }
        writes.into()
    }
}

/// Why the volume controller cannot delete a volume that nobody provisioned; `None` if that is a driver's part.
fn deletion_failure(volume: &Value) -> Option<String> {
    if volume.at(&["spec", "csi"]).is_some() {
        return None;
    }
    Some(match volume.str_at(&["spec", "hostPath", "path"]) {
        Some(path) => format!("host_path deleter only supports /tmp/.+ but received provided {path}"),
        None => format!(
            "error getting deleter volume plugin for volume {:?}: no deletable volume plugin matched",
            volume.name()
        ),
    })
}

//! Volumes that hang on another node, where no event tells it: the claim, the attachments and the pods do.

use tiphys_value::{ObjectExt as _, Value};

use super::{config_unsaid::waits_for_volumes, volume::attach};
use crate::{
    Object,
    cluster::{items, pods},
    finding::Finding,
    search_context::{Ill, Look},
    symptoms::mounts,
};

/// Seconds within which a volume is attached.
const SLOW: i64 = 120;

pub(crate) fn find(look: &Look<'_>) -> Vec<Finding> {
    look.ill.iter().filter_map(|ill| volume_on_another_node(look, ill)).collect()
}

/// The claim of a workload whose volume another node holds.
fn volume_on_another_node(look: &Look<'_>, ill: &Ill<'_>) -> Option<Finding> {
    let waits = |pod: &&&Value| {
        let is_told = look.cluster.events(&Object::from_live(pod)).any(|event| event.is_warning());
        waits_for_volumes(pod) && !is_told && look.cluster.age(pod) > SLOW
    };
    ill.pods.iter().filter(waits).find_map(|pod| {
        let names = items(pod, &["spec", "volumes"])
            .filter_map(|it| it.str_at(&["persistentVolumeClaim", "claimName"]));
        let mut claims =
            names.filter_map(|name| look.cluster.get("PersistentVolumeClaim", pod.namespace(), name));
        let claim = claims.find(|claim| is_for_one_node(claim) && hangs_elsewhere(look, claim, pod))?;
        let finding = attach(look, pod, &Object::from_live(claim), false);
        let finding = Finding { confidence: finding.confidence.min(0.85), ..finding };
        let object = Object::from_live(pod);
        let finding = finding.evidence(object.to_string(), "its containers wait to be created");
        Some(
            finding
                .suffers(object, "waits for its volume")
                .suffers(ill.workload.clone(), "waits for its volume"),
        )
    })
}

/// Whether a claim is for one node at a time.
fn is_for_one_node(claim: &Value) -> bool {
    let mut modes = items(claim, &["spec", "accessModes"]).filter_map(Value::as_str).peekable();
    modes.peek().is_some() && modes.all(|mode| matches!(mode, "ReadWriteOnce" | "ReadWriteOncePod"))
}

/// Whether the volume of a claim is attached to another node than a pod's, or another pod runs with it there.
fn hangs_elsewhere(look: &Look<'_>, claim: &Value, pod: &Value) -> bool {
    let node = pod.str_at(&["spec", "nodeName"]);
    let volume = claim.str_at(&["spec", "volumeName"]);
    let is_attached = |attachment: &&&Value| {
        attachment.str_at(&["spec", "source", "persistentVolumeName"]) == volume
            && attachment.at(&["status", "attached"]).and_then(Value::as_bool) == Some(true)
    };
    let mut attached = look.cluster.all("VolumeAttachment").iter().filter(is_attached);
    let is_elsewhere = |it: &Value| it.str_at(&["spec", "nodeName"]) != node;
    let holds = |other: &&Value| {
        other.name() != pod.name()
            && mounts(other, claim.name())
            && is_elsewhere(other)
            && pods::is_ready(other)
    };
    volume.is_some() && attached.any(|it| is_elsewhere(it))
        || look.cluster.pods_in(pod.namespace()).iter().any(holds)
}

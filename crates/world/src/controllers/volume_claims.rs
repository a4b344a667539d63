//! PersistentVolumeClaims and PersistentVolumes: found for each other or made (core/v1, "Lifecycle of a
//! volume and claim"), and kept while they are in use.

use std::sync::Arc;

use serde_json::{Value, json};
use tiphys_apiserver::Object;
use tiphys_schema::{LabelSelector, Quantity};
use tiphys_value::ObjectExt;

use super::{
    block_storage::{self, PROVISIONED_BY},
    workload::{is_finished, unready_pods},
};
use crate::{
    Change, Controller, Event, Key, Outcome, Reporter, View, Write,
    behaviour::storage_driver,
    bootstrap::PROVISIONER,
    controller::Context,
    object::{finalizers, resources, with_status, without_finalizer},
};

const SIGNATURE: &str = "persistentvolume-controller";
const PROTECTION: &str = "kubernetes.io/pvc-protection";
/// The annotation by which the scheduler tells a provisioner where a volume is wanted.
pub(super) const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";

/// The provisioner of classes whose volumes are made by hand.
const BY_HAND: &str = "kubernetes.io/no-provisioner";
const BOUND_BY: &str = "pv.kubernetes.io/bound-by-controller";

/// Binds claims, and lets go of those that nobody uses.
pub(super) struct ClaimController;

impl Controller for ClaimController {
    fn name(&self) -> &'static str {
        "persistentvolumeclaim"
    }

    fn keys(&self, change: &Change, view: &View<'_>) -> Vec<Key> {
        if change.resource == resources::claims() {
            return vec![Key::from_object(&change.object)];
        }
        if change.resource == resources::pods() && (change.is_deleted || is_finished(&change.object)) {
            return claims_of(&change.object);
        }
        if change.resource == resources::volumes() || change.resource == resources::storage_classes() {
            let claims = view.list(&resources::claims(), None);
            let concerns = |claim: &Value| {
                claim.str_at(&["status", "phase"]) != Some("Bound")
                    || claim.str_at(&["spec", "volumeName"]) == Some(change.object.name())
            };
            return claims
                .iter()
                .filter(|claim| concerns(claim))
                .map(|claim| Key::from_object(claim))
                .collect();
        }
        Vec::new()
    }

    fn reconcile(&self, key: &Key, context: &Context<'_>) -> Outcome {
        let Some(claim) = context.view.get(&resources::claims(), key) else { return Outcome::done() };
        if claim.is_terminating() {
            return release(&claim, context.view);
        }
        match claim.str_at(&["spec", "volumeName"]).filter(|name| !name.is_empty()) {
            Some(volume) => bind(&claim, volume, context),
            None => search(&claim, context),
        }
    }
}

/// Whether a claim's class waits with binding until a pod wants the volume.
pub(super) fn waits_for_consumer(claim: &Value, view: &View<'_>) -> bool {
    let class = claim.str_at(&["spec", "storageClassName"]).unwrap_or_default();
    let key = Key { namespace: String::new(), name: class.to_owned() };
    let class = view.get(&resources::storage_classes(), &key);
    class.is_some_and(|class| class.str_at(&["volumeBindingMode"]) == Some("WaitForFirstConsumer"))
}

/// The claims that a pod mounts, those of its ephemeral volumes included.
pub(super) fn claims_of(pod: &Value) -> Vec<Key> {
    let volumes = pod.at(&["spec", "volumes"]).and_then(Value::as_array);
    let name = |volume: &Value| {
        let claim = volume.str_at(&["persistentVolumeClaim", "claimName"]).map(str::to_owned);
        let own = || volume.get("ephemeral").map(|_| ephemeral_claim_name(pod, volume));
        claim.or_else(own)
    };
    let names = volumes.into_iter().flatten().filter_map(name);
    names.map(|name| Key { namespace: pod.namespace().to_owned(), name }).collect()
}

/// What the claim of an ephemeral volume of a pod is called.
pub(super) fn ephemeral_claim_name(pod: &Value, volume: &Value) -> String {
    format!("{}-{}", pod.name(), volume.str_at(&["name"]).unwrap_or_default())
}

/// Lets a claim go that no pod uses.
fn release(claim: &Value, view: &View<'_>) -> Outcome {
    if !finalizers(claim).any(|finalizer| finalizer == PROTECTION) {
        return Outcome::done();
    }
    let wanted = Key::from_object(claim);
    let pods = view.list(&resources::pods(), Some(claim.namespace()));
    if pods.iter().any(|pod| !is_finished(pod) && claims_of(pod).contains(&wanted)) {
        return Outcome::done();
    }
    Write::Update { resource: resources::claims(), object: without_finalizer(claim, PROTECTION) }.into()
}

/// Ties a claim to the volume that it names, and the volume to it.
fn bind(claim: &Value, volume_name: &str, context: &Context<'_>) -> Outcome {
    let key = Key { namespace: String::new(), name: volume_name.to_owned() };
    let Some(volume) = context.view.get(&resources::volumes(), &key) else {
        let was_bound = claim.annotation("pv.kubernetes.io/bind-completed").is_some();
        let phase = if was_bound { "Lost" } else { "Pending" };
        let mut outcome = set_phase(claim, phase);
        if was_bound && !outcome.writes.is_empty() {
            let message = "Bound claim has lost its PersistentVolume. Data on the volume is lost!";
            outcome
                .writes
                .push(Event::warning(claim, Reporter::Controller(SIGNATURE), "ClaimLost", message).into());
        }
        return outcome;
    };
    let mut writes = Vec::new();
    match volume.str_at(&["spec", "claimRef", "uid"]).filter(|uid| !uid.is_empty()) {
        Some(uid) if uid != claim.uid() => return set_phase(claim, "Pending"),
        Some(_) => {}
        None => {
            writes.push(claimed(&volume, claim));
            return writes.into();
        }
    }
    let bound = json!({
        "phase": "Bound",
        "accessModes": volume["spec"]["accessModes"],
        "capacity": volume["spec"]["capacity"],
    });
    writes.extend(annotated(claim));
    let updated = with_status(claim, bound);
    if writes.is_empty() {
        writes.extend(updated.map(|object| Write::UpdateStatus { resource: resources::claims(), object }));
    }
    writes.into()
}

/// The claim with the mark that it has been bound, if it does not bear it.
fn annotated(claim: &Value) -> Option<Write> {
    const DONE: &str = "pv.kubernetes.io/bind-completed";
    if claim.annotation(DONE).is_some() {
        return None;
    }
    let mut object = claim.clone();
    object["metadata"]["annotations"][DONE] = "yes".into();
    Some(Write::Update { resource: resources::claims(), object })
}

fn set_phase(claim: &Value, phase: &str) -> Outcome {
    let changed = with_status(claim, json!({"phase": phase}));
    changed
        .map(|object| Write::UpdateStatus { resource: resources::claims(), object }.into())
        .unwrap_or_default()
}

fn reference(claim: &Value) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "name": claim.name(),
        "namespace": claim.namespace(),
        "uid": claim.uid(),
        "resourceVersion": claim.resource_version(),
    })
}

/// Finds a volume for a claim, or has one made.
fn search(claim: &Value, context: &Context<'_>) -> Outcome {
    let view = context.view;
    let class_name = claim.str_at(&["spec", "storageClassName"]).unwrap_or_default();
    // The scheduler claims volumes that were made by hand for claims that wait for their first consumer.
    if let Some(volume) = claimed_volume(claim, view) {
        return with_volume_name(claim, volume.name()).into();
    }
    if waits_for_consumer(claim, view) && claim.annotation(SELECTED_NODE).is_none() {
        return tell_pending(
            claim,
            false,
            "WaitForFirstConsumer",
            "waiting for first consumer to be created before binding",
        );
    }
    if let Some(volume) = matching(claim, view, |_| true) {
        return vec![claimed(&volume, claim), with_volume_name(claim, volume.name())].into();
    }
    if class_name.is_empty() {
        let message = "no persistent volumes available for this claim and no storage class is set";
        return tell_pending(claim, false, "FailedBinding", message);
    }
    let key = Key { namespace: String::new(), name: class_name.to_owned() };
    let Some(class) = view.get(&resources::storage_classes(), &key) else {
        let message = format!("storageclass.storage.k8s.io \"{class_name}\" not found");
        return tell_pending(claim, true, "ProvisioningFailed", &message);
    };
    if class.str_at(&["provisioner"]) == Some(BY_HAND) {
        let message = format!("no volume plugin matched name: {BY_HAND}");
        return tell_pending(claim, true, "ProvisioningFailed", &message);
    }
    if let Some(message) = block_storage::refusal(claim, &class) {
        return tell_pending(claim, true, "ProvisioningFailed", &message);
    }
    let provisioner = class.str_at(&["provisioner"]).unwrap_or_default();
    if let Some(awaited) = storage_driver(provisioner).and_then(|image| unready_pods(image, view)) {
        let message = format!(
            "Waiting for a volume to be created either by the external provisioner '{provisioner}' or manually by the \
             system administrator. If volume creation is delayed, please verify that the provisioner is running and \
             correctly registered."
        );
        return tell_pending(claim, false, "ExternalProvisioning", &message).until(Some(awaited));
    }
    let affinity = block_storage::affinity(&class, claim.annotation(SELECTED_NODE), view);
    provision(claim, &class, affinity).into()
}

/// The claim with the name of its volume.
fn with_volume_name(claim: &Value, volume: &str) -> Write {
    let mut object = claim.clone();
    object["spec"]["volumeName"] = volume.into();
    object["metadata"]["annotations"][BOUND_BY] = "yes".into();
    object["metadata"]["annotations"]["pv.kubernetes.io/bind-completed"] = "yes".into();
    Write::Update { resource: resources::claims(), object }
}

/// Says why a claim waits, once.
fn tell_pending(claim: &Value, is_warning: bool, reason: &str, message: &str) -> Outcome {
    let mut outcome = set_phase(claim, "Pending");
    let reporter = Reporter::Controller(SIGNATURE);
    let event = match is_warning {
        true => Event::warning(claim, reporter, reason, message),
        false => Event::normal(claim, reporter, reason, message),
    };
    outcome.writes.push(event.into());
    outcome
}

/// The volume with the mark that it is a claim's.
pub(super) fn claimed(volume: &Value, claim: &Value) -> Write {
    let mut object = volume.clone();
    object["spec"]["claimRef"] = reference(claim);
    object["metadata"]["annotations"][BOUND_BY] = "yes".into();
    Write::Update { resource: resources::volumes(), object }
}

/// The volume that is a claim's already.
pub(super) fn claimed_volume(claim: &Value, view: &View<'_>) -> Option<Arc<Object>> {
    let is_own = |volume: &Arc<Object>| volume.str_at(&["spec", "claimRef", "uid"]) == Some(claim.uid());
    view.list(&resources::volumes(), None).into_iter().find(is_own)
}

/// Whether the volumes of a claim's class are made by hand.
pub(super) fn is_class_by_hand(claim: &Value, view: &View<'_>) -> bool {
    let name = claim.str_at(&["spec", "storageClassName"]).unwrap_or_default().to_owned();
    let class = view.get(&resources::storage_classes(), &Key { namespace: String::new(), name });
    class.is_some_and(|class| class.str_at(&["provisioner"]) == Some(BY_HAND))
}

/// The smallest free volume that will do: of the class, with the modes, large enough, selected, and suitable.
pub(super) fn matching(
    claim: &Value,
    view: &View<'_>,
    is_suitable: impl Fn(&Value) -> bool,
) -> Option<Arc<Object>> {
    let amount =
        |object: &Value, path: &[&str]| object.str_at(path).and_then(|text| text.parse::<Quantity>().ok());
    let wanted = amount(claim, &["spec", "resources", "requests", "storage"]);
    let modes = |object: &Value| -> Vec<String> {
        let modes = object.at(&["spec", "accessModes"]).and_then(Value::as_array).into_iter().flatten();
        modes.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let selector = LabelSelector::from_object(&claim["spec"]["selector"]).ok().flatten();
    let class = |object: &Value| object.str_at(&["spec", "storageClassName"]).unwrap_or_default().to_owned();
    let fits = |volume: &Arc<Object>| {
        let claimed = volume.at(&["spec", "claimRef"]);
        let is_free = claimed.is_none_or(|claimed| {
            claimed.str_at(&["uid"]).is_none_or(str::is_empty)
                && claimed.str_at(&["name"]) == Some(claim.name())
                && claimed.str_at(&["namespace"]) == Some(claim.namespace())
        });
        let offered = modes(volume);
        is_free
            && !volume.is_terminating()
            && class(volume) == class(claim)
            && modes(claim).iter().all(|mode| offered.contains(mode))
            && amount(volume, &["spec", "capacity", "storage"]) >= wanted
            && selector
                .as_ref()
                .is_none_or(|s| s.matches(volume.at(&["metadata", "labels"]).unwrap_or(&Value::Null)))
            && is_suitable(volume)
    };
    let volumes = view.list(&resources::volumes(), None).into_iter().filter(fits);
    volumes.min_by_key(|volume| {
        (
            volume.at(&["spec", "claimRef"]).is_none(),
            amount(volume, &["spec", "capacity", "storage"]),
            volume.name().to_owned(),
        )
    })
}

fn provision(claim: &Value, class: &Value, affinity: Option<Value>) -> Vec<Write> {
    let name = format!("pvc-{}", claim.uid());
    let provisioner = class.str_at(&["provisioner"]).unwrap_or(PROVISIONER);
    let mut volume = json!({
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "annotations": {PROVISIONED_BY: provisioner}},
        "spec": {
            "accessModes": claim["spec"]["accessModes"],
            "capacity": {"storage": claim["spec"]["resources"]["requests"]["storage"]},
            "claimRef": reference(claim),
            "hostPath": {"path": format!("/var/lib/tiphys/{name}"), "type": "DirectoryOrCreate"},
            "persistentVolumeReclaimPolicy": class.str_at(&["reclaimPolicy"]).unwrap_or("Delete"),
            "storageClassName": class.name(),
            "volumeMode": claim.str_at(&["spec", "volumeMode"]).unwrap_or("Filesystem"),
        },
    });
    if let Some(affinity) = affinity {
        volume["spec"]["nodeAffinity"] = affinity;
    }
    let told = |reason: &str, message: String| {
        Write::from(Event::normal(claim, Reporter::Controller("tiphys-provisioner"), reason, message))
    };
    let full = format!("{}/{}", claim.namespace(), claim.name());
    let mut bound = claim.clone();
    bound["spec"]["volumeName"] = name.as_str().into();
    for (key, value) in [
        ("pv.kubernetes.io/bind-completed", "yes"),
        (BOUND_BY, "yes"),
        ("volume.beta.kubernetes.io/storage-provisioner", provisioner),
        ("volume.kubernetes.io/storage-provisioner", provisioner),
    ] {
        bound["metadata"]["annotations"][key] = value.into();
    }
    vec![
        told("Provisioning", format!("External provisioner is provisioning volume for claim \"{full}\"")),
        Write::Create { resource: resources::volumes(), object: volume },
        told("ProvisioningSucceeded", format!("Successfully provisioned volume {name}")),
        Write::Update { resource: resources::claims(), object: bound },
    ]
}

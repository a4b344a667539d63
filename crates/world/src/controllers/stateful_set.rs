//! StatefulSet: numbered pods with claims of their own, one after the other (apps/v1 StatefulSet,
//! "Deployment and Scaling Guarantees").

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Value, json};
use tiphys_apiserver::Object;
use tiphys_value::ObjectExt;

use super::{
    adoption,
    revision::{HASH, Revisions},
    workload::{Availability, BURST, count, delete_pod, is_active, is_finished, is_ready},
};
use crate::{
    Change, Controller, Event, Key, Outcome, Reporter, View, Write,
    controller::Context,
    object::{owner_reference, pod_from_template, resources, status_of, with_status},
};

const SIGNATURE: &str = "statefulset-controller";

/// Keeps the pods of StatefulSets.
pub(super) struct StatefulSetController;

impl Controller for StatefulSetController {
    fn name(&self) -> &'static str {
        "statefulset"
    }

    fn keys(&self, change: &Change, view: &View<'_>) -> Vec<Key> {
        adoption::keys(change, &resources::stateful_sets(), "StatefulSet", adoption::selector_of, view)
    }

    fn reconcile(&self, key: &Key, context: &Context<'_>) -> Outcome {
        let Some(set) = context.view.get(&resources::stateful_sets(), key) else { return Outcome::done() };
        if set.is_terminating() {
            return Outcome::done();
        }
        let selector = adoption::selector_of(&set);
        let has_form = |pod: &Value| ordinal(&set, pod).is_some();
        let claims = adoption::claim(&set, &resources::pods(), &selector, has_form, context.view);
        let adopted = [claims.adopted, Revisions::adopt(&set, context.view)].concat();
        if !adopted.is_empty() {
            return adopted.into();
        }
        let revisions = Revisions::from_owner(&set, context.view);
        let pods = claims.mine;
        let availability = Availability::from_owner(&set, context.now);
        let step = Step { set: &set, pods: &pods, revisions: &revisions, availability, context };
        let mut writes = claims.released;
        writes.extend(revisions.keep(&set, &pods));
        let updated = with_status(&set, step.status());
        writes.extend(
            updated.map(|object| Write::UpdateStatus { resource: resources::stateful_sets(), object }),
        );
        let next = step.next();
        if let (Some(why), Some(pod)) = (context.failure, first_new_pod(&next)) {
            let message = format!("Create Pod {pod} in StatefulSet {} failed error: {why}", set.name());
            writes
                .push(Event::warning(&set, Reporter::Controller(SIGNATURE), "FailedCreate", message).into());
        }
        writes.extend(next);
        Outcome::from(writes).requeue_after(availability.next(&pods))
    }
}

/// The pod that is made first, which is the one that failed before.
fn first_new_pod(writes: &[Write]) -> Option<&str> {
    writes.iter().find_map(|write| match write {
        Write::Create { resource, object } if *resource == resources::pods() => Some(object.name()),
        _ => None,
    })
}

fn ordinal(set: &Value, pod: &Value) -> Option<i64> {
    pod.name().strip_prefix(set.name())?.strip_prefix('-')?.parse().ok()
}

/// One look at a set.
struct Step<'a> {
    set: &'a Value,
    pods: &'a [Arc<Object>],
    revisions: &'a Revisions,
    availability: Availability,
    context: &'a Context<'a>,
}

impl Step<'_> {
    fn desired_replicas(&self) -> i64 {
        self.set.int_at(&["spec", "replicas"]).unwrap_or(1).max(0)
    }

    /// The ordinals of the pods that there should be.
    fn ordinals(&self) -> std::ops::Range<i64> {
        let first = self.set.int_at(&["spec", "ordinals", "start"]).unwrap_or(0);
        first..first.saturating_add(self.desired_replicas())
    }

    fn partition(&self) -> i64 {
        self.set.int_at(&["spec", "updateStrategy", "rollingUpdate", "partition"]).unwrap_or(0)
    }

    /// The revision that pods below the partition keep.
    fn current_revision(&self) -> &str {
        let known = self.set.str_at(&["status", "currentRevision"]).filter(|name| !name.is_empty());
        known.unwrap_or(&self.revisions.current)
    }

    /// What comes next: the lowest missing pod, else the highest surplus one, else the highest one of an
    /// old revision. With `OrderedReady` a pod that is not Ready holds everything up.
    fn next(&self) -> Vec<Write> {
        let is_parallel = self.set.str_at(&["spec", "podManagementPolicy"]) == Some("Parallel");
        let mut writes = Vec::new();
        let by_ordinal: BTreeMap<i64, &Arc<Object>> =
            self.pods.iter().filter_map(|pod| Some((ordinal(self.set, pod)?, pod))).collect();
        let mut coming = 0;
        for number in self.ordinals() {
            match by_ordinal.get(&number) {
                None => {
                    writes.extend(self.create(number));
                    coming += 1;
                    if coming == BURST {
                        return writes;
                    }
                }
                // A pod that has ended is made anew.
                Some(pod) if is_finished(pod) && !pod.is_terminating() => writes.extend(self.delete(pod)),
                Some(pod) if self.availability.has(pod) || is_parallel => continue,
                Some(_) => {}
            }
            if !is_parallel {
                return writes;
            }
        }
        if !writes.is_empty() {
            return writes;
        }
        let ordinals = self.ordinals();
        let is_surplus = |pod: &&Arc<Object>| ordinal(self.set, pod).is_some_and(|n| !ordinals.contains(&n));
        if let Some(pod) = self.pods.iter().filter(is_surplus).max_by_key(|pod| ordinal(self.set, pod)) {
            return if pod.is_terminating() { Vec::new() } else { self.scale_down(pod) };
        }
        if self.set.str_at(&["spec", "updateStrategy", "type"]) == Some("OnDelete") {
            return Vec::new();
        }
        self.update()
    }

    /// The next step of an update: the highest pod of an old revision goes, once all above it are available.
    /// `maxUnavailable` is behind a feature gate that is off.
    fn update(&self) -> Vec<Write> {
        let first = self.ordinals().start.saturating_add(self.partition());
        let mut pods: Vec<_> =
            self.pods.iter().filter_map(|pod| Some((ordinal(self.set, pod)?, pod))).collect();
        pods.retain(|(number, _)| *number >= first);
        pods.sort_by_key(|(number, _)| std::cmp::Reverse(*number));
        for (_, pod) in pods {
            if pod.label(HASH) != Some(&self.revisions.current) && !pod.is_terminating() {
                return self.delete(pod);
            }
            if !self.availability.has(pod) {
                break;
            }
        }
        Vec::new()
    }

    fn pod_event(&self, verb: &str, pod: &str) -> Write {
        let message = format!("{verb} Pod {pod} in StatefulSet {} successful", self.set.name());
        let reason = format!("Successful{verb}");
        Event::normal(self.set, Reporter::Controller(SIGNATURE), &reason, message).into()
    }

    fn delete(&self, pod: &Value) -> Vec<Write> {
        vec![delete_pod(pod), self.pod_event("Delete", pod.name())]
    }

    /// With `whenScaled: Delete` the claims of a surplus pod go with it.
    fn scale_down(&self, pod: &Value) -> Vec<Write> {
        let mut writes = Vec::new();
        if self.set.str_at(&["spec", "persistentVolumeClaimRetentionPolicy", "whenScaled"]) == Some("Delete")
        {
            for claim in super::volume_claims::claims_of(pod) {
                let found = self.context.view.get(&resources::claims(), &claim);
                // It may be the set's, to go with that; now it is the pod's.
                let is_of_set = |owner: &Value| owner.str_at(&["uid"]) == Some(self.set.uid());
                let free = found.filter(|claim| claim.owner_references().iter().all(is_of_set));
                writes.extend(free.map(|claim| {
                    let mut object = claim.value().clone();
                    let mut owner = owner_reference(pod);
                    owner["controller"] = false.into();
                    owner["blockOwnerDeletion"] = false.into();
                    object["metadata"]["ownerReferences"] = json!([owner]);
                    Write::Update { resource: resources::claims(), object }
                }));
            }
        }
        writes.extend(self.delete(pod));
        writes
    }

    fn create(&self, number: i64) -> Vec<Write> {
        let name = format!("{}-{number}", self.set.name());
        let is_old = number < self.ordinals().start.saturating_add(self.partition())
            && self.current_revision() != self.revisions.current;
        let old = is_old.then(|| self.revisions.template(self.current_revision())).flatten();
        let revision = if old.is_some() { self.current_revision() } else { self.revisions.current.as_str() };
        let template = old.unwrap_or_else(|| self.set["spec"]["template"].clone());
        let mut pod = pod_from_template(self.set, &template, &name);
        pod["metadata"]["generateName"] = format!("{}-", self.set.name()).into();
        pod["metadata"]["labels"][HASH] = revision.into();
        pod["metadata"]["labels"]["statefulset.kubernetes.io/pod-name"] = name.clone().into();
        pod["metadata"]["labels"]["apps.kubernetes.io/pod-index"] = number.to_string().into();
        pod["spec"]["hostname"] = name.clone().into();
        pod["spec"]["subdomain"] = self.set.str_at(&["spec", "serviceName"]).unwrap_or_default().into();
        let mut writes = Vec::new();
        let templates = self.set.at(&["spec", "volumeClaimTemplates"]).and_then(Value::as_array);
        for template in templates.into_iter().flatten() {
            let claim_name = format!("{}-{name}", template.name());
            mount(&mut pod, template.name(), &claim_name);
            let key = Key { namespace: self.set.namespace().to_owned(), name: claim_name };
            if self.context.view.get(&resources::claims(), &key).is_none() {
                writes.push(self.create_claim(template, &key.name));
                let message = format!(
                    "Create Claim {} Pod {name} in StatefulSet {} success",
                    key.name,
                    self.set.name()
                );
                writes.push(
                    Event::normal(self.set, Reporter::Controller(SIGNATURE), "SuccessfulCreate", message)
                        .into(),
                );
            }
        }
        writes.push(Write::Create { resource: resources::pods(), object: pod });
        writes.push(self.pod_event("Create", &name));
        writes
    }

    fn create_claim(&self, template: &Value, name: &str) -> Write {
        let mut claim = template.clone();
        claim["apiVersion"] = "v1".into();
        claim["kind"] = "PersistentVolumeClaim".into();
        claim["metadata"]["name"] = name.into();
        claim["metadata"]["namespace"] = self.set.namespace().into();
        let labels = self.set.at(&["spec", "selector", "matchLabels"]).and_then(Value::as_object);
        for (key, value) in labels.into_iter().flatten() {
            claim["metadata"]["labels"][key] = value.clone();
        }
        if self.set.str_at(&["spec", "persistentVolumeClaimRetentionPolicy", "whenDeleted"]) == Some("Delete")
        {
            claim["metadata"]["ownerReferences"] = json!([owner_reference(self.set)]);
        }
        if let Some(claim) = claim.as_object_mut() {
            claim.remove("status");
        }
        Write::Create { resource: resources::claims(), object: claim }
    }

    fn status(&self) -> Value {
        let update = self.revisions.current.as_str();
        let has = |pod: &Value, revision: &str| is_active(pod) && pod.label(HASH) == Some(revision);
        let updated = count(self.pods, |pod| has(pod, update));
        let is_complete = updated == self.desired_replicas()
            && count(self.pods, |pod| has(pod, update) && is_ready(pod)) == self.desired_replicas()
            && self.pods.len() as i64 == self.desired_replicas();
        let current = if is_complete { update } else { self.current_revision() };
        let counts = [
            ("replicas", count(self.pods, is_active)),
            ("readyReplicas", count(self.pods, is_ready)),
            ("availableReplicas", count(self.pods, |pod| self.availability.has(pod))),
            ("currentReplicas", count(self.pods, |pod| has(pod, current))),
            ("updatedReplicas", updated),
        ];
        let mut status = status_of(self.set);
        for (field, count) in counts {
            match (field, count) {
                ("replicas" | "availableReplicas", count) => status.insert(field.into(), count.into()),
                (_, 0) => status.remove(field),
                (_, count) => status.insert(field.into(), count.into()),
            };
        }
        status.insert("observedGeneration".into(), self.set.generation().into());
        status.insert("currentRevision".into(), current.into());
        status.insert("updateRevision".into(), update.into());
        status.insert("collisionCount".into(), 0.into());
        status.into()
    }
}

/// Points a pod's volume at a claim, in place of a volume of that name in the template.
fn mount(pod: &mut Value, volume: &str, claim: &str) {
    let volumes = &mut pod["spec"]["volumes"];
    if !volumes.is_array() {
        *volumes = json!([]);
    }
    if let Some(volumes) = volumes.as_array_mut() {
        volumes.retain(|existing| existing["name"] != volume);
        volumes.push(json!({"name": volume, "persistentVolumeClaim": {"claimName": claim}}));
    }
}

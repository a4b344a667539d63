//! The smallest change that mends a cause, where one is known: what to write, where, or what to run.
//!
//! A repair is told only if facts of the repository or the cluster lead to it. Elsewhere the cause stands
//! alone.

mod order;
mod pods;
mod refusals;

use std::collections::{BTreeMap, BTreeSet};

use tiphys_apiserver::{ResourceId, Snapshot};
use tiphys_cause::Cause as Id;
use tiphys_graph::{App, AppId};
use tiphys_stage::{
    Still,
    causes::{Cause, Repair},
    mechanism::Mechanism,
    story::{Moment, Story, What},
};
use tiphys_value::{ObjectExt, ResourceKey, Value, json};
use tiphys_world::behaviour::Pods;

use super::{story_locations, text::object_name};
use crate::up::plan::Plan;

/// Pods of which the repository says that the network keeps something from them.
#[derive(Clone, Debug)]
pub(super) struct CutFlow {
    /// Which.
    pub pods: Pods,
    /// What is kept from them, and by which policies.
    pub mechanism: Mechanism,
    /// What would let it pass.
    pub repair: Option<Repair>,
}

/// What repairs are found from.
struct Ground<'a> {
    plan: &'a Plan,
    /// The cluster at the end.
    snapshot: Snapshot,
    /// What is in Git, by key, with the Application that brings it.
    rendered: BTreeMap<ResourceKey, (&'a Value, Option<AppId>)>,
    /// Where everything is written.
    places: BTreeMap<ResourceKey, String>,
}

/// Adds to each cause of a story what would mend it, and what cut-off flows tell of it.
pub(super) fn add(story: &mut Story, plan: &Plan, flows: &[CutFlow], end: &Still) {
    if story.causes.is_empty() {
        return;
    }
    let ground = Ground::new(plan, end.server().snapshot());
    for cause in &mut story.causes {
        match ground.flow(cause, flows) {
            Some(flow) => {
                cause.mechanism = Some(flow.mechanism.clone());
                cause.repair = flow.repair.clone();
            }
            // What is found beside the symptoms may bring its own.
            None => cause.repair = ground.repair(cause).or(cause.repair.take()),
        }
        if cause.mechanism.as_ref().is_some_and(|it| it.id == Id::NetCniDown) {
            cause.repair = gone_network(cause, &story.moments);
        }
    }
}

/// What was the network of pods, and went: a DaemonSet from Git, or what an operator had made one of.
fn gone_network(cause: &Cause, moments: &[Moment]) -> Option<Repair> {
    let named = cause.mechanism.iter().flat_map(|it| &it.objects);
    let named: BTreeSet<&ResourceKey> = named.filter(|key| key.kind == "DaemonSet").collect();
    let gone = moments.iter().find(|moment| {
        let is_meant = if named.is_empty() { moment.from_git } else { named.contains(&moment.object) };
        is_meant && moment.what == What::Deleted && moment.object.kind == "DaemonSet"
    })?;
    let from = gone.made_by.as_ref().unwrap_or(&gone.object);
    let text = format!("bring back {}: it is the network of pods", object_name(from));
    Some(Repair { text, ..Repair::default() })
}

impl<'a> Ground<'a> {
    fn new(plan: &'a Plan, snapshot: Snapshot) -> Self {
        let mut rendered = BTreeMap::new();
        for app in &plan.survey.apps {
            for id in &app.objects {
                let object = plan.survey.object(*id).value();
                rendered.insert(object.resource_key(), (object, Some(app.id)));
            }
        }
        for found in plan.roots.iter().chain(&plan.projects) {
            let key = found.object.resource_key();
            rendered.entry(key).or_insert((&found.object, None));
        }
        Self { plan, snapshot, rendered, places: story_locations::of_objects(plan) }
    }

    /// What the network keeps from the pods of a cause.
    fn flow<'f>(&self, cause: &Cause, flows: &'f [CutFlow]) -> Option<&'f CutFlow> {
        let id = cause.mechanism.as_ref()?.id;
        if !matches!(id, Id::RunExits | Id::RunReadiness | Id::ServiceMissing | Id::ExternalDown) {
            return None;
        }
        let pods: Vec<&Value> = cause.objects.iter().filter_map(|key| self.pod(key)).collect();
        let is_of = |flow: &&CutFlow| !pods.is_empty() && pods.iter().all(|pod| flow.pods.contains(pod));
        flows.iter().find(is_of)
    }

    fn repair(&self, cause: &Cause) -> Option<Repair> {
        let Some(mechanism) = &cause.mechanism else { return self.manual_sync(cause) };
        match mechanism.id {
            Id::ConfigMissing => self.missing(cause, mechanism),
            Id::ConfigKeyMissing => self.missing_key(cause, mechanism),
            Id::ImageUnauthorized | Id::ImageForbidden => self.credentials(cause),
            Id::ImageNotFound => self.withdrawn(cause),
            Id::RunCommand => self.repeated_program(cause),
            Id::ScheduleHostPort => self.host_port(cause),
            Id::ScheduleTaint => self.toleration(cause),
            Id::GitopsNamespace => self.namespace(cause, mechanism),
            Id::ApiCrdMissing => self.definition(cause),
            Id::GitopsSelfWait => self.self_wait(mechanism),
            Id::GitopsTwoOwners => self.two_owners(cause),
            Id::GitopsStillNeeded => self.still_needed(cause, mechanism),
            Id::GitopsPruneFight => self.tracking(),
            Id::AdmitWebhookDown => self.webhook(cause, mechanism),
            Id::AdmitTooLarge => self.too_large(cause),
            Id::AdmitImmutable => self.immutable(cause),
            Id::AdmitQuota => self.quota(cause, mechanism),
            Id::AdmitServiceAccount => self.service_account(mechanism),
            Id::DeleteFinalizer => self.finalizer(cause),
            Id::VolumeNoClass => self.storage_class(cause),
            Id::VolumeClaimMissing => self.claim(cause, mechanism),
            Id::RunReadiness | Id::RunLiveness => self.probed_port(cause),
            Id::ScaleBudget => self.budget(mechanism),
            Id::AdmitWebhookTls => self.authority(cause),
            Id::ApiRbac => self.missing_right(cause),
            Id::OperatorDown => self.idle_operator(mechanism),
            _ => None,
        }
    }

    /// All objects of a kind in the cluster at the end.
    fn live(&self, group: &str, plural: &str) -> impl Iterator<Item = &Value> {
        self.snapshot.list(&ResourceId::new(group, plural), None).map(|object| object.value())
    }

    fn pod(&self, key: &ResourceKey) -> Option<&Value> {
        self.live("", "pods").find(|pod| pod.namespace() == key.namespace && pod.name() == key.name)
    }

    /// The first pod of a cause.
    fn pod_of(&self, cause: &Cause) -> Option<&Value> {
        cause.objects.iter().filter(|key| key.kind == "Pod").find_map(|key| self.pod(key))
    }

    fn place(&self, key: &ResourceKey) -> Option<String> {
        self.places.get(key).cloned()
    }

    /// Where what a cause is about is written.
    fn place_of(&self, cause: &Cause) -> Option<String> {
        cause.places.first().cloned()
    }

    /// The Application of a cause, as an object, with its key.
    fn application(&self, cause: &Cause) -> Option<(ResourceKey, &Value)> {
        let id = cause.applications.first()?;
        let (namespace, name) = id.split_once('_').unwrap_or((crate::ENGINE_NAMESPACE, id));
        let is_it = |app: &&App| {
            let declared = &app.declared.value;
            app.name() == name && (declared.namespace().is_empty() || declared.namespace() == namespace)
        };
        let app = self.plan.survey.apps.iter().find(is_it)?;
        Some((app.declared.value.resource_key(), &app.declared.value))
    }
}

/// A patch as people write it.
fn yaml(value: &Value) -> Option<String> {
    Some(tiphys_yaml::to_yaml(value).trim_end().to_owned())
}

/// One more option in an annotation that lists them.
fn with_option(object: &Value, option: &str) -> Value {
    let options = object.annotation("argocd.argoproj.io/sync-options").unwrap_or_default();
    let all: Vec<&str> =
        options.split(',').map(str::trim).filter(|it| !it.is_empty()).chain([option]).collect();
    json!({"metadata": {"annotations": {"argocd.argoproj.io/sync-options": all.join(",")}}})
}

/// `--namespace NAMESPACE`, or nothing for what has none.
fn in_namespace(key: &ResourceKey) -> String {
    if key.namespace.is_empty() { String::new() } else { format!(" --namespace {}", key.namespace) }
}

//! What is not well at the end of a play though no Application shows it: settings that nobody takes up,
//! Services that lead nowhere, pods that would not start again, rights and ways that a change takes away.

mod closed_ways;
mod failed_hooks;
mod lost_configuration;
mod lost_network;
mod lost_rights;
mod service_targets;
mod stale_settings;

use std::collections::BTreeSet;

use tiphys_apiserver::{ResourceId, Snapshot};
use tiphys_cause::Cause as Id;
use tiphys_stage::{causes::Cause, mechanism::Mechanism, story::Story};
use tiphys_value::{Map, ObjectExt, ResourceKey, Value};

pub(super) use stale_settings::add_stale_readers;

use crate::up::plan::Plan;

/// What of the group `apps` has a template of pods.
const WORKLOADS: [&str; 3] = ["deployments", "statefulsets", "daemonsets"];

/// What a change breaks, from how all was before it and how it is after it.
pub(super) fn of_change(
    (before, end): (&Snapshot, &Snapshot),
    plans: Option<(&Plan, &Plan)>,
    story: &Story,
) -> Vec<Cause> {
    let mut all = service_targets::without_pods(story, before, end);
    all.extend(service_targets::without_ports(end, Some(before)));
    all.extend(failed_hooks::applications(story, Some(before), end));
    all.extend(lost_configuration::workloads_without(story, before, end));
    all.extend(lost_rights::moved_workloads(before, end));
    all.extend(lost_network::nodes_without(story, before, end));
    all.extend(plans.into_iter().flat_map(|(before, after)| closed_ways::flows(before, after)));
    all
}

/// What is broken in a cluster that was brought up.
pub(super) fn of_bring_up(end: &Snapshot, story: &Story) -> Vec<Cause> {
    let mut all = service_targets::without_ports(end, None);
    all.extend(failed_hooks::applications(story, None, end));
    all
}

/// Everything with a template of pods.
fn workloads(snapshot: &Snapshot) -> impl Iterator<Item = &Value> {
    WORKLOADS
        .iter()
        .flat_map(|plural| snapshot.list(&ResourceId::new("apps", *plural), None))
        .map(|object| object.value())
}

/// Whether any pod of a workload is asked for.
fn is_asked_for(workload: &Value) -> bool {
    workload.int_at(&["spec", "replicas"]) != Some(0) && !workload.is_terminating()
}

/// The same workload in another state of the cluster.
fn same_in<'a>(snapshot: &'a Snapshot, workload: &Value) -> Option<&'a Value> {
    let key = workload.resource_key();
    workloads(snapshot).find(|other| other.resource_key() == key)
}

/// Whether labels are as a selector wants them. One that wants nothing selects nothing.
fn is_selected(selector: &Map<String, Value>, labels: Option<&Value>) -> bool {
    !selector.is_empty()
        && selector.iter().all(|(name, value)| labels.and_then(|labels| labels.get(name)) == Some(value))
}

/// A cause that no symptom shows, of an object from Git.
fn hidden_cause(object: ResourceKey, mechanism: Mechanism, text: String, state: &str) -> Cause {
    let sources = BTreeSet::from([object.clone()]);
    Cause { sources, ..Cause::of_object(object, Some(mechanism), text, state) }
}

/// Whether a story tells of an object with one of these causes already.
fn is_told(story: &Story, ids: &[Id], object: &ResourceKey) -> bool {
    let mechanisms = story.causes.iter().filter_map(|cause| cause.mechanism.as_ref());
    mechanisms.into_iter().any(|it| ids.contains(&it.id) && it.objects.contains(object))
}

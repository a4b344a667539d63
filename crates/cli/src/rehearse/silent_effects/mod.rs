//! What is not well at the end of a play though no Application shows it: settings that nobody takes up,
//! Services that lead nowhere, pods that would not start again, rights and ways that a change takes away.

mod closed_ways;
mod failed_hooks;
mod hidden_cause;
mod lost_calls;
mod lost_configuration;
mod lost_network;
mod lost_rights;
mod next_pods;
mod policies;
mod route_certificates;
mod route_targets;
mod service_targets;
mod stale_settings;
mod two_networks;
mod workloads;

use tiphys_apiserver::Snapshot;
use tiphys_stage::{causes::Cause, story::Story};

pub(super) use next_pods::refused_workloads;
pub(super) use stale_settings::add_stale_readers;

use crate::up::plan::Plan;

/// What a change breaks, from how all was before it and how it is after it.
pub(super) fn of_change(
    (before, end): (&Snapshot, &Snapshot),
    (was, plan): (Option<&Plan>, &Plan),
    story: &Story,
) -> Vec<Cause> {
    let mut all = service_targets::without_pods(story, before, end);
    all.extend(service_targets::without_ports(end, Some(before)));
    all.extend(service_targets::without_listeners(end, Some(before)));
    all.extend(failed_hooks::applications(story, Some(before), end));
    all.extend(lost_calls::callers(story, before, end));
    all.extend(lost_configuration::workloads_without(story, before, end));
    all.extend(lost_rights::moved_workloads(before, end));
    all.extend(lost_rights::bereft_workloads(before, end));
    all.extend(lost_network::nodes_without(story, before, end));
    all.extend(was.into_iter().flat_map(|was| closed_ways::flows(was, plan)));
    all.extend(route_targets::without_backend(end, Some(before), plan));
    all.extend(route_certificates::without_secret(end, Some(before)));
    all.extend(two_networks::on_one_node(end, Some(before)));
    all.extend(policies::refused(end, was, plan));
    all
}

/// What is broken in a cluster that was brought up.
pub(super) fn of_bring_up(end: &Snapshot, plan: &Plan, story: &Story) -> Vec<Cause> {
    let mut all = service_targets::without_ports(end, None);
    all.extend(service_targets::without_listeners(end, None));
    all.extend(route_targets::without_backend(end, None, plan));
    all.extend(route_certificates::without_secret(end, None));
    all.extend(two_networks::on_one_node(end, None));
    all.extend(policies::refused(end, None, plan));
    all.extend(failed_hooks::applications(story, None, end));
    all
}

//! The causes, one file for each family: what proves it, and what it is mistaken for.

pub(crate) mod admission;
mod admission_unsaid;
pub(crate) mod api;
mod autoscalers;
pub(crate) mod budget;
pub(crate) mod callers;
pub(crate) mod closed_ways;
pub(crate) mod config;
pub(crate) mod config_unsaid;
pub(crate) mod containers;
pub(crate) mod control_plane;
pub(crate) mod deletion;
pub(crate) mod dns;
mod experiments;
pub(crate) mod gitops;
pub(crate) mod image;
pub(crate) mod ingress;
pub(crate) mod ingress_routes;
pub(crate) mod mesh;
pub(crate) mod mesh_routes;
pub(crate) mod node;
pub(crate) mod operator;
pub(crate) mod pod_network;
mod pod_rules;
pub(crate) mod resting;
pub(crate) mod scale;
pub(crate) mod scheduling;
pub(crate) mod service;
mod startup_taints;
mod unnamed_taints;
pub(crate) mod volume;
mod volume_unsaid;

use crate::{finding::Finding, search_context::Look};

/// One search.
type Search = for<'a> fn(&Look<'a>) -> Vec<Finding>;

/// The searches, from the machines up.
const SEARCHES: &[Search] = &[
    node::find,
    control_plane::find,
    pod_network::find,
    dns::find,
    experiments::find,
    api::find,
    scheduling::find,
    volume::find,
    volume_unsaid::find,
    admission::find,
    admission_unsaid::find,
    image::find,
    config::find,
    config_unsaid::find,
    containers::find,
    service::find,
    callers::find,
    mesh_routes::find,
    ingress::find,
    ingress_routes::find,
    scale::find,
    budget::find,
    operator::find,
    deletion::find,
    gitops::find,
];

/// Everything that is found.
pub(crate) fn findings(look: &Look<'_>) -> Vec<Finding> {
    SEARCHES.iter().flat_map(|search| search(look)).collect()
}

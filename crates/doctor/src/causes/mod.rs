//! The causes, one file for each family: what proves it, and what it is mistaken for.

pub(crate) mod admit;
pub(crate) mod api;
pub(crate) mod callers;
pub(crate) mod config;
pub(crate) mod control;
pub(crate) mod delete;
pub(crate) mod dns;
pub(crate) mod edge;
pub(crate) mod gitops;
pub(crate) mod image;
pub(crate) mod mesh;
pub(crate) mod net;
pub(crate) mod node;
pub(crate) mod operator;
pub(crate) mod run;
pub(crate) mod scale;
pub(crate) mod schedule;
pub(crate) mod service;
pub(crate) mod volume;

use crate::{finding::Finding, look::Look};

/// One search.
type Search = for<'a> fn(&Look<'a>) -> Vec<Finding>;

/// The searches, from the machines up.
const SEARCHES: &[Search] = &[
    node::find,
    control::find,
    net::find,
    dns::find,
    api::find,
    schedule::find,
    volume::find,
    admit::find,
    image::find,
    config::find,
    run::find,
    service::find,
    callers::find,
    mesh::find,
    edge::find,
    scale::find,
    operator::find,
    delete::find,
    gitops::find,
];

/// Everything that is found.
pub(crate) fn findings(look: &Look<'_>) -> Vec<Finding> {
    SEARCHES.iter().flat_map(|search| search(look)).collect()
}

//! The engine on the embedded cluster under virtual time, and where an API server alone suffices on a real
//! one.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    dead_code,
    reason = "tests; not every helper is used by each state of them"
)]

mod advisories;
mod agreement;
mod application_sets;
mod cleanup;
mod clusters;
mod comparison;
mod crash_recovery;
mod definitions;
mod deletion;
mod environment_failures;
mod generated_graphs;
mod git_hosts;
mod identity;
mod incidents;
mod limits;
mod operations;
mod real_api_server;
mod replicas;
mod stage;
mod sync_options;

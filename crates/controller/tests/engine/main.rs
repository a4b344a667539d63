//! The engine on the embedded cluster under virtual time, and where an API server alone suffices on a real one.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    dead_code,
    reason = "tests; not every helper is used by each state of them"
)]

mod advisories;
mod agreement;
mod cleanup;
mod clusters;
mod comparison;
mod definitions;
mod deletion;
mod generated_graphs;
mod git_hosts;
mod identity;
mod incidents;
mod crash_recovery;
mod limits;
mod operations;
mod sync_options;
mod real_api_server;
mod application_sets;
mod stage;
mod environment_failures;

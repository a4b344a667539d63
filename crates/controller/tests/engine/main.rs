//! The engine on the embedded cluster under virtual time, and where an API server alone suffices on a real one.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    dead_code,
    reason = "tests; not every helper is used by each state of them"
)]

mod advisories;
mod agreement;
mod clear;
mod clusters;
mod comparing;
mod definitions;
mod deletion;
mod graphs;
mod hosts;
mod identity;
mod incidents;
mod kills;
mod limits;
mod operations;
mod options;
mod real;
mod sets;
mod stage;
mod trouble;

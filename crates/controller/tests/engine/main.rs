//! The engine on the embedded cluster, under virtual time.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    dead_code,
    reason = "tests; not every helper is used by each state of them"
)]

mod clusters;
mod comparing;
mod deletion;
mod incidents;
mod operations;
mod sets;
mod stage;

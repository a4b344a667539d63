//! `cargo xtask bench <suite>`: Tiphys beside its peer in one run. One file per suite.

mod apiserver;
mod check;
mod doctor;
mod embedded_server;
mod engine;
mod helm;
mod kustomize;
mod load;
mod paired_runs;
mod rehearse;
mod up;
mod world;

use clap::Subcommand;

pub(crate) use paired_runs::{Measured, call, publish, ratio, sample, table, take_turns, take_turns_ending};

/// What to measure.
#[derive(Subcommand)]
pub(crate) enum Suite {
    /// Creates, gets and patches a second, in process, over HTTPS and beside the real server.
    Apiserver(apiserver::Args),
    /// A repository of 60 Applications and 400 files.
    Check(check::Args),
    /// Saved states and a live cluster of 5,000 pods.
    Doctor(doctor::Args),
    /// Thousands of Applications to Synced, a commit, and an engine at rest.
    Engine(engine::Args),
    /// Charts of 1 and 40 templates, and real ones.
    Helm(helm::Args),
    /// Overlays of 1, 100 and 1,000 objects.
    Kustomize(kustomize::Args),
    /// Rehearsals of 20 and 124 Applications, of a change, and of single faults.
    Rehearse(rehearse::Args),
    /// The example platform from start to green.
    Up(up::Args),
    /// A day of virtual time, and forks.
    World(world::Args),
}

/// Runs a suite.
///
/// # Errors
/// A program is missing or fails.
pub(crate) fn run(suite: &Suite) -> anyhow::Result<()> {
    match suite {
        Suite::Apiserver(args) => apiserver::run(args),
        Suite::Check(args) => check::run(args),
        Suite::Doctor(args) => doctor::run(args),
        Suite::Engine(args) => engine::run(args),
        Suite::Helm(args) => helm::run(args),
        Suite::Kustomize(args) => kustomize::run(args),
        Suite::Rehearse(args) => rehearse::run(args),
        Suite::Up(args) => up::run(args),
        Suite::World(args) => world::run(args),
    }
}

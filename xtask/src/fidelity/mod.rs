//! Comparing with the real tools on many inputs.

mod compare;
mod helm;
mod kustomize;
mod origins;
mod report;

use clap::Subcommand;

/// What to compare.
#[derive(Subcommand)]
pub(crate) enum Suite {
    /// Whether the fields of rendered charts name what made them.
    Origins(origins::Args),
    /// Every chart below a folder, with default values and with each of its ci/*-values.yaml.
    Helm(helm::Args),
    /// Every folder with a kustomization below a folder.
    Kustomize(kustomize::Args),
}

/// Runs a suite.
///
/// # Errors
/// The suite could not run; differences are no error.
pub(crate) fn run(suite: &Suite) -> anyhow::Result<()> {
    match suite {
        Suite::Helm(args) => helm::run(args),
        Suite::Origins(args) => origins::run(args),
        Suite::Kustomize(args) => kustomize::run(args),
    }
}

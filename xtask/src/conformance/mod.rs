//! `cargo xtask conformance`: the embedded cluster beside the real API server, and under the official tests.
//! Each suite writes its section of `docs/conformance.md`.

mod api_client;
mod compare;
mod controllers;
mod corpus;
mod edits;
mod generate;
mod invalid;
mod managers;
mod manifests;
mod official;
mod random;
mod report;
mod requests;
mod twin;

use clap::Subcommand;

/// What to run.
#[derive(Subcommand)]
pub(crate) enum Suite {
    /// The same requests to both servers, written by hand and generated.
    Requests(requests::Args),
    /// Objects that break one rule each, refused by both servers alike.
    Invalid(invalid::Args),
    /// Sequences of steps on a real control plane, whose controllers and scheduler answer.
    Controllers(controllers::Args),
    /// The official end-to-end tests of the API machinery and of kubectl.
    Official(official::Args),
}

/// Runs a suite.
///
/// # Errors
/// A program is missing, or a server does not start; differences are no error.
pub(crate) fn run(suite: &Suite) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    match suite {
        Suite::Requests(args) => runtime.block_on(requests::run(args)),
        Suite::Invalid(args) => runtime.block_on(invalid::run(args)),
        Suite::Controllers(args) => runtime.block_on(controllers::run(args)),
        Suite::Official(args) => runtime.block_on(official::run(args)),
    }
}

//! `tiphys render`: what a source renders to, without a cluster.

use clap::Subcommand;

use super::render_kustomize;

/// What to render.
#[derive(Debug, Subcommand)]
pub enum Render {
    /// Print what `kustomize build` prints.
    Kustomize(render_kustomize::Args),
}

/// Renders and prints.
///
/// # Errors
/// Those of the renderer, and of writing stdout.
pub fn run(render: Render) -> anyhow::Result<()> {
    match render {
        Render::Kustomize(args) => render_kustomize::run(&args),
    }
}

//! `tiphys render`: what a source renders to, without a cluster.

use clap::Subcommand;

use super::{render_app, render_helm, render_kustomize};

/// What to render.
#[derive(Debug, Subcommand)]
pub(crate) enum Render {
    /// Print what `helm template` prints.
    Helm(Box<render_helm::Args>),
    /// Print what `kustomize build` prints.
    Kustomize(render_kustomize::Args),
    /// Print the objects that an Application wants, as the engine would apply them.
    App(render_app::Args),
}

/// Renders and prints.
///
/// # Errors
/// Those of the renderer, and of writing stdout.
pub(crate) fn run(render: Render) -> anyhow::Result<()> {
    match render {
        Render::Helm(args) => render_helm::run(&args),
        Render::Kustomize(args) => render_kustomize::run(&args),
        Render::App(args) => render_app::run(&args),
    }
}

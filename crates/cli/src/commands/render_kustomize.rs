//! `tiphys render kustomize DIR`.

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context, bail};
use clap::ValueEnum;
use tiphys_kustomize::{BuildOptions, LoadRestrictor};
use tiphys_render::HelmCharts;
use tiphys_vfs::DiskTree;

/// Which kustomization, and how.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Folder with a kustomization file.
    #[arg(default_value = ".")]
    dir: PathBuf,
    /// Which files a kustomization may name: those below its own folder, or any.
    #[arg(long, value_enum, default_value_t = Restrictor::RootOnly)]
    load_restrictor: Restrictor,
    /// Render `helmCharts`, by the built-in renderer; charts that are not in the tree are fetched.
    #[arg(long)]
    enable_helm: bool,
    /// Fetch nothing: remote bases and files are errors, and charts that were not fetched before.
    #[arg(long)]
    offline: bool,
    /// Write to this file instead of stdout.
    #[arg(long, short)]
    output: Option<PathBuf>,
}

/// `--load-restrictor`, in this command's spelling and in kustomize's.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Restrictor {
    #[value(alias = "LoadRestrictionsRootOnly")]
    RootOnly,
    #[value(alias = "LoadRestrictionsNone")]
    None,
}

/// Builds and prints.
///
/// # Errors
/// With kustomize's text, the place of the fault and advice.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let fetcher = crate::fetch::fetcher(args.offline);
    let options = BuildOptions {
        load_restrictor: match args.load_restrictor {
            Restrictor::RootOnly => LoadRestrictor::RootOnly,
            Restrictor::None => LoadRestrictor::None,
        },
        display_root: "/".to_owned(),
        enable_helm: args.enable_helm,
        chart_inflator: Some(Arc::new(HelmCharts)),
        function_runner: fetcher.functions().map(|functions| functions as _),
        remote_loader: Some(fetcher),
        ..BuildOptions::default()
    };
    let dir = args.dir.canonicalize().with_context(|| format!("cannot open {}", args.dir.display()))?;
    // Bases may lie anywhere above the folder, so the tree is the whole disk; what may be read of it
    // is the load restrictor's business.
    let tree = DiskTree::open("/")?;
    let dir = dir.to_str().context("the folder's path is not UTF-8")?.trim_start_matches('/');
    let mut warnings = Vec::new();
    let build = tiphys_kustomize::build_with_warnings(&tree, dir, &options, &mut warnings);
    for warning in warnings {
        eprintln!("{}", warning.replace(&here(), ""));
    }
    let build = match build {
        Ok(build) => build,
        Err(error) => bail!("{}", explain(&error, &here())),
    };
    write(args.output.as_deref(), build.to_yaml().as_bytes())?;
    // The process ends here: nobody needs the memory of every node back.
    std::mem::forget(build);
    Ok(())
}

/// The folder in which the program runs, as a path of the tree that is the whole disk: places below it are shown
/// without it.
fn here() -> String {
    let here = std::env::current_dir().unwrap_or_default();
    format!("{}/", here.to_string_lossy().trim_matches('/'))
}

fn explain(error: &tiphys_kustomize::Error, here: &str) -> String {
    let mut text = error.to_string();
    if let Some(location) = error.location() {
        let _ = write!(text, "\n  --> {}", location.to_string().replacen(here, "", 1));
    }
    for advice in error.advice() {
        let _ = write!(text, "\n  = help: {}", advice.replace(here, ""));
    }
    text
}

fn write(output: Option<&Path>, bytes: &[u8]) -> anyhow::Result<()> {
    match output {
        Some(file) => std::fs::write(file, bytes).with_context(|| format!("cannot write {}", file.display())),
        None => Ok(crate::output::write(bytes)?),
    }
}

//! `tiphys render kustomize DIR`.

use std::{
    fmt::Write as _,
    io::ErrorKind,
    path::{Component, Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context, anyhow, bail};
use clap::ValueEnum;
use tiphys_kustomize::{BuildOptions, LoadRestrictor, RemoteLoader, Reorder, RepoUrl};
use tiphys_render::HelmCharts;
use tiphys_vfs::{ConfinedTree, DiskTree, FileTree};

use super::render_helm::reach;

/// Which kustomization, and how. Of a flag that is given twice the last counts.
#[derive(Debug, clap::Args)]
#[command(args_override_self = true)]
pub(crate) struct Args {
    /// Folder with a kustomization file, or the address of one in a Git repository
    /// (`https://host/org/repo//folder?ref=v1`).
    #[arg(default_value = ".")]
    dir: PathBuf,
    /// Which files a kustomization may name: those below its own folder, or any.
    #[arg(long, value_enum, default_value_t = Restrictor::RootOnly)]
    load_restrictor: Restrictor,
    /// Render `helmCharts`, by the built-in renderer; charts that are not in the tree are fetched.
    #[arg(long)]
    enable_helm: bool,
    /// Kubernetes version for `.Capabilities.KubeVersion` of charts.
    #[arg(long, value_name = "VERSION")]
    helm_kube_version: Option<String>,
    /// Further API versions for `.Capabilities.APIVersions` of charts.
    #[arg(long, value_name = "VERSION")]
    helm_api_versions: Vec<String>,
    /// Fetch nothing: remote bases and files are errors, and charts that were not fetched before.
    #[arg(long)]
    offline: bool,
    /// Write to this file instead of stdout.
    #[arg(long, short)]
    output: Option<String>,
    /// Order of the objects where the kustomization has no `sortOptions`; kustomize advises to write these
    /// instead.
    #[arg(long, value_enum, hide = true)]
    reorder: Option<Order>,
    /// Label every object with `app.kubernetes.io/managed-by`; kustomize advises to write `buildMetadata`
    /// instead.
    #[arg(long, hide = true)]
    enable_managedby_label: bool,
    #[command(flatten)]
    idle: Idle,
}

/// Flags of `kustomize build` that change nothing here: charts are rendered without another program, and
/// which functions run, and how, says --allow-function alone.
#[derive(Debug, clap::Args)]
struct Idle {
    #[arg(long, hide = true)]
    as_current_user: bool,
    #[arg(long, hide = true)]
    enable_alpha_plugins: bool,
    #[arg(long, hide = true)]
    enable_exec: bool,
    #[arg(long, short, hide = true)]
    env: Vec<String>,
    #[arg(long, hide = true)]
    helm_command: Option<String>,
    #[arg(long, hide = true)]
    helm_debug: bool,
    #[arg(long, hide = true)]
    mount: Vec<String>,
    #[arg(long, hide = true)]
    network: bool,
    #[arg(long, hide = true)]
    network_name: Option<String>,
    #[arg(long, hide = true)]
    stack_trace: bool,
}

impl Idle {
    /// Refuses what functions would be given.
    fn check(&self) -> anyhow::Result<()> {
        let told = [
            (!self.env.is_empty(), "--env"),
            (!self.mount.is_empty(), "--mount"),
            (self.network, "--network"),
        ];
        match told.into_iter().find(|(given, _)| *given) {
            Some((_, flag)) => bail!(
                "{flag} is not supported: a function that --allow-function allows gets its input and nothing else"
            ),
            None => Ok(()),
        }
    }
}

/// `--load-restrictor`, in this command's spelling and in kustomize's.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Restrictor {
    #[value(alias = "LoadRestrictionsRootOnly")]
    RootOnly,
    #[value(alias = "LoadRestrictionsNone")]
    None,
}

/// `--reorder`.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Order {
    Legacy,
    None,
}

/// Builds and prints.
///
/// # Errors
/// With kustomize's text, the place of the fault and advice.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    args.idle.check()?;
    if args.reorder.is_some() {
        eprintln!(
            "Flag --reorder has been deprecated, use the new 'sortOptions' field in kustomization.yaml instead."
        );
    }
    if args.enable_managedby_label {
        eprintln!(
            "Flag --enable-managedby-label has been deprecated, The flag `enable-managedby-label` has been deprecated. Use the `managedByLabel` option in the `buildMetadata` field instead."
        );
    }
    let given = args.dir.to_str().and_then(RepoUrl::parse);
    // A repository that is named here may be a folder of this machine; one that a kustomization names may
    // not.
    let fetcher = match &given {
        Some(url) => crate::fetch::fetcher_for(&url.clone_url(), args.offline),
        None => crate::fetch::fetcher(args.offline),
    };
    let mut options = BuildOptions {
        load_restrictor: match args.load_restrictor {
            Restrictor::RootOnly => LoadRestrictor::RootOnly,
            Restrictor::None => LoadRestrictor::None,
        },
        reorder: match args.reorder {
            Some(Order::None) => Reorder::None,
            Some(Order::Legacy) | None => Reorder::Legacy,
        },
        managed_by_label: args.enable_managedby_label,
        display_root: "/".to_owned(),
        enable_helm: args.enable_helm,
        helm_kube_version: args.helm_kube_version.clone(),
        helm_api_versions: args.helm_api_versions.clone(),
        chart_inflator: Some(Arc::new(HelmCharts)),
        function_runner: fetcher.functions().map(|functions| functions as _),
        remote_loader: Some(fetcher.clone()),
        ..BuildOptions::default()
    };
    let (tree, dir) = match given {
        Some(url) => {
            options.display_root = url.clone_url();
            options.load_restrictor = LoadRestrictor::RootOnly;
            (RemoteLoader::repository(&*fetcher, &url)?, url.folder)
        }
        None => on_disk(&args.dir, args.load_restrictor)?,
    };
    let mut warnings = Vec::new();
    let build = tiphys_kustomize::build_with_warnings(&*tree, &dir, &options, &mut warnings);
    for warning in warnings {
        eprintln!("{}", warning.replace(&working_folder(), ""));
    }
    let build = match build {
        Ok(build) => build,
        Err(error) => bail!("{}", explain(&error, &working_folder())),
    };
    // An empty name counts as none given.
    let output = args.output.as_deref().filter(|file| !file.is_empty());
    write(output.map(Path::new), build.to_yaml().as_bytes())?;
    Ok(())
}

/// A folder of this machine. Its paths are those of the whole disk, and bases lie in its repository; only who
/// trusts the kustomization with all files lets it leave that.
fn on_disk(dir: &Path, restrictor: Restrictor) -> anyhow::Result<(Arc<dyn FileTree>, String)> {
    let dir = resolve(dir)?;
    let tree: Arc<dyn FileTree> = match restrictor {
        Restrictor::RootOnly => Arc::new(ConfinedTree::open(reach(&dir))?),
        Restrictor::None => Arc::new(DiskTree::open("/")?),
    };
    let dir = dir.to_str().context("the folder's path is not UTF-8")?.trim_start_matches('/');
    Ok((tree, dir.to_owned()))
}

/// The folder to build without links; what is not there is told in kustomize's words.
fn resolve(dir: &Path) -> anyhow::Result<PathBuf> {
    dir.canonicalize().map_err(|error| {
        let cause = match error.kind() {
            ErrorKind::NotFound => {
                format!("lstat {}: no such file or directory", first_missing(dir).display())
            }
            ErrorKind::NotADirectory => "not a directory".to_owned(),
            _ => error.to_string(),
        };
        let shown = dir.display();
        anyhow!("must build at directory: not a valid directory: evalsymlink failure on '{shown}' : {cause}")
    })
}

/// The first step of a path that leads nowhere, as an absolute path.
fn first_missing(path: &Path) -> PathBuf {
    let mut at = std::env::current_dir().unwrap_or_default();
    for step in path.components() {
        match step {
            Component::CurDir => {}
            Component::ParentDir => {
                at.pop();
            }
            step => at.push(step),
        }
        match at.canonicalize() {
            Ok(there) => at = there,
            // A link that is there and leads nowhere: what it names is missing.
            Err(_) => {
                return match at.read_link() {
                    Ok(target) => at.parent().map_or_else(|| target.clone(), |folder| folder.join(&target)),
                    Err(_) => at,
                };
            }
        }
    }
    at
}

/// The folder in which the program runs, as a path of the tree that is the whole disk: places below it are
/// shown without it.
fn working_folder() -> String {
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
        None => Ok(crate::output::write_manifests(bytes)?),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn a_folder_that_is_not_there_is_told_as_kustomize_tells_it() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::write(root.join("file"), "").unwrap();
        std::os::unix::fs::symlink("nowhere", root.join("link")).unwrap();
        let there = root.display();
        for (given, cause) in [
            ("absent", format!("lstat {there}/absent: no such file or directory")),
            ("absent/below", format!("lstat {there}/absent: no such file or directory")),
            ("link", format!("lstat {there}/nowhere: no such file or directory")),
            ("file/below", "not a directory".to_owned()),
        ] {
            let want = format!(
                "must build at directory: not a valid directory: evalsymlink failure on '{there}/{given}' : {cause}"
            );
            assert_eq!(resolve(&root.join(given)).unwrap_err().to_string(), want);
        }
        assert_eq!(resolve(&root).unwrap(), root);
    }
}

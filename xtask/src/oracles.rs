//! `cargo xtask oracles`: brings the pinned real programs to this machine.

use std::{fs, path::Path, process::Command};

use anyhow::{Context, bail};
use tiphys_oracles::{Install, Oracle};

/// Which oracles to install.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only these; all of them if none is named.
    names: Vec<String>,
    /// Say what is there and what is missing, and install nothing.
    #[arg(long)]
    list: bool,
}

/// Installs what is missing; prints a line per oracle. Running it again does nothing.
///
/// # Errors
/// An unknown name, or at least one oracle that could not be installed (the rest are tried).
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let known = tiphys_oracles::all();
    if let Some(name) = args.names.iter().find(|name| known.iter().all(|oracle| oracle.name != **name)) {
        bail!("no oracle is called {name:?}; known: {}", names(&known));
    }
    let mut missing = Vec::new();
    for oracle in known.iter().filter(|o| args.names.is_empty() || args.names.contains(&o.name)) {
        let state = match oracle.is_installed() {
            true => format!("{}", oracle.path().display()),
            false if args.list => "missing".to_owned(),
            false => match install(oracle) {
                Ok(()) => format!("{} (installed now)", oracle.path().display()),
                Err(error) => {
                    missing.push(oracle.clone());
                    format!("missing: {error:#}")
                }
            },
        };
        println!("{:<16} {:<10} {state}", oracle.name, oracle.version);
    }
    if missing.is_empty() { Ok(()) } else { bail!("could not install: {}", names(&missing)) }
}

fn names(oracles: &[Oracle]) -> String {
    oracles.iter().map(|oracle| oracle.name.as_str()).collect::<Vec<_>>().join(", ")
}

fn install(oracle: &Oracle) -> anyhow::Result<()> {
    let path = oracle.path();
    match &oracle.install {
        Install::System { package } => {
            bail!("install the operating system's package {package} (Debian: apt-get install {package})")
        }
        Install::GoInstall { go_install, ldflags } => {
            let dir = path.parent().context("an oracle has a folder")?;
            fs::create_dir_all(dir)?;
            let package = format!("{go_install}@{}", oracle.version);
            run_go(Path::new("."), &["install", "-ldflags", ldflags, &package], Some(dir))
        }
        Install::GoBuild { go_build, package, ldflags } => {
            let module = workspace_root().join(go_build);
            // Built beside its place and moved, so that an interrupted build leaves nothing half done.
            let partial = path.with_extension("partial");
            run_go(
                &module,
                &["build", "-ldflags", ldflags, "-o", &partial.to_string_lossy(), package],
                None,
            )?;
            fs::rename(&partial, &path).with_context(|| format!("cannot move {}", partial.display()))
        }
    }
}

fn run_go(dir: &Path, args: &[&str], bin: Option<&Path>) -> anyhow::Result<()> {
    let mut go = Command::new("go");
    go.current_dir(dir).args(args).env("GOFLAGS", "-buildvcs=false");
    if let Some(bin) = bin {
        go.env("GOBIN", bin);
    }
    let output = go.output().context("cannot run `go`: install Go 1.26 or newer")?;
    if output.status.success() {
        return Ok(());
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    let tail: Vec<_> = stderr.lines().rev().take(5).collect();
    bail!("`go {}` failed: {}", args.join(" "), tail.into_iter().rev().collect::<Vec<_>>().join(" | "))
}

/// The folder of the workspace.
pub(crate) fn workspace_root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the workspace")
}

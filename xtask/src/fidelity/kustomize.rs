//! `cargo xtask fidelity kustomize DIR`.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use anyhow::Context;
use tiphys_kustomize::{BuildOptions, build};
use tiphys_vfs::DiskTree;

use super::{
    compare,
    report::{Outcome, Report},
};

/// Options of the suite.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Folders with kustomizations; each is the root beyond which nothing is read.
    #[arg(required = true)]
    dirs: Vec<PathBuf>,
    /// Cases at a time.
    #[arg(long, default_value_t = 2)]
    jobs: usize,
    /// Only cases whose name contains this.
    #[arg(long)]
    filter: Option<String>,
    /// Folder in which to keep what the real kustomize printed; to be emptied when inputs change.
    #[arg(long)]
    cache: Option<PathBuf>,
}

/// A folder with a kustomization.
struct Case {
    name: String,
    root: PathBuf,
    dir: String,
}

/// What the real program printed.
struct Printed {
    ok: bool,
    stdout: String,
    stderr: String,
}

/// Stack of the threads that build, in bytes.
const STACK: usize = 64 << 20;

/// An address at which nothing answers, so that remote bases fail at once.
const NO_PROXY: &str = "http://127.0.0.1:9";

/// Runs the suite.
///
/// # Errors
/// The real kustomize is not installed, or a folder cannot be read.
pub(super) fn run(args: &Args) -> anyhow::Result<()> {
    let kustomize = tiphys_oracles::find("kustomize")?;
    let mut cases = Vec::new();
    for dir in &args.dirs {
        let root = dir.canonicalize().with_context(|| dir.display().to_string())?;
        find(&root, &root, &mut cases)?;
    }
    if let Some(filter) = &args.filter {
        cases.retain(|case| case.name.contains(filter.as_str()));
    }
    if let Some(cache) = &args.cache {
        fs::create_dir_all(cache)?;
    }
    let (report, remote) = (Mutex::new(Report::default()), AtomicUsize::new(0));
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..args.jobs.max(1) {
            let work = || {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    match compare(case, &kustomize, args.cache.as_deref()) {
                        Some(outcome) => {
                            report
                                .lock()
                                .expect("no thread panics with the lock")
                                .add(case.name.clone(), outcome);
                        }
                        None => drop(remote.fetch_add(1, Ordering::Relaxed)),
                    }
                }
            };
            let spawned = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work);
            spawned.expect("the system has threads");
        }
    });
    report.into_inner().expect("no thread panics with the lock").print();
    println!("{:6} left out: they need the network", remote.into_inner());
    Ok(())
}

fn find(root: &Path, dir: &Path, cases: &mut Vec<Case>) -> anyhow::Result<()> {
    if tiphys_kustomize::FILE_NAMES.iter().any(|file| dir.join(file).is_file()) {
        let below = dir.strip_prefix(root)?.display().to_string();
        let name = format!("{}/{below}", root.file_name().unwrap_or_default().to_string_lossy());
        cases.push(Case { name, root: root.to_owned(), dir: below });
    }
    let mut below: Vec<PathBuf> = fs::read_dir(dir)?.flatten().map(|entry| entry.path()).collect();
    below.sort();
    for path in
        below.into_iter().filter(|path| path.is_dir() && !path.is_symlink() && !path.ends_with(".git"))
    {
        find(root, &path, cases)?;
    }
    Ok(())
}

/// Compares one case; `None` if it needs the network.
fn compare(case: &Case, kustomize: &Path, cache: Option<&Path>) -> Option<Outcome> {
    let real = match cached(case, kustomize, cache) {
        Ok(real) => real,
        Err(error) => {
            return Some(Outcome::Different {
                cause: "kustomize could not run".to_owned(),
                first: error.to_string(),
            });
        }
    };
    let failure = first_error(&real.stderr);
    let network = ["dial tcp", "proxyconnect", "git fetch", "failed to run", "Could not resolve"];
    if !real.ok && network.iter().any(|text| real.stderr.contains(text)) {
        return None;
    }
    let ours =
        std::panic::catch_unwind(|| build_ours(case)).unwrap_or_else(|_| Err("a panic of ours".to_owned()));
    Some(match (ours, real.ok) {
        (Ok(ours), true) => compare::outputs(&ours, &real.stdout, || None),
        (Err(ours), false) => {
            let line = ours.lines().next().unwrap_or_default();
            compare::failures(&without_addresses(line), &without_addresses(failure))
        }
        (Err(ours), true) => {
            Outcome::Different { cause: "only ours fails".to_owned(), first: format!("  ours: {ours}") }
        }
        (Ok(_), false) => Outcome::Different {
            cause: "only kustomize fails".to_owned(),
            first: format!("  real: {failure}"),
        },
    })
}

fn build_ours(case: &Case) -> Result<String, String> {
    let tree = DiskTree::open(&case.root).map_err(|error| error.to_string())?;
    let options = BuildOptions { display_root: case.root.display().to_string(), ..BuildOptions::default() };
    build(&tree, &case.dir, &options).map(|build| build.to_yaml()).map_err(|error| error.to_string())
}

/// Go prints pointers of a generator in one error; they differ from run to run.
fn without_addresses(line: &str) -> String {
    match line.split_once("&{").and_then(|(head, rest)| Some((head, rest.split_once('}')?.1))) {
        Some((head, tail)) => format!("{head}&{{}}{tail}"),
        None => line.to_owned(),
    }
}

/// The first line of the error on standard error; warnings stand before it.
fn first_error(stderr: &str) -> &str {
    stderr.lines().find_map(|line| line.strip_prefix("Error: ")).unwrap_or(stderr)
}

fn cached(case: &Case, kustomize: &Path, cache: Option<&Path>) -> anyhow::Result<Printed> {
    let Some(cache) = cache else { return real(case, kustomize) };
    let file = cache.join(format!("{}.json", case.name.replace('/', "+")));
    if let Ok(text) = fs::read(&file) {
        let (ok, stdout, stderr) = serde_json::from_slice(&text)?;
        return Ok(Printed { ok, stdout, stderr });
    }
    let printed = real(case, kustomize)?;
    fs::write(&file, serde_json::to_vec(&(printed.ok, &printed.stdout, &printed.stderr))?)?;
    Ok(printed)
}

fn real(case: &Case, kustomize: &Path) -> anyhow::Result<Printed> {
    let mut command = Command::new(kustomize);
    command.arg("build").arg(case.root.join(&case.dir));
    command.env("HTTPS_PROXY", NO_PROXY).env("HTTP_PROXY", NO_PROXY).env("GIT_TERMINAL_PROMPT", "0");
    let output = command.output()?;
    Ok(Printed {
        ok: output.status.success(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    })
}

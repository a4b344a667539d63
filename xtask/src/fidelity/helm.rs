//! `cargo xtask fidelity helm DIR`.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use anyhow::Context;
use tiphys_helm::{Chart, Compat, RenderOptions, ValuesSource, template};
use tiphys_vfs::DiskTree;

use super::{
    compare,
    report::{Outcome, Report},
};

/// Options of the suite.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Folders with charts.
    #[arg(required = true)]
    dirs: Vec<PathBuf>,
    /// Cases at a time.
    #[arg(long, default_value_t = 2)]
    jobs: usize,
    /// Compare with Helm 3 instead of 4.
    #[arg(long)]
    helm3: bool,
    /// Only cases whose name contains this.
    #[arg(long)]
    filter: Option<String>,
    /// Folder in which to keep what the real helm printed; it must be emptied when charts change.
    #[arg(long)]
    cache: Option<PathBuf>,
}

/// A chart with one set of values.
#[derive(Clone, Debug)]
struct Case {
    name: String,
    chart: PathBuf,
    values: Option<PathBuf>,
}

/// What a program printed.
struct Printed {
    ok: bool,
    stdout: String,
    stderr: String,
}

/// Stack of the threads that render, in bytes.
const STACK: usize = 64 << 20;

struct Suite<'a> {
    args: &'a Args,
    helm: PathBuf,
    compat: Compat,
}

/// Runs the suite.
///
/// # Errors
/// The real helm is not installed, or a folder cannot be read.
pub(super) fn run(args: &Args) -> anyhow::Result<()> {
    let (oracle, compat) = if args.helm3 { ("helm3", Compat::Helm3) } else { ("helm", Compat::Helm4) };
    let helm = tiphys_oracles::find(oracle)?;
    let mut cases = Vec::new();
    for dir in &args.dirs {
        let dir = dir.canonicalize().with_context(|| dir.display().to_string())?;
        find_charts(&dir, &dir, &mut cases)?;
    }
    if let Some(filter) = &args.filter {
        cases.retain(|case| case.name.contains(filter.as_str()));
    }
    if let Some(cache) = &args.cache {
        fs::create_dir_all(cache)?;
    }
    let suite = Suite { args, helm, compat };
    let report = Mutex::new(Report::default());
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..args.jobs.max(1) {
            let work = || {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let outcome = suite.compare(case);
                    report.lock().expect("no thread panics with the lock").add(case.name.clone(), outcome);
                }
            };
            let spawned = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work);
            spawned.expect("the system has threads");
        }
    });
    report.into_inner().expect("no thread panics with the lock").print();
    Ok(())
}

/// Every chart that is no subchart of another.
fn find_charts(root: &Path, dir: &Path, cases: &mut Vec<Case>) -> anyhow::Result<()> {
    if dir.join("Chart.yaml").is_file() {
        let name = format!(
            "{}/{}",
            root.file_name().unwrap_or_default().to_string_lossy(),
            dir.strip_prefix(root)?.display()
        );
        cases.push(Case { name: name.clone(), chart: dir.to_owned(), values: None });
        let mut files: Vec<PathBuf> =
            fs::read_dir(dir.join("ci")).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
        files.sort();
        for file in files.into_iter().filter(|file| file.to_string_lossy().ends_with("values.yaml")) {
            let name = format!("{name} ci/{}", file.file_name().unwrap_or_default().to_string_lossy());
            cases.push(Case { name, chart: dir.to_owned(), values: Some(file) });
        }
        return Ok(());
    }
    let mut below: Vec<PathBuf> = fs::read_dir(dir)?.flatten().map(|entry| entry.path()).collect();
    below.sort();
    for path in below.into_iter().filter(|path| path.is_dir() && !path.is_symlink()) {
        find_charts(root, &path, cases)?;
    }
    Ok(())
}

impl Suite<'_> {
    fn compare(&self, case: &Case) -> Outcome {
        let real = match self.cached(case) {
            Ok(real) => real,
            Err(error) => {
                return Outcome::Different {
                    cause: "helm could not run".to_owned(),
                    first: error.to_string(),
                };
            }
        };
        let ours = std::panic::catch_unwind(|| self.render_ours(case))
            .unwrap_or_else(|_| Err("a panic of ours".to_owned()));
        match (ours, real.ok) {
            (Ok(ours), true) => compare::outputs(&ours, &real.stdout, || Some(self.real(case).ok()?.stdout)),
            (Err(ours), false) => compare::failures(&ours, error_of(&real.stderr)),
            (Err(ours), true) => Outcome::Different {
                cause: format!("only ours fails: {}", cause_of(&ours)),
                first: format!("  ours: {ours}"),
            },
            (Ok(_), false) => Outcome::Different {
                cause: format!("only helm fails: {}", cause_of(error_of(&real.stderr))),
                first: format!("  real: {}", error_of(&real.stderr)),
            },
        }
    }

    fn render_ours(&self, case: &Case) -> Result<String, String> {
        let tree = DiskTree::open(&case.chart).map_err(|error| error.to_string())?;
        let chart = Chart::load_as(&tree, "", self.compat).map_err(|error| error.to_string())?;
        let mut values = Vec::new();
        if let Some(file) = &case.values {
            let bytes = fs::read(file).map_err(|error| error.to_string())?;
            values.push(ValuesSource::File(file.display().to_string(), Arc::from(bytes)));
        }
        let options = RenderOptions {
            release_name: "release-name".to_owned(),
            namespace: "default".to_owned(),
            values,
            compat: self.compat,
            kube_version: self.args.helm3.then(|| "1.34.0".to_owned()),
            ..RenderOptions::default()
        };
        template(&chart, &options).map(|output| output.stdout).map_err(|error| error.to_string())
    }

    fn cached(&self, case: &Case) -> anyhow::Result<Printed> {
        let Some(cache) = &self.args.cache else { return self.real(case) };
        let file = cache.join(format!(
            "{}{}.json",
            case.name.replace(['/', ' '], "+"),
            if self.args.helm3 { "+3" } else { "" }
        ));
        if let Ok(text) = fs::read(&file) {
            let (ok, stdout, stderr) = serde_json::from_slice(&text)?;
            return Ok(Printed { ok, stdout, stderr });
        }
        let real = self.real(case)?;
        fs::write(&file, serde_json::to_vec(&(real.ok, &real.stdout, &real.stderr))?)?;
        Ok(real)
    }

    fn real(&self, case: &Case) -> anyhow::Result<Printed> {
        let mut command = Command::new(&self.helm);
        command.args(["template", "release-name"]).arg(&case.chart);
        if let Some(file) = &case.values {
            command.arg("-f").arg(file);
        }
        if self.args.helm3 {
            command.args(["--kube-version", "1.34.0"]);
        }
        let output = command.env_remove("KUBECONFIG").output()?;
        Ok(Printed {
            ok: output.status.success(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        })
    }
}

/// What stands behind `Error: ` on standard error.
fn error_of(stderr: &str) -> &str {
    const ERROR: &str = "Error: ";
    match stderr.strip_prefix(ERROR) {
        Some(text) => text,
        None => stderr.split_once("\nError: ").map_or(stderr, |(_, text)| text),
    }
}

/// The first line of an error, with what is particular to a chart left out.
fn cause_of(error: &str) -> String {
    let is_hint = |line: &&str| !line.is_empty() && !line.starts_with("Use --debug");
    let line = error.lines().rev().find(is_hint).unwrap_or_default();
    let line = line.rsplit(": ").next().unwrap_or(line);
    line.chars().take(80).collect()
}

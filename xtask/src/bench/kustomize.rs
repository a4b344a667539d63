//! `cargo xtask bench kustomize`: overlays of 1, 100 and 1,000 Deployments.

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    time::Instant,
};

use anyhow::Context;
use tiphys_kustomize::{BuildOptions, build};
use tiphys_vfs::DiskTree;

use super::{call, publish, ratio, table, take_turns};

/// Options of the suite.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The binary to measure, built with `cargo build --release -p tiphys-cli`.
    #[arg(long, default_value = "target/release/tiphys")]
    tiphys: PathBuf,
    /// Counted runs of the small overlays; the large one runs a third as often.
    #[arg(long, default_value_t = 9)]
    runs: usize,
}

const REPORT: &str = "docs/benchmarks/kustomize.md";

/// Overlays built in one process.
const MANY: usize = 300;

/// Measures and writes the report.
///
/// # Errors
/// A program is missing or fails, the report cannot be written.
pub(super) fn run(args: &Args) -> anyhow::Result<()> {
    let kustomize = tiphys_oracles::find("kustomize")?;
    let tiphys = args.tiphys.canonicalize().with_context(|| args.tiphys.display().to_string())?;
    let folder = tempfile::tempdir()?;
    let mut report = String::from(
        "# Kustomize\n\nMade by `cargo xtask bench kustomize`. Whole processes in turn, medians. Each overlay sets \
         namespace, name prefix, labels with selectors, one image and a patch for every tenth object.\n",
    );
    for (objects, runs) in [(1, args.runs), (100, args.runs), (1000, (args.runs / 3).max(1))] {
        let dir = folder.path().join(objects.to_string());
        write_overlay(&dir, objects)?;
        let overlay = dir.join("overlay");
        let ours = || call(&tiphys, &["render", "kustomize"], &overlay);
        let real = || call(&kustomize, &["build"], &overlay);
        let measured = take_turns(runs, &[("tiphys", &ours), ("kustomize", &real)])?;
        write!(report, "\n## {objects} objects\n\n{}", table(&measured))?;
        if objects == 1 {
            let each = one_process(&dir)?;
            writeln!(
                report,
                "\n{MANY} such overlays in one process{}: {:.3} ms each; `kustomize build` takes {:.0} times that.",
                if cfg!(debug_assertions) { " (not optimised)" } else { "" },
                each * 1e3,
                ratio(measured[1].wall(), each)
            )?;
        }
    }
    publish(REPORT, &report)
}

/// Seconds for one overlay, when many are built in one process.
fn one_process(dir: &Path) -> anyhow::Result<f64> {
    let tree = DiskTree::open(dir)?;
    let start = Instant::now();
    for _ in 0..MANY {
        build(&tree, "overlay", &BuildOptions::default())?;
    }
    Ok(start.elapsed().as_secs_f64() / MANY as f64)
}

/// Writes an overlay of so many Deployments over a base.
///
/// # Errors
/// It cannot be written.
fn write_overlay(dir: &Path, objects: usize) -> anyhow::Result<()> {
    let (base, overlay) = (dir.join("base"), dir.join("overlay"));
    fs::create_dir_all(&base)?;
    fs::create_dir_all(&overlay)?;
    let manifests: Vec<String> = (0..objects).map(deployment).collect();
    fs::write(base.join("all.yaml"), manifests.join("---\n"))?;
    fs::write(
        base.join("kustomization.yaml"),
        "resources:\n- all.yaml\nconfigMapGenerator:\n- name: settings\n  literals: [level=1]\n",
    )?;
    let mut kustomization = String::from(
        "resources:\n- ../base\nnamespace: production\nnamePrefix: eu-\nlabels:\n- pairs: {team: carts}\n  \
         includeSelectors: true\nimages:\n- name: registry.example.com/app\n  newTag: v2\npatches:\n",
    );
    (0..objects).step_by(10).for_each(|number| kustomization.push_str(&patch(number)));
    Ok(fs::write(overlay.join("kustomization.yaml"), kustomization)?)
}

fn deployment(number: usize) -> String {
    format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: app-{number}\nspec:\n  replicas: 2\n  \
         selector:\n    matchLabels:\n      app: app-{number}\n  template:\n    metadata:\n      labels:\n        \
         app: app-{number}\n    spec:\n      containers:\n      - name: main\n        image: \
         registry.example.com/app:{number}\n        ports:\n        - containerPort: 8080\n        env:\n        - \
         name: LEVEL\n          valueFrom:\n            configMapKeyRef:\n              name: settings\n              \
         key: level\n"
    )
}

fn patch(number: usize) -> String {
    format!(
        "- patch: |-\n    apiVersion: apps/v1\n    kind: Deployment\n    metadata:\n      name: app-{number}\n    \
         spec:\n      replicas: 3\n      template:\n        spec:\n          containers:\n          - name: main\n            \
         resources:\n              limits:\n                memory: 64Mi\n"
    )
}

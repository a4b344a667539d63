//! `cargo xtask bench rehearse`: rehearsals of made repositories as whole processes, against the budgets.

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, ensure};

use super::{Measured, publish, take_turns};

/// Options of the suite.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The binary to measure, built with `cargo build --release`.
    #[arg(long, default_value = "target/release/tiphys")]
    tiphys: PathBuf,
    /// Counted runs.
    #[arg(long, default_value_t = 3)]
    runs: usize,
}

const REPORT: &str = "docs/benchmarks/rehearse.md";

/// What is measured: what it is, and how many seconds it may take.
const BUDGETS: [(&str, f64); 6] = [
    ("20 Applications, 500 objects, all waits", 2.0),
    ("124 Applications, 800 objects", 10.0),
    ("`--diff` that touches one of the 124", 3.0),
    ("`--explore 30` on it", 60.0),
    ("the 124 with a fault, to 24 h of virtual time", 10.0),
    ("90 replicas for which nodes have to join", 2.0),
];
/// How many bytes any of them may take.
const MEMORY: f64 = 500.0 * 1_048_576.0;

/// Measures and writes the report.
///
/// # Errors
/// The program is missing or fails, the report cannot be written.
pub(super) fn run(args: &Args) -> anyhow::Result<()> {
    let tiphys = args.tiphys.canonicalize().with_context(|| args.tiphys.display().to_string())?;
    let folder = tempfile::tempdir()?;
    let [small, large, full] = ["small", "large", "full"].map(|name| folder.path().join(name));
    // 23 ConfigMaps, a Deployment and a Service in each of 20: 500 objects.
    write_repository(&small, 20, 23)?;
    // Four or five ConfigMaps, a Deployment and a Service in each of 124: 800 objects.
    write_repository(&large, 124, 4)?;
    commit_and_edit(&large)?;
    write_crowd(&full)?;
    let rehearse = |repository: &Path, arguments: &[&str]| {
        let mut command = Command::new(&tiphys);
        command.arg("rehearse").arg(repository).arg("--offline").args(arguments);
        command
    };
    let commands: [&dyn Fn() -> Command; 6] = [
        &|| rehearse(&small, &[]),
        &|| rehearse(&large, &[]),
        &|| rehearse(&large, &["--diff", "HEAD"]),
        &|| rehearse(&large, &["--diff", "HEAD", "--explore", "30"]),
        &|| rehearse(&large, &["--fault", "api:429@23h50m+5m", "--until", "24h"]),
        &|| rehearse(&full, &[]),
    ];
    let named: Vec<(&str, &dyn Fn() -> Command)> =
        BUDGETS.iter().zip(commands).map(|((name, _), command)| (*name, command)).collect();
    let measured = take_turns(args.runs, &named)?;
    publish(REPORT, &report(&measured)?)
}

fn report(measured: &[Measured]) -> anyhow::Result<String> {
    let mut report = String::from(
        "# Rehearsals\n\nMade by `cargo xtask bench rehearse`. Whole processes from the command to its end, medians; nothing is kept between\nruns. The same cluster brought up for real takes minutes.\n\n\
         | what | wall s | budget s | peak MiB | budget MiB | |\n|---|--:|--:|--:|--:|---|\n",
    );
    for (one, (_, seconds)) in measured.iter().zip(BUDGETS) {
        let is_met = one.wall() <= seconds && one.memory() <= MEMORY;
        writeln!(
            report,
            "| {} | {:.2} | {seconds:.0} | {:.0} | {:.0} | {} |",
            one.name,
            one.wall(),
            one.memory() / f64::from(1 << 20),
            MEMORY / f64::from(1 << 20),
            if is_met { "met" } else { "missed" }
        )?;
    }
    Ok(report)
}

/// An Application of Applications in ten waves, each with a Deployment, a Service and some ConfigMaps.
fn write_repository(root: &Path, applications: usize, config_maps: usize) -> anyhow::Result<()> {
    let write = |path: String, text: String| -> anyhow::Result<()> {
        let path = root.join(path);
        fs::create_dir_all(path.parent().context("a file lies in a folder")?)?;
        Ok(fs::write(path, text)?)
    };
    write("root.yaml".into(), application("root", "apps", 0))?;
    write("argocd-cm.yaml".into(), HEALTH.to_owned())?;
    for index in 1..applications {
        let name = format!("service-{index:03}");
        write(
            format!("apps/{name}.yaml"),
            application(&name, &format!("services/{name}"), index * 10 / applications),
        )?;
        let mut text = workload(&name);
        for number in 0..config_maps {
            write!(
                text,
                "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}-{number}}}\ndata: {{colour: blue}}\n"
            )?;
        }
        write(format!("services/{name}/all.yaml"), text)?;
    }
    Ok(())
}

/// One Application with more pods than three nodes have room for.
fn write_crowd(root: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(root.join("crowd"))?;
    fs::write(root.join("root.yaml"), application("crowd", "crowd", 0))?;
    let text = workload("crowd").replace("replicas: 2", "replicas: 90");
    let text = text.replace("ports: [{containerPort: 8080}]", "resources: {requests: {cpu: 2}}");
    Ok(fs::write(root.join("crowd/all.yaml"), text)?)
}

/// Parents wait for the health of their Applications.
const HEALTH: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: argocd-cm, namespace: argocd}\ndata:\n  \
    resource.customizations.health.argoproj.io_Application: |\n    hs = {status = \"Progressing\"}\n    \
    if obj.status ~= nil and obj.status.health ~= nil then hs.status = obj.status.health.status end\n    return hs\n";

fn application(name: &str, path: &str, wave: usize) -> String {
    format!(
        "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata:\n  name: {name}\n  namespace: argocd\n  annotations: {{argocd.argoproj.io/sync-wave: \"{wave}\"}}\n\
         spec:\n  project: default\n  source: {{repoURL: https://git.example.com/shop/platform.git, targetRevision: main, path: {path}}}\n  \
         destination: {{server: https://kubernetes.default.svc, namespace: {name}}}\n  \
         syncPolicy: {{automated: {{prune: true, selfHeal: true}}, syncOptions: [CreateNamespace=true]}}\n"
    )
}

fn workload(name: &str) -> String {
    format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: {name}}}\nspec:\n  replicas: 2\n  selector: {{matchLabels: {{app: {name}}}}}\n  template:\n    \
         metadata: {{labels: {{app: {name}}}}}\n    spec:\n      containers:\n      - {{name: web, image: 'registry.example.com/{name}:1', ports: [{{containerPort: 8080}}]}}\n\
         ---\napiVersion: v1\nkind: Service\nmetadata: {{name: {name}}}\nspec: {{selector: {{app: {name}}}, ports: [{{port: 80, targetPort: 8080}}]}}\n"
    )
}

/// Commits everything, then changes the image of one Application.
fn commit_and_edit(root: &Path) -> anyhow::Result<()> {
    let git = |arguments: &[&str]| -> anyhow::Result<()> {
        let identity =
            ["-c", "user.name=bench", "-c", "user.email=bench@example.com", "-c", "commit.gpgsign=false"];
        let status = Command::new("git").args(identity).args(arguments).current_dir(root).status()?;
        ensure!(status.success(), "git {arguments:?} ended with {status}");
        Ok(())
    };
    git(&["init", "-q", "-b", "main"])?;
    git(&["add", "-A"])?;
    git(&["commit", "-q", "-m", "all"])?;
    let file = root.join("services/service-060/all.yaml");
    let text = fs::read_to_string(&file)?;
    Ok(fs::write(file, text.replace("service-060:1'", "service-060:2'"))?)
}

//! `cargo xtask bench check`: a repository of 60 Applications and about 400 files, whole processes.

use std::{
    fmt::Write as _,
    fs,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::Context;

use super::{publish, table, take_turns};

/// Options of the suite.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The binary to measure, built with `cargo build --release`.
    #[arg(long, default_value = "target/release/tiphys")]
    tiphys: PathBuf,
    /// The peer; it is left out if it is not installed.
    #[arg(long, default_value = "kubeconform")]
    kubeconform: PathBuf,
    /// Counted runs.
    #[arg(long, default_value_t = 9)]
    runs: usize,
}

const REPORT: &str = "docs/benchmarks/check.md";
const APPLICATIONS: usize = 60;

/// Measures and writes the report.
///
/// # Errors
/// The program is missing or fails, the report cannot be written.
pub(super) fn run(args: &Args) -> anyhow::Result<()> {
    let tiphys = args.tiphys.canonicalize().with_context(|| args.tiphys.display().to_string())?;
    let folder = tempfile::tempdir()?;
    let files = write_repository(folder.path())?;
    let check = || {
        let mut command = Command::new(&tiphys);
        // Findings would end the run with 1; this one is about time.
        command.args(["check", "--offline", "--baseline"]).arg(folder.path().join("known.json"));
        command.arg(folder.path().join("repository"));
        command
    };
    write_baseline(&tiphys, folder.path())?;
    // Without a schema to be had it only reads every manifest file: it does not render, nor follow
    // Applications.
    let parse = || {
        let mut command = Command::new(&args.kubeconform);
        command.args(["-ignore-missing-schemas", "-schema-location", "/nonexistent", "-n", "2"]);
        command
            .args(["-ignore-filename-pattern", "charts/.*|kustomization.yaml"])
            .arg(folder.path().join("repository"));
        command
    };
    let with_peer = Command::new(&args.kubeconform).arg("-v").output().is_ok();
    let mut commands: Vec<(&str, &dyn Fn() -> Command)> = vec![("tiphys check", &check)];
    if with_peer {
        commands.push(("kubeconform without schemas", &parse));
    }
    let measured = take_turns(args.runs, &commands)?;
    let mut report = format!(
        "# Checking a repository\n\nMade by `cargo xtask bench check`. Whole processes, medians; {APPLICATIONS} Applications \
         (a third each of plain manifests, kustomizations and charts), {files} files, all rules. Budget: 300 ms.\n\n{}",
        table(&measured)
    );
    if with_peer {
        writeln!(
            report,
            "\nkubeconform has no schemas here and so only parses the manifest files that lie there; it renders nothing."
        )?;
    } else {
        writeln!(report, "\nskipped: needs kubeconform")?;
    }
    let mut again = rounds(&tiphys, folder.path(), args.runs)?;
    again.sort_by(f64::total_cmp);
    writeln!(
        report,
        "\n`--watch`, from an edit to the end of what is printed, which waits 5 ms for the editor: {:.0} ms ({:.0} to {:.0}). Budget: 50 ms.",
        again[again.len() / 2],
        again[0],
        again[again.len() - 1]
    )?;
    publish(REPORT, &report)
}

/// How many milliseconds pass from an edit until `--watch` has printed what it finds.
fn rounds(tiphys: &Path, folder: &Path, runs: usize) -> anyhow::Result<Vec<f64>> {
    let mut command = Command::new(tiphys);
    command
        .args(["check", "--offline", "--watch", "--output", "json", "--baseline"])
        .arg(folder.join("known.json"));
    command.arg(folder.join("repository")).stdout(Stdio::piped());
    let mut process = command.spawn().context("cannot run tiphys check --watch")?;
    let mut lines = BufReader::new(process.stdout.take().context("it has an output")?).lines();
    // Each round is one object, whose closing brace stands alone.
    let mut round = || -> anyhow::Result<()> {
        for line in lines.by_ref() {
            if line? == "}" {
                return Ok(());
            }
        }
        anyhow::bail!("tiphys check --watch ended")
    };
    round()?;
    let mut took = Vec::new();
    for edit in 0..runs {
        std::thread::sleep(Duration::from_millis(300));
        let text = config("service-00").replace("blue", &format!("blue-{edit}"));
        let start = Instant::now();
        fs::write(folder.join("repository/plain/service-00/config.yaml"), text)?;
        round()?;
        took.push(start.elapsed().as_secs_f64() * 1_000.0);
    }
    process.kill()?;
    process.wait()?;
    Ok(took)
}

fn write_baseline(tiphys: &Path, folder: &Path) -> anyhow::Result<()> {
    let mut command = Command::new(tiphys);
    command.args(["check", "--offline", "--write-baseline", "--baseline"]).arg(folder.join("known.json"));
    command.arg(folder.join("repository")).output().context("cannot run tiphys check")?;
    Ok(())
}

/// Writes the repository; returns how many files it has.
fn write_repository(folder: &Path) -> anyhow::Result<usize> {
    let root = folder.join("repository");
    let mut files = 0;
    let mut write = |path: String, text: &str| -> anyhow::Result<()> {
        let path = root.join(path);
        fs::create_dir_all(path.parent().context("a file lies in a folder")?)?;
        fs::write(path, text)?;
        files += 1;
        Ok(())
    };
    write("root.yaml".into(), &application("root", "apps", -5))?;
    for index in 0..APPLICATIONS {
        let name = format!("service-{index:02}");
        let kind = ["plain", "overlays", "charts"][index % 3];
        write(format!("apps/{name}.yaml"), &application(&name, &format!("{kind}/{name}"), index as i64 / 6))?;
        let at = |file: &str| format!("{kind}/{name}/{file}");
        match kind {
            "plain" => {
                write(at("deployment.yaml"), &deployment(&name))?;
                write(at("service.yaml"), &service(&name))?;
                write(at("config.yaml"), &config(&name))?;
                write(at("account.yaml"), &account(&name))?;
                write(at("policy.yaml"), &policy(&name))?;
            }
            "overlays" => {
                write(at("base/deployment.yaml"), &deployment(&name))?;
                write(at("base/service.yaml"), &service(&name))?;
                write(at("base/account.yaml"), &account(&name))?;
                write(
                    at("base/kustomization.yaml"),
                    "resources: [deployment.yaml, service.yaml, account.yaml]\n",
                )?;
                write(at("patch.yaml"), &patch(&name))?;
                let overlay = "resources: [base]\nnamespace: shop\nlabels: [{pairs: {team: shop}}]\npatches: [{path: patch.yaml}]\n\
                    configMapGenerator: [{name: settings, literals: [colour=blue]}]\n";
                write(at("kustomization.yaml"), overlay)?;
            }
            _ => {
                write(at("Chart.yaml"), &format!("apiVersion: v2\nname: {name}\nversion: 1.0.0\n"))?;
                write(
                    at("values.yaml"),
                    "replicas: 2\nimage: {repository: example/web, tag: v1}\nport: 8080\n",
                )?;
                let chart = |text: String| {
                    text.replace(&name, "{{ .Release.Name }}")
                        .replace("replicas: 2", "replicas: {{ .Values.replicas }}")
                };
                write(at("templates/deployment.yaml"), &chart(deployment(&name)))?;
                write(at("templates/service.yaml"), &chart(service(&name)))?;
                write(at("templates/account.yaml"), &chart(account(&name)))?;
                write(at("templates/config.yaml"), &chart(config(&name)))?;
            }
        }
    }
    Ok(files)
}

fn application(name: &str, path: &str, wave: i64) -> String {
    format!(
        "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata:\n  name: {name}\n  namespace: argocd\n  annotations:\n    \
         argocd.argoproj.io/sync-wave: \"{wave}\"\nspec:\n  project: default\n  source:\n    repoURL: https://git.example.com/shop/platform.git\n    \
         targetRevision: main\n    path: {path}\n  destination:\n    server: https://kubernetes.default.svc\n    namespace: shop\n  \
         syncPolicy:\n    automated: {{prune: true, selfHeal: true}}\n    syncOptions: [CreateNamespace=true, ServerSideApply=true]\n"
    )
}

fn deployment(name: &str) -> String {
    format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: {name}\nspec:\n  replicas: 2\n  selector:\n    matchLabels: {{app: {name}}}\n  \
         template:\n    metadata:\n      labels: {{app: {name}}}\n    spec:\n      serviceAccountName: {name}\n      containers:\n        - name: web\n          \
         image: example/web:v1\n          ports: [{{name: http, containerPort: 8080}}]\n          readinessProbe: {{httpGet: {{path: /, port: http}}}}\n          \
         resources: {{requests: {{cpu: 10m, memory: 32Mi}}}}\n"
    )
}

fn service(name: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Service\nmetadata:\n  name: {name}\nspec:\n  selector: {{app: {name}}}\n  ports: [{{name: http, port: 80, targetPort: http}}]\n"
    )
}

fn config(name: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\ndata:\n  colour: blue\n")
}

fn account(name: &str) -> String {
    format!("apiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: {name}\n")
}

fn policy(name: &str) -> String {
    format!(
        "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata:\n  name: {name}\nspec:\n  podSelector: {{matchLabels: {{app: {name}}}}}\n  \
         policyTypes: [Ingress]\n  ingress: [{{from: [{{podSelector: {{}}}}]}}]\n"
    )
}

fn patch(name: &str) -> String {
    format!("apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: {name}\nspec:\n  replicas: 3\n")
}

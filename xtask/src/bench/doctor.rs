//! `cargo xtask bench doctor`: diagnoses of saved states and of a live cluster as whole processes, against the budgets.

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context, ensure};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};

use super::{embedded_server::EmbeddedServer, publish, sample, take_turns_ending};
use crate::{https, oracles::workspace_root};

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

const REPORT: &str = "docs/benchmarks/doctor.md";
/// Saved states with one fault each, which are the tests of the crate.
const CASES: &str = "crates/doctor/tests/cases";
/// Exit codes of a diagnosis: nothing wrong, and causes found.
const DIAGNOSED: [i32; 2] = [0, 1];
/// Deployments of the saved state, each with seven objects beside it: 5,000 objects.
const SAVED: usize = 625;
/// Deployments of the live cluster, each with three pods: 5,000 pods.
const LIVE: usize = 1_667;
const REPLICAS: usize = 3;
const NODES: usize = 100;

/// What is measured, its figure, its budget, and their unit.
struct Row {
    what: &'static str,
    figure: f64,
    budget: f64,
    unit: &'static str,
}

/// Measures and writes the report.
///
/// # Errors
/// The program is missing or fails, the report cannot be written.
pub(super) fn run(args: &Args) -> anyhow::Result<()> {
    let tiphys = args.tiphys.canonicalize().with_context(|| args.tiphys.display().to_string())?;
    let folder = tempfile::tempdir()?;
    let mut rows = saved(&tiphys, folder.path(), args.runs)?;
    rows.extend(ordinary(&tiphys)?);
    rows.extend(live(&tiphys, folder.path(), args.runs)?);
    publish(REPORT, &report(&rows)?)
}

fn report(rows: &[Row]) -> anyhow::Result<String> {
    let mut report = format!(
        "# Diagnoses\n\nMade by `cargo xtask bench doctor`. Whole processes, medians of the runs; the ordinary cases are the {} saved\n\
         states in `{CASES}`, each once. In the large states a ConfigMap is missing.\n\n\
         | what | measured | budget | |\n|---|--:|--:|---|\n",
        cases()?.len()
    );
    for Row { what, figure, budget, unit } in rows {
        let is_met = if figure <= budget { "met" } else { "missed" };
        let decimals = usize::from(*unit == "s") * 2;
        writeln!(report, "| {what} | {figure:.decimals$} {unit} | {budget:.0} {unit} | {is_met} |")?;
    }
    Ok(report)
}

/// A saved state of 5,000 objects, with and without the proof of the remedy.
fn saved(tiphys: &Path, folder: &Path, runs: usize) -> anyhow::Result<Vec<Row>> {
    let file = folder.join("saved.json");
    fs::write(&file, serde_json::to_vec(&state(SAVED))?)?;
    let doctor = |options: &[&str]| {
        let mut command = Command::new(tiphys);
        command.args(["doctor", "--output", "json", "--from"]).arg(&file).args(options);
        command
    };
    let measured = take_turns_ending(
        runs,
        &DIAGNOSED,
        &[("without", &|| doctor(&["--no-prove"])), ("with", &|| doctor(&[]))],
    )?;
    let [without, with] = &measured[..] else { unreachable!("two commands were measured") };
    Ok(vec![
        Row { what: "5,000 objects, without proof", figure: without.wall(), budget: 1.0, unit: "s" },
        Row { what: "the same, with proof", figure: with.wall(), budget: 5.0, unit: "s" },
    ])
}

/// The folders of the saved states.
fn cases() -> anyhow::Result<Vec<PathBuf>> {
    let folder = workspace_root().join(CASES);
    let entries = fs::read_dir(&folder)?.collect::<Result<Vec<_>, _>>()?;
    Ok(entries.into_iter().map(|entry| entry.path().join("dump")).filter(|dump| dump.is_dir()).collect())
}

/// The slowest but one in twenty of the ordinary cases.
fn ordinary(tiphys: &Path) -> anyhow::Result<Vec<Row>> {
    let mut seconds = Vec::new();
    for case in cases()? {
        let mut command = Command::new(tiphys);
        command.args(["doctor", "--output", "json", "--from"]).arg(&case);
        seconds.push(sample(command, &DIAGNOSED)?.wall.as_secs_f64());
    }
    seconds.sort_by(f64::total_cmp);
    let slow = seconds.get(seconds.len() * 95 / 100).context("there are cases")?;
    Ok(vec![Row { what: "ordinary cases, 95 of 100 are faster", figure: *slow, budget: 2.0, unit: "s" }])
}

/// A live cluster of 5,000 pods over HTTPS.
fn live(tiphys: &Path, folder: &Path, runs: usize) -> anyhow::Result<Vec<Row>> {
    let (file, kubeconfig) = (folder.join("live.json"), folder.join("kubeconfig"));
    fs::write(&file, serde_json::to_vec(&state(LIVE))?)?;
    let mut twin = Command::new(tiphys);
    twin.arg("twin").arg("--from").arg(&file).arg("--kubeconfig").arg(&kubeconfig);
    let server = EmbeddedServer::start(twin, &kubeconfig)?;
    let before = requests(&server)?;
    let doctor = || {
        let mut command = Command::new(tiphys);
        command.args(["doctor", "--output", "json", "--kubeconfig"]).arg(&kubeconfig);
        command
    };
    let measured = take_turns_ending(runs, &DIAGNOSED, &[("live", &doctor)])?;
    // One run is not counted, and so is one question for the counts.
    let sent = (requests(&server)? - before - 1) / (runs + 1);
    let [live] = &measured[..] else { unreachable!("one command was measured") };
    Ok(vec![
        Row { what: "live, 5,000 pods over HTTPS", figure: live.wall(), budget: 15.0, unit: "s" },
        Row { what: "its requests", figure: sent as f64, budget: 400.0, unit: "requests" },
        Row { what: "its memory", figure: live.memory() / 1e6, budget: 300.0, unit: "MB" },
    ])
}

/// How many requests a server has answered.
fn requests(server: &EmbeddedServer) -> anyhow::Result<usize> {
    let runtime = tokio::runtime::Runtime::new()?;
    let text = runtime.block_on(async {
        let mut connection = https::connect(server.address.parse()?).await?;
        let request = http::Request::get("/metrics")
            .header("host", &server.address)
            .header("authorization", format!("Bearer {}", server.token))
            .body(Full::new(Bytes::new()))?;
        let response =
            tokio::time::timeout(Duration::from_secs(30), connection.send_request(request)).await??;
        ensure!(response.status().is_success(), "/metrics answers {}", response.status());
        anyhow::Ok(String::from_utf8(response.into_body().collect().await?.to_bytes().to_vec())?)
    })?;
    let counts = text.lines().filter(|line| line.starts_with("apiserver_request_total{"));
    let counts = counts.filter_map(|line| line.rsplit(' ').next()?.parse::<usize>().ok());
    Ok(counts.sum())
}

/// A list of what a cluster of so many Deployments has, in which the first one's ConfigMap is missing.
fn state(deployments: usize) -> Value {
    let mut items: Vec<Value> = (0..NODES).map(node).collect();
    let namespaces = deployments.div_ceil(25);
    items.extend((0..namespaces).map(|at| {
        json!({"apiVersion": "v1", "kind": "Namespace",
        "metadata": metadata("Namespace", "", &format!("team-{at:03}"), None), "status": {"phase": "Active"}})
    }));
    for at in 0..deployments {
        workload(&mut items, &format!("team-{:03}", at / 25), &format!("web-{at:04}"), at);
    }
    json!({"apiVersion": "v1", "kind": "List", "items": items})
}

fn uid(kind: &str, namespace: &str, name: &str) -> String {
    format!("{kind}-{namespace}-{name}")
}

/// Metadata of an object, with the one of the same namespace that owns it.
fn metadata(kind: &str, namespace: &str, name: &str, owner: Option<(&str, &str)>) -> Value {
    let mut metadata =
        json!({"name": name, "uid": uid(kind, namespace, name), "creationTimestamp": "2026-01-05T08:00:00Z"});
    if !namespace.is_empty() {
        metadata["namespace"] = json!(namespace);
    }
    if let Some((kind, name)) = owner {
        metadata["ownerReferences"] = json!([{"apiVersion": "apps/v1", "kind": kind, "name": name, "controller": true,
            "uid": uid(kind, namespace, name)}]);
    }
    metadata
}

fn node(at: usize) -> Value {
    json!({"apiVersion": "v1", "kind": "Node", "metadata": metadata("Node", "", &format!("node-{at:03}"), None),
        "status": {"allocatable": {"cpu": "16", "memory": "64Gi", "pods": "110"},
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady",
                "lastTransitionTime": "2026-01-05T08:00:00Z", "lastHeartbeatTime": "2026-01-05T09:00:00Z"}]}})
}

/// What all replica sets are called after.
const HASH: &str = "5d4f8c7b9";

/// A Deployment with all that belongs to it. The first one's pods wait for a ConfigMap that is not there.
fn workload(items: &mut Vec<Value>, namespace: &str, name: &str, number: usize) {
    let (replica_set, settings) = (format!("{name}-{HASH}"), format!("{name}-settings"));
    let is_well = number > 0;
    let ready = if is_well { REPLICAS } else { 0 };
    let spec = json!({"containers": [{"name": "web", "image": "registry.example.com/web:1",
        "envFrom": [{"configMapRef": {"name": settings}}], "ports": [{"containerPort": 8080}]}]});
    let labels = json!({"app": name});
    let of_set = json!({"app": name, "pod-template-hash": HASH});
    let status = json!({"replicas": REPLICAS, "readyReplicas": ready, "availableReplicas": ready});
    items.push(json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata("Deployment", namespace, name, None),
        "spec": {"replicas": REPLICAS, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec}},
        "status": status}));
    let mut of_replica_set = metadata("ReplicaSet", namespace, &replica_set, Some(("Deployment", name)));
    of_replica_set["labels"] = of_set.clone();
    of_replica_set["annotations"] = json!({"deployment.kubernetes.io/revision": "1"});
    items.push(json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": of_replica_set,
        "spec": {"replicas": REPLICAS, "selector": {"matchLabels": of_set},
            "template": {"metadata": {"labels": of_set}, "spec": spec}},
        "status": status}));
    items.push(
        json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata("Service", namespace, name, None),
        "spec": {"selector": labels, "ports": [{"port": 80, "targetPort": 8080}]}}),
    );
    items.push(json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata("ServiceAccount", namespace, name, None)}));
    if is_well {
        items.push(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata("ConfigMap", namespace, &settings, None),
            "data": {"colour": "blue"}}));
    }
    for replica in 0..REPLICAS {
        let name = format!("{replica_set}-{replica}");
        let mut metadata = metadata("Pod", namespace, &name, Some(("ReplicaSet", &replica_set)));
        metadata["labels"] = of_set.clone();
        let node = format!("node-{:03}", (number * REPLICAS + replica) % NODES);
        items.push(pod(metadata, &spec, &node, &settings, is_well));
    }
}

fn pod(metadata: Value, spec: &Value, node: &str, settings: &str, is_well: bool) -> Value {
    let mut spec = spec.clone();
    spec["nodeName"] = json!(node);
    let state = match is_well {
        true => json!({"running": {"startedAt": "2026-01-05T08:00:00Z"}}),
        false => json!({"waiting": {"reason": "CreateContainerConfigError",
            "message": format!("configmap \"{settings}\" not found")}}),
    };
    let (phase, status) = if is_well { ("Running", "True") } else { ("Pending", "False") };
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec,
        "status": {"phase": phase,
            "conditions": [{"type": "Ready", "status": status, "lastTransitionTime": "2026-01-05T08:00:00Z"}],
            "containerStatuses": [{"name": "web", "ready": is_well, "restartCount": 0, "state": state,
                "image": "registry.example.com/web:1"}]}})
}

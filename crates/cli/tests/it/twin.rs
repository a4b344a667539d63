//! `tiphys twin` as its users run it: the address on stdout, the kubeconfig, dumps.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Output, Stdio},
    time::Duration,
};

use tempfile::TempDir;
use tiphys_cluster::Cluster;
use tiphys_value::{GroupVersionKind, ObjectExt, json};

struct Twin(Child);

impl Twin {
    /// Starts one in a folder and waits for the line that says it is ready.
    fn start(folder: &Path, args: &[&str]) -> (Self, String) {
        let mut command = command(folder, args);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        (Self(child), line)
    }
}

impl Drop for Twin {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn command(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tiphys"));
    command.arg("twin").args(["--kubeconfig", "config"]).args(args).current_dir(folder);
    command.env("XDG_STATE_HOME", folder.join("state"));
    command
}

fn kubectl(folder: &Path, args: &[&str]) -> Option<Output> {
    let mut command = Command::new(tiphys_oracles::find_or_skip("kubectl")?);
    Some(command.args(args).env("KUBECONFIG", folder.join("config")).output().unwrap())
}

const DUMP: &str = "apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Node, metadata: {name: n1, uid: u-1}, status: {conditions: [{type: Ready, status: 'False'}]}}
- {apiVersion: v1, kind: Pod, metadata: {name: p, namespace: a}, spec: {nodeName: n1, containers: [{name: c, image: i}]}, status: {phase: Failed}}
- {apiVersion: example.com/v1, kind: Unknown, metadata: {name: x}}
";

#[test]
fn ready_means_that_kubectl_gets_an_answer() {
    let folder = TempDir::new().unwrap();
    let (_twin, line) = Twin::start(folder.path(), &["--nodes", "2", "--kubernetes-version", "1.34"]);
    assert!(line.starts_with("Kubernetes 1.34 at https://127.0.0.1:"), "{line}");
    let config = fs::read_to_string(folder.path().join("config")).unwrap();
    assert!(line.contains(&config.split("https://").nth(1).unwrap()[..14]), "{line}");
    let Some(output) = kubectl(folder.path(), &["get", "nodes", "-o", "name"]) else { return };
    assert_eq!(String::from_utf8_lossy(&output.stdout), "node/node-1\nnode/node-2\n");
}

#[test]
fn a_dump_stands_there_as_it_was() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("dump.yaml"), DUMP).unwrap();
    let (_twin, _) = Twin::start(folder.path(), &["--from", "dump.yaml"]);
    let args = ["get", "pods", "-A", "-o", "jsonpath={.items[*].status.phase}/{.items[*].spec.nodeName}"];
    let Some(output) = kubectl(folder.path(), &args) else { return };
    assert_eq!(String::from_utf8_lossy(&output.stdout), "Failed/n1");
    let names = kubectl(folder.path(), &["get", "nodes", "-o", "name"]).unwrap();
    assert_eq!(String::from_utf8_lossy(&names.stdout), "node/n1\n");
}

/// Writes until the process is killed from under it; returns the names whose creation was acknowledged.
async fn write_until_killed(cluster: &Cluster, round: usize, twin: Twin) -> Vec<String> {
    let (mut acknowledged, mut twin, mut killer) = (Vec::new(), Some(twin), None);
    for number in 0.. {
        let name = format!("w-{round}-{number}");
        let metadata = json!({"name": name, "namespace": "default"});
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata});
        match cluster.create(&object, "test", false).await {
            Ok(_) => acknowledged.push(name),
            Err(_) => break,
        }
        if let Some(twin) = twin.take_if(|_| number == round * 7 % 13) {
            // It falls anywhere in one of the next writes.
            let pause = Duration::from_micros((round as u64).wrapping_mul(7919) % 9000);
            killer = Some(std::thread::spawn(move || {
                std::thread::sleep(pause);
                drop(twin);
            }));
        }
    }
    // It is gone once its killer has seen that: nobody can open the folder before.
    killer.expect("it was to be killed").join().unwrap();
    acknowledged
}

#[test]
fn killed_again_and_again_it_keeps_what_it_acknowledged() {
    const KILLS: usize = 20;
    let folder = TempDir::new().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut acknowledged = Vec::new();
    for round in 0..=KILLS {
        let (twin, _) = Twin::start(folder.path(), &["--state", "state", "--nodes", "1"]);
        runtime.block_on(async {
            let config = folder.path().join("config");
            let cluster = Cluster::connect(Some(&config), None).await.unwrap().cluster;
            let maps = cluster.resource(&GroupVersionKind::new("", "v1", "ConfigMap")).await.unwrap();
            let list = cluster.list(&maps, "default").await.unwrap();
            for name in &acknowledged {
                assert!(
                    list.items.iter().any(|item| item.name() == *name),
                    "{name} is lost in round {round}"
                );
            }
            if round < KILLS {
                acknowledged.extend(write_until_killed(&cluster, round, twin).await);
            }
        });
    }
    assert!(acknowledged.len() > 2 * KILLS);
}

#[test]
fn wrong_use_is_said() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("no-dump.yaml"), "a: 1\n").unwrap();
    fs::write(folder.path().join("mine"), "current-context: work\n").unwrap();
    let refused: [(&[&str], &str); 4] = [
        (&["--from", "missing"], "cannot read missing"),
        (&["--from", "no-dump.yaml"], "this is no dump of a cluster"),
        (&["--kubernetes-version", "1.12"], "choose one from"),
        (&["--kubeconfig", "mine"], "holds something else"),
    ];
    for (args, text) in refused {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tiphys"));
        command.arg("twin").args(args).current_dir(folder.path());
        let output = command.env("XDG_STATE_HOME", folder.path().join("state")).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains(text), "{stderr}");
    }
}

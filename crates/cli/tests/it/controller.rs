//! `tiphys controller` on a cluster that it reaches as any other: by kubeconfig.
#![allow(clippy::panic, reason = "tests")]

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::Path,
    process::{Child, Command, Stdio},
    sync::mpsc,
    time::Duration,
};

use tiphys_cluster::{ApplyOptions, Cluster};
use tiphys_value::{GroupVersionKind, ObjectExt, Value, json};

use crate::common::{Repo, config_map};

const PATIENCE: Duration = Duration::from_secs(60);

/// A process whose lines are read as they come; killed when dropped.
struct Process {
    child: Child,
    lines: mpsc::Receiver<String>,
}

impl Process {
    fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (send, lines) = mpsc::channel();
        let pipes: [Box<dyn Read + Send>; 2] =
            [Box::new(child.stdout.take().unwrap()), Box::new(child.stderr.take().unwrap())];
        for pipe in pipes {
            let send = send.clone();
            std::thread::spawn(move || {
                // Nobody listens any more once the test is over.
                let _ =
                    BufReader::new(pipe).lines().map_while(Result::ok).try_for_each(|line| send.send(line));
            });
        }
        Self { child, lines }
    }

    /// The first line that holds a text.
    fn until(&self, text: &str) -> String {
        let mut seen = String::new();
        loop {
            let line = self.lines.recv_timeout(PATIENCE);
            let line = line.unwrap_or_else(|_| panic!("{text:?} did not come; it said:\n{seen}"));
            if line.contains(text) {
                return line;
            }
            seen.push_str(&line);
            seen.push('\n');
        }
    }

    fn interrupt(&mut self) {
        assert!(
            Command::new("kill").args(["-INT", &self.child.id().to_string()]).status().unwrap().success()
        );
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An embedded cluster alone, with what `deploy/` installs, and a repository.
struct Twin {
    repo: Repo,
    runtime: tokio::runtime::Runtime,
    cluster: Cluster,
    _process: Process,
}

impl Twin {
    fn start(overlay: &str) -> Self {
        let repo = Repo::with(&[("manifests/a.yaml", &config_map("a", "1"))]);
        repo.git_init();
        let process = Process::start(repo.command(&["twin"]));
        process.until("export KUBECONFIG=");
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let kubeconfig = repo.kubeconfig();
        let cluster = runtime.block_on(Cluster::connect(Some(&kubeconfig), None)).unwrap().cluster;
        let twin = Self { repo, runtime, cluster, _process: process };
        twin.apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "argocd"}}));
        twin.install(overlay);
        twin
    }

    fn apply(&self, object: &Value) {
        let options =
            ApplyOptions { field_manager: "test".into(), force: false, dry_run: false, validate: true };
        let applied = self.runtime.block_on(self.cluster.apply(object, &options));
        applied.unwrap_or_else(|error| panic!("{}/{}: {error}", object.kind(), object.name()));
    }

    /// Applies what an overlay of `deploy/` builds to, refusing fields that the cluster does not know.
    fn install(&self, overlay: &str) {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy").join(overlay);
        let run = self.repo.run(&["render", "kustomize", folder.to_str().unwrap()]);
        run.expect(0, &["kind: Deployment"]);
        for document in run.stdout().split("\n---\n") {
            self.apply(&tiphys_yaml::from_yaml(document).unwrap());
        }
        self.runtime.block_on(self.cluster.discover()).unwrap();
    }

    fn application(&self) {
        self.apply(&json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
            "metadata": {"name": "shop", "namespace": "argocd"},
            "spec": {"project": "default", "destination": {"name": "in-cluster", "namespace": "shop"},
                "source": {"repoURL": format!("file://{}", self.repo.path("").display()), "path": "manifests"},
                "syncPolicy": {"automated": {}, "syncOptions": ["CreateNamespace=true"]}}}));
    }

    fn get(&self, api: (&str, &str, &str), namespace: &str, name: &str) -> Option<Value> {
        let (group, version, kind) = api;
        let kind = GroupVersionKind::new(group, version, kind);
        self.runtime.block_on(async {
            let resource = self.cluster.resource(&kind).await.unwrap();
            self.cluster.get(&resource, namespace, name).await.unwrap()
        })
    }

    fn controller(&self, flags: &[&str]) -> Process {
        let kubeconfig = self.repo.kubeconfig();
        let mut args = vec!["controller", "--metrics", "127.0.0.1:0", "--local-repositories", "repo"];
        args.extend(["--kubeconfig", kubeconfig.to_str().unwrap()]);
        args.extend(flags);
        Process::start(self.repo.command(&args))
    }
}

/// What is at a path of the address that a controller said it serves.
fn fetch(line: &str, path: &str) -> String {
    send(line, &format!("GET {path} HTTP/1.1\r\n"), "")
}

/// The answer to a request, at the address that ends a line.
fn send(line: &str, head: &str, body: &str) -> String {
    let address = line.split("address=").nth(1).unwrap().trim();
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "{head}Host: x\r\nConnection: close\r\n\r\n{body}").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

/// A connection on which an event of so many bytes has begun.
fn begin(line: &str, head: &str, length: usize) -> TcpStream {
    let address = line.split("address=").nth(1).unwrap().trim();
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "POST /api/webhook HTTP/1.1\r\n{head}Host: x\r\ncontent-length: {length}\r\n\r\n{{")
        .unwrap();
    stream
}

#[test]
fn one_of_two_controllers_works_and_the_other_takes_over() {
    let twin = Twin::start("install");
    let mut first = twin.controller(&[]);
    first.until("holds the Lease");
    let address = first.until("serves /metrics");
    let second = twin.controller(&[]);
    second.until("waiting for the Lease");
    twin.application();
    twin.repo.run(&["app", "wait", "shop", "--timeout", "60s"]).expect(0, &["as it should be"]);
    assert!(twin.get(("", "v1", "ConfigMap"), "shop", "a").is_some());
    assert!(fetch(&address, "/healthz").starts_with("HTTP/1.1 200"));
    let metrics = fetch(&address, "/metrics");
    for wanted in [
        "argocd_app_info{namespace=\"argocd\",name=\"shop\",project=\"default\",autosync_enabled=\"true\"",
        "sync_status=\"Synced\",health_status=\"Healthy\"",
        "phase=\"Succeeded\",dry_run=\"false\"} 1",
        "argocd_app_reconcile_count{namespace=\"argocd\"",
        "argocd_cluster_info{",
        "argocd_cluster_cache_age_seconds{server=\"https://kubernetes.default.svc\"}",
        "argocd_cluster_events_total{server=\"https://kubernetes.default.svc\",group=\"argoproj.io\",kind=\"Application\"}",
    ] {
        assert!(metrics.contains(wanted), "{wanted} is missing in:\n{metrics}");
    }
    let told = |method: &str, headers: &str, body: &str| {
        let length = body.len();
        send(
            &address,
            &format!("{method} /api/webhook HTTP/1.1\r\n{headers}content-length: {length}\r\n"),
            body,
        )
    };
    let push = r#"{"repository": {"html_url": "https://git.example.com/acme/shop"}}"#;
    let known = told("POST", "X-GitHub-Event: push\r\n", push);
    assert!(known.starts_with("HTTP/1.1 200") && known.contains("nothing here reads it"), "{known}");
    assert!(told("POST", "X-GitHub-Event: push\r\n", "{").starts_with("HTTP/1.1 400"));
    assert!(told("POST", "", push).contains("no event of a Git host that is known"));
    assert!(told("GET", "", "").starts_with("HTTP/1.1 405"));
    // CVE-2024-40634: a body without end.
    let endless = "POST /api/webhook HTTP/1.1\r\nX-GitHub-Event: push\r\ncontent-length: 9000000000\r\n";
    assert!(send(&address, endless, "{").starts_with("HTTP/1.1 413"));
    // Who sends slowly keeps nobody else waiting.
    let slow: Vec<_> = (0..20).map(|_| begin(&address, "X-GitHub-Event: push\r\n", 1_000_000)).collect();
    let after = told("POST", "X-GitHub-Event: push\r\n", push);
    assert!(after.starts_with("HTTP/1.1 200"), "{after}");
    for mut stream in slow {
        stream.set_nonblocking(true).unwrap();
        let waits =
            stream.read(&mut [0; 1]).is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock);
        assert!(waits, "it is still waited for");
    }
    first.interrupt();
    second.until("holds the Lease");
    twin.repo.write("manifests/b.yaml", config_map("b", "1"));
    let lease = twin.get(("coordination.k8s.io", "v1", "Lease"), "argocd", "tiphys-controller").unwrap();
    let holder = lease.str_at(&["spec", "holderIdentity"]).unwrap();
    assert!(holder.ends_with(&format!("_{}", second.child.id())), "{holder}");
}

#[test]
fn a_shadow_tells_and_writes_nothing() {
    let twin = Twin::start("install");
    twin.application();
    let before = twin.get(("argoproj.io", "v1alpha1", "Application"), "argocd", "shop").unwrap();
    let shadow = twin.controller(&["--shadow"]);
    let line = shadow.until("\"name\":\"shop\"");
    let decision: Value = serde_json::from_str(&line).unwrap();
    assert_eq!((&decision["action"], &decision["sync"]), (&json!("sync"), &json!("OutOfSync")), "{decision}");
    assert!(decision["apply"][0].as_str().unwrap().contains("ConfigMap"), "{decision}");
    assert!(!decision["differs"].as_array().unwrap().is_empty(), "{decision}");
    let after = twin.get(("argoproj.io", "v1alpha1", "Application"), "argocd", "shop").unwrap();
    assert_eq!(before, after);
    assert!(twin.get(("", "v1", "ConfigMap"), "shop", "a").is_none());
    assert!(twin.get(("coordination.k8s.io", "v1", "Lease"), "argocd", "tiphys-controller").is_none());
}

#[test]
fn the_shadow_installation_is_accepted_and_may_read_only() {
    let twin = Twin::start("install");
    twin.install("shadow");
    let role = twin.get(("rbac.authorization.k8s.io", "v1", "ClusterRole"), "", "tiphys-shadow").unwrap();
    assert_eq!(role["rules"][0]["verbs"], json!(["get", "list", "watch"]));
    let deployment = twin.get(("apps", "v1", "Deployment"), "argocd", "tiphys-controller").unwrap();
    let args = deployment.pointer("/spec/template/spec/containers/0/args").unwrap().to_string();
    assert!(args.contains("--shadow"), "{args}");
}

#[test]
fn without_a_cluster_it_is_wrong_use() {
    let repo = Repo::with(&[]);
    let mut command = repo.command(&["controller", "--kubeconfig", "none"]);
    assert_eq!(command.output().unwrap().status.code(), Some(2));
}

//! `tiphys controller` on a cluster that it reaches as any other: by kubeconfig.
#![allow(clippy::panic, reason = "tests")]

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::mpsc,
    time::Duration,
};

use tiphys_cluster::{ApplyOptions, Cluster, Propagation};
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
    /// One with what an overlay of `deploy/` installs.
    fn start(overlay: &str) -> Self {
        let twin = Self::bare();
        twin.install(overlay);
        twin
    }

    /// One with nothing but the engine's namespace.
    fn bare() -> Self {
        let repo = Repo::with(&[("manifests/a.yaml", &config_map("a", "1"))]);
        repo.git_init();
        let process = Process::start(repo.command(&["twin"]));
        process.until("export KUBECONFIG=");
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let kubeconfig = repo.kubeconfig();
        let cluster = runtime.block_on(Cluster::connect(Some(&kubeconfig), None)).unwrap().cluster;
        let twin = Self { repo, runtime, cluster, _process: process };
        twin.apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "argocd"}}));
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
        self.apply_all(&run.stdout());
    }

    fn apply_all(&self, documents: &str) {
        for document in documents.split("\n---\n") {
            self.apply(&tiphys_yaml::from_yaml(document).unwrap());
        }
        self.runtime.block_on(self.cluster.discover()).unwrap();
    }

    /// Applies what the chart renders to, and starts the program of its Deployment as its service account.
    fn run_chart(&self, values: &[&str]) -> Process {
        let chart = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/chart/tiphys");
        let mut args = vec!["render", "helm", "tiphys", chart.to_str().unwrap(), "--namespace", "argocd"];
        args.extend(values);
        let run = self.repo.run(&args);
        run.expect(0, &["kind: Deployment"]);
        self.apply_all(run.stdout().trim_start_matches("---\n"));
        let deployment = self.get(("apps", "v1", "Deployment"), "argocd", "tiphys-controller").unwrap();
        let container = deployment.pointer("/spec/template/spec/containers/0/args").unwrap();
        let account = self.service_account("tiphys-controller");
        let mut args: Vec<String> = Vec::new();
        for arg in container.as_array().unwrap().iter().filter_map(Value::as_str) {
            args.push(match arg.split_once('=') {
                // Other controllers run on this machine.
                Some((flag @ ("--metrics" | "--repo-server" | "--redis"), _)) => {
                    format!("{flag}=127.0.0.1:0")
                }
                _ if arg == "--in-cluster" => format!("--kubeconfig={}", account.display()),
                _ => arg.to_owned(),
            });
        }
        args.push("--local-repositories=repo".to_owned());
        Process::start(self.repo.command(&args.iter().map(String::as_str).collect::<Vec<_>>()))
    }

    /// A kubeconfig by which requests are made as a service account of the engine's namespace.
    fn service_account(&self, name: &str) -> PathBuf {
        let text = std::fs::read_to_string(self.repo.kubeconfig()).unwrap();
        let mut config: Value = tiphys_yaml::from_yaml(&text).unwrap();
        config["users"][0]["user"]["as"] = format!("system:serviceaccount:argocd:{name}").into();
        let file = self.repo.run_dir().join("service-account");
        std::fs::write(&file, tiphys_yaml::to_yaml(&config)).unwrap();
        file
    }

    fn eventually(&self, what: &str, is_so: impl Fn() -> bool) {
        let start = std::time::Instant::now();
        while !is_so() {
            assert!(start.elapsed() < PATIENCE, "it did not come to this: {what}");
            std::thread::sleep(Duration::from_millis(50));
        }
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

    /// The controller that has an Application, by the name of its Lease.
    fn replica_of(&self, app: &Value) -> Option<String> {
        let lease = self.get(("coordination.k8s.io", "v1", "Lease"), "argocd", "tiphys-controller")?;
        tiphys_controller::replica_of(&lease, app)
    }

    /// The first condition of an Application, as soon as there is one.
    fn error_of(&self, name: &str, controller: &Process) -> String {
        // Seconds of a processor may take minutes where others have it.
        let until = std::time::Instant::now() + 4 * PATIENCE;
        loop {
            let app = self.get(APPLICATION, "argocd", name).unwrap();
            if let Some(message) = app["status"]["conditions"][0]["message"].as_str() {
                return message.to_owned();
            }
            let said = || controller.lines.try_iter().collect::<Vec<_>>().join("\n");
            assert!(std::time::Instant::now() < until, "{app}\nhas no condition; it said:\n{}", said());
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    fn delete(&self, api: (&str, &str, &str), name: &str) {
        let (group, version, kind) = api;
        let kind = GroupVersionKind::new(group, version, kind);
        self.runtime.block_on(async {
            let resource = self.cluster.resource(&kind).await.unwrap();
            let name = ("argocd", name);
            self.cluster.delete(&resource, name, Propagation::Background, "", false).await.unwrap();
        });
    }

    fn list(&self, api: (&str, &str, &str), namespace: &str) -> Vec<Value> {
        let (group, version, kind) = api;
        let kind = GroupVersionKind::new(group, version, kind);
        self.runtime.block_on(async {
            let resource = self.cluster.resource(&kind).await.unwrap();
            self.cluster.list(&resource, namespace).await.unwrap().items
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
fn one_controller_works_and_another_takes_over() {
    let twin = Twin::start("install");
    let mut first = twin.controller(&[]);
    first.until("holds its Lease");
    let address = first.until("serves /metrics");
    twin.application();
    twin.repo
        .run(&["app", "wait", "shop", "--timeout", "60s"])
        .expect(0, &["is in the state that was waited for"]);
    assert!(twin.get(("", "v1", "ConfigMap"), "shop", "a").is_some());
    assert!(fetch(&address, "/healthz").starts_with("HTTP/1.1 200"));
    // A look is counted once it is over, which is after the status that it wrote.
    let counted = || fetch(&address, "/metrics").contains("argocd_app_reconcile_count");
    (0..100).take_while(|_| !counted()).for_each(|_| std::thread::sleep(Duration::from_millis(50)));
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
    let second = twin.controller(&[]);
    second.until("serves /metrics");
    first.interrupt();
    twin.repo.write("manifests/b.yaml", config_map("b", "1"));
    twin.repo.commit();
    twin.repo.run(&["app", "sync", "shop", "--timeout", "60s"]).expect(0, &[]);
    assert!(twin.get(CONFIG_MAP, "shop", "b").is_some());
    let app = twin.get(APPLICATION, "argocd", "shop").unwrap();
    let holder = twin.replica_of(&app).unwrap();
    assert!(holder.contains(&format!("-{}-", second.child.id())), "{holder}");
}

/// Commands reach whoever has the Application, as they write what the one that has it reads.
#[test]
fn an_operation_is_told_once_when_it_begins_and_once_when_it_ends() {
    let twin = Twin::start("install");
    let controller = twin.controller(&[]);
    controller.until("serves /metrics");
    twin.application();
    twin.repo
        .run(&["app", "wait", "shop", "--timeout", "60s"])
        .expect(0, &["is in the state that was waited for"]);
    let told = |reason: &str| {
        let events = twin.list(("", "v1", "Event"), "argocd").into_iter();
        events
            .filter(|event| event["reason"] == reason)
            .map(|event| event["count"].as_u64())
            .sum::<Option<u64>>()
    };
    twin.eventually("the end of the sync is an Event", || told("OperationCompleted") > Some(0));
    assert_eq!((told("OperationStarted"), told("OperationCompleted")), (Some(1), Some(1)));
}

#[test]
fn commands_reach_whichever_controller_has_the_application() {
    let twin = Twin::start("install");
    let controllers = [twin.controller(&[]), twin.controller(&[])];
    for controller in &controllers {
        controller.until("serves /metrics");
    }
    let names: Vec<String> = (0..8).map(|number| format!("app-{number}")).collect();
    for name in &names {
        twin.apply(&application_of(&twin, name, "manifests"));
    }
    let holders = || -> Vec<String> {
        let apps = names.iter().filter_map(|name| twin.get(APPLICATION, "argocd", name));
        let mut holders: Vec<String> = apps.filter_map(|app| twin.replica_of(&app)).collect();
        if holders.len() < names.len() {
            return Vec::new();
        }
        holders.sort();
        holders.dedup();
        holders
    };
    twin.eventually("each has some", || holders().len() == 2);
    for name in &names {
        twin.repo
            .run(&["app", "wait", name, "--timeout", "60s"])
            .expect(0, &["is in the state that was waited for"]);
        twin.repo.run(&["app", "sync", name, "--timeout", "60s"]).expect(0, &[]);
        twin.repo.run(&["app", "get", name, "--refresh"]).expect(0, &[name]);
    }
}

#[test]
fn a_missing_right_on_leases_is_named() {
    let twin = Twin::start("install");
    let account = twin.service_account("nobody");
    let args = ["controller", "--metrics=127.0.0.1:0", "--kubeconfig", account.to_str().unwrap()];
    let rule = "create, get, list, update and delete on leases of coordination.k8s.io in namespace argocd";
    twin.repo.run(&args).expect(1, &[rule, "is forbidden"]);
}

/// A plan reads a cluster as it is, and leaves it as it is.
#[test]
fn a_plan_of_a_live_installation_writes_nothing() {
    let twin = Twin::start("install");
    let mut app = application_of(&twin, "shop", "manifests");
    app["spec"]["source"]["plugin"] = json!({"name": "tanka"});
    twin.apply(&app);
    twin.apply(&json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "argocd-cm", "namespace": "argocd"}, "data": {"url": "https://argocd.example.com"}}));
    let kubeconfig = twin.service_account("reader");
    let plan =
        |kubeconfig: &Path| twin.repo.run(&["migrate", "plan", "--kubeconfig", kubeconfig.to_str().unwrap()]);
    let denied = plan(&kubeconfig);
    denied.expect(1, &["forbidden"]);
    let before = twin.list(APPLICATION, "");
    plan(&twin.repo.kubeconfig())
        .expect(1, &["argocd/shop: not supported", "plugin tanka", "argocd-cm: url"]);
    assert_eq!(before, twin.list(APPLICATION, ""));
}

/// An engine that shares nothing, as older versions did, is waited for.
#[test]
fn a_lease_of_an_engine_that_shares_nothing_is_waited_for() {
    let twin = Twin::start("install");
    let lease = |holder: &str| {
        json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": "tiphys-controller", "namespace": "argocd"},
            "spec": {"holderIdentity": holder, "leaseDurationSeconds": 3600,
                "renewTime": "2026-01-01T00:00:00.000000Z"}})
    };
    twin.apply(&lease("older_1"));
    let controller = twin.controller(&[]);
    let standby = controller.until("listens");
    controller.until("waiting for the Lease");
    assert!(fetch(&standby, "/healthz").starts_with("HTTP/1.1 200"), "one that waits is well");
    assert!(!fetch(&standby, "/metrics").contains("tiphys_build_info"), "it does not work yet");
    let event = "POST /api/webhook HTTP/1.1\r\nX-GitHub-Event: push\r\ncontent-length: 2\r\n";
    assert!(send(&standby, event, "{}").starts_with("HTTP/1.1 503"));
    twin.apply(&lease(""));
    controller.until("holds its Lease");
    controller.until("serves /metrics");
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

/// An automated Application of a folder of the twin's repository.
fn application_of(twin: &Twin, name: &str, folder: &str) -> Value {
    json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": name, "namespace": "argocd"},
        "spec": {"project": "default", "destination": {"name": "in-cluster", "namespace": name},
            "source": {"repoURL": format!("file://{}", twin.repo.path("").display()), "path": folder},
            "syncPolicy": {"automated": {"prune": true}, "syncOptions": ["CreateNamespace=true"]}}})
}

const APPLICATION: (&str, &str, &str) = ("argoproj.io", "v1alpha1", "Application");
const CONFIG_MAP: (&str, &str, &str) = ("", "v1", "ConfigMap");

/// Each right that the chart gives with `rbac.rules` is needed here, and what no rule allows is refused.
#[test]
fn the_chart_runs_a_controller_that_its_rights_suffice() {
    let twin = Twin::bare();
    let account = "apiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: other\n";
    twin.repo.write("manifests/b.yaml", config_map("b", "1"));
    twin.repo.write("denied/a.yaml", account);
    twin.repo.commit();
    let rules = r#"rbac.rules=[{"apiGroups": [""], "resources": ["namespaces", "configmaps"], "verbs": ["create", "patch", "delete"]}]"#;
    let controller = twin.run_chart(&["--set-json", rules]);
    controller.until("holds its Lease");
    controller.until("in the place of Argo CD's Redis");

    twin.apply(&application_of(&twin, "shop", "manifests"));
    twin.repo
        .run(&["app", "wait", "shop", "--timeout", "60s"])
        .expect(0, &["is in the state that was waited for"]);
    assert!(twin.get(CONFIG_MAP, "shop", "b").is_some());
    std::fs::remove_file(twin.repo.path("manifests/b.yaml")).unwrap();
    twin.repo.commit();
    twin.repo.run(&["app", "sync", "shop", "--prune", "--timeout", "60s"]).expect(0, &[]);
    assert!(twin.get(CONFIG_MAP, "shop", "b").is_none());
    twin.repo.run(&["app", "undo", "shop", "--list"]).expect(0, &["b"]);

    let mut template = application_of(&twin, "one", "manifests");
    template["metadata"] = json!({"name": "{{.name}}"});
    let set = |names: &[&str]| {
        let elements: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
        json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet",
            "metadata": {"name": "all", "namespace": "argocd"},
            "spec": {"goTemplate": true, "generators": [{"list": {"elements": elements}}],
                "template": {"metadata": template["metadata"], "spec": template["spec"]}}})
    };
    twin.apply(&set(&["one", "two"]));
    twin.eventually("the set has made Applications", || twin.get(APPLICATION, "argocd", "two").is_some());
    twin.apply(&set(&["one"]));
    twin.eventually("the set has deleted one", || twin.get(APPLICATION, "argocd", "two").is_none());
    twin.eventually("the set says what it made", || {
        let kind = ("argoproj.io", "v1alpha1", "ApplicationSet");
        let set = twin.get(kind, "argocd", "all").unwrap();
        set.pointer("/status/resources/0/name") == Some(&json!("one"))
    });

    twin.apply(&json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject",
        "metadata": {"name": "team", "namespace": "argocd", "finalizers": ["resources-finalizer.argocd.argoproj.io"]},
        "spec": {}}));
    let project = ("argoproj.io", "v1alpha1", "AppProject");
    twin.delete(project, "team");
    twin.eventually("the project is let go", || twin.get(project, "argocd", "team").is_none());

    twin.apply(&application_of(&twin, "denied", "denied"));
    twin.eventually("what no rule allows fails", || {
        let app = twin.get(APPLICATION, "argocd", "denied").unwrap();
        app.pointer("/status/operationState").is_some_and(|state| state.to_string().contains("is forbidden"))
    });
    let mut gone = application_of(&twin, "gone", "manifests");
    gone["metadata"]["finalizers"] = json!(["resources-finalizer.argocd.argoproj.io"]);
    gone["spec"]["destination"] = json!({"server": "https://gone.example.com", "namespace": "gone"});
    twin.apply(&gone);
    twin.delete(APPLICATION, "gone");
    twin.eventually("what is left behind is told", || {
        let events = twin.list(("", "v1", "Event"), "argocd");
        events.iter().any(|event| event["reason"] == "ResourcesOrphaned")
    });
}

#[test]
fn the_chart_runs_a_shadow_that_may_read_only() {
    let twin = Twin::bare();
    let definitions = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/install/crds.yaml");
    let definitions = std::fs::read_to_string(definitions).unwrap();
    twin.apply_all(definitions.split_once("---\n").unwrap().1);
    twin.application();
    let shadow = twin.run_chart(&["--set", "mode=shadow"]);
    let line = shadow.until("\"name\":\"shop\"");
    let decision: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(decision["action"], "sync", "{decision}");
    let account = twin.service_account("tiphys-controller");
    let options = ApplyOptions { field_manager: "test".into(), force: false, dry_run: false, validate: true };
    let refused = twin.runtime.block_on(async {
        let cluster = Cluster::connect(Some(&account), None).await.unwrap().cluster;
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "argocd"}});
        assert!(cluster.resource(&map.gvk()).await.is_ok(), "it may read");
        cluster.apply(&map, &options).await.unwrap_err()
    });
    assert!(refused.to_string().contains("forbidden"), "{refused}");
}

#[test]
fn without_a_cluster_it_is_wrong_use() {
    let repo = Repo::with(&[]);
    let mut command = repo.command(&["controller", "--kubeconfig", "none"]);
    assert_eq!(command.output().unwrap().status.code(), Some(2));
}

#[test]
fn a_rendering_that_a_limit_ends_is_the_error_of_its_application_alone() {
    const MANY: usize = 20;
    let good = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";
    // 480 MB of text that nothing prints, made in less than the five seconds that the loops take more than.
    let hungry =
        r#"{{ $all := list }}{{ range until 8 }}{{ $all = append $all (repeat 60000000 "x") }}{{ end }}"#;
    // Minutes of work on any machine. One short list for all loops: long ones, or lists made anew, come to
    // the limit of memory first on a fast machine.
    let slow = "{{ $n := until 2000 }}{{ range $n }}{{ range $n }}{{ range $n }}{{ end }}{{ end }}{{ end }}";
    let twin = Twin::start("install");
    for (name, template) in [("good", good), ("hungry", hungry), ("slow", slow)] {
        let chart = format!("apiVersion: v2\nname: {name}\nversion: 1.0.0\n");
        twin.repo.write(&format!("{name}/Chart.yaml"), chart);
        twin.repo.write(&format!("{name}/templates/a.yaml"), template);
    }
    twin.repo.commit();
    let names: Vec<String> = (0..MANY).map(|index| format!("good-{index}")).collect();
    for (name, folder) in [("hungry", "hungry"), ("slow", "slow")] {
        twin.apply(&application_of(&twin, name, folder));
    }
    for name in &names {
        twin.apply(&application_of(&twin, name, "good"));
    }
    // The limit of time is far: on a busy machine five seconds of a processor may take much longer.
    let limits =
        ["--render-processes", "2", "--render-memory", "256", "--render-cpu", "5s", "--limit-time", "10m"];
    let controller = twin.controller(&limits);
    controller.until("serves /metrics");
    for name in &names {
        twin.repo
            .run(&["app", "wait", name, "--timeout", "120s"])
            .expect(0, &["is in the state that was waited for"]);
        assert!(twin.get(CONFIG_MAP, name, "a").is_some());
    }
    let ends =
        [("hungry", "needed more than 256 MiB of memory"), ("slow", "more than 5 s of processor time")];
    for (name, why) in ends {
        let message = twin.error_of(name, &controller);
        assert!(message.contains(why), "{name}: {message}");
    }
}

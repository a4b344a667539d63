//! `tiphys doctor` and `tiphys dump` as people run them: on what was saved, and on a running embedded
//! cluster.

use std::{
    fs,
    io::{BufRead, BufReader, Write as _},
    net::TcpListener,
    path::Path,
    process::{Child, Command, Output, Stdio},
    time::Duration,
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::Value;
use tempfile::TempDir;
use tiphys_cluster::Cluster;
use tiphys_value::{GroupVersionKind, json};

use crate::common::Repo;

/// How often a condition is looked at before a test gives up, and how long it waits in between.
const PATIENCE: (usize, Duration) = (600, Duration::from_millis(200));

fn tiphys(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tiphys"));
    command.args(args).current_dir(folder).env_remove("KUBECONFIG").env("HOME", folder);
    command.output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// An embedded cluster that ends with the test.
struct Twin(Child);

impl Twin {
    fn start(folder: &Path) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tiphys"));
        command.args(["twin", "--kubeconfig", "config", "--nodes", "1"]).current_dir(folder);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut String::new()).unwrap();
        Self(child)
    }
}

impl Drop for Twin {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn config_map(name: &str, data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "shop", "name": name}, "data": data})
}

/// What a cluster of the tests holds: a Deployment whose Secret is absent, and a credential wherever one can
/// be.
fn objects() -> Vec<Value> {
    let encoded = |text: &str| BASE64_STANDARD.encode(text);
    let secret = |name: &str, kind: &str, data: Value| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "shop", "name": name}, "type": kind, "data": data});
    let login =
        encoded(r#"{"auths": {"registry.example": {"auth": "aHVudGVyMg==", "password": "hunter2"}}}"#);
    let container = json!({"name": "web", "image": "registry.example/web:1", "args": ["--password", "hunter2", "--api-token=hunter2"], "env": [
        {"name": "DB_PASSWORD", "value": "hunter2"},
        {"name": "DB_URL", "value": "postgres://app:hunter2@db.shop:5432/app"},
        {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "web-key", "key": "key"}}}]});
    vec![
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}),
        secret("opaque", "Opaque", json!({"a": encoded("hunter2")})),
        secret("registry", "kubernetes.io/dockerconfigjson", json!({".dockerconfigjson": login})),
        config_map(
            "files",
            json!({"app.properties": "db.password=hunter2\n", "kubeconfig": "users:\n- user:\n    token: hunter2\n"}),
        ),
        config_map(
            "keys",
            json!({"id": format!("AKIA{}", "HUNTER2HUNTER2HU"), "key.pem": "-----BEGIN RSA PRIVATE KEY-----\nhunter2\n-----END RSA PRIVATE KEY-----\n"}),
        ),
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"namespace": "shop", "name": "web"}, "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}}}}),
    ]
}

/// A cluster with [`objects`], once the pod waits for its Secret.
async fn broken(folder: &Path) -> Twin {
    let twin = Twin::start(folder);
    let cluster = Cluster::connect(Some(&folder.join("config")), None).await.unwrap().cluster;
    for object in objects() {
        cluster.create(&object, "test", false).await.unwrap();
    }
    let pods = cluster.resource(&GroupVersionKind::new("", "v1", "Pod")).await.unwrap();
    for _ in 0..PATIENCE.0 {
        let list = cluster.list(&pods, "shop").await.unwrap();
        if list.items.iter().any(|pod| pod.to_string().contains("CreateContainerConfigError")) {
            return twin;
        }
        tokio::time::sleep(PATIENCE.1).await;
    }
    panic!("the pod does not wait for its Secret");
}

/// Every file below a folder with its text.
fn texts(folder: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(texts(&path));
        } else {
            found.push((path.display().to_string(), fs::read_to_string(&path).unwrap()));
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_cluster_is_looked_at_saved_and_looked_at_again() {
    let folder = TempDir::new().unwrap();
    let _twin = broken(folder.path()).await;
    let live = tiphys(folder.path(), &["doctor", "--kubeconfig", "config", "--output", "json"]);
    let found: Value = serde_json::from_str(&stdout(&live)).unwrap_or_else(|_| panic!("{}", stderr(&live)));
    let config = fs::read_to_string(folder.path().join("config")).unwrap();
    let config: Value = serde_json::from_str(&config).unwrap();
    let address = config["clusters"][0]["cluster"]["server"].as_str().unwrap();
    assert_eq!(found["cluster"]["name"].as_str(), Some(address));
    assert_eq!(
        (live.status.code(), &found["causes"][0]["cause"]),
        (Some(1), &json!("config/missing")),
        "{found:#}"
    );
    assert!(found["causes"][0].to_string().contains("web-key"), "{found:#}");

    let dump = tiphys(folder.path(), &["dump", "--kubeconfig", "config", "--output-folder", "state"]);
    assert_eq!(dump.status.code(), Some(0), "{}", stderr(&dump));
    let again = tiphys(folder.path(), &["dump", "--kubeconfig", "config", "--output-folder", "state"]);
    assert_eq!(again.status.code(), Some(2), "what is there is written over");
    let texts = texts(&folder.path().join("state"));
    for (file, text) in &texts {
        let lower = text.to_lowercase();
        for credential in ["hunter2", "ahvudgvymg"] {
            assert!(!lower.contains(credential), "{file} holds a credential");
        }
    }
    let all: String = texts.into_iter().map(|(_, text)| text).collect();
    let hosts = BASE64_STANDARD.encode(r#"{"auths":{"registry.example":{}}}"#);
    for kept in [
        "postgres://app:***@db.shop:5432/app",
        "\"web-key\"",
        "registry.example/web:1",
        "DB_PASSWORD",
        hosts.as_str(),
    ] {
        assert!(all.contains(kept), "{kept} is lost");
    }

    let archive = tiphys(
        folder.path(),
        &["doctor", "--kubeconfig", "config", "--save", "state.tar.gz", "--output", "markdown"],
    );
    assert_eq!(archive.status.code(), Some(1), "{}", stderr(&archive));
    for saved in ["state", "state.tar.gz"] {
        let output = tiphys(folder.path(), &["doctor", "--from", saved, "--output", "json"]);
        let read: Value =
            serde_json::from_str(&stdout(&output)).unwrap_or_else(|_| panic!("{}", stderr(&output)));
        let roots = |value: &Value| -> Vec<Value> {
            let causes = value["causes"].as_array().unwrap().iter();
            causes.map(|cause| json!([cause["cause"], cause["object"], cause["confidence"]])).collect()
        };
        assert_eq!(roots(&read), roots(&found), "{saved}: {read:#}");
        assert!(read["cluster"]["name"].as_str().unwrap().contains(address), "{read:#}");
        assert_eq!(read["not_seen"], found["not_seen"], "{saved}");
    }
}

/// Serves these answers, each to the paths that end so, and empty lists to all others, until the test ends.
fn api(answers: &'static [(&'static str, u16, &'static str)]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
            let Some(request) = lines.next() else { continue };
            let _ = lines.take_while(|line| !line.is_empty()).count();
            let path = request.split([' ', '?']).nth(1).unwrap_or_default();
            let known = answers.iter().find(|(end, ..)| path.ends_with(end));
            let (code, body) = known.map_or((200, r#"{"items": []}"#), |(_, code, body)| (*code, *body));
            let head =
                format!("HTTP/1.1 {code} x\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
            let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes()));
        }
    });
    format!("http://{address}")
}

const CORE: &str = r#"{"kind": "APIGroupDiscoveryList", "items": [{"metadata": {}, "versions": [{"version": "v1", "resources": [
    {"resource": "pods", "responseKind": {"kind": "Pod"}, "scope": "Namespaced", "verbs": ["list"]},
    {"resource": "secrets", "responseKind": {"kind": "Secret"}, "scope": "Namespaced", "verbs": ["list"]}]}]}]}"#;
const GROUPS: &str = r#"{"kind": "APIGroupDiscoveryList", "items": [
    {"metadata": {"name": "w.example"}, "versions": [{"version": "v1", "resources": [
        {"resource": "widgets", "responseKind": {"kind": "Widget"}, "scope": "Namespaced", "verbs": ["list"]}]}]},
    {"metadata": {"name": "metrics.k8s.io"}, "versions": [{"version": "v1beta1", "freshness": "Stale", "resources": []}]}]}"#;
const FORBIDDEN: &str =
    r#"{"kind": "Status", "code": 403, "reason": "Forbidden", "message": "secrets is forbidden"}"#;
const CONVERSION: &str = r#"{"kind": "Status", "code": 422, "reason": "Invalid", "message": "conversion webhook for w.example/v1beta1, Kind=Widget failed: refused"}"#;
const LOG: &str = r#"{"kind": "Status", "code": 501, "reason": "InternalError", "message": "Get \"https://10.0.0.5:10250/containerLogs\": tls: internal error"}"#;
const PODS: &str = r#"{"items": [{"metadata": {"namespace": "shop", "name": "web"}, "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "i"}]},
    "status": {"phase": "Running", "containerStatuses": [{"name": "c", "ready": false, "restartCount": 1, "state": {"terminated": {"exitCode": 1}}}]}}]}"#;

#[test]
fn requests_that_fail_are_facts_and_stop_nothing() {
    let folder = TempDir::new().unwrap();
    let server = api(&[
        ("/api", 200, CORE),
        ("/apis", 200, GROUPS),
        ("/version", 200, r#"{"gitVersion": "v1.30.0"}"#),
        ("/secrets", 403, FORBIDDEN),
        ("/widgets", 422, CONVERSION),
        ("/log", 501, LOG),
        ("/pods", 200, PODS),
    ]);
    let config = json!({"apiVersion": "v1", "kind": "Config", "current-context": "x",
        "clusters": [{"name": "x", "cluster": {"server": server}}], "users": [{"name": "x", "user": {"token": "t"}}],
        "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}]});
    fs::write(folder.path().join("config"), config.to_string()).unwrap();
    let output = tiphys(folder.path(), &["doctor", "--kubeconfig", "config", "--output", "json"]);
    let found: Value =
        serde_json::from_str(&stdout(&output)).unwrap_or_else(|_| panic!("{}", stderr(&output)));
    let not_seen: Vec<&str> =
        found["not_seen"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    for (what, why) in [
        (
            "GET /apis/w.example/v1/widgets",
            "conversion webhook for w.example/v1beta1, Kind=Widget failed: refused",
        ),
        ("GET /apis/metrics.k8s.io/v1beta1", "APIService"),
        ("list secrets", "{apiGroups: [\"\"], resources: [secrets], verbs: [list]}"),
        ("log of Pod shop/web, container c, on node n1", "tls: internal error"),
    ] {
        assert!(
            not_seen.iter().any(|line| line.contains(what) && line.contains(why)),
            "{what}: {not_seen:#?}"
        );
    }
}

const WELL: &str = "apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Node, metadata: {name: n1}, status: {conditions: [{type: Ready, status: 'True'}]}}
- apiVersion: v1
  kind: Pod
  metadata: {namespace: shop, name: web}
  spec: {nodeName: n1, containers: [{name: web, image: web}]}
  status: {phase: Running, conditions: [{type: Ready, status: 'True'}], containerStatuses: [{name: web, ready: true, restartCount: 0, state: {running: {}}}]}
";

#[test]
fn exit_codes_tell_well_from_wrong_and_from_blind() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("well.yaml"), WELL).unwrap();
    let well = tiphys(folder.path(), &["doctor", "--from", "well.yaml"]);
    assert_eq!(well.status.code(), Some(0), "{}{}", stdout(&well), stderr(&well));
    assert!(
        stdout(&well).starts_with("Nothing is wrong in what could be seen in well.yaml\n"),
        "{}",
        stdout(&well)
    );
    fs::write(folder.path().join("no.tar.gz"), "no archive").unwrap();
    for args in [
        &["doctor", "--from", "absent"][..],
        &["doctor", "--from", "no.tar.gz"],
        &["doctor", "--kubeconfig", "absent"],
        &["doctor", "--from", "well.yaml", "--watch"],
        &["doctor", "--now", "2026-03-10T09:00:00Z"],
        &["doctor", "--from", "well.yaml", "--save", "well.yaml"],
        &["dump", "--output-folder", "x", "--kubeconfig", "absent"],
    ] {
        let output = tiphys(folder.path(), args);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}{}", stdout(&output), stderr(&output));
    }
}

/// A Deployment whose image is gone, as `kubectl get -o yaml` shows it.
const BROKEN: &str = r#"apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Node
  metadata: {name: n1}
  status: {conditions: [{type: Ready, status: 'True'}]}
- apiVersion: apps/v1
  kind: Deployment
  metadata: {namespace: shop, name: web, uid: d1, creationTimestamp: '2026-03-10T07:00:00Z', annotations: {'argocd.argoproj.io/tracking-id': 'shop:apps/Deployment:shop/web'}}
  spec: {replicas: 1, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: 'registry.example/web:9'}]}}}
  status: {replicas: 1, unavailableReplicas: 1, conditions: [{type: Available, status: 'False', reason: MinimumReplicasUnavailable, lastTransitionTime: '2026-03-10T07:01:00Z'}]}
- apiVersion: apps/v1
  kind: ReplicaSet
  metadata: {namespace: shop, name: web-1, uid: r1, ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: web, uid: d1, controller: true}]}
  spec: {replicas: 1}
  status: {replicas: 1}
- apiVersion: v1
  kind: Pod
  metadata: {namespace: shop, name: web-1-a, uid: p1, labels: {app: web}, creationTimestamp: '2026-03-10T07:00:10Z', ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web-1, uid: r1, controller: true}]}
  spec: {nodeName: n1, containers: [{name: web, image: 'registry.example/web:9'}]}
  status:
    phase: Pending
    conditions: [{type: Ready, status: 'False', lastTransitionTime: '2026-03-10T07:00:10Z'}]
    containerStatuses:
    - name: web
      ready: false
      restartCount: 0
      state: {waiting: {reason: ImagePullBackOff, message: 'Back-off pulling image "registry.example/web:9"'}}
- apiVersion: v1
  kind: Event
  metadata: {namespace: shop, name: e1}
  involvedObject: {apiVersion: v1, kind: Pod, namespace: shop, name: web-1-a, uid: p1}
  type: Warning
  reason: Failed
  message: 'Failed to pull image "registry.example/web:9": failed to resolve reference "registry.example/web:9": registry.example/web:9: not found'
  count: 20
  firstTimestamp: '2026-03-10T07:00:20Z'
  lastTimestamp: '2026-03-10T08:59:00Z'
"#;

#[test]
fn every_form_says_what_is_broken_where_why_and_what_to_do() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("broken.yaml"), BROKEN).unwrap();
    let printed = |form: &str| {
        let output = tiphys(folder.path(), &["doctor", "--from", "broken.yaml", "--output", form]);
        assert_eq!(output.status.code(), Some(1), "{form}: {}{}", stdout(&output), stderr(&output));
        stdout(&output)
    };
    let found: Value = serde_json::from_str(&printed("json")).unwrap();
    let cause = &found["causes"][0];
    assert_eq!(
        (&cause["cause"], &found["now"]),
        (&json!("image/not-found"), &json!("2026-03-10T08:59:00Z")),
        "{found:#}"
    );
    let object = cause["object"]["name"].as_str().unwrap();
    let text = printed("text");
    assert!(text.starts_with("1 cause found in broken.yaml\n"), "{text}");
    let mut rest = text.as_str();
    for part in
        [object, "image/not-found", "what ", "evidence ", "registry.example/web:9: not found", "remedy "]
    {
        let at = rest
            .find(part)
            .unwrap_or_else(|| panic!("{part:?} is missing, or not in its place, in:\n{text}"));
        rest = &rest[at + part.len()..];
    }
    let (markdown, page) = (printed("markdown"), printed("html"));
    assert!(
        markdown.starts_with("## 1 cause found in broken.yaml\n") && markdown.contains("`image/not-found`"),
        "{markdown}"
    );
    assert!(page.contains("<code>image/not-found</code>") && page.contains("</html>"), "{page}");
}

#[test]
fn names_of_others_do_nothing_to_a_terminal_or_a_page() {
    let hostile = "\\u001b[31m</h2><script>alert(1)</script>\\u202e";
    let pod = format!(
        r#"{{"apiVersion": "v1", "kind": "Pod", "metadata": {{"namespace": "shop", "name": "{hostile}", "creationTimestamp": "2026-03-10T07:00:00Z"}},
        "spec": {{"containers": [{{"name": "c", "image": "{hostile}"}}]}}, "status": {{"phase": "Pending", "containerStatuses": [{{"name": "c", "ready": false, "restartCount": 0,
        "state": {{"waiting": {{"reason": "InvalidImageName", "message": "{hostile}"}}}}}}]}}}}"#
    );
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("pod.json"), pod).unwrap();
    for form in ["text", "json", "markdown", "html"] {
        let output = tiphys(folder.path(), &["doctor", "--from", "pod.json", "--output", form]);
        let text = stdout(&output);
        assert_eq!(output.status.code(), Some(1), "{text}{}", stderr(&output));
        assert!(!text.contains('\x1b') && !text.contains('\u{202e}'), "{form}: {text:?}");
        assert!(form == "json" || form == "text" || !text.contains("<script"), "{form}: {text}");
    }
}

/// A kubeconfig of the same cluster in the name of an account.
fn config_as(folder: &Path, user: &str) -> &'static str {
    let text = fs::read_to_string(folder.join("config")).unwrap();
    let mut config: Value = serde_json::from_str(&text).unwrap();
    config["users"][0]["user"]["as"] = user.into();
    fs::write(folder.join("other"), config.to_string()).unwrap();
    "other"
}

#[tokio::test(flavor = "multi_thread")]
async fn rights_that_are_missing_are_named_and_the_role_of_deploy_has_all_but_secrets() {
    let folder = TempDir::new().unwrap();
    let _twin = broken(folder.path()).await;
    let nobody = config_as(folder.path(), "nobody");
    let blind = tiphys(folder.path(), &["doctor", "--kubeconfig", nobody]);
    assert_eq!(blind.status.code(), Some(2), "{}", stdout(&blind));
    assert!(stderr(&blind).contains("cannot look at the cluster at https://"), "{}", stderr(&blind));

    let cluster = Cluster::connect(Some(&folder.path().join("config")), None).await.unwrap().cluster;
    let deploy = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/doctor");
    for file in ["account.yaml", "role.yaml", "bindings.yaml"] {
        let text = fs::read_to_string(deploy.join(file)).unwrap();
        for (_, document) in tiphys_yaml::split_kubernetes_documents(&text).unwrap() {
            let object = tiphys_yaml::from_yaml(document).unwrap();
            if !object.is_null() {
                cluster.create(&object, "test", false).await.unwrap();
            }
        }
    }
    let account = config_as(folder.path(), "system:serviceaccount:tiphys-doctor:tiphys-doctor");
    let output = tiphys(folder.path(), &["doctor", "--kubeconfig", account, "--output", "json"]);
    let found: Value =
        serde_json::from_str(&stdout(&output)).unwrap_or_else(|_| panic!("{}", stderr(&output)));
    let not_seen: Vec<&str> =
        found["not_seen"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    let forbidden: Vec<&&str> = not_seen.iter().filter(|line| line.contains("forbidden")).collect();
    assert_eq!(forbidden.len(), 1, "{not_seen:#?}");
    assert!(
        forbidden[0].contains("{apiGroups: [\"\"], resources: [secrets], verbs: [list]}"),
        "{forbidden:?}"
    );
}

/// A repository with one Deployment, of which a commit changed the image and a later one something else.
fn repository_of_the_image() -> Repo {
    let web = |tag: &str| {
        format!(
            "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\nspec:\n  selector: {{matchLabels: {{app: web}}}}\n  template:\n    metadata: {{labels: {{app: web}}}}\n    spec:\n      containers:\n      - name: web\n        image: registry.example/web:{tag}\n"
        )
    };
    let repo = Repo::shop(&[("manifests/web.yaml", &web("1"))]);
    repo.git_init();
    let commit = |files: &[(&str, String)], time: &str, subject: &str| {
        for (path, text) in files {
            fs::write(repo.path(path), text).unwrap();
        }
        for args in [vec!["add", "."], vec!["commit", "--quiet", "-m", subject]] {
            let identity =
                ["-c", "user.name=Ada", "-c", "user.email=ada@example.com", "-c", "commit.gpgsign=false"];
            let mut git = Command::new("git");
            git.args(identity).args(args).current_dir(repo.path("")).env("GIT_COMMITTER_DATE", time);
            assert!(git.output().unwrap().status.success());
        }
    };
    commit(&[("manifests/web.yaml", web("2"))], "2026-03-10T07:30:00Z", "web: version 2");
    commit(&[("README.md", "x".to_owned())], "2026-03-10T07:31:00Z", "a readme");
    commit(&[("manifests/web.yaml", web("3"))], "2026-03-10T08:31:00Z", "web: version 3");
    repo
}

#[test]
fn a_cause_is_led_back_to_file_line_and_commit() {
    let repo = repository_of_the_image();
    let owner = |kind: &str, name: &str| json!([{"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": "u", "controller": true}]);
    let meta = |name: &str, owners: Value| json!({"namespace": "default", "name": name, "creationTimestamp": "2026-03-10T07:32:00Z", "labels": {"app": "web"}, "ownerReferences": owners});
    let mut deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta("web", json!([])),
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}}, "status": {"replicas": 1, "unavailableReplicas": 1}});
    deployment["metadata"]["annotations"] =
        json!({"argocd.argoproj.io/tracking-id": "shop:apps/Deployment:default/web"});
    let set = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": meta("web-5d", owner("Deployment", "web")), "spec": {"replicas": 1}});
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": meta("web-5d-x", owner("ReplicaSet", "web-5d")),
        "spec": {"containers": [{"name": "web", "image": "registry.example/web:2"}]},
        "status": {"phase": "Pending", "startTime": "2026-03-10T07:32:00Z", "conditions": [{"type": "Ready", "status": "False", "lastTransitionTime": "2026-03-10T07:32:00Z"}],
            "containerStatuses": [{"name": "web", "ready": false, "restartCount": 0, "image": "", "imageID": "",
                "state": {"waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling image \"registry.example/web:2\": ErrImagePull: rpc error: code = NotFound desc = failed to pull and unpack image \"registry.example/web:2\": not found"}}}]}});
    let folder = TempDir::new().unwrap();
    let list = json!({"apiVersion": "v1", "kind": "List", "items": [deployment, set, pod]});
    fs::write(folder.path().join("state.json"), list.to_string()).unwrap();
    let place = repo.path("").display().to_string();
    let args = ["doctor", "--from", "state.json", "--now", "2026-03-10T08:00:00Z", "--repo", &place];
    let text = stdout(&tiphys(folder.path(), &args));
    assert!(text.contains("written   manifests/web.yaml:12 (delivered by Application shop)"), "{text}");
    assert!(text.contains("of Ada: web: version 2, 2026-03-10T07:30:00Z (30m ago)"), "{text}");
    assert!(!text.contains("version 3") && !text.contains("a readme"), "{text}");
}

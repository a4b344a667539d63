//! `tiphys up` as a user runs it.
#![allow(clippy::print_stdout, reason = "tests")]

use std::process::Command;

use crate::common::{Repo, URL, application, config_map};

/// `kubectl` on the cluster of a running `tiphys up`.
fn kubectl(repo: &Repo, args: &[&str]) -> String {
    let config = repo.kubeconfig();
    let output = Command::new("kubectl").args(args).env("KUBECONFIG", config).output().unwrap();
    let text =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "kubectl {args:?}: {text}");
    text
}

/// Whether kubectl is here; in CI it must be.
fn has_kubectl() -> bool {
    let found =
        Command::new("kubectl").args(["version", "--client"]).output().is_ok_and(|o| o.status.success());
    assert!(found || std::env::var("CI").as_deref() != Ok("true"), "kubectl is needed in CI");
    if !found {
        println!("skipped: needs kubectl");
    }
    found
}

fn revision_of(event: &serde_json::Value, app: &str) -> String {
    let apps = event["applications"].as_array().unwrap();
    let found = apps.iter().find(|one| one["name"] == app).unwrap();
    found["revision"].as_str().unwrap().to_owned()
}

#[test]
fn once_brings_an_app_of_apps_up_and_prints_a_table() {
    let repo = Repo::with(&[
        ("root.yaml", &application("root", "apps").replace("namespace: root", "namespace: argocd")),
        ("apps/one.yaml", &application("one", "one")),
        ("apps/two.yaml", &application("two", "two")),
        ("one/a.yaml", &config_map("a", "1")),
        ("two/a.yaml", &config_map("a", "2")),
    ]);
    let run = repo.once(&["--kubeconfig", "config"]);
    run.expect(
        0,
        &[
            "cluster ready in",
            "export KUBECONFIG=",
            "APPLICATION",
            "all 3 Applications are Synced and Healthy",
        ],
    );
    let created = repo.run_dir().join("config");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(std::fs::metadata(&created).unwrap().permissions().mode() & 0o777, 0o600);
    }
}

#[test]
fn json_output_is_one_event_a_line() {
    let repo = Repo::shop(&[("manifests/a.yaml", &config_map("a", "1"))]);
    let run = repo.once(&["--output", "json"]);
    run.expect(0, &[]);
    let events: Vec<serde_json::Value> =
        run.stdout().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let kinds: Vec<&str> = events.iter().map(|event| event["event"].as_str().unwrap()).collect();
    assert!(kinds.contains(&"cluster") && kinds.contains(&"application"), "{kinds:?}");
    let last = events.last().unwrap();
    assert_eq!((last["event"].as_str(), last["green"].as_bool()), (Some("result"), Some(true)));
    assert_eq!(last["applications"][0]["resources"], 1);
}

#[test]
fn a_committed_tree_shows_its_commit_and_target_revisions_do_not_count() {
    let repo = Repo::shop(&[("manifests/a.yaml", &config_map("a", "1"))]);
    repo.write("root.yaml", application("shop", "manifests").replace("HEAD", "release-7"));
    repo.git_init();
    let run = repo.once(&["--output", "json"]);
    run.expect(0, &["whatever targetRevision says (release-7)"]);
    let last: serde_json::Value = serde_json::from_str(run.stdout().lines().last().unwrap()).unwrap();
    let revision = revision_of(&last, "shop");
    assert!(revision.len() == 40, "{revision}");
    repo.write("manifests/a.yaml", config_map("a", "2"));
    let run = repo.once(&["--output", "json"]);
    let last: serde_json::Value = serde_json::from_str(run.stdout().lines().last().unwrap()).unwrap();
    assert!(revision_of(&last, "shop").starts_with(&format!("{revision}+")));
    repo.once(&["--respect-revisions"]).expect(1, &["no branch, tag or commit \"release-7\""]);
}

#[test]
fn edits_are_followed_and_what_leaves_is_pruned() {
    if !has_kubectl() {
        return;
    }
    let repo = Repo::shop(&[
        ("manifests/a.yaml", &config_map("a", "1")),
        ("manifests/b.yaml", &config_map("b", "1")),
    ]);
    let mut running = repo.start(&[]);
    let first = revision_of(&running.until_green(), "shop");
    repo.write("manifests/a.yaml", config_map("a", "two"));
    std::fs::remove_file(repo.path("manifests/b.yaml")).unwrap();
    running.until(|event| {
        event["event"] == "result"
            && event["applications"]
                .as_array()
                .unwrap()
                .iter()
                .all(|app| app["resources"] == 1 && app["revision"] != first.as_str())
    });
    assert_eq!(kubectl(&repo, &["get", "configmap", "a", "-n", "shop", "-o", "jsonpath={.data.key}"]), "two");
    let left = kubectl(&repo, &["get", "configmap", "b", "-n", "shop", "--ignore-not-found"]);
    assert_eq!(left, "");
}

#[test]
fn settings_that_no_application_brings_are_followed() {
    let settings = |health: &str| {
        format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: argocd-cm, namespace: argocd}}\ndata:\n  \
             resource.customizations.health.ConfigMap: \"return {{status = '{health}'}}\"\n"
        )
    };
    let repo = Repo::shop(&[
        ("manifests/a.yaml", &config_map("a", "first")),
        ("config/settings.yaml", &settings("Suspended")),
    ]);
    let mut up = repo.start(&[]);
    let is = |health: &'static str| move |event: &serde_json::Value| event["health"] == health;
    up.until(is("Suspended"));
    repo.write("config/settings.yaml", settings("Degraded"));
    up.until(is("Degraded"));
    std::fs::remove_file(repo.path("config/settings.yaml")).unwrap();
    up.until(is("Healthy"));
}

#[test]
fn edits_are_followed_where_charts_cannot_be_fetched() {
    let repo =
        Repo::shop(&[("manifests/a.yaml", &config_map("a", "1")), ("more/b.yaml", &config_map("b", "1"))]);
    let fetched = application("fetched", "none")
        .replace(URL, "http://127.0.0.1:1/charts")
        .replace("targetRevision: HEAD", "targetRevision: 1.0.0")
        .replace("path: none", "chart: web");
    repo.write("fetched.yaml", fetched);
    let mut up = repo.start(&[]);
    up.until(|event| event["name"] == "fetched" && event["isOutOfReach"] == true);
    repo.write("more.yaml", application("more", "more"));
    up.until(|event| event["name"] == "more" && event["health"] == "Healthy");
}

#[test]
fn what_is_deleted_in_the_cluster_comes_back() {
    if !has_kubectl() {
        return;
    }
    let repo = Repo::shop(&[("manifests/a.yaml", &config_map("a", "1"))]);
    let mut running = repo.start(&[]);
    running.until_green();
    let shown = ["-o", "jsonpath={.metadata.uid}", "--ignore-not-found"];
    let uid = || kubectl(&repo, &[&["get", "configmap", "a", "-n", "shop"], &shown[..]].concat());
    let before = uid();
    kubectl(&repo, &["delete", "configmap", "a", "-n", "shop"]);
    // What it went through in between may have been too short to be told.
    let comes_back = (0..600).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(100));
        let now = uid();
        !now.is_empty() && now != before
    });
    assert!(comes_back, "configmap/a did not come back");
    let columns = kubectl(&repo, &["get", "applications", "-A"]);
    assert!(columns.contains("SYNC STATUS") && columns.contains("HEALTH STATUS"), "{columns}");
}

fn hook_job(wave: u32) -> String {
    format!(
        "apiVersion: batch/v1
kind: Job
metadata:
  name: step-{wave}
  annotations: {{argocd.argoproj.io/hook: PreSync, argocd.argoproj.io/sync-wave: \"{wave}\"}}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{{name: a, image: registry.example.com/a:1}}]
"
    )
}

/// Behaviours of the world: the program of [`hook_job`] runs for one to two seconds. A hook, so that it is
/// there before.
const SLOW_JOBS: &str = "apiVersion: v1
kind: ConfigMap
metadata:
  name: tiphys-world
  namespace: kube-system
  annotations: {argocd.argoproj.io/hook: PreSync, argocd.argoproj.io/sync-wave: \"-1\"}
data:
  jobs: |
    containers: [{image: 'registry.example.com/a*', exits: {code: 0, after: 2s}}]
";

#[test]
fn a_killed_engine_goes_on_with_its_state() {
    let repo = Repo::shop(&[("manifests/a.yaml", &config_map("a", "1"))]);
    // Hooks one after the other that take a while, so that the kill falls between them.
    repo.write("manifests/world.yaml", SLOW_JOBS);
    for wave in 0..3 {
        repo.write(&format!("manifests/job-{wave}.yaml"), hook_job(wave));
    }
    let state = ["--state", "state"];
    let mut running = repo.start(&state);
    running.until(|event| {
        event["event"] == "application" && event["phase"] == "Running" && event["waits"][0]["kind"] == "Hook"
    });
    running.kill();
    let run = repo.once(&["--state", "state", "--output", "json"]);
    run.expect(0, &["\"green\":true"]);
    let mut again = repo.start(&state);
    again.until_green();
    if has_kubectl() {
        let jobs = kubectl(&repo, &["get", "configmap", "a", "-n", "shop", "-o", "jsonpath={.data.key}"]);
        assert_eq!(jobs, "1");
    }
}

#[cfg(unix)]
#[test]
fn an_interrupt_ends_it_with_success() {
    let repo = Repo::shop(&[("manifests/a.yaml", &config_map("a", "1"))]);
    let mut running = repo.start(&[]);
    running.until_green();
    let interrupted = Command::new("kill").args(["-INT", &running.child.id().to_string()]).status().unwrap();
    assert!(interrupted.success());
    assert!(running.child.wait().unwrap().success());
}

#[test]
fn a_repository_of_many_files_is_searched() {
    let repo = Repo::shop(&[("manifests/a.yaml", &config_map("a", "1"))]);
    for folder in 0..50 {
        for file in 0..40 {
            repo.write(&format!("data/{folder}/{file}.yaml"), "a: 1\n");
        }
    }
    repo.once(&[]).expect(0, &["all 1 Applications are Synced and Healthy"]);
}

#[cfg(unix)]
#[test]
fn an_interrupt_under_load_ends_it_with_success() {
    let repo = Repo::with(&[]);
    for app in 0..60 {
        repo.write(
            &format!("apps/{app}.yaml"),
            application(&format!("app-{app}"), &format!("manifests/{app}")),
        );
        for object in 0..20 {
            let name = format!("c{object}");
            repo.write(&format!("manifests/{app}/{object}.yaml"), config_map(&name, "1"));
        }
    }
    let mut running = repo.start(&[]);
    // Everything is under way: some operations run, most have not begun.
    running.until(|event| event["event"] == "application" && event["phase"] == "Running");
    let interrupted = Command::new("kill").args(["-INT", &running.child.id().to_string()]).status().unwrap();
    assert!(interrupted.success());
    assert!(running.child.wait().unwrap().success());
}

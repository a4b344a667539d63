//! What happens when an Application is deleted: PreDelete and PostDelete hooks, and what holds it.

use std::time::Duration;

use tiphys_value::{ObjectExt, Value, json};

use crate::stage::{APPLICATION, CONFIG_MAP, ENGINE, Stage, application, condition, config_map};

const JOB: (&str, &str) = ("batch/v1", "Job");
const PRE: &str = "pre-delete-finalizer.argocd.argoproj.io";
const POST: &str = "post-delete-finalizer.argocd.argoproj.io";

/// A Job that is a hook, with more lines for its Pods' spec.
fn job(name: &str, annotations: &str, more: &str) -> String {
    format!(
        "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: {name}\n  annotations: {{{annotations}}}\nspec:\n  backoffLimit: 0\n  activeDeadlineSeconds: 30\n  ttlSecondsAfterFinished: 0\n  template:\n    spec:\n      restartPolicy: Never\n{more}      containers: [{{name: main, image: busybox, command: [\"true\"]}}]\n"
    )
}

fn finalizers(app: &Value) -> Vec<String> {
    let list = app.at(&["metadata", "finalizers"]).and_then(Value::as_array).cloned().unwrap_or_default();
    list.iter().filter_map(|held| held.as_str().map(str::to_owned)).collect()
}

#[tokio::test(start_paused = true)]
async fn delete_hooks_run_before_and_after_and_go() {
    let late = job(
        "after",
        "argocd.argoproj.io/hook: PostDelete, argocd.argoproj.io/hook-delete-policy: BeforeHookCreation",
        "",
    );
    let stage = Stage::new(&[
        ("app/a.yaml", &config_map("a", "1")),
        ("app/before.yaml", &job("before", "helm.sh/hook: pre-delete", "")),
        ("app/after.yaml", &late),
    ])
    .await;
    stage.apply(application("app", "app")).await;
    let app = stage.until_app("app", |app| finalizers(app).len() == 5).await;
    assert!(
        finalizers(&app).iter().any(|held| held == PRE)
            && finalizers(&app).contains(&format!("{POST}/cleanup"))
    );
    stage.until_green("app").await;
    assert!(stage.list(JOB).await.is_empty(), "no sync runs them");
    stage.delete(APPLICATION, ENGINE, "app").await;
    stage.until_gone(APPLICATION, ENGINE, "app").await;
    assert!(stage.get(CONFIG_MAP, "app", "a").await.is_none());
    stage.until_gone(JOB, "app", "before").await;
    let kept = stage.get(JOB, "app", "after").await;
    // Its policy keeps it, and then its TTL takes it; either way nothing of ours holds it.
    assert!(kept.is_none_or(|job| job.at(&["metadata", "finalizers"]).is_none()));
}

#[tokio::test(start_paused = true)]
async fn a_pre_delete_hook_that_fails_holds_everything_until_it_is_mended() {
    let annotations = "argocd.argoproj.io/hook: PreDelete";
    let nowhere = job("before", annotations, "      nodeSelector: {there: is-none}\n");
    let stage = Stage::new(&[("app/a.yaml", &config_map("a", "1")), ("app/before.yaml", &nowhere)]).await;
    stage.apply(application("app", "app")).await;
    stage.until_green("app").await;
    stage.delete(APPLICATION, ENGINE, "app").await;
    let failed = stage.until_app("app", |app| condition(app, "DeletionError").is_some()).await;
    let message = condition(&failed, "DeletionError").unwrap();
    assert!(message.starts_with("PreDelete hook(s) failed: app/before"), "{message}");
    stage.pass(Duration::from_secs(600)).await;
    assert!(stage.get(CONFIG_MAP, "app", "a").await.is_some_and(|a| !a.is_terminating()));
    stage.write("app/before.yaml", &job("before", annotations, ""));
    stage.until_gone(APPLICATION, ENGINE, "app").await;
    assert!(stage.get(CONFIG_MAP, "app", "a").await.is_none());
}

#[tokio::test(start_paused = true)]
async fn the_finalizers_of_hooks_are_no_drift_to_a_parent_and_go_with_the_hooks() {
    let child = "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata:\n  name: child\n  namespace: argocd\n  finalizers: [resources-finalizer.argocd.argoproj.io]\nspec:\n  project: default\n  source: {repoURL: 'https://git.example.com/acme/shop.git', path: child}\n  destination: {server: 'https://kubernetes.default.svc', namespace: child}\n  syncPolicy: {automated: {prune: true, selfHeal: true}, syncOptions: [CreateNamespace=true]}\n";
    let hook = job("after", "argocd.argoproj.io/hook: PostDelete", "");
    let stage = Stage::new(&[
        ("root/child.yaml", child),
        ("child/a.yaml", &config_map("a", "1")),
        ("child/hook.yaml", &hook),
    ])
    .await;
    stage.apply(application("root", "root")).await;
    stage.until_app("child", |app| finalizers(app).len() == 3).await;
    stage.until_green("root").await;
    stage.pass(Duration::from_secs(1200)).await;
    let root = stage.get(APPLICATION, ENGINE, "root").await.unwrap();
    assert_eq!(root["status"]["sync"]["status"], "Synced");
    assert!(root.at(&["status", "tiphys", "reverted"]).is_none(), "nothing was healed");
    stage.remove("child/hook.yaml");
    stage.until_app("child", |app| finalizers(app).len() == 1).await;
}

#[tokio::test(start_paused = true)]
async fn an_engine_killed_in_the_middle_of_a_deletion_ends_it() {
    let stage_files = [
        ("app/a.yaml", config_map("a", "1")),
        ("app/before.yaml", job("before", "argocd.argoproj.io/hook: PreDelete", "")),
        ("app/after.yaml", job("after", "argocd.argoproj.io/hook: PostDelete", "")),
    ];
    let files: Vec<(&str, &str)> = stage_files.iter().map(|(path, text)| (*path, text.as_str())).collect();
    for moment in 0..6_u64 {
        let mut stage = Stage::new(&files).await;
        stage.apply(application("app", "app")).await;
        stage.until_green("app").await;
        stage.delete(APPLICATION, ENGINE, "app").await;
        stage.pass(Duration::from_millis(1 + 900 * moment)).await;
        stage.kill();
        stage.pass(Duration::from_secs(30)).await;
        stage.start().await;
        stage.until_gone(APPLICATION, ENGINE, "app").await;
        assert!(stage.get(CONFIG_MAP, "app", "a").await.is_none());
    }
}

#[tokio::test(start_paused = true)]
async fn what_holds_a_deletion_is_named() {
    let held = config_map("a", "1").replace("metadata:", "metadata:\n  finalizers: [test.example.com/hold]");
    let stage = Stage::new(&[("app/a.yaml", &held)]).await;
    stage.apply(application("app", "app")).await;
    stage.until_green("app").await;
    stage.delete(APPLICATION, ENGINE, "app").await;
    let waits = stage.until_app("app", |app| condition(app, "Deleting").is_some()).await;
    assert!(condition(&waits, "Deleting").unwrap().contains("test.example.com/hold"));
    stage.patch(CONFIG_MAP, "app", "a", json!({"metadata": {"finalizers": null}})).await;
    stage.until_gone(APPLICATION, ENGINE, "app").await;
}

#[tokio::test(start_paused = true)]
async fn a_project_goes_when_no_application_refers_to_it() {
    const PROJECT: (&str, &str) = ("argoproj.io/v1alpha1", "AppProject");
    let stage = Stage::new(&[("app/a.yaml", &config_map("a", "1"))]).await;
    for name in ["used", "unused"] {
        stage.apply(json!({"apiVersion": PROJECT.0, "kind": PROJECT.1, "metadata": {"name": name, "namespace": ENGINE,
            "finalizers": ["resources-finalizer.argocd.argoproj.io"]},
            "spec": {"sourceRepos": ["*"], "destinations": [{"server": "*", "namespace": "*"}],
                "clusterResourceWhitelist": [{"group": "*", "kind": "*"}]}})).await;
    }
    let mut app = application("app", "app");
    app["spec"]["project"] = "used".into();
    stage.apply(app).await;
    stage.until_green("app").await;
    stage.delete(PROJECT, ENGINE, "used").await;
    stage.delete(PROJECT, ENGINE, "unused").await;
    stage.until_gone(PROJECT, ENGINE, "unused").await;
    stage.pass(Duration::from_secs(60)).await;
    assert!(stage.get(PROJECT, ENGINE, "used").await.is_some_and(|used| used.is_terminating()));
    stage.patch(APPLICATION, ENGINE, "app", json!({"spec": {"project": "default"}})).await;
    stage.until_gone(PROJECT, ENGINE, "used").await;
}

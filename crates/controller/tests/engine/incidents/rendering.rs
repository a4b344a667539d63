//! D and E. Manifests cannot be produced, and what the whole cluster stands on.

use tiphys_value::json;

use super::{HOUR, compat, on_embedded};
use crate::stage::{APPLICATION, CONFIG_MAP, ENGINE, Stage, application, condition, config_map};

on_embedded!(
    d1_what_does_not_render_leaves_the_last_good_state_in_force,
    e1_the_pod_network_is_not_pruned_unconfirmed,
    e1_a_storage_driver_is_not_pruned_unconfirmed,
);

pub(crate) async fn d1_what_does_not_render_leaves_the_last_good_state_in_force() {
    let files = [
        ("app/kustomization.yaml", "resources: [a.yaml]\n"),
        ("app/a.yaml", &*config_map("a", "1")),
        ("outside.yaml", &*config_map("o", "1")),
    ];
    let unguarded = Stage::with(&files, compat).await;
    unguarded.apply(application("app", "app")).await;
    unguarded.until_green("app").await;
    unguarded.write("app/kustomization.yaml", "resources: [a.yaml, ../outside.yaml]\n");
    unguarded.until_app("app", |app| condition(app, "ComparisonError").is_some()).await;
    unguarded.delete(CONFIG_MAP, "app", "a").await;
    unguarded.pass(5 * HOUR).await;
    assert!(unguarded.get(CONFIG_MAP, "app", "a").await.is_none(), "nobody looks after it any more");
    drop(unguarded);

    let stage = Stage::new(&files).await;
    stage.apply(application("app", "app")).await;
    stage.until_green("app").await;
    stage.write("app/kustomization.yaml", "resources: [a.yaml, ../outside.yaml]\n");
    let app = stage.until_app("app", |app| condition(app, "ComparisonError").is_some()).await;
    let told = condition(&app, "ComparisonError").unwrap();
    assert!(told.contains("app/kustomization.yaml") && told.contains("outside.yaml"), "{told}");
    stage.delete(CONFIG_MAP, "app", "a").await;
    stage.until_object(CONFIG_MAP, "app", "a", |_| true).await;
    let app = stage.get(APPLICATION, ENGINE, "app").await.unwrap();
    assert!(condition(&app, "ComparisonError").is_some(), "it still says so");
    stage.write("app/kustomization.yaml", "resources: [a.yaml]\n");
    let app = stage.until_green("app").await;
    assert!(condition(&app, "ComparisonError").is_none());
}

pub(crate) async fn e1_the_pod_network_is_not_pruned_unconfirmed() {
    let agent = "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: net}\nspec:\n  selector: {matchLabels: {app: net}}\n  template:\n    metadata: {labels: {app: net}}\n    spec:\n      containers: [{name: c, image: registry.example.com/net:1}]\n      volumes: [{name: cni, hostPath: {path: /etc/cni/net.d}}]\n";
    let kind = ("apps/v1", "DaemonSet");
    let files = [("app/net.yaml", agent), ("app/a.yaml", &*config_map("a", "1"))];
    let lost = Stage::with(&files, compat).await;
    lost.apply(application("app", "app")).await;
    lost.until_green("app").await;
    lost.remove("app/net.yaml");
    lost.until_gone(kind, "app", "net").await;
    drop(lost);

    let stage = Stage::new(&files).await;
    stage.apply(application("app", "app")).await;
    stage.until_green("app").await;
    stage.remove("app/net.yaml");
    let app = stage.until_app("app", |app| condition(app, "PruneProtected").is_some()).await;
    assert!(condition(&app, "PruneProtected").unwrap().contains("pod network of the cluster"));
    stage.pass(5 * HOUR).await;
    assert!(stage.get(kind, "app", "net").await.is_some());
    let now = tiphys_model::Time::from(stage.now()).to_string();
    stage
        .patch(
            APPLICATION,
            ENGINE,
            "app",
            json!({"metadata": {"annotations": {"argocd.argoproj.io/deletion-approved": now}}}),
        )
        .await;
    stage.until_gone(kind, "app", "net").await;
}

pub(crate) async fn e1_a_storage_driver_is_not_pruned_unconfirmed() {
    let driver = "apiVersion: storage.k8s.io/v1\nkind: CSIDriver\nmetadata: {name: disk.example.com}\nspec: {attachRequired: false}\n";
    let kind = ("storage.k8s.io/v1", "CSIDriver");
    let files = [("app/d.yaml", driver), ("app/a.yaml", &*config_map("a", "1"))];
    for prevents in [false, true] {
        let stage = Stage::with(&files, |settings| {
            if !prevents {
                compat(settings);
            }
        })
        .await;
        stage.apply(application("app", "app")).await;
        stage.until_green("app").await;
        stage.remove("app/d.yaml");
        if !prevents {
            stage.until_gone(kind, "", "disk.example.com").await;
            continue;
        }
        let app = stage.until_app("app", |app| condition(app, "PruneProtected").is_some()).await;
        assert!(condition(&app, "PruneProtected").unwrap().contains("storage driver of the cluster"));
        stage.pass(5 * HOUR).await;
        assert!(stage.get(kind, "", "disk.example.com").await.is_some());
    }
}

//! As whom syncs are made (Argo CD operator manual, "Application Sync using impersonation").

use tiphys_value::{ObjectExt, Value, json};

use crate::stage::{APPLICATION, CONFIG_MAP, ENGINE, Stage, URL, application, config_map, message, phase};

const BINDING: (&str, &str) = ("rbac.authorization.k8s.io/v1", "RoleBinding");

async fn impersonating(accounts: Value) -> Stage {
    let stage = Stage::with(&[("app/a.yaml", &config_map("a", "1"))], |settings| {
        settings.destinations = tiphys_controller::Destinations::InCluster;
    })
    .await;
    stage.namespace("app").await;
    stage.apply(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "argocd-cm", "namespace": ENGINE},
        "data": {"application.sync.impersonation.enabled": "true"}})).await;
    stage.apply(json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject", "metadata": {"name": "team", "namespace": ENGINE},
        "spec": {"sourceRepos": [URL], "destinations": [{"server": "*", "namespace": "app"}],
            "destinationServiceAccounts": accounts}})).await;
    stage
}

fn manual() -> Value {
    let mut app = application("app", "app");
    app["spec"]["project"] = "team".into();
    app["spec"]["syncPolicy"] = json!({});
    app
}

#[tokio::test(start_paused = true)]
async fn syncs_and_deletions_are_made_as_the_service_account_of_the_project() {
    let account = json!([{"server": "*", "namespace": "app", "defaultServiceAccount": "deployer"}]);
    let stage = impersonating(account).await;
    stage.apply(manual()).await;
    stage.until_app("app", |app| app.str_at(&["status", "sync", "status"]) == Some("OutOfSync")).await;
    stage
        .patch(("argoproj.io/v1alpha1", "Application"), ENGINE, "app", json!({"operation": {"sync": {}}}))
        .await;
    let failed = stage.until_app("app", |app| phase(app) == "Failed").await;
    assert!(failed.to_string().contains("system:serviceaccount:app:deployer"), "{}", message(&failed));
    assert!(stage.get(CONFIG_MAP, "app", "a").await.is_none());

    stage.apply(json!({"apiVersion": BINDING.0, "kind": "Role", "metadata": {"name": "deploy", "namespace": "app"},
        "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["*"]}]})).await;
    stage.apply(json!({"apiVersion": BINDING.0, "kind": BINDING.1, "metadata": {"name": "deploy", "namespace": "app"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "deploy"},
        "subjects": [{"kind": "ServiceAccount", "name": "deployer", "namespace": "app"}]})).await;
    stage
        .patch(("argoproj.io/v1alpha1", "Application"), ENGINE, "app", json!({"operation": {"sync": {}}}))
        .await;
    stage.until_app("app", |app| phase(app) == "Succeeded").await;
    assert!(stage.get(CONFIG_MAP, "app", "a").await.is_some());

    stage.delete(BINDING, "app", "deploy").await;
    stage.delete(("argoproj.io/v1alpha1", "Application"), ENGINE, "app").await;
    let held = stage.until_app("app", |app| crate::stage::condition(app, "DeletionError").is_some()).await;
    assert!(held.to_string().contains("system:serviceaccount:app:deployer"));
    assert!(stage.get(CONFIG_MAP, "app", "a").await.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_project_that_names_no_service_account_syncs_nothing() {
    let stage = impersonating(json!([])).await;
    stage.apply(manual()).await;
    stage.until_app("app", |app| app.str_at(&["status", "sync", "status"]) == Some("OutOfSync")).await;
    stage
        .patch(("argoproj.io/v1alpha1", "Application"), ENGINE, "app", json!({"operation": {"sync": {}}}))
        .await;
    let failed = stage.until_app("app", |app| phase(app) == "Error").await;
    assert!(message(&failed).contains("no matching service account"), "{}", message(&failed));
    assert!(stage.get(CONFIG_MAP, "app", "a").await.is_none());
    // What cannot be synced can be deleted.
    let cascading = json!({"metadata": {"finalizers": ["resources-finalizer.argocd.argoproj.io"]}});
    stage.patch(APPLICATION, ENGINE, "app", cascading).await;
    stage.delete(APPLICATION, ENGINE, "app").await;
    stage.until_gone(APPLICATION, ENGINE, "app").await;
}

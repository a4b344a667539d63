//! Operations that people ask for through the API object, and what becomes of them.

use std::time::Duration;

use tiphys_value::{ObjectExt, Value, json};

use crate::stage::{
    APPLICATION, CONFIG_MAP, ENGINE, Stage, application, condition, config_map, message, phase,
};
use tiphys_stage::request_faults::RequestFault;

const JOB: (&str, &str) = ("batch/v1", "Job");

/// An Application that syncs only when asked.
fn manual(name: &str, path: &str) -> Value {
    let mut app = application(name, path);
    app["spec"]["syncPolicy"] = json!({"syncOptions": ["CreateNamespace=true"]});
    app
}

async fn ask(stage: &Stage, operation: Value) -> Value {
    stage.patch(APPLICATION, ENGINE, "app", json!({"operation": operation})).await;
    let done =
        |app: &Value| app.get("operation").is_none() && !matches!(phase(app), "" | "Running" | "Terminating");
    stage.until_app("app", done).await
}

#[tokio::test(start_paused = true)]
async fn a_sync_is_asked_for_by_patch_whole_selective_and_dry() {
    let stage =
        Stage::new(&[("app/a.yaml", &config_map("a", "1")), ("app/b.yaml", &config_map("b", "1"))]).await;
    stage.apply(manual("app", "app")).await;
    stage.until_app("app", |app| app["status"]["sync"]["status"] == "OutOfSync").await;
    stage.pass(Duration::from_secs(600)).await;
    assert!(stage.get(CONFIG_MAP, "app", "a").await.is_none());
    let dry = ask(&stage, json!({"sync": {"dryRun": true}})).await;
    assert_eq!(phase(&dry), "Succeeded", "{}", message(&dry));
    assert!(stage.get(CONFIG_MAP, "app", "a").await.is_none());
    stage.apply(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "app"}})).await;
    let one = ask(&stage, json!({"sync": {"resources": [{"kind": "ConfigMap", "name": "a"}]}})).await;
    assert_eq!(phase(&one), "Succeeded", "{}", message(&one));
    assert!(stage.get(CONFIG_MAP, "app", "a").await.is_some());
    assert!(stage.get(CONFIG_MAP, "app", "b").await.is_none());
    assert!(one["status"].get("history").is_none(), "a selective sync leaves no history");
    let all = ask(&stage, json!({"sync": {}, "initiatedBy": {"username": "alice"}})).await;
    assert_eq!(all["status"]["history"][0]["initiatedBy"]["username"], "alice");
    assert!(stage.get(CONFIG_MAP, "app", "b").await.is_some());
    stage.remove("app/b.yaml");
    stage.until_app("app", |app| app["status"]["sync"]["status"] == "OutOfSync").await;
    let kept = ask(&stage, json!({"sync": {}})).await;
    assert!(kept["status"]["operationState"]["syncResult"]["resources"].to_string().contains("PruneSkipped"));
    ask(&stage, json!({"sync": {"prune": true}})).await;
    assert!(stage.get(CONFIG_MAP, "app", "b").await.is_none());
}

#[tokio::test(start_paused = true)]
async fn an_operation_brings_manifests_of_its_own_and_no_revision_that_cannot_be_had() {
    let stage = Stage::new(&[("app/a.yaml", &config_map("a", "1"))]).await;
    let mut app = manual("app", "app");
    app["spec"]["source"]["targetRevision"] = "main".into();
    stage.apply(app).await;
    stage.until_app("app", |app| app["status"]["sync"]["status"] == "OutOfSync").await;
    let given =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "given"}, "data": {"k": "v"}});
    let done = ask(&stage, json!({"sync": {"manifests": [given.to_string()]}})).await;
    assert_eq!(phase(&done), "Succeeded", "{}", message(&done));
    let given = stage.get(CONFIG_MAP, "app", "given").await.expect("synced");
    assert_eq!(given.annotation("argocd.argoproj.io/tracking-id"), Some("app:/ConfigMap:app/given"));
    assert!(stage.get(CONFIG_MAP, "app", "a").await.is_none(), "the sources did not count");
    assert!(done["status"].get("history").is_none(), "nobody can go back to it");
    let odd = ask(&stage, json!({"sync": {"manifests": ["kind: [\n"]}})).await;
    assert_eq!(phase(&odd), "Error");
    assert!(message(&odd).contains("manifest 1 of the operation"), "{}", message(&odd));
    // The sources count again, and the revision is named as what it turned out to be.
    let named = ask(&stage, json!({"sync": {"revision": "main"}})).await;
    assert_eq!(phase(&named), "Succeeded", "{}", message(&named));
    assert!(stage.get(CONFIG_MAP, "app", "a").await.is_some());
    let result = |app: &Value| app.pointer("/status/operationState/syncResult/revision").cloned();
    assert_eq!(result(&named).as_ref(), named.pointer("/status/sync/revision"));
    let old = ask(&stage, json!({"sync": {"revision": "0123456789012345678901234567890123456789"}})).await;
    assert_eq!(phase(&old), "Error");
    assert!(message(&old).contains("revision 0123456789012345678901234567890123456789"), "{}", message(&old));
    assert!(message(&old).contains("as it is in the working tree"), "{}", message(&old));
}

#[tokio::test(start_paused = true)]
async fn a_sync_of_a_working_tree_that_does_not_render_fails_and_leaves_the_cluster_alone() {
    let stage = Stage::new(&[("app/a.yaml", &config_map("a", "1"))]).await;
    let mut app = application("app", "app");
    app["spec"]["syncPolicy"]["automated"]["selfHeal"] = false.into();
    stage.apply(app).await;
    stage.until_green("app").await;
    stage.write("app/kustomization.yaml", "resources: [none.yaml]\n");
    stage.until_app("app", |app| condition(app, "ComparisonError").is_some()).await;
    stage.patch(CONFIG_MAP, "app", "a", json!({"data": {"key": "by hand"}})).await;
    for asked in
        [json!({"sync": {}}), json!({"sync": {"revision": "HEAD"}}), json!({"sync": {"dryRun": true}})]
    {
        let failed = ask(&stage, asked).await;
        assert_eq!(phase(&failed), "Error", "{}", message(&failed));
        assert!(message(&failed).contains("none.yaml"), "{}", message(&failed));
        stage.pass(Duration::from_secs(3600)).await;
        assert_eq!(stage.get(CONFIG_MAP, "app", "a").await.unwrap()["data"]["key"], "by hand");
    }
    stage.remove("app/kustomization.yaml");
    let done = ask(&stage, json!({"sync": {}})).await;
    assert_eq!(phase(&done), "Succeeded", "{}", message(&done));
    assert_eq!(stage.get(CONFIG_MAP, "app", "a").await.unwrap()["data"]["key"], "1");
}

/// Whoever waits for the end of an operation reads with it what the operation has brought about.
#[tokio::test(start_paused = true)]
async fn the_end_of_an_operation_comes_with_the_state_that_it_wrote() {
    let stage = Stage::new(&[("app/a.yaml", &config_map("a", "1"))]).await;
    // Between two writings of the status hours pass.
    stage.faults.plan(|method, path, _| {
        let is_status = method == "PATCH" && path.contains("/applications/app");
        is_status.then_some(RequestFault::Late(Duration::from_secs(3600)))
    });
    stage.apply(application("app", "app")).await;
    let app = stage.until_app("app", |app| phase(app) == "Succeeded").await;
    assert_eq!(app["status"]["sync"]["status"], "Synced");
    assert_eq!(app["status"]["health"]["status"], "Healthy");
    assert_eq!(app["status"]["resources"][0]["status"], "Synced");
    let results = app.pointer("/status/operationState/syncResult/resources").unwrap().as_array().unwrap();
    assert_eq!(results.len(), 2, "the namespace and the object");
    assert!(results.iter().all(|result| result["hookPhase"] == "Succeeded"), "{results:?}");
}

#[tokio::test(start_paused = true)]
async fn what_is_asked_for_while_an_operation_is_at_work_comes_after_it() {
    let stage = Stage::new(&[("app/a.yaml", &config_map("a", "1"))]).await;
    stage.apply(manual("app", "app")).await;
    stage.until_app("app", |app| app["status"]["sync"]["status"] == "OutOfSync").await;
    stage.faults.plan(|method, path, _| {
        let applies = method == "PATCH" && path.contains("/configmaps/a") && !path.contains("dryRun");
        applies.then_some(RequestFault::Late(Duration::from_secs(60)))
    });
    stage.patch(APPLICATION, ENGINE, "app", json!({"operation": {"sync": {}}})).await;
    stage.until_object(CONFIG_MAP, "app", "a", |_| true).await;
    let second = json!({"operation": {"sync": {"dryRun": true}, "initiatedBy": {"username": "bob"}}});
    stage.patch(APPLICATION, ENGINE, "app", second).await;
    let by = |app: &Value| app.pointer("/status/operationState/operation/initiatedBy/username").cloned();
    let done = stage.until_app("app", |app| by(app) == Some("bob".into()) && phase(app) == "Succeeded").await;
    assert_eq!(done["status"]["history"].as_array().map(Vec::len), Some(1), "the first one was done, too");
}

#[tokio::test(start_paused = true)]
async fn a_refresh_is_served_once_and_taken_away() {
    let stage = Stage::new(&[("app/a.yaml", &config_map("a", "1"))]).await;
    stage.apply(application("app", "app")).await;
    let before = stage.until_green("app").await;
    stage.pass(Duration::from_secs(60)).await;
    for kind in ["normal", "hard"] {
        stage
            .patch(
                APPLICATION,
                ENGINE,
                "app",
                json!({"metadata": {"annotations": {"argocd.argoproj.io/refresh": kind}}}),
            )
            .await;
        let after =
            stage.until_app("app", |app| app.annotation("argocd.argoproj.io/refresh").is_none()).await;
        assert_ne!(after["status"]["reconciledAt"], before["status"]["reconciledAt"]);
    }
}

#[tokio::test(start_paused = true)]
async fn an_operation_is_followed_by_a_look_though_it_changes_nothing() {
    let stage = Stage::new(&[("app/a.yaml", &config_map("a", "1"))]).await;
    stage.apply(application("app", "app")).await;
    stage.until_green("app").await;
    stage.pass(Duration::from_secs(60)).await;
    stage.patch(APPLICATION, ENGINE, "app", json!({"operation": {"sync": {}}})).await;
    // Argo CD's command line waits for this; both are texts of one form.
    let looked = |app: &Value| {
        let time = |path: &str| app.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
        let ended = time("/status/operationState/finishedAt");
        app.get("operation").is_none() && !ended.is_empty() && time("/status/reconciledAt") >= ended
    };
    stage
        .until_app("app", |app| looked(app) && app["status"]["history"].as_array().map(Vec::len) == Some(2))
        .await;
}

/// An Application whose operation waits for a claim that nothing binds, asked for or automated.
async fn waiting(automated: bool) -> Stage {
    let claim = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: p}\nspec:\n  storageClassName: none\n  accessModes: [ReadWriteOnce]\n  resources: {requests: {storage: 1Gi}}\n";
    let late = config_map("late", "1")
        .replace("name: late", "name: late\n  annotations: {argocd.argoproj.io/sync-wave: '1'}");
    let stage = Stage::new(&[("app/claim.yaml", claim), ("app/late.yaml", &late)]).await;
    stage.apply(if automated { application("app", "app") } else { manual("app", "app") }).await;
    if !automated {
        stage
            .patch(
                APPLICATION,
                ENGINE,
                "app",
                json!({"operation": {"sync": {"prune": true}, "retry": {"limit": 5}}}),
            )
            .await;
    }
    stage.until_app("app", |app| message(app).starts_with("waiting for healthy state")).await;
    stage
}

#[tokio::test(start_paused = true)]
async fn the_request_stays_until_the_operation_ends() {
    let stage = waiting(true).await;
    let app = stage.get(APPLICATION, ENGINE, "app").await.unwrap();
    assert_eq!(app.pointer("/operation/initiatedBy/automated"), Some(&json!(true)));
    assert_eq!(app["operation"], app["status"]["operationState"]["operation"]);
    stage.patch(APPLICATION, ENGINE, "app", json!({"spec": {"syncPolicy": {"automated": null}}})).await;
    stage
        .patch(APPLICATION, ENGINE, "app", json!({"status": {"operationState": {"phase": "Terminating"}}}))
        .await;
    let ended = stage.until_app("app", |app| phase(app) == "Failed").await;
    assert_eq!(ended.get("operation"), None);
    // The same once more is another operation.
    stage.patch(APPLICATION, ENGINE, "app", json!({"operation": app["operation"]})).await;
    stage.until_app("app", |app| phase(app) == "Running").await;
}

#[tokio::test(start_paused = true)]
async fn whose_request_is_taken_away_is_terminated() {
    let stage = waiting(false).await;
    stage.patch(APPLICATION, ENGINE, "app", json!({"operation": null})).await;
    let ended = stage.until_app("app", |app| phase(app) == "Failed").await;
    assert_eq!((message(&ended), ended.get("operation")), ("Operation terminated", None));
}

#[tokio::test(start_paused = true)]
async fn whose_state_is_taken_away_does_not_begin_again() {
    let stage = waiting(false).await;
    stage.patch(APPLICATION, ENGINE, "app", json!({"status": {"operationState": null}})).await;
    stage.until_app("app", |app| app.get("operation").is_none() && phase(app).is_empty()).await;
    stage.pass(Duration::from_secs(600)).await;
    assert_eq!(phase(&stage.get(APPLICATION, ENGINE, "app").await.unwrap()), "");
}

#[tokio::test(start_paused = true)]
async fn v25_a_terminated_operation_ends_and_is_not_repeated() {
    let stage = waiting(false).await;
    stage
        .patch(APPLICATION, ENGINE, "app", json!({"status": {"operationState": {"phase": "Terminating"}}}))
        .await;
    let ended = stage.until_app("app", |app| phase(app) == "Failed").await;
    assert_eq!(message(&ended), "Operation terminated");
    stage.pass(Duration::from_secs(3600)).await;
    assert!(stage.get(CONFIG_MAP, "app", "late").await.is_none());
}

/// A Job that is a hook: one that succeeds, or one whose Pod no node takes and that fails after half a
/// minute.
fn hook(name: &str, annotations: &str, succeeds: bool) -> String {
    let nowhere = if succeeds { "" } else { "      nodeSelector: {there: is-none}\n" };
    format!(
        "apiVersion: batch/v1\nkind: Job\nmetadata:\n  {name}\n  annotations: {{{annotations}}}\nspec:\n  backoffLimit: 0\n  activeDeadlineSeconds: 30\n  template:\n    spec:\n      restartPolicy: Never\n{nowhere}      containers: [{{name: main, image: busybox, command: ['true']}}]\n"
    )
}

#[tokio::test(start_paused = true)]
async fn hooks_go_when_their_policies_say() {
    let pre = hook(
        "generateName: pre-",
        "helm.sh/hook: pre-install, helm.sh/hook-delete-policy: hook-succeeded",
        true,
    );
    let post = hook("name: post", "argocd.argoproj.io/hook: PostSync", true);
    let stage = Stage::new(&[
        ("app/a.yaml", &config_map("a", "1")),
        ("app/pre.yaml", &pre),
        ("app/post.yaml", &post),
    ])
    .await;
    stage.apply(manual("app", "app")).await;
    let done = ask(&stage, json!({"sync": {}})).await;
    assert_eq!(phase(&done), "Succeeded", "{}", message(&done));
    let names =
        async || -> Vec<String> { stage.list(JOB).await.iter().map(|job| job.name().to_owned()).collect() };
    stage.until("the hook to go", async || (names().await == ["post"]).then_some(())).await;
    let policy = "argocd.argoproj.io/hook: PostSync, argocd.argoproj.io/hook-delete-policy: HookFailed";
    stage.write("app/post.yaml", &hook("name: post", policy, false));
    let failed = ask(&stage, json!({"sync": {}})).await;
    assert_eq!(phase(&failed), "Failed", "{}", message(&failed));
    stage
        .until("the hook to go", async || {
            names().await.iter().all(|name| name.starts_with("pre-")).then_some(())
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_termination_takes_the_hook_that_runs_along() {
    let late = hook("name: pre", "argocd.argoproj.io/hook: PreSync", false);
    let stage = Stage::new(&[("app/a.yaml", &config_map("a", "1")), ("app/pre.yaml", &late)]).await;
    stage.apply(manual("app", "app")).await;
    stage.patch(APPLICATION, ENGINE, "app", json!({"operation": {"sync": {}}})).await;
    stage.until_object(JOB, "app", "pre", |_| true).await;
    stage
        .patch(APPLICATION, ENGINE, "app", json!({"status": {"operationState": {"phase": "Terminating"}}}))
        .await;
    let ended = stage.until_app("app", |app| phase(app) == "Failed").await;
    assert_eq!(message(&ended), "Operation terminated");
    stage.until_gone(JOB, "app", "pre").await;
    assert!(stage.get(CONFIG_MAP, "app", "a").await.is_none());
}

const KEPT_CLAIM: &str = "apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: data
  annotations: {argocd.argoproj.io/sync-options: Delete=false, argocd.argoproj.io/ignore-healthcheck: 'true'}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
";

const DEFINITION: &str = "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: tools.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: tools, singular: tool, kind: Tool}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
";

#[tokio::test(start_paused = true)]
async fn v22_a_deleted_application_takes_its_objects_along_wave_by_wave() {
    let wave = |name: &str, wave: &str, more: &str| {
        config_map(name, "1").replace(
            &format!("name: {name}"),
            &format!("name: {name}\n  annotations: {{argocd.argoproj.io/sync-wave: '{wave}'{more}}}"),
        )
    };
    let held =
        wave("second", "2", "").replace("metadata:", "metadata:\n  finalizers: [test.example.com/hold]");
    let files = [
        ("app/first.yaml", wave("first", "1", "")),
        ("app/second.yaml", held),
        ("app/kept.yaml", wave("kept", "3", ", argocd.argoproj.io/sync-options: Delete=false")),
        ("app/data.yaml", KEPT_CLAIM.to_owned()),
        ("app/definition.yaml", DEFINITION.to_owned()),
    ];
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
    let stage = Stage::new(&files).await;
    stage.apply(application("app", "app")).await;
    stage.until_green("app").await;
    stage.delete(APPLICATION, ENGINE, "app").await;
    stage.until_object(CONFIG_MAP, "app", "second", ObjectExt::is_terminating).await;
    stage.pass(Duration::from_secs(600)).await;
    assert!(stage.get(CONFIG_MAP, "app", "first").await.is_some_and(|first| !first.is_terminating()));
    stage.patch(CONFIG_MAP, "app", "second", json!({"metadata": {"finalizers": null}})).await;
    stage.until_gone(APPLICATION, ENGINE, "app").await;
    assert!(stage.get(CONFIG_MAP, "app", "first").await.is_none());
    assert!(stage.get(CONFIG_MAP, "app", "kept").await.is_some());
    let claim = stage.get(("v1", "PersistentVolumeClaim"), "app", "data").await;
    assert!(claim.is_some_and(|claim| !claim.is_terminating()));
    let definitions = ("apiextensions.k8s.io/v1", "CustomResourceDefinition");
    let definition = stage.get(definitions, "", "tools.example.com").await;
    assert!(definition.is_some_and(|definition| !definition.is_terminating()));
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_waits_for_its_first_consumer_holds_no_wave() {
    let claim = KEPT_CLAIM.replace("name: data", "name: claim");
    let user = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: user\n  annotations: {argocd.argoproj.io/sync-wave: '1'}\nspec:\n  containers: [{name: c, image: nginx}]\n  volumes: [{name: v, persistentVolumeClaim: {claimName: claim}}]\n";
    let later = config_map("later", "1")
        .replace("name: later", "name: later\n  annotations: {argocd.argoproj.io/sync-wave: '2'}");
    let files = [("app/claim.yaml", &*claim), ("app/pod.yaml", user), ("app/later.yaml", &*later)];
    let stage = Stage::new(&files).await;
    stage.apply(application("app", "app")).await;
    let app = stage.until_app("app", |app| phase(app) == "Succeeded").await;
    assert!(stage.get(CONFIG_MAP, "app", "later").await.is_some(), "{app}");
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_the_project_refuses_is_unknown_and_fails_the_sync() {
    let stage = Stage::new(&[
        ("app/a.yaml", &config_map("a", "1")),
        ("app/s.yaml", "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n"),
    ])
    .await;
    stage.apply(json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject", "metadata": {"name": "team", "namespace": ENGINE},
        "spec": {"sourceRepos": ["*"], "destinations": [{"server": "*", "namespace": "*"}], "clusterResourceWhitelist": [{"group": "*", "kind": "*"}],
            "namespaceResourceBlacklist": [{"group": "", "kind": "Secret"}]}})).await;
    let mut app = manual("app", "app");
    app["spec"]["project"] = "team".into();
    stage.apply(app).await;
    let seen = stage.until_app("app", |app| app.at(&["status", "resources"]).is_some()).await;
    let secret =
        seen["status"]["resources"].as_array().unwrap().iter().find(|r| r["kind"] == "Secret").unwrap();
    assert_eq!(secret["status"], "Unknown");
    let failed = ask(&stage, json!({"sync": {}})).await;
    assert!(
        message(&failed).contains("resource :Secret is not permitted in project team"),
        "{}",
        message(&failed)
    );
    assert!(stage.get(CONFIG_MAP, "app", "a").await.is_none());
    assert!(condition(&failed, "InvalidSpecError").is_none());
}

#[tokio::test(start_paused = true)]
async fn an_engine_killed_at_any_step_converges() {
    let files: Vec<(String, String)> = (0..4)
        .map(|wave| {
            let name = format!("w{wave}");
            let text = config_map(&name, "1").replace(
                &format!("name: {name}"),
                &format!("name: {name}\n  annotations: {{argocd.argoproj.io/sync-wave: '{wave}'}}"),
            );
            (format!("app/{name}.yaml"), text)
        })
        .collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    for kills in 1..6_u64 {
        let mut stage =
            Stage::with(&files, |settings| settings.sync.wave_delay = Duration::from_secs(2)).await;
        stage.apply(application("app", "app")).await;
        for _ in 0..kills {
            stage.pass(Duration::from_millis(700 * kills)).await;
            stage.kill();
            stage.start().await;
        }
        let app = stage.until_green("app").await;
        assert_eq!(stage.names(CONFIG_MAP, "app").await, ["kube-root-ca.crt", "w0", "w1", "w2", "w3"]);
        assert_eq!(app["status"]["history"].as_array().map(Vec::len), Some(1));
    }
}

//! A. Operations that never end.

use std::time::Duration;

use tiphys_controller::Settings;
use tiphys_value::{Value, json};

use super::{HOUR, compat, definition, in_wave, on_embedded, parent, quick, yaml};
use crate::stage::{
    APPLICATION, CONFIG_MAP, ENGINE, Stage, application, condition, config_map, message, phase, stage_is_real,
};

on_embedded!(
    a1_an_application_among_its_own_objects,
    a1_a_chain_of_applications_that_leads_back,
    a2_a_deletion_that_a_finalizer_holds_for_ever,
    a2_a_wait_for_a_deletion_names_who_holds_it_and_since_and_until_when,
    a2_a_wait_for_a_deletion_ends,
    a3_an_operation_that_only_waits_gives_way,
    a4_a_project_of_a_later_wave_is_not_waited_for,
    a4_what_another_application_blocks_is_given_up,
    a4_what_another_application_blocks_resumes_by_itself,
);

/// A ConfigMap in a wave of its own.
fn late(name: &str) -> String {
    let annotated = format!("name: {name}\n  annotations: {{argocd.argoproj.io/sync-wave: '1'}}");
    config_map(name, "1").replace(&format!("name: {name}"), &annotated)
}

pub(crate) async fn a1_an_application_among_its_own_objects() {
    let root = in_wave(parent("root", "apps"), "0");
    let files = [
        ("apps/root.yaml", yaml(&root)),
        ("apps/late.yaml", yaml(&in_wave(application("late", "late"), "5"))),
        ("late/a.yaml", config_map("a", "1")),
    ];
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
    let stuck = Stage::with(&files, compat).await;
    stuck.apply(root.clone()).await;
    stuck
        .until_app("root", |app| {
            message(app).starts_with("waiting for healthy state of argoproj.io/Application/root")
        })
        .await;
    stuck.pass(9 * HOUR).await;
    let app = stuck.get(APPLICATION, ENGINE, "root").await.unwrap();
    assert_eq!(phase(&app), "Running");
    assert!(stuck.get(APPLICATION, ENGINE, "late").await.is_none());
    drop(stuck);

    let stage = Stage::new(&files).await;
    stage.apply(root).await;
    stage.until_green("late").await;
    let app = stage.until_green("root").await;
    assert!(condition(&app, "SelfManaged").is_some());
}

pub(crate) async fn a1_a_chain_of_applications_that_leads_back() {
    let root = in_wave(parent("root", "root"), "0");
    let files = [
        ("root/mid.yaml", yaml(&in_wave(parent("mid", "mid"), "1"))),
        ("root/late.yaml", yaml(&in_wave(application("late", "late"), "5"))),
        ("mid/deep.yaml", yaml(&in_wave(parent("deep", "deep"), "0"))),
        (
            "mid/x.yaml",
            config_map("inner", "1")
                .replace("name: inner", "name: inner\n  annotations: {argocd.argoproj.io/sync-wave: '3'}"),
        ),
        ("deep/root.yaml", yaml(&root)),
        (
            "deep/y.yaml",
            config_map("deepest", "1").replace(
                "name: deepest",
                "name: deepest\n  annotations: {argocd.argoproj.io/sync-wave: '3'}",
            ),
        ),
        ("late/a.yaml", config_map("a", "1")),
    ];
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
    let mut set_free = root.clone();
    set_free["spec"]["syncPolicy"]["automated"]["prune"] = false.into();
    let stuck = Stage::with(&files, compat).await;
    stuck.apply(set_free.clone()).await;
    for (waits, awaited) in [("root", "mid"), ("mid", "deep"), ("deep", "root")] {
        let text = format!("waiting for healthy state of argoproj.io/Application/{awaited}");
        stuck.until_app(waits, |app| message(app).starts_with(&text)).await;
    }
    stuck.pass(9 * HOUR).await;
    assert!(stuck.get(APPLICATION, ENGINE, "late").await.is_none());
    drop(stuck);

    let stage = Stage::new(&files).await;
    stage.apply(set_free).await;
    stage.until_green("late").await;
    stage.until_object(CONFIG_MAP, ENGINE, "inner", |_| true).await;
    stage.until_object(CONFIG_MAP, ENGINE, "deepest", |_| true).await;
    stage.until_app("root", |app| phase(app) == "Succeeded").await;
}

const HELD: &str =
    "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: held\n  finalizers: [operator.example.com/gone]\n";

/// An Application of a held object and of one in a later wave; then the held one is removed.
async fn pruning_what_is_held(change: impl FnOnce(&mut Settings)) -> Stage {
    let files = [("app/held.yaml", HELD), ("app/b.yaml", &*late("b"))];
    let stage = Stage::with(&files, change).await;
    stage.apply(application("app", "app")).await;
    stage.until_green("app").await;
    stage.remove("app/held.yaml");
    stage
}

pub(crate) async fn a2_a_deletion_that_a_finalizer_holds_for_ever() {
    let stuck = pruning_what_is_held(compat).await;
    stuck.until_app("app", |app| message(app).starts_with("waiting for deletion of /ConfigMap/held")).await;
    stuck.pass(9 * HOUR).await;
    let app = stuck.get(APPLICATION, ENGINE, "app").await.unwrap();
    assert_eq!(phase(&app), "Running");
}

pub(crate) async fn a2_a_wait_for_a_deletion_names_who_holds_it_and_since_and_until_when() {
    let stage = pruning_what_is_held(|_| {}).await;
    let app = stage.until_app("app", |app| message(app).starts_with("waiting for deletion")).await;
    let wait = &app["status"]["operationState"]["tiphys"]["waits"][0];
    // Where no garbage collector runs its finalizer is there too.
    let cause = wait["cause"].as_str().unwrap();
    assert!(cause.starts_with("held by finalizers operator.example.com/gone"), "{cause}");
    assert!(wait["since"].is_string() && wait["deadline"].is_string());
}

pub(crate) async fn a2_a_wait_for_a_deletion_ends() {
    let stage = pruning_what_is_held(|settings| {
        if stage_is_real() {
            settings.sync.deletion_deadline = Duration::from_secs(5);
        }
    })
    .await;
    let ended = stage.until_app("app", |app| message(app).contains("gave up waiting for deletion")).await;
    assert!(message(&ended).contains("operator.example.com/gone"), "{}", message(&ended));
}

pub(crate) async fn a3_an_operation_that_only_waits_gives_way() {
    let claim = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: p}\nspec:\n  storageClassName: none\n  accessModes: [ReadWriteOnce]\n  resources: {requests: {storage: 1Gi}}\n";
    let files = [("app/claim.yaml", claim), ("app/late.yaml", &*late("late"))];
    let is_waiting =
        |app: &Value| phase(app) == "Running" && message(app).starts_with("waiting for healthy state");
    let stuck = Stage::with(&files, compat).await;
    stuck.apply(application("app", "app")).await;
    stuck.until_app("app", is_waiting).await;
    stuck.remove("app/claim.yaml");
    stuck.pass(9 * HOUR).await;
    assert!(stuck.get(CONFIG_MAP, "app", "late").await.is_none(), "the stale operation blocks the repair");
    drop(stuck);

    let stage = Stage::new(&files).await;
    stage.apply(application("app", "app")).await;
    stage.until_app("app", is_waiting).await;
    // What people do by hand frees it too.
    stage.patch(APPLICATION, ENGINE, "app", json!({"spec": {"syncPolicy": {"automated": null}}})).await;
    stage.patch(APPLICATION, ENGINE, "app", json!({"status": {"operationState": null}})).await;
    stage.pass(Duration::from_secs(60)).await;
    stage.until_app("app", |app| phase(app) != "Running").await;
    stage
        .patch(APPLICATION, ENGINE, "app", json!({"spec": {"syncPolicy": {"automated": {"prune": true}}}}))
        .await;
    stage.until_app("app", is_waiting).await;
    // And a newer revision does.
    stage.remove("app/claim.yaml");
    stage.until_object(CONFIG_MAP, "app", "late", |_| true).await;
    stage.until_green("app").await;
}

/// A parent whose first wave has an Application of a project that its last one brings.
pub(crate) async fn a4_a_project_of_a_later_wave_is_not_waited_for() {
    let mut child = application("child", "child");
    child["spec"]["project"] = "team".into();
    let project = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject",
        "metadata": {"name": "team", "annotations": {"argocd.argoproj.io/sync-wave": "5"}},
        "spec": {"sourceRepos": ["*"], "destinations": [{"server": "*", "namespace": "*"}],
            "clusterResourceWhitelist": [{"group": "*", "kind": "*"}]}});
    let files = [
        ("root/child.yaml", &*yaml(&child)),
        ("root/project.yaml", &*yaml(&project)),
        ("child/a.yaml", &*config_map("a", "1")),
    ];
    let stage = Stage::new(&files).await;
    stage.apply(parent("root", "root")).await;
    let app = stage.until_green("root").await;
    assert_eq!(app["status"]["operationState"].get("retryCount"), None);
    stage.until_green("child").await;
}

pub(crate) async fn a4_what_another_application_blocks_is_given_up() {
    let widget = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: w}\nspec: {size: 1}\n";
    let files = [
        ("user/w.yaml", widget.to_owned()),
        ("user/c.yaml", config_map("c", "1")),
        ("provider/crd.yaml", yaml(&definition("widgets", "Widget"))),
    ];
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
    let stuck = Stage::with(&files, compat).await;
    stuck.apply(quick(application("user", "user"))).await;
    stuck.until_app("user", |app| phase(app) == "Failed").await;
    stuck.apply(application("provider", "provider")).await;
    stuck.until_green("provider").await;
    stuck.pass(9 * HOUR).await;
    assert!(stuck.get(CONFIG_MAP, "user", "c").await.is_none(), "given up for ever");
}

pub(crate) async fn a4_what_another_application_blocks_resumes_by_itself() {
    let widget = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: w}\nspec: {size: 1}\n";
    let files = [
        ("user/w.yaml", widget.to_owned()),
        ("user/c.yaml", config_map("c", "1")),
        ("provider/crd.yaml", yaml(&definition("widgets", "Widget"))),
    ];
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
    let stage = Stage::new(&files).await;
    stage.apply(application("user", "user")).await;
    let app = stage.until_app("user", |app| condition(app, "BlockedBy").is_some()).await;
    assert!(condition(&app, "BlockedBy").unwrap().contains("Widget"), "{}", app["status"]["conditions"]);
    assert_eq!(app["status"]["operationState"].get("retryCount"), None, "no attempt is burnt");
    assert!(stage.get(CONFIG_MAP, "user", "c").await.is_some(), "only what is concerned is held");
    stage.pass(2 * HOUR).await;
    stage.apply(application("provider", "provider")).await;
    let app = stage.until_green("user").await;
    assert!(condition(&app, "BlockedBy").is_none());
}

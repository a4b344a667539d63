//! The failures that the engine exists to prevent: first as Argo CD's rules produce them where that is
//! meaningful, then their absence. Names are those of the list of incidents.

use std::time::Duration;

use tiphys_controller::Settings;
use tiphys_model::{Tracking, TrackingMethod};
use tiphys_sync::{AutoSettings, SyncSettings};
use tiphys_value::{ObjectExt, Value, json};

use crate::stage::{
    APPLICATION, CONFIG_MAP, ENGINE, Stage, application, condition, config_map, message, phase,
};

const SECRET: (&str, &str) = ("v1", "Secret");
const DEPLOYMENT: (&str, &str) = ("apps/v1", "Deployment");
const HOUR: Duration = Duration::from_secs(3600);

/// Argo CD's rules, with the health of Applications that its users add.
fn compat(settings: &mut Settings) {
    settings.sync = SyncSettings::compat();
    settings.auto = AutoSettings { compat: true, ..AutoSettings::default() };
}

fn yaml(object: &Value) -> String {
    tiphys_yaml::to_yaml(object)
}

fn in_wave(mut app: Value, wave: &str) -> Value {
    app["metadata"]["annotations"] = json!({"argocd.argoproj.io/sync-wave": wave});
    app
}

/// An Application whose objects live in the engine's namespace: an App-of-Apps.
fn parent(name: &str, path: &str) -> Value {
    let mut app = application(name, path);
    app["spec"]["destination"]["namespace"] = ENGINE.into();
    app
}

fn deployment(name: &str) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": name}}, "template": {
            "metadata": {"labels": {"app": name}},
            "spec": {"containers": [{"name": "c", "image": "registry.example.com/c:1"}]}}}})
}

#[tokio::test(start_paused = true)]
async fn a1_an_application_among_its_own_objects() {
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

#[tokio::test(start_paused = true)]
async fn a1_a_chain_of_applications_that_leads_back() {
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
    let stage = Stage::new(&files).await;
    stage.apply(set_free).await;
    stage.until_green("late").await;
    stage.until_object(CONFIG_MAP, ENGINE, "inner", |_| true).await;
    stage.until_object(CONFIG_MAP, ENGINE, "deepest", |_| true).await;
    stage.until_app("root", |app| phase(app) == "Succeeded").await;
}

/// A definition with one kind of objects that have a finalizer nobody serves.
fn definition(plural: &str, kind: &str) -> Value {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.example.com")},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": {"kind": kind, "plural": plural},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema":
                {"type": "object", "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}}}}}]}})
}

#[tokio::test(start_paused = true)]
async fn a2_a_deletion_that_a_finalizer_holds() {
    let held = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: held\n  finalizers: [operator.example.com/gone]\n";
    let late = config_map("b", "1").replace(
        "name: b",
        "name: b
  annotations: {argocd.argoproj.io/sync-wave: '1'}",
    );
    let files = [("app/held.yaml", held), ("app/b.yaml", &*late)];
    let stuck = Stage::with(&files, compat).await;
    stuck.apply(application("app", "app")).await;
    stuck.until_green("app").await;
    stuck.remove("app/held.yaml");
    stuck.until_app("app", |app| message(app).starts_with("waiting for deletion of /ConfigMap/held")).await;
    stuck.pass(9 * HOUR).await;
    assert_eq!(phase(&stuck.get(APPLICATION, ENGINE, "app").await.unwrap()), "Running");
    drop(stuck);

    let stage = Stage::new(&files).await;
    stage.apply(application("app", "app")).await;
    stage.until_green("app").await;
    stage.remove("app/held.yaml");
    let app = stage.until_app("app", |app| message(app).starts_with("waiting for deletion")).await;
    let wait = &app["status"]["operationState"]["tiphys"]["waits"][0];
    assert_eq!(wait["cause"], "held by finalizers operator.example.com/gone");
    assert!(wait["since"].is_string() && wait["deadline"].is_string());
    let ended = stage.until_app("app", |app| message(app).contains("gave up waiting for deletion")).await;
    assert!(message(&ended).contains("operator.example.com/gone"), "{}", message(&ended));
}

#[tokio::test(start_paused = true)]
async fn a3_an_operation_that_only_waits_gives_way() {
    let claim = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: p}\nspec:\n  storageClassName: none\n  accessModes: [ReadWriteOnce]\n  resources: {requests: {storage: 1Gi}}\n";
    let late = config_map("late", "1")
        .replace("name: late", "name: late\n  annotations: {argocd.argoproj.io/sync-wave: '1'}");
    let files = [("app/claim.yaml", claim), ("app/late.yaml", &*late)];
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
    let freed = stage.get(APPLICATION, ENGINE, "app").await.unwrap();
    assert_ne!(phase(&freed), "Running", "{}", freed["status"]);
    stage
        .patch(APPLICATION, ENGINE, "app", json!({"spec": {"syncPolicy": {"automated": {"prune": true}}}}))
        .await;
    stage.until_app("app", is_waiting).await;
    // And a newer revision does.
    stage.remove("app/claim.yaml");
    stage.until_object(CONFIG_MAP, "app", "late", |_| true).await;
    stage.until_green("app").await;
}

#[tokio::test(start_paused = true)]
async fn a4_what_another_application_blocks_resumes_by_itself() {
    let widget = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: w}\nspec: {size: 1}\n";
    let files = [
        ("user/w.yaml", widget.to_owned()),
        ("user/c.yaml", config_map("c", "1")),
        ("provider/crd.yaml", yaml(&definition("widgets", "Widget"))),
    ];
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
    let stuck = Stage::with(&files, compat).await;
    stuck.apply(application("user", "user")).await;
    stuck.until_app("user", |app| phase(app) == "Failed").await;
    stuck.apply(application("provider", "provider")).await;
    stuck.until_green("provider").await;
    stuck.pass(9 * HOUR).await;
    assert!(stuck.get(CONFIG_MAP, "user", "c").await.is_none(), "given up for ever");
    drop(stuck);

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

#[tokio::test(start_paused = true)]
async fn b1_another_tool_owns_the_object() {
    let stage =
        Stage::new(&[("app/a.yaml", &config_map("a", "git")), ("app/b.yaml", &config_map("b", "1"))]).await;
    stage.apply(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "app"}})).await;
    let theirs = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "app"}, "data": {"key": "playbook"}});
    stage.apply_as(theirs, "ansible").await;
    stage.apply(application("app", "app")).await;
    let app = stage.until_app("app", |app| phase(app) == "Failed").await;
    assert!(message(&app).contains("ConfigMap a belongs to Ansible"), "{}", message(&app));
    assert!(stage.get(CONFIG_MAP, "app", "b").await.is_none(), "nothing was written");
    assert_eq!(stage.get(CONFIG_MAP, "app", "a").await.unwrap()["data"]["key"], "playbook");
    stage
        .patch(
            APPLICATION,
            ENGINE,
            "app",
            json!({"metadata": {"annotations": {"tiphys.dev/ownership": "adopt"}}}),
        )
        .await;
    stage.until_green("app").await;
    assert_eq!(stage.get(CONFIG_MAP, "app", "a").await.unwrap()["data"]["key"], "git");
}

#[tokio::test(start_paused = true)]
async fn b1_a_helm_release_owns_its_objects_while_it_is_there() {
    let stage = Stage::new(&[("app/a.yaml", &config_map("a", "git"))]).await;
    stage.apply(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "app"}})).await;
    let theirs = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "app",
        "annotations": {"meta.helm.sh/release-name": "shop", "meta.helm.sh/release-namespace": "app"}}, "data": {"key": "helm"}});
    stage.apply_as(theirs, "helm").await;
    let record = json!({"apiVersion": "v1", "kind": "Secret", "type": "helm.sh/release.v1", "metadata": {"name": "sh.helm.release.v1.shop.v1", "namespace": "app"}});
    stage.apply_as(record, "helm").await;
    stage.apply(application("app", "app")).await;
    let app = stage.until_app("app", |app| phase(app) == "Failed").await;
    assert!(message(&app).contains("belongs to Helm release app/shop"), "{}", message(&app));
    stage.delete(SECRET, "app", "sh.helm.release.v1.shop.v1").await;
    stage.until_green("app").await;
}

#[tokio::test(start_paused = true)]
async fn b3_one_object_in_two_applications() {
    let mut first = application("first", "one");
    let mut second = application("second", "two");
    for app in [&mut first, &mut second] {
        app["spec"]["destination"]["namespace"] = "shared".into();
    }
    let files = [("one/c.yaml", &*config_map("c", "1")), ("two/c.yaml", &*config_map("c", "2"))];
    let stage = Stage::new(&files).await;
    stage.apply(first).await;
    stage.until_green("first").await;
    stage.apply(second).await;
    let refused = stage.until_app("second", |app| phase(app) == "Failed").await;
    assert!(message(&refused).contains("part of applications first"), "{}", message(&refused));
    let version = stage.get(CONFIG_MAP, "shared", "c").await.unwrap().resource_version().to_owned();
    stage.pass(5 * HOUR).await;
    assert_eq!(
        stage.get(CONFIG_MAP, "shared", "c").await.unwrap().resource_version(),
        version,
        "no flip-flop"
    );
    // When the first lets go, the second takes it.
    stage.delete(APPLICATION, ENGINE, "first").await;
    stage.until_green("second").await;
    assert_eq!(stage.get(CONFIG_MAP, "shared", "c").await.unwrap()["data"]["key"], "2");
}

#[tokio::test(start_paused = true)]
async fn b4_a_secret_that_bears_a_copied_label() {
    let by_label = |settings: &mut Settings| {
        settings.tracking = Tracking { method: TrackingMethod::Label, ..Tracking::default() };
    };
    let files = [("app/a.yaml", &*config_map("a", "1"))];
    let copied = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "argocd-secret", "namespace": "app",
        "labels": {"app.kubernetes.io/instance": "app"}}, "stringData": {"server.secretkey": "x"}});
    let stuck = Stage::with(&files, |settings| {
        by_label(settings);
        compat(settings);
    })
    .await;
    stuck.apply(application("app", "app")).await;
    stuck.until_green("app").await;
    stuck.apply_as(copied.clone(), "external-secrets").await;
    stuck.until_gone(SECRET, "app", "argocd-secret").await;
    drop(stuck);

    let stage = Stage::with(&files, by_label).await;
    stage.apply(application("app", "app")).await;
    stage.until_green("app").await;
    stage.apply_as(copied, "external-secrets").await;
    let app = stage.until_app("app", |app| condition(app, "PruneProtected").is_some()).await;
    assert!(
        condition(&app, "PruneProtected").unwrap().contains("external-secrets"),
        "{}",
        app["status"]["conditions"]
    );
    stage.pass(5 * HOUR).await;
    assert!(stage.get(SECRET, "app", "argocd-secret").await.is_some());
}

#[tokio::test(start_paused = true)]
async fn b4_what_something_that_stays_needs_is_not_pruned() {
    let mut web = deployment("web");
    web["metadata"]["namespace"] = "other".into();
    web["spec"]["template"]["spec"]["volumes"] = json!([{"name": "s", "secret": {"secretName": "s"}}]);
    let secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: other}\nstringData: {a: b}\n";
    let files = [("app/s.yaml", secret), ("app/a.yaml", &*config_map("a", "1"))];
    for prevents in [false, true] {
        let stage = Stage::with(&files, |settings| {
            if !prevents {
                compat(settings)
            }
        })
        .await;
        stage.apply(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}})).await;
        stage.apply(application("app", "app")).await;
        stage.until_green("app").await;
        stage.apply(web.clone()).await;
        stage.pass(Duration::from_secs(60)).await;
        stage.remove("app/s.yaml");
        if !prevents {
            stage.until_gone(SECRET, "other", "s").await;
            continue;
        }
        let app = stage.until_app("app", |app| condition(app, "PruneProtected").is_some()).await;
        assert!(condition(&app, "PruneProtected").unwrap().contains("Deployment other/web needs it"));
        stage.pass(5 * HOUR).await;
        assert!(stage.get(SECRET, "other", "s").await.is_some());
        stage.delete(DEPLOYMENT, "other", "web").await;
        stage
            .patch(
                APPLICATION,
                ENGINE,
                "app",
                json!({"metadata": {"annotations": {"argocd.argoproj.io/refresh": "normal"}}}),
            )
            .await;
        stage.until_gone(SECRET, "other", "s").await;
        stage.until_green("app").await;
    }
}

#[tokio::test(start_paused = true)]
async fn b5_a_repair_by_hand_is_told_of_and_can_be_held() {
    let stage =
        Stage::new(&[("app/a.yaml", &config_map("a", "git")), ("app/b.yaml", &config_map("b", "git"))]).await;
    stage.apply(application("app", "app")).await;
    stage.until_green("app").await;
    stage.patch(CONFIG_MAP, "app", "a", json!({"data": {"key": "by hand"}})).await;
    stage.until_object(CONFIG_MAP, "app", "a", |object| object["data"]["key"] == "git").await;
    let app = stage.until_app("app", |app| app.at(&["status", "tiphys", "reverted"]).is_some()).await;
    let told = app["status"]["tiphys"]["reverted"][0]["changes"][0].as_str().unwrap().to_owned();
    assert!(told.contains("data.key") && told.contains("kubectl-edit"), "{told}");
    let events = stage.list(("v1", "Event")).await;
    assert!(events.iter().any(|event| event["reason"] == "SelfHeal"));

    let until = tiphys_model::Time::from(tiphys_model::time::after(stage.now(), HOUR)).to_string();
    let hold = json!({"metadata": {"annotations": {"tiphys.dev/paused-resources": format!("/ConfigMap/app/a={until}")}}});
    stage.patch(APPLICATION, ENGINE, "app", hold).await;
    stage.delete(CONFIG_MAP, "app", "a").await;
    stage.patch(CONFIG_MAP, "app", "b", json!({"data": {"key": "by hand"}})).await;
    stage.until_object(CONFIG_MAP, "app", "b", |object| object["data"]["key"] == "git").await;
    let app = stage.until_app("app", |app| condition(app, "Paused").is_some()).await;
    assert!(condition(&app, "Paused").unwrap().contains(&until));
    assert!(stage.get(CONFIG_MAP, "app", "a").await.is_none(), "what is on hold stays as it is");
    stage.until_object(CONFIG_MAP, "app", "a", |_| true).await;
    assert!(stage.now() >= until.parse().unwrap(), "and only until then");

    let until = tiphys_model::Time::from(tiphys_model::time::after(stage.now(), HOUR)).to_string();
    stage
        .patch(
            APPLICATION,
            ENGINE,
            "app",
            json!({"metadata": {"annotations": {"tiphys.dev/paused-until": until}}}),
        )
        .await;
    stage.until_app("app", |app| app["status"]["sync"]["status"] == "Synced").await;
    stage.patch(CONFIG_MAP, "app", "b", json!({"data": {"key": "by hand"}})).await;
    let app = stage.until_app("app", |app| condition(app, "Paused").is_some()).await;
    assert_eq!(app["status"]["sync"]["status"], "OutOfSync");
    stage.until_object(CONFIG_MAP, "app", "b", |object| object["data"]["key"] == "git").await;
    assert!(stage.now() >= until.parse().unwrap());
}

#[tokio::test(start_paused = true)]
async fn c1_large_objects_need_no_annotation() {
    let stage = Stage::new(&[("app/large.yaml", &config_map("large", &"x".repeat(300_000)))]).await;
    stage.apply(application("app", "app")).await;
    stage.until_green("app").await;
    let live = stage.get(CONFIG_MAP, "app", "large").await.unwrap();
    assert!(live.annotation("kubectl.kubernetes.io/last-applied-configuration").is_none());
}

#[tokio::test(start_paused = true)]
async fn c2_a_violated_schema_stops_everything_before_the_first_write() {
    let wrong = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: w}\nspec: {size: large}\n";
    let stage = Stage::new(&[("app/w.yaml", wrong), ("app/a.yaml", &config_map("a", "1"))]).await;
    stage.apply(definition("widgets", "Widget")).await;
    stage
        .until("served", async || {
            stage.cluster.discover().await.unwrap().kinds().any(|k| k.gvk.kind == "Widget").then_some(())
        })
        .await;
    stage.apply(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "app"}})).await;
    stage.apply(application("app", "app")).await;
    let app = stage.until_app("app", |app| phase(app) == "Failed").await;
    assert!(message(&app).contains("spec.size"), "{}", message(&app));
    assert!(stage.get(CONFIG_MAP, "app", "a").await.is_none());
    assert_eq!(app["status"]["operationState"].get("retryCount"), None, "it is not repeated: it cannot pass");
    stage.write("app/w.yaml", &wrong.replace("large", "3"));
    stage.until_green("app").await;
}

#[tokio::test(start_paused = true)]
async fn c3_a_webhook_whose_backend_is_down() {
    let hook = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "guard"}, "webhooks": [{"name": "configs.guard.example.com", "failurePolicy": "Fail", "sideEffects": "None",
            "admissionReviewVersions": ["v1"], "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "app"}},
            "clientConfig": {"service": {"namespace": "guard", "name": "guard"}},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["configmaps"]}]}]});
    let stage = Stage::new(&[("app/a.yaml", &config_map("a", "1"))]).await;
    stage.apply(hook).await;
    stage.apply(application("app", "app")).await;
    let app = stage.until_app("app", |app| condition(app, "BlockedBy").is_some()).await;
    let told = condition(&app, "BlockedBy").unwrap();
    assert!(
        told.contains(
            "webhook configs.guard.example.com of ValidatingWebhookConfiguration guard does not answer"
        ),
        "{told}"
    );
    assert!(told.contains("Service guard/guard, which does not exist"), "{told}");
    stage.pass(2 * HOUR).await;
    let app = stage.get(APPLICATION, ENGINE, "app").await.unwrap();
    assert_eq!(phase(&app), "Running");
    assert_eq!(app["status"]["operationState"].get("retryCount"), None);
    stage.delete(("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration"), "", "guard").await;
    stage.until_green("app").await;
}

#[tokio::test(start_paused = true)]
async fn c4_an_immutable_field_is_refused_before_anything_is_written() {
    let stage =
        Stage::new(&[("app/web.yaml", &yaml(&deployment("web"))), ("app/a.yaml", &config_map("a", "1"))])
            .await;
    stage.apply(application("app", "app")).await;
    stage.until_green("app").await;
    let mut other = deployment("web");
    other["spec"]["selector"]["matchLabels"]["app"] = "other".into();
    other["spec"]["template"]["metadata"]["labels"]["app"] = "other".into();
    stage.write("app/a.yaml", &config_map("a", "2"));
    stage.write("app/web.yaml", &yaml(&other));
    let app = stage.until_app("app", |app| phase(app) == "Failed").await;
    assert!(message(&app).contains("field is immutable"), "{}", message(&app));
    assert_eq!(stage.get(CONFIG_MAP, "app", "a").await.unwrap()["data"]["key"], "1", "nothing was written");
    other["metadata"]["annotations"] = json!({"argocd.argoproj.io/sync-options": "Force=true,Replace=true"});
    stage.write("app/web.yaml", &yaml(&other));
    stage.until_green("app").await;
    assert_eq!(
        stage.get(DEPLOYMENT, "app", "web").await.unwrap()["spec"]["selector"]["matchLabels"]["app"],
        "other"
    );
}

#[tokio::test(start_paused = true)]
async fn c5_custom_resources_wait_for_their_definition() {
    let widget = "apiVersion: example.com/v1\nkind: Widget\nmetadata:\n  name: w\n  annotations: {argocd.argoproj.io/sync-wave: '-5'}\nspec: {size: 1}\n";
    let mut crd = definition("widgets", "Widget");
    crd["metadata"]["annotations"] = json!({"argocd.argoproj.io/sync-wave": "5"});
    let stage = Stage::new(&[("app/w.yaml", widget), ("app/crd.yaml", &yaml(&crd))]).await;
    stage.apply(application("app", "app")).await;
    let app = stage.until_green("app").await;
    assert_eq!(app["status"]["operationState"].get("retryCount"), None);
}

#[tokio::test(start_paused = true)]
async fn d1_what_does_not_render_leaves_the_last_good_state_in_force() {
    let files = [
        ("app/kustomization.yaml", "resources: [a.yaml]\n"),
        ("app/a.yaml", &*config_map("a", "1")),
        ("outside.yaml", &*config_map("o", "1")),
    ];
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

#[tokio::test(start_paused = true)]
async fn e1_the_pod_network_is_not_pruned_unconfirmed() {
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

//! C. The API server refuses.

use tiphys_controller::Settings;
use tiphys_value::{ObjectExt, Value, json};

use super::{
    DEPLOYMENT, HOUR, SECRET, compat, definition, deployment, in_wave, on_embedded, parent, quick, yaml,
};
use crate::stage::{
    APPLICATION, CONFIG_MAP, ENGINE, Stage, application, condition, config_map, message, phase,
};

on_embedded!(
    c1_large_objects_need_no_annotation,
    c2_a_violated_schema_leaves_half_of_an_application,
    c2_a_violated_schema_stops_everything_before_the_first_write,
    c2_a_port_of_two_names_is_applied_and_what_leaves_the_sources_goes,
    c3_a_webhook_whose_backend_is_down_burns_the_retries,
    c3_a_webhook_whose_backend_is_down,
    c4_an_immutable_field_leaves_half_of_a_revision,
    c4_an_immutable_field_is_refused_before_anything_is_written,
    c4_a_selector_is_replaced_if_that_is_allowed,
    c5_custom_resources_before_their_definition_fail_for_ever,
    c5_custom_resources_wait_for_what_a_later_wave_brings,
    c5_custom_resources_wait_for_their_definition,
    c5_custom_resources_wait_for_a_definition_of_another_application,
);

pub(crate) async fn c1_large_objects_need_no_annotation() {
    let large = config_map("large", &"x".repeat(300_000));
    let stage = Stage::new(&[("app/large.yaml", &large)]).await;
    // Client-side apply, as kubectl and Argo CD do it by default.
    stage.namespace("app").await;
    let mut object: Value = tiphys_yaml::from_yaml(&large).unwrap();
    object["metadata"]["namespace"] = "app".into();
    object["metadata"]["annotations"] =
        json!({"kubectl.kubernetes.io/last-applied-configuration": object.to_string()});
    let refused = stage.cluster.create(&object, "kubectl-client-side-apply", false).await.unwrap_err();
    let told = refused.to_string();
    assert!(told.contains("Too long: may not be more than 262144 bytes"), "{told}");

    stage.apply(application("app", "app")).await;
    stage.until_green("app").await;
    let live = stage.get(CONFIG_MAP, "app", "large").await.unwrap();
    assert!(live.annotation("kubectl.kubernetes.io/last-applied-configuration").is_none());
}

const TOO_LARGE: &str =
    "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: w}\nspec: {size: large}\n";

/// A cluster that serves Widgets, and an Application of a wrong one, of something before and of something
/// after it.
async fn with_a_wrong_widget(change: impl FnOnce(&mut Settings)) -> Stage {
    let late = config_map("late", "1")
        .replace("name: late", "name: late\n  annotations: {argocd.argoproj.io/sync-wave: '1'}");
    let files =
        [("app/w.yaml", TOO_LARGE), ("app/a.yaml", &*config_map("a", "1")), ("app/late.yaml", &*late)];
    let stage = Stage::with(&files, change).await;
    stage.apply(definition("widgets", "Widget")).await;
    stage.until_served("Widget").await;
    stage.namespace("app").await;
    stage.apply(quick(application("app", "app"))).await;
    stage
}

pub(crate) async fn c2_a_violated_schema_leaves_half_of_an_application() {
    let stuck = with_a_wrong_widget(compat).await;
    let app = stuck.until_app("app", |app| phase(app) == "Failed").await;
    let expected = "one or more synchronization tasks completed unsuccessfully, reason: ";
    assert!(message(&app).starts_with(expected), "{}", message(&app));
    assert_eq!(app["status"]["operationState"]["retryCount"], 5, "five times for nothing");
    assert!(stuck.get(CONFIG_MAP, "app", "a").await.is_some(), "half of it is there");
    stuck.pass(9 * HOUR).await;
    assert!(stuck.get(CONFIG_MAP, "app", "late").await.is_none(), "what comes later never does");
}

pub(crate) async fn c2_a_violated_schema_stops_everything_before_the_first_write() {
    let stage = with_a_wrong_widget(|_| {}).await;
    let app = stage.until_app("app", |app| phase(app) == "Failed").await;
    assert!(message(&app).contains("spec.size"), "{}", message(&app));
    assert!(stage.get(CONFIG_MAP, "app", "a").await.is_none());
    assert_eq!(app["status"]["operationState"].get("retryCount"), None, "it is not repeated: it cannot pass");
    stage.write("app/w.yaml", &TOO_LARGE.replace("large", "3"));
    stage.until_green("app").await;
}

const HOOKS: (&str, &str) = ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration");

/// A webhook that must answer and whose backend is not there.
fn unanswered() -> Value {
    json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "guard"}, "webhooks": [{"name": "configs.guard.example.com", "failurePolicy": "Fail", "sideEffects": "None",
            "admissionReviewVersions": ["v1"], "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "app"}},
            "clientConfig": {"service": {"namespace": "guard", "name": "guard"}},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["configmaps"]}]}]})
}

/// Server-side apply takes one port of a number only; client-side apply stores both.
pub(crate) async fn c2_a_port_of_two_names_is_applied_and_what_leaves_the_sources_goes() {
    const CRON_JOB: (&str, &str) = ("batch/v1", "CronJob");
    let cron_job = |env: Value| {
        let ports = json!([{"name": "http", "containerPort": 80}, {"name": "metrics", "containerPort": 80}]);
        let container = json!({"name": "c", "image": "i:1", "ports": ports, "env": env});
        let pod = json!({"restartPolicy": "Never", "containers": [container]});
        yaml(&json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "web"},
            "spec": {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": {"template": {"spec": pod}}}}}))
    };
    let first = cron_job(json!([{"name": "A", "value": "1"}, {"name": "B", "value": "1"}]));
    let stage = Stage::new(&[("app/web.yaml", &first)]).await;
    stage.apply(application("app", "app")).await;
    stage.until_green("app").await;
    let names = |live: &Value, field: &str| {
        let container = live.pointer("/spec/jobTemplate/spec/template/spec/containers/0").unwrap();
        let list = container[field].as_array().unwrap();
        list.iter().map(|item| item["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let live = stage.get(CRON_JOB, "app", "web").await.unwrap();
    assert_eq!(names(&live, "ports"), ["http", "metrics"]);
    // A field that nobody knows is told of, as elsewhere.
    stage.write("app/web.yaml", &first.replace("schedule:", "shedule: x\n  schedule:"));
    stage.until_app("app", |app| app.to_string().contains(".shedule: field not declared")).await;
    // What others set stays.
    stage.patch(CRON_JOB, "app", "web", json!({"spec": {"startingDeadlineSeconds": 30}})).await;
    stage.write("app/web.yaml", &cron_job(json!([{"name": "B", "value": "2"}])));
    let live = stage.until_object(CRON_JOB, "app", "web", |live| names(live, "env") == ["B"]).await;
    assert_eq!((names(&live, "ports").len(), &live["spec"]["startingDeadlineSeconds"]), (2, &json!(30)));
    stage.until_green("app").await;
    // One name again: server-side apply takes over.
    let one = cron_job(json!([{"name": "C", "value": "3"}])).replace("name: metrics", "name: http");
    stage.write("app/web.yaml", &one);
    let live = stage.until_object(CRON_JOB, "app", "web", |live| names(live, "env") == ["C"]).await;
    assert_eq!(names(&live, "ports"), ["http"]);
    stage.until_green("app").await;
}

pub(crate) async fn c3_a_webhook_whose_backend_is_down_burns_the_retries() {
    let stuck = Stage::with(&[("app/a.yaml", &config_map("a", "1"))], compat).await;
    stuck.apply(unanswered()).await;
    stuck.apply(quick(application("app", "app"))).await;
    let app = stuck.until_app("app", |app| phase(app) == "Failed").await;
    assert_eq!(app["status"]["operationState"]["retryCount"], 5);
    stuck.delete(HOOKS, "", "guard").await;
    stuck.pass(9 * HOUR).await;
    assert!(stuck.get(CONFIG_MAP, "app", "a").await.is_none(), "given up for ever");
}

pub(crate) async fn c3_a_webhook_whose_backend_is_down() {
    let stage = Stage::new(&[("app/a.yaml", &config_map("a", "1"))]).await;
    stage.apply(unanswered()).await;
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
    stage.delete(HOOKS, "", "guard").await;
    stage.until_green("app").await;
}

/// A Secret of a type, which can never change.
fn typed(kind: &str, annotations: &str) -> String {
    format!("apiVersion: v1\nkind: Secret\nmetadata:\n  name: s{annotations}\ntype: {kind}\n")
}

/// An Application at rest, of which one object's immutable field and another object change.
async fn changing_what_is_immutable(change: impl FnOnce(&mut Settings)) -> Stage {
    let files = [("app/s.yaml", &*typed("example.com/a", "")), ("app/a.yaml", &*config_map("a", "1"))];
    let stage = Stage::with(&files, change).await;
    stage.apply(quick(application("app", "app"))).await;
    stage.until_green("app").await;
    stage.hold();
    stage.write("app/a.yaml", &config_map("a", "2"));
    stage.write("app/s.yaml", &typed("example.com/b", ""));
    stage.resume();
    stage
}

pub(crate) async fn c4_an_immutable_field_leaves_half_of_a_revision() {
    let stuck = changing_what_is_immutable(compat).await;
    let app = stuck.until_app("app", |app| phase(app) == "Failed").await;
    let expected = "one or more synchronization tasks completed unsuccessfully, reason: ";
    assert!(message(&app).starts_with(expected), "{}", message(&app));
    assert_eq!(stuck.get(CONFIG_MAP, "app", "a").await.unwrap()["data"]["key"], "2", "half of it is new");
    assert_eq!(stuck.get(SECRET, "app", "s").await.unwrap()["type"], "example.com/a", "and half is old");
}

pub(crate) async fn c4_an_immutable_field_is_refused_before_anything_is_written() {
    let stage = changing_what_is_immutable(|_| {}).await;
    let app = stage.until_app("app", |app| phase(app) == "Failed").await;
    assert!(message(&app).contains("field is immutable"), "{}", message(&app));
    assert_eq!(stage.get(CONFIG_MAP, "app", "a").await.unwrap()["data"]["key"], "1", "nothing was written");
    let replaced = "\n  annotations: {argocd.argoproj.io/sync-options: 'Force=true,Replace=true'}";
    stage.write("app/s.yaml", &typed("example.com/b", replaced));
    stage.until_green("app").await;
    assert_eq!(stage.get(SECRET, "app", "s").await.unwrap()["type"], "example.com/b");
    assert_eq!(stage.get(CONFIG_MAP, "app", "a").await.unwrap()["data"]["key"], "2");
}

pub(crate) async fn c4_a_selector_is_replaced_if_that_is_allowed() {
    let stage = Stage::new(&[("app/web.yaml", &yaml(&deployment("web")))]).await;
    stage.apply(application("app", "app")).await;
    stage.until_green("app").await;
    let mut other = deployment("web");
    other["spec"]["selector"]["matchLabels"]["app"] = "other".into();
    other["spec"]["template"]["metadata"]["labels"]["app"] = "other".into();
    stage.write("app/web.yaml", &yaml(&other));
    let app = stage.until_app("app", |app| phase(app) == "Failed").await;
    assert!(message(&app).contains("field is immutable"), "{}", message(&app));
    other["metadata"]["annotations"] = json!({"argocd.argoproj.io/sync-options": "Force=true,Replace=true"});
    stage.write("app/web.yaml", &yaml(&other));
    stage.until_green("app").await;
    let live = stage.get(DEPLOYMENT, "app", "web").await.unwrap();
    assert_eq!(live["spec"]["selector"]["matchLabels"]["app"], "other");
}

/// A custom resource in an earlier wave than its definition.
fn out_of_order() -> [(&'static str, String); 2] {
    let widget = "apiVersion: example.com/v1\nkind: Widget\nmetadata:\n  name: w\n  annotations: {argocd.argoproj.io/sync-wave: '-5'}\nspec: {size: 1}\n";
    let mut crd = definition("widgets", "Widget");
    crd["metadata"]["annotations"] = json!({"argocd.argoproj.io/sync-wave": "5"});
    [("app/w.yaml", widget.to_owned()), ("app/crd.yaml", yaml(&crd))]
}

/// An App-of-Apps with a custom resource in an early wave, whose definition an Application of a late one
/// brings.
fn defined_by_a_late_child() -> (Value, [(&'static str, String); 3]) {
    let [(_, widget), (_, crd)] = out_of_order();
    let files = [
        ("root/w.yaml", widget),
        ("root/provider.yaml", yaml(&in_wave(application("provider", "provider"), "5"))),
        ("provider/crd.yaml", crd),
    ];
    (parent("root", "root"), files)
}

pub(crate) async fn c5_custom_resources_before_their_definition_fail_for_ever() {
    let (root, files) = defined_by_a_late_child();
    let files = files.each_ref().map(|(path, text)| (*path, text.as_str()));
    let stuck = Stage::with(&files, compat).await;
    stuck.apply(quick(root)).await;
    let app = stuck.until_app("root", |app| phase(app) == "Failed").await;
    assert_eq!(app["status"]["operationState"]["retryCount"], 5);
    stuck.pass(9 * HOUR).await;
    assert!(stuck.get(APPLICATION, ENGINE, "provider").await.is_none(), "its wave never comes");
}

pub(crate) async fn c5_custom_resources_wait_for_what_a_later_wave_brings() {
    let (root, files) = defined_by_a_late_child();
    let files = files.each_ref().map(|(path, text)| (*path, text.as_str()));
    let stage = Stage::new(&files).await;
    stage.apply(root).await;
    stage.until_green("provider").await;
    let app = stage.until_green("root").await;
    assert_eq!(app["status"]["operationState"].get("retryCount"), None);
    assert!(stage.get(("example.com/v1", "Widget"), ENGINE, "w").await.is_some());
}

pub(crate) async fn c5_custom_resources_wait_for_a_definition_of_another_application() {
    let [(_, widget), (_, crd)] = out_of_order();
    let files = [("user/w.yaml", &*widget), ("provider/crd.yaml", &*crd)];
    let stage = Stage::new(&files).await;
    stage.apply(application("user", "user")).await;
    let app = stage.until_app("user", |app| condition(app, "BlockedBy").is_some()).await;
    assert!(condition(&app, "BlockedBy").unwrap().contains("Widget"));
    stage.apply(application("provider", "provider")).await;
    let app = stage.until_green("user").await;
    assert_eq!(app["status"]["operationState"].get("retryCount"), None);
}

pub(crate) async fn c5_custom_resources_wait_for_their_definition() {
    let files = out_of_order();
    let files = files.each_ref().map(|(path, text)| (*path, text.as_str()));
    let stage = Stage::new(&files).await;
    stage.apply(application("app", "app")).await;
    let app = stage.until_green("app").await;
    assert_eq!(app["status"]["operationState"].get("retryCount"), None);
}

//! B. Two owners for one object.

use std::time::Duration;

use tiphys_controller::Settings;
use tiphys_model::{Tracking, TrackingMethod};
use tiphys_value::{ObjectExt, Value, json};

use super::{DEPLOYMENT, HOUR, SECRET, compat, deployment, on_embedded};
use crate::stage::{
    APPLICATION, CONFIG_MAP, ENGINE, Stage, application, condition, config_map, message, phase, stage_is_real,
};

on_embedded!(
    b1_another_tool_owns_the_object,
    b1_a_helm_release_owns_its_objects_while_it_is_there,
    b3_one_object_in_two_applications,
    b3_one_object_in_two_applications_may_fail_the_second,
    b3_an_application_of_a_set_that_a_parent_renders_too,
    b4_a_secret_that_bears_a_copied_label,
    b4_what_something_that_stays_needs_is_not_pruned,
    b5_a_repair_by_hand_is_taken_back_every_time,
    b5_a_repair_by_hand_is_told_of,
    b5_a_repair_by_hand_can_be_held,
);

/// The objects of an Application, with what the status says of each.
fn statuses(app: &Value) -> Vec<(&str, &str)> {
    let resources = app["status"]["resources"].as_array().unwrap();
    resources
        .iter()
        .map(|one| (one.str_at(&["name"]).unwrap_or_default(), one.str_at(&["status"]).unwrap_or_default()))
        .collect()
}

/// What somebody's playbook has made.
fn playbook() -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "app"}, "data": {"key": "playbook"}})
}

pub(crate) async fn b1_another_tool_owns_the_object() {
    let files = [("app/a.yaml", &*config_map("a", "git")), ("app/b.yaml", &*config_map("b", "1"))];
    let lost = Stage::with(&files, compat).await;
    lost.namespace("app").await;
    lost.apply_as(playbook(), "ansible").await;
    lost.apply(application("app", "app")).await;
    lost.until_green("app").await;
    assert_eq!(lost.get(CONFIG_MAP, "app", "a").await.unwrap()["data"]["key"], "git", "nobody was asked");
    drop(lost);

    let stage = Stage::new(&files).await;
    stage.namespace("app").await;
    stage.apply_as(playbook(), "ansible").await;
    stage.apply(application("app", "app")).await;
    let app = stage.until_app("app", |app| phase(app) == "Succeeded").await;
    assert!(message(&app).contains("left alone: ConfigMap/a of Ansible"), "{}", message(&app));
    let warning = condition(&app, "SharedResourceWarning").unwrap();
    assert!(warning.contains("ConfigMap/a of application argocd/app belongs to Ansible"), "{warning}");
    stage.pass(5 * HOUR).await;
    let app = stage.get(APPLICATION, ENGINE, "app").await.unwrap();
    assert_eq!(statuses(&app), [("a", "OutOfSync"), ("b", "Synced")]);
    let left = app.str_at(&["status", "tiphys", "leftOutOfSync"]).unwrap_or_default();
    assert!(left.contains("ConfigMap/a belongs to Ansible"), "{left}");
    assert!(stage.get(CONFIG_MAP, "app", "b").await.is_some(), "the rest was applied");
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

pub(crate) async fn b1_a_helm_release_owns_its_objects_while_it_is_there() {
    let stage = Stage::new(&[("app/a.yaml", &config_map("a", "git"))]).await;
    stage.namespace("app").await;
    let theirs = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "app",
        "annotations": {"meta.helm.sh/release-name": "shop", "meta.helm.sh/release-namespace": "app"}}, "data": {"key": "helm"}});
    stage.apply_as(theirs, "helm").await;
    let record = json!({"apiVersion": "v1", "kind": "Secret", "type": "helm.sh/release.v1", "metadata": {"name": "sh.helm.release.v1.shop.v1", "namespace": "app"}});
    stage.apply_as(record, "helm").await;
    stage.apply(application("app", "app")).await;
    let app = stage.until_app("app", |app| phase(app) == "Succeeded").await;
    assert!(message(&app).contains("left alone: ConfigMap/a of Helm release app/shop"), "{}", message(&app));
    assert_eq!(stage.get(CONFIG_MAP, "app", "a").await.unwrap()["data"]["key"], "helm");
    stage.delete(SECRET, "app", "sh.helm.release.v1.shop.v1").await;
    stage.until_green("app").await;
}

pub(crate) async fn b3_one_object_in_two_applications() {
    let mut first = application("first", "one");
    let mut second = application("second", "two");
    for app in [&mut first, &mut second] {
        app["spec"]["destination"]["namespace"] = "shared".into();
    }
    let files = [
        ("one/c.yaml", &*config_map("c", "1")),
        ("two/c.yaml", &*config_map("c", "2")),
        ("two/own.yaml", &*config_map("own", "2")),
    ];
    if !stage_is_real() {
        let flapping = Stage::with(&files, compat).await;
        for app in [&first, &second] {
            flapping.apply(app.clone()).await;
        }
        let seen = |value: &'static str| move |object: &Value| object["data"]["key"] == value;
        for value in ["1", "2", "1", "2"] {
            flapping.until_object(CONFIG_MAP, "shared", "c", seen(value)).await;
        }
    }

    let stage = Stage::new(&files).await;
    stage.apply(first).await;
    stage.until_green("first").await;
    stage.apply(second).await;
    let synced = stage.until_app("second", |app| phase(app) == "Succeeded").await;
    assert!(
        message(&synced).contains("left alone: ConfigMap/c of Application first"),
        "{}",
        message(&synced)
    );
    let warning = condition(&synced, "SharedResourceWarning").unwrap();
    assert_eq!(warning, "ConfigMap/c is part of applications argocd/second and first");
    assert_eq!(stage.get(CONFIG_MAP, "shared", "own").await.unwrap()["data"]["key"], "2");
    let version = stage.get(CONFIG_MAP, "shared", "c").await.unwrap().resource_version().to_owned();
    stage.pass(5 * HOUR).await;
    assert_eq!(
        stage.get(CONFIG_MAP, "shared", "c").await.unwrap().resource_version(),
        version,
        "no flip-flop"
    );
    let app = stage.get(APPLICATION, ENGINE, "second").await.unwrap();
    assert_eq!(statuses(&app), [("c", "OutOfSync"), ("own", "Synced")]);
    assert_eq!(app["status"]["health"]["status"], "Healthy");
    // When the first lets go, the second takes it.
    stage.delete(APPLICATION, ENGINE, "first").await;
    stage.until_green("second").await;
    assert_eq!(stage.get(CONFIG_MAP, "shared", "c").await.unwrap()["data"]["key"], "2");
}

/// With the option the operation fails as a whole, as in Argo CD.
pub(crate) async fn b3_one_object_in_two_applications_may_fail_the_second() {
    let files = [
        ("one/c.yaml", &*config_map("c", "1")),
        ("two/c.yaml", &*config_map("c", "2")),
        ("two/own.yaml", &*config_map("own", "2")),
    ];
    let stage = Stage::new(&files).await;
    for (name, options) in [("first", json!([])), ("second", json!(["FailOnSharedResource=true"]))] {
        let mut app = application(name, if name == "first" { "one" } else { "two" });
        app["spec"]["destination"]["namespace"] = "shared".into();
        app["spec"]["syncPolicy"]["automated"]["selfHeal"] = false.into();
        for option in options.as_array().unwrap() {
            app["spec"]["syncPolicy"]["syncOptions"].as_array_mut().unwrap().push(option.clone());
        }
        stage.apply(app).await;
        stage.until_app(name, |app| matches!(phase(app), "Succeeded" | "Failed")).await;
    }
    let failed = stage.until_app("second", |app| phase(app) == "Failed").await;
    assert!(message(&failed).contains("Shared resource found: ConfigMap/c"), "{}", message(&failed));
    assert!(stage.get(CONFIG_MAP, "shared", "own").await.is_none());
    // Without self-heal what was left alone is taken up, too, once it is free; nothing else is healed.
    let options = json!({"spec": {"syncPolicy": {"syncOptions": ["CreateNamespace=true"]}}});
    stage.patch(APPLICATION, ENGINE, "second", options).await;
    stage.patch(APPLICATION, ENGINE, "second", json!({"operation": {"sync": {}}})).await;
    stage.until_app("second", |app| phase(app) == "Succeeded").await;
    stage.patch(CONFIG_MAP, "shared", "own", json!({"data": {"key": "by hand"}})).await;
    stage.delete(APPLICATION, ENGINE, "first").await;
    stage.until_object(CONFIG_MAP, "shared", "c", |object| object["data"]["key"] == "2").await;
    assert_eq!(stage.get(CONFIG_MAP, "shared", "own").await.unwrap()["data"]["key"], "by hand");
}

/// An Application that an ApplicationSet makes and that a parent renders too belongs to the set; what else
/// the parent renders is created, and its waves go on.
pub(crate) async fn b3_an_application_of_a_set_that_a_parent_renders_too() {
    let child = |name: &str, wave: i64| {
        let mut child = application(name, "leaf");
        child["metadata"]["annotations"] = json!({"argocd.argoproj.io/sync-wave": wave.to_string()});
        child.to_string()
    };
    let files = [
        ("leaf/a.yaml", &*config_map("a", "1")),
        ("apps/made.json", &*child("made", 0)),
        ("apps/later.json", &*child("later", 1)),
    ];
    let stage = Stage::new(&files).await;
    let mut template = application("made", "leaf");
    template.as_object_mut().unwrap().retain(|key, _| matches!(key.as_str(), "metadata" | "spec"));
    template["metadata"].as_object_mut().unwrap().remove("namespace");
    let set = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet",
        "metadata": {"name": "set", "namespace": ENGINE},
        "spec": {"generators": [{"list": {"elements": [{}]}}], "template": template}});
    stage.apply(set).await;
    stage.until_green("made").await;
    let mut parent = application("parent", "apps");
    parent["spec"]["destination"]["namespace"] = ENGINE.into();
    stage.apply(parent).await;
    stage.until_green("later").await;
    let parent = stage.until_app("parent", |app| phase(app) == "Succeeded").await;
    assert!(
        message(&parent).contains("left alone: Application/made of ApplicationSet set"),
        "{}",
        message(&parent)
    );
    assert_eq!(statuses(&parent), [("later", "Synced"), ("made", "OutOfSync")]);
}

pub(crate) async fn b4_a_secret_that_bears_a_copied_label() {
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

pub(crate) async fn b4_what_something_that_stays_needs_is_not_pruned() {
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
        stage.namespace("other").await;
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

pub(crate) async fn b5_a_repair_by_hand_is_taken_back_every_time() {
    let stuck = Stage::with(&[("app/a.yaml", &config_map("a", "git"))], compat).await;
    stuck.apply(application("app", "app")).await;
    stuck.until_green("app").await;
    for _ in 0..3 {
        stuck.patch(CONFIG_MAP, "app", "a", json!({"data": {"key": "by hand"}})).await;
        stuck.until_object(CONFIG_MAP, "app", "a", |object| object["data"]["key"] == "git").await;
    }
}

pub(crate) async fn b5_a_repair_by_hand_is_told_of() {
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
}

pub(crate) async fn b5_a_repair_by_hand_can_be_held() {
    let stage =
        Stage::new(&[("app/a.yaml", &config_map("a", "git")), ("app/b.yaml", &config_map("b", "git"))]).await;
    stage.apply(application("app", "app")).await;
    stage.until_green("app").await;
    let pause = if stage_is_real() { Duration::from_secs(8) } else { HOUR };
    let until = tiphys_model::Time::from(tiphys_model::time::after(stage.now(), pause)).to_string();
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

    let until = tiphys_model::Time::from(tiphys_model::time::after(stage.now(), pause)).to_string();
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

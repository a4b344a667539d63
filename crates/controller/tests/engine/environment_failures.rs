//! What goes wrong around the engine: the API server, the way to it, its clock, other engines, kinds and
//! namespaces that go while they are needed.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tiphys_model::{Clock, time::after};
use tiphys_value::{ObjectExt, Value, json};

use tiphys_stage::request_faults::RequestFault;

use crate::stage::{
    APPLICATION, CONFIG_MAP, ENGINE, Stage, application, condition, config_map, message, phase,
};

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);

fn in_wave(name: &str, wave: &str) -> String {
    let annotated = format!("name: {name}\n  annotations: {{argocd.argoproj.io/sync-wave: '{wave}'}}");
    config_map(name, "1").replace(&format!("name: {name}"), &annotated)
}

/// An Application of three waves that was begun.
async fn begun() -> Stage {
    let files = [
        ("app/a.yaml", in_wave("a", "0")),
        ("app/b.yaml", in_wave("b", "1")),
        ("app/c.yaml", in_wave("c", "2")),
    ];
    let files = files.each_ref().map(|(path, text)| (*path, text.as_str()));
    let stage = Stage::with(&files, |settings| settings.sync.wave_delay = MINUTE).await;
    stage.apply(application("app", "app")).await;
    stage.until_object(CONFIG_MAP, "app", "a", |_| true).await;
    stage
}

async fn assert_done(stage: &Stage) {
    let app = stage.until_green("app").await;
    assert_eq!(stage.names(CONFIG_MAP, "app").await, ["a", "b", "c", "kube-root-ca.crt"]);
    assert_eq!(app["status"]["operationState"].get("retryCount"), None, "{}", app["status"]);
    assert_eq!(app["status"]["history"].as_array().map(Vec::len), Some(1));
}

#[tokio::test(start_paused = true)]
async fn the_api_server_is_away_for_an_hour() {
    let stage = begun().await;
    stage.faults.plan(|_, _, _| Some(RequestFault::Unreachable));
    stage.faults.cut_watches();
    stage.pass(HOUR).await;
    assert!(stage.get(CONFIG_MAP, "app", "c").await.is_none());
    stage.faults.end();
    assert_done(&stage).await;
}

#[tokio::test(start_paused = true)]
async fn watches_break_off_and_what_changed_meanwhile_is_seen() {
    let stage = begun().await;
    assert_done(&stage).await;
    for round in 0..10 {
        stage.faults.plan(|_, _, _| Some(RequestFault::Unreachable));
        stage.faults.cut_watches();
        stage.pass(Duration::from_secs(5)).await;
        match round % 2 {
            0 => stage.delete(CONFIG_MAP, "app", "b").await,
            _ => drop(stage.patch(CONFIG_MAP, "app", "b", json!({"data": {"key": "by hand"}})).await),
        }
        stage.faults.end();
        stage.until_object(CONFIG_MAP, "app", "b", |b| b["data"]["key"] == "1").await;
    }
    stage.until_green("app").await;
}

#[tokio::test(start_paused = true)]
async fn requests_are_refused_for_load_now_and_then() {
    let stage = begun().await;
    stage.faults.plan(|_, _, number| (number % 3 != 0).then_some(RequestFault::Refuse(429)));
    assert_done(&stage).await;
}

#[tokio::test(start_paused = true)]
async fn internal_errors_and_overload_pass() {
    for code in [500, 503, 504] {
        let stage = begun().await;
        stage.faults.plan(move |method, _, number| {
            (method != "GET" && number % 2 == 0).then_some(RequestFault::Refuse(code))
        });
        assert_done(&stage).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_token_runs_out_and_is_renewed() {
    let stage = begun().await;
    stage.faults.plan(|_, _, _| Some(RequestFault::Refuse(401)));
    stage.faults.cut_watches();
    stage.pass(HOUR).await;
    stage.faults.end();
    assert_done(&stage).await;
}

#[tokio::test(start_paused = true)]
async fn answers_to_writes_are_lost() {
    let stage = begun().await;
    stage
        .faults
        .plan(|method, _, number| (method != "GET" && number % 2 == 0).then_some(RequestFault::LoseAnswer));
    assert_done(&stage).await;
}

#[tokio::test(start_paused = true)]
async fn answers_come_late() {
    let stage = begun().await;
    stage.faults.plan(|_, _, number| (number % 4 == 0).then_some(RequestFault::Late(MINUTE)));
    assert_done(&stage).await;
}

#[tokio::test(start_paused = true)]
async fn the_clock_of_the_engine_is_a_day_off() {
    for ahead in [true, false] {
        let files = [
            ("app/a.yaml", in_wave("a", "0")),
            ("app/b.yaml", in_wave("b", "1")),
            ("app/c.yaml", in_wave("c", "2")),
        ];
        let files = files.each_ref().map(|(path, text)| (*path, text.as_str()));
        let stage = Stage::with(&files, |settings| {
            let right = settings.clock.clone();
            let day = 24 * HOUR;
            settings.clock = Clock::new(move || match ahead {
                true => after(right.now(), day),
                false => right.now() - jiff::SignedDuration::try_from(day).unwrap(),
            });
            settings.sync.wave_delay = MINUTE;
        })
        .await;
        stage.apply(application("app", "app")).await;
        assert_done(&stage).await;
        stage.delete(CONFIG_MAP, "app", "b").await;
        stage.until_object(CONFIG_MAP, "app", "b", |_| true).await;
        stage.remove("app/c.yaml");
        stage.until_gone(CONFIG_MAP, "app", "c").await;
        stage.until_green("app").await;
    }
}

#[tokio::test(start_paused = true)]
async fn another_engine_writes_the_status_too() {
    let stage = Stage::new(&[("app/a.yaml", &config_map("a", "1"))]).await;
    stage.apply(application("app", "app")).await;
    stage.until_green("app").await;
    let theirs = |health: &str| json!({"status": {"health": {"status": health}}});
    let write = async |health: &str| {
        let status = theirs(health);
        stage.patch_as(APPLICATION, ENGINE, "app", status, "argocd-application-controller").await;
    };
    stage.pass(MINUTE).await;
    write("Progressing").await;
    let app = stage.until_app("app", |app| condition(app, "OtherEngine").is_some()).await;
    let told = condition(&app, "OtherEngine").unwrap();
    assert!(told.contains("argocd-application-controller") && told.contains("--shadow"), "{told}");
    let events = stage.list(("v1", "Event")).await;
    assert!(events.iter().any(|event| event["reason"] == "OtherEngine"));
    stage.delete(CONFIG_MAP, "app", "a").await;
    for _ in 0..10 {
        stage.pass(3 * MINUTE).await;
        write("Missing").await;
        stage.pass(3 * MINUTE).await;
        write("Progressing").await;
    }
    assert!(stage.get(CONFIG_MAP, "app", "a").await.is_none(), "nothing is done beside another engine");
    // It was stopped.
    stage.until_object(CONFIG_MAP, "app", "a", |_| true).await;
    let app = stage.until_green("app").await;
    assert!(condition(&app, "OtherEngine").is_none());
}

#[tokio::test(start_paused = true)]
async fn what_another_engine_left_behind_is_no_hindrance() {
    let stage = Stage::idle(&[("app/a.yaml", &config_map("a", "1"))], |_| {}).await;
    let mut stage = stage;
    stage.apply(application("app", "app")).await;
    let status = json!({"status": {"health": {"status": "Progressing"}}});
    stage.patch_as(APPLICATION, ENGINE, "app", status, "argocd-application-controller").await;
    stage.start().await;
    stage.until_green("app").await;
}

#[tokio::test(start_paused = true)]
async fn two_engines_at_once_do_no_harm() {
    let mut stage = begun().await;
    let first = stage.engine.take();
    stage.start().await;
    stage.until_green("app").await;
    assert_eq!(stage.names(CONFIG_MAP, "app").await, ["a", "b", "c", "kube-root-ca.crt"]);
    let uid = stage.get(CONFIG_MAP, "app", "b").await.unwrap().uid().to_owned();
    stage.pass(HOUR).await;
    assert_eq!(stage.get(CONFIG_MAP, "app", "b").await.unwrap().uid(), uid);
    drop(first);
}

const WIDGET: &str = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: w, annotations: {argocd.argoproj.io/sync-wave: '2'}}\nspec: {}\n";
const CLAIM: &str = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: p, annotations: {argocd.argoproj.io/sync-wave: '1'}}\nspec:\n  storageClassName: none\n  accessModes: [ReadWriteOnce]\n  resources: {requests: {storage: 1Gi}}\n";

#[tokio::test(start_paused = true)]
async fn a_definition_goes_under_a_running_sync() {
    let crd = tiphys_yaml::to_yaml(&crate::incidents::definition("widgets", "Widget"));
    let files = [("app/crd.yaml", &*crd), ("app/p.yaml", CLAIM), ("app/w.yaml", WIDGET)];
    let stage = Stage::new(&files).await;
    stage.apply(application("app", "app")).await;
    stage.until_app("app", |app| message(app).starts_with("waiting for healthy state")).await;
    let definitions = ("apiextensions.k8s.io/v1", "CustomResourceDefinition");
    stage.delete(definitions, "", "widgets.example.com").await;
    stage.until_gone(definitions, "", "widgets.example.com").await;
    stage.pass(MINUTE).await;
    // What held the sync is repaired; the definition comes back with the next one at the latest.
    stage.remove("app/p.yaml");
    stage.until_green("app").await;
    assert!(stage.get(("example.com/v1", "Widget"), "app", "w").await.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_does_not_end_blocks_only_what_goes_there() {
    let elsewhere = config_map("b", "1").replace("name: b", "name: b\n  namespace: other");
    let files = [("app/a.yaml", &*config_map("a", "1")), ("app/b.yaml", &*elsewhere)];
    let stage = Stage::new(&files).await;
    for namespace in ["app", "other"] {
        stage.namespace(namespace).await;
    }
    let mut held: Value = tiphys_yaml::from_yaml(&config_map("held", "1")).unwrap();
    held["metadata"]["namespace"] = "app".into();
    held["metadata"]["finalizers"] = json!(["operator.example.com/gone"]);
    stage.apply(held).await;
    stage.delete(("v1", "Namespace"), "", "app").await;
    stage.apply(application("app", "app")).await;
    let app = stage.until_app("app", |app| condition(app, "BlockedBy").is_some()).await;
    assert!(
        condition(&app, "BlockedBy").unwrap().contains("being terminated"),
        "{}",
        app["status"]["conditions"]
    );
    stage.until_object(CONFIG_MAP, "other", "b", |_| true).await;
    stage.pass(HOUR).await;
    let app = stage.get(APPLICATION, ENGINE, "app").await.unwrap();
    assert_eq!(phase(&app), "Running");
    assert_eq!(app["status"]["operationState"].get("retryCount"), None);
    stage.patch(CONFIG_MAP, "app", "held", json!({"metadata": {"finalizers": null}})).await;
    stage.until_object(CONFIG_MAP, "app", "a", |_| true).await;
    stage.until_green("app").await;
}

#[tokio::test(start_paused = true)]
async fn one_broken_application_of_five_hundred_leaves_the_others_alone() {
    const ALL: usize = 500;
    let mut files: Vec<(String, String)> =
        (0..ALL).map(|n| (format!("apps/{n}/c.yaml"), config_map(&format!("c{n}"), "1"))).collect();
    files[250].1 = "apiVersion: v1\nkind: ConfigMap\n  metadata: [\n".into();
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let stage = Stage::new(&files).await;
    for number in 0..ALL {
        let mut app = application(&format!("app-{number}"), &format!("apps/{number}"));
        app["spec"]["destination"]["namespace"] = "all".into();
        stage.apply(app).await;
    }
    let broken = stage.until_app("app-250", |app| condition(app, "ComparisonError").is_some()).await;
    assert!(condition(&broken, "ComparisonError").unwrap().contains("apps/250/c.yaml"));
    for number in (0..ALL).filter(|number| *number != 250) {
        stage.until_green(&format!("app-{number}")).await;
    }
}

const GADGETS: &str = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: gadgets.other.example.com}\nspec:\n  group: other.example.com\n  scope: Namespaced\n  names: {plural: gadgets, singular: gadget, kind: Gadget}\n  versions:\n  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}\n";

#[tokio::test(start_paused = true)]
async fn a_group_that_does_not_say_what_it_serves_has_not_lost_its_objects() {
    let role = "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: r}\nrules: []\n";
    let stage = Stage::new(&[("app/role.yaml", role)]).await;
    stage.apply(application("app", "app")).await;
    let before = stage.until_green("app").await;
    stage.faults.plan(|_, path, _| {
        (path == "/apis/rbac.authorization.k8s.io/v1").then_some(RequestFault::Refuse(503))
    });
    stage.apply_yaml(GADGETS).await;
    stage.pass(10 * MINUTE).await;
    let after = stage.until_green("app").await;
    assert_eq!(after["status"]["operationState"], before["status"]["operationState"], "nothing was synced");
    assert!(after.pointer("/status/tiphys/reverted").is_none());
    assert_eq!(stage.faults.writes().iter().filter(|write| write.contains("/roles/")).count(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_deletion_that_cannot_be_written_is_written_later() {
    let stage = begun().await;
    assert_done(&stage).await;
    stage.faults.plan(|method, path, _| {
        (method == "PATCH" && path.contains("/applications/")).then_some(RequestFault::Refuse(500))
    });
    stage.delete(APPLICATION, ENGINE, "app").await;
    stage.until_gone(CONFIG_MAP, "app", "a").await;
    stage.pass(10 * MINUTE).await;
    assert!(stage.get(APPLICATION, ENGINE, "app").await.is_some());
    stage.faults.end();
    stage.until_gone(APPLICATION, ENGINE, "app").await;
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_meets_a_dead_api_group_goes_on_with_the_others() {
    let stage = begun().await;
    let dead = Arc::new(AtomicBool::new(true));
    let is_dead = dead.clone();
    stage.faults.plan(move |_, path, _| {
        (path.starts_with("/apis/autoscaling") && is_dead.load(Ordering::Relaxed))
            .then_some(RequestFault::Refuse(503))
    });
    stage.faults.cut_watches();
    assert_done(&stage).await;
    dead.store(false, Ordering::Relaxed);
    stage.delete(CONFIG_MAP, "app", "a").await;
    stage.until_object(CONFIG_MAP, "app", "a", |_| true).await;
}

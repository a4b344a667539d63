//! SIGKILL after every single write of the engine, before it hears of it: started again, it comes to the same
//! end. Nothing of the engine outlives it, so to die before a write is to die after the one before it.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tiphys_value::{ObjectExt, Value, json};

use tiphys_stage::request_faults::RequestFault;

use crate::{
    incidents::{in_wave, parent, yaml},
    stage::{APPLICATION, CONFIG_MAP, ENGINE, Stage, application, config_map, is_green},
};

/// What is there in the end: ConfigMaps with their data, and Applications with the length of their history.
type End = BTreeMap<String, Value>;

fn annotated(name: &str, annotation: &str) -> String {
    config_map(name, "1")
        .replace(&format!("name: {name}"), &format!("name: {name}\n  annotations: {{{annotation}}}"))
}

const PASSING: &str =
    "argocd.argoproj.io/hook: PreSync, argocd.argoproj.io/hook-delete-policy: HookSucceeded";

/// A parent with two children; of one hooks, of which one goes at the end, waves, and what is pruned and
/// changed later.
fn files() -> Vec<(String, String)> {
    let file = |path: &str, text: String| (path.to_owned(), text);
    vec![
        file("root/first.yaml", yaml(&in_wave(application("first", "first"), "0"))),
        file("root/second.yaml", yaml(&in_wave(application("second", "second"), "1"))),
        file("first/hook.yaml", annotated("hook", "argocd.argoproj.io/hook: PreSync")),
        file("first/passing.yaml", annotated("passing", PASSING)),
        file("first/a.yaml", annotated("a", "argocd.argoproj.io/sync-wave: '1'")),
        file("first/gone.yaml", config_map("gone", "1")),
        file("second/b.yaml", config_map("b", "1")),
    ]
}

/// Waits until something holds; the engine may die meanwhile, once.
async fn through(stage: &mut Stage, holds: impl AsyncFn(&Stage) -> bool) {
    loop {
        let died = {
            let stage = &*stage;
            let done = stage.until("the end of the step", async || holds(stage).await.then_some(()));
            tokio::select! { () = stage.faults.death() => true, () = done => false }
        };
        if !died {
            return;
        }
        stage.kill();
        stage.faults.end();
        stage.start().await;
    }
}

async fn all_green(stage: &Stage, count: usize) -> bool {
    let apps = stage.list(APPLICATION).await;
    apps.len() == count && apps.iter().all(is_green)
}

/// From nothing over an edit to the deletion of one child, and at which write the engine dies; also how many
/// writes there were.
async fn run(death: Option<u64>) -> (End, u64) {
    let files = files();
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let mut stage = Stage::idle(&files, |settings| settings.workers = 1).await;
    let writes = Arc::new(AtomicU64::new(0));
    let count = writes.clone();
    stage.faults.plan(move |method, path, _| {
        let is_write = method != "GET" && !path.contains("dryRun=All");
        let number = count.load(Ordering::SeqCst) + u64::from(is_write);
        count.store(number, Ordering::SeqCst);
        (is_write && death == Some(number)).then_some(RequestFault::Die)
    });
    stage.start().await;
    stage.apply(parent("root", "root")).await;
    through(&mut stage, async |stage| all_green(stage, 3).await).await;
    stage.hold();
    stage.remove("first/gone.yaml");
    let other = annotated("a", "argocd.argoproj.io/sync-wave: '1'").replace("key: \"1\"", "key: \"2\"");
    stage.write("first/a.yaml", &other);
    stage.resume();
    let changed = async |stage: &Stage| {
        let a = stage.get(CONFIG_MAP, "first", "a").await;
        a.is_some_and(|a| a["data"]["key"] == "2")
            && stage.get(CONFIG_MAP, "first", "gone").await.is_none()
            && all_green(stage, 3).await
    };
    through(&mut stage, changed).await;
    stage.remove("root/second.yaml");
    through(&mut stage, async |stage| all_green(stage, 2).await).await;
    (end(&stage).await, writes.load(Ordering::SeqCst))
}

async fn end(stage: &Stage) -> End {
    let mut end = End::new();
    for object in stage.list(CONFIG_MAP).await {
        if matches!(object.namespace(), "first" | "second") {
            end.insert(format!("{}/{}", object.namespace(), object.name()), object["data"].clone());
        }
    }
    for app in stage.list(APPLICATION).await {
        assert_eq!(app.namespace(), ENGINE);
        let synced = app["status"]["history"].as_array().map_or(0, Vec::len);
        end.insert(
            app.name().to_owned(),
            json!({"history": synced, "resources": app["status"]["resources"]}),
        );
    }
    end
}

fn in_virtual_time<T>(work: impl Future<Output = T>) -> T {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(work)
}

#[test]
fn an_engine_that_dies_between_any_two_writes_comes_to_the_same_end() {
    let (whole, writes) = in_virtual_time(run(None));
    assert!(writes > 15, "{writes}");
    assert!(whole.contains_key("first/a") && whole.contains_key("first/hook"), "{whole:?}");
    assert!(!whole.contains_key("first/passing") && !whole.contains_key("second/b"), "{whole:?}");
    for at in 1..=writes {
        let (end, _) = in_virtual_time(run(Some(at)));
        assert_eq!(end, whole, "write {at} of {writes}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_is_gone_asks_for_nothing_more() {
    let mut stage = Stage::idle(&[("app/one.yaml", &config_map("one", "1"))], |_| {}).await;
    let slow = Duration::from_secs(30);
    stage.faults.plan(move |method, path, _| {
        (method == "PATCH" && path.contains("/configmaps/one")).then_some(RequestFault::Late(slow))
    });
    stage.start().await;
    stage.apply(application("app", "app")).await;
    // It is during a write when it ends.
    stage.until_object(CONFIG_MAP, "app", "one", |_| true).await;
    stage.kill();
    let asked = stage.faults.requests();
    stage.pass(Duration::from_secs(600)).await;
    assert_eq!(stage.faults.requests()[asked.len()..], [] as [String; 0]);
}

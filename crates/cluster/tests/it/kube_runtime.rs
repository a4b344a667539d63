//! Programs of kube-rs' runtime on the embedded API, over HTTPS: watchers, a reflector, a controller with a
//! finalizer, Events.

use std::{future::Future, sync::Arc, time::Duration};

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
    config::{Config, KubeConfigOptions, Kubeconfig},
};
use kube_runtime::{
    Controller, WatchStreamExt,
    controller::Action,
    events::{Event, EventType, Recorder, Reporter},
    finalizer::{self, finalizer},
    reflector,
    wait::{await_condition, conditions::is_deleted},
    watcher,
};
use serde_json::json;
use tiphys_apiserver::{ApiServer, ApiServerOptions};

/// How long a test may take in all.
const PATIENCE: Duration = Duration::from_secs(300);
const NAME: &str = "kube.example.com/cleanup";

/// Runs a test with a client of a server of its own.
fn on_a_server<F: Future<Output = ()>>(test: impl FnOnce(Client) -> F) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let folder = tempfile::tempdir().unwrap();
    runtime.block_on(async {
        let server = ApiServer::new(ApiServerOptions::default()).unwrap();
        let serving = server.bind(([127, 0, 0, 1], 0).into()).await.unwrap();
        let file = folder.path().join("kubeconfig");
        serving.write_kubeconfig(&file).unwrap();
        tokio::spawn(serving.run());
        let read = Kubeconfig::read_from(&file).unwrap();
        let config = Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await.unwrap();
        let client = Client::try_from(config).unwrap();
        tokio::time::timeout(PATIENCE, test(client)).await.expect("the test ends in time");
    });
}

fn config_map(name: &str) -> ConfigMap {
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": {"for": "test"}}});
    serde_json::from_value(object).unwrap()
}

#[test]
fn a_watcher_sees_every_change_whichever_way_it_lists() {
    on_a_server(|client| async move {
        let api: Api<ConfigMap> = Api::default_namespaced(client);
        for config in [watcher::Config::default(), watcher::Config::default().streaming_lists()] {
            api.create(&PostParams::default(), &config_map("there")).await.unwrap();
            let mut events = watcher::watcher(api.clone(), config.labels("for=test")).boxed();
            let mut seen = Vec::new();
            while let Some(event) = events.try_next().await.unwrap() {
                match event {
                    watcher::Event::Init => seen.push("init".to_owned()),
                    watcher::Event::InitApply(object) => seen.push(format!("first {}", object.name_any())),
                    watcher::Event::InitDone => {
                        seen.push("all".to_owned());
                        api.create(&PostParams::default(), &config_map("new")).await.unwrap();
                        let patch = Patch::Merge(json!({"data": {"a": "1"}}));
                        api.patch("new", &PatchParams::default(), &patch).await.unwrap();
                        api.delete("new", &DeleteParams::default()).await.unwrap();
                    }
                    watcher::Event::Apply(object) => {
                        seen.push(format!("{} {:?}", object.name_any(), object.data.is_some()));
                    }
                    watcher::Event::Delete(object) => {
                        seen.push(format!("gone {}", object.name_any()));
                        break;
                    }
                }
            }
            assert_eq!(seen, ["init", "first there", "all", "new false", "new true", "gone new"]);
            api.delete("there", &DeleteParams::default()).await.unwrap();
        }
    });
}

#[test]
fn a_reflector_holds_what_is_there() {
    on_a_server(|client| async move {
        let api: Api<ConfigMap> = Api::default_namespaced(client);
        for number in 0..40 {
            api.create(&PostParams::default(), &config_map(&format!("c-{number}"))).await.unwrap();
        }
        let (store, writer) = reflector::store();
        let pages = watcher::Config::default().labels("for=test").page_size(7);
        // Without its pauses a watcher tries again and again, and never lets go of its thread, once the
        // runtime that ends has taken the client's connection away.
        let watching = watcher::watcher(api, pages).default_backoff();
        let stream = reflector::reflector(writer, watching).touched_objects();
        let following = tokio::spawn(stream.for_each(|_| std::future::ready(())));
        store.wait_until_ready().await.unwrap();
        assert_eq!(store.state().len(), 40);
        following.abort();
        assert!(following.await.unwrap_err().is_cancelled());
    });
}

/// What the controller of the test needs.
struct Context {
    client: Client,
    recorder: Recorder,
}

/// Keeps a Secret for a ConfigMap, and takes it away with it.
async fn reconcile(
    object: Arc<ConfigMap>,
    context: Arc<Context>,
) -> Result<Action, finalizer::Error<kube::Error>> {
    let namespace = object.namespace().unwrap_or_default();
    let maps: Api<ConfigMap> = Api::namespaced(context.client.clone(), &namespace);
    finalizer(&maps, NAME, object, async |event| {
        let secrets: Api<Secret> = Api::namespaced(context.client.clone(), &namespace);
        match event {
            finalizer::Event::Apply(object) => {
                let name = object.name_any();
                let secret = json!({"apiVersion": "v1", "kind": "Secret", "stringData": {"from": name},
                    "metadata": {"name": name, "ownerReferences": [object.controller_owner_ref(&())]}});
                secrets.patch(&name, &PatchParams::apply("keeper").force(), &Patch::Apply(secret)).await?;
                let kept = Event {
                    type_: EventType::Normal,
                    reason: "Kept".to_owned(),
                    note: Some(format!("there is a Secret for {name}")),
                    action: "Keep".to_owned(),
                    secondary: None,
                };
                context.recorder.publish(&kept, &object.object_ref(&())).await?;
            }
            finalizer::Event::Cleanup(object) => {
                secrets.delete(&object.name_any(), &DeleteParams::default()).await?;
            }
        }
        Ok(Action::await_change())
    })
    .await
}

#[test]
fn a_controller_keeps_what_it_owns_and_cleans_up() {
    on_a_server(|client| async move {
        let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
        let secrets: Api<Secret> = Api::default_namespaced(client.clone());
        let recorder = Recorder::new(client.clone(), Reporter::from("keeper"));
        let context = Arc::new(Context { client: client.clone(), recorder });
        let controller = Controller::new(maps.clone(), watcher::Config::default().labels("for=test"))
            .owns(secrets.clone(), watcher::Config::default())
            .run(reconcile, |_, _, _| Action::requeue(Duration::from_millis(100)), context);
        let working = tokio::spawn(controller.for_each(|_| std::future::ready(())));

        let object = maps.create(&PostParams::default(), &config_map("owner")).await.unwrap();
        let is_there = |secret: Option<&Secret>| secret.is_some();
        let first = await_condition(secrets.clone(), "owner", is_there).await.unwrap().unwrap();
        assert_eq!(first.owner_references()[0].uid, object.uid().unwrap());
        secrets.delete("owner", &DeleteParams::default()).await.unwrap();
        let uid = first.uid();
        let is_another = move |secret: Option<&Secret>| secret.is_some_and(|secret| secret.uid() != uid);
        await_condition(secrets.clone(), "owner", is_another).await.unwrap();

        maps.delete("owner", &DeleteParams::default()).await.unwrap();
        await_condition(maps, "owner", is_deleted(&object.uid().unwrap())).await.unwrap();
        assert!(secrets.get_opt("owner").await.unwrap().is_none());
        let events: Api<k8s_openapi::api::events::v1::Event> = Api::default_namespaced(client);
        let told = events.list(&ListParams::default()).await.unwrap();
        let about = |event: &k8s_openapi::api::events::v1::Event| {
            event.regarding.as_ref().and_then(|object| object.name.clone())
        };
        let told = told.items.iter().find(|event| event.reason.as_deref() == Some("Kept")).unwrap();
        assert_eq!(about(told).as_deref(), Some("owner"));
        working.abort();
        assert!(working.await.unwrap_err().is_cancelled());
    });
}

//! Sites and what is written down of them, under virtual time.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

use std::time::Duration;

use tiphys_apiserver::{ApiServer, DeleteOptions};
use tiphys_model::Tracking;
use tiphys_stage::{
    Recorder, Site, SiteOptions,
    story::{Moment, What},
    virtual_runtime,
};
use tiphys_value::{GroupVersionResource, ObjectExt, Value, json};

fn resource(group: &str, plural: &str) -> GroupVersionResource {
    GroupVersionResource::new(group, "v1", plural)
}

fn deployment(image: &str) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "default"},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "c", "image": image}]}}}})
}

fn create(server: &ApiServer) {
    server.client("test").create(&resource("apps", "deployments"), "default", deployment("a:1")).unwrap();
}

fn ready(server: &ApiServer) -> i64 {
    let found = server.client("test").get(&resource("apps", "deployments"), "default", "web");
    found.map(|web| web.value().int_at(&["status", "readyReplicas"]).unwrap_or(0)).unwrap_or(-1)
}

async fn pass(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

fn site(seed: u64) -> Site {
    Site::fresh(SiteOptions { seed, ..SiteOptions::default() }).unwrap()
}

#[test]
fn forks_go_their_own_ways_from_one_moment() {
    let still = virtual_runtime().unwrap().block_on(async {
        let site = site(1);
        create(site.server());
        pass(30).await;
        site.still()
    });
    assert_eq!(ready(still.server()), 2);
    // A runtime of its own for each: time goes on from where it stopped.
    virtual_runtime().unwrap().block_on(async {
        let one = still.resume().unwrap();
        let other = still.resume().unwrap();
        assert_eq!(one.now(), still.at());
        let client = one.server().client("test");
        client.delete(&resource("apps", "deployments"), "default", "web", &DeleteOptions::default()).unwrap();
        pass(60).await;
        assert_eq!((ready(one.server()), ready(other.server())), (-1, 2));
        assert_eq!(one.now(), other.now());
    });
    assert_eq!(ready(still.server()), 2, "nobody writes to what stands still");
}

#[test]
fn a_fork_in_the_midst_of_a_rollout_ends_it() {
    let still = virtual_runtime().unwrap().block_on(async {
        let site = site(1);
        create(site.server());
        tokio::time::sleep(Duration::from_millis(150)).await;
        site.still()
    });
    assert_eq!(ready(still.server()), 0);
    virtual_runtime().unwrap().block_on(async {
        let site = still.resume().unwrap();
        pass(10).await;
        assert_eq!(ready(site.server()), 2);
    });
}

fn history(seed: u64) -> Vec<Moment> {
    virtual_runtime().unwrap().block_on(async {
        let site = site(seed);
        let recorder = Recorder::start(vec![site.server().clone()], Tracking::default());
        create(site.server());
        pass(60).await;
        recorder.record().moments().to_vec()
    })
}

#[test]
fn one_seed_has_one_history() {
    for seed in 0..50 {
        assert_eq!(history(seed), history(seed), "seed {seed}");
    }
    assert_ne!(history(1), history(2), "seeds draw names");
}

#[test]
fn moments_name_the_workload_that_made_a_pod() {
    let moments = history(1);
    let pods: Vec<&Moment> =
        moments.iter().filter(|it| it.object.kind == "Pod" && it.what == What::Created).collect();
    assert_eq!(pods.len(), 2);
    for pod in pods {
        let maker = pod.made_by.as_ref().unwrap();
        assert_eq!((maker.kind.as_str(), maker.name.as_str()), ("Deployment", "web"));
    }
    let ready = moments.iter().filter(|it| it.object.kind == "Pod" && it.to == "Ready").count();
    assert_eq!(ready, 2, "{moments:#?}");
}

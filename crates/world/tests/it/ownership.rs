//! Owners take up what they select, let go of what they do not, and Jobs count every pod once.

use std::collections::BTreeSet;

use tiphys_apiserver::Propagation;
use tiphys_value::{GroupVersionResource, Value, json};

use crate::support::{Cluster, MINUTE, deployments, pods, resource, template, workload};

fn replica_sets() -> GroupVersionResource {
    resource("apps", "v1", "replicasets")
}

fn jobs() -> GroupVersionResource {
    resource("batch", "v1", "jobs")
}

#[test]
fn what_was_orphaned_is_taken_up_by_the_next_owner() {
    let mut cluster = Cluster::new();
    let sets = resource("apps", "v1", "statefulsets");
    cluster.create(&deployments(), workload("Deployment", "web", 2));
    let mut database = workload("StatefulSet", "db", 2);
    let labels = json!({"app": "db"});
    database["spec"]["selector"]["matchLabels"] = labels.clone();
    database["spec"]["template"]["metadata"]["labels"] = labels;
    cluster.create(&sets, database.clone());
    cluster.run(MINUTE);
    let uids = |cluster: &Cluster| -> BTreeSet<String> {
        let names = cluster.names(&pods(), "shop");
        let of = |name: &String| cluster.get(&pods(), "shop", name).unwrap()["metadata"]["uid"].to_string();
        names.iter().map(of).collect()
    };
    let before = uids(&cluster);
    cluster.delete(&deployments(), "shop", "web", Propagation::Orphan);
    cluster.delete(&sets, "shop", "db", Propagation::Orphan);
    cluster.run(MINUTE);
    let orphan = &cluster.names(&replica_sets(), "shop")[0];
    assert_eq!(
        cluster.get(&replica_sets(), "shop", orphan).unwrap()["metadata"].get("ownerReferences"),
        None
    );
    cluster.create(&deployments(), workload("Deployment", "web", 2));
    cluster.create(&sets, database);
    cluster.run(MINUTE);
    assert_eq!(uids(&cluster), before);
    assert_eq!(cluster.names(&replica_sets(), "shop").len(), 1);
    assert_eq!(cluster.get(&deployments(), "shop", "web").unwrap()["status"]["readyReplicas"], 2);
    assert_eq!(cluster.get(&sets, "shop", "db").unwrap()["status"]["readyReplicas"], 2);
    assert_eq!(cluster.names(&resource("apps", "v1", "controllerrevisions"), "shop").len(), 1);
}

#[test]
fn a_pod_that_loses_its_labels_is_let_go_and_replaced() {
    let mut cluster = Cluster::new();
    let mut alone = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "alone", "namespace": "shop", "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]}});
    cluster.create(&pods(), alone.clone());
    let controllers = resource("", "v1", "replicationcontrollers");
    cluster.create(&controllers, json!({"apiVersion": "v1", "kind": "ReplicationController", "metadata": {"name": "rc", "namespace": "shop"},
        "spec": {"replicas": 1, "selector": {"app": "web"}, "template": template("web:1")}}));
    cluster.run(MINUTE);
    assert_eq!(cluster.names(&pods(), "shop"), ["alone"]);
    alone = cluster.get(&pods(), "shop", "alone").unwrap();
    assert_eq!(alone["metadata"]["ownerReferences"][0]["kind"], "ReplicationController");
    alone["metadata"]["labels"]["app"] = "other".into();
    cluster.update(&pods(), alone);
    cluster.run(MINUTE);
    assert_eq!(cluster.names(&pods(), "shop").len(), 2);
    assert_eq!(cluster.get(&pods(), "shop", "alone").unwrap()["metadata"].get("ownerReferences"), None);
    assert_eq!(cluster.get(&controllers, "shop", "rc").unwrap()["status"]["readyReplicas"], 1);
}

fn job(spec: Value) -> Value {
    let mut job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "work", "namespace": "shop"}, "spec": spec});
    job["spec"]["template"] =
        json!({"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}});
    job
}

#[test]
fn pods_are_counted_before_they_may_go() {
    let mut cluster = Cluster::new();
    cluster.create(&jobs(), job(json!({"completions": 3, "parallelism": 1})));
    let mut gone = 0;
    // Whoever deletes finished pods takes nothing from the count.
    for _ in 0..120 {
        cluster.run(std::time::Duration::from_millis(250));
        for name in cluster.names(&pods(), "shop") {
            let pod = cluster.get(&pods(), "shop", &name).unwrap();
            if pod["status"]["phase"] == "Succeeded" && pod["metadata"].get("deletionTimestamp").is_none() {
                cluster.delete(&pods(), "shop", &name, Propagation::Background);
                gone += 1;
            }
        }
    }
    let done = cluster.get(&jobs(), "shop", "work").unwrap();
    assert_eq!((&done["status"]["succeeded"], gone), (&json!(3), 3), "{done}");
    assert_eq!(done["status"]["uncountedTerminatedPods"], json!({}));
    let kinds: Vec<_> =
        done["status"]["conditions"].as_array().unwrap().iter().map(|c| c["type"].clone()).collect();
    assert_eq!(kinds, ["SuccessCriteriaMet", "Complete"]);
    let history = cluster.history();
    let made = history.iter().find(|line| line.starts_with("Created pods") || line.starts_with("Added pods"));
    assert!(made.unwrap().contains("batch.kubernetes.io/job-tracking"), "{made:?}");
    assert_eq!(cluster.names(&pods(), "shop"), Vec::<String>::new());
}

#[test]
fn a_running_pod_that_is_deleted_counts_as_failed_and_a_suspended_one_does_not() {
    let mut cluster = Cluster::new();
    cluster.behave("containers: [{image: i, exits: {code: 0, after: 1h}}]");
    cluster.create(&jobs(), job(json!({"backoffLimit": 5})));
    cluster.run(MINUTE);
    let name = cluster.names(&pods(), "shop")[0].clone();
    cluster.delete(&pods(), "shop", &name, Propagation::Background);
    cluster.run(MINUTE);
    let work = cluster.get(&jobs(), "shop", "work").unwrap();
    assert_eq!((&work["status"]["failed"], &work["status"]["active"]), (&json!(1), &json!(1)), "{work}");
    let mut suspended = work;
    suspended["spec"]["suspend"] = true.into();
    cluster.update(&jobs(), suspended);
    cluster.run(MINUTE);
    let work = cluster.get(&jobs(), "shop", "work").unwrap();
    assert_eq!((&work["status"]["failed"], work["status"].get("active")), (&json!(1), None), "{work}");
    assert_eq!(cluster.names(&pods(), "shop"), Vec::<String>::new());
}

#[test]
fn indexes_fail_by_themselves() {
    let mut cluster = Cluster::new();
    cluster.behave("containers: [{image: i, pods: {labels: {batch.kubernetes.io/job-completion-index: '1'}}, exits: {code: 1, after: 1s}}]");
    cluster.create(
        &jobs(),
        job(json!({"completionMode": "Indexed", "completions": 3, "parallelism": 3, "backoffLimitPerIndex": 1})),
    );
    cluster.run(10 * MINUTE);
    let done = cluster.get(&jobs(), "shop", "work").unwrap();
    let status = &done["status"];
    assert_eq!(
        (&status["completedIndexes"], &status["failedIndexes"]),
        (&json!("0,2"), &json!("1")),
        "{status}"
    );
    assert_eq!((&status["failed"], &status["succeeded"]), (&json!(2), &json!(2)));
    assert_eq!(status["conditions"][1]["reason"], "FailedIndexes");
}

#[test]
fn a_job_goes_with_the_pods_that_it_has_not_counted() {
    let mut cluster = Cluster::new();
    cluster.behave("containers: [{image: i, exits: {code: 0, after: 1h}}]");
    cluster.create(&jobs(), job(json!({"parallelism": 2, "completions": 2})));
    cluster.run(MINUTE);
    for propagation in [Propagation::Foreground, Propagation::Background] {
        cluster.delete(&jobs(), "shop", "work", propagation);
        cluster.run(2 * MINUTE);
        assert_eq!(cluster.names(&pods(), "shop"), Vec::<String>::new());
        assert_eq!(cluster.get(&jobs(), "shop", "work"), None);
        cluster.create(&jobs(), job(json!({"parallelism": 2, "completions": 2})));
        cluster.run(MINUTE);
    }
}

#[test]
fn recreate_runs_no_new_pod_beside_an_old_one() {
    let mut cluster = Cluster::new();
    cluster.behave("containers: [{stops: 20s}]");
    let mut web = workload("Deployment", "web", 2);
    web["spec"]["strategy"] = json!({"type": "Recreate"});
    cluster.create(&deployments(), web);
    cluster.run(MINUTE);
    let before = cluster.names(&pods(), "shop");
    let mut changed = cluster.get(&deployments(), "shop", "web").unwrap();
    changed["spec"]["template"] = template("web:2");
    cluster.update(&deployments(), changed);
    cluster.run(MINUTE / 6);
    assert_eq!(cluster.names(&pods(), "shop"), before, "the old ones take their time");
    cluster.run(MINUTE);
    let after = cluster.names(&pods(), "shop");
    assert!(after.len() == 2 && !after.iter().any(|name| before.contains(name)), "{after:?}");
}

#[test]
fn a_program_that_only_sleeps_and_exits_does_as_it_says() {
    let mut cluster = Cluster::new();
    let mut failing = job(json!({"backoffLimit": 0}));
    failing["spec"]["template"]["spec"]["containers"][0]["command"] = json!(["sh", "-c", "sleep 90; exit 7"]);
    cluster.create(&jobs(), failing);
    cluster.run(MINUTE);
    assert_eq!(cluster.get(&jobs(), "shop", "work").unwrap()["status"]["active"], 1);
    cluster.run(MINUTE);
    let failed = cluster.get(&jobs(), "shop", "work").unwrap();
    assert_eq!(failed["status"]["conditions"][1]["reason"], "BackoffLimitExceeded");
    let pod = cluster.get(&pods(), "shop", &cluster.names(&pods(), "shop")[0]).unwrap();
    assert_eq!(pod["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"], 7);
}

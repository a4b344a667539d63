//! The scheduler: who has to leave for whom.

use std::time::Duration;

use tiphys_apiserver::Propagation;
use tiphys_value::{Value, json};
use tiphys_world::Settings;

use crate::support::{Cluster, MINUTE, pods, resource};

/// How many times the status of a pod was written by the scheduler because of a node.
fn refusals(cluster: &Cluster, name: &str) -> usize {
    let is_refusal = |line: &&String| {
        line.contains(&format!("\"name\":\"{name}\"")) && line.contains("\"reason\":\"Unschedulable\"")
    };
    let lines = cluster.history();
    let told = lines.iter().filter(|line| line.contains(" pods ")).filter(is_refusal);
    told.filter(|line| line.contains("\"kind\":\"Pod\"")).count()
}

/// A cluster with three classes of pods. Its nodes have 8 CPUs each.
fn cluster() -> Cluster {
    let cluster = Cluster::new();
    for (name, value, policy) in [("low", 1, None), ("high", 100, None), ("polite", 100, Some("Never"))] {
        let class = json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name},
            "value": value, "preemptionPolicy": policy.unwrap_or("PreemptLowerPriority")});
        cluster.create(&resource("scheduling.k8s.io", "v1", "priorityclasses"), class);
    }
    cluster
}

fn pod(name: &str, class: &str, cpu: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "shop", "labels": {"app": name}},
        "spec": {"priorityClassName": class, "terminationGracePeriodSeconds": 5, "containers": [
            {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}]}})
}

fn node_of(cluster: &Cluster, name: &str) -> Option<String> {
    let pod = cluster.get(&pods(), "shop", name)?;
    pod["spec"]["nodeName"].as_str().map(str::to_owned)
}

#[test]
fn a_port_of_a_node_is_given_once_even_past_the_scheduler() {
    let mut cluster = Cluster::new();
    let pod = |name: &str| {
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "shop"},
            "spec": {"nodeName": "node-1", "containers": [
                {"name": "c", "image": "i", "ports": [{"containerPort": 80, "hostPort": 8080}]}]}})
    };
    cluster.create(&pods(), pod("first"));
    cluster.run(MINUTE);
    cluster.create(&pods(), pod("second"));
    cluster.run(MINUTE);
    assert_eq!(cluster.get(&pods(), "shop", "first").unwrap()["status"]["phase"], "Running");
    let second = cluster.get(&pods(), "shop", "second").unwrap();
    assert_eq!(
        (&second["status"]["phase"], &second["status"]["reason"]),
        (&json!("Failed"), &json!("NodePorts"))
    );
}

#[test]
fn a_more_important_pod_takes_the_place_of_the_fewest_less_important_ones() {
    let mut cluster = cluster();
    for name in ["a", "b", "c"] {
        cluster.create(&pods(), pod(name, "low", "5"));
    }
    cluster.run(MINUTE);
    // One small pod more on some node: to clear that one would cost one pod more.
    cluster.create(&pods(), pod("d", "low", "3"));
    cluster.run(MINUTE);
    let crowded = node_of(&cluster, "d").unwrap();
    cluster.create(&pods(), pod("big", "high", "8"));
    cluster.run(MINUTE);
    let taken = node_of(&cluster, "big").unwrap();
    assert_ne!(taken, crowded);
    let left: Vec<_> = cluster.names(&pods(), "shop");
    assert_eq!(left.len(), 4, "{left:?}");
    let victim = ["a", "b", "c"].into_iter().find(|name| !left.contains(&(*name).to_owned())).unwrap();
    let big = cluster.get(&pods(), "shop", "big").unwrap();
    assert_eq!(big["status"].get("nominatedNodeName"), None);
    let uid = big["metadata"]["uid"].as_str().unwrap();
    let told = cluster.events("shop", victim);
    assert!(
        told.contains(&("Preempted".to_owned(), format!("Preempted by pod {uid} on node {taken}"))),
        "{told:?}"
    );
    let waited = ("FailedScheduling".to_owned(), "0/3 nodes are available: 3 Insufficient cpu.".to_owned());
    assert!(cluster.events("shop", "big").contains(&waited));
    let marked = cluster.history().into_iter().any(|line| {
        line.contains(&format!("\"name\":\"{victim}\"")) && line.contains("PreemptionByScheduler")
    });
    assert!(marked);
}

#[test]
fn a_pod_waits_that_may_not_preempt_or_for_which_that_would_not_be_enough() {
    let mut cluster = cluster();
    for name in ["a", "b", "c"] {
        cluster.create(&pods(), pod(name, "low", "5"));
    }
    cluster.run(MINUTE);
    cluster.create(&pods(), pod("patient", "polite", "4"));
    cluster.create(&pods(), pod("vast", "high", "9"));
    cluster.create(&pods(), pod("equal", "low", "4"));
    cluster.run(MINUTE);
    for (name, why) in [
        (
            "patient",
            "0/3 nodes are available: 3 Insufficient cpu. no new claims to deallocate, preemption: not eligible due \
             to preemptionPolicy=Never.",
        ),
        (
            "vast",
            "0/3 nodes are available: 3 Insufficient cpu. no new claims to deallocate, preemption: 0/3 nodes are \
             available: 3 Preemption is not helpful for scheduling.",
        ),
        (
            "equal",
            "0/3 nodes are available: 3 Insufficient cpu. no new claims to deallocate, preemption: 0/3 nodes are \
             available: 3 No preemption victims found for incoming pod.",
        ),
    ] {
        assert_eq!(cluster.events("shop", name), [("FailedScheduling".to_owned(), why.to_owned())]);
    }
    cluster.delete(&pods(), "shop", "b", Propagation::Background);
    cluster.run(MINUTE);
    assert!(node_of(&cluster, "patient").is_some());
}

#[test]
fn pods_that_a_budget_protects_are_taken_last() {
    let mut cluster = cluster();
    for name in ["a", "b", "c"] {
        cluster.create(&pods(), pod(name, "low", "5"));
    }
    for protected in ["a", "b"] {
        let budget = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": protected, "namespace": "shop"},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": protected}}}});
        cluster.create(&resource("policy", "v1", "poddisruptionbudgets"), budget);
    }
    cluster.run(MINUTE);
    cluster.create(&pods(), pod("big", "high", "8"));
    cluster.run(MINUTE);
    assert_eq!(cluster.names(&pods(), "shop"), ["a", "b", "big"]);
}

#[test]
fn of_many_nodes_that_join_at_once_a_waiting_pod_is_told_once() {
    let mut cluster = Cluster::new();
    let nodes = resource("", "v1", "nodes");
    cluster.create(&pods(), pod("huge", "", "500"));
    cluster.run(MINUTE);
    assert_eq!(refusals(&cluster, "huge"), 1, "{:#?}", cluster.history());
    let model = cluster.get(&nodes, "", "node-1").unwrap();
    for number in 4..24 {
        let name = format!("node-{number}");
        let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}});
        cluster.create(&nodes, node.clone());
        let mut node = cluster.get(&nodes, "", &name).unwrap();
        node["status"] = model["status"].clone();
        cluster.update_at(&nodes, node, "status");
        cluster.run(Duration::ZERO);
    }
    cluster.run(MINUTE);
    let told =
        cluster.get(&pods(), "shop", "huge").unwrap()["status"]["conditions"][0]["message"].to_string();
    assert!(told.contains("0/23 nodes are available: 23 Insufficient cpu."), "{told}");
    assert!(refusals(&cluster, "huge") <= 4, "{} times", refusals(&cluster, "huge"));
}

#[test]
fn a_pod_that_waits_runs_once_a_node_joins_and_a_new_one_does_not_wait_for_it() {
    let mut cluster = Cluster::new();
    let nodes = resource("", "v1", "nodes");
    let mut waiting = pod("waits", "", "1");
    waiting["spec"]["nodeSelector"] = json!({"disk": "ssd"});
    cluster.create(&pods(), waiting);
    cluster.run(MINUTE);
    assert_eq!(node_of(&cluster, "waits"), None);
    let mut node = cluster.get(&nodes, "", "node-2").unwrap();
    node["metadata"]["labels"]["disk"] = "ssd".into();
    cluster.update(&nodes, node);
    cluster.create(&pods(), pod("new", "", "1"));
    cluster.run(Duration::ZERO);
    assert!(node_of(&cluster, "new").is_some());
    cluster.run(Duration::from_secs(1));
    assert_eq!(node_of(&cluster, "waits").as_deref(), Some("node-2"));
}

/// A cluster of three zones with a class of disks, and a claim.
fn cluster_with_disk(provisioner: &str, mode: &str) -> Cluster {
    let zones = ["a", "b", "c"].map(str::to_owned).into();
    let cluster = Cluster::with(Settings { zones, ..Settings::default() });
    let class = json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "disk"},
        "provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer"});
    cluster.create(&resource("storage.k8s.io", "v1", "storageclasses"), class);
    let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data", "namespace": "shop"},
        "spec": {"storageClassName": "disk", "accessModes": [mode], "resources": {"requests": {"storage": "1Gi"}}}});
    cluster.create(&resource("", "v1", "persistentvolumeclaims"), claim);
    cluster
}

fn user_of_disk(name: &str, node: Option<&str>) -> Value {
    let mut pod = pod(name, "", "1");
    pod["spec"]["volumes"] = json!([{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]);
    if let Some(node) = node {
        pod["spec"]["nodeName"] = node.into();
    }
    pod
}

#[test]
fn a_disk_of_a_cloud_keeps_its_pods_in_its_zone() {
    let mut cluster = cluster_with_disk("ebs.csi.aws.com", "ReadWriteOnce");
    cluster.create(&pods(), user_of_disk("first", None));
    cluster.run(MINUTE);
    let node = node_of(&cluster, "first").unwrap();
    cluster.behave(&format!("nodes: [{{node: {node}, unreachable: {{}}}}]"));
    cluster.run(MINUTE);
    cluster.delete(&pods(), "shop", "first", Propagation::Background);
    cluster.create(&pods(), user_of_disk("second", None));
    cluster.run(MINUTE);
    assert_eq!(node_of(&cluster, "second"), None);
    let told =
        cluster.get(&pods(), "shop", "second").unwrap()["status"]["conditions"][0]["message"].to_string();
    assert!(told.contains("2 node(s) didn't match PersistentVolume's node affinity"), "{told}");
}

#[test]
fn a_disk_is_attached_to_one_node_and_serves_no_more() {
    let mut cluster = cluster_with_disk("ebs.csi.aws.com", "ReadWriteOnce");
    cluster.create(&pods(), user_of_disk("first", None));
    cluster.run(MINUTE);
    let other = if node_of(&cluster, "first").as_deref() == Some("node-1") { "node-2" } else { "node-1" };
    cluster.create(&pods(), user_of_disk("second", Some(other)));
    cluster.run(MINUTE);
    assert_eq!(cluster.get(&pods(), "shop", "second").unwrap()["status"]["phase"], "Pending");
    let told = cluster.events("shop", "second");
    let is_told = |(reason, message): &(String, String)| {
        reason == "FailedAttachVolume" && message.ends_with("Volume is already used by pod(s) first")
    };
    assert!(told.iter().any(is_told), "{told:?}");
    cluster.delete(&pods(), "shop", "first", Propagation::Background);
    cluster.run(5 * MINUTE);
    assert_eq!(cluster.get(&pods(), "shop", "second").unwrap()["status"]["phase"], "Running");
}

#[test]
fn a_disk_is_for_one_writer_and_a_file_share_for_many() {
    for (provisioner, phase) in [("ebs.csi.aws.com", "Pending"), ("efs.csi.aws.com", "Bound")] {
        let mut cluster = cluster_with_disk(provisioner, "ReadWriteMany");
        cluster.create(&pods(), user_of_disk("first", None));
        cluster.run(MINUTE);
        let claim = cluster.get(&resource("", "v1", "persistentvolumeclaims"), "shop", "data").unwrap();
        assert_eq!(claim["status"]["phase"], phase, "{provisioner}");
    }
}

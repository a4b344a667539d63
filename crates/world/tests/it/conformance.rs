//! What the real controllers do and the world once did otherwise, found by `cargo xtask conformance controllers`.

use std::time::Duration;

use tiphys_value::{GroupVersionResource, Value, json};

use crate::support::{Cluster, MINUTE, daemon_set, deployments, pods, resource, template, workload};

fn replica_sets() -> GroupVersionResource {
    resource("apps", "v1", "replicasets")
}

fn only(cluster: &Cluster, resource: &GroupVersionResource) -> Value {
    let names = cluster.names(resource, "shop");
    assert_eq!(names.len(), 1, "{names:?}");
    cluster.get(resource, "shop", &names[0]).unwrap()
}

fn ready(pod: &Value) -> Option<&str> {
    let conditions = pod["status"]["conditions"].as_array()?;
    conditions.iter().find(|condition| condition["type"] == "Ready")?["status"].as_str()
}

#[test]
fn a_new_deployment_is_of_its_first_generation_once_it_has_a_revision() {
    let mut cluster = Cluster::new();
    cluster.create(&deployments(), workload("Deployment", "web", 1));
    cluster.run(MINUTE);
    let web = cluster.get(&deployments(), "shop", "web").unwrap();
    assert_eq!(web["metadata"]["annotations"]["deployment.kubernetes.io/revision"], "1");
    assert_eq!(
        (&web["metadata"]["generation"], &web["status"]["observedGeneration"]),
        (&json!(1), &json!(1))
    );
}

#[test]
fn recreate_makes_the_new_set_once_the_old_pods_are_gone() {
    let mut cluster = Cluster::new();
    let mut web = workload("Deployment", "web", 2);
    web["spec"]["strategy"] = json!({"type": "Recreate"});
    cluster.create(&deployments(), web);
    cluster.run(MINUTE);
    let mut web = cluster.get(&deployments(), "shop", "web").unwrap();
    web["spec"]["template"] = template("web:2");
    cluster.update(&deployments(), web);
    cluster.run(MINUTE);
    let names = cluster.names(&replica_sets(), "shop");
    let sets: Vec<_> = names.iter().filter_map(|name| cluster.get(&replica_sets(), "shop", name)).collect();
    let new = sets.iter().find(|set| set["spec"]["replicas"] == 2).unwrap();
    assert_eq!(new["metadata"]["generation"], 1, "it was made with its replicas");
    assert_eq!(new["metadata"]["annotations"]["deployment.kubernetes.io/max-replicas"], "2");
}

#[test]
fn a_deployment_that_is_made_smaller_while_it_rolls_stays_available() {
    let mut cluster = Cluster::new();
    cluster.behave("images: [{image: \"*web:2\", pull: notFound}]");
    let mut web = workload("Deployment", "web", 4);
    web["spec"]["strategy"] = json!({"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}});
    cluster.create(&deployments(), web);
    cluster.run(MINUTE);
    let mut web = cluster.get(&deployments(), "shop", "web").unwrap();
    web["spec"]["template"] = template("web:2");
    cluster.update(&deployments(), web);
    cluster.run(MINUTE);
    let mut web = cluster.get(&deployments(), "shop", "web").unwrap();
    web["spec"]["replicas"] = 2.into();
    cluster.update(&deployments(), web);
    cluster.run(MINUTE);
    let web = cluster.get(&deployments(), "shop", "web").unwrap();
    assert_eq!(web["status"]["availableReplicas"], 1, "{}", web["status"]);
}

#[test]
fn a_set_that_waits_for_its_pods_says_what_is_left_of_them() {
    let mut cluster = Cluster::new();
    let mut set = workload("ReplicaSet", "web", 1);
    set["spec"]["template"]["metadata"]["finalizers"] = json!(["example.com/held"]);
    cluster.create(&replica_sets(), set);
    cluster.run(MINUTE);
    cluster.delete(&replica_sets(), "shop", "web", tiphys_apiserver::Propagation::Foreground);
    cluster.run(MINUTE);
    let set = cluster.get(&replica_sets(), "shop", "web").unwrap();
    assert_eq!((&set["status"]["replicas"], &set["status"]["terminatingReplicas"]), (&json!(0), &json!(1)));
}

#[test]
fn revisions_bear_what_their_owners_have() {
    let mut cluster = Cluster::new();
    let revisions = resource("apps", "v1", "controllerrevisions");
    let mut set = workload("StatefulSet", "web", 1);
    set["metadata"]["annotations"] = json!({"kubernetes.io/change-cause": "because"});
    cluster.create(&resource("apps", "v1", "statefulsets"), set);
    cluster.run(MINUTE);
    let revision = only(&cluster, &revisions);
    assert_eq!(revision["metadata"]["annotations"]["kubernetes.io/change-cause"], "because");
    assert!(revision["metadata"]["labels"]["controller.kubernetes.io/hash"].is_string());
    assert!(revision["metadata"]["labels"].get("controller-revision-hash").is_none());
}

#[test]
fn a_pod_with_an_ephemeral_volume_gets_a_claim_of_its_own() {
    let mut cluster = Cluster::new();
    let claim =
        json!({"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}});
    cluster.create(
        &pods(),
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one", "namespace": "shop"}, "spec": {
            "containers": [{"name": "c", "image": "web:1"}],
            "volumes": [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": claim}}]}}),
    );
    cluster.run(MINUTE);
    let claims = resource("", "v1", "persistentvolumeclaims");
    let claim = cluster.get(&claims, "shop", "one-scratch").unwrap();
    assert_eq!(claim["metadata"]["ownerReferences"][0]["kind"], "Pod");
    assert_eq!(cluster.get(&pods(), "shop", "one").unwrap()["status"]["phase"], "Running");
}

#[test]
fn a_claim_of_a_class_by_hand_waits_for_a_volume_and_is_given_one() {
    let mut cluster = Cluster::new();
    cluster.create(
        &resource("storage.k8s.io", "v1", "storageclasses"),
        json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "local"},
            "provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "WaitForFirstConsumer"}),
    );
    let claims = resource("", "v1", "persistentvolumeclaims");
    cluster.create(
        &claims,
        json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data", "namespace": "shop"},
            "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "local", "resources": {"requests": {"storage": "1Gi"}}}}),
    );
    cluster.create(
        &pods(),
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one", "namespace": "shop"}, "spec": {
            "containers": [{"name": "c", "image": "web:1"}],
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]}}),
    );
    cluster.run(MINUTE);
    let why = &cluster.events("shop", "one")[0].1;
    assert!(why.contains("3 node(s) didn't find available persistent volumes to bind"), "{why}");
    cluster.create(
        &resource("", "v1", "persistentvolumes"),
        json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "disk"}, "spec": {
            "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "storageClassName": "local",
            "local": {"path": "/disk"}, "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [
                {"key": "kubernetes.io/hostname", "operator": "In", "values": ["node-2"]}]}]}}}}),
    );
    cluster.run(MINUTE);
    assert_eq!(cluster.get(&claims, "shop", "data").unwrap()["spec"]["volumeName"], "disk");
    assert_eq!(cluster.get(&pods(), "shop", "one").unwrap()["spec"]["nodeName"], "node-2");
}

#[test]
fn a_taint_that_keeps_pods_away_leaves_running_daemons_alone() {
    let mut cluster = Cluster::new();
    cluster.create(&resource("apps", "v1", "daemonsets"), daemon_set("agent"));
    cluster.run(MINUTE);
    let nodes = resource("", "v1", "nodes");
    let taint = |cluster: &mut Cluster, node: &str, effect: &str| {
        let mut node = cluster.get(&nodes, "", node).unwrap();
        node["spec"]["taints"] = json!([{"key": "kept", "effect": effect}]);
        cluster.update(&nodes, node);
        cluster.run(MINUTE);
    };
    taint(&mut cluster, "node-1", "NoSchedule");
    assert_eq!(cluster.names(&pods(), "shop").len(), 3);
    taint(&mut cluster, "node-2", "NoExecute");
    assert_eq!(cluster.names(&pods(), "shop").len(), 2);
}

#[test]
fn pods_of_a_node_that_falls_silent_are_not_ready_until_it_speaks() {
    let mut cluster = Cluster::new();
    cluster.create(&deployments(), workload("Deployment", "web", 1));
    cluster.run(MINUTE);
    let node = only(&cluster, &pods())["spec"]["nodeName"].as_str().unwrap().to_owned();
    cluster.behave(&format!("nodes: [{{node: {node}, unreachable: {{}}}}]"));
    cluster.run(Duration::from_secs(30));
    let pod = only(&cluster, &pods());
    assert_eq!(ready(&pod), Some("False"));
    let name = pod["metadata"]["name"].as_str().unwrap();
    let told = cluster.events("shop", name);
    assert!(told.contains(&("NodeNotReady".to_owned(), "Node is not ready".to_owned())), "{told:?}");
    let web = cluster.get(&deployments(), "shop", "web").unwrap();
    assert_eq!(web["status"]["unavailableReplicas"], 1);
    cluster.behave("nodes: []");
    cluster.run(Duration::from_secs(30));
    assert_eq!(ready(&only(&cluster, &pods())), Some("True"));
}

#[test]
fn a_job_that_a_cron_job_replaces_does_not_go_missing() {
    let mut cluster = Cluster::new();
    let container = json!({"name": "c", "image": "web:1", "command": ["sleep", "infinity"]});
    cluster.create(
        &resource("batch", "v1", "cronjobs"),
        json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "tick", "namespace": "shop"}, "spec": {
            "schedule": "* * * * *", "concurrencyPolicy": "Replace", "jobTemplate": {"spec": {"template": {
                "spec": {"restartPolicy": "Never", "containers": [container]}}}}}}),
    );
    cluster.run(MINUTE * 3);
    let told = cluster.events("shop", "tick");
    assert!(told.iter().any(|(reason, _)| reason == "SuccessfulDelete"), "{told:?}");
    assert!(told.iter().all(|(reason, _)| reason != "MissingJob"), "{told:?}");
}

#[test]
fn a_volume_that_nothing_can_delete_has_failed() {
    let mut cluster = Cluster::new();
    let (claims, volumes) =
        (resource("", "v1", "persistentvolumeclaims"), resource("", "v1", "persistentvolumes"));
    cluster.create(
        &volumes,
        json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "disk"}, "spec": {
            "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/disk"},
            "persistentVolumeReclaimPolicy": "Delete"}}),
    );
    cluster.create(
        &claims,
        json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data", "namespace": "shop"},
            "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "", "resources": {"requests": {"storage": "1Gi"}}}}),
    );
    cluster.run(MINUTE);
    cluster.delete(&claims, "shop", "data", tiphys_apiserver::Propagation::Background);
    cluster.run(MINUTE);
    let disk = cluster.get(&volumes, "", "disk").unwrap();
    assert_eq!(disk["status"]["phase"], "Failed", "{disk}");
}

#[test]
fn a_budget_bounds_a_row_of_evictions() {
    let mut cluster = Cluster::new();
    cluster.create(
        &resource("policy", "v1", "poddisruptionbudgets"),
        json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web", "namespace": "shop"},
            "spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": "web"}}}}),
    );
    cluster.run(MINUTE);
    cluster.create(&replica_sets(), workload("ReplicaSet", "web", 3));
    cluster.run(Duration::from_secs(6));
    let mut codes = Vec::new();
    for name in cluster.names(&pods(), "shop") {
        let body = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": "shop"}});
        let evicted = cluster.client.create_subresource(&pods(), "shop", &name, "eviction", body);
        codes.push(evicted.map_or_else(|error| error.code(), |_| 201));
        cluster.run(Duration::from_millis(50));
    }
    assert_eq!(codes, [201, 429, 429]);
}

#[test]
fn a_pod_that_tolerates_a_taint_for_a_while_leaves_after_it() {
    let mut cluster = Cluster::new();
    let toleration =
        json!({"key": "kept", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 30});
    cluster.create(
        &pods(),
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one", "namespace": "shop"}, "spec": {
            "tolerations": [toleration], "containers": [{"name": "c", "image": "web:1"}]}}),
    );
    cluster.run(MINUTE);
    let nodes = resource("", "v1", "nodes");
    let name = only(&cluster, &pods())["spec"]["nodeName"].as_str().unwrap().to_owned();
    let mut node = cluster.get(&nodes, "", &name).unwrap();
    node["spec"]["taints"] = json!([{"key": "kept", "effect": "NoExecute"}]);
    cluster.update(&nodes, node);
    cluster.run(Duration::from_secs(20));
    assert_eq!(cluster.names(&pods(), "shop"), ["one"]);
    cluster.run(Duration::from_secs(20));
    assert!(cluster.names(&pods(), "shop").is_empty());
}

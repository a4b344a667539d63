//! A cluster that was found stands still until something concerns it, and what waits is woken by what it
//! waits for.

use std::time::Duration;

use tiphys_apiserver::Propagation;
use tiphys_value::{Value, json};

use crate::support::{Cluster, MINUTE, deployments, pods, resource, workload};

fn replica_sets() -> tiphys_value::GroupVersionResource {
    resource("apps", "v1", "replicasets")
}

/// A Deployment without pods, and a pod that crashes whose owner nobody knows.
fn left_behind() -> Vec<Value> {
    let mut web = workload("Deployment", "web", 2);
    web["metadata"]["uid"] = "uid-web".into();
    web["metadata"]["generation"] = 1.into();
    let orphan = json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "legacy-0", "namespace": "shop", "uid": "uid-legacy", "labels": {"app": "legacy"},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "legacy", "uid": "uid-absent", "controller": true}]},
        "spec": {"nodeName": "node-a", "containers": [{"name": "c", "image": "legacy:1"}]},
        "status": {"phase": "Running", "containerStatuses": [{"name": "c", "image": "legacy:1", "imageID": "", "ready": false,
            "restartCount": 7, "state": {"waiting": {"reason": "CrashLoopBackOff"}}}]}});
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-a", "uid": "uid-node"},
        "status": {"allocatable": {"cpu": "8", "memory": "32Gi", "pods": "110"}, "conditions": [{"type": "Ready", "status": "True"}]}});
    let class = json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "fast"}, "provisioner": "example.com/fast"});
    vec![web, orphan, node, class]
}

#[test]
fn nothing_moves_before_it_changes_and_unknown_owners_are_not_gone() {
    let mut cluster = Cluster::found(left_behind());
    // The accounts that were left out are made.
    cluster.run(MINUTE);
    let before = cluster.server.revision();
    cluster.run(60 * MINUTE);
    assert_eq!(cluster.server.revision(), before, "{:#?}", cluster.history());
    assert!(cluster.names(&replica_sets(), "shop").is_empty());
    // A step concerns the Deployment, and nothing else.
    let mut web = cluster.get(&deployments(), "shop", "web").unwrap();
    web["spec"]["replicas"] = 1.into();
    cluster.update(&deployments(), web);
    cluster.run(2 * MINUTE);
    assert_eq!(cluster.get(&deployments(), "shop", "web").unwrap()["status"]["readyReplicas"], 1);
    let legacy = cluster.get(&pods(), "shop", "legacy-0").expect("its owner is unknown, not gone");
    assert_eq!(legacy["status"]["containerStatuses"][0]["restartCount"], 7);
    assert_eq!(legacy["status"]["containerStatuses"][0]["state"]["waiting"]["reason"], "CrashLoopBackOff");
}

#[test]
fn an_owner_that_goes_takes_what_it_owns_along() {
    let mut objects = left_behind();
    objects[1]["metadata"]["ownerReferences"][0]["uid"] = "uid-set".into();
    objects.push(json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "legacy", "namespace": "shop", "uid": "uid-set"},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "legacy"}}, "template": {"metadata": {"labels": {"app": "legacy"}},
            "spec": {"containers": [{"name": "c", "image": "legacy:1"}]}}}}));
    let mut cluster = Cluster::found(objects);
    cluster.run(MINUTE);
    cluster.delete(&replica_sets(), "shop", "legacy", Propagation::Background);
    cluster.run(2 * MINUTE);
    assert!(cluster.get(&pods(), "shop", "legacy-0").is_none());
}

#[test]
fn rules_concern_only_what_they_are_about() {
    let mut cluster = Cluster::found(left_behind());
    cluster.run(MINUTE);
    cluster.behave("images: [{image: 'other:*', pull: notFound}]");
    cluster.run(10 * MINUTE);
    assert!(cluster.names(&replica_sets(), "shop").is_empty(), "{:#?}", cluster.history());
    cluster.behave("nodes: [{node: node-a, unreachable: {}}]");
    cluster.run(10 * MINUTE);
    let node = cluster.get(&resource("", "v1", "nodes"), "", "node-a").unwrap();
    assert_ne!(node["status"]["conditions"][0]["status"], "True", "{node:#}");
    assert!(cluster.names(&replica_sets(), "shop").is_empty(), "{:#?}", cluster.history());
}

#[test]
fn who_waits_for_pods_is_woken_when_they_are_ready() {
    let mut cluster = Cluster::new();
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let version = json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": any}, "subresources": {"status": {}}});
    cluster.create(
        &resource("apiextensions.k8s.io", "v1", "customresourcedefinitions"),
        json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "externalsecrets.external-secrets.io"},
            "spec": {"group": "external-secrets.io", "scope": "Namespaced", "versions": [version],
                "names": {"plural": "externalsecrets", "singular": "externalsecret", "kind": "ExternalSecret", "listKind": "ExternalSecretList"}}}),
    );
    let kind = resource("external-secrets.io", "v1", "externalsecrets");
    cluster.create(
        &kind,
        json!({"apiVersion": "external-secrets.io/v1", "kind": "ExternalSecret", "metadata": {"name": "db", "namespace": "shop"},
            "spec": {"target": {"name": "db"}, "data": [{"secretKey": "password", "remoteRef": {"key": "db"}}]}}),
    );
    cluster.run(MINUTE);
    let secrets = resource("", "v1", "secrets");
    assert!(cluster.get(&secrets, "shop", "db").is_none(), "nobody is there to make it");
    cluster.create(
        &pods(),
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "eso", "namespace": "shop"},
            "spec": {"containers": [{"name": "c", "image": "ghcr.io/external-secrets/external-secrets:v1"}]}}),
    );
    cluster.run(Duration::from_secs(4));
    assert!(cluster.get(&secrets, "shop", "db").is_some());
    assert_eq!(cluster.get(&kind, "shop", "db").unwrap()["status"]["conditions"][0]["status"], "True");
}

#[test]
fn a_policy_drops_packets_while_it_is_there() {
    let mut cluster = Cluster::new();
    cluster.behave(
        "containers: [{image: 'controller:*', needs: [{kubernetes: {}}], exits: {code: 1, after: 30s}}]\n\
         network: [{from: {namespace: shop}, to: {kubernetes: {}}, by: [{group: networking.k8s.io, kind: NetworkPolicy, namespace: shop, name: deny}]}]\n",
    );
    cluster.create(
        &pods(),
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "c", "namespace": "shop"},
            "spec": {"containers": [{"name": "c", "image": "controller:1"}]}}),
    );
    let restarts = |cluster: &Cluster| {
        let pod = cluster.get(&pods(), "shop", "c").unwrap();
        pod["status"]["containerStatuses"][0]["restartCount"].as_i64().unwrap()
    };
    cluster.run(10 * MINUTE);
    assert_eq!(restarts(&cluster), 0);
    let policies = resource("networking.k8s.io", "v1", "networkpolicies");
    cluster.create(
        &policies,
        json!({"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "deny", "namespace": "shop"},
            "spec": {"podSelector": {}, "policyTypes": ["Egress"]}}),
    );
    cluster.run(10 * MINUTE);
    let ended = restarts(&cluster);
    assert!(ended > 1, "{ended}");
    cluster.delete(&policies, "shop", "deny", Propagation::Background);
    cluster.run(10 * MINUTE);
    let settled = restarts(&cluster);
    cluster.run(30 * MINUTE);
    assert_eq!(restarts(&cluster), settled);
}

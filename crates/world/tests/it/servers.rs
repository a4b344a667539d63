//! Volumes, addresses and custom resources come only from programs that work.

use tiphys_value::{ObjectExt, Value, json};

use crate::support::{Cluster, MINUTE, pods, resource, workload};

fn program(name: &str, image: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "shop"},
        "spec": {"containers": [{"name": "c", "image": image}]}})
}

fn with_broken(image: &str) -> Cluster {
    let mut cluster = Cluster::new();
    cluster.behave(&format!("images: [{{image: '{image}:broken', pull: notFound}}]"));
    cluster.create(&pods(), program("server", &format!("{image}:broken")));
    cluster.run(MINUTE);
    cluster
}

#[test]
fn a_claim_waits_for_the_pods_of_its_driver() {
    let class = |name: &str, provisioner: &str| {
        json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
        "metadata": {"name": name}, "provisioner": provisioner, "volumeBindingMode": "Immediate"})
    };
    let claim = |class: &str| {
        json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": class, "namespace": "shop"},
            "spec": {"storageClassName": class, "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}}}})
    };
    let claims = resource("", "v1", "persistentvolumeclaims");
    let classes = resource("storage.k8s.io", "v1", "storageclasses");
    let mut cluster = with_broken("longhornio/longhorn-manager");
    // A driver of which there is no pod is elsewhere.
    for (name, provisioner) in [("own", "driver.longhorn.io"), ("cloud", "ebs.csi.aws.com")] {
        cluster.create(&classes, class(name, provisioner));
        cluster.create(&claims, claim(name));
    }
    cluster.run(MINUTE);
    let phase = |cluster: &Cluster, name: &str| {
        cluster.get(&claims, "shop", name).unwrap()["status"]["phase"].as_str().unwrap().to_owned()
    };
    assert_eq!((phase(&cluster, "own"), phase(&cluster, "cloud")), ("Pending".into(), "Bound".into()));
    assert!(cluster.events("shop", "own").iter().any(|(reason, _)| reason == "ExternalProvisioning"));
    cluster.create(&pods(), program("mended", "longhornio/longhorn-manager:v1"));
    cluster.run(MINUTE);
    assert_eq!(phase(&cluster, "own"), "Bound");
}

#[test]
fn a_load_balancer_waits_for_the_pods_that_give_addresses() {
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"type": "LoadBalancer", "selector": {"app": "web"}, "ports": [{"port": 80}]}});
    let services = resource("", "v1", "services");
    let has_address = |cluster: &Cluster| {
        let service = cluster.get(&services, "shop", "web").unwrap();
        service.at(&["status", "loadBalancer", "ingress"]).is_some()
    };
    let mut cluster = with_broken("quay.io/metallb/controller");
    cluster.create(&services, service);
    cluster.run(MINUTE);
    assert!(!has_address(&cluster));
    cluster.create(&pods(), program("mended", "quay.io/metallb/controller:v1"));
    cluster.run(MINUTE);
    assert!(has_address(&cluster));
}

#[test]
fn a_scaled_object_and_a_rollout_need_what_they_name() {
    let mut cluster = Cluster::new();
    let scaled = crate::operators::define(&cluster, "keda.sh", "ScaledObject");
    let rollout = crate::operators::define(&cluster, "argoproj.io", "Rollout");
    cluster.create(
        &scaled,
        json!({"apiVersion": "keda.sh/v1", "kind": "ScaledObject", "metadata": {"name": "mail", "namespace": "shop"},
            "spec": {"scaleTargetRef": {"name": "web"}}}),
    );
    let template = json!({"metadata": {"labels": {"app": "price"}}, "spec": {"containers": [{"name": "c", "image": "web"}]}});
    cluster.create(
        &rollout,
        json!({"apiVersion": "argoproj.io/v1", "kind": "Rollout", "metadata": {"name": "price", "namespace": "shop"},
            "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "price"}}, "template": template,
                "strategy": {"canary": {"stableService": "price", "canaryService": "price-canary"}}}}),
    );
    for image in ["ghcr.io/kedacore/keda:2", "quay.io/argoproj/argo-rollouts:v1"] {
        cluster.create(&pods(), program(&image.replace(['/', ':', '.'], "-"), image));
    }
    let service = |name: &str| {
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": "shop"},
        "spec": {"selector": {"app": "price"}, "ports": [{"port": 80}]}})
    };
    cluster.create(&resource("", "v1", "services"), service("price"));
    cluster.run(2 * MINUTE);
    let ready =
        |cluster: &Cluster| cluster.get(&scaled, "shop", "mail").unwrap()["status"]["conditions"][0].clone();
    assert_eq!(ready(&cluster)["status"], "False");
    assert_eq!(ready(&cluster)["message"], "deployment \"web\" not found");
    assert_eq!(cluster.get(&rollout, "shop", "price").unwrap()["status"]["phase"], "Progressing");
    cluster.create(&resource("apps", "v1", "deployments"), workload("Deployment", "web", 1));
    cluster.create(&resource("", "v1", "services"), service("price-canary"));
    cluster.run(2 * MINUTE);
    assert_eq!(ready(&cluster)["status"], "True");
    assert_eq!(cluster.get(&rollout, "shop", "price").unwrap()["status"]["phase"], "Healthy");
}

#[test]
fn an_operator_that_does_not_reach_the_api_server_does_nothing_while_it_tries() {
    let mut cluster = Cluster::new();
    cluster.behave(
        "network: [{from: {name: operator}, to: {kubernetes: {}}}]\n\
         containers: [{pods: {name: operator}, needs: [{kubernetes: {}}], exits: {code: 1, after: 30s}}]",
    );
    let kind = crate::operators::define(&cluster, "external-secrets.io", "ExternalSecret");
    cluster.create(
        &kind,
        json!({"apiVersion": "external-secrets.io/v1", "kind": "ExternalSecret",
            "metadata": {"name": "login", "namespace": "shop"}, "spec": {"data": [{"secretKey": "user"}]}}),
    );
    cluster.create(&pods(), program("operator", "external-secrets/external-secrets:v1"));
    cluster.run(2 * MINUTE);
    assert!(cluster.get(&resource("", "v1", "secrets"), "shop", "login").is_none());
    cluster.behave("{}");
    cluster.run(10 * MINUTE);
    assert!(cluster.get(&resource("", "v1", "secrets"), "shop", "login").is_some());
}

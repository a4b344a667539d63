//! Services that lead nowhere, and callers that are cut off.

use tiphys_value::{ObjectExt as _, Value, json};

use super::{Planted, Scene, place};
use crate::repository::Need;

pub(super) fn plant(scene: &Scene<'_>, found: &mut Vec<Planted>) {
    for need in scene.repository.needs.iter().filter(|need| !need.service.is_empty()) {
        let find = |kind: &'static str, name: &str| {
            scene.declared(kind).find(|it| it.namespace() == need.namespace && it.name() == name)
        };
        let Some(service) = find("Service", &need.service) else { continue };
        let planted = |kind, causes: &[&'static str]| {
            Planted::new(kind, place(service), causes).with_object(
                "Service",
                service.namespace(),
                service.name(),
            )
        };
        let tree = scene.edited(service, |service| {
            service["spec"]["selector"] = json!({"app": format!("{}-svc", need.service)})
        });
        found.extend(planted("service: selector", &["service/selector"]).edit(tree));
        let tree = scene.edited(service, |service| service["spec"]["ports"][0]["targetPort"] = "grpc".into());
        found.extend(planted("service: port name", &["service/port"]).edit(tree));
        let tree = scene.edited(service, |service| service["spec"]["ports"][0]["targetPort"] = 9090.into());
        let mut number = planted("service: port number", &["service/port"]);
        number.rules =
            json!({"network": [{"to": {"service": {"namespace": need.namespace, "name": need.service}}}]});
        number.unreached.insert(need.service.clone(), "connect: connection refused".to_owned());
        found.extend(number.edit(tree));
        let backend = find("Deployment", &need.service).or_else(|| find("StatefulSet", &need.service));
        let Some(backend) = backend else { continue };
        let tree = scene.edited(backend, |backend| backend["spec"]["replicas"] = 0.into());
        let zero = Planted::new("run: scaled to zero", place(backend), &["run/scaled-zero"]);
        found.extend(zero.at_workload(backend).edit(tree));
        if enforces_policies(scene) {
            policies(scene, need, backend, found);
        }
    }
    for need in scene.repository.needs.iter().filter(|need| need.service.is_empty()) {
        api_server(scene, need, found);
    }
}

/// Whether the network of the cluster does what policies say: some plugins do not.
fn enforces_policies(scene: &Scene<'_>) -> bool {
    let network = scene.repository.network.as_ref();
    network.is_some_and(|(_, name)| name.contains("calico") || name.contains("cilium"))
}

fn policy(namespace: &str, name: &str, spec: Value) -> Value {
    json!({"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": name, "namespace": namespace}, "spec": spec})
}

/// A policy before a program that lets in nobody who calls, and one that lets callers out to nobody.
fn policies(scene: &Scene<'_>, need: &Need, backend: &Value, found: &mut Vec<Planted>) {
    let file = format!("{}/policies.yaml", need.namespace);
    let cut = |from: Value| json!({"network": [{"from": from, "to": {"service": {"namespace": need.namespace, "name": need.service}}}]});
    let selector = &backend["spec"]["selector"];
    let mut tree = scene.repository.tree.clone();
    tree.add(
        &file,
        policy(
            &need.namespace,
            "restrict",
            json!({"podSelector": selector, "policyTypes": ["Ingress"],
        "ingress": [{"from": [{"podSelector": {"matchLabels": {"role": "client"}}}]}]}),
        ),
    );
    let mut ingress = Planted::new("net: policy ingress", place(backend), &["net/policy-ingress"])
        .with_object("NetworkPolicy", &need.namespace, "restrict")
        .rules(cut(json!({})));
    ingress.unreached.insert(need.service.clone(), "i/o timeout".to_owned());
    found.extend(ingress.edit(Some(tree)));
    let caller = json!({"matchLabels": {"app": need.workload}});
    let mut tree = scene.repository.tree.clone();
    tree.add(&file, policy(&need.namespace, "egress", json!({"podSelector": caller, "policyTypes": ["Egress"],
        "egress": [{"to": [{"namespaceSelector": {}}], "ports": [{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP"}]}]})));
    let pods = json!({"namespace": need.namespace, "name": format!("{}-*", need.workload)});
    let mut egress = Planted::new("net: policy egress", place(backend), &["net/policy-egress"])
        .with_object("NetworkPolicy", &need.namespace, "egress")
        .rules(cut(pods.clone()));
    egress.unreached.insert(need.service.clone(), "i/o timeout".to_owned());
    found.extend(egress.edit(Some(tree)));
    let mut tree = scene.repository.tree.clone();
    tree.add(
        &file,
        policy(
            &need.namespace,
            "egress",
            json!({"podSelector": caller, "policyTypes": ["Egress"],
        "egress": [{"to": [{"podSelector": {}}]}]}),
        ),
    );
    let mut dns = Planted::new("net: policy dns", place(backend), &["net/policy-dns"])
        .with_object("NetworkPolicy", &need.namespace, "egress")
        .rules(cut(pods));
    dns.unreached.insert(need.service.clone(), "lookup: i/o timeout".to_owned());
    found.extend(dns.edit(Some(tree)));
}

/// A policy that lets a controller out to pods only.
fn api_server(scene: &Scene<'_>, need: &Need, found: &mut Vec<Planted>) {
    let workload =
        scene.workloads().find(|it| it.namespace() == need.namespace && it.name() == need.workload);
    let Some(workload) = workload else { return };
    let mut tree = scene.repository.tree.clone();
    let file = format!("{}/policies.yaml", need.namespace);
    tree.add(
        &file,
        policy(
            &need.namespace,
            "egress",
            json!({"podSelector": workload["spec"]["selector"], "policyTypes": ["Egress"],
        "egress": [{"to": [{"namespaceSelector": {}}]}]}),
        ),
    );
    let pods = json!({"namespace": need.namespace, "name": format!("{}-*", need.workload)});
    let mut planted = Planted::new("net: policy api server", place(workload), &["net/policy-api-server"])
        .with_object("NetworkPolicy", &need.namespace, "egress")
        .rules(json!({"network": [{"from": pods, "to": {"kubernetes": {}}}]}))
        .restart(workload);
    planted.unreached.insert(String::new(), "i/o timeout".to_owned());
    if enforces_policies(scene) {
        found.extend(planted.edit(Some(tree)));
    }
    // The role loses a verb.
    let role = format!("{}-{}", need.namespace, need.workload);
    let tree = scene.repository.tree.edited("ClusterRole", "", &role, |role| {
        role["rules"][1]["verbs"] = json!(["get", "create", "update"]);
    });
    let user = format!("system:serviceaccount:{}:{}", need.namespace, need.workload);
    let line = format!(
        "E0105 09:10:11.123456       1 reflector.go:147] pkg/mod/k8s.io/client-go@v0.29.0/tools/cache/reflector.go:229: Failed to watch *v1.Pod: failed to list *v1.Pod: pods is forbidden: User \"{user}\" cannot list resource \"pods\" in API group \"\" at the cluster scope\nError: timed out waiting for caches to sync"
    );
    let planted = Planted::new("api: role lacks a verb", place(workload), &["api/rbac"])
        .with_object("ClusterRole", "", &role)
        .with_object("ClusterRoleBinding", "", &role)
        .rules(
            json!({"containers": [{"pods": super::pods_of(workload), "exits": {"code": 1, "after": "20s"}}]}),
        )
        .line(workload, line)
        .restart(workload);
    found.extend(planted.edit(tree));
}

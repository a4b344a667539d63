//! Nodes, the network, DNS, webhooks and operators.

use tiphys_value::{ObjectExt as _, Value, json};

use super::{Planted, Scene, container, delivered_folder, mount, place, pods_of};

pub(super) fn plant(scene: &Scene<'_>, found: &mut Vec<Planted>) {
    for node in scene.all("Node") {
        let planted = |kind, causes: &[&'static str], state: (&str, Value)| {
            let rule = json!({"nodes": [{"node": node.name(), state.0: state.1}]});
            Planted::new(kind, place(node), causes).with_object("Node", "", node.name()).rules(rule)
        };
        found.push(planted("node: lost", &["node/not-ready"], ("unreachable", json!({}))));
        let message = "container runtime is down, PLEG is not healthy: pleg was last seen active 3m12s ago; threshold is 3m0s";
        found.push(planted("node: runtime", &["node/runtime"], ("notReady", json!({"message": message}))));
    }
    network(scene, found);
    dns(scene, found);
    webhooks(scene, found);
    operators(scene, found);
}

/// The network's agent gets an image that is not there, or ends.
fn network(scene: &Scene<'_>, found: &mut Vec<Planted>) {
    let Some((namespace, name)) = &scene.repository.network else { return };
    let Some(agent) = scene.declared("DaemonSet").find(|it| it.namespace() == namespace && it.name() == name)
    else {
        return;
    };
    let rules = json!({"images": [{"image": "*:9.9.9", "pull": "notFound"}]});
    let tree = scene.edited(agent, |agent| {
        let image = container(agent)["image"].as_str().unwrap_or_default().to_owned();
        container(agent)["image"] =
            format!("{}:9.9.9", image.rsplit_once(':').map_or(&*image, |(name, _)| name)).into();
    });
    let planted =
        Planted::new("net: CNI image", place(agent), &["image/not-found", "net/cni-down"]).at_workload(agent);
    found.extend(planted.rules(rules).restart(agent).edit(tree));
    let rules = json!({"containers": [{"pods": pods_of(agent), "exits": {"code": 1, "after": "3s"}}]});
    let line = "level=fatal msg=\"failed to start: unable to create ipset: operation not permitted\"";
    let planted =
        Planted::new("net: CNI crashes", place(agent), &["run/exits", "net/cni-down", "run/permission"])
            .at_workload(agent);
    found.push(planted.rules(rules).line(agent, line).restart(agent));
}

fn dns(scene: &Scene<'_>, found: &mut Vec<Planted>) {
    let Some(server) = scene.declared("Deployment").find(|it| it.name() == "coredns") else { return };
    let cut = json!([{"to": {"service": {"namespace": "*", "name": "*"}}}]);
    let at = |kind, causes: &[&'static str]| {
        let mut planted = Planted::new(kind, place(server), causes).at_workload(server).with_object(
            "Service",
            "kube-system",
            "kube-dns",
        );
        planted.unreached.insert("*".to_owned(), "lookup: i/o timeout".to_owned());
        planted
    };
    let tree = scene.edited(server, |server| server["spec"]["replicas"] = 0.into());
    let planted = at("dns: scaled to zero", &["dns/down", "run/scaled-zero"]).rules(json!({"network": cut}));
    found.extend(planted.edit(tree));
    let rules = json!({"network": cut, "containers": [{"pods": pods_of(server), "exits": {"code": 1, "after": "2s"}}]});
    let line = "plugin/forward: /etc/coredns/Corefile:6 - Error during parsing: Wrong argument count or unexpected line ending after 'forward'";
    let tree = scene.repository.tree.edited("ConfigMap", "kube-system", "coredns", |map| {
        map["data"]["Corefile"] = ".:53 {\n    errors\n    health\n    ready\n    kubernetes cluster.local\n    forward\n    cache 30\n}\n".into();
    });
    let planted = at("dns: Corefile", &["dns/config"]).with_object("ConfigMap", "kube-system", "coredns");
    found.extend(planted.rules(rules).line(server, line).restart(server).edit(tree));
    let rules = json!({"network": cut, "containers": [{"pods": pods_of(server), "exits": {"code": 137, "after": "20s", "reason": "OOMKilled"}}]});
    let tree = scene.edited(server, |server| {
        container(server)["resources"] =
            json!({"limits": {"memory": "20Mi"}, "requests": {"memory": "20Mi"}});
    });
    found.extend(at("dns: out of memory", &["run/oom", "dns/down"]).rules(rules).edit(tree));
}

fn webhooks(scene: &Scene<'_>, found: &mut Vec<Planted>) {
    for hook in scene.declared("ValidatingWebhookConfiguration") {
        let service = &hook["webhooks"][0]["clientConfig"]["service"];
        let (namespace, name) =
            (service["namespace"].as_str().unwrap_or_default(), service["name"].as_str().unwrap_or_default());
        let Some(backend) =
            scene.declared("Deployment").find(|it| it.namespace() == namespace && it.name() == name)
        else {
            continue;
        };
        // Somebody whose pods the webhook is asked about has to need new ones.
        let Some(victim) =
            scene.programs().find(|it| it.namespace() != namespace && it.kind() == "Deployment")
        else {
            continue;
        };
        let answer =
            |answer: Value| json!({"webhooks": [{"webhook": hook["webhooks"][0]["name"], "answer": answer}]});
        let at_hook = |kind, causes: &[&'static str]| {
            Planted::new(kind, place(hook), causes)
                .with_object(hook.kind(), "", hook.name())
                .with_object("Service", namespace, name)
                .restart(victim)
        };
        found.push(
            at_hook("webhook: unknown authority", &["admit/webhook-tls"])
                .rules(answer(json!({"unknownAuthority": {}}))),
        );
        // A port that is closed between the API server and the nodes looks the same.
        found.push(
            at_hook("webhook: timeout", &["admit/webhook-down", "net/node-ports"])
                .at_workload(backend)
                .rules(answer(json!({"timeout": {}}))),
        );
        let deny = json!({"deny": {"message": "image registry is not on the list of allowed registries"}});
        let denied = at_hook("webhook: denies", &["admit/policy"]).at_workload(victim);
        found.push(denied.rules(answer(deny)));
        let rules =
            json!({"images": [{"image": container(&mut backend.clone())["image"], "pull": "unauthorized"}]});
        let planted = Planted::new("webhook: backend's image", place(hook), &["image/unauthorized"])
            .at_workload(backend);
        found.push(planted.rules(rules).restart(backend).restart(victim));
        let tree = scene.edited(backend, |backend| backend["spec"]["replicas"] = 0.into());
        let planted = Planted::new("webhook: backend scaled to zero", place(hook), &["run/scaled-zero"])
            .at_workload(backend);
        found.extend(planted.restart(victim).edit(tree));
        let tree = scene.repository.tree.edited("Service", namespace, name, |service| {
            service["spec"]["selector"] = json!({"app": "guard"})
        });
        let planted = Planted::new("webhook: selector", place(hook), &["service/selector"])
            .with_object("Service", namespace, name);
        found.extend(planted.restart(victim).edit(tree));
    }
}

/// Operators that end while somebody waits for what they make, and objects of theirs that cannot be served.
fn operators(scene: &Scene<'_>, found: &mut Vec<Planted>) {
    let new_one = |kind: &str, namespace: &str| match kind {
        "ExternalSecret" => {
            json!({"apiVersion": "external-secrets.io/v1", "kind": kind, "metadata": {"name": "token", "namespace": namespace},
            "spec": {"secretStoreRef": {"name": "vault", "kind": "ClusterSecretStore"}, "target": {"name": "token"},
                "data": [{"secretKey": "token", "remoteRef": {"key": "token"}}]}})
        }
        _ => {
            json!({"apiVersion": "cert-manager.io/v1", "kind": kind, "metadata": {"name": "token", "namespace": namespace},
            "spec": {"secretName": "token", "dnsNames": ["token.example.com"], "issuerRef": {"name": "internal", "kind": "ClusterIssuer"}}})
        }
    };
    for (operator, kind) in [("cert-manager", "Certificate"), ("external-secrets", "ExternalSecret")] {
        let Some(controller) = scene.declared("Deployment").find(|it| it.namespace() == operator) else {
            continue;
        };
        for workload in scene.programs().filter(|it| it.kind() == "Deployment" && it.namespace() != operator)
        {
            let namespace = workload.namespace();
            if delivered_folder(scene, namespace).is_none() {
                continue;
            }
            let waits = |kind: &str| {
                let tree = scene.edited(workload, |workload| {
                    mount(workload, json!({"name": "token", "secret": {"secretName": "token"}}));
                });
                tree.map(|mut tree| {
                    tree.add(&format!("{namespace}/token.yaml"), new_one(kind, namespace));
                    tree
                })
            };
            let rules = json!({"images": [{"image": container(&mut controller.clone())["image"], "pull": "unauthorized"}]});
            let planted = Planted::new("operator: its image", place(workload), &["image/unauthorized"])
                .at_workload(controller);
            found.extend(planted.rules(rules).restart(controller).edit(waits(kind)));
            let rules =
                json!({"containers": [{"pods": pods_of(controller), "exits": {"code": 1, "after": "5s"}}]});
            let line = "{\"level\":\"error\",\"msg\":\"problem running manager\",\"error\":\"open /tmp/k8s-webhook-server/serving-certs/tls.crt: no such file or directory\"}";
            let causes = ["run/exits", "operator/down", "config/missing", "run/command"];
            let planted = Planted::new("operator: crashes", place(workload), &causes).at_workload(controller);
            found.extend(planted.rules(rules).line(controller, line).restart(controller).edit(waits(kind)));
            let mut refused = new_one(kind, namespace);
            let (key, absent, ids): (&str, &str, &[&'static str]) = match kind {
                "ExternalSecret" => {
                    ("secretStoreRef", "ClusterSecretStore", &["operator/reference", "operator/secret-store"])
                }
                _ => ("issuerRef", "ClusterIssuer", &["operator/reference", "operator/issuer"]),
            };
            refused["spec"][key]["name"] = "absent".into();
            let tree = waits(kind)
                .and_then(|tree| tree.edited(kind, namespace, "token", |object| *object = refused.clone()));
            let waiting = json!([{"type": "Ready", "status": "False", "reason": "SecretSyncedError",
                "message": "could not get ClusterSecretStore \"absent\", ClusterSecretStore.external-secrets.io \"absent\" not found"}]);
            let rules = match kind {
                "ExternalSecret" => {
                    json!({"operators": [{"name": "external-secrets", "image": "*external-secrets:*", "group": "external-secrets.io",
                    "kind": kind, "needs": [{"object": {"apiVersion": "external-secrets.io/v1", "kind": "ClusterSecretStore", "name": "{spec.secretStoreRef.name}", "condition": "Ready"}}],
                    "waiting": {"conditions": waiting}}]})
                }
                _ => Value::Null,
            };
            let planted = Planted::new("operator: reference", place(workload), ids)
                .with_object(kind, namespace, "token")
                .with_object(absent, "", "absent");
            found.extend(planted.rules(rules).edit(tree));
        }
    }
}

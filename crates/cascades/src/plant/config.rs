//! Configuration that is absent or wrong.

use tiphys_value::{ObjectExt as _, Value, json};

use super::{Planted, Scene, container, mount, place, pods_of};

pub(super) fn plant(scene: &Scene<'_>, found: &mut Vec<Planted>) {
    for workload in scene.programs() {
        let namespace = workload.namespace();
        for (kind, reference) in [("Secret", "secretRef"), ("ConfigMap", "configMapRef")] {
            let tree = scene.edited(workload, |workload| {
                let from = json!([{reference: {"name": "features"}}]);
                container(workload)["envFrom"] = from;
            });
            let what = if kind == "Secret" { "config: Secret missing" } else { "config: ConfigMap missing" };
            let planted = Planted::new(what, place(workload), &["config/missing"]);
            found.extend(planted.at_workload(workload).with_object(kind, namespace, "features").edit(tree));
        }
        let tree = scene.edited(workload, |workload| {
            mount(workload, json!({"name": "features", "secret": {"secretName": "features"}}));
        });
        let planted = Planted::new("config: mounted Secret missing", place(workload), &["config/missing"]);
        found.extend(planted.at_workload(workload).with_object("Secret", namespace, "features").edit(tree));
    }
    keys(scene, found);
    addresses(scene, found);
    plant_removed_config(scene, found);
}

/// A key that a Secret or ConfigMap does not have.
fn keys(scene: &Scene<'_>, found: &mut Vec<Planted>) {
    for map in scene.declared("ConfigMap").filter(|map| map.name().ends_with("-settings")) {
        let users = scene.programs().filter(|workload| map.name() == format!("{}-settings", workload.name()));
        for workload in users.filter(|workload| workload.namespace() == map.namespace()) {
            let tree = scene.edited(workload, |workload| {
                container(workload)["env"] = json!([{"name": "REGION", "valueFrom": {"configMapKeyRef": {"name": map.name(), "key": "region"}}}]);
            });
            let planted = Planted::new("config: key missing", place(workload), &["config/key-missing"])
                .at_workload(workload);
            found.extend(planted.with_object("ConfigMap", map.namespace(), map.name()).edit(tree));
        }
    }
}

/// An address of a Service that is not there.
fn addresses(scene: &Scene<'_>, found: &mut Vec<Planted>) {
    for need in scene.repository.needs.iter().filter(|need| !need.service.is_empty()) {
        let map = format!("{}-settings", need.workload);
        let wrong = format!("{}-primary.{}.svc.cluster.local:{}", need.service, need.namespace, need.port);
        let Some(workload) = scene
            .programs()
            .find(|workload| workload.namespace() == need.namespace && workload.name() == need.workload)
        else {
            continue;
        };
        let edited = scene.repository.tree.edited("ConfigMap", &need.namespace, &map, |map| {
            map["data"]["UPSTREAM"] = wrong.clone().into();
        });
        let edited = edited.and_then(|tree| {
            tree.edited(workload.kind(), workload.namespace(), workload.name(), |workload: &mut Value| {
                workload["spec"]["template"]["metadata"]["annotations"] =
                    json!({"acme.example.com/rev": "2"});
            })
        });
        let host = wrong.split(':').next().unwrap_or_default();
        let line = format!(
            "level=error msg=\"cannot reach upstream\" error=\"dial tcp: lookup {host} on 10.96.0.10:53: no such host\""
        );
        let planted = Planted::new(
            "config: address of no Service",
            place(workload),
            &["config/wrong-value", "service/missing"],
        )
        .at_workload(workload)
        .with_object("ConfigMap", &need.namespace, &map)
        .with_object("Service", &need.namespace, &format!("{}-primary", need.service))
        .rules(json!({"containers": [{"pods": pods_of(workload), "exits": {"code": 1, "after": "5s"}}]}))
        .line(workload, line);
        found.extend(planted.edit(edited));
    }
}

/// A Secret or ConfigMap that leaves the repository while programs use it.
fn plant_removed_config(scene: &Scene<'_>, found: &mut Vec<Planted>) {
    for kind in ["Secret", "ConfigMap"] {
        for object in
            scene.declared(kind).filter(|object| !matches!(object.namespace(), "kube-system" | "argocd"))
        {
            let is_used = |workload: &&Value| {
                workload.namespace() == object.namespace()
                    && workload["spec"]["template"]["spec"]
                        .to_string()
                        .contains(&format!("\"{}\"", object.name()))
            };
            let users: Vec<&Value> = scene.programs().filter(is_used).collect();
            let Some(first) = users.first() else { continue };
            let tree = scene.repository.tree.without(kind, object.namespace(), object.name());
            let mut planted = Planted::new("config: left the repository", place(object), &["config/missing"])
                .with_object(kind, object.namespace(), object.name());
            for user in &users {
                planted = planted.at_workload(user);
            }
            found.extend(planted.restart(first).edit(tree));
        }
    }
}

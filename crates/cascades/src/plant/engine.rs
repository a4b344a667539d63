//! The engine is killed or cut off, deliveries are suspended, certificates are late.
//!
//! What is in Git does not reach the cluster then. Nothing is wrong in a cluster that was not changed, and
//! what else breaks is to be named as ever.

use tiphys_value::{ObjectExt as _, Value, json};

use super::{Planted, Scene, container, delivered_folder, mount, place, pods_of};

/// Longer than any cascade.
const ALWAYS: &str = "+48h";

pub(super) fn plant(scene: &Scene<'_>, found: &mut Vec<Planted>) {
    for workload in scene.programs().filter(|it| it.kind() == "Deployment") {
        for (kind, ill, fault) in [
            ("engine: killed", "engine: killed, and a program ends", "engine:kill"),
            ("api: down for the engine", "api: down for the engine, and a program ends", "api:down"),
        ] {
            let fault = format!("{fault}{ALWAYS}");
            let planted = Planted::new(kind, place(workload), &[]).fault(&fault);
            found.extend(planted.edit(with_absent_image(scene, workload)));
            let rules =
                json!({"containers": [{"pods": pods_of(workload), "exits": {"code": 1, "after": "3s"}}]});
            let planted = Planted::new(ill, place(workload), &["run/exits"]).at_workload(workload);
            let line = "panic: runtime error: index out of range [3] with length 3";
            found.push(planted.rules(rules).line(workload, line).restart(workload).fault(&fault));
        }
        paused(scene, workload, found);
        late_certificate(scene, workload, found);
    }
}

/// A rollout and an Application that somebody suspended before the change.
fn paused(scene: &Scene<'_>, workload: &Value, found: &mut Vec<Planted>) {
    let rules = json!({"images": [{"image": "*:9.9.9", "pull": "notFound"}]});
    let tree = with_absent_image(scene, workload).and_then(|tree| {
        tree.edited("Deployment", workload.namespace(), workload.name(), |workload| {
            workload["spec"]["paused"] = true.into();
        })
    });
    let planted = Planted::new("paused: rollout", place(workload), &[]).rules(rules.clone());
    found.extend(planted.edit(tree));
    let Some(app) = scene.declared("Application").find(|app| app.name() == workload.namespace()) else {
        return;
    };
    let tree = with_absent_image(scene, workload).and_then(|tree| {
        tree.edited("Application", app.namespace(), app.name(), |app| {
            app["spec"]["syncPolicy"] = json!({"automated": {"enabled": false}});
        })
    });
    let planted = Planted::new("paused: Application", place(workload), &[]).of_argo_only();
    found.extend(planted.rules(rules).edit(tree));
}

/// A program waits for a Secret whose certificate is not issued in time.
fn late_certificate(scene: &Scene<'_>, workload: &Value, found: &mut Vec<Planted>) {
    let namespace = workload.namespace();
    let has_issuer = scene.all("ClusterIssuer").any(|issuer| issuer.name() == "internal");
    if !has_issuer || namespace == "cert-manager" || delivered_folder(scene, namespace).is_none() {
        return;
    }
    let tree = scene.edited(workload, |workload| {
        mount(workload, json!({"name": "token", "secret": {"secretName": "token"}}));
    });
    let tree = tree.map(|mut tree| {
        tree.add(&format!("{namespace}/token.yaml"), json!({"apiVersion": "cert-manager.io/v1", "kind": "Certificate",
            "metadata": {"name": "token", "namespace": namespace},
            "spec": {"secretName": "token", "dnsNames": ["token.example.com"], "issuerRef": {"name": "internal", "kind": "ClusterIssuer"}}}));
        tree
    });
    let causes = ["operator/issuer", "operator/down", "config/missing"];
    let planted = Planted::new("cert: late", place(workload), &causes)
        .with_object("Certificate", namespace, "token")
        .with_object("Secret", namespace, "token")
        .with_object("ClusterIssuer", "", "internal")
        .with_object("Deployment", "cert-manager", "cert-manager");
    found.extend(planted.fault("cert=late:24h").edit(tree));
}

fn with_absent_image(scene: &Scene<'_>, workload: &Value) -> Option<crate::tree::Tree> {
    scene.edited(workload, |workload| {
        let image = container(workload)["image"].as_str().unwrap_or_default().to_owned();
        let name = image.rsplit_once(':').map_or(&*image, |(name, _)| name);
        container(workload)["image"] = format!("{name}:9.9.9").into();
    })
}

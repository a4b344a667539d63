//! What the API server refuses.

use tiphys_value::{ObjectExt as _, Value, json};

use super::{Planted, Scene, container, place};

pub(super) fn plant(scene: &Scene<'_>, found: &mut Vec<Planted>) {
    for workload in scene.programs() {
        let namespace = workload.namespace();
        let touched = |edit: &dyn Fn(&mut Value)| scene.edited(workload, edit);
        let by_hand = |kind: &str, api: &str, spec: Value| json!({"apiVersion": api, "kind": kind, "metadata": {"name": "team", "namespace": namespace}, "spec": spec});
        let new_pods = |workload: &mut Value| {
            workload["spec"]["template"]["metadata"]["annotations"] = json!({"acme.example.com/rev": "2"});
        };
        let mut quota = Planted::new("admit: quota", place(workload), &["admit/quota"])
            .with_object("ResourceQuota", namespace, "team")
            .with_object("Namespace", "", namespace)
            .at_workload(workload)
            .restart(workload);
        quota.objects.push(by_hand("ResourceQuota", "v1", json!({"hard": {"pods": "0"}})));
        found.push(quota);
        let mut limits = Planted::new("admit: limit range", place(workload), &["admit/limit-range"])
            .with_object("LimitRange", namespace, "team")
            .at_workload(workload);
        limits.objects.push(by_hand(
            "LimitRange",
            "v1",
            json!({"limits": [{"type": "Container", "max": {"memory": "1Gi"}}]}),
        ));
        let tree = touched(&|workload| {
            container(workload)["resources"] =
                json!({"requests": {"memory": "2Gi"}, "limits": {"memory": "2Gi"}});
        });
        found.extend(limits.edit(tree));
        let tree =
            touched(&|workload| workload["spec"]["template"]["spec"]["serviceAccountName"] = "runner".into());
        let planted = Planted::new("admit: no service account", place(workload), &["admit/service-account"])
            .with_object("ServiceAccount", namespace, "runner")
            .at_workload(workload);
        found.extend(planted.edit(tree));
        let tree = touched(&|workload| {
            new_pods(workload);
            container(workload)["securityContext"] = json!({"privileged": true});
        });
        let tree = tree.and_then(|tree| {
            tree.edited("Namespace", "", namespace, |namespace| {
                namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] = "baseline".into();
            })
        });
        let planted = Planted::new("admit: pod security", place(workload), &["admit/pod-security"])
            .with_object("Namespace", "", namespace)
            .at_workload(workload);
        found.extend(planted.edit(tree));
        if workload.kind() == "Deployment" {
            let tree = touched(&|workload| {
                for path in
                    [&["spec", "selector", "matchLabels"][..], &["spec", "template", "metadata", "labels"]]
                {
                    let mut at = &mut *workload;
                    for step in path {
                        at = &mut at[*step];
                    }
                    at["tier"] = "backend".into();
                }
            });
            let planted = Planted::new("admit: immutable selector", place(workload), &["admit/immutable"])
                .at_workload(workload);
            found.extend(planted.edit(tree));
            let tree = touched(&|workload| workload["spec"]["replicas"] = "two".into());
            let planted =
                Planted::new("admit: schema", place(workload), &["admit/schema"]).at_workload(workload);
            let planted = at_applications(scene, workload, planted);
            found.extend(planted.edit(tree));
        }
    }
}

/// At the Application of an object, too: the cluster never had the object that is refused.
pub(super) fn at_applications(scene: &Scene<'_>, object: &Value, mut planted: Planted) -> Planted {
    let id = object
        .at(&["metadata", "annotations"])
        .and_then(|all| all.str_at(&["argocd.argoproj.io/tracking-id"]));
    let label = object.label("app.kubernetes.io/instance");
    let name = id.and_then(|id| id.split(':').next()).or(label).unwrap_or_default();
    if let Some(app) = scene.all("Application").find(|app| app.name() == name) {
        planted = planted.with_object("Application", app.namespace(), app.name());
    }
    planted
}

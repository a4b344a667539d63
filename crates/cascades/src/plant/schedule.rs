//! Pods that no node takes, and claims that no volume fits.

use tiphys_value::{ObjectExt as _, Value, json};

use super::{Planted, Scene, container, mount, place};

pub(super) fn plant(scene: &Scene<'_>, found: &mut Vec<Planted>) {
    for workload in scene.programs().filter(|workload| workload.kind() != "DaemonSet") {
        let spec = |edit: &dyn Fn(&mut Value)| {
            scene.edited(workload, |workload| edit(&mut workload["spec"]["template"]["spec"]))
        };
        let planted =
            |kind, cause: &'static str| Planted::new(kind, place(workload), &[cause]).at_workload(workload);
        let selector = spec(&|pod| pod["nodeSelector"] = json!({"disktype": "nvme"}));
        found.extend(planted("schedule: node selector", "schedule/node-selector").edit(selector));
        let capacity = scene.edited(workload, |workload| {
            container(workload)["resources"] = json!({"requests": {"cpu": "24"}});
        });
        found.extend(planted("schedule: capacity", "schedule/capacity").edit(capacity));
        let spread = scene.edited(workload, |workload| {
            workload["spec"]["replicas"] = 5.into();
            let labels = workload["spec"]["selector"].clone();
            workload["spec"]["template"]["spec"]["affinity"] = json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
                {"labelSelector": labels, "topologyKey": "kubernetes.io/hostname"}]}});
        });
        found.extend(planted("schedule: anti-affinity", "schedule/spread").edit(spread));
    }
    for workload in scene.programs().filter(|workload| workload.kind() == "StatefulSet") {
        let class = |workload: &mut Value| {
            workload["metadata"]["name"] = format!("{}-v2", workload.name()).into();
            workload["spec"]["volumeClaimTemplates"][0]["spec"]["storageClassName"] = "fast-ssd".into();
        };
        if workload.at(&["spec", "volumeClaimTemplates"]).is_none() {
            continue;
        }
        let name = format!("{}-v2", workload.name());
        let planted = Planted::new("volume: no class", place(workload), &["volume/no-class"])
            .with_object("StorageClass", "", "fast-ssd")
            .with_object("PersistentVolumeClaim", workload.namespace(), &format!("data-{name}-0"))
            .with_object("StatefulSet", workload.namespace(), &name);
        found.extend(planted.edit(scene.edited(workload, class)));
    }
    for workload in scene.programs().filter(|workload| workload.kind() == "Deployment") {
        let tree = scene.edited(workload, |workload| {
            mount(workload, json!({"name": "cache", "persistentVolumeClaim": {"claimName": "cache-data"}}));
        });
        let planted = Planted::new("volume: no claim", place(workload), &["volume/claim-missing"])
            .with_object("PersistentVolumeClaim", workload.namespace(), "cache-data")
            .at_workload(workload);
        found.extend(planted.edit(tree));
    }
}

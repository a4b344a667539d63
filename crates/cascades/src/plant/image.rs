//! Images that cannot be pulled.

use tiphys_value::{ObjectExt as _, json};

use super::{Planted, Scene, container, place};

/// A fault, the world's word for it, and what it is.
const KINDS: [(&str, &str, &[&str]); 4] = [
    ("image: not found", "notFound", &["image/not-found"]),
    ("image: 401", "unauthorized", &["image/unauthorized"]),
    ("image: 403", "forbidden", &["image/forbidden"]),
    ("image: registry timeout", "timeout", &["image/registry-unreachable"]),
];

pub(super) fn plant(scene: &Scene<'_>, found: &mut Vec<Planted>) {
    for workload in scene.workloads() {
        let containers = workload.at(&["spec", "template", "spec", "containers"]);
        let image =
            containers.and_then(|it| it.get(0)).and_then(|it| it.str_at(&["image"])).unwrap_or_default();
        let Some((name, _)) = image.rsplit_once(':') else { continue };
        let new = format!("{name}:9.9.9");
        for (kind, pull, causes) in KINDS {
            let rules = json!({"images": [{"image": new, "pull": pull}]});
            let planted = Planted::new(kind, place(workload), causes).at_workload(workload).rules(rules);
            let tree = scene.edited(workload, |workload| container(workload)["image"] = new.clone().into());
            found.extend(planted.edit(tree));
        }
    }
    // A pod that is moved finds that its image is gone.
    for workload in scene.programs() {
        let image =
            workload.at(&["spec", "template", "spec", "containers"]).and_then(|it| it[0].str_at(&["image"]));
        let Some(image) = image else { continue };
        let rules = json!({"images": [{"image": image, "pull": "notFound"}]});
        found.push(
            Planted::new("image: withdrawn", place(workload), &["image/not-found"])
                .at_workload(workload)
                .rules(rules)
                .restart(workload),
        );
    }
}

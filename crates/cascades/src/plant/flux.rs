//! Faults of Flux's own objects, on a cluster that Flux delivers to.

use tiphys_value::{ObjectExt as _, json};

use super::{Planted, Scene, place};
use crate::flux;

pub(super) fn plant(scene: &Scene<'_>, found: &mut Vec<Planted>) {
    let not_ready = |reason: &str, message: &str| json!({"status": {"conditions": [{"type": "Ready", "status": "False", "reason": reason, "message": message}]}});
    let source = |kind, message: &str, reason: &str, causes: &[&'static str]| {
        Planted::new(kind, flux::SOURCE, causes)
            .with_object("GitRepository", flux::NAMESPACE, flux::SOURCE)
            .by_flux("GitRepository", flux::SOURCE, not_ready(reason, message))
    };
    found.push(source(
        "flux: source refuses",
        "failed to checkout and determine revision: unable to clone 'https://git.example.com/acme/platform.git': authentication required: Unauthorized",
        "GitOperationFailed",
        &["gitops/source-auth"],
    ));
    found.push(source(
        "flux: branch absent",
        "failed to checkout and determine revision: couldn't find remote ref \"refs/heads/release\"",
        "GitOperationFailed",
        &["gitops/revision"],
    ));
    for app in scene.declared("Application") {
        let name = app.name();
        let planted = |kind, causes: &[&'static str], patch| {
            Planted::new(kind, place(app), causes)
                .with_object("Kustomization", flux::NAMESPACE, name)
                .by_flux("Kustomization", name, patch)
        };
        found.push(planted(
            "flux: build fails",
            &["gitops/render"],
            not_ready("BuildFailed", "kustomize build failed: accumulating resources: accumulation err='accumulating resources from 'cart.yaml': open /tmp/kustomization-1/cart.yaml: no such file or directory'"),
        ));
        let mut suspended = not_ready("ReconciliationFailed", "context canceled");
        suspended["spec"] = json!({"suspend": true});
        found.push(planted("flux: suspended", &[], suspended));
        let mut circle =
            not_ready("DependencyNotReady", &format!("dependency 'flux-system/{name}' is not ready"));
        circle["spec"] = json!({"dependsOn": [{"name": name}]});
        found.push(planted("flux: depends on itself", &["gitops/dependency"], circle));
    }
}

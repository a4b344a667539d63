//! Routes from outside, and autoscalers.

use tiphys_value::{ObjectExt as _, json};

use super::{Planted, Scene, place};

pub(super) fn plant(scene: &Scene<'_>, found: &mut Vec<Planted>) {
    for ingress in scene.declared("Ingress") {
        let namespace = ingress.namespace();
        let planted = |kind, cause: &'static str| {
            Planted::new(kind, place(ingress), &[cause]).with_object("Ingress", namespace, ingress.name())
        };
        let backend = |service: &str, port: u16| {
            scene.edited(ingress, |ingress| {
                let path = &mut ingress["spec"]["rules"][0]["http"]["paths"][0];
                path["backend"] = json!({"service": {"name": service, "port": {"number": port}}});
            })
        };
        if ingress.at(&["spec", "rules"]).is_none() {
            continue;
        }
        let absent = planted("edge: backend absent", "edge/backend").with_object(
            "Service",
            namespace,
            "storefront-v2",
        );
        found.extend(absent.edit(backend("storefront-v2", 80)));
        let service = ingress["spec"]["rules"][0]["http"]["paths"][0]["backend"]["service"]["name"]
            .as_str()
            .unwrap_or_default();
        let port = planted("edge: port absent", "edge/backend").with_object("Service", namespace, service);
        found.extend(port.edit(backend(service, 8443)));
        if ingress.at(&["spec", "tls"]).is_some() {
            let tree = scene.edited(ingress, |ingress| {
                ingress["spec"]["tls"][0]["secretName"] = "storefront-cert".into()
            });
            let tls = planted("edge: certificate's Secret absent", "edge/tls-secret").with_object(
                "Secret",
                namespace,
                "storefront-cert",
            );
            found.extend(tls.edit(tree));
        }
    }
    for scaler in scene.declared("HorizontalPodAutoscaler") {
        let planted = |kind, causes: &[&'static str]| {
            Planted::new(kind, place(scaler), causes).with_object(
                scaler.kind(),
                scaler.namespace(),
                scaler.name(),
            )
        };
        let tree =
            scene.edited(scaler, |scaler| scaler["spec"]["scaleTargetRef"]["name"] = "storefront".into());
        let absent = planted("scale: target absent", &["scale/target"]).with_object(
            "Deployment",
            scaler.namespace(),
            "storefront",
        );
        found.extend(absent.edit(tree));
    }
}

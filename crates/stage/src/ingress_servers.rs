//! Why an Ingress has no address: its class is a slip, or its controller does not work.

use tiphys_apiserver::{ResourceId, Snapshot};
use tiphys_cause::Cause;
use tiphys_value::{ObjectExt, ResourceKey, Value};
use tiphys_world::behaviour::{IngressServer, ingress_server, runs_image};

/// Why an Ingress has no address: in words, as a cause, and the pods that it shows.
pub(crate) fn why_unserved(
    ingress: &Value,
    snapshot: &Snapshot,
) -> Option<(String, Cause, Vec<ResourceKey>)> {
    if ingress.kind() != "Ingress" {
        return None;
    }
    let list = |group: &str, plural: &str| {
        let objects = snapshot.list(&ResourceId::new(group, plural), None);
        objects.map(|object| object.value()).collect::<Vec<&Value>>()
    };
    match ingress_server(ingress, &list("networking.k8s.io", "ingressclasses")) {
        IngressServer::Unknown => None,
        IngressServer::Slip(class) => {
            let own = ingress.str_at(&["spec", "ingressClassName"]).unwrap_or_default();
            let text = format!(
                "it names the class {own:?}, which does not exist, so no controller serves it; there is {class}"
            );
            Some((text, Cause::EdgeClass, Vec::new()))
        }
        IngressServer::Pods(image) => {
            let pods = list("", "pods").into_iter().filter(|pod| runs_image(pod, image));
            let pods = pods.map(ObjectExt::resource_key).collect();
            let text = "no pod of its controller is ready, so it has no address".to_owned();
            Some((text, Cause::EdgeControllerDown, pods))
        }
    }
}

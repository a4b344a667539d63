//! Why an Ingress has no address: its class is a slip, or its controller does not work.

use tiphys_apiserver::{ResourceId, Snapshot};
use tiphys_cause::Cause;
use tiphys_value::{ObjectExt, ResourceKey, Value};
use tiphys_world::behaviour::{IngressServer, ingress_server, runs_image};

use crate::symptoms::Symptom;

/// Adds to an Ingress that is not well why it is not.
pub(crate) fn add_why(symptom: &mut Symptom, ingress: &Value, snapshot: &Snapshot) {
    if symptom.object.kind != "Ingress" {
        return;
    }
    let list = |group: &str, plural: &str| {
        let objects = snapshot.list(&ResourceId::new(group, plural), None);
        objects.map(|object| object.value()).collect::<Vec<&Value>>()
    };
    match ingress_server(ingress, &list("networking.k8s.io", "ingressclasses")) {
        IngressServer::Unknown => {}
        IngressServer::Slip(class) => {
            let own = ingress.str_at(&["spec", "ingressClassName"]).unwrap_or_default();
            symptom.because = format!(
                "it names the class {own:?}, which does not exist, so no controller serves it; there is {class}"
            );
            symptom.mechanism = Some(Cause::EdgeClass.into());
        }
        IngressServer::Pods(image) => {
            let pods = list("", "pods").into_iter().filter(|pod| runs_image(pod, image));
            let pods: Vec<ResourceKey> = pods.map(ObjectExt::resource_key).collect();
            symptom.because = "no pod of its controller is ready, so it has no address".to_owned();
            symptom.mechanism = Some(Cause::EdgeControllerDown.into());
            symptom.shows.extend(pods);
        }
    }
}

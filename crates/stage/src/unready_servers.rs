//! Claims and load balancers that wait because no pod of those who serve them is ready.

use tiphys_apiserver::{ResourceId, Snapshot};
use tiphys_cause::Cause;
use tiphys_value::{ObjectExt, ResourceKey, Value};
use tiphys_world::behaviour::{load_balancer_image, runs_image, storage_driver};

use crate::object_state::condition;

/// Why an object is not served: in words, as a cause, and the pods that it shows.
pub(crate) fn why_unready(object: &Value, snapshot: &Snapshot) -> Option<(String, Cause, Vec<ResourceKey>)> {
    let pods = || snapshot.list(&ResourceId::new("", "pods"), None).map(|pod| pod.value());
    match object.kind() {
        "PersistentVolumeClaim" if object.str_at(&["status", "phase"]) != Some("Bound") => {
            let provisioner = class_of(object, snapshot)?.str_at(&["provisioner"])?;
            let image = storage_driver(provisioner)?;
            let own = unready(pods().filter(|pod| runs_image(pod, image)).collect())?;
            let text = format!("no pod of its driver {provisioner} is ready, so nobody makes the volume");
            Some((text, Cause::VolumeProvisioner, own))
        }
        "Service" if object.str_at(&["spec", "type"]) == Some("LoadBalancer") => {
            let own = unready(pods().filter(|pod| load_balancer_image(pod).is_some()).collect())?;
            let text = "no pod that gives load balancers an address is ready".to_owned();
            Some((text, Cause::ServiceLoadBalancer, own))
        }
        _ => None,
    }
}

/// The class of a claim.
pub(crate) fn class_of<'a>(claim: &Value, snapshot: &'a Snapshot) -> Option<&'a Value> {
    let name = claim.str_at(&["spec", "storageClassName"]).filter(|name| !name.is_empty())?;
    let class = snapshot.get(&ResourceId::new("storage.k8s.io", "storageclasses"), "", name)?;
    Some(class.value())
}

/// The pods, if there are any and none is ready.
fn unready(pods: Vec<&Value>) -> Option<Vec<ResourceKey>> {
    let is_ready =
        |pod: &&Value| condition(pod, "Ready").is_some_and(|it| it.str_at(&["status"]) == Some("True"));
    (!pods.is_empty() && !pods.iter().any(is_ready))
        .then(|| pods.into_iter().map(ObjectExt::resource_key).collect())
}

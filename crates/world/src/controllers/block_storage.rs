//! Disks of clouds: each is in one zone and attached to one node.

use serde_json::{Value, json};
use tiphys_value::ObjectExt;

use super::{volume_claims::claims_of, workload::is_finished};
use crate::{Key, View, bootstrap::ZONE, object::resources};

/// Who provisions them.
const PROVISIONERS: [&str; 6] = [
    "disk.csi.azure.com",
    "ebs.csi.aws.com",
    "kubernetes.io/aws-ebs",
    "kubernetes.io/azure-disk",
    "kubernetes.io/gce-pd",
    "pd.csi.storage.gke.io",
];
/// The annotation of a volume that says who provisioned it.
pub(super) const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";

/// Whether a class makes disks that are in one zone each.
pub(super) fn is_zonal(class: &Value) -> bool {
    let provisioner = class.str_at(&["provisioner"]).unwrap_or_default();
    let parameters = class.get("parameters").and_then(Value::as_object);
    // Disks with replicas in several zones.
    let is_regional = parameters.is_some_and(|parameters| {
        parameters.values().filter_map(Value::as_str).any(|value| {
            value.eq_ignore_ascii_case("regional-pd") || value.to_ascii_uppercase().ends_with("_ZRS")
        })
    });
    PROVISIONERS.contains(&provisioner) && !is_regional
}

/// Why a class cannot make a disk for a claim, in the words of its driver.
pub(super) fn refusal(claim: &Value, class: &Value) -> Option<String> {
    let provisioner = class.str_at(&["provisioner"]).unwrap_or_default();
    let modes = claim.at(&["spec", "accessModes"]).and_then(Value::as_array).into_iter().flatten();
    let is_for_many = modes.filter_map(Value::as_str).any(|mode| mode == "ReadWriteMany");
    let is_raw = claim.str_at(&["spec", "volumeMode"]) == Some("Block");
    (is_for_many && !is_raw && PROVISIONERS.contains(&provisioner)).then(|| {
        format!(
            "failed to provision volume with StorageClass \"{}\": rpc error: code = InvalidArgument desc = Volume \
             capabilities MULTI_NODE_MULTI_WRITER not supported. Only AccessModes[ReadWriteOnce] supported.",
            class.name()
        )
    })
}

/// The nodes that a disk of a class can be attached to: those of the zone of the node that was selected, or
/// else of the first zone. Nothing where nodes bear no zone.
pub(super) fn affinity(class: &Value, selected: Option<&str>, view: &View<'_>) -> Option<Value> {
    if !is_zonal(class) {
        return None;
    }
    let zone_of = |node: &Value| node.label(ZONE).map(str::to_owned);
    let node =
        |name: &str| view.get(&resources::nodes(), &Key { namespace: String::new(), name: name.to_owned() });
    let zone = match selected {
        Some(name) => zone_of(&*node(name)?)?,
        None => view.list(&resources::nodes(), None).iter().filter_map(|node| zone_of(node)).min()?,
    };
    let expression = json!({"key": ZONE, "operator": "In", "values": [zone]});
    Some(json!({"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}))
}

/// Why a disk cannot be attached to a pod's node: it is attached to another one.
pub(super) fn attached_elsewhere(pod: &Value, view: &View<'_>) -> Option<String> {
    let node = pod.str_at(&["spec", "nodeName"])?;
    claims_of(pod).into_iter().find_map(|key| {
        let claim = view.get(&resources::claims(), &key)?;
        let name = claim.str_at(&["spec", "volumeName"])?.to_owned();
        let volume =
            view.get(&resources::volumes(), &Key { namespace: String::new(), name: name.clone() })?;
        if !PROVISIONERS.contains(&volume.annotation(PROVISIONED_BY)?) {
            return None;
        }
        let pods = view.list(&resources::pods(), Some(pod.namespace()));
        let is_user = |other: &&std::sync::Arc<tiphys_apiserver::Object>| {
            other.uid() != pod.uid()
                && other.str_at(&["spec", "nodeName"]).is_some_and(|own| own != node)
                && other.at(&["status", "podIP"]).is_some()
                && !is_finished(other)
                && claims_of(other).contains(&key)
        };
        let users: Vec<&str> = pods.iter().filter(is_user).map(|other| other.name()).collect();
        (!users.is_empty()).then(|| {
            format!(
                "Multi-Attach error for volume \"{name}\" Volume is already used by pod(s) {}",
                users.join(", ")
            )
        })
    })
}

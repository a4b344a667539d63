//! What a real server accepts with a warning.

mod formats;
mod pod;

use tiphys_schema::{Path, Quantity, names, quote};
use tiphys_value::{ObjectExt, Value};

use super::{At, items};

/// The warnings of a new object, or of one whose generation has changed.
pub(super) fn warnings_for(at: &At, object: &Value, old: Option<&Value>) -> Vec<String> {
    if at.resource.custom.is_some() && at.subresource.is_none() {
        return unqualified_finalizers(object, old);
    }
    if at.resource.custom.is_some() || at.subresource.is_some() {
        return Vec::new();
    }
    let mut warnings = Vec::new();
    if old.is_none() {
        warnings.extend(name_of_pods(object));
    }
    let is_same = old.is_some_and(|old| object.kind() == "Pod" || old.generation() == object.generation());
    if let Some(path) = at.resource.kind.pod_template.filter(|_| !is_same)
        && let Some(template) = object.at(path)
    {
        warnings.extend(pod::template_warnings(template, &Path::new(path.join(".")), object.kind() == "Pod"));
    }
    match object.kind() {
        "Service" => warnings.extend(service(object)),
        "Ingress" if old.is_none() => warnings.extend(ingress(object)),
        "PersistentVolume" => warnings.extend(volume(object)),
        "PersistentVolumeClaim" => warnings.extend(claim(object)),
        "ResourceQuota" if old.is_none() => warnings.extend(quota(object)),
        "ServiceAccount" => warnings.extend(account(object, old)),
        "Secret" => warnings.extend(secret(object)),
        "CustomResourceDefinition" => warnings.extend(formats::unrecognized(object, old)),
        "StatefulSet" if object.int_at(&["spec", "revisionHistoryLimit"]).is_some_and(|limit| limit < 0) => {
            warnings.push("spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended".to_owned());
        }
        _ => {}
    }
    warnings
}

/// Names that pods are named after.
fn name_of_pods(object: &Value) -> Option<String> {
    let what = match object.kind() {
        "Pod" => "the Pod's hostname",
        "Deployment" | "ReplicaSet" | "Job" | "CronJob" | "ReplicationController" => {
            "Pod names and hostnames"
        }
        _ => return None,
    };
    let faults = names::dns1123_label(object.name());
    (!faults.is_empty()).then(|| {
        format!(
            "metadata.name: this is used in {what}, which can result in surprising behavior; a DNS label is recommended: [{}]",
            faults.join(" ")
        )
    })
}

fn service(object: &Value) -> Vec<String> {
    let mut warnings = Vec::new();
    let text = |field: &str| object.str_at(&["spec", field]).unwrap_or_default();
    let has_external = items(object, "/spec/externalIPs").next().is_some();
    if object.annotation("service.kubernetes.io/topology-aware-hints").is_some() {
        warnings.push("annotation service.kubernetes.io/topology-aware-hints is deprecated, please use service.kubernetes.io/topology-mode instead".to_owned());
    }
    let is_headless = text("type") == "ClusterIP" && text("clusterIP") == "None";
    if is_headless {
        for (present, field) in [
            (!text("loadBalancerIP").is_empty(), "loadBalancerIP"),
            (has_external, "externalIPs"),
            (text("sessionAffinity") != "None", "SessionAffinity"),
        ] {
            if present {
                warnings.push(format!("spec.{field} is ignored for headless services"));
            }
        }
    }
    let is_name = text("type") == "ExternalName";
    if has_external && !is_headless && !is_name {
        warnings.push(
            "spec.externalIPs is deprecated and may no longer be implemented in some clusters".to_owned(),
        );
    }
    if is_name && has_external {
        warnings.push("spec.externalIPs is ignored when spec.type is \"ExternalName\"".to_owned());
    }
    if !is_name && !text("externalName").is_empty() {
        warnings.push("spec.externalName is ignored when spec.type is not \"ExternalName\"".to_owned());
    }
    if text("trafficDistribution") == "PreferClose" {
        warnings.push(
            "spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\"".to_owned(),
        );
    }
    warnings
}

fn ingress(object: &Value) -> Option<String> {
    let annotation = "kubernetes.io/ingress.class";
    let is_set =
        object.annotation(annotation).is_some() && object.at(&["spec", "ingressClassName"]).is_none();
    is_set.then(|| {
        format!("annotation \"{annotation}\" is deprecated, please use 'spec.ingressClassName' instead")
    })
}

/// Sources of volumes that are no longer mounted, since when, and what of them.
const GONE_VOLUMES: [(&str, &str); 8] = [
    ("cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    ("photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
    ("scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    ("storageos", "deprecated in v1.22, non-functional in v1.25+"),
    ("glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    ("rbd", "deprecated in v1.28, non-functional in v1.31+"),
    ("flocker", "deprecated in v1.22, non-functional in v1.25+"),
    ("quobyte", "deprecated in v1.22, non-functional in v1.25+"),
];

fn volume(object: &Value) -> Vec<String> {
    let mut warnings = Vec::new();
    if object.annotation("volume.beta.kubernetes.io/storage-class").is_some() {
        warnings.push("metadata.annotations[volume.beta.kubernetes.io/storage-class]: deprecated since v1.8; use \"storageClassName\" attribute instead".to_owned());
    }
    if object["spec"]["persistentVolumeReclaimPolicy"] == "Recycle" {
        warnings.push("spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic provisioning.".to_owned());
    }
    let gone = GONE_VOLUMES[..6].iter().filter(|(source, _)| object["spec"][*source].is_object());
    warnings.extend(gone.map(|(source, since)| {
        let shown = if *source == "storageos" { "storageOS" } else { source };
        format!("spec.{shown}: {since}")
    }));
    warnings
}

fn claim(object: &Value) -> Vec<String> {
    let mut warnings = Vec::new();
    if object.annotation("volume.beta.kubernetes.io/storage-class").is_some() {
        warnings.push("metadata.annotations[volume.beta.kubernetes.io/storage-class]: deprecated since v1.8; use \"storageClassName\" attribute instead".to_owned());
    }
    let resources = Path::new("spec.resources");
    for part in ["requests", "limits"] {
        let amount = &object["spec"]["resources"][part]["storage"];
        warnings.extend(fractional(amount, &resources.child(part).key("storage")));
    }
    warnings
}

/// A size that is no whole number of bytes.
fn fractional(amount: &Value, path: &Path) -> Option<String> {
    let quantity: Quantity = amount.as_str()?.parse().ok()?;
    let text = quote(&quantity.to_string());
    (quantity.milli() % 1000 != 0)
        .then(|| format!("{path}: fractional byte value {text} is invalid, must be an integer"))
}

/// A quota that requests more than it limits.
fn quota(object: &Value) -> Vec<String> {
    let hard = &object["spec"]["hard"];
    let amount = |name: &str| hard[name].as_str()?.parse::<Quantity>().ok();
    let mut warnings = Vec::new();
    for resource in ["cpu", "memory", "ephemeral-storage"] {
        let plain = (resource != "ephemeral-storage").then(|| resource.to_owned());
        let names = [Some(format!("requests.{resource}")), plain];
        let request = names.into_iter().flatten().find_map(|name| Some((amount(&name)?, name)));
        let limit = format!("limits.{resource}");
        if let (Some((request, name)), Some(bound)) = (request, amount(&limit))
            && request.minus(&bound).signum() > 0
        {
            warnings.push(format!("ResourceQuota {name} ({request}) should be less than {limit} ({bound})"));
        }
    }
    warnings
}

fn account(object: &Value, old: Option<&Value>) -> Option<String> {
    let annotation = "kubernetes.io/enforce-mountable-secrets";
    let is_new =
        object.annotation(annotation).is_some() && old.is_none_or(|old| old.annotation(annotation).is_none());
    is_new.then(|| {
        format!("metadata.annotations[{annotation}]: deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets")
    })
}

/// A certificate or key that is no PEM at all; what is inside is not looked at.
fn secret(object: &Value) -> Option<String> {
    use base64::{Engine, engine::general_purpose::STANDARD};
    if object["type"] != "kubernetes.io/tls" {
        return None;
    }
    let is_pem = |key: &str| {
        let data =
            object["data"][key].as_str().and_then(|text| STANDARD.decode(text).ok()).unwrap_or_default();
        String::from_utf8_lossy(&data).contains("-----BEGIN ")
    };
    let missing =
        [("tls.crt", "certificate"), ("tls.key", "key")].into_iter().find(|(key, _)| !is_pem(key))?;
    Some(format!("tls: failed to find any PEM data in {} input", missing.1))
}

/// New finalizers of custom resources that have no domain, or only that.
fn unqualified_finalizers(object: &Value, old: Option<&Value>) -> Vec<String> {
    let before = old.map(crate::meta::finalizers).unwrap_or_default();
    let new = crate::meta::finalizers(object).into_iter().filter(|name| !before.contains(name));
    let is_plain = |name: &&str| !matches!(*name, "orphan" | "foregroundDeletion" | "kubernetes");
    let faulty = new.filter(|name| !name.contains('/')).filter(is_plain);
    faulty
        .map(|name| {
            let path = if name.contains('.') { " including a path (/)" } else { "" };
            let quoted = tiphys_schema::quote(name);
            format!("metadata.finalizers: {quoted}: prefer a domain-qualified finalizer name{path} to avoid accidental conflicts with other finalizer writers")
        })
        .collect()
}

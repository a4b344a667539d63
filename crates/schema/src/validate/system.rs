//! Kinds that parts of a cluster write rather than people: revisions, signing requests, runtime classes,
//! aggregated APIs, what CSI drivers tell of themselves.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::Value;

use super::{faulty, immutable, list, names, not_negative, selector, text};
use crate::{ErrorList, FieldError, Path};

/// Usages of certificates, as errors list them.
const USAGES: [&str; 23] = [
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
];

/// A name that must be there and of a form.
fn required_name(name: &str, form: fn(&str) -> Vec<String>, path: &Path, errors: &mut ErrorList) {
    match name {
        "" => errors.push(FieldError::required(path, "")),
        _ => faulty(form(name), name, path, errors),
    }
}

/// A `ControllerRevision`; its data is judged when it is new.
pub(super) fn revision(object: &Value, errors: &mut ErrorList) {
    not_negative(&object["revision"], &Path::new("revision"), errors);
    let path = Path::new("data");
    match &object["data"] {
        Value::Object(_) => {}
        Value::Null => errors.push(FieldError::required(&path, "data is mandatory")),
        _ => errors.push(FieldError::required(&path, "data must be a valid JSON object")),
    }
}

/// A change of a `ControllerRevision`.
pub(super) fn revision_update(new: &Value, old: &Value, errors: &mut ErrorList) {
    not_negative(&new["revision"], &Path::new("revision"), errors);
    immutable(new, old, "/data", errors);
}

/// A `CertificateSigningRequest`.
pub(super) fn signing_request(spec: &Value, path: &Path, errors: &mut ErrorList) {
    let request = text(spec, "request");
    let pem = STANDARD.decode(request).unwrap_or_default();
    if !pem.starts_with(b"-----BEGIN CERTIFICATE REQUEST-----") {
        let shown = if request.is_empty() { Value::Null } else { request.into() };
        let detail = "PEM block type must be CERTIFICATE REQUEST";
        errors.push(FieldError::invalid(&path.child("request"), shown, detail));
    }
    let usages = list(spec, "usages");
    if usages.is_empty() {
        errors.push(FieldError::required(&path.child("usages"), ""));
    }
    for (at, usage) in usages.iter().enumerate() {
        let path = path.child("usages").index(at);
        if !usage.as_str().is_some_and(|usage| USAGES.contains(&usage)) {
            errors.push(FieldError::not_supported(&path, usage.clone(), &USAGES));
        }
    }
    for (at, usage) in usages.iter().enumerate().filter(|(at, usage)| usages[..*at].contains(usage)) {
        errors.push(FieldError::duplicate(&path.child("usages").index(at), usage.clone()));
    }
    signer(text(spec, "signerName"), &path.child("signerName"), errors);
    if let Some(seconds) = spec["expirationSeconds"].as_i64().filter(|seconds| *seconds < 600) {
        let detail = "may not specify a duration less than 600 seconds (10 minutes)";
        errors.push(FieldError::invalid(&path.child("expirationSeconds"), seconds, detail));
    }
}

/// A signer's name: a domain with at least two parts, and a path.
fn signer(name: &str, path: &Path, errors: &mut ErrorList) {
    if name.is_empty() {
        errors.push(FieldError::required(path, ""));
        return;
    }
    if name == "kubernetes.io/legacy-unknown" {
        let detail = "the legacy signerName is not allowed via this API version";
        errors.push(FieldError::invalid(path, name, detail));
        return;
    }
    let parts: Vec<&str> = name.split('/').collect();
    let [domain, rest] = parts.as_slice() else {
        let detail = "must be a fully qualified domain and path of the form 'example.com/signer-name'";
        errors.push(FieldError::invalid(path, name, detail));
        return;
    };
    faulty(names::dns1123_subdomain(domain), domain, path, errors);
    if names::dns1123_subdomain(domain).is_empty() && !domain.contains('.') {
        let detail = "should be a domain with at least two segments separated by dots";
        errors.push(FieldError::invalid(path, *domain, detail));
    }
    if rest.is_empty() {
        let detail = "must be a fully qualified domain and path of the form 'example.com/signer-name'";
        errors.push(FieldError::invalid(path, name, detail));
    }
}

/// A `RuntimeClass`.
pub(super) fn runtime_class(object: &Value, errors: &mut ErrorList) {
    required_name(text(object, "handler"), names::dns1123_label, &Path::new("handler"), errors);
    let path = Path::new("scheduling.nodeSelector");
    if object["overhead"].is_object() {
        let limits = serde_json::json!({"limits": object["overhead"]["podFixed"]});
        let path = Path::new("overhead");
        super::pod::requirements(&limits, super::pod::container_resource_name, &path, errors);
    }
    super::labels(&object["scheduling"]["nodeSelector"], &path, errors);
    let tolerations = super::list(&object["scheduling"], "tolerations");
    let path = Path::new("scheduling.tolerations");
    super::placement::tolerations(tolerations, &path, errors);
    for (at, one) in tolerations.iter().enumerate().filter(|(at, one)| tolerations[..*at].contains(one)) {
        errors.push(FieldError::duplicate(&path.index(at), one.clone()));
    }
}

/// An `APIService`.
pub(super) fn api_service(object: &Value, errors: &mut ErrorList) {
    let (spec, path) = (&object["spec"], Path::new("spec"));
    let (group, version) = (text(spec, "group"), text(spec, "version"));
    let (name, wanted) =
        (object["metadata"]["name"].as_str().unwrap_or_default(), format!("{version}.{group}"));
    if name != wanted && !name.is_empty() && names::path_segment(name).is_empty() {
        let detail = format!("must be `spec.version+\".\"+spec.group`: {}", crate::quote(&wanted));
        errors.push(FieldError::invalid(&Path::new("metadata.name"), name, detail));
    }
    if group.is_empty() && version != "v1" {
        let detail = "only v1 may have an empty group and it better be legacy kube";
        errors.push(FieldError::required(&path.child("group"), detail));
    } else if !group.is_empty() {
        faulty(names::dns1123_subdomain(group), group, &path.child("group"), errors);
    }
    faulty(names::dns1035_label(version), version, &path.child("version"), errors);
    for (key, most) in [("groupPriorityMinimum", 20_000), ("versionPriority", 1000)] {
        let number = spec[key].as_i64().unwrap_or_default();
        if !(1..=most).contains(&number) {
            let detail = format!("must be positive and less than {most}");
            errors.push(FieldError::invalid(&path.child(key), number, detail));
        }
    }
    let skips = spec["insecureSkipTLSVerify"] == true;
    let bundle = STANDARD.decode(text(spec, "caBundle")).unwrap_or_default().len();
    if !spec["service"].is_object() {
        if bundle > 0 {
            let (path, shown) = (path.child("caBundle"), format!("{bundle} bytes"));
            errors.push(FieldError::invalid(&path, shown, "local APIServices may not have a caBundle"));
        }
        if skips {
            let detail = "local APIServices may not have insecureSkipTLSVerify";
            errors.push(FieldError::invalid(&path.child("insecureSkipTLSVerify"), true, detail));
        }
        return;
    }
    let (service, place) = (&spec["service"], path.child("service"));
    for key in ["namespace", "name"].into_iter().filter(|key| text(service, key).is_empty()) {
        errors.push(FieldError::required(&place.child(key), ""));
    }
    if let Some(port) = service["port"].as_i64()
        && !(1..=65_535).contains(&port)
    {
        let detail = "port is not valid: must be between 1 and 65535, inclusive";
        errors.push(FieldError::invalid(&place.child("port"), port, detail));
    }
    if skips && bundle > 0 {
        let detail = "may not be true if caBundle is present";
        errors.push(FieldError::invalid(&path.child("insecureSkipTLSVerify"), true, detail));
    }
}

/// The name of a CSI driver in an object that refers to it.
fn driver_name(name: &str, path: &Path, errors: &mut ErrorList) {
    if name.is_empty() {
        errors.push(FieldError::required(path, ""));
    }
    if name.len() > 63 {
        errors.push(FieldError::too_long(path, 63));
    }
    if !name.is_empty() {
        let lower = name.to_lowercase();
        errors.extend(
            names::dns1123_subdomain(&lower).into_iter().map(|fault| FieldError::invalid(path, name, fault)),
        );
    }
}

/// A `VolumeAttachment`.
pub(super) fn attachment(spec: &Value, path: &Path, errors: &mut ErrorList) {
    driver_name(text(spec, "attacher"), &path.child("attacher"), errors);
    let (source, place) = (&spec["source"], path.child("source"));
    let (inline, volume) = (source["inlineVolumeSpec"].is_object(), source["persistentVolumeName"].as_str());
    let detail = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
    match (inline, volume) {
        (false, None) => errors.push(FieldError::required(&place, detail)),
        (true, Some(_)) => errors.push(FieldError::forbidden(&place, detail)),
        (false, Some("")) => {
            let detail = "must specify non empty persistentVolumeName";
            errors.push(FieldError::required(&place.child("persistentVolumeName"), detail));
        }
        _ => {}
    }
    let node = text(spec, "nodeName");
    faulty(names::dns1123_subdomain(node), node, &path.child("nodeName"), errors);
    if let Some(volume) = volume {
        faulty(names::dns1123_subdomain(volume), volume, &place.child("persistentVolumeName"), errors);
    }
}

/// A `CSINode`.
pub(super) fn csi_node(spec: &Value, path: &Path, errors: &mut ErrorList) {
    let drivers = list(spec, "drivers");
    for (at, driver) in drivers.iter().enumerate() {
        let path = path.child("drivers").index(at);
        let (name, id) = (text(driver, "name"), text(driver, "nodeID"));
        driver_name(name, &path.child("name"), errors);
        match id.len() {
            0 => errors.push(FieldError::required(&path.child("nodeID"), "")),
            1..=192 => {}
            _ => {
                errors.push(FieldError::invalid(&path.child("nodeID"), id, "must be 192 characters or less"))
            }
        }
        not_negative(&driver["allocatable"]["count"], &path.child("allocatable").child("count"), errors);
        if drivers[..at].iter().any(|other| text(other, "name") == name) {
            errors.push(FieldError::duplicate(&path.child("name"), name));
        }
        let keys = list(driver, "topologyKeys");
        for (index, key) in keys.iter().enumerate().filter_map(|(index, key)| Some((index, key.as_str()?))) {
            if key.is_empty() {
                errors.push(FieldError::required(&path, ""));
            }
            if keys[..index].iter().any(|other| other == key) {
                errors.push(FieldError::duplicate(&path, key));
            }
            faulty(names::qualified_name(key), key, &path, errors);
        }
    }
}

/// A `CSIDriver`.
pub(super) fn csi_driver(spec: &Value, path: &Path, errors: &mut ErrorList) {
    let policies = ["File", "None", "ReadWriteOnceWithFSType"];
    if let Some(policy) = spec["fsGroupPolicy"].as_str().filter(|policy| !policies.contains(policy)) {
        errors.push(FieldError::not_supported(&path.child("fsGroupPolicy"), policy, &policies));
    }
    let requests = list(spec, "tokenRequests");
    for (at, request) in requests.iter().enumerate() {
        let (path, audience) = (path.child("tokenRequests").index(at), text(request, "audience"));
        if requests[..at].iter().any(|other| text(other, "audience") == audience) {
            errors.push(FieldError::duplicate(&path.child("audience"), audience));
            continue;
        }
        if let Some(seconds) = request["expirationSeconds"].as_i64().filter(|seconds| *seconds < 600) {
            let detail = "may not specify a duration less than 10 minutes";
            errors.push(FieldError::invalid(&path.child("expirationSeconds"), seconds, detail));
        }
    }
    for mode in list(spec, "volumeLifecycleModes") {
        if mode != "Persistent" && mode != "Ephemeral" {
            let path = path.child("volumeLifecycleModes");
            errors.push(FieldError::not_supported(&path, mode.clone(), &["Persistent", "Ephemeral"]));
        }
    }
    if let Some(seconds) = spec["nodeAllocatableUpdatePeriodSeconds"].as_i64().filter(|seconds| *seconds < 10)
    {
        let detail = "must be greater than or equal to 10 seconds";
        errors.push(FieldError::invalid(&path.child("nodeAllocatableUpdatePeriodSeconds"), seconds, detail));
    }
}

/// What of a `CSIDriver` stays as it was.
pub(super) fn csi_driver_update(new: &Value, old: &Value, errors: &mut ErrorList) {
    if new["spec"]["attachRequired"] != old["spec"]["attachRequired"] {
        let path = Path::new("spec.attachedRequired");
        errors.push(FieldError::invalid(&path, new["spec"]["attachRequired"].clone(), "field is immutable"));
    }
    immutable(new, old, "/spec/volumeLifecycleModes", errors);
}

/// A `CSIStorageCapacity`.
pub(super) fn storage_capacity(object: &Value, errors: &mut ErrorList) {
    selector(&object["nodeTopology"], &Path::new("nodeTopology"), errors);
    let class = text(object, "storageClassName");
    faulty(names::dns1123_subdomain(class), class, &Path::new("storageClassName"), errors);
    let amount = object["capacity"].as_str().and_then(|text| text.parse::<crate::Quantity>().ok());
    if let Some(amount) = amount.filter(|amount| amount.signum() < 0) {
        let detail = "must be greater than or equal to 0";
        errors.push(FieldError::invalid(&Path::new("capacity"), amount.to_string(), detail));
    }
}

/// A `VolumeAttributesClass`.
pub(super) fn attributes_class(object: &Value, errors: &mut ErrorList) {
    let driver = text(object, "driverName");
    if driver.is_empty() {
        errors.push(FieldError::required(&Path::new("driverName"), ""));
    } else {
        faulty(names::qualified_name(&driver.to_lowercase()), driver, &Path::new("driverName"), errors);
    }
    if object["parameters"].as_object().is_none_or(|parameters| parameters.is_empty()) {
        let detail = "must contain at least one key/value pair";
        errors.push(FieldError::required(&Path::new("parameters"), detail));
    }
    if object["parameters"].get("").is_some() {
        errors.push(FieldError::invalid(&Path::new("parameters"), "", "field can not be empty."));
    }
}

/// What of a `VolumeAttributesClass` stays as it was.
pub(super) fn attributes_class_update(new: &Value, old: &Value, errors: &mut ErrorList) {
    for key in ["driverName", "parameters"].into_iter().filter(|key| new[*key] != old[*key]) {
        errors.push(FieldError::forbidden(&Path::new(key), format!("updates to {key} are forbidden.")));
    }
    attributes_class(new, errors);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fields(check: impl FnOnce(&mut ErrorList)) -> Vec<String> {
        let mut errors = ErrorList::new();
        check(&mut errors);
        errors.iter().map(|error| error.field.clone()).collect()
    }

    #[test]
    fn each_kind_has_its_rules() {
        let path = Path::new("spec");
        assert_eq!(fields(|e| revision(&json!({"revision": -1, "data": 3}), e)), ["revision", "data"]);
        let request = json!({"usages": ["any", "any", "x"], "signerName": "nodot/x"});
        assert_eq!(
            fields(|e| signing_request(&request, &path, e)),
            ["spec.request", "spec.usages[2]", "spec.usages[1]", "spec.signerName"]
        );
        let service = json!({"metadata": {"name": "v1.x"}, "spec": {"version": "v1", "group": "y.z",
            "groupPriorityMinimum": 1, "versionPriority": 0, "service": {"name": "s"}}});
        assert_eq!(
            fields(|e| api_service(&service, e)),
            ["metadata.name", "spec.versionPriority", "spec.service.namespace"]
        );
        assert_eq!(
            fields(|e| attachment(&json!({"attacher": "a", "nodeName": "n"}), &path, e)),
            ["spec.source"]
        );
        let node = json!({"drivers": [{"name": "a", "nodeID": "1"}, {"name": "a", "topologyKeys": ["/x"]}]});
        assert_eq!(
            fields(|e| csi_node(&node, &path, e)),
            ["spec.drivers[1].nodeID", "spec.drivers[1].name", "spec.drivers[1]"]
        );
        assert_eq!(fields(|e| attributes_class(&json!({}), e)), ["driverName", "parameters"]);
    }
}

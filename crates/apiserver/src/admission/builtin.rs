//! The admission plugins that every cluster runs.

use tiphys_schema::Quantity;
use tiphys_value::{ObjectExt, Value, json};

use crate::{
    ApiError, ApiResult, ApiServer, meta,
    ops::{At, items},
    store::ResourceId,
};

/// Taints that a pod tolerates for a while unless it says otherwise, in seconds.
const DEFAULT_TOLERATION: i64 = 300;
const NODE_TAINTS: [&str; 2] = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];
const DEFAULT_STORAGE_CLASS: &str = "storageclass.kubernetes.io/is-default-class";
const DEFAULT_INGRESS_CLASS: &str = "ingressclass.kubernetes.io/is-default-class";

/// Fills in and checks a new object.
pub(super) fn on_create(server: &ApiServer, at: &At, object: &mut Value) -> ApiResult<()> {
    if at.resource.custom.is_some() {
        return Ok(());
    }
    match (at.resource.group(), at.resource.plural.as_str()) {
        ("", "pods") => {
            service_account(server, at, object)?;
            priority(server, at, object)?;
            tolerations(object);
            runtime_class(server, at, object)?;
        }
        ("", "persistentvolumeclaims") => {
            storage_class(server, object);
            protect(at, object);
        }
        ("", "persistentvolumes") | ("storage.k8s.io", "volumeattributesclasses") => {
            protect(at, object);
        }
        ("", "nodes") => not_ready(object),
        ("networking.k8s.io", "ingresses") => ingress_class(server, object),
        _ => {}
    }
    Ok(())
}

/// Puts a new claim or volume under protection.
fn protect(at: &At, object: &mut Value) {
    let Some(finalizer) = at.resource.kind.protection else { return };
    let mut finalizers: Vec<String> = meta::finalizers(object).into_iter().map(str::to_owned).collect();
    if !finalizers.iter().any(|name| name == finalizer) {
        finalizers.push(finalizer.to_owned());
        meta::set_finalizers(object, &finalizers.iter().map(String::as_str).collect::<Vec<_>>());
    }
}

/// A node takes no pods before somebody has seen it ready.
fn not_ready(node: &mut Value) {
    let taint = json!({"key": NODE_TAINTS[0], "effect": "NoSchedule"});
    if items(node, "/spec/taints")
        .any(|known| known["key"] == taint["key"] && known["effect"] == taint["effect"])
    {
        return;
    }
    match node["spec"]["taints"].as_array_mut() {
        Some(taints) => taints.push(taint),
        None => node["spec"]["taints"] = json!([taint]),
    }
}

fn service_account(server: &ApiServer, at: &At, pod: &mut Value) -> ApiResult<()> {
    if pod.annotation("kubernetes.io/config.mirror").is_some() {
        return Ok(());
    }
    let name =
        pod.str_at(&["spec", "serviceAccountName"]).filter(|n| !n.is_empty()).unwrap_or("default").to_owned();
    pod["spec"]["serviceAccountName"] = name.as_str().into();
    pod["spec"]["serviceAccount"] = name.as_str().into();
    let snapshot = server.snapshot();
    let account = snapshot.get(&ResourceId::new("", "serviceaccounts"), &at.namespace, &name);
    let Some(account) = account else {
        let quoted = tiphys_schema::quote(&name);
        let why = format!(
            "error looking up service account {}/{name}: serviceaccount {quoted} not found",
            at.namespace
        );
        return Err(ApiError::forbidden(at.resource.object_named(&at.name), &why));
    };
    let mounts = pod
        .at(&["spec", "automountServiceAccountToken"])
        .or_else(|| account.get("automountServiceAccountToken"));
    if mounts != Some(&Value::Bool(false)) {
        mount_token(server, pod);
    }
    let own_secrets =
        pod.at(&["spec", "imagePullSecrets"]).and_then(Value::as_array).is_some_and(|s| !s.is_empty());
    if !own_secrets && let Some(secrets) = account.get("imagePullSecrets").filter(|s| s.is_array()) {
        pod["spec"]["imagePullSecrets"] = secrets.clone();
    }
    Ok(())
}

const TOKEN_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

fn mount_token(server: &ApiServer, pod: &mut Value) {
    let mounted = |c: &Value| items(c, "/volumeMounts").any(|m| m["mountPath"] == TOKEN_PATH);
    let volume = format!("kube-api-access-{}", server.entropy().suffix(5));
    let mut used = false;
    for list in ["initContainers", "containers"] {
        for container in pod["spec"][list].as_array_mut().into_iter().flatten().filter(|c| !mounted(c)) {
            used = true;
            let mount = json!({"name": volume, "readOnly": true, "mountPath": TOKEN_PATH});
            match container["volumeMounts"].as_array_mut() {
                Some(mounts) => mounts.push(mount),
                None => container["volumeMounts"] = json!([mount]),
            }
        }
    }
    if pod["spec"]["initContainers"].is_null() {
        drop(pod["spec"].as_object_mut().map(|spec| spec.remove("initContainers")));
    }
    if !used {
        return;
    }
    let projected = json!({"name": volume, "projected": {"defaultMode": 420, "sources": [
        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}]}},
    ]}});
    match pod["spec"]["volumes"].as_array_mut() {
        Some(volumes) => volumes.push(projected),
        None => pod["spec"]["volumes"] = json!([projected]),
    }
}

fn priority(server: &ApiServer, at: &At, pod: &mut Value) -> ApiResult<()> {
    let snapshot = server.snapshot();
    let id = ResourceId::new("scheduling.k8s.io", "priorityclasses");
    let name = pod.str_at(&["spec", "priorityClassName"]).unwrap_or_default().to_owned();
    let class = if name.is_empty() {
        snapshot.list(&id, None).find(|c| c["globalDefault"] == true)
    } else {
        let class = snapshot.get(&id, "", &name);
        if class.is_none() {
            let why = format!("no PriorityClass with name {name} was found");
            return Err(ApiError::forbidden(at.resource.object_named(&at.name), &why));
        }
        class
    };
    let value = class.and_then(|c| c.int_at(&["value"])).unwrap_or(0);
    let policy = class.and_then(|c| c.str_at(&["preemptionPolicy"])).unwrap_or("PreemptLowerPriority");
    let refuse = |what: &str, given: String, own: String| {
        let why = format!(
            "the {what} ({given}) must not be provided in pod spec; priority admission controller computed {own} from the given PriorityClass name"
        );
        Err(ApiError::forbidden(at.resource.object_named(&at.name), &why))
    };
    if let Some(given) = pod.int_at(&["spec", "priority"]).filter(|given| *given != value) {
        return refuse("integer value of priority", given.to_string(), value.to_string());
    }
    if let Some(given) = pod.str_at(&["spec", "preemptionPolicy"]).filter(|given| *given != policy) {
        return refuse("string value of PreemptionPolicy", given.to_owned(), policy.to_owned());
    }
    pod["spec"]["priority"] = value.into();
    pod["spec"]["preemptionPolicy"] = policy.into();
    if let Some(class) = class.filter(|_| name.is_empty()) {
        pod["spec"]["priorityClassName"] = class.name().into();
    }
    Ok(())
}

/// Pods bear the loss of their node for a while.
pub(super) fn tolerations(pod: &mut Value) {
    for taint in NODE_TAINTS {
        let covered = items(pod, "/spec/tolerations").any(|t| {
            let key = t.str_at(&["key"]).unwrap_or_default();
            let effect = t.str_at(&["effect"]).unwrap_or_default();
            (key == taint || (key.is_empty() && t["operator"] == "Exists"))
                && matches!(effect, "" | "NoExecute")
        });
        if covered {
            continue;
        }
        let toleration = json!({"key": taint, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": DEFAULT_TOLERATION});
        match pod["spec"]["tolerations"].as_array_mut() {
            Some(list) => list.push(toleration),
            None => pod["spec"]["tolerations"] = json!([toleration]),
        }
    }
}

/// Takes over what a RuntimeClass says of its pods.
fn runtime_class(server: &ApiServer, at: &At, pod: &mut Value) -> ApiResult<()> {
    let refuse = |why: String| {
        Err(ApiError::forbidden(at.resource.object_named(&at.name), &format!("pod rejected: {why}")))
    };
    let overhead =
        pod.at(&["spec", "overhead"]).is_some_and(|o| o.as_object().is_some_and(|o| !o.is_empty()));
    let name = pod.str_at(&["spec", "runtimeClassName"]).unwrap_or_default().to_owned();
    let snapshot = server.snapshot();
    let class = snapshot.get(&ResourceId::new("node.k8s.io", "runtimeclasses"), "", &name);
    if !name.is_empty() && class.is_none() {
        return refuse(format!("RuntimeClass {} not found", tiphys_schema::quote(&name)));
    }
    let own = class.and_then(|class| class.at(&["overhead", "podFixed"]));
    match own {
        // Refused only once the pod is valid otherwise: by [`check_overhead`].
        None => Ok(()),
        Some(own) => {
            if overhead && pod["spec"]["overhead"] != *own {
                return refuse("Pod's Overhead doesn't match RuntimeClass's defined Overhead".into());
            }
            pod["spec"]["overhead"] = own.clone();
            Ok(())
        }
    }
}

/// A pod's overhead is what its RuntimeClass says.
pub(super) fn check_overhead(server: &ApiServer, at: &At, pod: &Value) -> ApiResult<()> {
    let overhead = pod.at(&["spec", "overhead"]).and_then(Value::as_object);
    if overhead.is_none_or(|overhead| overhead.is_empty()) {
        return Ok(());
    }
    let name = pod.str_at(&["spec", "runtimeClassName"]).unwrap_or_default();
    let snapshot = server.snapshot();
    let class = snapshot.get(&ResourceId::new("node.k8s.io", "runtimeclasses"), "", name);
    if class.is_some_and(|class| class.at(&["overhead", "podFixed"]).is_some()) {
        return Ok(());
    }
    let why = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead";
    Err(ApiError::forbidden(at.resource.object_named(&at.name), why))
}

/// A claim grows only where its class lets volumes grow. Of a class that is not there nothing is known.
pub(super) fn check_growth(server: &ApiServer, at: &At, old: &Value, new: &Value) -> ApiResult<()> {
    let size = |claim: &Value| {
        let text = claim.str_at(&["spec", "resources", "requests", "storage"])?;
        text.parse::<Quantity>().ok()
    };
    let grows = size(new).zip(size(old)).is_some_and(|(new, old)| new.minus(&old).signum() > 0);
    let name = old.str_at(&["spec", "storageClassName"]).unwrap_or_default();
    let snapshot = server.snapshot();
    let class = snapshot.get(&ResourceId::new("storage.k8s.io", "storageclasses"), "", name);
    if !grows || class.is_none_or(|class| class["allowVolumeExpansion"] == true) {
        return Ok(());
    }
    let why = "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize";
    Err(ApiError::forbidden(at.resource.object_named(&at.name), why))
}

fn default_class(server: &ApiServer, id: &ResourceId, annotation: &str) -> Option<String> {
    let snapshot = server.snapshot();
    let marked = snapshot.list(id, None).filter(|c| c.annotation(annotation) == Some("true"));
    let newest = marked.max_by_key(|c| c.str_at(&["metadata", "creationTimestamp"]).map(str::to_owned));
    newest.map(|c| c.name().to_owned())
}

fn storage_class(server: &ApiServer, claim: &mut Value) {
    let chosen = claim.at(&["spec", "storageClassName"]).is_some_and(Value::is_string);
    if chosen || claim.annotation("volume.beta.kubernetes.io/storage-class").is_some() {
        return;
    }
    let id = ResourceId::new("storage.k8s.io", "storageclasses");
    if let Some(name) = default_class(server, &id, DEFAULT_STORAGE_CLASS) {
        claim["spec"]["storageClassName"] = name.into();
    }
}

fn ingress_class(server: &ApiServer, ingress: &mut Value) {
    let chosen = ingress.at(&["spec", "ingressClassName"]).is_some_and(Value::is_string);
    if chosen || ingress.annotation("kubernetes.io/ingress.class").is_some() {
        return;
    }
    let id = ResourceId::new("networking.k8s.io", "ingressclasses");
    if let Some(name) = default_class(server, &id, DEFAULT_INGRESS_CLASS) {
        ingress["spec"]["ingressClassName"] = name.into();
    }
}

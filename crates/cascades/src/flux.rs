//! The same cluster as Flux would leave it: each Application becomes a Kustomization that tells the same in
//! Flux's words.

use std::time::Duration;

use tiphys_doctor::Case;
use tiphys_merge::merge_patch;
use tiphys_value::{ObjectExt as _, Value, json};

use crate::plant::Planted;

/// Where Flux's objects are.
pub const NAMESPACE: &str = "flux-system";
/// The name of the repository that everything comes from.
pub const SOURCE: &str = "platform";

/// How long before a dump its Flux last changed its mind.
const BEFORE: Duration = Duration::from_secs(20 * 60);

/// The same fault, expected at Flux's objects in place of Argo CD's.
#[must_use]
pub fn expected(planted: &Planted) -> Planted {
    let mut planted = planted.clone();
    for (kind, namespace, _) in planted.expected.objects.iter_mut().filter(|it| it.0 == "Application") {
        (*kind, *namespace) = ("Kustomization".to_owned(), NAMESPACE.to_owned());
    }
    planted
}

/// A cluster that Flux delivers to.
#[must_use]
pub fn delivered(case: &Case, planted: &Planted) -> Case {
    let mut flux = case.clone();
    let since = case.at.and_then(|at| at.checked_sub(BEFORE).ok()).map(|at| at.to_string());
    let apps: Vec<Value> = case.objects.iter().filter(|it| it.kind() == "Application").cloned().collect();
    flux.objects.retain(|it| !it.api_version().starts_with("argoproj.io/"));
    for object in &mut flux.objects {
        mark(object);
    }
    flux.objects.push(json!({"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository",
        "metadata": {"name": SOURCE, "namespace": NAMESPACE, "uid": "flux-source", "creationTimestamp": "2026-01-01T00:00:00Z", "generation": 1},
        "spec": {"url": "https://git.example.com/acme/platform.git", "interval": "1m"},
        "status": {"observedGeneration": 1, "conditions": [condition(true, "Succeeded", "stored artifact for revision 'main@sha1:4f3c'")]}}));
    flux.objects.extend(apps.iter().map(kustomization));
    for (kind, name, patch) in &planted.flux {
        let named = flux.objects.iter_mut().find(|it| it.kind() == kind && it.name() == name);
        if let Some(object) = named {
            *object = merge_patch(object, patch);
        }
    }
    for object in &mut flux.objects {
        date(object, since.as_deref());
    }
    flux.events.retain(|event| event.object.kind != "Application");
    flux.listed.extend(["Kustomization", "HelmRelease", "GitRepository"].map(str::to_owned));
    flux
}

/// Argo CD's mark on what it delivers becomes Flux's.
fn mark(object: &mut Value) {
    let id = object.annotation("argocd.argoproj.io/tracking-id").map(str::to_owned);
    let Some(app) = id.as_deref().and_then(|id| id.split(':').next()) else { return };
    object["metadata"]["labels"]["kustomize.toolkit.fluxcd.io/name"] = app.into();
    object["metadata"]["labels"]["kustomize.toolkit.fluxcd.io/namespace"] = NAMESPACE.into();
    if let Some(all) = object["metadata"]["annotations"].as_object_mut() {
        all.remove("argocd.argoproj.io/tracking-id");
    }
}

fn condition(is_ready: bool, reason: &str, message: &str) -> Value {
    let status = if is_ready { "True" } else { "False" };
    json!({"type": "Ready", "status": status, "reason": reason, "message": message})
}

fn kustomization(app: &Value) -> Value {
    let resources = app.at(&["status", "resources"]).and_then(Value::as_array).cloned().unwrap_or_default();
    let text = |it: &Value, key: &str| it.str_at(&[key]).unwrap_or_default().to_owned();
    let entries: Vec<Value> = resources
        .iter()
        .map(|it| {
            let is_app = text(it, "kind") == "Application";
            let id = if is_app {
                format!("{NAMESPACE}_{}_kustomize.toolkit.fluxcd.io_Kustomization", text(it, "name"))
            } else {
                let [namespace, name, group, kind] =
                    ["namespace", "name", "group", "kind"].map(|key| text(it, key));
                format!("{namespace}_{name}_{group}_{kind}")
            };
            json!({"id": id, "v": text(it, "version")})
        })
        .collect();
    json!({"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
        "metadata": {"name": app.name(), "namespace": NAMESPACE, "uid": format!("flux-{}", app.name()),
            "creationTimestamp": app["metadata"]["creationTimestamp"], "generation": 1},
        "spec": {"path": format!("./{}", app.name()), "prune": true, "wait": true, "interval": "10m",
            "sourceRef": {"kind": "GitRepository", "name": SOURCE}},
        "status": {"observedGeneration": 1, "inventory": {"entries": entries}, "conditions": [state(app, &resources)]}})
}

/// What Flux says where Argo CD says what an Application's status holds.
fn state(app: &Value, resources: &[Value]) -> Value {
    let list = |path: &[&str]| app.at(path).and_then(Value::as_array).cloned().unwrap_or_default();
    let place = |it: &Value| {
        let [kind, namespace, name] =
            ["kind", "namespace", "name"].map(|key| it.str_at(&[key]).unwrap_or_default());
        if kind == "Application" {
            return format!("Kustomization/{NAMESPACE}/{name}");
        }
        if namespace.is_empty() { format!("{kind}/{name}") } else { format!("{kind}/{namespace}/{name}") }
    };
    let errors = list(&["status", "conditions"]);
    if let Some(error) = errors.iter().find(|it| it.str_at(&["type"]) == Some("ComparisonError")) {
        let message = error.str_at(&["message"]).unwrap_or_default();
        return condition(false, "BuildFailed", &format!("kustomize build failed: {message}"));
    }
    let results = list(&["status", "operationState", "syncResult", "resources"]);
    let is_synced = app.str_at(&["status", "sync", "status"]) == Some("Synced");
    let failed = results.iter().find(|it| !is_synced && it.str_at(&["status"]) == Some("SyncFailed"));
    if let Some(failed) = failed {
        let message = failed.str_at(&["message"]).unwrap_or_default();
        let text = format!("{} dry-run failed: {message}", place(failed));
        return condition(false, "ReconciliationFailed", &text);
    }
    let is_ill = |it: &&Value| {
        it.str_at(&["health", "status"]).is_some_and(|health| !matches!(health, "Healthy" | "Suspended"))
    };
    let ill: Vec<String> =
        resources.iter().filter(is_ill).map(|it| format!("{} status: 'InProgress'", place(it))).collect();
    if ill.is_empty() {
        return condition(true, "ReconciliationSucceeded", "Applied revision: main@sha1:4f3c");
    }
    let text = format!("health check failed after 5m0s: timeout waiting for: [{}]", ill.join(", "));
    condition(false, "HealthCheckFailed", &text)
}

/// Gives Flux's conditions a time.
fn date(object: &mut Value, since: Option<&str>) {
    if !object.api_version().contains("fluxcd.io") {
        return;
    }
    let conditions = object["status"]["conditions"].as_array_mut().into_iter().flatten();
    conditions.for_each(|it| it["lastTransitionTime"] = since.into());
}

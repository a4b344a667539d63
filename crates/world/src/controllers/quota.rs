//! ResourceQuota: what a namespace has used (core/v1 ResourceQuota).

use serde_json::{Map, Value};
use tiphys_schema::Quantity;
use tiphys_value::{GroupVersionResource, ObjectExt};

use super::workload::is_finished;
use crate::{
    Change, Controller, Key, Outcome, View, Write,
    controller::Context,
    object::{resources, status_of, with_status},
};

/// Keeps the status of quotas.
pub struct QuotaController;

impl Controller for QuotaController {
    fn name(&self) -> &'static str {
        "resourcequota"
    }

    fn keys(&self, change: &Change, view: &View<'_>) -> Vec<Key> {
        if change.resource == resources::resource_quotas() {
            return vec![Key::of(&change.object)];
        }
        let namespace = change.object.namespace();
        let is_silent = change.resource == resources::events() || change.resource == resources::leases();
        if namespace.is_empty() || is_silent {
            return Vec::new();
        }
        view.list(&resources::resource_quotas(), Some(namespace)).iter().map(|quota| Key::of(quota)).collect()
    }

    fn reconcile(&self, key: &Key, context: &Context<'_>) -> Outcome {
        let Some(quota) = context.view.get(&resources::resource_quotas(), key) else {
            return Outcome::done();
        };
        let hard = quota.at(&["spec", "hard"]).cloned().unwrap_or_default();
        let names = hard.as_object().into_iter().flatten().map(|(name, _)| name);
        let used: Map<String, Value> = names
            .filter_map(|name| Some((name.clone(), used(name, &quota, context.view)?.to_string().into())))
            .collect();
        let mut status = status_of(&quota);
        status.insert("hard".into(), hard);
        status.insert("used".into(), used.into());
        let updated = with_status(&quota, status.into());
        updated
            .map(|object| Write::UpdateStatus { resource: resources::resource_quotas(), object }.into())
            .unwrap_or_default()
    }
}

/// How much of one resource is used; `None` for resources that nothing is known of.
fn used(name: &str, quota: &Value, view: &View<'_>) -> Option<Quantity> {
    let namespace = quota.namespace();
    if let Some(resource) = counted(name) {
        let count = match resource == resources::pods() {
            true => pods(quota, view).len(),
            false => view.list(&resource, Some(namespace)).len(),
        };
        return Some(Quantity::from_units(count as i64));
    }
    if let Some(kind) = name.strip_prefix("services.") {
        let wanted = if kind == "loadbalancers" { "LoadBalancer" } else { "NodePort" };
        let services = view.list(&resources::services(), Some(namespace));
        let count =
            services.iter().filter(|service| service.str_at(&["spec", "type"]) == Some(wanted)).count();
        return Some(Quantity::from_units(count as i64));
    }
    if let Some((class, what)) = name.split_once(".storageclass.storage.k8s.io/") {
        return Some(storage(what, Some(class), namespace, view));
    }
    if name == "requests.storage" {
        return Some(storage(name, None, namespace, view));
    }
    let (part, resource) = match name.split_once('.') {
        Some(("requests", resource)) => ("requests", resource),
        Some(("limits", resource)) => ("limits", resource),
        _ => ("requests", name),
    };
    let zero = Quantity::from_units(0);
    let add = |sum: Quantity, more: Quantity| sum.plus(&more);
    Some(pods(quota, view).iter().flat_map(|pod| amounts(pod, part, resource)).fold(zero, add))
}

/// What is counted by the name: `pods`, `configmaps`, `count/deployments.apps`.
fn counted(name: &str) -> Option<GroupVersionResource> {
    let bare = match name {
        "pods"
        | "services"
        | "secrets"
        | "configmaps"
        | "persistentvolumeclaims"
        | "resourcequotas"
        | "replicationcontrollers" => name,
        other => other.strip_prefix("count/")?,
    };
    let (resource, group) = bare.split_once('.').unwrap_or((bare, ""));
    Some(GroupVersionResource::new(group, "v1", resource))
}

/// The pods that a quota counts: those that are not finished, within its scopes.
fn pods(quota: &Value, view: &View<'_>) -> Vec<std::sync::Arc<tiphys_apiserver::Object>> {
    let scopes: Vec<_> = quota
        .at(&["spec", "scopes"])
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let is_in = |pod: &Value| {
        scopes.iter().all(|scope| {
            let is_best_effort = pod.str_at(&["status", "qosClass"]) == Some("BestEffort");
            let is_limited = pod.at(&["spec", "activeDeadlineSeconds"]).is_some();
            match *scope {
                "BestEffort" => is_best_effort,
                "NotBestEffort" => !is_best_effort,
                "Terminating" => is_limited,
                "NotTerminating" => !is_limited,
                _ => true,
            }
        })
    };
    let mut pods = view.list(&resources::pods(), Some(quota.namespace()));
    pods.retain(|pod| !is_finished(pod) && is_in(pod));
    pods
}

fn amounts(pod: &Value, part: &str, resource: &str) -> Vec<Quantity> {
    let containers = pod.at(&["spec", "containers"]).and_then(Value::as_array);
    let found = containers.into_iter().flatten().filter_map(|c| c.str_at(&["resources", part, resource]));
    found.filter_map(|text| text.parse().ok()).collect()
}

fn storage(what: &str, class: Option<&str>, namespace: &str, view: &View<'_>) -> Quantity {
    let mut claims = view.list(&resources::claims(), Some(namespace));
    claims
        .retain(|claim| class.is_none_or(|class| claim.str_at(&["spec", "storageClassName"]) == Some(class)));
    if what == "persistentvolumeclaims" {
        return Quantity::from_units(claims.len() as i64);
    }
    let sizes = claims.iter().filter_map(|claim| claim.str_at(&["spec", "resources", "requests", "storage"]));
    sizes.filter_map(|text| text.parse().ok()).fold(Quantity::from_units(0), |sum, more| sum.plus(&more))
}

//! Pods that others ask or wait for: behind webhooks and aggregated APIs, and controllers of custom resources
//! that are not ready.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use tiphys_value::ObjectExt as _;

/// Namespace and name of something.
type NamespacedName = (String, String);

/// The pods whose logs may tell why a webhook, an API or a custom resource fails.
pub(super) fn backends(objects: &[Value]) -> BTreeSet<NamespacedName> {
    let services = asked_services(objects);
    let accounts = accounts_of_controllers(objects, &unready_groups(objects));
    let selectors: Vec<(&str, &serde_json::Map<String, Value>)> = of_kind(objects, "Service")
        .filter(|service| services.contains(&place(service)))
        .filter_map(|service| Some((service.namespace(), service.at(&["spec", "selector"])?.as_object()?)))
        .collect();
    let is_backend = |pod: &&Value| {
        let account = pod.str_at(&["spec", "serviceAccountName"]).unwrap_or("default");
        accounts.contains(&(pod.namespace().to_owned(), account.to_owned()))
            || selectors.iter().any(|(namespace, selector)| {
                pod.namespace() == *namespace
                    && !selector.is_empty()
                    && selector.iter().all(|(key, value)| pod.label(key) == value.as_str())
            })
    };
    of_kind(objects, "Pod").filter(is_backend).map(place).collect()
}

fn of_kind<'a>(objects: &'a [Value], kind: &'a str) -> impl Iterator<Item = &'a Value> {
    objects.iter().filter(move |object| object.kind() == kind)
}

fn place(object: &Value) -> NamespacedName {
    (object.namespace().to_owned(), object.name().to_owned())
}

fn items<'a>(object: &'a Value, keys: &[&str]) -> impl Iterator<Item = &'a Value> {
    object.at(keys).and_then(Value::as_array).into_iter().flatten()
}

/// The Services that the API server itself asks: webhooks, conversions, aggregated APIs.
fn asked_services(objects: &[Value]) -> BTreeSet<NamespacedName> {
    let webhooks = ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"]
        .into_iter()
        .flat_map(|kind| of_kind(objects, kind))
        .flat_map(|object| items(object, &["webhooks"]))
        .filter_map(|webhook| webhook.at(&["clientConfig", "service"]));
    let conversions = of_kind(objects, "CustomResourceDefinition").filter_map(|definition| {
        definition.at(&["spec", "conversion", "webhook", "clientConfig", "service"])
    });
    let apis = of_kind(objects, "APIService").filter_map(|api| api.at(&["spec", "service"]));
    let named = |service: &Value| {
        Some((service.str_at(&["namespace"])?.to_owned(), service.str_at(&["name"])?.to_owned()))
    };
    webhooks.chain(conversions).chain(apis).filter_map(named).collect()
}

/// API groups with custom resources that say that they are not ready.
fn unready_groups(objects: &[Value]) -> BTreeSet<String> {
    const READY: [&str; 5] = ["Ready", "Available", "Synced", "Healthy", "Reconciled"];
    let is_unready = |object: &&Value| {
        items(object, &["status", "conditions"]).any(|condition| {
            condition["status"] == "False"
                && condition.str_at(&["type"]).is_some_and(|kind| READY.contains(&kind))
        })
    };
    let custom = objects.iter().filter(|object| {
        let api_version = object.api_version();
        api_version.split('/').next().is_some_and(|group| group.contains('.') && !group.ends_with(".k8s.io"))
    });
    custom.filter(is_unready).map(|object| object.gvk().group).collect()
}

/// The service accounts that may write objects of these groups, and of no group at will.
fn accounts_of_controllers(objects: &[Value], groups: &BTreeSet<String>) -> BTreeSet<NamespacedName> {
    if groups.is_empty() {
        return BTreeSet::new();
    }
    let has = |rule: &Value, key: &str, wanted: &dyn Fn(&str) -> bool| {
        items(rule, &[key]).filter_map(Value::as_str).any(wanted)
    };
    let writes = |role: &Value| {
        items(role, &["rules"]).any(|rule| {
            has(rule, "apiGroups", &|group| groups.contains(group))
                && has(rule, "verbs", &|verb| matches!(verb, "update" | "patch" | "*"))
        })
    };
    let mut roles: BTreeMap<(&str, &str), BTreeSet<&str>> = BTreeMap::new();
    for kind in ["ClusterRole", "Role"] {
        for role in of_kind(objects, kind).filter(|role| writes(role)) {
            roles.entry((kind, role.name())).or_default().insert(role.namespace());
        }
    }
    let mut accounts = BTreeSet::new();
    for kind in ["ClusterRoleBinding", "RoleBinding"] {
        for binding in of_kind(objects, kind) {
            let named = |key: &str| binding.str_at(&["roleRef", key]).unwrap_or_default();
            let Some(places) = roles.get(&(named("kind"), named("name"))) else { continue };
            if named("kind") == "Role" && !places.contains(binding.namespace()) {
                continue;
            }
            let subjects =
                items(binding, &["subjects"]).filter(|subject| subject["kind"] == "ServiceAccount");
            accounts.extend(subjects.filter_map(|subject| {
                let namespace = subject.str_at(&["namespace"]).unwrap_or(binding.namespace());
                Some((namespace.to_owned(), subject.str_at(&["name"])?.to_owned()))
            }));
        }
    }
    accounts
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn backends_of_webhooks_and_controllers_of_unready_resources_are_found() {
        let pod = |namespace: &str, name: &str, app: &str, account: &str| {
            json!({"kind": "Pod", "metadata": {"namespace": namespace, "name": name, "labels": {"app": app}},
                "spec": {"serviceAccountName": account}})
        };
        let objects = [
            json!({"kind": "ValidatingWebhookConfiguration", "webhooks": [{"clientConfig": {"service": {"namespace": "gate", "name": "hook"}}}]}),
            json!({"kind": "Service", "metadata": {"namespace": "gate", "name": "hook"}, "spec": {"selector": {"app": "hook"}}}),
            json!({"apiVersion": "shop.example/v1", "kind": "Order", "metadata": {"name": "o"}, "status": {"conditions": [{"type": "Ready", "status": "False"}]}}),
            json!({"kind": "ClusterRole", "metadata": {"name": "orders"}, "rules": [{"apiGroups": ["shop.example"], "verbs": ["*"]}]}),
            json!({"kind": "ClusterRoleBinding", "roleRef": {"kind": "ClusterRole", "name": "orders"},
                "subjects": [{"kind": "ServiceAccount", "namespace": "op", "name": "operator"}]}),
            pod("gate", "hook-1", "hook", "default"),
            pod("other", "hook-2", "hook", "default"),
            pod("op", "operator-1", "x", "operator"),
        ];
        let found: Vec<String> = backends(&objects).into_iter().map(|(_, name)| name).collect();
        assert_eq!(found, ["hook-1", "operator-1"]);
    }
}

//! Services: what they select, and which ports lead where.

use tiphys_value::{Map, ObjectExt as _, Value};

use crate::Object;

use super::{Cluster, items, pods, selector};

/// The selector of a Service, if it has one.
pub(crate) fn selector(service: &Value) -> Option<&Map<String, Value>> {
    service.at(&["spec", "selector"])?.as_object().filter(|selector| !selector.is_empty())
}

/// A port of a Service.
pub(crate) fn port(service: &Value, number: u16) -> Option<&Value> {
    items(service, &["spec", "ports"]).find(|port| port.int_at(&["port"]) == Some(i64::from(number)))
}

/// The container port that a Service's port leads to in a pod; `None` if the pod names no such port.
pub(crate) fn target_port(service_port: &Value, spec: &Value) -> Option<i64> {
    match service_port.get("targetPort") {
        Some(Value::String(name)) => match name.parse::<i64>() {
            Ok(number) => Some(number),
            Err(_) => pods::ports(spec)
                .find(|port| port.str_at(&["name"]) == Some(name))?
                .int_at(&["containerPort"]),
        },
        Some(Value::Number(number)) if number.as_i64() != Some(0) => number.as_i64(),
        _ => service_port.int_at(&["port"]),
    }
}

/// Ends of the keys of labels that operators and elections give to running pods: who leads, who serves.
const ROLES: &[&str] = &[
    "role",
    "instanceRole",
    "spilo-role",
    "cluster-role",
    "redis-role",
    "vault-active",
    "vault-sealed",
    "vault-initialized",
    "leader",
    "is-leader",
    "healthy",
];

/// Whether a label is one that pods get while they run.
fn is_role(key: &str) -> bool {
    ROLES.contains(&key.rsplit('/').next().unwrap_or(key))
}

impl<'a> Cluster<'a> {
    /// The pods that a Service would select if they had the role which it asks for.
    pub(crate) fn pods_without_role(&self, service: &Value) -> Vec<&'a Value> {
        let Some(wanted) = selector(service) else { return Vec::new() };
        let lasting: Map<String, Value> = wanted
            .iter()
            .filter(|(key, _)| !is_role(key))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        if lasting.is_empty() || lasting.len() == wanted.len() {
            return Vec::new();
        }
        let pods = self.pods_in(service.namespace()).iter().copied();
        pods.filter(|pod| selector::has_all(selector::labels(pod), &lasting) && !pods::has_ended(pod))
            .collect()
    }

    /// The pods that a Service selects.
    pub(crate) fn pods_of(&self, service: &Value) -> Vec<&'a Value> {
        let Some(wanted) = selector(service) else { return Vec::new() };
        let pods = self.pods_in(service.namespace()).iter().copied();
        pods.filter(|pod| selector::has_all(selector::labels(pod), wanted) && !pods::has_ended(pod)).collect()
    }

    /// The workloads whose pods a Service selects or would select.
    pub(crate) fn workloads_of(&self, service: &Value) -> Vec<&'a Value> {
        let Some(wanted) = selector(service) else { return Vec::new() };
        let kinds = ["Deployment", "StatefulSet", "DaemonSet", "Rollout"];
        let all = kinds.iter().flat_map(|kind| self.all(kind).iter().copied());
        let near = all.filter(|workload| workload.namespace() == service.namespace());
        let selected = near.filter(|workload| {
            let labels = workload.at(&["spec", "template", "metadata", "labels"]).and_then(Value::as_object);
            selector::has_all(labels, wanted)
        });
        selected.collect()
    }

    /// Whether a Service has an endpoint that serves.
    pub(crate) fn is_served(&self, service: &Value) -> bool {
        let ready = self
            .endpoint_slices(service.namespace(), service.name())
            .iter()
            .flat_map(|slice| items(slice, &["endpoints"]))
            .any(|endpoint| endpoint.at(&["conditions", "ready"]).and_then(Value::as_bool) != Some(false));
        let endpoints = self.get("Endpoints", service.namespace(), service.name());
        let listed = endpoints.is_some_and(|endpoints| {
            items(endpoints, &["subsets"]).any(|set| items(set, &["addresses"]).next().is_some())
        });
        ready || listed || self.pods_of(service).iter().any(|pod| pods::is_ready(pod))
    }
}

/// The custom resource whose pods a Service selects by the resource's name, while it has none: a virtual
/// machine, a database.
pub(crate) fn awaited(cluster: &Cluster<'_>, service: &Value) -> Option<Object> {
    let wanted = selector(service)?;
    if !cluster.pods_of(service).is_empty() || !cluster.workloads_of(service).is_empty() {
        return None;
    }
    // Labels of operators bear the name of their group before the slash.
    let named = wanted.iter().filter_map(|(key, value)| Some((key.split_once('/')?.0, value.as_str()?)));
    let mut makers = named.flat_map(|(domain, name)| {
        let near = cluster.extensions_named(name).iter().filter(|it| it.namespace() == service.namespace());
        near.filter(move |live| {
            let group = live.gvk().group;
            group.ends_with(domain) || domain.ends_with(group.as_str())
        })
    });
    makers.next().map(|live| Object::from_live(live))
}

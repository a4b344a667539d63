//! ResourceQuotas: what a namespace may use, and what it uses.

use std::collections::{BTreeMap, BTreeSet};

use tiphys_schema::Quantity;
use tiphys_value::{Map, ObjectExt, Value};

use super::{Operation, Request, limit_ranges::pod_total};
use crate::{
    ApiError, ApiResult, ApiServer, Object, Snapshot,
    ops::{At, items},
    store::ResourceId,
};

/// How often the account is made up anew where others write at the same time.
const TRIES: usize = 16;

/// The fields of a pod that scopes look at, see [`in_scope`].
const SCOPED: [&str; 7] = [
    "/spec/activeDeadlineSeconds",
    "/spec/priorityClassName",
    "/spec/affinity",
    "/spec/resources",
    "/spec/containers",
    "/spec/initContainers",
    "/spec/ephemeralContainers",
];

type Amounts = BTreeMap<String, Quantity>;

/// Resources that every container must name if a quota bounds them.
const PER_CONTAINER: [&str; 6] =
    ["cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"];

fn quotas() -> ResourceId {
    ResourceId::new("", "resourcequotas")
}

/// Refuses what would exceed a quota of the namespace.
pub(super) fn check(request: &Request<'_>, object: &Value) -> ApiResult<()> {
    let at = request.at;
    let is_counted = at.resource.namespaced && !is_ignored(&at.resource.id);
    if !is_counted || at.subresource.is_some() || request.operation == Operation::Delete {
        return Ok(());
    }
    let snapshot = request.server.snapshot();
    let mut usage = Usage::new(&snapshot, &at.resource.id, &at.namespace);
    for quota in snapshot.list(&quotas(), Some(&at.namespace)) {
        let hard = hard_of(quota);
        if !matches_scopes(quota, at, object) {
            continue;
        }
        if request.operation == Operation::Create {
            check_containers(at, quota, &hard, object)?;
        }
        let mut delta = usage_of(&at.resource.id, object);
        if let Some(old) = request.old {
            for (name, before) in usage_of(&at.resource.id, old) {
                let entry = delta.entry(name).or_insert_with(|| Quantity::from_units(0));
                *entry = entry.minus(&before);
            }
        }
        delta.retain(|name, amount| hard.contains_key(name) && amount.signum() > 0);
        if !delta.is_empty() {
            let used = usage.countable_bounds(quota, &hard);
            check_amounts(at, object, quota, &used, &hard, &delta)?;
        }
    }
    Ok(())
}

fn check_amounts(
    at: &At,
    object: &Value,
    quota: &Object,
    used: &Amounts,
    hard: &Amounts,
    delta: &Amounts,
) -> ApiResult<()> {
    let zero = Quantity::from_units(0);
    let exceeded: Vec<&String> = delta
        .iter()
        .filter(|(name, amount)| used.get(*name).unwrap_or(&zero).plus(amount) > hard[*name])
        .map(|(name, _)| name)
        .collect();
    if exceeded.is_empty() {
        return Ok(());
    }
    let shown = |amounts: &Amounts| {
        let parts = exceeded.iter().map(|name| format!("{name}={}", amounts.get(*name).unwrap_or(&zero)));
        parts.collect::<Vec<_>>().join(",")
    };
    let why = format!(
        "exceeded quota: {}, requested: {}, used: {}, limited: {}",
        quota.name(),
        shown(delta),
        shown(used),
        shown(hard)
    );
    Err(ApiError::forbidden(at.resource.object_named(object.name()), &why))
}

/// Where a quota bounds processor or memory, every container has to say what it takes.
fn check_containers(at: &At, quota: &Object, hard: &Amounts, object: &Value) -> ApiResult<()> {
    if !at.is("", "pods") {
        return Ok(());
    }
    let mut missing: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for container in items(object, "/spec/containers").chain(items(object, "/spec/initContainers")) {
        for name in PER_CONTAINER.into_iter().filter(|name| hard.contains_key(*name)) {
            let (part, resource) = name.split_once('.').unwrap_or(("requests", name));
            if container.at(&["resources", part, resource]).is_none() {
                missing.entry(name).or_default().insert(container.str_at(&["name"]).unwrap_or_default());
            }
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    let parts = missing.iter().map(|(name, containers)| {
        format!("{name} for: {}", containers.iter().copied().collect::<Vec<_>>().join(","))
    });
    let why =
        format!("failed quota: {}: must specify {}", quota.name(), parts.collect::<Vec<_>>().join("; "));
    Err(ApiError::forbidden(at.resource.object_named(object.name()), &why))
}

fn hard_of(quota: &Value) -> Amounts {
    let hard = quota.at(&["spec", "hard"]).and_then(Value::as_object).into_iter().flatten();
    hard.filter_map(|(name, amount)| Some((name.clone(), amount.as_str()?.parse().ok()?))).collect()
}

/// Whether a quota counts an object; one with scopes counts pods only.
fn matches_scopes(quota: &Value, at: &At, object: &Value) -> bool {
    let scopes =
        items(quota, "/spec/scopes").filter_map(Value::as_str).map(|scope| (scope, "Exists", &Value::Null));
    let selectors = items(quota, "/spec/scopeSelector/matchExpressions").map(|term| {
        (
            term.str_at(&["scopeName"]).unwrap_or_default(),
            term.str_at(&["operator"]).unwrap_or_default(),
            term,
        )
    });
    let mut terms = scopes.chain(selectors).peekable();
    if terms.peek().is_none() {
        return true;
    }
    at.is("", "pods") && terms.all(|(scope, operator, term)| in_scope(object, scope, operator, term))
}

fn in_scope(pod: &Value, scope: &str, operator: &str, term: &Value) -> bool {
    let best_effort = || crate::kinds::qos_class(pod) == "BestEffort";
    let ends = || pod.int_at(&["spec", "activeDeadlineSeconds"]).is_some();
    let class = pod.str_at(&["spec", "priorityClassName"]).unwrap_or_default();
    let listed = || items(term, "/values").any(|value| value == class);
    match scope {
        "Terminating" => ends(),
        "NotTerminating" => !ends(),
        "BestEffort" => best_effort(),
        "NotBestEffort" => !best_effort(),
        "PriorityClass" => match operator {
            "In" => listed(),
            "NotIn" => !listed(),
            "DoesNotExist" => class.is_empty(),
            _ => !class.is_empty(),
        },
        "CrossNamespacePodAffinity" => names_other_namespaces(pod),
        _ => false,
    }
}

fn names_other_namespaces(pod: &Value) -> bool {
    let kinds = ["podAffinity", "podAntiAffinity"];
    let terms = kinds.iter().flat_map(|kind| {
        let required = format!("/spec/affinity/{kind}/requiredDuringSchedulingIgnoredDuringExecution");
        let preferred = format!("/spec/affinity/{kind}/preferredDuringSchedulingIgnoredDuringExecution");
        let preferred: Vec<&Value> = items(pod, &preferred).map(|term| &term["podAffinityTerm"]).collect();
        items(pod, &required).chain(preferred)
    });
    let mut terms = terms;
    terms.any(|term| {
        term["namespaceSelector"].is_object() || term["namespaces"].as_array().is_some_and(|n| !n.is_empty())
    })
}

/// What one object uses.
fn usage_of(resource: &ResourceId, object: &Value) -> Amounts {
    let mut usage = Amounts::new();
    let one = Quantity::from_units(1);
    usage.insert(format!("count/{resource}"), one);
    let counted = match (resource.group(), resource.resource()) {
        ("", name @ ("configmaps" | "secrets" | "replicationcontrollers" | "resourcequotas")) => name,
        ("", "services") => {
            let ports = object.at(&["spec", "ports"]).and_then(Value::as_array).map_or(0, Vec::len);
            let ports = i64::try_from(ports).unwrap_or(i64::MAX);
            let has_node_ports = match object.str_at(&["spec", "type"]) {
                Some("LoadBalancer") => {
                    usage.insert("services.loadbalancers".into(), one);
                    object.at(&["spec", "allocateLoadBalancerNodePorts"]) != Some(&Value::Bool(false))
                }
                kind => kind == Some("NodePort"),
            };
            usage.insert(
                "services.nodeports".into(),
                Quantity::from_units(if has_node_ports { ports } else { 0 }),
            );
            "services"
        }
        ("", "persistentvolumeclaims") => {
            claim_usage(object, &mut usage);
            "persistentvolumeclaims"
        }
        ("", "pods") => {
            if matches!(object.str_at(&["status", "phase"]), Some("Succeeded" | "Failed")) {
                return Amounts::from([("count/pods".into(), one)]);
            }
            pod_usage(object, &mut usage);
            "pods"
        }
        _ => return usage,
    };
    usage.insert(counted.into(), one);
    usage
}

fn claim_usage(claim: &Value, usage: &mut Amounts) {
    let storage =
        claim.str_at(&["spec", "resources", "requests", "storage"]).and_then(|text| text.parse().ok());
    let class = claim.str_at(&["spec", "storageClassName"]).filter(|class| !class.is_empty());
    if let Some(class) = class {
        let prefix = format!("{class}.storageclass.storage.k8s.io");
        usage.insert(format!("{prefix}/persistentvolumeclaims"), Quantity::from_units(1));
        usage.extend(storage.map(|amount| (format!("{prefix}/requests.storage"), amount)));
    }
    usage.extend(storage.map(|amount| ("requests.storage".to_owned(), amount)));
}

fn pod_usage(pod: &Value, usage: &mut Amounts) {
    for (name, amount) in pod_total(pod, "requests") {
        if matches!(name.as_str(), "cpu" | "memory" | "ephemeral-storage") {
            usage.insert(name.clone(), amount);
        }
        usage.insert(format!("requests.{name}"), amount);
    }
    for (name, amount) in pod_total(pod, "limits") {
        usage.insert(format!("limits.{name}"), amount);
    }
}

/// What a namespace uses of what objects of a request's kind count for: no other kind counts for the same. It
/// is counted once for all quotas without scopes, since a namespace may have hundreds.
struct Usage<'a> {
    snapshot: &'a Snapshot,
    resource: &'a ResourceId,
    namespace: &'a str,
    all: Option<Amounts>,
}

impl<'a> Usage<'a> {
    fn new(snapshot: &'a Snapshot, resource: &'a ResourceId, namespace: &'a str) -> Self {
        Self { snapshot, resource, namespace, all: None }
    }

    /// Of those bounds of a quota for which the resource counts.
    fn countable_bounds(&mut self, quota: &Value, hard: &Amounts) -> Amounts {
        let scoped =
            items(quota, "/spec/scopes").next().is_some() || quota.pointer("/spec/scopeSelector").is_some();
        let of_scope: Amounts;
        let counted = if scoped {
            of_scope = self.count(|object| is_pods(self.resource) && scopes_hold(quota, object));
            &of_scope
        } else {
            if self.all.is_none() {
                self.all = Some(self.count(|_| true));
            }
            self.all.get_or_insert_default()
        };
        let zero = Quantity::from_units(0);
        let names = hard.keys().filter(|name| counts_for(name, self.resource));
        names.map(|name| (name.clone(), *counted.get(name).unwrap_or(&zero))).collect()
    }

    fn count(&self, counts: impl Fn(&Value) -> bool) -> Amounts {
        let mut used = Amounts::new();
        for object in self.snapshot.list(self.resource, Some(self.namespace)).filter(|one| counts(one)) {
            for (name, amount) in usage_of(self.resource, object) {
                let sum = used.entry(name).or_insert_with(|| Quantity::from_units(0));
                *sum = sum.plus(&amount);
            }
        }
        used
    }
}

/// Events count for no quota, whatever one says of them.
fn is_ignored(resource: &ResourceId) -> bool {
    resource.group().is_empty() && resource.resource() == "events"
}

fn is_pods(resource: &ResourceId) -> bool {
    resource.group().is_empty() && resource.resource() == "pods"
}

/// Whether objects of a resource count for a bound of this name, see [`usage_of`].
fn counts_for(name: &str, resource: &ResourceId) -> bool {
    if is_ignored(resource) {
        return false;
    }
    if let Some(counted) = name.strip_prefix("count/") {
        return counted == resource.to_string();
    }
    let kind = match name {
        "configmaps"
        | "secrets"
        | "replicationcontrollers"
        | "resourcequotas"
        | "services"
        | "persistentvolumeclaims" => name,
        "requests.storage" => "persistentvolumeclaims",
        _ if name.starts_with("services.") => "services",
        _ if name.contains(".storageclass.storage.k8s.io/") => "persistentvolumeclaims",
        _ => "pods",
    };
    resource.group().is_empty() && resource.resource() == kind
}

/// The status that a quota has to have: what is bounded, and how much of it is used.
pub fn quota_status(snapshot: &Snapshot, quota: &Value) -> Value {
    let hard = hard_of(quota);
    let mut used: Amounts = hard.keys().map(|name| (name.clone(), Quantity::from_units(0))).collect();
    for resource in snapshot.resources() {
        if hard.keys().any(|name| counts_for(name, resource)) {
            used.extend(Usage::new(snapshot, resource, quota.namespace()).countable_bounds(quota, &hard));
        }
    }
    tiphys_value::json!({"hard": texts(&hard), "used": texts(&used)})
}

fn texts(amounts: &Amounts) -> Map<String, Value> {
    amounts.iter().map(|(name, amount)| (name.clone(), amount.to_string().into())).collect()
}

fn scopes_hold(quota: &Value, pod: &Value) -> bool {
    let scopes = items(quota, "/spec/scopes").filter_map(Value::as_str);
    let mut scopes = scopes.map(|scope| in_scope(pod, scope, "Exists", &Value::Null));
    let mut terms = items(quota, "/spec/scopeSelector/matchExpressions").map(|term| {
        let text = |key| term.str_at(&[key]).unwrap_or_default();
        in_scope(pod, text("scopeName"), text("operator"), term)
    });
    scopes.all(|holds| holds) && terms.all(|holds| holds)
}

/// Brings the status of a namespace's quotas up to date after a write in it, once the controller of quotas
/// has seen them.
pub(crate) fn after_write(server: &ApiServer, at: &At, old: Option<&Object>, new: &Object) {
    if !at.resource.namespaced || is_ignored(&at.resource.id) || at.is("coordination.k8s.io", "leases") {
        return;
    }
    // Most writes are of states, and to count is to look at every object of the namespace.
    if old.is_some_and(|old| counts_as(&at.resource.id, old, new)) {
        return;
    }
    // One that is overtaken every time leaves the account to those who overtook it.
    let _ = (0..TRIES).any(|_| keep_account(server, at));
}

/// Whether an object counts for the same as before. What a quota itself says is taken up by the count.
fn counts_as(resource: &ResourceId, old: &Value, new: &Value) -> bool {
    if is_pods(resource) {
        return SCOPED.iter().all(|field| old.pointer(field) == new.pointer(field))
            && usage_of(resource, old) == usage_of(resource, new);
    }
    *resource != quotas() && usage_of(resource, old) == usage_of(resource, new)
}

/// `false` if a quota was written meanwhile: what was counted may be of before that write.
fn keep_account(server: &ApiServer, at: &At) -> bool {
    let snapshot = server.snapshot();
    let mut usage = Usage::new(&snapshot, &at.resource.id, &at.namespace);
    snapshot.list(&quotas(), Some(&at.namespace)).all(|quota| {
        let hard = hard_of(quota);
        let is_known = quota.pointer("/status/hard").is_some_and(Value::is_object);
        if !is_known || !hard.keys().any(|name| counts_for(name, &at.resource.id)) {
            return true;
        }
        let mut status = quota.value()["status"].clone();
        let mut used = status.get("used").and_then(Value::as_object).cloned().unwrap_or_default();
        used.extend(texts(&usage.countable_bounds(quota, &hard)));
        let is_whole = hard.keys().all(|name| used.contains_key(name));
        status["used"] = if is_whole { used.into() } else { quota_status(&snapshot, quota)["used"].take() };
        if quota.get("status") == Some(&status) {
            return true;
        }
        let mut next = quota.value().clone();
        next["status"] = status;
        crate::ops::put_status(server, &quotas(), quota, next)
    })
}

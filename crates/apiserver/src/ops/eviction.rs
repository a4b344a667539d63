//! Eviction of pods, as far as their PodDisruptionBudget allows (kubernetes.io, "API-initiated Eviction").

use std::sync::Arc;

use tiphys_schema::LabelSelector;
use tiphys_value::{ObjectExt, Value, json};

use super::{At, Call, DeleteOptions, commit::Failed, items, subresource::success, write::replace};
use crate::{ApiError, ApiResult, ApiServer, Cause, Object, meta, store::ResourceId};

/// How often a lost race is run again.
const RETRIES: usize = 20;
/// Most pods whose eviction may be under way at a time.
const MAX_DISRUPTED: usize = 2000;
const REFUSED: &str = "Cannot evict pod as it would violate the pod's disruption budget.";

/// What the budget says about one pod.
enum Verdict {
    /// It may go.
    Free,
    /// It may go as long as it stays as unhealthy as it was seen.
    IfUnchanged,
}

/// Evicts a pod.
///
/// # Errors
/// 429 if its budget does not allow that now; whatever the deletion fails with.
pub(super) fn evict(server: &ApiServer, call: &mut Call, at: &At, body: &Value) -> ApiResult<Value> {
    if body.name() != at.name {
        return Err(ApiError::bad_request("name in URL does not match name in Eviction object"));
    }
    let deletion = body.at(&["deleteOptions"]).unwrap_or(&Value::Null);
    call.dry_run |= items(deletion, "/dryRun").any(|value| value == "All");
    let mut options = DeleteOptions::from_value(deletion)?;
    let pod = super::get(server, at)?;
    let names_version = options.resource_version.is_some();
    let phase = pod.str_at(&["status", "phase"]);
    let verdict = match pod.is_terminating() || matches!(phase, Some("Succeeded" | "Failed" | "Pending")) {
        true => Verdict::Free,
        false => ask_budget(server, call, at, &pod)?,
    };
    if matches!(verdict, Verdict::IfUnchanged) && !names_version {
        options.resource_version = Some(pod.resource_version().to_owned());
    }
    if !call.dry_run {
        let marked = mark(server, call, at, &options)?;
        if options.resource_version.is_some() {
            options.resource_version = Some(marked.resource_version().to_owned());
        }
    }
    let whole = At { subresource: None, ..at.clone() };
    super::delete(server, call, &whole, &options)?;
    Ok(success())
}

/// Says in the pod's status why it goes.
fn mark(server: &ApiServer, call: &Call, at: &At, options: &DeleteOptions) -> ApiResult<Arc<Object>> {
    for _ in 0..RETRIES {
        let pod = super::get(server, at)?;
        if options.resource_version.as_deref().is_some_and(|version| version != pod.resource_version()) {
            return Err(ApiError::modified(at.resource.object_named(&at.name)));
        }
        let mut next = pod.value().clone();
        let conditions = &mut next["status"]["conditions"];
        if !conditions.is_array() {
            *conditions = json!([]);
        }
        if let Some(list) = conditions.as_array_mut() {
            let is_marked = |c: &Value| c["type"] == "DisruptionTarget" && c["status"] == "True";
            let since = list.iter().find(|c| is_marked(c)).map(|c| c["lastTransitionTime"].clone());
            list.retain(|condition| condition["type"] != "DisruptionTarget");
            list.push(json!({
                "type": "DisruptionTarget", "status": "True", "lastProbeTime": null,
                "lastTransitionTime": since.unwrap_or_else(|| crate::rfc3339_seconds(server.now()).into()),
                "reason": "EvictionByEvictionAPI", "message": "Eviction API: evicting",
            }));
        }
        // Being marked is nobody's field.
        let mut attempt = Call { applied: true, ..call.clone() };
        match replace(server, &mut attempt, at, &pod, next) {
            Err(Failed::Changed) => {}
            other => return other.map_err(Failed::into_error),
        }
    }
    Err(ApiError::modified(at.resource.object_named(&at.name)))
}

/// Takes one disruption from the pod's budget, or refuses.
fn ask_budget(server: &ApiServer, call: &Call, at: &At, pod: &Object) -> ApiResult<Verdict> {
    for _ in 0..RETRIES {
        let Some(budget) = budget_of(server, at, pod)? else { return Ok(Verdict::Free) };
        let number = |field: &str| budget.int_at(&["status", field]).unwrap_or(0);
        if !is_ready(pod) {
            let policy = budget.str_at(&["spec", "unhealthyPodEvictionPolicy"]);
            let is_well =
                number("currentHealthy") >= number("desiredHealthy") && number("desiredHealthy") > 0;
            if policy == Some("AlwaysAllow") || is_well {
                return Ok(Verdict::IfUnchanged);
            }
        }
        check_budget(&budget)?;
        if call.dry_run {
            return Ok(Verdict::Free);
        }
        match take_one(server, call, at, pod, &budget) {
            Err(Failed::Changed) => {}
            other => return other.map(|_| Verdict::Free).map_err(Failed::into_error),
        }
    }
    let why = "couldn't update PodDisruptionBudget due to conflicts";
    Err(ApiError::new(504, "Timeout", format!("Timeout: {why}")).with_retry_after(10))
}

fn budget_of(server: &ApiServer, at: &At, pod: &Object) -> ApiResult<Option<Arc<Object>>> {
    let id = ResourceId::new("policy", "poddisruptionbudgets");
    let labels = pod.at(&["metadata", "labels"]).unwrap_or(&Value::Null);
    let snapshot = server.snapshot();
    let selects = |budget: &Object| {
        let selector = LabelSelector::from_object(&budget["spec"]["selector"]);
        selector.ok().flatten().is_some_and(|s| s.matches(labels))
    };
    let mut matching = snapshot.list(&id, Some(&at.namespace)).filter(|budget| selects(budget));
    match (matching.next(), matching.next()) {
        (found, None) => Ok(found.cloned()),
        _ => Err(ApiError::new(
            500,
            "",
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
        )),
    }
}

fn is_ready(pod: &Object) -> bool {
    items(pod, "/status/conditions").any(|c| c["type"] == "Ready" && c["status"] == "True")
}

/// Refuses if the budget has nothing left.
fn check_budget(budget: &Object) -> ApiResult<()> {
    let name = budget.name();
    let number = |field: &str| budget.int_at(&["status", field]).unwrap_or(0);
    let refuse = |message: String| {
        let cause = Cause { reason: "DisruptionBudget".into(), message, field: String::new() };
        ApiError::new(429, "TooManyRequests", REFUSED).with_cause(cause)
    };
    let forbid = |why: &str| {
        Err(ApiError::forbidden(crate::Named { group: "policy", resource: "poddisruptionbudget", name }, why))
    };
    if number("observedGeneration") < budget.generation() {
        let why = format!("The disruption budget {name} is still being processed by the server.");
        return Err(refuse(why).with_retry_after(10));
    }
    if number("disruptionsAllowed") < 0 {
        return forbid("pdb disruptions allowed is negative");
    }
    let disrupted = budget.at(&["status", "disruptedPods"]).and_then(Value::as_object);
    if disrupted.is_some_and(|pods| pods.len() > MAX_DISRUPTED) {
        return forbid("DisruptedPods map too big - too many evictions not confirmed by PDB controller");
    }
    if number("disruptionsAllowed") > 0 {
        return Ok(());
    }
    let condition = items(budget, "/status/conditions")
        .find(|c| c["type"] == "DisruptionAllowed" && c["status"] == "False");
    let told = condition.and_then(|c| c.str_at(&["message"])).filter(|message| !message.is_empty());
    let reason = condition.and_then(|c| c.str_at(&["reason"])).unwrap_or_default();
    let (needed, healthy) = (number("desiredHealthy"), number("currentHealthy"));
    let none = format!("The disruption budget {name} does not allow evicting pods currently");
    Err(refuse(match told {
        Some(why) if reason == "SyncFailed" => format!("{none} because it failed sync: {why}"),
        _ if healthy <= needed => {
            format!("The disruption budget {name} needs {needed} healthy pods and has {healthy} currently")
        }
        Some(why) => format!("{none} ({reason}): {why}"),
        None => none,
    }))
}

/// Writes into the budget's status that the pod goes.
fn take_one(
    server: &ApiServer,
    call: &Call,
    at: &At,
    pod: &Object,
    budget: &Arc<Object>,
) -> Result<(), Failed> {
    let registry = server.registry();
    let Some(resource) = registry.find("policy", "v1", "poddisruptionbudgets") else { return Ok(()) };
    let left = budget.int_at(&["status", "disruptionsAllowed"]).unwrap_or(0) - 1;
    let mut next = budget.value().clone();
    let now = crate::rfc3339_seconds(server.now());
    next["status"]["disruptionsAllowed"] = left.into();
    next["status"]["disruptedPods"][pod.name()] = now.as_str().into();
    if left == 0
        && let Some(list) = next["status"]["conditions"].as_array_mut()
        && let Some(condition) = list.iter_mut().find(|c| c["type"] == "DisruptionAllowed")
    {
        condition["status"] = "False".into();
        condition["reason"] = "InsufficientPods".into();
        condition["lastTransitionTime"] = now.into();
    }
    meta::set(&mut next, "resourceVersion", budget.resource_version());
    let at = At {
        resource: resource.clone(),
        namespace: at.namespace.clone(),
        name: budget.name().into(),
        subresource: Some("status".into()),
    };
    replace(server, &mut call.clone(), &at, budget, next).map(drop)
}

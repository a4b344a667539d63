//! Pods that nobody made, where neither a condition nor an event tells who refused them: the account, the
//! quotas and the webhooks that a new pod would meet tell it by themselves.

use std::collections::BTreeMap;

use tiphys_cause::Cause;
use tiphys_value::{ObjectExt as _, Value};

use super::{
    admission::{is_told_refused, lacks_pods, webhook_without_words, webhooks},
    config_unsaid::proves_absence,
    pod_rules::{broken_rule, whole_quotas},
};
use crate::{
    Object,
    cluster::{items, pods, quantity, selector},
    finding::Finding,
    search_context::Look,
};

/// Kinds whose controllers make pods.
const WRITERS: &[&str] = &["ReplicaSet", "StatefulSet", "Job"];
/// Seconds within which a controller makes its pods.
const SLOW: i64 = 120;

pub(crate) fn find(look: &Look<'_>) -> Vec<Finding> {
    let all = WRITERS.iter().flat_map(|kind| look.cluster.all(kind).iter());
    all.filter(|live| is_refused_silently(look, live)).filter_map(|live| refusal(look, live)).collect()
}

/// Whether a controller should make a pod, makes none, and nothing says why.
fn is_refused_silently(look: &Look<'_>, live: &Value) -> bool {
    let object = Object::from_live(live);
    let owned = pods::of_workload(look.cluster, &object);
    let may_go_on = match live.kind() {
        // The next pod is made when the ones before it are ready.
        "StatefulSet" => owned.iter().all(|pod| pods::is_ready(pod)),
        "Job" => {
            live.at(&["spec", "suspend"]).and_then(Value::as_bool) != Some(true)
                && owned.is_empty()
                && live.int_at(&["status", "failed"]).unwrap_or(0) == 0
                && crate::cluster::conditions(live).next().is_none()
        }
        _ => true,
    };
    // Its controller has seen it as it is now, and looks no further. A Job that counts no pods is one that
    // lacks them, as long as pods were saved.
    let is_seen = live.kind() == "Job" && look.cluster.has_kind("Pod")
        || live.int_at(&["status", "observedGeneration"]).is_some_and(|seen| seen >= live.generation());
    may_go_on
        && is_seen
        && look.cluster.age(live) > SLOW
        && !live.is_terminating()
        && lacks_pods(look, live)
        && !is_told_refused(look, live)
}

/// What a new pod of a controller would be refused for.
fn refusal(look: &Look<'_>, live: &Value) -> Option<Finding> {
    let object = Object::from_live(live);
    let owner = look.cluster.workload(live);
    let rule = || broken_rule(look, live.namespace(), pods::spec(live)?, &owner);
    let finding = account(look, live)
        .or_else(|| priority(look, live))
        .or_else(|| quota(look, live))
        .or_else(rule)
        .or_else(|| webhook(look, live))?;
    let finding = finding
        .evidence(object.to_string(), "its pods were not made, and nothing says why")
        .suffers(object, "its pods are not made");
    Some(finding.suffers(owner, "its pods are not made"))
}

/// The account that pods would run under, if there is none of the name.
fn account(look: &Look<'_>, live: &Value) -> Option<Finding> {
    let name = pods::spec(live)?.str_at(&["serviceAccountName"])?;
    let object = Object::new("ServiceAccount", live.namespace(), name);
    let has_others = look.cluster.get("ServiceAccount", live.namespace(), "default").is_some();
    if name == "default"
        || look.cluster.live(&object).is_some()
        || !has_others
        || !proves_absence(look, &object)
    {
        return None;
    }
    let owner = look.cluster.workload(live);
    let summary = format!("{object} does not exist, and {owner} runs under it");
    Some(Finding::new(Cause::AdmitServiceAccount, object.clone(), 0.85, summary).remedy(
        format!("Make {object}, or correct serviceAccountName."),
        &[format!("kubectl -n {} create serviceaccount {name}", live.namespace())],
    ))
}

/// The class of priority that pods would have, if there is none of the name.
fn priority(look: &Look<'_>, live: &Value) -> Option<Finding> {
    let name = pods::spec(live)?.str_at(&["priorityClassName"])?;
    let object = Object::new("PriorityClass", "", name);
    let is_known = look.cluster.has_kind("PriorityClass") || look.cluster.is_whole();
    if look.cluster.live(&object).is_some() || !is_known || name.starts_with("system-") {
        return None;
    }
    let summary = format!("{object} does not exist, and the pods of {} name it", look.cluster.workload(live));
    let remedy = format!("Make {object}, or correct priorityClassName.");
    Some(Finding::new(Cause::ConfigMissing, object, 0.85, summary).remedy(remedy, &[]))
}

/// A quota that has no room for one more pod.
fn quota(look: &Look<'_>, live: &Value) -> Option<Finding> {
    let spec = pods::spec(live)?;
    let wanted = demand(spec);
    whole_quotas(look, live.namespace()).find_map(|quota| {
        let (resource, text) = wanted.iter().find_map(|(resource, amount)| {
            let told = |part: &str| quota.at(&["status", part, resource]).and_then(quantity::milli);
            let (hard, used) = (told("hard")?, told("used")?);
            let text = format!(
                "{resource}: hard {}, used {}",
                quota.at(&["status", "hard", resource])?,
                quota.at(&["status", "used", resource])?
            );
            (used + amount > hard).then_some((resource, text))
        })?;
        let object = Object::from_live(quota);
        let summary =
            format!("{object} has no room for another pod of {}: {resource}", look.cluster.workload(live));
        let finding = Finding::new(Cause::AdmitQuota, object.clone(), 0.88, summary)
            .field("spec.hard")
            .evidence(object.to_string(), text);
        Some(finding.remedy(
            "Raise the quota, or free what uses it.",
            &[format!("kubectl -n {} describe resourcequota {}", object.namespace, object.name)],
        ))
    })
}

/// What one pod counts towards a quota, in thousandths.
fn demand(spec: &Value) -> BTreeMap<String, i128> {
    let mut wanted = BTreeMap::from([("pods".to_owned(), 1000), ("count/pods".to_owned(), 1000)]);
    for container in items(spec, &["containers"]) {
        for part in ["requests", "limits"] {
            let resources = container.at(&["resources", part]).and_then(Value::as_object);
            for (resource, amount) in resources.into_iter().flatten() {
                let Some(amount) = quantity::milli(amount) else { continue };
                *wanted.entry(format!("{part}.{resource}")).or_default() += amount;
                // Quotas call requests by the resource alone, too.
                if part == "requests" {
                    *wanted.entry(resource.clone()).or_default() += amount;
                }
            }
        }
    }
    wanted
}

/// A webhook that is asked about new pods, fails closed, and has nobody behind it.
fn webhook(look: &Look<'_>, live: &Value) -> Option<Finding> {
    let template = live.at(&["spec", "template"])?;
    let namespace = look.cluster.get("Namespace", "", live.namespace())?;
    webhooks(look).find_map(|(config, hook)| {
        let fits =
            |field: &str, labels| hook.get(field).is_none_or(|wanted| selector::matches(wanted, labels));
        let is_asked = hook.str_at(&["failurePolicy"]) != Some("Ignore")
            && items(hook, &["matchConditions"]).next().is_none()
            && items(hook, &["rules"]).any(asks_about_pods)
            && fits("namespaceSelector", selector::labels(namespace))
            && fits("objectSelector", selector::labels(template));
        if is_asked { webhook_without_words(look, config, hook) } else { None }
    })
}

/// Whether a rule is about pods that are made.
fn asks_about_pods(rule: &Value) -> bool {
    let has = |field: &str, wanted: &[&str]| {
        items(rule, &[field]).filter_map(Value::as_str).any(|it| wanted.contains(&it))
    };
    has("operations", &["*", "CREATE"])
        && has("apiGroups", &["*", ""])
        && has("resources", &["*", "*/*", "pods", "pods/*"])
}

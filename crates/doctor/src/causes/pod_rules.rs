//! Rules that the API server holds new pods against, evaluated: Pod Security Standards, LimitRanges, and
//! quotas that demand requests. Only what is certain counts: what a pod states, and not what it is given.

use tiphys_cause::Cause;
use tiphys_schema::pod_security::Level;
use tiphys_value::{ObjectExt as _, Value};

use crate::{
    Object,
    cluster::{items, quantity},
    finding::Finding,
    search_context::Look,
};

/// The rule that a pod of a specification would break in a namespace.
pub(super) fn broken_rule(look: &Look<'_>, namespace: &str, spec: &Value, owner: &Object) -> Option<Finding> {
    security(look, namespace, spec, owner)
        .or_else(|| range(look, namespace, spec, owner))
        .or_else(|| demanded(look, namespace, spec, owner))
}

/// The label by which a namespace enforces a standard.
const ENFORCE: &str = "pod-security.kubernetes.io/enforce";

fn security(look: &Look<'_>, namespace: &str, spec: &Value, owner: &Object) -> Option<Finding> {
    if spec.str_at(&["os", "name"]) == Some("windows") {
        return None;
    }
    let standard = look.cluster.get("Namespace", "", namespace)?.label(ENFORCE)?;
    let broken = violations(standard, spec)?;
    let summary = format!(
        "the Pod Security Standard {standard} of namespace {namespace} forbids the pods of {owner}: {broken}"
    );
    let finding = Finding::new(Cause::AdmitPodSecurity, owner.clone(), 0.85, summary)
        .field("spec.template.spec.securityContext")
        .evidence(format!("Namespace {namespace}"), format!("label {ENFORCE}: {standard}"));
    Some(finding.remedy(
        "Set the security context that the standard demands, or lower the namespace's label.",
        &[format!("kubectl get namespace {namespace} --show-labels")],
    ))
}

/// What a standard refuses in a pod, in the API server's words.
fn violations(standard: &str, spec: &Value) -> Option<String> {
    let found = Level::from_label(standard)?.violations(spec, &Value::Null);
    let told: Vec<String> = found.iter().map(ToString::to_string).collect();
    (!told.is_empty()).then(|| told.join(", "))
}

fn range(look: &Look<'_>, namespace: &str, spec: &Value, owner: &Object) -> Option<Finding> {
    let ranges = look.cluster.all("LimitRange").iter().filter(|it| it.namespace() == namespace);
    let limits = ranges.flat_map(|range| items(range, &["spec", "limits"]).map(move |it| (*range, it)));
    let mut of_containers = limits.filter(|(_, it)| it.str_at(&["type"]) == Some("Container"));
    of_containers.find_map(|(range, limit)| {
        let broken = items(spec, &["containers"]).find_map(|container| outside(container, limit))?;
        let object = Object::from_live(range);
        let summary = format!("{object} forbids the resources of {owner}: {broken}");
        let finding = Finding::new(Cause::AdmitLimitRange, object.clone(), 0.85, summary)
            .evidence(object.to_string(), limit.to_string());
        Some(finding.remedy("Bring the container's resources into the range, or change the LimitRange.", &[]))
    })
}

/// An end of a range, the field that it is for, and whether an amount lies beyond it.
type RangeEnd = (&'static str, &'static str, fn(i128, i128) -> bool);

/// What a container states beyond the ends of a range.
fn outside(container: &Value, limit: &Value) -> Option<String> {
    let ends: [RangeEnd; 2] =
        [("max", "limits", |is, end| is > end), ("min", "requests", |is, end| is < end)];
    ends.into_iter().find_map(|(end, field, is_beyond)| {
        let stated = limit.get(end)?.as_object()?;
        stated.iter().find_map(|(resource, amount)| {
            let is = container.at(&["resources", field, resource])?;
            let beyond = is_beyond(quantity::milli(is)?, quantity::milli(amount)?);
            beyond.then(|| format!("{field}.{resource} is {is}, {end} is {amount}"))
        })
    })
}

/// The quotas of a namespace that count all of its pods: what counts towards a scope is not judged.
pub(super) fn whole_quotas<'a>(
    look: &Look<'a>,
    namespace: &'a str,
) -> impl Iterator<Item = &'a Value> + use<'a> {
    let cluster = look.cluster;
    let here = cluster.all("ResourceQuota").iter().copied().filter(move |it| it.namespace() == namespace);
    here.filter(|it| it.at(&["spec", "scopes"]).is_none() && it.at(&["spec", "scopeSelector"]).is_none())
}

/// A quota that demands a request or a limit that a container does not state and nobody gives it.
fn demanded(look: &Look<'_>, namespace: &str, spec: &Value, owner: &Object) -> Option<Finding> {
    let has_defaults = look.cluster.all("LimitRange").iter().any(|it| it.namespace() == namespace);
    if has_defaults {
        return None;
    }
    whole_quotas(look, namespace).find_map(|quota| {
        let hard = quota.at(&["spec", "hard"])?.as_object()?;
        let lacking = hard.keys().find(|key| {
            let (part, resource) = key.split_once('.').unwrap_or(("requests", key));
            let is_counted = matches!(part, "requests" | "limits") && matches!(resource, "cpu" | "memory");
            // A limit is the request where none is stated.
            let states = |container: &Value| {
                container.at(&["resources", part, resource]).is_some()
                    || part == "requests" && container.at(&["resources", "limits", resource]).is_some()
            };
            is_counted && items(spec, &["containers"]).any(|container| !states(container))
        })?;
        let name = Object::from_live(quota);
        let summary = format!("{name} demands {lacking}, which {owner} does not set");
        let finding = Finding::new(Cause::AdmitRequestsRequired, owner.clone(), 0.85, summary)
            .field("spec.template.spec.containers.resources")
            .evidence(name.to_string(), format!("spec.hard has {lacking}"));
        Some(finding.remedy("Set the requests and limits, or a LimitRange with defaults.", &[]))
    })
}

#[cfg(test)]
mod tests {
    use tiphys_value::json;

    use super::*;

    #[test]
    fn standards_of_pods() {
        let safe = json!({"securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [{"name": "a", "securityContext":
                {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}}}]});
        assert_eq!(violations("restricted", &safe), None);
        let plain = json!({"containers": [{"name": "a"}]});
        assert_eq!(violations("baseline", &plain), None);
        assert!(violations("restricted", &plain).is_some());
        assert!(violations("baseline", &json!({"hostNetwork": true, "containers": []})).is_some());
    }

    #[test]
    fn resources_outside_of_a_range() {
        let limit = json!({"max": {"memory": "1Gi"}, "min": {"cpu": "100m"}});
        let container =
            |memory, cpu| json!({"resources": {"limits": {"memory": memory}, "requests": {"cpu": cpu}}});
        assert!(outside(&container("2Gi", "200m"), &limit).is_some());
        assert!(outside(&container("1Gi", "50m"), &limit).is_some());
        assert_eq!(outside(&container("1Gi", "100m"), &limit), None);
        assert_eq!(outside(&json!({}), &limit), None);
    }
}

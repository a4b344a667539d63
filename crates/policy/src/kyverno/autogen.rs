//! Rules about Pods are also about what makes pods, unless a policy says otherwise (Kyverno documentation,
//! "Auto-Gen Rules"; `pkg/autogen`).

use serde_json::json;
use tiphys_value::{ObjectExt, Value};

use super::{list, texts};

/// The kinds to which rules about Pods are extended, but CronJobs.
const CONTROLLERS: [&str; 6] =
    ["DaemonSet", "Deployment", "Job", "StatefulSet", "ReplicaSet", "ReplicationController"];

const ANNOTATION: &str = "pod-policies.kyverno.io/autogen-controllers";

/// The kinds to which a policy's rules about Pods are extended.
pub(super) fn controllers(policy: &Value) -> Vec<&str> {
    if !allows(policy) {
        return Vec::new();
    }
    let all = || CONTROLLERS.into_iter().chain(["CronJob"]);
    match policy.annotation(ANNOTATION) {
        None | Some("all") => all().collect(),
        Some(named) => all().filter(|kind| named.split(',').any(|it| it.trim() == *kind)).collect(),
    }
}

/// Whether rules of a policy can be extended: none goes by names or labels, which pods and their controllers
/// do not share, and none changes or makes anything by its text alone.
fn allows(policy: &Value) -> bool {
    let filters = |rule: &Value| -> bool {
        ["match", "exclude"].iter().filter_map(|side| rule.get(*side)).all(|block| {
            let parts = list(block, "any").iter().chain(list(block, "all")).chain([block]);
            parts.filter_map(|part| part.get("resources")).all(|resources| {
                let kinds: Vec<&str> = texts(resources, "kinds").collect();
                let mixes_kinds = kinds.len() > 1 && kinds.iter().any(|it| is_pod(it));
                let mut by_name = ["name", "names", "selector", "annotations"].iter();
                !mixes_kinds && by_name.all(|it| resources.get(*it).is_none())
            })
        })
    };
    list(&policy["spec"], "rules").iter().all(|rule| {
        rule.get("generate").is_none() && rule.at(&["mutate", "patchesJson6902"]).is_none() && filters(rule)
    })
}

/// `Pod`, `v1/Pod`.
fn is_pod(kind: &str) -> bool {
    kind.rsplit('/').next() == Some("Pod")
}

/// A rule about Pods, as one about a kind that makes them. `None` if it is not about Pods, or cannot be
/// rewritten.
pub(super) fn extended(rule: &Value, kind: &str) -> Option<Value> {
    if rule.get("name").and_then(Value::as_str).is_some_and(|name| name.starts_with("autogen-")) {
        return None;
    }
    let prefix = if kind == "CronJob" { "spec.jobTemplate.spec.template" } else { "spec.template" };
    let variable = if rule.at(&["validate", "cel"]).is_some() { "object" } else { "request.object" };
    let mut rule = moved(rule, variable, prefix);
    with_kind(rule.get_mut("match")?, kind).then_some(())?;
    let exclude = rule.get_mut("exclude").filter(|it| names_kinds(it));
    exclude.is_none_or(|exclude| with_kind(exclude, kind)).then_some(())?;
    let validate = rule.get_mut("validate")?;
    for field in ["pattern", "anyPattern"] {
        match validate.get_mut(field) {
            Some(Value::Array(patterns)) if field == "anyPattern" => {
                patterns.iter_mut().for_each(|pattern| *pattern = below(prefix, pattern.take()));
            }
            Some(pattern) => *pattern = below(prefix, pattern.take()),
            None => {}
        }
    }
    Some(rule)
}

/// A pattern of a pod, below the path of the template.
fn below(prefix: &str, pattern: Value) -> Value {
    prefix.rsplit('.').fold(pattern, |below, key| json!({ key: below }))
}

/// Replaces Pods by another kind where they are meant. Whether they are.
fn with_kind(block: &mut Value, kind: &str) -> bool {
    let mut replaced = false;
    let mut replace = |filter: &mut Value| {
        let Some(kinds) = filter.pointer_mut("/resources/kinds").and_then(Value::as_array_mut) else {
            return;
        };
        if kinds.iter().any(|it| it.as_str().is_some_and(is_pod)) {
            *kinds = vec![kind.into()];
            replaced = true;
        }
    };
    replace(block);
    for list in ["any", "all"] {
        block.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten().for_each(&mut replace);
    }
    replaced
}

/// Whether a block goes by kinds.
fn names_kinds(block: &Value) -> bool {
    let parts = list(block, "any").iter().chain(list(block, "all")).chain([block]);
    parts.filter_map(|part| part.get("resources")).any(|it| texts(it, "kinds").next().is_some())
}

/// A rule with the paths of its expressions moved to where a pod stands in its controller.
fn moved(rule: &Value, variable: &str, prefix: &str) -> Value {
    let below = |value: &Value| moved(value, variable, prefix);
    match rule {
        Value::String(text) => {
            let fields = ["spec", "metadata"].map(|field| (format!("{variable}.{field}"), field));
            let filled = fields.iter().fold(text.clone(), |text, (from, field)| {
                text.replace(from, &format!("{variable}.{prefix}.{field}"))
            });
            filled.into()
        }
        Value::Array(items) => items.iter().map(below).collect(),
        Value::Object(map) => map.iter().map(|(key, value)| (key.clone(), below(value))).collect(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_about_pods_are_moved_to_their_controllers() {
        let rule = json!({
            "name": "tag",
            "match": {"any": [{"resources": {"kinds": ["Pod"]}}]},
            "validate": {
                "message": "{{ request.object.spec.hostNetwork }} {{request.object.metadata.labels}}",
                "pattern": {"spec": {"containers": [{"image": "*:*"}]}},
            },
        });
        let of = |kind: &str| extended(&rule, kind).unwrap();
        let deployment = of("Deployment");
        assert_eq!(deployment["match"], json!({"any": [{"resources": {"kinds": ["Deployment"]}}]}));
        let pattern = json!({"spec": {"template": {"spec": {"containers": [{"image": "*:*"}]}}}});
        assert_eq!(deployment["validate"]["pattern"], pattern);
        let message = "{{ request.object.spec.template.spec.hostNetwork }} {{request.object.spec.template.metadata.labels}}";
        assert_eq!(deployment["validate"]["message"], message);
        let job = of("CronJob");
        assert!(job["validate"]["pattern"]["spec"]["jobTemplate"]["spec"]["template"]["spec"].is_object());
        let service = json!({"match": {"resources": {"kinds": ["Service"]}}, "validate": {"pattern": {}}});
        assert_eq!(extended(&service, "Deployment"), None);
    }

    #[test]
    fn names_and_annotations_keep_rules_at_pods() {
        let policy = |resources: Value, annotations: Value| json!({"metadata": {"annotations": annotations}, "spec": {"rules": [{"match": {"resources": resources}}]}});
        let count = |policy: &Value| controllers(policy).len();
        assert_eq!(count(&policy(json!({"kinds": ["Pod"]}), json!({}))), 7);
        assert_eq!(count(&policy(json!({"kinds": ["Pod"], "names": ["a"]}), json!({}))), 0);
        assert_eq!(count(&policy(json!({"kinds": ["Pod", "Service"]}), json!({}))), 0);
        let named = json!({ANNOTATION: "Deployment, CronJob"});
        assert_eq!(controllers(&policy(json!({"kinds": ["Pod"]}), named)), ["Deployment", "CronJob"]);
        assert_eq!(count(&policy(json!({"kinds": ["Pod"]}), json!({ANNOTATION: "none"}))), 0);
    }
}

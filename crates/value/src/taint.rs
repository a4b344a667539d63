//! Taints of nodes, and the tolerations of pods (Kubernetes docs, "Taints and Tolerations").

use crate::{ObjectExt as _, Value};

/// Effects of taints that keep a pod from a node.
pub const KEEPS_AWAY: [&str; 2] = ["NoSchedule", "NoExecute"];

/// The taints of a node, of those with one of these effects, that a pod does not tolerate.
pub fn untolerated<'a>(
    pod: &'a Value,
    node: &'a Value,
    effects: &'a [&str],
) -> impl Iterator<Item = &'a Value> {
    let taints = node.at(&["spec", "taints"]).and_then(Value::as_array);
    let is_meant = |taint: &&Value| taint.str_at(&["effect"]).is_some_and(|effect| effects.contains(&effect));
    taints.into_iter().flatten().filter(is_meant).filter(|taint| toleration(pod, taint).is_none())
}

/// The first of a pod's tolerations that is for a taint.
pub fn toleration<'a>(pod: &'a Value, taint: &Value) -> Option<&'a Value> {
    let tolerations = pod.at(&["spec", "tolerations"]).and_then(Value::as_array);
    let text = |value: &Value, field: &str| value.str_at(&[field]).unwrap_or_default().to_owned();
    let (key, value, effect) = (text(taint, "key"), text(taint, "value"), text(taint, "effect"));
    tolerations.into_iter().flatten().find(|toleration| {
        let (own_key, own_effect) = (text(toleration, "key"), text(toleration, "effect"));
        let exists = toleration.str_at(&["operator"]) == Some("Exists");
        (own_effect.is_empty() || own_effect == effect)
            && (own_key == key || (own_key.is_empty() && exists))
            && (exists || text(toleration, "value") == value)
    })
}

#[cfg(test)]
mod tests {
    use crate::json;

    use super::*;

    #[test]
    fn the_first_taint_that_is_not_tolerated_keeps_a_pod_away() {
        let node = json!({"spec": {"taints": [
            {"key": "gpu", "value": "a", "effect": "NoSchedule"},
            {"key": "soft", "effect": "PreferNoSchedule"},
            {"key": "spot", "effect": "NoExecute"},
        ]}});
        let key = |tolerations: Value| {
            let pod = json!({"spec": {"tolerations": tolerations}});
            untolerated(&pod, &node, &KEEPS_AWAY).find_map(|taint| taint.str_at(&["key"])).map(str::to_owned)
        };
        assert_eq!(key(json!([])).as_deref(), Some("gpu"));
        assert_eq!(key(json!([{"key": "gpu", "value": "b"}])).as_deref(), Some("gpu"), "another value");
        assert_eq!(key(json!([{"key": "gpu", "value": "a"}])).as_deref(), Some("spot"));
        assert_eq!(
            key(json!([{"key": "gpu", "operator": "Exists", "effect": "NoExecute"}])).as_deref(),
            Some("gpu"),
            "another effect"
        );
        assert_eq!(key(json!([{"operator": "Exists"}])), None, "all are tolerated");
    }
}

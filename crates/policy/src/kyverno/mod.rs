//! Kyverno's policies: `ClusterPolicy` and `Policy` (Kyverno documentation, "Validate Rules").

mod autogen;
mod conditions;
mod matching;
mod operand;
mod pattern;
mod rule;
mod variables;

use tiphys_value::{ObjectExt, Value};

pub(crate) use matching::is_selected;
pub(crate) use rule::{Rule, rules};

/// Namespaces that Kyverno's own settings leave out (chart `kyverno`, `config.resourceFilters`).
const NAMESPACES: [&str; 4] = ["kube-system", "kube-public", "kube-node-lease", "kyverno"];

/// Kinds that Kyverno's own settings leave out.
const KINDS: [&str; 4] = ["Event", "APIService", "ReplicaSet", "Node"];

/// Whether Kyverno's own settings leave an object out.
pub(crate) fn is_left_alone(object: &Value) -> bool {
    NAMESPACES.contains(&object.namespace())
        || KINDS.contains(&object.kind())
        || (object.kind() == "Namespace" && NAMESPACES.contains(&object.name()))
}

/// Whether a policy has rules that do something else than to validate objects.
pub(crate) fn does_more(policy: &Value) -> bool {
    list(&policy["spec"], "rules").iter().any(|rule| rule.get("validate").is_none())
}

/// The items of a list; none if there is no list.
pub(crate) fn list<'v>(value: &'v Value, field: &str) -> &'v [Value] {
    value.get(field).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The texts of a list.
pub(crate) fn texts<'v>(value: &'v Value, field: &str) -> impl Iterator<Item = &'v str> {
    list(value, field).iter().filter_map(Value::as_str)
}

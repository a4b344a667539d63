//! Kyverno's policies: `ClusterPolicy` and `Policy` (Kyverno documentation, "Validate Rules").

mod autogen;
mod conditions;
mod matching;
mod operand;
mod pattern;
mod rule;
mod variables;

use std::fmt::Write as _;

use tiphys_value::{ObjectExt, Segment, Value};

use crate::Refusal;

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

/// The kinds that rules which judge objects name, and those to which they are extended.
pub(crate) fn webhook_kinds(policy: &Value) -> Vec<&str> {
    let rules = list(&policy["spec"], "rules").iter().filter(|rule| rule.get("validate").is_some());
    let filters = rules
        .filter_map(|rule| rule.get("match"))
        .flat_map(|matching| list(matching, "any").iter().chain(list(matching, "all")).chain([matching]));
    let mut kinds: Vec<&str> =
        filters.filter_map(|filter| filter.get("resources")).flat_map(|it| texts(it, "kinds")).collect();
    if kinds.iter().any(|kind| kind.rsplit('/').next() == Some("Pod")) {
        kinds.extend(autogen::controllers(policy));
    }
    kinds.sort_unstable();
    kinds.dedup();
    kinds
}

/// What Kyverno's webhook says of refusals, as it says it.
pub(crate) fn denial(object: &Value, refusals: &[Refusal]) -> String {
    let mut text = format!(
        "\n\nresource {}/{}/{} was blocked due to the following policies \n",
        object.kind(),
        object.namespace(),
        object.name()
    );
    for refusal in refusals {
        let steps = refusal.field.iter().flat_map(|field| &field.0);
        let path: String = steps
            .map(|step| match step {
                Segment::Key(key) => format!("{key}/"),
                Segment::Index(at) => format!("{at}/"),
            })
            .collect();
        let place = if path.is_empty() { String::new() } else { format!(" failed at path /{path}") };
        let said = match refusal.message.as_str() {
            "" => String::new(),
            message => format!("{}. ", message.trim_end_matches('.')),
        };
        let _ = write!(
            text,
            "\n{}:\n  {}: 'validation error: {said}rule {}{place}'\n",
            refusal.policy.name, refusal.rule, refusal.rule
        );
    }
    text
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

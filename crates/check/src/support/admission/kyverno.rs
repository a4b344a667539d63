//! What the webhook of Kyverno refuses in policies (kyverno, `pkg/validation/policy`).

use tiphys_value::{FieldPath, Value};

use super::refused_fields::Refusals;
use crate::support::{
    field_paths::keys,
    pods::{list, text},
};

/// What a rule may do.
const OPERATIONS: [&str; 4] = ["mutate", "validate", "generate", "verifyImages"];

/// Variables that only a request fills in.
const OF_REQUESTS: [&str; 4] =
    ["request.userInfo", "serviceAccountName", "serviceAccountNamespace", "request.roles"];

pub(super) fn check(kind: &str, spec: &Value, found: &mut Refusals) {
    if !matches!(kind, "ClusterPolicy" | "Policy") {
        return;
    }
    let is_background = spec.get("background") != Some(&Value::Bool(false));
    let rules = list(spec, "rules");
    let place = keys(&["spec", "rules"]);
    found.repeated(
        rules.iter().enumerate().map(|(at, it)| (place.index(at).key("name"), text(it, "name"))),
        |name| format!("duplicate rule name: '{name}'"),
    );
    for (at, rule) in rules.iter().enumerate() {
        let place = place.index(at);
        let number = OPERATIONS.iter().filter(|it| rule.get(**it).is_some_and(|it| !it.is_null())).count();
        let name = text(rule, "name");
        if number == 0 {
            let message = format!(
                "no operation defined in the rule '{name}'. (supported operations: mutate,validate,generate,verifyImages)"
            );
            found.add(place.clone(), message);
        } else if number > 1 {
            found.add(
                place.clone(),
                format!(
                    "multiple operations defined in the rule '{name}', only one operation is allowed per rule"
                ),
            );
        }
        if is_background {
            users(rule, &place, found);
        }
    }
}

/// A scan in the background has no user: what asks for one needs `background: false`.
fn users(rule: &Value, place: &FieldPath, found: &mut Refusals) {
    const WHO: [&str; 3] = ["subjects", "roles", "clusterRoles"];
    for side in ["match", "exclude"] {
        let Some(filter) = rule.get(side) else { continue };
        let mut all = vec![(place.key(side), filter)];
        for list_of in ["any", "all"] {
            let entries = list(filter, list_of).iter().enumerate();
            all.extend(entries.map(|(at, it)| (place.key(side).key(list_of).index(at), it)));
        }
        for (place, filter) in all {
            if let Some(field) = WHO.into_iter().find(|field| !list(filter, field).is_empty()) {
                let message = format!(
                    "invalid variable used: {side} by {field} is not allowed in background mode, set spec.background=false"
                );
                found.add(place.key(field), message);
            }
        }
    }
    let is_of_user = |variable: &&str| OF_REQUESTS.iter().any(|it| variable.trim().starts_with(it));
    for operation in OPERATIONS {
        let Some(text) = rule.get(operation).map(Value::to_string) else { continue };
        let mut variables = text.split("{{").skip(1).filter_map(|rest| rest.split("}}").next());
        if let Some(variable) = variables.find(is_of_user) {
            let message = format!(
                "variable {{{{{}}}}} is not allowed in background mode, set spec.background=false",
                variable.trim()
            );
            found.add(place.key(operation), message);
        }
    }
}

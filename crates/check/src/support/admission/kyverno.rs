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
        filters(rule, &place, found);
        validation(rule, &place, found);
        if is_background {
            users(rule, &place, found);
        }
    }
}

/// What a rule is for is said in one of three ways: by `any`, by `all`, or by resources alone.
fn filters(rule: &Value, place: &FieldPath, found: &mut Refusals) {
    for side in ["match", "exclude"] {
        let Some(filter) = rule.get(side) else { continue };
        let has = |field: &str| !list(filter, field).is_empty();
        let is_plain = filter.get("resources").and_then(Value::as_object).is_some_and(|it| !it.is_empty());
        if has("any") && has("all") {
            found.add(place.key(side), format!("{side}: can't specify any and all together"));
        } else if is_plain && (has("any") || has("all")) {
            let message = format!("{side}: can't specify any or all together with resources");
            found.add(place.key(side).key("resources"), message);
        }
    }
    if rule.get("match").and_then(Value::as_object).is_none_or(|it| it.is_empty()) {
        found.add(place.clone(), "match is required");
    }
}

/// A validation is made in one way (kyverno, `pkg/validation/policy/validate`).
fn validation(rule: &Value, place: &FieldPath, found: &mut Refusals) {
    const WAYS: [&str; 8] =
        ["anyPattern", "assert", "cel", "deny", "foreach", "manifests", "pattern", "podSecurity"];
    let Some(validate) = rule.get("validate").and_then(Value::as_object) else { return };
    let given = WAYS.iter().filter(|way| validate.get(**way).is_some_and(|it| !it.is_null()));
    // Without any, a word is misspelt, which the schema tells.
    if given.count() > 1 {
        found.add(place.key("validate"), format!("only one of {} can be specified", WAYS.join(", ")));
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

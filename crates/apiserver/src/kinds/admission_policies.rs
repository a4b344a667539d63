//! The CEL expressions of admission policies and of webhooks' match conditions. Those of mutating policies
//! are compiled when they are used.

use tiphys_schema::{ErrorList, FieldError, Path};
use tiphys_value::{ObjectExt, Value};

use crate::{expressions::compile, meta::items};

/// Faults in a webhook configuration.
pub(super) fn webhooks(configuration: &Value) -> Option<ErrorList> {
    let mut errors = ErrorList::new();
    for (at, webhook) in items(configuration, "/webhooks").enumerate() {
        let path = Path::new("webhooks").index(at);
        errors.extend(faults(webhook, ("matchConditions", "expression"), None, &path));
    }
    unless_empty(errors)
}

/// Faults in a ValidatingAdmissionPolicy.
pub(super) fn validating(policy: &Value) -> Option<ErrorList> {
    const EXPRESSIONS: [(&str, &str); 5] = [
        ("matchConditions", "expression"),
        ("variables", "expression"),
        ("validations", "expression"),
        ("validations", "messageExpression"),
        ("auditAnnotations", "valueExpression"),
    ];
    let variables: Vec<&str> =
        items(policy, "/spec/variables").filter_map(|variable| variable.str_at(&["name"])).collect();
    let all = EXPRESSIONS
        .iter()
        .flat_map(|place| faults(&policy["spec"], *place, Some(&variables), &Path::new("spec")).0);
    unless_empty(ErrorList(all.collect()))
}

/// What is wrong with an expression is told before all else.
fn unless_empty(errors: ErrorList) -> Option<ErrorList> {
    (!errors.is_empty()).then_some(errors)
}

/// Faults of the expressions in a list, each at a key of its entry. `variables` are those of the policy.
fn faults(holder: &Value, (list, key): (&str, &str), variables: Option<&[&str]>, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    for (at, entry) in items(holder, &format!("/{list}")).enumerate() {
        let Some(source) = entry.str_at(&[key]).filter(|source| !source.trim().is_empty()) else {
            continue;
        };
        let path = path.child(list).index(at).child(key);
        let expression = match compile(source) {
            Err(why) => {
                errors.push(FieldError::invalid(&path, source, why));
                continue;
            }
            Ok(expression) => expression,
        };
        // A variable sees those before it.
        let visible = variables.map(|all| all.get(..at).filter(|_| list == "variables").unwrap_or(all));
        let fault = visible.and_then(|visible| expression.undefined_member("variables", visible));
        if let Some(fault) = fault.filter(|_| list != "matchConditions") {
            errors.push(FieldError::invalid(&path, source, format!("compilation failed: {fault}")));
            continue;
        }
        let kind = expression.kind().filter(|_| matches!(list, "validations" | "matchConditions"));
        // A variable has the type of its own expression.
        let kind = kind.filter(|_| !source.trim_start().starts_with("variables."));
        if let Some(kind) = kind.filter(|kind| key == "expression" && *kind != "bool") {
            let detail = format!("must evaluate to bool but got {kind}");
            errors.push(FieldError::invalid(&path, source, detail));
        }
    }
    errors
}

//! Admission policies and what binds them, as far as they are not expressions.

use serde_json::Value;

use super::{
    admission::{choice, condition_names, one_rule},
    faulty, list, names, one_of, selector, text,
};
use crate::{ErrorList, FieldError, Path};

/// A `ValidatingAdmissionPolicy`.
pub(super) fn policy(object: &Value, errors: &mut ErrorList) {
    let (spec, path) = (&object["spec"], &Path::new("spec"));
    choice(spec, "failurePolicy", &["Fail", "Ignore"], path, errors);
    if spec["paramKind"].is_object() {
        parameter_kind(&spec["paramKind"], &path.child("paramKind"), errors);
    }
    let constraints = path.child("matchConstraints");
    match &spec["matchConstraints"] {
        Value::Object(_) => matching(&spec["matchConstraints"], true, &constraints, errors),
        _ => errors.push(FieldError::required(&constraints, "")),
    }
    condition_names(spec, path, errors);
    for (at, variable) in list(spec, "variables").iter().enumerate() {
        one_variable(variable, &path.child("variables").index(at), errors);
    }
    let (validations, annotations) = (list(spec, "validations"), list(spec, "auditAnnotations"));
    if validations.is_empty() && annotations.is_empty() {
        let detail = "validations or auditAnnotations must contain at least one item";
        errors.push(FieldError::required(&path.child("validations"), detail));
        errors.push(FieldError::required(&path.child("auditAnnotations"), detail));
    }
    for (at, validation) in validations.iter().enumerate() {
        one_validation(validation, &path.child("validations").index(at), errors);
    }
    audit_annotations(
        text(&object["metadata"], "name"),
        annotations,
        &path.child("auditAnnotations"),
        errors,
    );
}

/// The kind of the parameters of a policy.
fn parameter_kind(kind: &Value, path: &Path, errors: &mut ErrorList) {
    let at = path.child("apiVersion");
    match text(kind, "apiVersion") {
        "" => errors.push(FieldError::required(&at, "")),
        both if both.matches('/').count() > 1 => {
            errors.push(FieldError::invalid(&at, both, format!("unexpected GroupVersion string: {both}")));
        }
        both => {
            let (group, version) = both.split_once('/').unwrap_or(("", both));
            for (part, reasons) in
                [(group, names::dns1123_subdomain(group)), (version, names::dns1035_label(version))]
            {
                if !part.is_empty() && !reasons.is_empty() {
                    errors.push(FieldError::invalid(&at, part, reasons.join(",")));
                }
            }
            if version.is_empty() {
                errors.push(FieldError::invalid(&at, both, "version must be specified"));
            }
        }
    }
    let at = path.child("kind");
    let name = text(kind, "kind");
    let reasons = names::dns1035_label(&name.to_lowercase());
    if name.is_empty() {
        errors.push(FieldError::required(&at, ""));
    } else if !reasons.is_empty() {
        let detail = format!("may have mixed case, but should otherwise match: {}", reasons.join(","));
        errors.push(FieldError::invalid(&at, name, detail));
    }
}

fn one_variable(variable: &Value, path: &Path, errors: &mut ErrorList) {
    let name = text(variable, "name");
    if name.trim().is_empty() {
        errors.push(FieldError::required(&path.child("name"), "name is not specified"));
    } else if !is_identifier(name) {
        errors.push(FieldError::invalid(&path.child("name"), name, "must be a valid CEL identifier"));
    }
    if text(variable, "expression").trim().is_empty() {
        errors.push(FieldError::required(&path.child("expression"), "expression is not specified"));
    }
}

fn one_validation(validation: &Value, path: &Path, errors: &mut ErrorList) {
    if text(validation, "expression").trim().is_empty() {
        errors.push(FieldError::required(&path.child("expression"), "expression is not specified"));
    }
    let reasons = ["Forbidden", "Invalid", "RequestEntityTooLarge"];
    if let Some(reason) =
        validation["reason"].as_str().filter(|r| !reasons.contains(r) && *r != "Unauthorized")
    {
        errors.push(FieldError::not_supported(&path.child("reason"), reason, &reasons));
    }
}

/// The annotations that a policy writes into the audit log: a key is one with the name of the policy before
/// it.
fn audit_annotations(policy: &str, annotations: &[Value], path: &Path, errors: &mut ErrorList) {
    const MOST: usize = 20;
    if annotations.len() > MOST {
        let detail = format!("must not have more than {MOST} auditAnnotations");
        errors.push(FieldError::invalid(path, annotations.to_vec(), detail));
    }
    for (at, annotation) in annotations.iter().enumerate() {
        let (key, path) = (text(annotation, "key"), path.index(at));
        if policy.is_empty() {
            let detail = "requires metadata.name be non-empty";
            errors.push(FieldError::invalid(&path.child("key"), key, detail));
        } else {
            let whole = format!("{policy}/{key}");
            faulty(names::qualified_name(&whole), &whole, &path.child("key"), errors);
        }
        if text(annotation, "valueExpression").trim().is_empty() {
            let detail = "valueExpression is not specified";
            errors.push(FieldError::required(&path.child("valueExpression"), detail));
        }
        if annotations[..at].iter().any(|other| text(other, "key") == key) {
            errors.push(FieldError::duplicate(&path.child("key"), key));
        }
    }
}

fn is_identifier(name: &str) -> bool {
    let mut letters = name.chars();
    letters.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && letters.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn matching(matching: &Value, required: bool, path: &Path, errors: &mut ErrorList) {
    choice(matching, "matchPolicy", &["Equivalent", "Exact"], path, errors);
    for key in ["namespaceSelector", "objectSelector"] {
        selector(&matching[key], &path.child(key), errors);
    }
    let rules = list(matching, "resourceRules");
    if required && rules.is_empty() {
        errors.push(FieldError::required(&path.child("resourceRules"), ""));
    }
    for key in ["resourceRules", "excludeResourceRules"] {
        for (at, rule) in list(matching, key).iter().enumerate() {
            let path = path.child(key).index(at);
            object_names(list(rule, "resourceNames"), &path.child("resourceNames"), errors);
            one_rule(rule, &path, errors);
        }
    }
}

/// The names of the objects that a rule is about.
fn object_names(all: &[Value], path: &Path, errors: &mut ErrorList) {
    for (at, name) in all.iter().enumerate() {
        let (text, path) = (name.as_str().unwrap_or_default(), path.index(at));
        faulty(names::path_segment(text), text, &path, errors);
        if all[..at].contains(name) {
            errors.push(FieldError::duplicate(&path, text));
        }
    }
}

/// A `MutatingAdmissionPolicy`, as far as it is like a validating one.
pub(super) fn mutating_policy(spec: &Value, path: &Path, errors: &mut ErrorList) {
    choice(spec, "failurePolicy", &["Fail", "Ignore"], path, errors);
    let constraints = path.child("matchConstraints");
    match &spec["matchConstraints"] {
        Value::Object(_) => matching(&spec["matchConstraints"], true, &constraints, errors),
        _ => errors.push(FieldError::required(&constraints, "")),
    }
    condition_names(spec, path, errors);
    if list(spec, "mutations").is_empty() {
        errors
            .push(FieldError::required(&path.child("mutations"), "mutations must contain at least one item"));
    }
    choice(spec, "reinvocationPolicy", &["IfNeeded", "Never"], path, errors);
}

/// A `ValidatingAdmissionPolicyBinding`.
pub(super) fn binding(spec: &Value, path: &Path, errors: &mut ErrorList) {
    common_binding(spec, path, errors);
    actions(list(spec, "validationActions"), &path.child("validationActions"), errors);
}

/// What the bindings of both kinds of policy have; that is all of a `MutatingAdmissionPolicyBinding`.
pub(super) fn common_binding(spec: &Value, path: &Path, errors: &mut ErrorList) {
    match text(spec, "policyName") {
        "" => errors.push(FieldError::required(&path.child("policyName"), "")),
        name => faulty(names::dns1123_subdomain(name), name, &path.child("policyName"), errors),
    }
    if spec["paramRef"].is_object() {
        parameters(&spec["paramRef"], &path.child("paramRef"), errors);
    }
    if spec["matchResources"].is_object() {
        matching(&spec["matchResources"], false, &path.child("matchResources"), errors);
    }
}

/// The objects that a binding gives to its policy.
fn parameters(reference: &Value, path: &Path, errors: &mut ErrorList) {
    let (name, selects) = (text(reference, "name"), reference["selector"].is_object());
    faulty(names::path_segment(name), name, &path.child("name"), errors);
    selector(&reference["selector"], &path.child("selector"), errors);
    if !name.is_empty() && selects {
        let detail = "name and selector are mutually exclusive";
        errors.push(FieldError::forbidden(&path.child("name"), detail));
        errors.push(FieldError::forbidden(&path.child("selector"), detail));
    } else if name.is_empty() && !selects {
        errors.push(FieldError::required(path, "one of name or selector must be specified"));
    }
    let action = text(reference, "parameterNotFoundAction");
    one_of(action, &["Deny", "Allow"], &path.child("parameterNotFoundAction"), errors);
}

fn actions(actions: &[Value], path: &Path, errors: &mut ErrorList) {
    if actions.is_empty() {
        errors.push(FieldError::required(path, "at least one validation action is required"));
    }
    let known = ["Audit", "Deny", "Warn"];
    for (at, action) in actions.iter().filter_map(Value::as_str).enumerate() {
        if !known.contains(&action) {
            errors.push(FieldError::not_supported(&path.index(at), action, &known));
        }
        if actions[..at].iter().any(|other| other == action) {
            errors.push(FieldError::duplicate(&path.index(at), action));
        }
    }
    if ["Deny", "Warn"].iter().all(|action| actions.iter().any(|other| other == action)) {
        let detail = "must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)";
        errors.push(FieldError::invalid(path, actions.to_vec(), detail));
    }
}

//! Webhook configurations and admission policies, as far as they are not expressions.

use serde_json::Value;

use super::{faulty, list, names, selector, text};
use crate::{ErrorList, FieldError, Path};

const REVIEWS: [&str; 2] = ["v1", "v1beta1"];

/// A text that may be absent, or one of a few.
fn choice(holder: &Value, key: &str, allowed: &[&str], path: &Path, errors: &mut ErrorList) {
    if let Some(value) = holder[key].as_str().filter(|value| !allowed.contains(value)) {
        errors.push(FieldError::not_supported(&path.child(key), value, allowed));
    }
}

/// A `ValidatingWebhookConfiguration` or `MutatingWebhookConfiguration`.
pub(super) fn webhooks(configuration: &Value, mutating: bool, errors: &mut ErrorList) {
    for (at, webhook) in list(configuration, "webhooks").iter().enumerate() {
        let path = Path::new("webhooks").index(at);
        one_webhook(webhook, &path, errors);
        if mutating {
            choice(webhook, "reinvocationPolicy", &["IfNeeded", "Never"], &path, errors);
        }
        review_versions(webhook, &path, errors);
        let name = text(webhook, "name");
        if list(configuration, "webhooks")[..at].iter().any(|other| text(other, "name") == name) {
            errors.push(FieldError::duplicate(&path.child("name"), name));
        }
    }
}

fn one_webhook(webhook: &Value, path: &Path, errors: &mut ErrorList) {
    let name = text(webhook, "name");
    let reasons = names::dns1123_subdomain(name);
    if name.is_empty() {
        errors.push(FieldError::required(&path.child("name"), ""));
    } else if !reasons.is_empty() {
        faulty(reasons, name, &path.child("name"), errors);
    } else if name.split('.').count() < 3 {
        let detail = "should be a domain with at least three segments separated by dots";
        errors.push(FieldError::invalid(&path.child("name"), name, detail));
    }
    for (at, rule) in list(webhook, "rules").iter().enumerate() {
        one_rule(rule, &path.child("rules").index(at), errors);
    }
    choice(webhook, "failurePolicy", &["Fail", "Ignore"], path, errors);
    choice(webhook, "matchPolicy", &["Equivalent", "Exact"], path, errors);
    let effects = ["None", "NoneOnDryRun"];
    match webhook["sideEffects"].as_str() {
        None => {
            let detail = "must specify one of None, NoneOnDryRun";
            errors.push(FieldError::required(&path.child("sideEffects"), detail));
        }
        Some(_) => choice(webhook, "sideEffects", &effects, path, errors),
    }
    if let Some(seconds) = webhook["timeoutSeconds"].as_i64().filter(|seconds| !(1..=30).contains(seconds)) {
        let detail = "the timeout value must be between 1 and 30 seconds";
        errors.push(FieldError::invalid(&path.child("timeoutSeconds"), seconds, detail));
    }
    for key in ["namespaceSelector", "objectSelector"] {
        selector(&webhook[key], &path.child(key), errors);
    }
    client_config(&webhook["clientConfig"], &path.child("clientConfig"), errors);
    condition_names(webhook, path, errors);
}

fn review_versions(webhook: &Value, path: &Path, errors: &mut ErrorList) {
    let path = path.child("admissionReviewVersions");
    let versions = list(webhook, "admissionReviewVersions");
    if versions.is_empty() {
        errors.push(FieldError::required(&path, "must specify one of v1, v1beta1"));
        return;
    }
    known_reviews(versions, &path, errors);
}

/// The versions of the review that a webhook understands.
pub(crate) fn known_reviews(versions: &[Value], path: &Path, errors: &mut ErrorList) {
    for (at, version) in versions.iter().enumerate() {
        let (name, path) = (version.as_str().unwrap_or_default(), path.index(at));
        match versions[..at].contains(version) {
            true => errors.push(FieldError::invalid(&path, name, "duplicate version")),
            false => faulty(names::dns1035_label(name), name, &path, errors),
        }
    }
    if !versions.iter().any(|version| REVIEWS.iter().any(|known| version == known)) {
        let detail = "must include at least one of v1, v1beta1";
        errors.push(FieldError::invalid(path, versions.to_vec(), detail));
    }
}

/// A rule of a webhook or of the match constraints of a policy.
fn one_rule(rule: &Value, path: &Path, errors: &mut ErrorList) {
    let operations = path.child("operations");
    if list(rule, "operations").is_empty() {
        errors.push(FieldError::required(&operations, ""));
    }
    let known = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
    for (at, operation) in list(rule, "operations").iter().filter_map(Value::as_str).enumerate() {
        if !known.contains(&operation) {
            errors.push(FieldError::not_supported(&operations.index(at), operation, &known));
        }
    }
    for (key, what) in [("apiGroups", "API groups"), ("apiVersions", "API versions")] {
        let values = list(rule, key);
        let path = path.child(key);
        if values.is_empty() {
            errors.push(FieldError::required(&path, ""));
        }
        if values.len() > 1 && values.iter().any(|value| value == "*") {
            let detail = format!("if '*' is present, must not specify other {what}");
            errors.push(FieldError::invalid(&path, values.to_vec(), detail));
        }
        for (at, _) in values.iter().enumerate().filter(|(_, value)| key == "apiVersions" && *value == "") {
            errors.push(FieldError::required(&path.index(at), ""));
        }
    }
    resources(rule, path, errors);
    if let Some(scope) = rule["scope"].as_str() {
        let known = ["*", "Cluster", "Namespaced"];
        if !known.contains(&scope) {
            errors.push(FieldError::not_supported(&path.child("scope"), scope, &known));
        }
    }
}

fn resources(rule: &Value, path: &Path, errors: &mut ErrorList) {
    let path = path.child("resources");
    let values: Vec<&str> = list(rule, "resources").iter().filter_map(Value::as_str).collect();
    if values.is_empty() {
        errors.push(FieldError::required(&path, ""));
    }
    for (at, value) in values.iter().enumerate() {
        wildcards(value, &values[..at], &path.index(at), errors);
    }
    let refuse = |detail: &str| FieldError::invalid(&path, list(rule, "resources").to_vec(), detail);
    if values.contains(&"*/*") && values.len() > 1 {
        errors.push(refuse("if '*/*' is present, must not specify other resources"));
    }
    if values.contains(&"*") && values.iter().any(|value| *value != "*" && !value.contains('/')) {
        errors.push(refuse("if '*' is present, must not specify other resources without subresources"));
    }
}

/// A resource that an earlier one with a wildcard includes.
fn wildcards(value: &str, before: &[&str], path: &Path, errors: &mut ErrorList) {
    if value.is_empty() {
        errors.push(FieldError::required(path, ""));
    }
    let Some((resource, sub)) = value.split_once('/') else { return };
    for wide in [format!("{resource}/*"), format!("*/{sub}")] {
        if before.contains(&wide.as_str()) {
            let detail = format!("if '{wide}' is present, must not specify {value}");
            errors.push(FieldError::invalid(path, value, detail));
        }
    }
}

/// Where a webhook is called.
pub(crate) fn client_config(config: &Value, path: &Path, errors: &mut ErrorList) {
    let (url, service) = (config["url"].as_str(), config["service"].is_object());
    if url.is_some() == service {
        errors.push(FieldError::required(path, "exactly one of url or service is required"));
        return;
    }
    if let Some(url) = url {
        check_url(url, &path.child("url"), errors);
        return;
    }
    let (service, path) = (&config["service"], path.child("service"));
    // The server asks for the one in the name of the other.
    for (key, named) in [("namespace", "name"), ("name", "namespace")] {
        if text(service, key).is_empty() {
            errors.push(FieldError::required(&path.child(named), ""));
        }
    }
    if let Some(port) = service["port"].as_i64()
        && !(1..=65535).contains(&port)
    {
        let detail = "port is not valid: must be between 1 and 65535, inclusive";
        errors.push(FieldError::invalid(&path.child("port"), port, detail));
    }
    if let Some(place) = service["path"].as_str() {
        service_path(place, &path.child("path"), errors);
    }
}

fn service_path(place: &str, path: &Path, errors: &mut ErrorList) {
    if place.is_empty() || place == "/" {
        return;
    }
    if !place.starts_with('/') {
        errors.push(FieldError::invalid(path, place, "must start with a '/'"));
    }
    let inner = place.trim_start_matches('/').trim_end_matches('/');
    for (at, segment) in inner.split('/').enumerate() {
        if segment.is_empty() {
            let detail = format!("segment[{at}] may not be empty");
            errors.push(FieldError::invalid(path, place, detail));
        }
        for fault in names::dns1123_subdomain(segment).into_iter().filter(|_| !segment.is_empty()) {
            errors.push(FieldError::invalid(path, place, format!("segment[{at}]: {fault}")));
        }
    }
}

fn check_url(url: &str, path: &Path, errors: &mut ErrorList) {
    const FORM: &str = "; desired format: https://host[/path]";
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    if scheme != "https" {
        let detail = format!("'https' is the only allowed URL scheme{FORM}");
        errors.push(FieldError::invalid(path, scheme, detail));
    }
    let (rest, fragment) = rest.split_once('#').map_or((rest, None), |(rest, f)| (rest, Some(f)));
    let (rest, query) = rest.split_once('?').map_or((rest, None), |(rest, q)| (rest, Some(q)));
    let authority = rest.split('/').next().unwrap_or_default();
    let (user, host) =
        authority.rsplit_once('@').map_or((None, authority), |(user, host)| (Some(user), host));
    if host.is_empty() {
        errors.push(FieldError::invalid(path, host, format!("host must be specified{FORM}")));
    }
    for (part, what) in [
        (user, "user information is not permitted in the URL"),
        (fragment, "fragments are not permitted in the URL"),
        (query, "query parameters are not permitted in the URL"),
    ] {
        if let Some(part) = part {
            errors.push(FieldError::invalid(path, part, what));
        }
    }
}

/// The names of match conditions.
fn condition_names(holder: &Value, path: &Path, errors: &mut ErrorList) {
    let conditions = list(holder, "matchConditions");
    for (at, condition) in conditions.iter().enumerate() {
        let path = path.child("matchConditions").index(at);
        let name = text(condition, "name");
        if !name.is_empty() && conditions[..at].iter().any(|other| text(other, "name") == name) {
            errors.push(FieldError::duplicate(&path.child("name"), name));
        }
        if text(condition, "expression").trim().is_empty() {
            errors.push(FieldError::required(&path.child("expression"), ""));
        }
        match text(condition, "name") {
            "" => errors.push(FieldError::required(&path.child("name"), "")),
            name => faulty(names::qualified_name(name), name, &path.child("name"), errors),
        }
    }
}

/// A `ValidatingAdmissionPolicy`.
pub(super) fn policy(spec: &Value, path: &Path, errors: &mut ErrorList) {
    choice(spec, "failurePolicy", &["Fail", "Ignore"], path, errors);
    if let Some(kind) = spec["paramKind"].as_object() {
        let path = path.child("paramKind");
        for key in ["apiVersion", "kind"] {
            if kind.get(key).and_then(Value::as_str).unwrap_or_default().is_empty() {
                errors.push(FieldError::required(&path.child(key), ""));
            }
        }
    }
    let constraints = path.child("matchConstraints");
    match &spec["matchConstraints"] {
        Value::Object(_) => matching(&spec["matchConstraints"], true, &constraints, errors),
        _ => errors.push(FieldError::required(&constraints, "")),
    }
    condition_names(spec, path, errors);
    for (at, variable) in list(spec, "variables").iter().enumerate() {
        let name = text(variable, "name");
        let path = path.child("variables").index(at).child("name");
        if name.is_empty() {
            errors.push(FieldError::required(&path, "name is not specified"));
        } else if !is_identifier(name) {
            errors.push(FieldError::invalid(&path, name, "must be a valid CEL identifier"));
        }
    }
    let (validations, annotations) = (list(spec, "validations"), list(spec, "auditAnnotations"));
    if validations.is_empty() && annotations.is_empty() {
        let detail = "validations or auditAnnotations must contain at least one item";
        errors.push(FieldError::required(&path.child("validations"), detail));
        errors.push(FieldError::required(&path.child("auditAnnotations"), detail));
    }
    for (at, validation) in validations.iter().enumerate() {
        let path = path.child("validations").index(at);
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
            one_rule(rule, &path.child(key).index(at), errors);
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
    if let Some(reference) = spec["paramRef"].as_object() {
        let path = path.child("paramRef");
        let name = reference.get("name").and_then(Value::as_str).unwrap_or_default();
        let selects = reference.get("selector").is_some_and(Value::is_object);
        if !name.is_empty() && selects {
            let detail = "name and selector are mutually exclusive";
            errors.push(FieldError::forbidden(&path.child("name"), detail));
            errors.push(FieldError::forbidden(&path.child("selector"), detail));
        } else if name.is_empty() && !selects {
            errors.push(FieldError::required(&path, "one of name or selector must be specified"));
        }
        if reference.get("parameterNotFoundAction").is_none_or(Value::is_null) {
            errors.push(FieldError::required(&path.child("parameterNotFoundAction"), ""));
        }
    }
    if spec["matchResources"].is_object() {
        matching(&spec["matchResources"], false, &path.child("matchResources"), errors);
    }
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

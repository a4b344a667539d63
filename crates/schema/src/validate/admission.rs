//! Webhook configurations, as far as they are not expressions.

use serde_json::Value;

use super::{faulty, list, names, selector, text};
use crate::{ErrorList, FieldError, Path};

const REVIEWS: [&str; 2] = ["v1", "v1beta1"];

/// A text that may be absent, or one of a few.
pub(super) fn choice(holder: &Value, key: &str, allowed: &[&str], path: &Path, errors: &mut ErrorList) {
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
pub(super) fn one_rule(rule: &Value, path: &Path, errors: &mut ErrorList) {
    let operations = path.child("operations");
    if list(rule, "operations").is_empty() {
        errors.push(FieldError::required(&operations, ""));
    }
    let all = list(rule, "operations");
    if all.len() > 1 && all.iter().any(|operation| operation == "*") {
        let detail = "if '*' is present, must not specify other operations";
        errors.push(FieldError::invalid(&operations, all.to_vec(), detail));
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
    // The first character is taken to be the slash.
    let mut rest = place.chars();
    rest.next();
    let inner = rest.as_str().strip_suffix('/').unwrap_or(rest.as_str());
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
    // Without a scheme all is a path.
    let (scheme, rest) = url.split_once("://").unwrap_or(("", ""));
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
pub(super) fn condition_names(holder: &Value, path: &Path, errors: &mut ErrorList) {
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

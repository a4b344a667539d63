//! Flow schemas and priority levels of API Priority and Fairness.

use serde_json::Value;

use super::{faulty, list, names, text};
use crate::{ErrorList, FieldError, Path};

/// Verbs that a rule may name, in the order in which errors list them.
const VERBS: [&str; 8] = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
/// Most queues of a priority level.
const MOST_QUEUES: i64 = 10_000_000;

/// A `FlowSchema`.
pub(super) fn schema(object: &Value, errors: &mut ErrorList) {
    let (spec, path) = (&object["spec"], Path::new("spec"));
    let precedence = spec["matchingPrecedence"].as_i64().unwrap_or_default();
    let place = path.child("matchingPrecedence");
    if precedence <= 0 {
        errors.push(FieldError::invalid(&place, precedence, "must be a positive value"));
    }
    if precedence > 10_000 {
        errors.push(FieldError::invalid(&place, precedence, "must not be greater than 10000"));
    }
    if precedence == 1 && object["metadata"]["name"] != "exempt" {
        let detail = "only the schema named 'exempt' may have matchingPrecedence 1";
        errors.push(FieldError::invalid(&place, precedence, detail));
    }
    if spec["distinguisherMethod"].is_object() {
        let kind = text(&spec["distinguisherMethod"], "type");
        if !matches!(kind, "ByNamespace" | "ByUser") {
            let path = path.child("distinguisherMethod").child("type");
            let shown = format!("{{\"Type\":{}}}", Value::from(kind));
            let fault = FieldError::not_supported(&path, kind, &["ByNamespace", "ByUser"]);
            errors.push(fault.shown_as(shown));
        }
    }
    let level = text(&spec["priorityLevelConfiguration"], "name");
    let place = path.child("priorityLevelConfiguration").child("name");
    match level {
        "" => errors.push(FieldError::required(&place, "must reference a priority level")),
        _ => faulty(names::dns1123_subdomain(level), level, &place, errors),
    }
    for (at, rule) in list(spec, "rules").iter().enumerate() {
        policy_rule(rule, &path.child("rules").index(at), errors);
    }
}

fn policy_rule(rule: &Value, path: &Path, errors: &mut ErrorList) {
    let subjects = list(rule, "subjects");
    if subjects.is_empty() {
        errors
            .push(FieldError::required(&path.child("subjects"), "subjects must contain at least one value"));
    }
    for (at, subject) in subjects.iter().enumerate() {
        one_subject(subject, &path.child("subjects").index(at), errors);
    }
    let (resources, others) = (list(rule, "resourceRules"), list(rule, "nonResourceRules"));
    if resources.is_empty() && others.is_empty() {
        let detail = "at least one of resourceRules and nonResourceRules has to be non-empty";
        errors.push(FieldError::required(path, detail));
    }
    for (at, rule) in resources.iter().enumerate() {
        resource_rule(rule, &path.child("resourceRules").index(at), errors);
    }
    for (at, rule) in others.iter().enumerate() {
        other_rule(rule, &path.child("nonResourceRules").index(at), errors);
    }
}

fn one_subject(subject: &Value, path: &Path, errors: &mut ErrorList) {
    const KINDS: [(&str, &str); 3] =
        [("ServiceAccount", "serviceAccount"), ("User", "user"), ("Group", "group")];
    let kind = text(subject, "kind");
    let Some((_, own)) = KINDS.into_iter().find(|(name, _)| *name == kind) else {
        errors.push(FieldError::not_supported(
            &path.child("kind"),
            kind,
            &["Group", "ServiceAccount", "User"],
        ));
        return;
    };
    let place = path.child(own);
    if subject[own].is_object() {
        named_subject(&subject[own], own, &place, errors);
    } else {
        errors.push(FieldError::required(&place, format!("{own} is required when subject kind is '{kind}'")));
    }
    for (other, field) in KINDS.into_iter().filter(|(_, field)| *field != own && subject[*field].is_object())
    {
        let detail = format!("{field} is forbidden when subject kind is not '{other}'");
        errors.push(FieldError::forbidden(&path.child(field), detail));
    }
}

fn named_subject(subject: &Value, kind: &str, path: &Path, errors: &mut ErrorList) {
    let name = text(subject, "name");
    if name.is_empty() {
        errors.push(FieldError::required(&path.child("name"), ""));
    } else if kind == "serviceAccount" && name != "*" {
        faulty(names::dns1123_subdomain(name), name, &path.child("name"), errors);
    }
    if kind == "serviceAccount" {
        let path = path.child("namespace");
        match text(subject, "namespace") {
            "" => errors.push(FieldError::required(&path, "must specify namespace for service account")),
            namespace => faulty(names::dns1123_label(namespace), namespace, &path, errors),
        }
    }
}

/// A list that must not be empty, and in which `*` stands alone. Says whether its members are to be looked
/// at.
fn alone(rule: &Value, key: &str, [missing, what]: [&str; 2], path: &Path, errors: &mut ErrorList) -> bool {
    let values = list(rule, key);
    let any = values.iter().any(|value| value == "*");
    if values.is_empty() {
        errors.push(FieldError::required(&path.child(key), missing));
    } else if any && values.len() > 1 {
        let detail = format!("if '*' is present, must not specify other {what}");
        errors.push(FieldError::invalid(&path.child(key), values.to_vec(), detail));
    }
    !values.is_empty() && !any
}

fn verbs(rule: &Value, path: &Path, errors: &mut ErrorList) {
    let known = |verb: &Value| verb.as_str().is_some_and(|verb| VERBS.contains(&verb) || verb == "proxy");
    if alone(rule, "verbs", ["verbs must contain at least one value", "verbs"], path, errors)
        && !list(rule, "verbs").iter().all(known)
    {
        let mut all = VERBS.to_vec();
        all.insert(6, "proxy");
        errors.push(FieldError::not_supported(&path.child("verbs"), list(rule, "verbs").to_vec(), &all));
    }
}

fn resource_rule(rule: &Value, path: &Path, errors: &mut ErrorList) {
    verbs(rule, path, errors);
    alone(
        rule,
        "apiGroups",
        ["resource rules must supply at least one api group", "api groups"],
        path,
        errors,
    );
    alone(rule, "resources", ["resource rules must supply at least one resource", "resources"], path, errors);
    if list(rule, "namespaces").is_empty() && rule["clusterScope"] == true {
        return;
    }
    let texts =
        ["resource rules that are not cluster scoped must supply at least one namespace", "namespaces"];
    if alone(rule, "namespaces", texts, path, errors) {
        for (at, namespace) in list(rule, "namespaces").iter().filter_map(Value::as_str).enumerate() {
            for fault in names::dns1123_label(namespace) {
                let detail = format!("each member of this list must be '*' or a DNS-1123 label; {fault}");
                errors.push(FieldError::invalid(&path.child("namespaces").index(at), namespace, detail));
            }
        }
    }
}

fn other_rule(rule: &Value, path: &Path, errors: &mut ErrorList) {
    verbs(rule, path, errors);
    let texts = ["nonResourceURLs must contain at least one value", "non-resource URLs"];
    if alone(rule, "nonResourceURLs", texts, path, errors) {
        for (at, url) in list(rule, "nonResourceURLs").iter().filter_map(Value::as_str).enumerate() {
            if let Some(detail) = url_fault(url) {
                errors.push(FieldError::invalid(&path.child("nonResourceURLs").index(at), url, detail));
            }
        }
    }
}

/// What is wrong with a path that is no resource's.
fn url_fault(url: &str) -> Option<&'static str> {
    let wildcards = url.matches('*').count();
    match () {
        () if url.is_empty() => Some("must not be empty"),
        () if url == "/" => None,
        () if !url.starts_with('/') => Some("must start with slash"),
        () if url.contains(' ') => Some("must not contain white-space"),
        () if url.contains("//") => Some("must not contain double slash"),
        () if wildcards > 1 || wildcards == 1 && !url.ends_with("/*") => {
            Some("wildcard can only do suffix matching")
        }
        () => None,
    }
}

/// A `PriorityLevelConfiguration`.
pub(super) fn level(object: &Value, errors: &mut ErrorList) {
    let (spec, path) = (&object["spec"], Path::new("spec"));
    let kind = text(spec, "type");
    if (object["metadata"]["name"] == "exempt") != (kind == "Exempt") {
        let detail = "must be 'Exempt' if and only if `name` is 'exempt'";
        errors.push(FieldError::invalid(&path.child("type"), kind, detail));
    }
    match kind {
        "Exempt" => {
            if spec["limited"].is_object() {
                let detail = "must be nil if the type is not Limited";
                errors.push(FieldError::forbidden(&path.child("limited"), detail));
            }
            shares(&spec["exempt"], &path.child("exempt"), errors);
        }
        "Limited" => {
            if spec["exempt"].is_object() {
                errors
                    .push(FieldError::forbidden(&path.child("exempt"), "must be nil if the type is Limited"));
            }
            match spec["limited"].is_object() {
                true => limited(&spec["limited"], &path.child("limited"), errors),
                false => {
                    let detail = "must not be empty when type is Limited";
                    errors.push(FieldError::required(&path.child("limited"), detail));
                }
            }
        }
        _ => errors.push(FieldError::not_supported(&path.child("type"), kind, &["Exempt", "Limited"])),
    }
}

fn shares(level: &Value, path: &Path, errors: &mut ErrorList) {
    own_shares(level, path, errors);
    lendable(level, path, errors);
}

fn own_shares(level: &Value, path: &Path, errors: &mut ErrorList) {
    if let Some(shares) = level["nominalConcurrencyShares"].as_i64().filter(|shares| *shares < 0) {
        let path = path.child("nominalConcurrencyShares");
        errors.push(FieldError::invalid(&path, shares, "must be a non-negative integer"));
    }
}

fn lendable(level: &Value, path: &Path, errors: &mut ErrorList) {
    if let Some(part) = level["lendablePercent"].as_i64().filter(|part| !(0..=100).contains(part)) {
        let path = path.child("lendablePercent");
        errors.push(FieldError::invalid(&path, part, "must be between 0 and 100, inclusive"));
    }
}

fn limited(level: &Value, path: &Path, errors: &mut ErrorList) {
    own_shares(level, path, errors);
    let response = path.child("limitResponse");
    let given = &level["limitResponse"];
    let queuing = response.child("queuing");
    match (text(given, "type"), given["queuing"].is_object()) {
        ("Reject", true) => {
            let detail = "must be nil if limited.limitResponse.type is not Limited";
            errors.push(FieldError::forbidden(&queuing, detail));
        }
        ("Reject", false) => {}
        ("Queue", true) => queues(&given["queuing"], &queuing, errors),
        ("Queue", false) => {
            let detail = "must not be empty if limited.limitResponse.type is Limited";
            errors.push(FieldError::required(&queuing, detail));
        }
        (kind, _) => {
            errors.push(FieldError::not_supported(&response.child("type"), kind, &["Queue", "Reject"]));
        }
    }
    lendable(level, path, errors);
    if let Some(part) = level["borrowingLimitPercent"].as_i64().filter(|part| *part < 0) {
        let detail = "if specified, must be a non-negative integer";
        errors.push(FieldError::invalid(&path.child("borrowingLimitPercent"), part, detail));
    }
}

fn queues(queuing: &Value, path: &Path, errors: &mut ErrorList) {
    let number = |key: &str| queuing[key].as_i64().unwrap_or_default();
    let (length, queues, hand) = (number("queueLengthLimit"), number("queues"), number("handSize"));
    if length <= 0 {
        errors.push(FieldError::invalid(&path.child("queueLengthLimit"), length, "must be positive"));
    }
    if queues <= 0 {
        errors.push(FieldError::invalid(&path.child("queues"), queues, "must be positive"));
    } else if queues > MOST_QUEUES {
        let detail = format!("must not be greater than {MOST_QUEUES}");
        errors.push(FieldError::invalid(&path.child("queues"), queues, detail));
    }
    let path = path.child("handSize");
    if hand <= 0 {
        errors.push(FieldError::invalid(&path, hand, "must be positive"));
    } else if hand > queues {
        let detail = format!("should not be greater than queues ({queues})");
        errors.push(FieldError::invalid(&path, hand, detail));
    } else {
        // Each card of a hand is drawn with the bits that the rest of the deck needs.
        let per_card = |card: i64| f64::log2((queues - card) as f64);
        let bits = (0..hand.min(1024)).map(per_card).sum::<f64>().ceil() as i64;
        if bits > 60 {
            let detail = format!(
                "required entropy bits of deckSize {queues} and handSize {hand} should not be greater than 60"
            );
            errors.push(FieldError::invalid(&path, hand, detail));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn levels_and_schemas_are_looked_through() {
        let mut errors = ErrorList::new();
        let queuing = json!({"queues": 4, "handSize": 5, "queueLengthLimit": 1});
        level(
            &json!({"metadata": {"name": "a"}, "spec": {"type": "Limited", "limited": {
            "lendablePercent": 101, "limitResponse": {"type": "Queue", "queuing": queuing}}}}),
            &mut errors,
        );
        let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            [
                "spec.limited.limitResponse.queuing.handSize: Invalid value: 5: should not be greater than queues (4)",
                "spec.limited.lendablePercent: Invalid value: 101: must be between 0 and 100, inclusive",
            ]
        );
        let mut errors = ErrorList::new();
        let subject = json!({"kind": "User", "group": {"name": "g"}});
        schema(
            &json!({"metadata": {"name": "a"}, "spec": {"matchingPrecedence": 2, "priorityLevelConfiguration":
            {"name": "p"}, "rules": [{"subjects": [subject], "resourceRules": [{"verbs": ["fly"], "apiGroups": ["*", "a"],
            "resources": ["pods"], "clusterScope": true}]}]}}),
            &mut errors,
        );
        let fields: Vec<&str> = errors.iter().map(|error| error.field.as_str()).collect();
        assert_eq!(
            fields,
            [
                "spec.rules[0].subjects[0].user",
                "spec.rules[0].subjects[0].group",
                "spec.rules[0].resourceRules[0].verbs",
                "spec.rules[0].resourceRules[0].apiGroups",
            ]
        );
    }
}

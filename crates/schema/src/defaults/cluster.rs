//! Access control, admission and API extension.

use serde_json::json;

use super::{Object, child, each, set, set_text, text};

const RBAC: &str = "rbac.authorization.k8s.io";
/// The port of webhooks and API services when none is given.
const HTTPS: i32 = 443;

pub(super) fn role_binding(object: &mut Object) {
    if let Some(reference) = child(object, "roleRef") {
        set_text(reference, "apiGroup", RBAC);
    }
    for subject in each(object, "subjects") {
        if matches!(text(subject, "kind"), "User" | "Group") {
            set_text(subject, "apiGroup", RBAC);
        }
    }
}

pub(super) fn priority_class(object: &mut Object) {
    set(object, "preemptionPolicy", "PreemptLowerPriority");
}

pub(super) fn admission(kind: &str, object: &mut Object) {
    match kind {
        "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration" => {
            for hook in each(object, "webhooks") {
                webhook(hook);
                if kind.starts_with('M') {
                    set(hook, "reinvocationPolicy", "Never");
                }
            }
        }
        "ValidatingAdmissionPolicy" | "MutatingAdmissionPolicy" => {
            let Some(spec) = child(object, "spec") else { return };
            set(spec, "failurePolicy", "Fail");
            if let Some(matched) = child(spec, "matchConstraints") {
                match_resources(matched);
            }
        }
        "ValidatingAdmissionPolicyBinding" | "MutatingAdmissionPolicyBinding" => {
            if let Some(matched) = child(object, "spec").and_then(|spec| child(spec, "matchResources")) {
                match_resources(matched);
            }
        }
        _ => {}
    }
}

pub(super) fn flow_control(kind: &str, object: &mut Object) {
    let Some(spec) = child(object, "spec") else { return };
    if kind == "FlowSchema" {
        if spec.get("matchingPrecedence").and_then(serde_json::Value::as_i64).unwrap_or_default() == 0 {
            spec.insert("matchingPrecedence".into(), 1000.into());
        }
        return;
    }
    if let Some(exempt) = child(spec, "exempt") {
        set(exempt, "nominalConcurrencyShares", 0);
        set(exempt, "lendablePercent", 0);
    }
    let Some(limited) = child(spec, "limited") else { return };
    set(limited, "nominalConcurrencyShares", 30);
    set(limited, "lendablePercent", 0);
    let queuing = child(limited, "limitResponse").and_then(|response| child(response, "queuing"));
    let Some(queuing) = queuing else { return };
    for (key, number) in [("handSize", 8), ("queues", 64), ("queueLengthLimit", 50)] {
        if queuing.get(key).and_then(serde_json::Value::as_i64).unwrap_or_default() == 0 {
            queuing.insert(key.into(), number.into());
        }
    }
}

fn webhook(hook: &mut Object) {
    set(hook, "failurePolicy", "Fail");
    set(hook, "timeoutSeconds", 10);
    match_resources(hook);
    if let Some(service) = child(hook, "clientConfig").and_then(|client| child(client, "service")) {
        set(service, "port", HTTPS);
    }
}

fn match_resources(matched: &mut Object) {
    set(matched, "matchPolicy", "Equivalent");
    set(matched, "namespaceSelector", json!({}));
    set(matched, "objectSelector", json!({}));
    for list in ["rules", "resourceRules", "excludeResourceRules"] {
        each(matched, list).for_each(|rule| set(rule, "scope", "*"));
    }
}

pub(super) fn custom_resource_definition(object: &mut Object) {
    let Some(spec) = child(object, "spec") else { return };
    if let Some(names) = child(spec, "names") {
        let kind = text(names, "kind").to_owned();
        set_text(names, "singular", &kind.to_lowercase());
        if !kind.is_empty() {
            set_text(names, "listKind", &format!("{kind}List"));
        }
    }
    // Only what is not there is made: a conversion without a strategy is refused.
    set(spec, "conversion", json!({"strategy": "None"}));
    let Some(conversion) = child(spec, "conversion") else { return };
    let client = child(conversion, "webhook").and_then(|hook| child(hook, "clientConfig"));
    if let Some(service) = client.and_then(|client| child(client, "service")) {
        set(service, "port", HTTPS);
    }
}

pub(super) fn api_service(object: &mut Object) {
    if let Some(service) = child(object, "spec").and_then(|spec| child(spec, "service")) {
        set(service, "port", HTTPS);
    }
}

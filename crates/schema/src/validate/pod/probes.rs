//! Probes and lifecycle hooks.

use serde_json::Value;

use super::{faulty, list, names, not_negative_field, text};
use crate::{ErrorList, FieldError, Path};

/// A container's three probes.
pub(super) fn probes(container: &Value, path: &Path, errors: &mut ErrorList) {
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if container[name].is_object() {
            probe(&container[name], name == "readinessProbe", &path.child(name), errors);
        }
    }
}

fn probe(probe: &Value, is_readiness: bool, path: &Path, errors: &mut ErrorList) {
    handler(probe, &["exec", "httpGet", "tcpSocket", "grpc"], None, path, errors);
    for field in
        ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"]
    {
        not_negative_field(probe, field, path, errors);
    }
    let (grace, place) =
        (&probe["terminationGracePeriodSeconds"], path.child("terminationGracePeriodSeconds"));
    if let Some(seconds) = grace.as_i64().filter(|seconds| *seconds <= 0) {
        errors.push(FieldError::invalid(&place, seconds, "must be greater than 0"));
    }
    let threshold = probe["successThreshold"].as_i64().unwrap_or_default();
    if is_readiness {
        if !grace.is_null() {
            let detail = "must not be set for readinessProbes";
            errors.push(FieldError::invalid(&place, grace.clone(), detail));
        }
    } else if threshold != 1 {
        errors.push(FieldError::invalid(&path.child("successThreshold"), threshold, "must be 1"));
    }
}

/// A container's hooks.
pub(super) fn lifecycle(container: &Value, spec: &Value, path: &Path, errors: &mut ErrorList) {
    let grace = spec["terminationGracePeriodSeconds"].as_i64();
    for hook in ["postStart", "preStop"] {
        let hook_handler = &container["lifecycle"][hook];
        if hook_handler.is_object() {
            handler(
                hook_handler,
                &["exec", "httpGet", "tcpSocket", "sleep"],
                grace,
                &path.child(hook),
                errors,
            );
        }
    }
}

/// One of several ways to do something.
fn handler(handler: &Value, kinds: &[&str], grace: Option<i64>, path: &Path, errors: &mut ErrorList) {
    let given: Vec<&str> = kinds.iter().copied().filter(|kind| handler[*kind].is_object()).collect();
    let Some(first) = given.first() else {
        errors.push(FieldError::required(path, "must specify a handler type"));
        return;
    };
    let (action, place) = (&handler[*first], path.child(first));
    match *first {
        "exec" if list(action, "command").is_empty() => {
            errors.push(FieldError::required(&place.child("command"), ""));
        }
        "exec" => {}
        "httpGet" => http_get(action, &place, errors),
        "sleep" => {
            let seconds = action["seconds"].as_i64().unwrap_or_default();
            if let Some(grace) = grace.filter(|grace| !(0..=*grace).contains(&seconds)) {
                let detail =
                    format!("must be non-negative and less than terminationGracePeriodSeconds ({grace})");
                errors.push(FieldError::invalid(&place, seconds, detail));
            }
        }
        _ => port(&action["port"], &place.child("port"), errors),
    }
    for extra in given.iter().skip(1) {
        errors.push(FieldError::forbidden(&path.child(extra), "may not specify more than 1 handler type"));
    }
}

fn http_get(action: &Value, path: &Path, errors: &mut ErrorList) {
    if text(action, "path").is_empty() {
        errors.push(FieldError::required(&path.child("path"), ""));
    }
    port(&action["port"], &path.child("port"), errors);
    let (scheme, known) = (text(action, "scheme"), ["HTTP", "HTTPS"]);
    if !known.contains(&scheme) {
        errors.push(FieldError::not_supported(&path.child("scheme"), scheme, &known));
    }
    for header in list(action, "httpHeaders") {
        let name = text(header, "name");
        faulty(names::http_header(name), name, &path.child("httpHeaders"), errors);
    }
}

/// A port's number or name.
pub(super) fn port(port: &Value, path: &Path, errors: &mut ErrorList) {
    match port {
        Value::String(name) => faulty(names::port_name(name), name, path, errors),
        number => {
            let number = number.as_i64().unwrap_or_default();
            let faults = names::port_number(number);
            errors.extend(faults.into_iter().map(|fault| FieldError::invalid(path, number, fault)));
        }
    }
}

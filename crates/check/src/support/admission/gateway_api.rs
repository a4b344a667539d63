//! Limits and rules of the Gateway API's definitions (Gateway API reference, `x-kubernetes-validations`).

use tiphys_value::{FieldPath, ObjectExt, Value};

use super::refused_fields::Refusals;
use crate::support::{
    field_paths::keys,
    placeholders,
    pods::{list, text},
};

pub(super) fn check(kind: &str, spec: &Value, found: &mut Refusals) {
    match kind {
        "HTTPRoute" => http_route(spec, found),
        "Gateway" => gateway(spec, found),
        _ => {}
    }
    if kind.ends_with("Route") {
        parents(spec, found);
        let named = list(spec, "hostnames").iter().enumerate();
        named.for_each(|(at, host)| hostname(host, &keys(&["spec", "hostnames"]).index(at), found));
        found.longer(list(spec, "parentRefs"), MOST_PARENTS, &keys(&["spec", "parentRefs"]));
    }
}

const MOST_PARENTS: usize = 32;
const MOST_FILTERS: usize = 16;
/// The largest weight of a backend.
const MOST_WEIGHT: i64 = 1_000_000;

/// A hostname is a name of the DNS, which may begin with `*.`: without port, path or scheme.
fn hostname(host: &Value, field: &FieldPath, found: &mut Refusals) {
    let Some(host) = host.as_str().filter(|host| !placeholders::is_in(host)) else { return };
    let is_label = |label: &str| {
        let ends = |c: Option<char>| c.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
        let inside = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        ends(label.chars().next()) && ends(label.chars().last()) && label.chars().all(inside)
    };
    if !host.strip_prefix("*.").unwrap_or(host).split('.').all(is_label) {
        let message = format!(
            "Invalid value: {host:?}: should match the form of a name of the DNS, such as *.example.com"
        );
        found.add(field.clone(), message);
    }
}

fn http_route(spec: &Value, found: &mut Refusals) {
    const MOST_HOSTS: usize = 16;
    const MOST_RULES: usize = 16;
    const MOST_MATCHES: usize = 64;
    const MOST_BACKENDS: usize = 16;
    found.longer(list(spec, "hostnames"), MOST_HOSTS, &keys(&["spec", "hostnames"]));
    found.longer(list(spec, "rules"), MOST_RULES, &keys(&["spec", "rules"]));
    for (at, rule) in list(spec, "rules").iter().enumerate() {
        let place = keys(&["spec", "rules"]).index(at);
        found.longer(list(rule, "matches"), MOST_MATCHES, &place.key("matches"));
        found.longer(list(rule, "backendRefs"), MOST_BACKENDS, &place.key("backendRefs"));
        found.longer(list(rule, "filters"), MOST_FILTERS, &place.key("filters"));
        paths(rule, &place, found);
        filters(rule, &place, found);
        for (number, backend) in list(rule, "backendRefs").iter().enumerate() {
            let is_service =
                matches!(text(backend, "kind"), "" | "Service") && text(backend, "group").is_empty();
            if is_service && backend.get("port").is_none() {
                let field = place.key("backendRefs").index(number);
                found.add(field, "Invalid value: Must have port for Service reference");
            }
            if backend["weight"].as_i64().is_some_and(|weight| !(0..=MOST_WEIGHT).contains(&weight)) {
                let field = place.key("backendRefs").index(number).key("weight");
                found.add(field, format!("Invalid value: should be between 0 and {MOST_WEIGHT}"));
            }
        }
    }
}

/// Paths that are compared as they are have to be absolute.
fn paths(rule: &Value, place: &FieldPath, found: &mut Refusals) {
    for (at, one) in list(rule, "matches").iter().enumerate() {
        let Some(path) = one.get("path") else { continue };
        let (kind, value) = (path.str_at(&["type"]).unwrap_or("PathPrefix"), path.str_at(&["value"]));
        let Some(value) = value.filter(|_| matches!(kind, "Exact" | "PathPrefix")) else { continue };
        let field = place.key("matches").index(at).key("path").key("value");
        if !value.starts_with('/') {
            found.add(field, "Invalid value: value must be an absolute path and start with '/'");
        } else if value.contains("//") {
            found.add(field, "Invalid value: must not contain '//'");
        }
    }
}

fn filters(rule: &Value, place: &FieldPath, found: &mut Refusals) {
    const ONCE: [&str; 4] =
        ["RequestHeaderModifier", "ResponseHeaderModifier", "RequestRedirect", "URLRewrite"];
    let filters = list(rule, "filters");
    let field = place.key("filters");
    let of = |kind: &str| filters.iter().filter(|it| text(it, "type") == kind).count();
    for kind in ONCE.into_iter().filter(|kind| of(kind) > 1) {
        found.add(field.clone(), format!("Invalid value: {kind} filter cannot be repeated"));
    }
    if of("RequestRedirect") > 0 && of("URLRewrite") > 0 {
        found.add(field.clone(), "Invalid value: RequestRedirect and URLRewrite cannot be used together");
    }
    if of("RequestRedirect") > 0 && !list(rule, "backendRefs").is_empty() {
        let message = "Invalid value: RequestRedirect filter must not be used together with backendRefs";
        found.add(place.key("backendRefs"), message);
    }
    for (at, filter) in filters.iter().enumerate() {
        let (own, name) = match text(filter, "type") {
            "RequestHeaderModifier" => ("requestHeaderModifier", "RequestHeaderModifier"),
            "ResponseHeaderModifier" => ("responseHeaderModifier", "ResponseHeaderModifier"),
            "RequestRedirect" => ("requestRedirect", "RequestRedirect"),
            "URLRewrite" => ("urlRewrite", "URLRewrite"),
            "RequestMirror" => ("requestMirror", "RequestMirror"),
            "ExtensionRef" => ("extensionRef", "ExtensionRef"),
            _ => continue,
        };
        if filter.get(own).is_none() {
            let message = format!("Invalid value: filter.{own} must be specified for {name} filter.type");
            found.add(field.index(at), message);
        }
        let replaces = filter.at(&[own, "path", "replacePrefixMatch"]).is_some();
        if replaces && !has_one_prefix(list(rule, "matches")) {
            let message = format!(
                "Invalid value: When using {name} filter with path.replacePrefixMatch, exactly one PathPrefix match must be specified"
            );
            found.add(field.index(at).key(own).key("path"), message);
        }
    }
}

/// Whether the matches of a rule are one, by the beginning of a path; without any, that is the default.
fn has_one_prefix(matches: &[Value]) -> bool {
    match matches {
        [] => true,
        [only] => only.get("path").is_some_and(|path| matches!(text(path, "type"), "" | "PathPrefix")),
        _ => false,
    }
}

/// Two references to one parent have to name two of its sections.
fn parents(spec: &Value, found: &mut Refusals) {
    let all = list(spec, "parentRefs");
    let identity =
        |it: &Value| ["group", "kind", "namespace", "name"].map(|field| text(it, field).to_owned());
    for (at, one) in all.iter().enumerate() {
        for other in &all[..at] {
            let same_port = one.get("port") == other.get("port");
            if identity(one) == identity(other)
                && same_port
                && text(one, "sectionName") == text(other, "sectionName")
            {
                let message = "Invalid value: sectionName must be unique when parentRefs includes 2 or more references to the same parent";
                found.add(keys(&["spec", "parentRefs"]).index(at), message);
                return;
            }
        }
    }
}

fn gateway(spec: &Value, found: &mut Refusals) {
    const MOST: usize = 64;
    let listeners = list(spec, "listeners");
    let place = keys(&["spec", "listeners"]);
    found.longer(listeners, MOST, &place);
    found.repeated(
        listeners.iter().enumerate().map(|(at, it)| (place.index(at).key("name"), text(it, "name"))),
        |_| "Invalid value: Listener name must be unique within the Gateway".to_owned(),
    );
    let ends = listeners.iter().map(|it| {
        let port = it["port"].as_i64().unwrap_or_default();
        format!("{port} {} {}", text(it, "protocol"), text(it, "hostname"))
    });
    let ends: Vec<String> = ends.collect();
    found.repeated(ends.iter().enumerate().map(|(at, it)| (place.index(at), it.as_str())), |_| {
        "Invalid value: Combination of port, protocol and hostname must be unique for each listener"
            .to_owned()
    });
    for (at, listener) in listeners.iter().enumerate() {
        if let Some(host) = listener.get("hostname").filter(|host| host.as_str() != Some("")) {
            hostname(host, &place.index(at).key("hostname"), found);
        }
        let protocol = text(listener, "protocol");
        let tls = listener.get("tls").filter(|tls| tls.is_object());
        if tls.is_some() && matches!(protocol, "HTTP" | "TCP" | "UDP") {
            let message = "Invalid value: tls must not be specified for protocols ['HTTP', 'TCP', 'UDP']";
            found.add(place.index(at).key("tls"), message);
        }
        let Some(tls) = tls else { continue };
        let mode = tls.str_at(&["mode"]).unwrap_or("Terminate");
        if protocol == "HTTPS" && mode != "Terminate" {
            let message = "Invalid value: tls mode must be Terminate for protocol HTTPS";
            found.add(place.index(at).key("tls").key("mode"), message);
        }
        let has_none = list(tls, "certificateRefs").is_empty() && tls.get("options").is_none();
        if mode == "Terminate" && has_none {
            let message =
                "Invalid value: certificateRefs or options must be specified when mode is Terminate";
            found.add(place.index(at).key("tls"), message);
        }
    }
}

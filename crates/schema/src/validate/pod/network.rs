//! What a pod has of the network: name servers, host names, ports of the node.

use serde_json::Value;

use super::{faulty, list, names, text};
use crate::{ErrorList, FieldError, Path, validate::small_kinds};

const MOST_SERVERS: usize = 3;
const MOST_SEARCHES: usize = 32;
const LONGEST_SEARCHES: usize = 2048;

/// A pod's `dnsConfig`.
pub(super) fn dns(spec: &Value, path: &Path, errors: &mut ErrorList) {
    let config = &spec["dnsConfig"];
    let (servers, searches) = (list(config, "nameservers"), list(config, "searches"));
    if spec["dnsPolicy"] == "None" && !config.is_object() {
        errors.push(FieldError::required(path, "must provide `dnsConfig` when `dnsPolicy` is None"));
        return;
    }
    let place = path.child("nameservers");
    if spec["dnsPolicy"] == "None" && servers.is_empty() {
        let detail = "must provide at least one DNS nameserver when `dnsPolicy` is None";
        errors.push(FieldError::required(&place, detail));
        return;
    }
    if servers.len() > MOST_SERVERS {
        let detail = format!("must not have more than {MOST_SERVERS} nameservers");
        errors.push(FieldError::invalid(&place, config["nameservers"].clone(), detail));
    }
    for (at, server) in servers.iter().enumerate() {
        small_kinds::address(server.as_str().unwrap_or_default(), &place.index(at), errors);
    }
    let place = path.child("searches");
    if searches.len() > MOST_SEARCHES {
        let detail = format!("must not have more than {MOST_SEARCHES} search paths");
        errors.push(FieldError::invalid(&place, config["searches"].clone(), detail));
    }
    let length = searches.iter().map(|search| search.as_str().map_or(0, str::len) + 1).sum::<usize>();
    if length.saturating_sub(1) > LONGEST_SEARCHES {
        let detail = format!(
            "must not have more than {LONGEST_SEARCHES} characters (including spaces) in the search list"
        );
        errors.push(FieldError::invalid(&place, config["searches"].clone(), detail));
    }
    for (at, search) in searches.iter().filter_map(Value::as_str).enumerate() {
        if search != "." {
            let search = search.strip_suffix('.').unwrap_or(search);
            faulty(names::dns1123_subdomain_with_underscore(search), search, &place.index(at), errors);
        }
    }
    for (at, option) in list(config, "options").iter().enumerate() {
        if text(option, "name").is_empty() {
            errors.push(FieldError::required(&path.child("options").index(at), "must not be empty"));
        }
    }
}

/// A pod's `hostAliases`.
pub(super) fn host_aliases(aliases: &[Value], path: &Path, errors: &mut ErrorList) {
    for (at, alias) in aliases.iter().enumerate() {
        let path = path.index(at);
        small_kinds::address(text(alias, "ip"), &path.child("ip"), errors);
        for (at, name) in list(alias, "hostnames").iter().filter_map(Value::as_str).enumerate() {
            faulty(names::dns1123_subdomain(name), name, &path.child("hostnames").index(at), errors);
        }
    }
}

/// In the node's network a container's port is the node's; in a template it may be left out.
pub(super) fn host_ports(spec: &Value, is_pod: bool, path: &Path, errors: &mut ErrorList) {
    if spec["hostNetwork"] != true {
        return;
    }
    for (at, container) in list(spec, "containers").iter().enumerate() {
        for (index, port) in list(container, "ports").iter().enumerate() {
            let [host, own] =
                ["hostPort", "containerPort"].map(|field| port[field].as_i64().unwrap_or_default());
            if (is_pod || host != 0) && host != own {
                let path = path.child("containers").index(at).child("ports").index(index).child("hostPort");
                let detail = "must match `containerPort` when `hostNetwork` is true";
                errors.push(FieldError::invalid(&path, host, detail));
            }
        }
    }
}

/// A pod's `hostnameOverride`.
pub(super) fn hostname_override(spec: &Value, path: &Path, errors: &mut ErrorList) {
    const LONGEST: usize = 64;
    let Some(name) = spec["hostnameOverride"].as_str() else { return };
    if spec["setHostnameAsFQDN"] == true {
        errors.push(FieldError::forbidden(path, "may not be specified when setHostnameAsFQDN is true"));
    }
    if spec["hostNetwork"] == true {
        errors.push(FieldError::forbidden(path, "may not be specified when hostNetwork is true"));
    }
    if name.len() > LONGEST {
        errors.push(FieldError::too_long(path, LONGEST));
    }
    faulty(names::dns1123_subdomain(name), name, path, errors);
}

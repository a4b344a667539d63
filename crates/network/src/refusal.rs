//! What Cilium's agents refuse in policies that the API server took: such a policy does nothing, and only its
//! status and the agents' logs say so (Cilium, `pkg/policy/api`, `Rule.Sanitize`).

use std::net::IpAddr;

use ipnet::IpNet;
use serde_json::Value;
use tiphys_value::{FieldPath, ObjectExt};

use crate::{kubernetes::filled, object::Object};

/// The most ports in one entry of `toPorts`.
const MOST_PORTS: usize = 40;

/// Why agents refuse a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The field that is at fault.
    pub field: FieldPath,
    /// The agents' words.
    pub message: String,
}

/// Which of the four lists of a rule is looked at.
#[derive(Clone, Copy)]
struct List {
    name: &'static str,
    is_ingress: bool,
}

const LISTS: [List; 4] = [
    List { name: "ingress", is_ingress: true },
    List { name: "ingressDeny", is_ingress: true },
    List { name: "egress", is_ingress: false },
    List { name: "egressDeny", is_ingress: false },
];

const INGRESS_PEERS: [&str; 6] =
    ["fromEndpoints", "fromCIDR", "fromCIDRSet", "fromEntities", "fromNodes", "fromGroups"];
const EGRESS_PEERS: [&str; 8] =
    ["toEndpoints", "toCIDR", "toCIDRSet", "toEntities", "toServices", "toGroups", "toNodes", "toFQDNs"];

/// Why agents refuse a CiliumNetworkPolicy or CiliumClusterwideNetworkPolicy: one fault makes the whole of it
/// void. `None` if they take it, and for every other object.
pub fn refusal(object: Object<'_>) -> Option<Refusal> {
    let is_cilium = object.key.group == "cilium.io" && object.key.kind.ends_with("NetworkPolicy");
    let value = object.value;
    let root = FieldPath::default();
    let single = value.get("spec").filter(|spec| spec.is_object()).map(|spec| (root.key("spec"), spec));
    let several = value.get("specs").and_then(Value::as_array).into_iter().flatten().enumerate();
    let several = several.map(|(index, spec)| (root.key("specs").index(index), spec));
    let mut specs = single.into_iter().chain(several).filter(|_| is_cilium);
    specs.find_map(|(at, spec)| of_spec(spec, &at))
}

fn refused(field: FieldPath, message: impl Into<String>) -> Option<Refusal> {
    Some(Refusal { field, message: message.into() })
}

fn of_spec(spec: &Value, at: &FieldPath) -> Option<Refusal> {
    if LISTS.iter().all(|list| filled(spec, list.name).is_none()) {
        let written = LISTS.iter().find(|list| spec.get(list.name).is_some());
        let message = "rule must have at least one of Ingress, IngressDeny, Egress, EgressDeny";
        return refused(written.map_or_else(|| at.clone(), |list| at.key(list.name)), message);
    }
    LISTS.iter().find_map(|list| {
        let rules = filled(spec, list.name).into_iter().flatten().enumerate();
        let at = at.key(list.name);
        rules.into_iter().find_map(|(index, rule)| of_rule(rule, *list, &at.index(index)))
    })
}

fn of_rule(rule: &Value, list: List, at: &FieldPath) -> Option<Refusal> {
    let members: &[&str] = if list.is_ingress { &INGRESS_PEERS } else { &EGRESS_PEERS };
    let mut given = members.iter().filter(|member| filled(rule, member).is_some());
    if let (Some(one), Some(other)) = (given.next(), given.next()) {
        let message = format!("combining {} and {} is not supported yet", exported(one), exported(other));
        return refused(at.key(*other), message);
    }
    let side = if list.is_ingress { "from" } else { "to" };
    if let Some(refusal) = addresses(rule, side, at) {
        return Some(refusal);
    }
    if filled(rule, "icmps").is_some() && filled(rule, "toPorts").is_some() {
        let message =
            "the ICMPs block may only be present without ToPorts. Define a separate rule to use ToPorts";
        return refused(at.key("icmps"), message);
    }
    let entries = filled(rule, "toPorts").into_iter().flatten().enumerate();
    let at = at.key("toPorts");
    entries.into_iter().find_map(|(index, entry)| of_ports(entry, list, &at.index(index)))
}

/// The name of the Go field: `toCIDRSet` is `ToCIDRSet`.
fn exported(member: &str) -> String {
    let (first, rest) = member.split_at(1);
    first.to_uppercase() + rest
}

/// What is still to be filled in is not judged.
fn is_open(text: &str) -> bool {
    text.contains(['$', '{', '<'])
}

fn addresses(rule: &Value, side: &str, at: &FieldPath) -> Option<Refusal> {
    let plain = format!("{side}CIDR");
    for (index, text) in filled(rule, &plain).into_iter().flatten().enumerate() {
        let text = text.as_str().unwrap_or_default();
        if !is_open(text) && text.parse::<IpNet>().is_err() && text.parse::<IpAddr>().is_err() {
            let why = text.find('/').map(|slash| format!("unexpected character (at {:?})", &text[slash..]));
            let why = why.unwrap_or_else(|| "unable to parse IP".to_owned());
            let message = format!("unable to parse CIDR: ParseAddr({text:?}): {why}");
            return refused(at.key(plain.clone()).index(index), message);
        }
    }
    let sets = format!("{side}CIDRSet");
    for (index, set) in filled(rule, &sets).into_iter().flatten().enumerate() {
        let at = at.key(sets.clone()).index(index);
        let of_group = set.get("cidrGroupRef").is_some() || set.get("cidrGroupSelector").is_some();
        let Some(text) = set.str_at(&["cidr"]).filter(|text| !text.is_empty()) else {
            let message = "one of cidr, cidrGroupRef, or cidrGroupSelector is required";
            if of_group { continue } else { return refused(at, message) }
        };
        if of_group {
            return refused(at, "more than one of cidr, cidrGroupRef, or cidrGroupSelector may not be set");
        }
        if is_open(text) {
            continue;
        }
        let Ok(block) = text.parse::<IpNet>() else {
            let why = if text.contains('/') { "bad prefix" } else { "no '/'" };
            let message = format!("unable to parse CIDRRule {text:?}: netip.ParsePrefix({text:?}): {why}");
            return refused(at.key("cidr"), message);
        };
        for (index, except) in filled(set, "except").into_iter().flatten().enumerate() {
            let except = except.as_str().unwrap_or_default();
            if except.parse::<IpNet>().is_ok_and(|inner| !block.contains(&inner.addr())) {
                let message =
                    format!("allow CIDR prefix {text} does not contain exclude CIDR prefix {except}");
                return refused(at.key("except").index(index), message);
            }
        }
    }
    None
}

/// One entry of `toPorts`, with what it says of protocols above the port.
fn of_ports(entry: &Value, list: List, at: &FieldPath) -> Option<Refusal> {
    let ports = entry.get("ports").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    if ports.len() > MOST_PORTS {
        return refused(at.key("ports"), format!("too many ports, the max is {MOST_PORTS}"));
    }
    let rules = entry.get("rules").unwrap_or(&Value::Null);
    let has_dns = filled(rules, "dns").is_some();
    if list.is_ingress && has_dns {
        return refused(at.key("rules").key("dns"), "L7 protocol DNS is not supported on ingress yet");
    }
    let is_above = ["http", "kafka"].iter().any(|kind| filled(rules, kind).is_some())
        || rules.str_at(&["l7proto"]).is_some_and(|name| !name.is_empty());
    for (index, port) in ports.iter().enumerate() {
        let at = at.key("ports").index(index);
        if let Some(message) = port.str_at(&["port"]).and_then(port_fault) {
            return refused(at.key("port"), message);
        }
        let protocol = port.str_at(&["protocol"]).filter(|name| !name.is_empty()).unwrap_or("ANY");
        if is_above && !has_dns && !protocol.eq_ignore_ascii_case("TCP") && !is_open(protocol) {
            let message = format!("L7 rules can only apply to TCP (not {protocol}) except for DNS rules");
            return refused(at, message);
        }
    }
    let has_zero = ports.iter().any(|port| port.str_at(&["port"]) == Some("0"));
    if (is_above || has_dns) && has_zero {
        return refused(at.key("rules"), "L7 rules can not be used when a port is 0");
    }
    if has_dns && ports.is_empty() {
        return refused(at.key("rules").key("dns"), "port 53 must be specified for DNS rules");
    }
    None
}

/// What is wrong with a port's name or number.
fn port_fault(port: &str) -> Option<String> {
    // Newer agents take some protocols without a port.
    if port.is_empty() || is_open(port) || is_service_name(port) || port.parse::<u16>().is_ok() {
        return None;
    }
    let is_number = port.bytes().all(|byte| byte.is_ascii_digit());
    let why = if is_number { "value out of range" } else { "invalid syntax" };
    Some(format!("unable to parse port: strconv.ParseUint: parsing {port:?}: {why}"))
}

/// Whether a text is a name of a service (RFC 6335, section 5.1).
fn is_service_name(text: &str) -> bool {
    let letters = text.bytes().any(|byte| byte.is_ascii_alphabetic());
    let allowed = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    letters
        && allowed
        && text.len() <= 15
        && !text.starts_with('-')
        && !text.ends_with('-')
        && !text.contains("--")
}

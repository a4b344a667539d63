//! What the server decides about Services beside their addresses.

use tiphys_value::{ObjectExt, Value, json};

use crate::{meta::items, store::needs_health_check_port};

/// Address families are chosen when a Service is created and kept afterwards.
const FAMILIES: [&str; 2] = ["ipFamilies", "ipFamilyPolicy"];

/// Takes away what defaulting knows of address families, where the client did not name them: they are
/// the server's to choose, so nobody owns them.
pub(crate) fn forget_families(given: &[bool; 2], service: &mut Value) {
    let Some(spec) = service.get_mut("spec").and_then(Value::as_object_mut) else { return };
    for (field, given) in FAMILIES.iter().zip(given) {
        if !given {
            spec.remove(*field);
        }
    }
}

/// Which of the address family fields a client named.
pub(crate) fn families_given(service: &Value) -> [bool; 2] {
    FAMILIES.map(|field| service.at(&["spec", field]).is_some_and(|v| !v.is_null()))
}

/// Chooses address families, and lets go of node ports that the new type has no use for.
pub(super) fn complete(service: &mut Value, current: Option<&Value>) {
    if !service["spec"].is_object() {
        return;
    }
    if is_external(service) {
        current.into_iter().for_each(|current| let_go(service, current));
        return;
    }
    choose_families(service, current);
    if let Some(current) = current {
        keep_allocated(service, current);
    }
    name_address_twice(service);
    if let Some(current) = current {
        if has_node_ports(current) && !has_node_ports(service) {
            release_ports(service, current);
        }
        let field = ["spec", "healthCheckNodePort"];
        let is_same = service.at(&field).is_some() && service.at(&field) == current.at(&field);
        if is_same && needs_health_check_port(current) && !needs_health_check_port(service) {
            drop(service["spec"].as_object_mut().map(|spec| spec.remove("healthCheckNodePort")));
        }
    }
}

fn is_external(service: &Value) -> bool {
    service.str_at(&["spec", "type"]) == Some("ExternalName")
}

/// A Service that becomes a name for something outside keeps nothing that it was given and that the client
/// did not change: addresses, families, ports and what says how traffic is led to it
/// (`dropTypeDependentFields` in the registry of Services).
fn let_go(service: &mut Value, current: &Value) {
    const GIVEN: [&str; 8] = [
        "clusterIP",
        "clusterIPs",
        "ipFamilies",
        "ipFamilyPolicy",
        "healthCheckNodePort",
        "allocateLoadBalancerNodePorts",
        "loadBalancerClass",
        "externalTrafficPolicy",
    ];
    if is_external(current) {
        return;
    }
    let given: Vec<&str> =
        GIVEN.into_iter().filter(|field| service["spec"].get(field) == current["spec"].get(field)).collect();
    if let Some(spec) = service["spec"].as_object_mut() {
        given.into_iter().for_each(|field| drop(spec.remove(field)));
    }
    if has_node_ports(current) {
        release_ports(service, current);
    }
}

/// The address families of a cluster with IPv4 only.
fn choose_families(service: &mut Value, current: Option<&Value>) {
    let headless = service.str_at(&["spec", "clusterIP"]) == Some("None");
    let selects =
        service.at(&["spec", "selector"]).is_some_and(|s| s.as_object().is_some_and(|s| !s.is_empty()));
    // Endpoints of a headless Service without a selector are the user's, in whatever family they like.
    let any_family = headless && !selects;
    let policy = if any_family { "RequireDualStack" } else { "SingleStack" };
    for (field, chosen) in FAMILIES.into_iter().zip([json!(["IPv4"]), json!(policy)]) {
        if service["spec"].get(field).is_none_or(Value::is_null) {
            let before = current.and_then(|c| c.at(&["spec", field])).cloned();
            service["spec"][field] = before.unwrap_or(chosen);
        }
    }
    let is_dual = service.str_at(&["spec", "ipFamilyPolicy"]) != Some("SingleStack");
    if any_family
        && is_dual
        && let Some(families) = service.pointer_mut("/spec/ipFamilies").and_then(Value::as_array_mut)
        && let [only] = families.as_slice()
    {
        let other = if *only == "IPv4" { "IPv6" } else { "IPv4" };
        families.push(other.into());
    }
}

/// The first address stands in both fields.
fn name_address_twice(service: &mut Value) {
    let address = service.str_at(&["spec", "clusterIP"]).filter(|address| !address.is_empty());
    if let Some(address) = address.map(str::to_owned)
        && items(service, "/spec/clusterIPs").next().is_none()
    {
        service["spec"]["clusterIPs"] = json!([address]);
    }
}

/// A client that replaces a Service need not know what was given to it: addresses and ports stay.
fn keep_allocated(service: &mut Value, current: &Value) {
    if is_external(current) || is_external(service) {
        return;
    }
    let is_silent = |field: &str| service.str_at(&["spec", field]).is_none_or(str::is_empty);
    if is_silent("clusterIP") {
        for field in ["clusterIP", "clusterIPs"] {
            if let Some(value) = current.at(&["spec", field]) {
                service["spec"][field] = value.clone();
            }
        }
    }
    if !has_node_ports(current) || !has_node_ports(service) {
        return;
    }
    if let Some(port) = current.at(&["spec", "healthCheckNodePort"])
        && service.at(&["spec", "healthCheckNodePort"]).is_none()
        && service.str_at(&["spec", "externalTrafficPolicy"]) == Some("Local")
    {
        service["spec"]["healthCheckNodePort"] = port.clone();
    }
    let taken: Vec<i64> = items(service, "/spec/ports").filter_map(|p| p.int_at(&["nodePort"])).collect();
    for port in service.pointer_mut("/spec/ports").and_then(Value::as_array_mut).into_iter().flatten() {
        if port.int_at(&["nodePort"]).is_some_and(|number| number != 0) {
            continue;
        }
        let same = |p: &&Value| p["port"] == port["port"] && p["protocol"] == port["protocol"];
        let before = items(current, "/spec/ports").find(same).and_then(|p| p.int_at(&["nodePort"]));
        if let Some(number) = before.filter(|number| !taken.contains(number)) {
            port["nodePort"] = number.into();
        }
    }
}

fn has_node_ports(service: &Value) -> bool {
    matches!(service.str_at(&["spec", "type"]), Some("NodePort" | "LoadBalancer"))
}

/// Node ports that were given out before go; one that the client names now is a fault of its own.
fn release_ports(service: &mut Value, current: &Value) {
    let before: Vec<i64> = items(current, "/spec/ports").filter_map(|p| p.int_at(&["nodePort"])).collect();
    for port in service.pointer_mut("/spec/ports").and_then(Value::as_array_mut).into_iter().flatten() {
        if port.int_at(&["nodePort"]).is_some_and(|n| before.contains(&n)) {
            drop(port.as_object_mut().map(|port| port.remove("nodePort")));
        }
    }
    if let Some(spec) = service["spec"].as_object_mut() {
        spec.remove("externalTrafficPolicy");
        spec.remove("allocateLoadBalancerNodePorts");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What kube-apiserver 1.36 makes of them with one range of IPv4.
    #[test]
    fn families_are_chosen_and_addresses_stand_twice() {
        let (v4, both, turned) = (json!(["IPv4"]), json!(["IPv4", "IPv6"]), json!(["IPv6", "IPv4"]));
        let plain = json!({"selector": {"a": "b"}});
        let headless = json!({"clusterIP": "None", "selector": {"a": "b"}});
        let bare = json!({"clusterIP": "None"});
        for (spec, more, policy, families) in [
            (&plain, json!({}), "SingleStack", &v4),
            (&plain, json!({"ipFamilyPolicy": "PreferDualStack"}), "PreferDualStack", &v4),
            (
                &headless,
                json!({"ipFamilyPolicy": "PreferDualStack", "ipFamilies": v4}),
                "PreferDualStack",
                &v4,
            ),
            (&bare, json!({}), "RequireDualStack", &both),
            (&bare, json!({"ipFamilies": ["IPv6"]}), "RequireDualStack", &turned),
            (&bare, json!({"ipFamilyPolicy": "SingleStack"}), "SingleStack", &v4),
            (&bare, json!({"ipFamilyPolicy": "PreferDualStack", "ipFamilies": v4}), "PreferDualStack", &both),
        ] {
            let mut service = json!({"spec": spec});
            for (field, value) in more.as_object().into_iter().flatten() {
                service["spec"][field] = value.clone();
            }
            complete(&mut service, None);
            let shown = (&service["spec"]["ipFamilyPolicy"], &service["spec"]["ipFamilies"]);
            assert_eq!(shown, (&json!(policy), families), "{spec} {more}");
            let twice = spec.get("clusterIP").map(|address| json!([address]));
            assert_eq!(service["spec"].get("clusterIPs"), twice.as_ref(), "{spec}");
        }
    }
}

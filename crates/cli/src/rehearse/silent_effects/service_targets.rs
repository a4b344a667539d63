//! Services that lead to no pod, or to no port of their pods.

use std::collections::BTreeSet;

use tiphys_apiserver::{ResourceId, Snapshot};
use tiphys_cause::Cause as Id;
use tiphys_stage::{causes::Cause, story::Story};
use tiphys_value::{Map, ObjectExt, ResourceKey, Value};
use tiphys_world::behaviour::open_ports;

use super::{
    hidden_cause::hidden_cause,
    workloads::{images, is_asked_for, is_selected, labels, same_in, workloads},
};

/// Services that had pods before a change and have none at the end, although those who ran the pods are
/// still there, perhaps under another name: the selector, or the labels of the pods, are others.
pub(super) fn without_pods(story: &Story, before: &Snapshot, end: &Snapshot) -> Vec<Cause> {
    let open =
        story.outages.iter().filter(|outage| outage.to_ms.is_none() && outage.object.kind == "Service");
    open.filter_map(|outage| {
        let (was, is) = (service(before, &outage.object)?, service(end, &outage.object)?);
        if pods_of(is, end).next().is_some() {
            return None;
        }
        let ran = |old: &Value| is_selected(&selector(was), labels(old));
        let mut own = workloads(end)
            .filter(|workload| is_asked_for(workload) && workload.namespace() == outage.object.namespace);
        let runner = own.find(|workload| match same_in(before, workload) {
            Some(old) => ran(old),
            None => renamed_from(before, end, workload).is_some_and(ran),
        })?;
        let missed = differing_labels(&selector(is), labels(runner));
        let wanted: Vec<String> =
            selector(is).iter().map(|(name, value)| label_text(name, Some(value))).collect();
        let text = format!(
            "its selector {} matches no pod; those of {} {} have {}",
            wanted.join(","),
            runner.kind(),
            runner.name(),
            missed.join(",")
        );
        Some(hidden_cause(outage.object.clone(), Id::ServiceSelector.into(), text, "has no endpoints"))
    })
    .collect()
}

/// What a new workload was before a change gave it another name: one with the same images that is gone.
fn renamed_from<'a>(before: &'a Snapshot, end: &Snapshot, workload: &Value) -> Option<&'a Value> {
    let images = images(workload);
    let mut gone = workloads(before).filter(|old| same_in(end, old).is_none());
    gone.find(|old| {
        old.namespace() == workload.namespace() && !images.is_empty() && self::images(old) == images
    })
}

/// Services with ports that lead to a name which none of their pods gives to a port. `before` is how it was
/// before a change: a Service of which other ports lead somewhere is then told only if this one did, too.
pub(super) fn without_ports(end: &Snapshot, before: Option<&Snapshot>) -> Vec<Cause> {
    let services = end.list(&ResourceId::new("", "services"), None).map(|object| object.value());
    services
        .filter_map(|is| {
            let lost = lost_ports(is, end);
            let ports = is.at(&["spec", "ports"]).and_then(Value::as_array).map_or(0, Vec::len);
            let was = before.and_then(|before| Some((service(before, &is.resource_key())?, before)));
            let lost_before = was.as_ref().map(|(was, before)| lost_ports(was, before));
            let is_new = lost_before.as_ref().is_none_or(|old| lost.iter().any(|name| !old.contains(name)));
            let is_all = lost.len() == ports;
            if lost.is_empty() || !is_new || !(is_all || was.is_some()) {
                return None;
            }
            let names: Vec<String> = lost.iter().map(|name| format!("{name:?}")).collect();
            let text = format!("none of its pods has a port named {}", names.join(", "));
            let state = if is_all { "leads to no port" } else { "leads to no port with one of its ports" };
            Some(hidden_cause(is.resource_key(), Id::ServicePort.into(), text, state))
        })
        .collect()
}

/// Services all of whose ports lead to numbers on which none of their pods listens, as far as it is known on
/// which they do. `before` is how it was before a change: what was so then is not told.
pub(super) fn without_listeners(end: &Snapshot, before: Option<&Snapshot>) -> Vec<Cause> {
    let services = end.list(&ResourceId::new("", "services"), None).map(|object| object.value());
    services
        .filter_map(|is| {
            let (deaf, open) = unheard_ports(is, end)?;
            let was = before.and_then(|before| unheard_ports(service(before, &is.resource_key())?, before));
            if was.is_some() {
                return None;
            }
            let list =
                |ports: &BTreeSet<u16>| ports.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            let text = format!("none of its pods listens on {}; they listen on {}", list(&deaf), list(&open));
            Some(hidden_cause(is.resource_key(), Id::ServicePort.into(), text, "leads to no open port"))
        })
        .collect()
}

/// The numbers to which the ports of a Service lead, and those on which its pods listen, if these are known
/// and no number is among them.
fn unheard_ports(service: &Value, snapshot: &Snapshot) -> Option<(BTreeSet<u16>, BTreeSet<u16>)> {
    let mut open = BTreeSet::new();
    for pod in pods_of(service, snapshot) {
        open.extend(open_ports(pod)?.iter().copied());
    }
    let ports = service.at(&["spec", "ports"]).and_then(Value::as_array)?;
    let target = |port: &Value| {
        let number = port.int_at(&["targetPort"]).or_else(|| match port.get("targetPort") {
            None => port.int_at(&["port"]),
            Some(_) => None,
        });
        number.and_then(|number| u16::try_from(number).ok())
    };
    let wanted: BTreeSet<u16> = ports.iter().map(target).collect::<Option<_>>()?;
    (!open.is_empty() && !wanted.is_empty() && wanted.is_disjoint(&open)).then_some((wanted, open))
}

/// The names to which ports of a Service lead and that none of its pods gives to a port.
fn lost_ports(service: &Value, snapshot: &Snapshot) -> BTreeSet<String> {
    let mut pods = pods_of(service, snapshot).peekable();
    if pods.peek().is_none() {
        return BTreeSet::new();
    }
    let named: BTreeSet<String> = pods.flat_map(port_names).map(str::to_owned).collect();
    let ports = service.at(&["spec", "ports"]).and_then(Value::as_array).into_iter().flatten();
    let targets = ports.filter_map(|port| port.str_at(&["targetPort"]));
    // A number may be written as a text.
    let names = targets.filter(|target| target.parse::<u16>().is_err());
    names.filter(|name| !named.contains(*name)).map(str::to_owned).collect()
}

fn port_names(pod: &Value) -> impl Iterator<Item = &str> {
    // Init containers that go on running serve, too.
    let containers = ["containers", "initContainers"].into_iter();
    let containers = containers.filter_map(|field| pod.at(&["spec", field])?.as_array()).flatten();
    let ports = containers.filter_map(|container| container.get("ports")?.as_array()).flatten();
    ports.filter_map(|port| port.str_at(&["name"]))
}

/// A Service of a state of the cluster.
pub(super) fn service<'a>(snapshot: &'a Snapshot, key: &ResourceKey) -> Option<&'a Value> {
    Some(snapshot.get(&ResourceId::new("", "services"), &key.namespace, &key.name)?.value())
}

fn pods_of<'a>(service: &Value, snapshot: &'a Snapshot) -> impl Iterator<Item = &'a Value> {
    let selector = selector(service);
    let pods = snapshot.list(&ResourceId::new("", "pods"), Some(service.namespace()));
    pods.map(|pod| pod.value())
        .filter(move |pod| !pod.is_terminating() && is_selected(&selector, pod.at(&["metadata", "labels"])))
}

/// What a Service wants of its pods.
pub(super) fn selector(service: &Value) -> Map<String, Value> {
    service.at(&["spec", "selector"]).and_then(Value::as_object).cloned().unwrap_or_default()
}

/// What pods have in place of the labels that a selector wants.
fn differing_labels(selector: &Map<String, Value>, labels: Option<&Value>) -> Vec<String> {
    let has = |name: &String| labels.and_then(|labels| labels.get(name));
    let differing = selector.iter().filter(|(name, value)| has(name) != Some(value));
    differing.map(|(name, _)| label_text(name, has(name))).collect()
}

fn label_text(name: &str, value: Option<&Value>) -> String {
    match value.and_then(Value::as_str) {
        Some(value) => format!("{name}={value}"),
        None => format!("no {name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiphys_value::json;

    #[test]
    fn pods_tell_what_they_have_in_place_of_a_label() {
        let selector = json!({"app": "web", "tier": "front", "zone": "a"});
        let labels = json!({"app": "web", "tier": "edge"});
        let missed = differing_labels(selector.as_object().unwrap(), Some(&labels));
        assert_eq!(missed, ["tier=edge", "no zone"]);
    }
}

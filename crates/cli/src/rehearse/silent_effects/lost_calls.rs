//! Services that workloads call by name and that a change takes away, or leaves without pods. Programs are
//! not run, so nothing turns red by itself.

use std::collections::{BTreeMap, BTreeSet};

use tiphys_apiserver::{ResourceId, Snapshot};
use tiphys_cause::{Cause as Id, addresses};
use tiphys_stage::{causes::Cause, mechanism::Mechanism, story::Story};
use tiphys_value::{ObjectExt, ResourceKey, Value};

use super::{
    hidden_cause::hidden_cause,
    service_targets::{selector, service},
    workloads::{is_asked_for, is_selected, labels, list, same_in, workloads},
};

/// What variables of a host alone are called.
const OF_HOSTS: [&str; 6] = ["HOST", "HOSTNAME", "ADDR", "ADDRESS", "SERVER", "ENDPOINT"];

/// Workloads that call a Service which was there before a change, and is gone at the end or has no pods since
/// the change scales them to none.
pub(super) fn callers(story: &Story, before: &Snapshot, end: &Snapshot) -> Vec<Cause> {
    let lost = lost_services(story, before, end);
    if lost.is_empty() {
        return Vec::new();
    }
    let calling = workloads(end).filter(|workload| is_asked_for(workload));
    calling
        .flat_map(|workload| {
            let mut calls: BTreeMap<&ResourceKey, String> = BTreeMap::new();
            for (place, text) in texts(workload, end) {
                for key in named_services(&place, &text, workload.namespace()) {
                    if let Some((known, _)) = lost.get_key_value(&key) {
                        calls.entry(known).or_insert_with(|| place.clone());
                    }
                }
            }
            let cause = |(key, place): (&ResourceKey, String)| {
                let (id, why) = &lost[key];
                let mechanism = Mechanism { id: *id, objects: vec![key.clone()] };
                let text = format!("it calls Service {}/{} ({place}), {why}", key.namespace, key.name);
                let state =
                    if *id == Id::RunScaledZero { "calls what has no pods" } else { "calls what is gone" };
                hidden_cause(workload.resource_key(), mechanism, text, state)
            };
            calls.into_iter().map(cause).collect::<Vec<_>>()
        })
        .collect()
}

/// The Services that a change takes away, or leaves without pods, and why.
fn lost_services(story: &Story, before: &Snapshot, end: &Snapshot) -> BTreeMap<ResourceKey, (Id, String)> {
    let all = before.list(&ResourceId::new("", "services"), None).map(|object| object.value());
    let is_there = |key: &ResourceKey| service(end, key).is_some_and(|is| !is.is_terminating());
    let gone = all.map(ObjectExt::resource_key).filter(|key| !is_there(key));
    let mut lost: BTreeMap<ResourceKey, (Id, String)> =
        gone.map(|key| (key, (Id::ServiceMissing, "which the change takes away".to_owned()))).collect();
    let open = story.outages.iter().filter(|it| it.to_ms.is_none() && it.object.kind == "Service");
    for outage in open {
        let Some(is) = service(end, &outage.object) else { continue };
        let runner = workloads(end).find(|workload| {
            workload.namespace() == is.namespace()
                && is_selected(&selector(is), labels(workload))
                && !is_asked_for(workload)
                && same_in(before, workload).is_some_and(is_asked_for)
        });
        if let Some(runner) = runner {
            let why = format!("and the change scales {} {} to none", runner.kind(), runner.name());
            lost.insert(outage.object.clone(), (Id::RunScaledZero, why));
        }
    }
    lost
}

/// What the containers of a workload are told, each with where that stands: variables, arguments, and the
/// ConfigMaps that they read.
fn texts(workload: &Value, snapshot: &Snapshot) -> Vec<(String, String)> {
    let Some(spec) = workload.at(&["spec", "template", "spec"]) else { return Vec::new() };
    let mut texts = Vec::new();
    let mut maps: BTreeSet<String> = BTreeSet::new();
    let mut reads = |name: Option<&str>| maps.extend(name.map(str::to_owned));
    for container in ["containers", "initContainers"].iter().flat_map(|field| list(spec, field)) {
        for variable in list(container, "env") {
            let name = variable.str_at(&["name"]).unwrap_or_default();
            if let Some(value) = variable.str_at(&["value"]) {
                texts.push((name.to_owned(), value.to_owned()));
            }
            reads(variable.str_at(&["valueFrom", "configMapKeyRef", "name"]));
        }
        for source in list(container, "envFrom") {
            reads(source.str_at(&["configMapRef", "name"]));
        }
        for argument in ["command", "args"].iter().flat_map(|field| list(container, field)) {
            texts.extend(argument.as_str().map(|text| ("its arguments".to_owned(), text.to_owned())));
        }
    }
    for volume in list(spec, "volumes") {
        reads(volume.str_at(&["configMap", "name"]));
    }
    for name in maps {
        let map = snapshot.get(&ResourceId::new("", "configmaps"), workload.namespace(), &name);
        let data = map.and_then(|map| map.value().get("data")?.as_object());
        for (key, value) in data.into_iter().flatten() {
            texts.extend(value.as_str().map(|text| (format!("{key} of ConfigMap {name}"), text.to_owned())));
        }
    }
    texts
}

/// The Services that a text names: by an address, or as its only word.
fn named_services(place: &str, text: &str, namespace: &str) -> Vec<ResourceKey> {
    let mut hosts: Vec<String> = addresses(text).into_iter().map(|address| address.host).collect();
    let word = text.trim();
    let name = place.split(' ').next().unwrap_or_default().to_ascii_uppercase();
    let is_of_host = OF_HOSTS.iter().any(|end| name == *end || name.ends_with(&format!("_{end}")));
    let is_word = !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || "-.".contains(c));
    if is_word && (word.contains('.') || is_of_host) {
        hosts.push(word.to_owned());
    }
    let key = |host: String| {
        let mut parts = host.trim_end_matches('.').split('.');
        let (name, own) = (parts.next()?, parts.next().unwrap_or(namespace));
        let is_inside = parts.next().is_none_or(|part| part == "svc");
        is_inside.then(|| ResourceKey::new("", "Service", own, name))
    };
    hosts.into_iter().filter_map(key).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_are_named_by_addresses_and_by_variables_of_hosts() {
        for (place, text, names) in [
            ("QUEUE", "amqp://queue.mq.svc:5672/jobs", &["mq/queue"][..]),
            ("DB_HOST", "db", &["shop/db"]),
            ("DB_HOST", "db.data.svc.cluster.local", &["data/db"]),
            ("DB_TYPE", "postgres", &[]),
            ("URL", "https://api.example.com/v1", &[]),
            ("app.yaml of ConfigMap web", "cache: redis://cache:6379\nother: 1", &["shop/cache"]),
        ] {
            let found = named_services(place, text, "shop");
            let found: Vec<String> =
                found.iter().map(|key| format!("{}/{}", key.namespace, key.name)).collect();
            assert_eq!(found, names, "{place}={text}");
        }
    }
}

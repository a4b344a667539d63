//! Init containers that wait.

use tiphys_cause::{Cause, Failure};
use tiphys_value::{ObjectExt as _, Value};

use crate::{
    Object,
    calls::{self, Caller},
    causes::operator::names,
    cluster::{items, time},
    finding::Finding,
    search_context::{Ill, Look},
};

/// An init container that waits for something.
pub(super) fn init_wait<'a>(look: &Look<'a>, ill: &Ill<'a>) -> Option<Finding> {
    let (pod, status) = ill.pods.iter().find_map(|pod| {
        let running = items(pod, &["status", "initContainerStatuses"]).find(|it| {
            it.at(&["state", "running"]).is_some()
                && it.str_at(&["name"]).is_some_and(|name| !is_sidecar(pod, name))
        })?;
        Some((*pod, running))
    })?;
    let name = status.str_at(&["name"]).unwrap_or_default();
    let started =
        time(status, &["state", "running", "startedAt"]).and_then(|time| look.cluster.seconds_since(time));
    if started.is_some_and(|started| started < 120) {
        return None;
    }
    let container = items(pod, &["spec", "initContainers"]).find(|it| it.str_at(&["name"]) == Some(name))?;
    let words: Vec<&str> = ["command", "args"]
        .iter()
        .flat_map(|key| items(container, &[key]))
        .filter_map(Value::as_str)
        .collect();
    let finding = Finding::new(
        Cause::RunInitWait,
        ill.workload.clone(),
        0.6,
        format!("init container {name} of {} does not end", ill.workload),
    )
    .field(format!("spec.template.spec.initContainers[{name}]"))
    .evidence(ill.workload.to_string(), format!("{name}: {}", words.join(" ")))
    .remedy(
        "Find out what it waits for.",
        &[format!("kubectl -n {} logs {} -c {name}", pod.namespace(), pod.name())],
    )
    .shallow();
    // What it waits for may be a workload that was not saved.
    let knows_workloads = look.cluster.has_kind("Deployment") && look.cluster.has_kind("ReplicaSet");
    let finding = if knows_workloads { finding } else { finding.not_known() };
    let logs: String = look
        .cluster
        .logs(pod.namespace(), pod.name())
        .iter()
        .filter(|log| log.container == name)
        .map(|log| log.text.clone())
        .collect();
    let finding = if logs.is_empty() { finding.not_known() } else { finding };
    if let Some(refused) = tiphys_cause::refused_values(&logs).into_iter().next() {
        let source = format!("log {}/{}/{name}", pod.namespace(), pod.name());
        let found = crate::causes::config::refused_value(look, ill, &refused, &source);
        // Only what is led back to a setting is surer than that it waits.
        if found.confidence > 0.7 {
            return Some(found);
        }
    }
    let text = format!("{} {logs}", words.join(" "));
    let caller = Caller::of_ill(look, ill);
    let mut named: Vec<_> = tiphys_cause::addresses(&text);
    named.extend(words_as_hosts(&text));
    let call = |address: &tiphys_cause::Address, failure| tiphys_cause::FailedCall {
        failure,
        targets: vec![address.clone()],
        context: Vec::new(),
        line: words.join(" "),
    };
    for address in &named {
        match look.cluster.target(address, ill.namespace()) {
            crate::address_target::Target::Service(service) => {
                let failure =
                    if look.cluster.is_served(service) { Failure::Timeout } else { Failure::Refused };
                let Some(found) =
                    calls::explain(look, &caller, &call(address, failure), "the init container's command")
                else {
                    continue;
                };
                if found.is_asserted() || !found.upstream.is_empty() && !look.cluster.is_served(service) {
                    return Some(if found.is_asserted() {
                        found
                    } else {
                        found.upstream.into_iter().fold(finding, Finding::below)
                    });
                }
            }
            crate::address_target::Target::Absent { .. } => {
                if let Some(found) = calls::explain(
                    look,
                    &caller,
                    &call(address, Failure::NoSuchHost),
                    "the init container's command",
                ) {
                    return Some(found);
                }
            }
            _ => {}
        }
    }
    let finding = named_objects(look, ill, &text).into_iter().fold(finding, Finding::below);
    // Who serves and still lets it wait tells why itself.
    let finding =
        named.iter().fold(finding, |finding, address| match look.cluster.target(address, ill.namespace()) {
            crate::address_target::Target::Service(service) => finding.below(Object::from_live(service)),
            _ => finding,
        });
    // Where nothing is named, what fails beside it is the likeliest.
    let beside = look.ill.iter().map(|other| &other.workload);
    let beside = beside.filter(|other| other.namespace == ill.namespace() && **other != ill.workload);
    Some(if finding.upstream.is_empty() { beside.cloned().fold(finding, Finding::below) } else { finding })
}

/// What an init container waits for that fails again and again: a Job of its namespace that is red, if its
/// last lines speak of waiting.
pub(super) fn awaited_jobs(look: &Look<'_>, ill: &Ill<'_>, text: &str) -> Vec<Object> {
    const WORDS: &[&str] =
        &["wait", "not ready", "unapplied", "pending migration", "not yet", "still ", "migrat"];
    let low = text.to_ascii_lowercase();
    if !WORDS.iter().any(|word| low.contains(word)) {
        return Vec::new();
    }
    let jobs = look.red.keys().filter(|it| it.kind == "Job" && it.namespace == ill.namespace());
    jobs.filter(|job| **job != ill.workload).cloned().collect()
}

/// The red Jobs of a namespace that should have prepared what a program misses: it names them, or both are
/// about migrations.
pub(super) fn jobs_of_migration(look: &Look<'_>, ill: &Ill<'_>, text: &str) -> Vec<Object> {
    let low = text.to_ascii_lowercase();
    let is_meant =
        |job: &&Object| names(&low, &job.name) || low.contains("migration") && job.name.contains("migrat");
    let jobs = look.red.keys().filter(|it| it.kind == "Job" && it.namespace == ill.namespace());
    jobs.filter(|job| **job != ill.workload).filter(is_meant).cloned().collect()
}

/// The objects of the namespace that a command or its output names: `job/migrate`, `deploy web`.
fn named_objects(look: &Look<'_>, ill: &Ill<'_>, text: &str) -> Vec<Object> {
    const KINDS: &[&str] =
        &["Job", "Deployment", "StatefulSet", "DaemonSet", "CronJob", "Pod", "PersistentVolumeClaim"];
    let words: std::collections::BTreeSet<&str> = text
        .split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '.')))
        .filter(|word| word.len() >= 3)
        .collect();
    let all = KINDS.iter().flat_map(|kind| look.cluster.all(kind).iter());
    let named = all.filter(|live| live.namespace() == ill.namespace() && words.contains(live.name()));
    named.map(|live| Object::from_live(live)).filter(|object| *object != ill.workload).collect()
}

/// Whether an init container is one that stays.
fn is_sidecar(pod: &Value, name: &str) -> bool {
    items(pod, &["spec", "initContainers"])
        .any(|it| it.str_at(&["name"]) == Some(name) && it.str_at(&["restartPolicy"]) == Some("Always"))
}

/// The hosts, with their ports, after `nc`, `nslookup`, `pg_isready -h` and their like.
fn words_as_hosts(text: &str) -> Vec<tiphys_cause::Address> {
    const BEFORE: &[&str] =
        &["nslookup", "-h", "--host", "-z", "-zv", "-vz", "-zw1", "-w1", "wait-for-it", "ping"];
    let words: Vec<&str> = text
        .split(|c: char| c.is_whitespace() || matches!(c, ';' | '"' | '\'' | '(' | ')'))
        .filter(|it| !it.is_empty())
        .collect();
    let mut found = Vec::new();
    for (at, pair) in words.windows(2).enumerate() {
        let is_host = pair[1].chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-'))
            && pair[1].starts_with(|c: char| c.is_ascii_alphabetic());
        if BEFORE.contains(&pair[0]) && is_host {
            let port = words.get(at + 2).and_then(|word| word.parse().ok());
            found.push(tiphys_cause::Address { scheme: String::new(), host: pair[1].to_owned(), port });
        }
    }
    found
}

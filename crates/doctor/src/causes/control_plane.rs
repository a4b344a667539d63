//! The control plane: controllers, scheduler, etcd, certificates, clocks.

use jiff::Timestamp;
use tiphys_cause::{Cause, Failure};
use tiphys_value::{ObjectExt as _, Value};

use crate::{
    Object,
    cluster::{certificate::Certificate, controller, items, pods, time},
    finding::Finding,
    log_evidence::Fact,
    search_context::{Ill, Look},
};

pub(crate) fn find(look: &Look<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    found.extend(controllers(look));
    found.extend(etcd(look));
    found.extend(clocks(look));
    found.extend(expired_api_server(look));
    found.extend(expired_of_components(look));
    found
}

/// Seconds after which a lease that nobody renews is dead.
const DEAD: i64 = 90;

/// How old a lease of the control plane is, against the newest lease of all.
fn lease_age(look: &Look<'_>, name: &str) -> Option<(Object, i64, Timestamp)> {
    let leases = look.cluster.all("Lease");
    let live = leases.iter().find(|lease| lease.namespace() == "kube-system" && lease.name() == name)?;
    let renewed = time(live, &["spec", "renewTime"])?;
    // A node whose clock is ahead does not tell the time.
    let present = present(look);
    let is_possible = |time: &Timestamp| present.is_none_or(|present| time.as_second() - present < AHEAD);
    let others = leases.iter().filter(|lease| lease.name() != name);
    let times = others.filter_map(|lease| time(lease, &["spec", "renewTime"])).chain(look.cluster.now);
    let now = times.filter(is_possible).max()?;
    Some((Object::from_live(live), now.as_second() - renewed.as_second(), renewed))
}

/// The static pod of a component, if it is not well or not there.
fn component<'a>(look: &Look<'a>, name: &str) -> Option<&'a Value> {
    look.cluster.pods_in("kube-system").iter().copied().find(|pod| pod.name().starts_with(name))
}

/// Whether a workload is a component whose failure has a name of its own: what its pod says of itself tells
/// less than what stands still without it.
pub(crate) fn is_component(workload: &Object) -> bool {
    let starts = |name: &str| workload.name.starts_with(name);
    workload.kind == "Pod"
        && workload.namespace == "kube-system"
        && (starts("kube-scheduler") || starts("kube-controller-manager"))
}

/// Pods that nobody schedules.
pub(crate) fn scheduler(look: &Look<'_>, ill: &Ill<'_>, name: &str) -> Option<Finding> {
    let is_default = name == "default-scheduler";
    let lease = if is_default { lease_age(look, "kube-scheduler") } else { None };
    let pod = is_default.then(|| component(look, "kube-scheduler")).flatten();
    let is_dead = lease.as_ref().is_some_and(|(_, age, _)| *age > DEAD);
    let is_red = pod.is_some_and(|pod| look.is_red(&Object::from_live(pod)) || !pods::is_ready(pod));
    let is_old = ill.pods.iter().any(|pod| look.cluster.age(pod) > 120);
    let is_renewed = lease.as_ref().is_some_and(|(_, age, _)| *age <= DEAD);
    if !is_old || is_renewed && !is_red {
        return None;
    }
    let workload = ["Deployment", "StatefulSet"]
        .iter()
        .find_map(|kind| look.cluster.all(kind).iter().find(|it| !is_default && it.name().contains(name)));
    if !is_default && workload.is_none() && look.cluster.has_kind("Deployment") {
        return Some(absent_scheduler(look, ill, name));
    }
    let object = match (pod, workload, &lease) {
        (Some(pod), ..) => Object::from_live(pod),
        (_, Some(workload), _) => Object::from_live(workload),
        (_, _, Some((lease, ..))) => lease.clone(),
        _ => Object::new("Pod", "kube-system", "kube-scheduler"),
    };
    // That it says nothing is known only where what it would say was saved.
    // A description leaves out the condition in which its last words stand.
    let case = look.cluster.case;
    let is_heard =
        (!case.events.is_empty() || case.listed.contains("Event")) && !case.in_part.contains("Pod");
    let confidence = match (is_dead || is_red, is_heard) {
        (true, _) => 0.95,
        (false, true) => 0.7,
        (false, false) => 0.4,
    };
    let mut finding = Finding::new(
        Cause::ScheduleSchedulerDown,
        object.clone(),
        confidence,
        format!("the scheduler {name} does not work: pods wait, and it says nothing about them"),
    )
    .evidence(ill.workload.to_string(), "its pods are Pending without any word of the scheduler")
    .remedy(
        "Look at the scheduler's pod and log.",
        &["kubectl -n kube-system get pods -l component=kube-scheduler".to_owned()],
    );
    if is_default {
        finding = finding.below(etcd_pod(look)).below(api_server_pod(look));
    }
    if let Some((lease, age, renewed)) = lease {
        finding = finding.evidence(lease.to_string(), format!("renewed {age} s ago")).since(Some(renewed));
    }
    for pod in &ill.pods {
        finding = finding.suffers(Object::from_live(pod), "not scheduled");
    }
    Some(finding.suffers(ill.workload.clone(), "its pods are not scheduled"))
}

/// A workload that asks for a scheduler which nobody runs under that name.
fn absent_scheduler(look: &Look<'_>, ill: &Ill<'_>, name: &str) -> Finding {
    let all = look.cluster.all("Deployment").iter().map(|it| it.name());
    // Schedulers are called as their workloads begin.
    let near = all.filter(|it| it.contains("scheduler")).find(|it| {
        let first = it.strip_suffix("-scheduler").unwrap_or(it);
        crate::address_target::is_near(first, name) || crate::address_target::is_near(it, name)
    });
    let (cause, confidence) = match near {
        Some(_) => (Cause::ConfigWrongValue, 0.85),
        None => (Cause::ScheduleSchedulerDown, 0.7),
    };
    let workload = &ill.workload;
    let summary = format!("{workload} asks for the scheduler {name}, and none runs under that name");
    let finding = Finding::new(cause, workload.clone(), confidence, summary)
        .field("spec.template.spec.schedulerName")
        .evidence(workload.to_string(), format!("schedulerName: {name}"))
        .since(ill.since)
        .remedy("Correct schedulerName, or install the scheduler.", &[]);
    let finding = near.into_iter().fold(finding, |finding, near| finding.evidence("near names", near));
    ill.pods.iter().fold(finding, |finding, pod| finding.suffers(Object::from_live(pod), "not scheduled"))
}

/// A controller manager that does not work.
fn controllers(look: &Look<'_>) -> Option<Finding> {
    let lease = lease_age(look, "kube-controller-manager");
    let workloads = || {
        let kinds = ["Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"];
        kinds.into_iter().flat_map(|kind| look.cluster.all(kind).iter())
    };
    // Where no status tells what was observed, states were left out.
    let tells = workloads().any(|live| live.int_at(&["status", "observedGeneration"]).is_some());
    let behind: Vec<Object> = workloads()
        .filter(|_| tells)
        .filter(|live| {
            live.int_at(&["status", "observedGeneration"]).unwrap_or(0) < live.generation()
                && look.cluster.age(live) > 120
        })
        .map(|live| Object::from_live(live))
        .collect();
    let pod = component(look, "kube-controller-manager");
    let is_red = pod.is_some_and(|pod| look.is_red(&Object::from_live(pod)));
    let is_dead = lease.as_ref().is_some_and(|(_, age, _)| *age > DEAD);
    let is_alive = lease.as_ref().is_some_and(|(_, age, _)| *age <= DEAD);
    let hits_somebody = is_red && !behind.is_empty() || behind.len() >= 3;
    if is_alive || !(is_dead || hits_somebody) {
        return None;
    }
    let object = pod.map_or_else(
        || {
            lease.as_ref().map_or_else(
                || Object::new("Pod", "kube-system", "kube-controller-manager"),
                |(lease, ..)| lease.clone(),
            )
        },
        Object::from_live,
    );
    let mut finding = Finding::new(
        Cause::ControlControllerDown,
        object,
        if is_dead || is_red { 0.93 } else { 0.7 },
        "the controller manager does not work: nothing that was changed is acted upon",
    )
    .remedy(
        "Look at the controller manager's pod and log.",
        &["kubectl -n kube-system get pods -l component=kube-controller-manager".to_owned()],
    )
    // It works as long as it may write, and cannot where the store takes nothing.
    .below(etcd_pod(look))
    .below(api_server_pod(look));
    if let Some((lease, age, renewed)) = lease {
        finding = finding.evidence(lease.to_string(), format!("renewed {age} s ago")).since(Some(renewed));
    }
    for object in behind {
        finding = finding
            .evidence(object.to_string(), "its generation is newer than the one that was observed")
            .suffers(object, "is not acted upon");
    }
    Some(finding)
}

/// Words of an etcd that is full or slow.
const ETCD: &[&str] = &[
    "database space exceeded",
    "etcdserver: no space",
    "alarm:nospace",
    "nospace",
    "etcdserver: request timed out",
    "etcdserver: leader changed",
    "slow fdatasync",
    "etcdserver: too many requests",
    "etcdserver: no leader",
];

fn etcd(look: &Look<'_>) -> Option<Finding> {
    let is_told = |text: &str| {
        let low = text.to_ascii_lowercase();
        low.contains("etcdserver") && ETCD.iter().any(|word| low.contains(word))
            || low.contains("mvcc: database space exceeded")
    };
    let recent = |time: Option<Timestamp>| {
        time.and_then(|time| look.cluster.seconds_since(time)).is_none_or(|age| age < 3600)
    };
    let event = look.cluster.case.events.iter().find(|event| is_told(&event.message) && recent(event.last));
    let red = look.red.iter().find(|(_, symptom)| is_told(symptom));
    let log = look
        .cluster
        .case
        .logs
        .iter()
        .filter(|log| log.pod.starts_with("etcd") || log.pod.starts_with("kube-apiserver"));
    let line = log.clone().find_map(|log| {
        let mut lines = log.last_lines();
        let full = lines.find(|line| {
            let low = line.to_ascii_lowercase();
            low.contains("nospace") || low.contains("database space exceeded") || low.contains("no space")
        });
        full.map(|line| (log, line))
    });
    let slow = || {
        log.clone().find_map(|log| {
            let slow: Vec<&str> = log
                .text
                .lines()
                .filter(|line| {
                    line.contains("slow fdatasync")
                        || line.contains("apply request took too long")
                        || line.contains("leader failed to send out heartbeat")
                })
                .collect();
            (slow.len() >= 3 && !look.red.is_empty()).then(|| (log, slow[0]))
        })
    };
    let (source, text) = match (line, event, red) {
        (Some((log, line)), ..) => (log.source(), line.to_owned()),
        (_, Some(event), _) => (format!("Event of {}", event.object), event.message.clone()),
        (_, _, Some((object, symptom))) => (object.to_string(), symptom.clone()),
        _ => {
            let (log, line) = slow()?;
            (log.source(), line.to_owned())
        }
    };
    let mut finding = etcd_fault(look, &source, &text);
    for (object, _) in look.red.iter().filter(|(_, symptom)| is_told(symptom)) {
        finding = finding.suffers(object.clone(), "cannot be written");
    }
    if let Some(event) = event {
        finding = finding.suffers(event.object.clone(), "cannot be written");
    }
    Some(finding)
}

/// The pod of etcd, or the name of the one whose log was saved.
fn etcd_pod(look: &Look<'_>) -> Object {
    let mut logs = look.cluster.case.logs.iter();
    let log = logs.find(|log| log.namespace == "kube-system" && log.pod.starts_with("etcd"));
    let name = log.map_or("etcd", |log| &log.pod);
    component(look, "etcd").map_or_else(|| Object::new("Pod", "kube-system", name), Object::from_live)
}

/// The pod of the API server, or its usual name.
fn api_server_pod(look: &Look<'_>) -> Object {
    component(look, "kube-apiserver")
        .map_or_else(|| Object::new("Pod", "kube-system", "kube-apiserver"), Object::from_live)
}

pub(crate) fn etcd_fault(look: &Look<'_>, source: &str, line: &str) -> Finding {
    let object = etcd_pod(look);
    let is_full = line.to_ascii_lowercase().contains("space");
    let (what, text) = if is_full {
        ("full", "Compact and defragment etcd, and disarm its alarm.")
    } else {
        ("slow", "Give etcd a faster disk of its own.")
    };
    Finding::new(Cause::ControlEtcd, object, 0.93, format!("etcd is {what}: the API server cannot write"))
        .evidence(source, line)
        .remedy(text, &["etcdctl endpoint status -w table".to_owned(), "etcdctl alarm list".to_owned()])
}

/// Seconds by which a clock is ahead for good, and not for the way of a packet.
const AHEAD: i64 = 300;

/// The time by which a program says that it judged a certificate.
fn judged_at(line: &str) -> Option<Timestamp> {
    line.split_once("current time ")?.1.split_whitespace().next()?.parse().ok()
}

/// Whether a line is of a program whose clock is ahead of the time at which the state was saved.
fn is_of_the_future(look: &Look<'_>, line: &str) -> bool {
    let saved = look.cluster.case.at.or_else(|| present(look).and_then(|at| Timestamp::from_second(at).ok()));
    match (judged_at(line), saved) {
        (Some(judged), Some(saved)) => judged.as_second() - saved.as_second() > AHEAD,
        _ => false,
    }
}

/// The nodes of pods whose clock is ahead, by their leases or by what the pods say: what has expired there is
/// judged by that clock.
pub(crate) fn ahead_of_time(look: &Look<'_>, pods: &[&Value], line: &str) -> Vec<Object> {
    let on_nodes = || {
        let nodes = pods.iter().filter_map(|pod| pod.str_at(&["spec", "nodeName"]));
        nodes.map(|node| Object::new("Node", "", node))
    };
    if is_of_the_future(look, line) {
        return on_nodes().take(1).collect();
    }
    let Some(present) = present(look) else { return Vec::new() };
    let is_ahead = |node: &Object| {
        let lease = look.cluster.get("Lease", "kube-node-lease", &node.name);
        let renewed = lease.and_then(|lease| time(lease, &["spec", "renewTime"]));
        renewed.is_some_and(|renewed| renewed.as_second() - present > AHEAD)
    };
    on_nodes().filter(is_ahead).collect()
}

/// The leases of nodes, each with the time at which it was renewed by the node's own clock.
fn node_leases<'a>(look: &Look<'a>) -> Vec<(&'a Value, Timestamp)> {
    let leases = look.cluster.all("Lease").iter().filter(|it| it.namespace() == "kube-node-lease");
    leases.filter_map(|it| Some((*it, time(it, &["spec", "renewTime"])?))).collect()
}

/// The present in seconds, as it was told, or as most clocks have it.
fn present(look: &Look<'_>) -> Option<i64> {
    if let Some(at) = look.cluster.case.at {
        return Some(at.as_second());
    }
    let mut times: Vec<i64> = node_leases(look).iter().map(|(_, time)| time.as_second()).collect();
    times.sort_unstable();
    let middle = times.get(times.len() / 2).copied().filter(|_| times.len() >= 3)?;
    // Most leases may be those of nodes that are silent: who leads the control plane tells the time too.
    let leaders = ["kube-scheduler", "kube-controller-manager"];
    let led = leaders.iter().filter_map(|name| look.cluster.get("Lease", "kube-system", name));
    let led = led.filter_map(|lease| time(lease, &["spec", "renewTime"])).map(|time| time.as_second());
    Some(led.max().map_or(middle, |led| led.max(middle)))
}

/// Nodes whose clock is ahead.
fn clocks(look: &Look<'_>) -> Vec<Finding> {
    let leases = node_leases(look);
    let Some(middle) = present(look) else { return Vec::new() };
    let ahead = leases.iter().filter(|(_, time)| time.as_second() - middle > AHEAD);
    let found = ahead.map(|(lease, time)| {
        let object = Object::new("Node", "", lease.name());
        Finding::new(
            Cause::ControlClock,
            object.clone(),
            0.9,
            format!("the clock of {object} is {} s ahead", time.as_second() - middle),
        )
        .evidence(Object::from_live(lease).to_string(), format!("renewed at {time}"))
        .remedy("Set the clock right, and keep it right.", &["chronyc tracking".to_owned()])
    });
    let mut found: Vec<Finding> = found.collect();
    found.extend(look.ill.iter().filter_map(|ill| clock_of_judge(look, ill)));
    for ill in &look.ill {
        let early = ill
            .facts
            .iter()
            .find(|fact| matches!(&fact.fact, Fact::Call(call) if call.failure == Failure::NotYetValid));
        let Some(fact) = early else { continue };
        let nodes: Vec<&str> = ill.pods.iter().filter_map(|pod| pod.str_at(&["spec", "nodeName"])).collect();
        let behind = nodes.iter().find(|node| {
            leases.iter().any(|(lease, time)| lease.name() == **node && middle - time.as_second() > 300)
        });
        let object = behind
            .or(nodes.first())
            .map_or_else(|| ill.workload.clone(), |node| Object::new("Node", "", node));
        let finding = Finding::new(
            Cause::ControlClock,
            object.clone(),
            0.8,
            format!("a certificate is not valid yet for {}: the clock of {object} is wrong", ill.workload),
        )
        .evidence(fact.source.clone(), fact.line.clone())
        .remedy("Set the clock right, and keep it right.", &["chronyc tracking".to_owned()])
        .suffers(ill.workload.clone(), "refuses a certificate");
        found.push(finding);
    }
    found.extend(stale_signatures(look));
    found
}

/// The node of a program that finds a certificate expired by a time that has not come.
fn clock_of_judge(look: &Look<'_>, ill: &Ill<'_>) -> Option<Finding> {
    let fact = ill.facts.iter().find(|fact| {
        matches!(&fact.fact, Fact::Call(call) if call.failure == Failure::Expired)
            && is_of_the_future(look, &fact.line)
    })?;
    let object = Object::new("Node", "", ill.pods.first()?.str_at(&["spec", "nodeName"])?);
    let summary =
        format!("{} judges by a time that has not come: the clock of {object} is ahead", ill.workload);
    let finding = Finding::new(Cause::ControlClock, object, 0.85, summary)
        .evidence(fact.source.clone(), fact.line.clone())
        .remedy("Set the clock right, and keep it right.", &["chronyc tracking".to_owned()])
        .suffers(ill.workload.clone(), "finds certificates expired");
    Some(
        ill.pods
            .iter()
            .fold(finding, |finding, pod| finding.suffers(Object::from_live(pod), "judges by a wrong time")),
    )
}

/// Nodes whose programs sign requests with a time that the other side no longer accepts.
fn stale_signatures(look: &Look<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for log in &look.cluster.case.logs {
        let Some(line) = log.last_lines().find(|line| tells_of_clock(line)) else { continue };
        let Some(pod) = look.cluster.get("Pod", &log.namespace, &log.pod) else { continue };
        let Some(node) = pod.str_at(&["spec", "nodeName"]) else { continue };
        let workload = look.cluster.workload(pod);
        let object = Object::new("Node", "", node);
        let summary = format!(
            "requests that {workload} signs are refused for their time: the clock of {object} is wrong"
        );
        let finding = Finding::new(Cause::ControlClock, object.clone(), 0.85, summary)
            .evidence(log.source(), line)
            .remedy("Set the clock right, and keep it right.", &["chronyc tracking".to_owned()])
            .suffers(Object::from_live(pod), "signs with a wrong time")
            .suffers(workload, "signs with a wrong time");
        found.push(finding);
    }
    found
}

/// Whether a line says that the time of a signature lies too far from the other side's.
pub(crate) fn tells_of_clock(line: &str) -> bool {
    const WORDS: &[&str] = &[
        "is now earlier than",
        "signature not yet current",
        "requesttimetooskewed",
        "request time and the current time is too large",
        "clock skew too great",
        "token used before issued",
    ];
    let low = line.to_ascii_lowercase();
    WORDS.iter().any(|word| low.contains(word))
}

/// An API server whose certificate has expired, as components say that no longer renew their leases there.
fn expired_api_server(look: &Look<'_>) -> Option<Finding> {
    const COMPONENTS: &[&str] = &["kube-controller-manager", "kube-scheduler"];
    const LAST: usize = 20;
    let told = COMPONENTS.iter().filter_map(|name| {
        lease_age(look, name).filter(|(_, age, _)| *age > DEAD)?;
        let pod = component(look, name)?;
        let logs = look.cluster.logs(pod.namespace(), pod.name());
        let (source, line) = logs.iter().find_map(|log| {
            let mut lines = log.last_lines().take(LAST);
            let line = lines.find(|line| Failure::read(line) == Some(Failure::Expired))?;
            Some((log.source(), line.to_owned()))
        })?;
        Some((pod, source, line))
    });
    let told: Vec<(&Value, String, String)> = told.collect();
    let (first, _, line) = told.first()?;
    let summary = "the certificate of the API server has expired: its own components do not trust it";
    let finding = Finding::new(Cause::ControlCertificateExpired, api_server_pod(look), 0.9, summary).remedy(
        "Renew the certificates of the control plane, and restart its pods.",
        &["kubeadm certs check-expiration".to_owned(), "kubeadm certs renew all".to_owned()],
    );
    let clocks = ahead_of_time(look, &[*first], line);
    let finding = clocks.into_iter().fold(finding, Finding::below);
    Some(told.iter().fold(finding, |finding, (pod, source, line)| {
        let object = Object::from_live(pod);
        finding.evidence(source.clone(), line.clone()).suffers(object, "does not reach the API server")
    }))
}

/// Expired certificates, told by the logs of who was shown them.
fn expired_of_components(look: &Look<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for ill in &look.ill {
        let told = ill
            .facts
            .iter()
            .find(|fact| matches!(&fact.fact, Fact::Call(call) if call.failure == Failure::Expired));
        let Some(fact) =
            told.filter(|fact| ill.facts.first().is_some_and(|first| first.weight - fact.weight < 30))
        else {
            continue;
        };
        let is_outside = match &fact.fact {
            Fact::Call(call) => call.targets.iter().any(|address| {
                matches!(
                    look.cluster.target(address, ill.namespace()),
                    crate::address_target::Target::Outside
                )
            }),
            _ => false,
        };
        let secret = expired_of(look, ill);
        let Some(finding) = (match secret {
            Some((secret, at)) if !is_outside => Some(expired_secret(look, secret, at)),
            _ if is_outside => None,
            _ => Some(
                Finding::new(
                    Cause::ControlCertificateExpired,
                    ill.workload.clone(),
                    0.7,
                    format!("a certificate that {} is shown has expired", ill.workload),
                )
                .remedy("Renew the certificate.", &[]),
            ),
        }) else {
            continue;
        };
        // Whose certificate it is would be told by the Secrets.
        // The certificates of static pods lie on their node.
        let is_static = ill.pods.iter().any(|pod| controller(pod).is_some_and(|owner| owner.kind == "Node"));
        let is_told = is_static || look.cluster.has_kind("Secret");
        let finding = if is_told { finding } else { finding.not_known() };
        let finding = finding.evidence(fact.source.clone(), fact.line.clone());
        let clocks = ahead_of_time(look, &ill.pods, &fact.line);
        let finding = clocks.into_iter().fold(finding, Finding::below);
        found.push(
            ill.pods
                .iter()
                .fold(finding, |finding, pod| {
                    finding.suffers(Object::from_live(pod), "is shown an expired certificate")
                })
                .suffers(ill.workload.clone(), "is shown an expired certificate"),
        );
    }
    found
}

/// The Secret with an expired certificate that pods hold; else one of their namespace, or any.
fn expired_of<'a>(look: &Look<'a>, ill: &Ill<'a>) -> Option<(&'a Value, Timestamp)> {
    let mut names = Vec::new();
    crate::dependencies::configuration(ill.spec(), ill.namespace(), &mut names);
    let held = names.iter().filter(|it| it.kind == "Secret").filter_map(|it| look.cluster.live(it));
    let all = look.cluster.all("Secret").iter().copied();
    let near = all.clone().filter(|it| it.namespace() == ill.namespace());
    held.chain(near).chain(all).find_map(|secret| Some((secret, expired(look, secret)?)))
}

/// When the certificate of a Secret expired, if it has.
pub(crate) fn expired(look: &Look<'_>, secret: &Value) -> Option<Timestamp> {
    let data = ["data", "stringData"].into_iter().filter_map(|field| secret.at(&[field])?.as_object());
    let keys = data.flat_map(|data| data.keys()).filter(|key| key.ends_with(".crt") || key.ends_with(".pem"));
    let all = keys.flat_map(|key| Certificate::all_of_secret(secret, key));
    let now = look.cluster.now?;
    all.map(|certificate| certificate.not_after).filter(|at| *at < now).min()
}

/// The fault of a Secret whose certificate expired.
pub(crate) fn expired_secret(look: &Look<'_>, secret: &Value, at: Timestamp) -> Finding {
    let object = Object::from_live(secret);
    let finding = Finding::new(
        Cause::ControlCertificateExpired,
        object.clone(),
        0.9,
        format!("the certificate in {object} expired at {at}"),
    )
    .since(Some(at))
    .evidence(object.to_string(), format!("valid until {at}"))
    .remedy("Renew the certificate, and restart who holds the old one.", &[]);
    crate::dependencies::upstream(look.cluster, &object).into_iter().fold(finding, Finding::below)
}

/// The expired certificate of a Service's pods, by the Secrets that they mount.
pub(crate) fn certificate_of_service(look: &Look<'_>, service: &Value) -> Option<Finding> {
    for pod in look.cluster.pods_of(service) {
        let names =
            items(pod, &["spec", "volumes"]).filter_map(|volume| volume.str_at(&["secret", "secretName"]));
        for secret in names.filter_map(|name| look.cluster.get("Secret", pod.namespace(), name)) {
            if let Some(at) = expired(look, secret) {
                return Some(expired_secret(look, secret, at));
            }
        }
    }
    let object = Object::from_live(service);
    Some(
        Finding::new(
            Cause::ControlCertificateExpired,
            object.clone(),
            0.7,
            format!("{object} shows an expired certificate"),
        )
        .remedy("Renew the certificate.", &[]),
    )
}

//! A cluster as `tiphys dump` saves it, with the logs that its programs would have written.
//!
//! The world plays programs without logs. Here a program that is ill says what a program of that need says:
//! whom it cannot reach, and how that fails on a real network.

use std::collections::BTreeSet;

use tiphys_doctor::{Case, Event, Log};
use tiphys_stage::Still;
use tiphys_value::{ObjectExt as _, Value};

use crate::{plant::Planted, repository::Repository};

/// Saves a cluster.
#[must_use]
pub fn dump(still: &Still, repository: &Repository, planted: &Planted) -> Case {
    let mut case = Case { at: Some(still.at()), ..Case::default() };
    for object in objects(still) {
        match Event::from_live(&object) {
            Some(event) => case.events.push(as_a_kubelet_says(event)),
            None => case.objects.push(stripped(object)),
        }
    }
    let kinds: BTreeSet<String> = still
        .server()
        .snapshot()
        .resources()
        .filter_map(|id| {
            let snapshot = still.server().snapshot();
            snapshot.list(id, None).next().map(|object| object.value().kind().to_owned())
        })
        .collect();
    case.listed = kinds;
    case.listed.extend(
        [
            "Pod",
            "Service",
            "Secret",
            "ConfigMap",
            "Deployment",
            "StatefulSet",
            "DaemonSet",
            "NetworkPolicy",
            "PersistentVolumeClaim",
            "StorageClass",
            "ServiceAccount",
            "Ingress",
            "IngressClass",
            "Node",
            "Namespace",
            "CustomResourceDefinition",
        ]
        .map(str::to_owned),
    );
    case.logs = logs(&case.objects, repository, planted);
    let said = kubelet_events(&case, planted);
    case.events.extend(said);
    case
}

/// Every object but what tells the world how to play.
pub fn objects(still: &Still) -> Vec<Value> {
    let snapshot = still.server().snapshot();
    let all =
        snapshot.resources().flat_map(|id| snapshot.list(id, None)).map(|object| object.value().clone());
    all.filter(|object| {
        object.name() != "tiphys-world" && !object.api_version().starts_with("events.k8s.io/")
    })
    .collect()
}

/// A program that lacks something answers 503; why is in its log.
fn as_a_kubelet_says(mut event: Event) -> Event {
    const FAILED: &str = "Readiness probe failed: ";
    if event.reason == "Unhealthy"
        && let Some(why) = event.message.strip_prefix(FAILED)
        && (why.starts_with("no endpoints") || why.starts_with("dial tcp"))
    {
        event.message = format!("{FAILED}HTTP probe failed with statuscode: 503");
    }
    event
}

/// What kubelets say of pods that are ill, where the world plays only that they are.
fn kubelet_events(case: &Case, planted: &Planted) -> Vec<Event> {
    let mut found = Vec::new();
    for pod in case.objects.iter().filter(|object| object.kind() == "Pod") {
        let statuses = pod.at(&["status", "containerStatuses"]).and_then(Value::as_array);
        let is_ill = statuses.into_iter().flatten().any(|status| status["restartCount"] != 0);
        for (namespace, workload, reason, message) in &planted.said {
            let rest = pod.name().strip_prefix(workload.as_str());
            let is_of = pod.namespace() == namespace && rest.is_some_and(|rest| rest.starts_with('-'));
            if !is_ill || !is_of {
                continue;
            }
            found.push(Event {
                object: tiphys_doctor::Object::from_live(pod),
                version: pod.api_version().to_owned(),
                uid: pod.uid().to_owned(),
                kind: if reason == "Killing" { "Normal" } else { "Warning" }.to_owned(),
                reason: reason.clone(),
                message: message.clone(),
                count: 12,
                first: pod.str_at(&["metadata", "creationTimestamp"]).and_then(|at| at.parse().ok()),
                last: case.at,
                source: "kubelet".to_owned(),
            });
        }
    }
    found
}

fn stripped(mut object: Value) -> Value {
    if object.kind() == "Secret"
        && let Some(data) = object.get_mut("data").and_then(Value::as_object_mut)
    {
        data.values_mut().for_each(|value| *value = "".into());
    }
    object
}

fn logs(objects: &[Value], repository: &Repository, planted: &Planted) -> Vec<Log> {
    let mut found = Vec::new();
    for pod in objects.iter().filter(|object| object.kind() == "Pod") {
        let statuses = ["containerStatuses", "initContainerStatuses"].into_iter();
        for status in statuses.filter_map(|list| pod.at(&["status", list])?.as_array()).flatten() {
            let name = status.str_at(&["name"]).unwrap_or_default();
            let has_run = status.at(&["state", "running"]).is_some()
                || status.at(&["lastState", "terminated"]).is_some()
                || status.at(&["state", "terminated"]).is_some();
            let is_well = status["ready"] == true && status["restartCount"] == 0;
            if !has_run || is_well {
                continue;
            }
            let previous = status.at(&["state", "running"]).is_none()
                && status.at(&["lastState", "terminated"]).is_some();
            if let Some(text) = text(pod, objects, repository, planted) {
                let [namespace, pod, container] = [pod.namespace(), pod.name(), name].map(str::to_owned);
                found.push(Log { namespace, pod, container, previous, text });
            }
        }
    }
    found
}

fn text(pod: &Value, objects: &[Value], repository: &Repository, planted: &Planted) -> Option<String> {
    let is_of = |namespace: &str, workload: &str| {
        pod.namespace() == namespace
            && pod.name().strip_prefix(workload).is_some_and(|rest| rest.starts_with('-'))
    };
    let said = planted.lines.iter().find(|(namespace, workload, _)| is_of(namespace, workload));
    if let Some((_, _, line)) = said {
        return Some(format!("starting\n{line}\n"));
    }
    let need = repository.needs.iter().find(|need| is_of(&need.namespace, &need.workload))?;
    let how = |service: &str| planted.unreached.get(service).or_else(|| planted.unreached.get("*"));
    if need.service.is_empty() {
        let how = planted.unreached.get("")?;
        return Some(format!(
            "I0105 09:10:10.000001       1 main.go:61] starting manager\nE0105 09:10:40.000001       1 main.go:88] unable to get server groups: Get \"https://10.96.0.1:443/api?timeout=32s\": dial tcp 10.96.0.1:443: {how}\n"
        ));
    }
    let service = objects
        .iter()
        .find(|it| it.kind() == "Service" && it.namespace() == need.namespace && it.name() == need.service);
    let address = service.and_then(|it| it.str_at(&["spec", "clusterIP"])).unwrap_or("10.96.3.3");
    let host = format!("{}.{}.svc.cluster.local", need.service, need.namespace);
    let port = need.port;
    let error = match how(&need.service).map(String::as_str) {
        Some("lookup: i/o timeout") => format!(
            "dial tcp: lookup {host} on 10.96.0.10:53: read udp 10.244.1.9:41812->10.96.0.10:53: i/o timeout"
        ),
        Some(how) => format!("dial tcp {address}:{port}: {how}"),
        None if service.is_none() => format!("dial tcp: lookup {host} on 10.96.0.10:53: no such host"),
        None => format!("dial tcp {address}:{port}: connect: connection refused"),
    };
    Some(format!(
        "time=2026-01-05T09:10:11Z level=info msg=starting\ntime=2026-01-05T09:10:12Z level=error msg=\"upstream is not reachable\" upstream={host}:{port} error=\"{error}\"\n"
    ))
}

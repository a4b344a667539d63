//! Applications of Argo CD: waits, errors, failed syncs, hooks, fights.

use std::collections::BTreeMap;

use tiphys_cause::{Cause, Failure, refusal, unwrapped, waits_for};
use tiphys_value::{ObjectExt as _, Value};

use super::delivery::{delivery, stale};
use crate::{
    Object,
    causes::admission::{self, Refused},
    cluster::{condition, conditions, has_condition, items, time},
    finding::Finding,
    log_evidence::Fact,
    search_context::Look,
};

/// An operation that waits for what it cannot finish.
pub(super) fn waiting(look: &Look<'_>, app: &Value) -> Option<Finding> {
    let object = Object::from_live(app);
    let operation = app.at(&["status", "operationState"])?;
    if operation.str_at(&["phase"]) != Some("Running") {
        return None;
    }
    let message = operation.str_at(&["message"]).unwrap_or_default();
    let since = time(operation, &["startedAt"]);
    let evidence =
        |finding: Finding| finding.evidence(format!("{object}, status.operationState"), message).since(since);
    let wait = waits_for(message)?;
    let is_old = since.and_then(|since| look.cluster.seconds_since(since)).is_none_or(|age| age > 300);
    if wait.kind == "Application" && is_old {
        let circle = circle(look, &object, &wait.name);
        if let Some(circle) = circle {
            let finding = Finding::new(Cause::GitopsSelfWait, object.clone(), 0.95, format!("the operation of {object} waits for {circle}, which cannot become healthy before the operation ends"))
                .remedy("End the operation, take the Application out of its own source, or do not judge its sync status as health.", &[format!("argocd app terminate-op {}", object.name)]);
            let later = items(app, &["status", "resources"]).filter(|it| {
                it.str_at(&["status"]) == Some("OutOfSync")
                    && it.str_at(&["name"]) != Some(object.name.as_str())
            });
            let later: Vec<Object> = later
                .map(|it| {
                    Object::new(
                        it.str_at(&["kind"]).unwrap_or_default(),
                        it.str_at(&["namespace"]).unwrap_or_default(),
                        it.str_at(&["name"]).unwrap_or_default(),
                    )
                })
                .collect();
            return Some(evidence(
                later.into_iter().fold(finding, |finding, it| finding.suffers(it, "its wave never comes")),
            ));
        }
    }
    let targets: Vec<Object> = look
        .cluster
        .case
        .objects
        .iter()
        .filter(|it| it.kind() == wait.kind && it.name() == wait.name)
        .map(Object::from_live)
        .collect();
    if targets.is_empty()
        && let Some(finding) = waits_for_absent(look, app, &wait, is_old)
    {
        return Some(evidence(finding));
    }
    if wait.kind == "Job" && is_old {
        let job = targets.first().cloned().unwrap_or_else(|| {
            Object::new(
                "Job",
                app.str_at(&["spec", "destination", "namespace"]).unwrap_or_default(),
                &wait.name,
            )
        });
        let live = look.cluster.live(&job);
        let is_hook = message.contains("hook")
            || live.is_some_and(|it| {
                it.annotation("argocd.argoproj.io/hook").is_some() || it.annotation("helm.sh/hook").is_some()
            });
        if is_hook && live.is_none_or(|live| !has_condition(live, "Complete", "True")) {
            let mut finding = Finding::new(
                Cause::GitopsHookFailed,
                job.clone(),
                0.8,
                format!("the hook {job} of {object} does not end"),
            )
            .suffers(object.clone(), "waits for its hook")
            .below(job.clone())
            .remedy("See what the hook waits for; what comes in a later phase cannot be there yet.", &[]);
            let pods = crate::cluster::pods::of_workload(look.cluster, &job);
            // A Job that has no pods waits for whoever refuses them, and nobody says who.
            if live.is_some() && pods.is_empty() && look.cluster.has_kind("Pod") {
                finding = finding.not_known();
            }
            for pod in pods {
                finding = finding.below(Object::from_live(pod));
            }
            // What it calls may be what it waits for.
            let spec = live.and_then(crate::cluster::pods::spec);
            for service in spec.into_iter().flat_map(|spec| called_services(look, spec, &job.namespace)) {
                finding = finding.below(service);
            }
            return Some(evidence(finding));
        }
    }
    None
}

/// Kinds that operations wait for and that need no definition.
const BUILT_IN: &[&str] = &[
    "Pod",
    "ReplicaSet",
    "Deployment",
    "StatefulSet",
    "DaemonSet",
    "Job",
    "CronJob",
    "Service",
    "Ingress",
    "PersistentVolumeClaim",
    "APIService",
    "HorizontalPodAutoscaler",
    "Namespace",
    "CustomResourceDefinition",
];

/// An operation that waits for something that is no longer there.
fn waits_for_absent(
    look: &Look<'_>,
    app: &Value,
    wait: &tiphys_cause::WaitsFor,
    is_old: bool,
) -> Option<Finding> {
    if !is_old || wait.kind == "Job" {
        return None;
    }
    let object = Object::from_live(app);
    // That a kind was not saved proves nothing; that its definition is gone does.
    let definitions = look.cluster.all("CustomResourceDefinition");
    let is_defined =
        definitions.iter().any(|it| it.str_at(&["spec", "names", "kind"]) == Some(wait.kind.as_str()));
    let is_custom = !BUILT_IN.contains(&wait.kind.as_str());
    let proves = look.cluster.has_kind(&wait.kind) || is_custom && !definitions.is_empty() && !is_defined;
    let confidence = if proves { 0.85 } else { 0.45 };
    let what =
        format!("the operation of {object} waits for {} {}, which no longer exists", wait.kind, wait.name);
    Some(
        Finding::new(Cause::GitopsStaleOperation, object.clone(), confidence, what)
            .field("status.operationState")
            .remedy(
                "End the operation, and sync again.",
                &[format!("argocd app terminate-op {}", object.name)],
            ),
    )
}

/// What an Application waits for in the end, if that is the Application itself.
fn circle(look: &Look<'_>, start: &Object, first: &str) -> Option<String> {
    let mut name = first.to_owned();
    for _ in 0..8 {
        if name == start.name {
            return Some(if first == start.name {
                "itself".to_owned()
            } else {
                format!("{first}, which waits for it")
            });
        }
        let next = look.cluster.all("Application").iter().find(|it| it.name() == name)?;
        let contains = items(next, &["status", "resources"]).any(|it| {
            it.str_at(&["kind"]) == Some("Application") && it.str_at(&["name"]) == Some(start.name.as_str())
        });
        let message = next.str_at(&["status", "operationState", "message"]).unwrap_or_default();
        let is_running = next.str_at(&["status", "operationState", "phase"]) == Some("Running");
        match waits_for(message).filter(|wait| wait.kind == "Application" && is_running) {
            Some(wait) => name = wait.name,
            None if contains => return Some(format!("{name}, which holds it")),
            None => return None,
        }
    }
    None
}

/// The errors in an Application's conditions.
pub(super) fn errors(look: &Look<'_>, app: &Value) -> Vec<Finding> {
    let object = Object::from_live(app);
    let mut found = Vec::new();
    for told in conditions(app) {
        let name = told.str_at(&["type"]).unwrap_or_default();
        let message = told.str_at(&["message"]).unwrap_or_default();
        let source = format!("{object}, condition {name}");
        if name == "SharedResourceWarning" {
            found.push(
                Finding::new(
                    Cause::GitopsTwoOwners,
                    object.clone(),
                    0.88,
                    format!("{object} shares an object with another Application: {message}"),
                )
                .evidence(source, message)
                .remedy("Let one Application own the object.", &[]),
            );
            continue;
        }
        if !matches!(
            name,
            "ComparisonError" | "InvalidSpecError" | "SyncError" | "DeletionError" | "UnknownError"
        ) {
            continue;
        }
        let since = time(told, &["lastTransitionTime"]);
        let finding = delivery(look, &object, app, message, &source, name)
            .or_else(|| not_rendered(&object, message, &source).filter(|_| name == "ComparisonError"));
        found.extend(finding.map(|finding| finding.since(since)));
    }
    found
}

/// A comparison that fails for a reason in words that are not known. Unless they are about the cluster or
/// about the way to something, it is the source that cannot be rendered.
fn not_rendered(object: &Object, message: &str, source: &str) -> Option<Finding> {
    let text = unwrapped(message);
    let low = message.to_ascii_lowercase();
    let is_of_the_cluster = [
        "cluster cache",
        "cluster info",
        "sync cluster",
        "cluster \"http",
        "cluster http",
        "live state",
        "cache state",
        "initial state of resource",
        "rpc error: code = unavailable",
        "deadline",
        "canceled",
    ];
    if Failure::read(text).is_some()
        || refusal(text).cause.is_some()
        || is_of_the_cluster.iter().any(|it| low.contains(it))
    {
        return None;
    }
    let finding = Finding::new(
        Cause::GitopsRender,
        object.clone(),
        0.65,
        format!("{object} cannot be rendered: {text}"),
    );
    Some(finding.evidence(source, message).remedy("Correct what the message names in the source.", &[]))
}

/// A sync that failed: whose words are they, and do they still hold?
pub(super) fn failed_operation(look: &Look<'_>, app: &Value) -> Vec<Finding> {
    let object = Object::from_live(app);
    let Some(operation) = app.at(&["status", "operationState"]) else { return Vec::new() };
    let phase = operation.str_at(&["phase"]).unwrap_or_default();
    let message = operation.str_at(&["message"]).unwrap_or_default();
    let is_synced = app.str_at(&["status", "sync", "status"]) == Some("Synced");
    let retries = phase == "Running"
        && (message.contains("Retrying attempt") || operation.int_at(&["retryCount"]).unwrap_or(0) > 0);
    if !matches!(phase, "Failed" | "Error") && !retries || is_synced && phase != "Running" {
        return Vec::new();
    }
    let mut refusals: Vec<Refused> = Vec::new();
    for result in items(operation, &["syncResult", "resources"])
        .filter(|it| it.str_at(&["status"]) == Some("SyncFailed"))
    {
        let text = |key| result.str_at(&[key]).unwrap_or_default();
        let written = Object::new(text("kind"), text("namespace"), text("name"));
        refusals.push(Refused {
            writer: object.clone(),
            written: Some(written),
            source: format!("{object}, status.operationState.syncResult"),
            message: text("message").to_owned(),
        });
    }
    if refusals.is_empty() {
        refusals.push(Refused {
            writer: object.clone(),
            written: None,
            source: format!("{object}, status.operationState"),
            message: message.to_owned(),
        });
    }
    let mut found = Vec::new();
    let mut cleared = Vec::new();
    for refused in refusals {
        let text = unwrapped(&refused.message);
        let read = refusal(text);
        match read.cause {
            Some(_) if !admission::still_holds(look, &refused, &read) => cleared.push(refused),
            Some(_) => {
                let written = refused.written.clone();
                let finding = admission::fault(look, &refused);
                found.extend(finding.map(|finding| match written {
                    Some(written) => finding.suffers(written, "is not written"),
                    None => finding,
                }));
            }
            None => {
                found.extend(delivery(look, &object, app, &refused.message, &refused.source, "SyncError"))
            }
        }
    }
    if found.is_empty()
        && let Some(refused) = cleared.first()
    {
        found.push(stale(app, refused));
    }
    if found.is_empty() && retries {
        let (asked, now) = (
            operation
                .str_at(&["operation", "sync", "revision"])
                .or_else(|| operation.str_at(&["syncResult", "revision"])),
            app.str_at(&["status", "sync", "revision"]),
        );
        let is_other = matches!((asked, now), (Some(asked), Some(now)) if asked.len() == 40 && now.len() == 40 && asked != now);
        if is_other {
            let refused = Refused {
                writer: object.clone(),
                written: None,
                source: format!("{object}, status.operationState"),
                message: message.to_owned(),
            };
            found.push(stale(app, &refused));
        }
    }
    found
}

/// Hooks that failed.
pub(super) fn hooks(look: &Look<'_>, app: &Value) -> Vec<Finding> {
    let object = Object::from_live(app);
    let is_failed = matches!(app.str_at(&["status", "operationState", "phase"]), Some("Failed" | "Error"));
    let results = items(app, &["status", "operationState", "syncResult", "resources"]).filter(|it| {
        is_failed
            && matches!(it.str_at(&["hookPhase"]), Some("Failed" | "Error"))
            && it.str_at(&["hookType"]).is_some_and(|hook| !hook.is_empty())
    });
    let found = results.map(|result| {
        let text = |key| result.str_at(&[key]).unwrap_or_default();
        let hook = Object::new(text("kind"), text("namespace"), text("name"));
        let finding = Finding::new(
            Cause::GitopsHookFailed,
            hook.clone(),
            0.9,
            format!("the {} hook {hook} of {object} failed", text("hookType")),
        )
        .evidence(format!("{object}, status.operationState.syncResult"), text("message"))
        .suffers(object.clone(), "its hook failed")
        .remedy(
            "Read the hook's log, correct it, and sync again.",
            &[format!("kubectl -n {} logs job/{}", hook.namespace, hook.name)],
        );
        let pods = crate::cluster::pods::of_workload(look.cluster, &hook);
        let finding = pods.into_iter().fold(finding, |finding, pod| finding.below(Object::from_live(pod)));
        let finding = if blames_another(look, &hook) { finding.not_known() } else { finding };
        with_log(look, finding, &hook)
    });
    found.collect()
}

/// Whether the log of a hook blames what it calls: why that does not answer is the cause, known or not.
fn blames_another(look: &Look<'_>, hook: &Object) -> bool {
    let mut ill = look.ill.iter().filter(|ill| ill.workload == *hook);
    ill.any(|ill| {
        let told = ill.facts.first();
        told.is_some_and(|fact| matches!(&fact.fact, Fact::Call(call) if !call.targets.is_empty()))
    })
}

fn with_log(look: &Look<'_>, finding: Finding, job: &Object) -> Finding {
    let log = look
        .cluster
        .case
        .logs
        .iter()
        .find(|log| log.namespace == job.namespace && log.pod.starts_with(&job.name));
    match log.and_then(|log| Some((log, log.text.lines().rev().find(|line| !line.trim().is_empty())?))) {
        Some((log, line)) => finding.evidence(log.source(), line),
        None => finding,
    }
}

/// An ApplicationSet that makes no Applications.
pub(super) fn failed_set(look: &Look<'_>, set: &Value) -> Option<Finding> {
    let object = Object::from_live(set);
    let error = condition(set, "ErrorOccurred").filter(|it| it.str_at(&["status"]) == Some("True"))?;
    let message = error.str_at(&["message"]).unwrap_or_default();
    let source = format!("{object}, condition ErrorOccurred");
    let known = delivery(look, &object, set, message, &source, "ComparisonError");
    let plain = || {
        Finding::new(
            Cause::GitopsRender,
            object.clone(),
            0.85,
            format!("{object} makes no Applications: {message}"),
        )
        .evidence(source.clone(), message)
        .remedy("Correct the generator or the template that the message names.", &[])
    };
    Some(known.unwrap_or_else(plain).since(time(error, &["lastTransitionTime"])))
}

/// Self-heal against another writer of the same field.
pub(super) fn fights(look: &Look<'_>, app: &Value) -> Vec<Finding> {
    let object = Object::from_live(app);
    if app.at(&["spec", "syncPolicy", "automated", "selfHeal"]).and_then(Value::as_bool) != Some(true) {
        return Vec::new();
    }
    let attempts =
        app.int_at(&["status", "operationState", "operation", "sync", "selfHealAttemptsCount"]).unwrap_or(0);
    let out_of_sync: Vec<Object> = items(app, &["status", "resources"])
        .filter(|it| it.str_at(&["status"]) == Some("OutOfSync"))
        .map(|it| {
            Object::new(
                it.str_at(&["kind"]).unwrap_or_default(),
                it.str_at(&["namespace"]).unwrap_or_default(),
                it.str_at(&["name"]).unwrap_or_default(),
            )
        })
        .collect();
    let mut rival: Option<(Object, String)> = None;
    for target in &out_of_sync {
        let scaler = look.cluster.all("HorizontalPodAutoscaler").iter().find(|it| {
            it.namespace() == target.namespace
                && it.str_at(&["spec", "scaleTargetRef", "name"]) == Some(target.name.as_str())
                && it.str_at(&["spec", "scaleTargetRef", "kind"]) == Some(&target.kind)
        });
        let live = look.cluster.live(target);
        let owns = |manager: &str, field: &str| {
            live.is_some_and(|live| {
                items(live, &["metadata", "managedFields"]).any(|it| {
                    it.str_at(&["manager"]).is_some_and(|name| name.contains(manager))
                        && it.get("fieldsV1").is_some_and(|it| it.to_string().contains(field))
                })
            })
        };
        if let Some(scaler) = scaler
            && (owns("argocd", "f:replicas") || attempts >= 3)
        {
            rival = Some((target.clone(), Object::from_live(scaler).to_string()));
            break;
        }
        if attempts >= 3
            && let Some(live) = live
        {
            let other = items(live, &["metadata", "managedFields"])
                .filter(|it| {
                    it.str_at(&["manager"])
                        .is_some_and(|name| !name.contains("argocd") && name != "kube-controller-manager")
                        && it.str_at(&["subresource"]) != Some("status")
                })
                .max_by_key(|it| time(it, &["time"]));
            if let Some(other) = other {
                rival = Some((target.clone(), other.str_at(&["manager"]).unwrap_or_default().to_owned()));
                break;
            }
        }
    }
    if rival.is_none() && attempts < 3 {
        return Vec::new();
    }
    let (target, writer) = rival.unwrap_or_else(|| {
        (out_of_sync.first().cloned().unwrap_or_else(|| object.clone()), "another writer".to_owned())
    });
    vec![
        Finding::new(
            Cause::GitopsDriftFight,
            object.clone(),
            0.88,
            format!("self-heal of {object} and {writer} change {target} in turn"),
        )
        .field("spec.ignoreDifferences")
        .evidence(format!("{object}, status.operationState"), format!("selfHealAttemptsCount {attempts}"))
        .evidence(target.to_string(), format!("also written by {writer}"))
        .suffers(target, "is changed in turn")
        .remedy("Leave the field to one writer: take it out of Git, or ignore its difference.", &[]),
    ]
}

/// Objects that left Git and stay, for Tiphys saw that something still needs them.
pub(super) fn still_needed(look: &Look<'_>, app: &Value) -> Vec<Finding> {
    let object = Object::from_live(app);
    let told = conditions(app).find(|it| it.str_at(&["type"]) == Some("PruneProtected"));
    let Some(told) = told else { return Vec::new() };
    let message = told.str_at(&["message"]).unwrap_or_default();
    let text = |resource: &Value, key| resource.str_at(&[key]).unwrap_or_default().to_owned();
    let is_held = |it: &&Value| it.at(&["requiresPruning"]).and_then(Value::as_bool) == Some(true);
    let held = items(app, &["status", "resources"])
        .filter(is_held)
        .map(|it| Object::new(&text(it, "kind"), &text(it, "namespace"), &text(it, "name")));
    // What is gone by now holds nobody up.
    let is_there = |it: &Object| look.cluster.live(it).is_some() || !look.cluster.has_kind(&it.kind);
    let results = || items(app, &["status", "operationState", "syncResult", "resources"]);
    let found = held.filter(is_there).map(|held| {
        let reason = results().find(|it| {
            it.str_at(&["status"]) == Some("PruneSkipped")
                && text(it, "kind") == held.kind
                && text(it, "name") == held.name
                && text(it, "namespace") == held.namespace
        });
        let summary = format!("{held} left the sources of {object} and is not pruned: something still needs it");
        let finding = Finding::new(Cause::GitopsStillNeeded, held.clone(), 0.88, summary)
            .since(time(told, &["lastTransitionTime"]))
            .evidence(format!("{object}, condition PruneProtected"), message)
            .suffers(object.clone(), "stays OutOfSync")
            .remedy(
                "Take away what needs it, or put it back into the sources; who wants it gone all the same prunes it by hand.",
                &[format!("tiphys app get {}", object.name)],
            );
        match reason.and_then(|it| it.str_at(&["message"])) {
            Some(reason) => finding.evidence(format!("{object}, status.operationState.syncResult"), reason),
            None => finding,
        }
    });
    found.collect()
}

/// Objects that one Application prunes and another writer makes: an Application, or an operator.
pub(super) fn prune_fights(look: &Look<'_>) -> Vec<Finding> {
    let mut pruned: BTreeMap<Object, &Value> = BTreeMap::new();
    let mut made: BTreeMap<Object, Object> = BTreeMap::new();
    for app in look.cluster.all("Application") {
        for result in items(app, &["status", "operationState", "syncResult", "resources"]) {
            let text = |key| result.str_at(&[key]).unwrap_or_default();
            let object = Object::new(text("kind"), text("namespace"), text("name"));
            match text("status") {
                "Pruned" => {
                    pruned.insert(object, app);
                }
                "Synced" => {
                    made.insert(object, Object::from_live(app));
                }
                _ => {}
            }
        }
    }
    let both = pruned.into_iter().filter_map(|(object, app)| {
        let pruner = Object::from_live(app);
        let other = made.get(&object).filter(|maker| **maker != pruner).cloned();
        let operator = || {
            let makers = crate::dependencies::upstream(look.cluster, &object);
            let finished = time(app, &["status", "operationState", "finishedAt"]);
            let is_back = look.cluster.live(&object).is_none_or(|live| time(live, &["metadata", "creationTimestamp"]) >= finished);
            makers.into_iter().find(|maker| is_back && matches!(maker.kind.as_str(), "ExternalSecret" | "Certificate" | "SealedSecret"))
        };
        let maker = other.or_else(operator)?;
        Some(
            Finding::new(
                Cause::GitopsPruneFight,
                pruner.clone(),
                0.88,
                format!("{pruner} prunes {object}, which {maker} makes"),
            )
            .evidence(pruner.to_string(), format!("pruned {object}"))
            .evidence(maker.to_string(), format!("makes {object}"))
            .suffers(maker, "its object is pruned")
            .suffers(object, "is made and pruned in turn")
            .remedy("Let one of them own the object; track by annotation, so that a copied label does not make it prunable.", &[]),
        )
    });
    both.collect()
}

/// The Services whose addresses a pod's specification names.
fn called_services(look: &Look<'_>, spec: &Value, namespace: &str) -> Vec<Object> {
    let settings = crate::pod_addresses::settings(look.cluster, spec, namespace);
    let wires = crate::pod_addresses::wires(&settings).into_iter();
    let services = wires.filter_map(|(address, _)| match look.cluster.target(&address, namespace) {
        crate::address_target::Target::Service(service) => Some(Object::from_live(service)),
        _ => None,
    });
    services.collect()
}

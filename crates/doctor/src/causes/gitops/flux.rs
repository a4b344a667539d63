//! Sources, Kustomizations and HelmReleases of Flux.

use tiphys_cause::{
    Cause, delivery_fault, failed_hook, leftover_hook, refusal, source_unreachable, unwrapped, values_absent,
};
use tiphys_value::{ObjectExt as _, Value};

use super::{
    delivery::{delivery, source_url},
    helm::release,
};
use crate::{
    Object,
    calls::{self, Caller},
    cluster::{condition_text, conditions, items, time},
    finding::Finding,
    search_context::Look,
};

/// Kinds of sources.
const SOURCES: &[&str] = &["GitRepository", "OCIRepository", "HelmRepository", "Bucket"];

/// What a source, a Kustomization or a HelmRelease of Flux says.
pub(super) fn flux(look: &Look<'_>, live: &Value) -> Option<Finding> {
    let object = Object::from_live(live);
    let is_bad = |it: &&Value| {
        let kind = it.str_at(&["type"]).unwrap_or_default();
        matches!(kind, "Ready" | "Released" | "FetchFailed")
            && it.str_at(&["status"]) != Some(if kind == "FetchFailed" { "False" } else { "True" })
    };
    // That it was tried often enough does not tell why it failed.
    let tells = |it: &&Value| {
        let message = it.str_at(&["message"]).unwrap_or_default();
        !message.contains("retries exhausted") && !message.contains("attempt(s)")
    };
    let bad = conditions(live).filter(is_bad).find(tells).or_else(|| conditions(live).find(is_bad))?;
    let (reason, message) =
        (bad.str_at(&["reason"]).unwrap_or_default(), bad.str_at(&["message"]).unwrap_or_default());
    let source = format!("{object}, condition {}", bad.str_at(&["type"]).unwrap_or_default());
    let low = message.to_ascii_lowercase();
    let since = time(bad, &["lastTransitionTime"]);
    let below = crate::dependencies::upstream(look.cluster, &object);
    if let Some(finding) = values(look, &object, message) {
        return Some(finding.evidence(source, message).since(since));
    }
    if let Some(finding) = failed_hook(message).and_then(|job| hook(look, live, job)) {
        return Some(finding.evidence(source, message).since(since));
    }
    if let Some(finding) = leftover_hook(message).and_then(|job| leftover(look, live, job)) {
        return Some(finding.evidence(source, message).since(since));
    }
    if reason == "DependencyNotReady" || low.contains("dependency") && low.contains("not ready") {
        return Some(dependency(look, live, message, &source).since(since));
    }
    // Health checks that do not pass tell of the objects that they check.
    if reason == "HealthCheckFailed"
        || low.contains("timeout waiting for")
        || low.contains("health check failed")
    {
        let named: Vec<Object> = look
            .cluster
            .case
            .objects
            .iter()
            .filter(|it| {
                !it.name().is_empty()
                    && low.contains(
                        &format!(
                            "{}/{}",
                            it.kind(),
                            if it.namespace().is_empty() {
                                it.name().to_owned()
                            } else {
                                format!("{}/{}", it.namespace(), it.name())
                            }
                        )
                        .to_ascii_lowercase(),
                    )
            })
            .map(Object::from_live)
            .collect();
        let circle = named.iter().find(|it| depends_on(look, it, &object)).cloned();
        if let Some(waiter) = circle {
            let summary =
                format!("{object} waits for {waiter}, which depends on it: neither becomes ready first");
            let finding = Finding::new(Cause::GitopsSelfWait, object.clone(), 0.92, summary)
                .evidence(source, message)
                .evidence(waiter.to_string(), "spec.dependsOn leads to who waits for it")
                .since(since)
                .remedy(
                    "Take one of the two away: dependsOn below, or spec.wait and healthChecks above.",
                    &[],
                );
            return Some(
                named.into_iter().fold(finding, |finding, it| finding.suffers(it, "waits in a circle")),
            );
        }
        if named.contains(&object) || waits_for_own_source(live, &named) {
            return Some(
                Finding::new(
                    Cause::GitopsSelfWait,
                    object.clone(),
                    0.9,
                    format!("{object} waits for itself to become ready"),
                )
                .evidence(source, message)
                .since(since)
                .remedy("Do not wait for the object that applies (spec.wait, healthChecks).", &[]),
            );
        }
        let finding = Finding::new(
            Cause::GitopsDependency,
            object.clone(),
            0.35,
            format!("{object} waits for what it applied"),
        )
        .shallow()
        .evidence(source, message);
        return Some(named.into_iter().chain(below).fold(finding, Finding::below));
    }
    // A webhook may be what did not answer in time.
    if matches!(object.kind.as_str(), "HelmRelease")
        && refusal(unwrapped(message)).cause.is_none()
        && (low.contains("context deadline exceeded")
            || low.contains("timed out waiting")
            || low.contains("not ready") && reason != "SourceNotReady")
    {
        let finding = release(look, &object, live, message, &source).since(since);
        // What did not become ready in time is the cause; as long as that is not known, nothing is.
        let mut finding = Finding { confidence: 0.45, ..finding }.shallow();
        for it in look.cluster.case.objects.iter().filter(|it| {
            it.annotation("meta.helm.sh/release-name") == Some(object.name.as_str())
                || it.label("app.kubernetes.io/instance") == Some(object.name.as_str())
        }) {
            finding = finding.below(Object::from_live(it));
        }
        return Some(named_after(look, live).fold(finding, Finding::below));
    }
    if let Some(finding) = failed_download(look, &object, message, &source) {
        return Some(finding.since(since));
    }
    if let Some(finding) = no_room(look, &object, message, &source) {
        return Some(finding.since(since));
    }
    // That the source lacks the path is told with the reason of a source that cannot be had.
    let lacks_path = low.contains("path not found");
    if matches!(reason, "ArtifactFailed" | "SourceNotReady" | "NoSource") && !lacks_path
        || low.contains("source is not ready")
        || low.contains("artifact not found")
        || low.contains("source artifact not found")
        || low.contains("not found") && low.contains("source") && !low.contains("resource")
    {
        let absent = below.iter().find(|it| {
            look.cluster.live(it).is_none()
                && look.cluster.has_kind(&it.kind)
                && it.kind.ends_with("Repository")
        });
        let (confidence, what) = match absent {
            Some(it) => (0.85, format!("{object} names {it}, which does not exist")),
            None => (0.35, format!("{object} waits for its source")),
        };
        let finding = Finding::new(Cause::GitopsDependency, object.clone(), confidence, what)
            .evidence(source, message)
            .since(since);
        let finding = if absent.is_none() { finding.shallow() } else { finding };
        return Some(below.into_iter().fold(finding, Finding::below));
    }
    let finding = match reason {
        "BuildFailed" => Finding::new(
            Cause::GitopsRender,
            object.clone(),
            0.92,
            format!("{object} cannot be built: {message}"),
        )
        .evidence(source.clone(), message)
        .remedy("Correct the file that the message names.", &[]),
        "InstallFailed" | "UpgradeFailed" | "RollbackFailed" | "UninstallFailed" | "RetriesExceeded"
            if refusal(unwrapped(message)).cause.is_none()
                && delivery_fault(message) != Some(Cause::GitopsRender)
                && !low.contains("template")
                && !low.contains("yaml") =>
        {
            release(look, &object, live, message, &source)
        }
        "AuthenticationFailed" => auth(&object, live, &source, message),
        _ => match delivery(look, &object, live, message, &source, "ReconciliationFailed") {
            Some(finding) if finding.cause == Cause::GitopsSourceAuth => {
                auth(&object, live, &source, message)
            }
            Some(finding) => finding,
            // Nobody else than the source itself is at fault if its revision cannot be had.
            None if SOURCES.contains(&object.kind.as_str()) && source_unreachable(message).is_none() => {
                Finding::new(
                    Cause::GitopsRevision,
                    object.clone(),
                    0.7,
                    format!("{object} gets no revision from {}: {message}", source_url(live)),
                )
                .evidence(source, message)
                .remedy("Correct the address, the reference, or what the source is verified with.", &[])
            }
            None => Finding::new(
                Cause::GitopsDependency,
                object.clone(),
                0.35,
                format!("{object} is not ready: {}", condition_text(bad)),
            )
            .shallow()
            .evidence(source, message),
        },
    };
    // What cannot be built does not depend on what was applied earlier.
    let is_build = reason == "BuildFailed";
    let is_needed = |it: &Object| {
        !is_build || it.kind == "Secret" || it.kind.ends_with("Repository") || it.kind == "Bucket"
    };
    Some(below.into_iter().filter(is_needed).fold(finding.since(since), Finding::below))
}

/// The controller that has no room for what it fetched.
fn no_room(look: &Look<'_>, object: &Object, message: &str, source: &str) -> Option<Finding> {
    const KEEPER: &str = "source-controller";
    let complaints = tiphys_cause::complaints(message);
    let is_source = SOURCES.contains(&object.kind.as_str()) || object.kind == "HelmChart";
    complaints.iter().find(|it| it.cause == Cause::RunDiskFull).filter(|_| is_source)?;
    let mut all = look.cluster.all("Deployment").iter();
    let keeper = all.find(|it| it.name() == KEEPER).map(|it| Object::from_live(it));
    let at = keeper.unwrap_or_else(|| object.clone());
    let finding =
        Finding::new(Cause::RunDiskFull, at.clone(), 0.88, format!("{at} has no room for what it fetches"))
            .evidence(source, message)
            .remedy("Give its storage more room, or keep fewer artifacts.", &[]);
    Some(finding.suffers(object.clone(), "cannot be kept"))
}

/// The ill workloads that are named after a release, where charts set no label that tells.
fn named_after<'a>(look: &'a Look<'_>, release: &'a Value) -> impl Iterator<Item = Object> + use<'a> {
    let namespace = release.str_at(&["spec", "targetNamespace"]).unwrap_or(release.namespace());
    let is_named = move |it: &&Object| {
        let rest = it.name.strip_prefix(release.name());
        it.namespace == namespace && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    };
    look.ill.iter().map(|ill| &ill.workload).filter(is_named).cloned()
}

/// The Job of a hook that failed, if it is still there to be asked.
fn hook(look: &Look<'_>, release: &Value, job: &str) -> Option<Finding> {
    let namespace = release.str_at(&["spec", "targetNamespace"]).unwrap_or(release.namespace());
    let (object, job) = (Object::from_live(release), Object::new("Job", namespace, job));
    look.cluster.live(&job)?;
    let summary = format!("the hook {job} of {object} failed");
    let finding = Finding::new(Cause::GitopsHookFailed, job.clone(), 0.85, summary)
        .suffers(object, "waits for its hook")
        .below(job.clone())
        .remedy(
            "Read the hook's log; the release is tried again when the hook can pass.",
            &[format!("kubectl -n {namespace} logs job/{}", job.name)],
        );
    let pods = crate::cluster::pods::of_workload(look.cluster, &job);
    Some(pods.into_iter().fold(finding, |finding, pod| finding.below(Object::from_live(pod))))
}

/// The Job of an earlier run of a hook, if it is still there: Helm makes a new one of the same name.
fn leftover(look: &Look<'_>, release: &Value, job: &str) -> Option<Finding> {
    let namespace = release.str_at(&["spec", "targetNamespace"]).unwrap_or(release.namespace());
    let (object, job) = (Object::from_live(release), Object::new("Job", namespace, job));
    look.cluster.live(&job)?;
    let summary = format!("{job} of an earlier run is still there, and the hook of {object} makes it anew");
    Some(
        Finding::new(Cause::GitopsHookFailed, job.clone(), 0.85, summary)
            .field("metadata.annotations.helm.sh/hook-delete-policy")
            .suffers(object, "cannot run its hook")
            .remedy(
                "Delete the Job; `before-hook-creation` in its hook-delete-policy lets Helm do so.",
                &[format!("kubectl -n {namespace} delete job {}", job.name)],
            ),
    )
}

/// The source of values that a release or a build names, and that is not there.
fn values(look: &Look<'_>, object: &Object, message: &str) -> Option<Finding> {
    let read = values_absent(message)?;
    let namespace = if read.namespace.is_empty() { &object.namespace } else { &read.namespace };
    let absent = Object::new(&read.kind, namespace, &read.name);
    let finding = match &read.key {
        None if look.cluster.live(&absent).is_some() => return None,
        None => Finding::new(
            Cause::ConfigMissing,
            absent.clone(),
            0.94,
            format!("{absent} does not exist, and {object} reads its values from it"),
        ),
        Some(key) => Finding::new(
            Cause::ConfigKeyMissing,
            absent.clone(),
            0.94,
            format!("{absent} has no key {key}, from which {object} reads its values"),
        )
        .field(format!("data.{key}")),
    };
    let finding = finding
        .remedy(format!("Make what is missing, or correct the reference in {object}."), &[])
        .suffers(object.clone(), "has no values");
    Some(crate::dependencies::upstream(look.cluster, &absent).into_iter().fold(finding, Finding::below))
}

fn auth(object: &Object, live: &Value, source: &str, message: &str) -> Finding {
    let url = source_url(live);
    let finding = Finding::new(
        Cause::GitopsSourceAuth,
        object.clone(),
        0.93,
        format!("{url} refuses the credentials of {object}"),
    )
    .evidence(source, message)
    .remedy("Renew the credentials in its secretRef.", &[]);
    match live.str_at(&["spec", "secretRef", "name"]) {
        Some(name) => finding.evidence(object.to_string(), format!("secretRef: {name}")).below(Object::new(
            "Secret",
            &object.namespace,
            name,
        )),
        None => finding.evidence(object.to_string(), "it has no secretRef"),
    }
}

/// Whether what is waited for makes the source that is waited with.
fn waits_for_own_source(live: &Value, named: &[Object]) -> bool {
    let reference = |key| live.str_at(&["spec", "sourceRef", key]).unwrap_or_default();
    named.iter().any(|it| it.kind == reference("kind") && it.name == reference("name"))
}

/// What explains that a controller of Flux does not get what its source-controller serves.
fn failed_download(look: &Look<'_>, object: &Object, message: &str, source: &str) -> Option<Finding> {
    let controller = match object.kind.as_str() {
        "Kustomization" => "kustomize-controller",
        "HelmRelease" => "helm-controller",
        _ => return None,
    };
    let low = message.to_ascii_lowercase();
    if !["download", "archive", "artifact"].iter().any(|word| low.contains(word)) {
        return None;
    }
    let workload = look.cluster.all("Deployment").iter().find(|it| it.name() == controller)?;
    let caller = Caller::of_workload(look.cluster, Object::from_live(workload));
    let found = calls::explain_text(look, &caller, (source, message), (object, "cannot get its source"));
    found.into_iter().find(|it| it.is_asserted() && it.cause != Cause::ExternalDown)
}

/// What an object says that it depends on.
fn dependencies_of(live: &Value) -> Vec<Object> {
    let named = items(live, &["spec", "dependsOn"]).map(|it| {
        let namespace = it.str_at(&["namespace"]).unwrap_or(live.namespace());
        Object::new(live.kind(), namespace, it.str_at(&["name"]).unwrap_or_default())
    });
    named.collect()
}

/// Whether an object depends on another one, over others too.
fn depends_on(look: &Look<'_>, object: &Object, other: &Object) -> bool {
    let mut open = vec![object.clone()];
    let mut seen = Vec::new();
    while let Some(next) = open.pop() {
        if seen.contains(&next) {
            continue;
        }
        let needed = look.cluster.live(&next).map(dependencies_of).unwrap_or_default();
        if needed.contains(other) {
            return true;
        }
        open.extend(needed);
        seen.push(next);
    }
    false
}

/// A dependency that is not ready: a circle, an absent one, or one with a fault of its own.
fn dependency(look: &Look<'_>, live: &Value, message: &str, source: &str) -> Finding {
    let object = Object::from_live(live);
    let mut open = dependencies_of(live);
    let mut path = vec![object.clone()];
    while let Some(next) = open.pop() {
        if next == object {
            let shown: Vec<String> = path.iter().map(ToString::to_string).collect();
            let finding = Finding::new(
                Cause::GitopsDependency,
                path.iter().min().cloned().unwrap_or(object),
                0.94,
                format!("dependsOn is a circle: {}", shown.join(", ")),
            )
            .field("spec.dependsOn")
            .evidence(source, message)
            .remedy("Break the circle.", &[]);
            return path.into_iter().fold(finding, |finding, it| finding.suffers(it, "waits in a circle"));
        }
        if path.contains(&next) {
            continue;
        }
        match look.cluster.live(&next) {
            Some(it) => open.extend(dependencies_of(it)),
            // Who depends on it directly tells of it; those above wait for that one.
            None if look.cluster.has_kind(&next.kind) && dependencies_of(live).contains(&next) => {
                return Finding::new(
                    Cause::GitopsDependency,
                    object.clone(),
                    0.9,
                    format!("{object} depends on {next}, which does not exist"),
                )
                .field("spec.dependsOn")
                .evidence(source, message)
                .remedy("Correct dependsOn.", &[]);
            }
            None => {}
        }
        path.push(next);
    }
    let finding = Finding::new(Cause::GitopsDependency, object, 0.4, "a dependency is not ready")
        .shallow()
        .evidence(source, message);
    dependencies_of(live).into_iter().fold(finding, Finding::below)
}

//! What is red in a cluster: objects whose own status says so, after the noise rule. History, what rests on
//! purpose, and what has succeeded since are not red.

use std::collections::BTreeMap;

use jiff::Timestamp;
use tiphys_value::{ObjectExt as _, Value};

use crate::{
    Event, Object,
    cluster::{
        Cluster,
        complaint::{complaint, error_of_pods},
        condition, condition_text, conditions, has_condition, pods, time,
    },
};

/// Everything that is red, with a clause that says what is.
pub(crate) type Symptoms = BTreeMap<Object, String>;

/// Finds what is red.
pub(crate) fn symptoms(cluster: &Cluster<'_>) -> Symptoms {
    let mut red = Symptoms::new();
    for object in &cluster.case.objects {
        if let Some(symptom) = symptom(cluster, object) {
            red.insert(Object::from_live(object), symptom);
        }
    }
    red
}

/// Seconds after which a deletion hangs.
pub(crate) const SLOW_DELETION: i64 = 5 * 60;

/// What is red about one object.
fn symptom(cluster: &Cluster<'_>, object: &Value) -> Option<String> {
    let deleted =
        time(object, &["metadata", "deletionTimestamp"]).and_then(|time| cluster.seconds_since(time));
    if let Some(seconds) = deleted.filter(|seconds| *seconds > SLOW_DELETION) {
        return Some(format!("being deleted for {}", duration(seconds)));
    }
    match object.kind() {
        "Pod" => pod(cluster, object),
        "Deployment" | "StatefulSet" | "DaemonSet" | "ReplicaSet" | "ReplicationController" | "Rollout" => {
            workload(cluster, object)
        }
        "Job" => job(cluster, object),
        "Node" => node(object),
        "PersistentVolumeClaim" => claim(cluster, object),
        "PersistentVolume" => {
            (object.str_at(&["status", "phase"]) == Some("Failed")).then(|| "Failed".to_owned())
        }
        "Application" => application(cluster, object),
        "ApplicationSet" => condition(object, "ErrorOccurred")
            .filter(|it| it.str_at(&["status"]) == Some("True"))
            .map(|it| format!("makes no Applications: {}", condition_text(it))),
        "APIService" => condition(object, "Available")
            .filter(|it| it.str_at(&["status"]) == Some("False"))
            .map(|it| format!("not available: {}", condition_text(it))),
        "ClusterServiceVersion" => operator_version(cluster, object),
        "HorizontalPodAutoscaler" => autoscaler(object),
        "CertificateSigningRequest" => {
            let is_open = conditions(object).next().is_none();
            (is_open && cluster.age(object) > SLOW_DELETION).then(|| "not approved".to_owned())
        }
        "Lease" | "Event" | "Secret" | "ConfigMap" | "Endpoints" | "EndpointSlice" => None,
        "CronJob" => unread_schedule(cluster, object).map(|_| "makes no Jobs".to_owned()),
        _ => custom(cluster, object),
    }
}

fn pod(cluster: &Cluster<'_>, pod: &Value) -> Option<String> {
    let trouble = pods::trouble(cluster, pod)?;
    // Pods that have ended and whose workload is whole are history.
    if pods::has_ended(pod) {
        let owner = cluster.live(&cluster.workload(pod));
        let is_whole = match owner {
            Some(owner) => match owner.kind() {
                "Job" => job(cluster, owner).is_none(),
                "CronJob" => !has_failed_since(cluster, owner, pod),
                "Pod" => ended_long_ago(cluster, pod),
                _ => pods::shortage(owner).is_none(),
            },
            None => ended_long_ago(cluster, pod),
        };
        if is_whole {
            return None;
        }
    }
    Some(trouble)
}

/// Whether a pod ended more than a day ago: nobody has missed it since.
fn ended_long_ago(cluster: &Cluster<'_>, pod: &Value) -> bool {
    const OLD: i64 = 24 * 3600;
    let ends = pods::statuses(pod).filter_map(|status| time(pods::ended(status)?, &["finishedAt"]));
    let age = ends.max().and_then(|end| cluster.seconds_since(end));
    age.unwrap_or_else(|| cluster.age(pod)) > OLD
}

/// Whether a CronJob has not succeeded since one of its pods was made.
fn has_failed_since(cluster: &Cluster<'_>, cron: &Value, pod: &Value) -> bool {
    let success = time(cron, &["status", "lastSuccessfulTime"]);
    let made = time(pod, &["metadata", "creationTimestamp"]);
    let later = cluster.owned(&Object::from_live(cron)).iter().any(|job| {
        has_condition(job, "Complete", "True") && time(job, &["metadata", "creationTimestamp"]) > made
    });
    !later && success.is_none_or(|success| made.is_none_or(|made| success < made))
}

fn workload(cluster: &Cluster<'_>, workload: &Value) -> Option<String> {
    if pods::replicas(workload) == 0 && workload.kind() != "DaemonSet" {
        return None;
    }
    let failure = condition(workload, "ReplicaFailure").filter(|it| it.str_at(&["status"]) == Some("True"));
    if let Some(failure) = failure {
        return Some(condition_text(failure));
    }
    let stuck = condition(workload, "Progressing").filter(|it| {
        it.str_at(&["status"]) == Some("False") && it.str_at(&["reason"]) == Some("ProgressDeadlineExceeded")
    });
    if let Some(stuck) = stuck {
        return Some(condition_text(stuck));
    }
    let (wanted, has) = pods::shortage(workload)?;
    let owned = pods::of_workload(cluster, &Object::from_live(workload));
    let is_starting = !owned.is_empty()
        && owned.len() >= usize::try_from(wanted).unwrap_or(0)
        && owned.iter().all(|pod| pods::trouble(cluster, pod).is_none());
    (!is_starting && cluster.age(workload) > 60).then(|| format!("{has} of {wanted} pods are available"))
}

fn job(cluster: &Cluster<'_>, job: &Value) -> Option<String> {
    if job.at(&["spec", "suspend"]).and_then(Value::as_bool) == Some(true)
        || has_condition(job, "Complete", "True")
    {
        return None;
    }
    let failed = condition(job, "Failed").filter(|it| it.str_at(&["status"]) == Some("True"));
    let told = failed.map(condition_text).or_else(|| failed_often(job))?;
    let ended = failed.and_then(|it| time(it, &["lastTransitionTime"]));
    let ended = ended.or_else(|| time(job, &["status", "startTime"]));
    let since = ended.and_then(|time| cluster.seconds_since(time));
    let owner = crate::cluster::controller(job);
    let made = time(job, &["metadata", "creationTimestamp"]);
    // A later one of the same CronJob has succeeded, or nobody has missed it for a day.
    let is_over = owner.as_ref().is_some_and(|owner| {
        cluster.owned(owner).iter().any(|other| {
            has_condition(other, "Complete", "True") && time(other, &["metadata", "creationTimestamp"]) > made
        })
    });
    if is_over || since.is_some_and(|since| since > 24 * 3600) {
        return None;
    }
    let cron = crate::cluster::controller(job).and_then(|owner| cluster.live(&owner));
    if cron.is_some_and(|cron| !has_failed_since(cluster, cron, job)) {
        return None;
    }
    Some(told)
}

/// Pods of a Job that is not given up: one may fail by chance.
const BY_CHANCE: i64 = 1;

/// What is red about a Job that is tried again and again.
fn failed_often(job: &Value) -> Option<String> {
    let count = |key: &str| job.int_at(&["status", key]).unwrap_or(0);
    let is_often = count("failed") > BY_CHANCE && count("succeeded") == 0 && count("ready") == 0;
    is_often.then(|| format!("{} of its pods have failed", count("failed")))
}

fn node(node: &Value) -> Option<String> {
    let ready = condition(node, "Ready")?;
    if ready.str_at(&["status"]) != Some("True") {
        return Some(format!("not ready: {}", condition_text(ready)));
    }
    let pressure = conditions(node).find(|it| {
        let name = it.str_at(&["type"]).unwrap_or_default();
        let is_pressed = name.ends_with("Pressure") || name == "NetworkUnavailable";
        is_pressed && it.str_at(&["status"]) == Some("True") || is_node_problem(it)
    });
    pressure.map(|it| format!("{}: {}", it.str_at(&["type"]).unwrap_or_default(), condition_text(it)))
}

/// Parts of the names of conditions by which problem detectors tell of a node.
const NODE_PROBLEMS: &[&str] = &[
    "Deadlock",
    "Readonly",
    "ReadOnly",
    "Corrupt",
    "Unhealthy",
    "Problem",
    "Frequent",
    "Unreachable",
    "Full",
    "Exhausted",
    "Hung",
    "Stuck",
    "Fault",
];

/// Whether a condition of a node is one of a problem detector, and tells of a problem.
pub(crate) fn is_node_problem(condition: &Value) -> bool {
    let name = condition.str_at(&["type"]).unwrap_or_default();
    match condition.str_at(&["status"]) {
        Some("True") => NODE_PROBLEMS.iter().any(|part| name.contains(part)),
        Some("False") => name.ends_with("Ready") && name != "Ready",
        _ => false,
    }
}

fn claim(cluster: &Cluster<'_>, claim: &Value) -> Option<String> {
    match claim.str_at(&["status", "phase"]) {
        Some("Pending") if cluster.age(claim) > 60 => {
            // A claim that waits for its first pod is not red while nobody mounts it.
            let is_mounted = cluster.pods_in(claim.namespace()).iter().any(|pod| mounts(pod, claim.name()));
            let class = claim
                .str_at(&["spec", "storageClassName"])
                .and_then(|class| cluster.get("StorageClass", "", class));
            let waits = class
                .is_some_and(|class| class.str_at(&["volumeBindingMode"]) == Some("WaitForFirstConsumer"));
            (is_mounted || !waits).then(|| "Pending".to_owned())
        }
        Some("Lost") => Some("Lost".to_owned()),
        _ => {
            let failed = conditions(claim).find(|it| {
                let name = it.str_at(&["type"]).unwrap_or_default();
                (name.contains("ResizeError") || name == "ModifyVolumeError")
                    && it.str_at(&["status"]) == Some("True")
            });
            failed.map(condition_text)
        }
    }
}

/// Whether a pod mounts a claim.
pub(crate) fn mounts(pod: &Value, claim: &str) -> bool {
    crate::cluster::items(pod, &["spec", "volumes"])
        .any(|volume| volume.str_at(&["persistentVolumeClaim", "claimName"]) == Some(claim))
}

fn application(cluster: &Cluster<'_>, app: &Value) -> Option<String> {
    let health = app.str_at(&["status", "health", "status"]).unwrap_or_default();
    let sync = app.str_at(&["status", "sync", "status"]).unwrap_or_default();
    let phase = app.str_at(&["status", "operationState", "phase"]).unwrap_or_default();
    let error = conditions(app).find(|it| it.str_at(&["type"]).is_some_and(|name| name.ends_with("Error")));
    let started =
        time(app, &["status", "operationState", "startedAt"]).and_then(|time| cluster.seconds_since(time));
    if let Some(error) = error {
        return Some(format!(
            "{}: {}",
            error.str_at(&["type"]).unwrap_or_default(),
            error.str_at(&["message"]).unwrap_or_default()
        ));
    }
    if matches!(health, "Degraded" | "Missing" | "Progressing" | "Unknown") {
        return Some(format!("health {health}"));
    }
    if matches!(phase, "Failed" | "Error") && sync != "Synced" {
        return Some(format!("sync {phase}"));
    }
    if phase == "Running" && started.is_none_or(|started| started > 600) {
        return Some("its operation does not end".to_owned());
    }
    match sync {
        "Unknown" => Some("sync Unknown".to_owned()),
        "OutOfSync" if app.at(&["spec", "syncPolicy", "automated"]).is_some() => Some("OutOfSync".to_owned()),
        _ => None,
    }
}

/// A version of an operator that failed, or waits for what it requires.
fn operator_version(cluster: &Cluster<'_>, version: &Value) -> Option<String> {
    let text = |key: &str| version.str_at(&["status", key]).unwrap_or_default();
    let lacks = text("phase") == "Pending"
        && text("reason") == "RequirementsNotMet"
        && cluster.age(version) > SLOW_DELETION;
    (lacks || text("phase") == "Failed" && text("reason") != "Copied")
        .then(|| format!("{}: {}", text("phase"), text("message")))
}

fn autoscaler(autoscaler: &Value) -> Option<String> {
    let failed = conditions(autoscaler).find(|it| {
        matches!(it.str_at(&["type"]), Some("ScalingActive" | "AbleToScale"))
            && it.str_at(&["status"]) == Some("False")
            && it.str_at(&["reason"]) != Some("ScalingDisabled")
    });
    failed.map(condition_text)
}

/// Kinds of custom resources whose conditions tell of others, or that rest where others would be red.
const NOT_JUDGED: &[&str] = &[
    "CustomResourceDefinition",
    "FlowSchema",
    "PriorityLevelConfiguration",
    "PodDisruptionBudget",
    "Service",
    "Namespace",
    "Ingress",
    "NodePool",
];

/// Whether a resource is a run of something that ended long ago: nobody waits for it.
fn is_past(cluster: &Cluster<'_>, object: &Value) -> bool {
    const OLD: i64 = 24 * 3600;
    const ENDS: &[&str] =
        &["finishedAt", "completionTime", "completionTimestamp", "terminationTime", "stoppedAt"];
    let ended = ENDS.iter().find_map(|key| time(object, &["status", key]));
    ended.and_then(|ended| cluster.seconds_since(ended)).is_some_and(|age| age > OLD)
        || RUNS.contains(&object.kind()) && is_superseded(cluster, object)
}

/// Kinds of which each object is one run of something.
const RUNS: &[&str] = &["Backup", "Restore", "PipelineRun", "TaskRun", "Workflow", "SparkApplication"];

/// Whether a later run of the same kind in the namespace ended well.
fn is_superseded(cluster: &Cluster<'_>, run: &Value) -> bool {
    const WELL: &[&str] = &["completed", "succeeded"];
    let made = |live: &Value| time(live, &["metadata", "creationTimestamp"]);
    let ended_well = |live: &Value| {
        let phase = live
            .str_at(&["status", "phase"])
            .or_else(|| live.str_at(&["status", "applicationState", "state"]));
        phase.is_some_and(|phase| WELL.contains(&phase.to_ascii_lowercase().as_str()))
            || has_condition(live, "Succeeded", "True")
    };
    let others = cluster.all(run.kind()).iter();
    let mut later = others.filter(|it| it.namespace() == run.namespace() && made(it) > made(run));
    later.any(|it| ended_well(it))
}

/// Whether somebody has stopped what a resource stands for.
fn is_stopped(object: &Value) -> bool {
    object.at(&["spec", "running"]).and_then(Value::as_bool) == Some(false)
        || matches!(object.str_at(&["spec", "runStrategy"]), Some("Halted"))
        || object.at(&["spec", "paused"]).and_then(Value::as_bool) == Some(true)
        || object.int_at(&["spec", "replicas"]) == Some(0)
}

/// Seconds after which something that is still unknown is not merely about to start.
const SLOW_START: i64 = 10 * 60;

/// Seconds after which a condition that is not well counts. What waits for another try is given up and made
/// anew before long: that it is refused tells enough.
fn patience(condition: &Value) -> i64 {
    let is_open = condition.str_at(&["status"]) == Some("Unknown");
    let is_denied = || {
        let words = condition.str_at(&["message"]).unwrap_or_default();
        tiphys_cause::complaints(words)
            .iter()
            .any(|it| it.cause == tiphys_cause::Cause::OperatorCloudCredentials)
    };
    let has_failed = condition.str_at(&["reason"]).is_some_and(|reason| reason.contains("Failed"));
    if is_open && !has_failed && !is_denied() { SLOW_START } else { 60 }
}

/// Whether a resource has made its Secret after it complained: what it said has not been updated since.
fn has_made_secret_since(cluster: &Cluster<'_>, object: &Value, complaint: &Value) -> bool {
    let Some(complained) = time(complaint, &["lastTransitionTime"]) else { return false };
    let object = Object::from_live(object);
    let made = |live: &&Value| {
        live.kind() == "Secret"
            && time(live, &["metadata", "creationTimestamp"]).is_some_and(|made| made > complained)
    };
    let last = cluster.events(&object).next_back();
    cluster.owned(&object).iter().any(made) && last.is_none_or(|event| !event.is_warning())
}

/// What a custom resource says of itself, by the usual conditions.
/// The last word of the cluster that it cannot read when a CronJob is due, if the CronJob is still as it was.
pub(crate) fn unread_schedule<'a>(cluster: &Cluster<'a>, cron: &Value) -> Option<&'a Event> {
    let object = Object::from_live(cron);
    let mut events = cluster.events(&object);
    let last = events.rfind(|it| {
        matches!(it.reason.as_str(), "UnknownTimeZone" | "UnparseableSchedule" | "InvalidSchedule")
    })?;
    let scheduled = time(cron, &["status", "lastScheduleTime"]);
    let changed = cron.at(&["metadata", "managedFields"]).and_then(Value::as_array).into_iter().flatten();
    let changed =
        changed.filter(|it| it.str_at(&["subresource"]).is_none()).filter_map(|it| time(it, &["time"]));
    let is_over = |since: Option<Timestamp>| since.is_some_and(|since| Some(since) > last.last);
    (!is_over(scheduled) && !is_over(changed.max())).then_some(last)
}

fn custom(cluster: &Cluster<'_>, object: &Value) -> Option<String> {
    if NOT_JUDGED.contains(&object.kind())
        || object.at(&["spec", "suspend"]).and_then(Value::as_bool) == Some(true)
        || is_past(cluster, object)
        || is_stopped(object)
    {
        return None;
    }
    let bad = complaint(object);
    let since =
        bad.and_then(|it| time(it, &["lastTransitionTime"])).and_then(|time| cluster.seconds_since(time));
    let is_long = |bad: &&Value| since.is_none_or(|since| since > patience(bad));
    if let Some(bad) = bad.filter(is_long).filter(|bad| !has_made_secret_since(cluster, object, bad)) {
        return Some(format!(
            "{} {}: {}",
            bad.str_at(&["type"]).unwrap_or_default(),
            bad.str_at(&["status"]).unwrap_or_default(),
            condition_text(bad)
        ));
    }
    if let Some(told) = warned(cluster, object) {
        return Some(told);
    }
    if let Some(told) = hindered(cluster, object) {
        return Some(told);
    }
    if let Some(told) = endless(cluster, object) {
        return Some(told);
    }
    let error = object.str_at(&["status", "error", "message"]);
    if let Some(error) =
        error.filter(|_| object.at(&["status", "readyToUse"]).and_then(Value::as_bool) != Some(true))
    {
        return Some(format!("error: {error}"));
    }
    if let Some(error) = error_of_pods(object) {
        return Some(format!("error: {error}"));
    }
    if let Some(error) = object.str_at(&["status", "error"]).filter(|error| !error.is_empty()) {
        return Some(format!("error: {error}"));
    }
    failed_phase(object).map(|phase| format!("phase {phase}"))
}

/// What is said again and again about a resource that has no conditions, and says nothing itself.
fn warned(cluster: &Cluster<'_>, object: &Value) -> Option<String> {
    const WORDS: &[&str] = &["not found", "does not exist", "denied", "forbidden", "invalid"];
    const OFTEN: u64 = 3;
    const RECENT: i64 = 15 * 60;
    let is_silent = conditions(object).next().is_none() && object.str_at(&["status", "phase"]).is_none();
    if !is_silent || !crate::causes::operator::is_custom(object) {
        return None;
    }
    let last = cluster.events(&Object::from_live(object)).next_back()?;
    let low = last.message.to_ascii_lowercase();
    let is_recent = last.last.and_then(|at| cluster.seconds_since(at)).is_some_and(|age| age < RECENT);
    let is_meant = last.is_warning() && last.count >= OFTEN && is_recent;
    (is_meant && WORDS.iter().any(|word| low.contains(word))).then(|| last.message.clone())
}

/// What a resource says that is not made yet and cannot be: no condition tells it, and the message beside its
/// phase does.
fn hindered(cluster: &Cluster<'_>, object: &Value) -> Option<String> {
    const OPEN: &[&str] =
        &["pending", "creating", "initializing", "provisioning", "reconciling", "progressing"];
    const WORDS: &[&str] =
        &["not found", "does not exist", "cannot ", "failed ", "error ", "unable ", "could not ", "invalid "];
    let told = |key: &str| object.str_at(&["status", key]).unwrap_or_default();
    let phase = if told("phase").is_empty() { told("state") } else { told("phase") };
    let message = told("message");
    let low = message.to_ascii_lowercase();
    let is_open = OPEN.contains(&phase.to_ascii_lowercase().as_str());
    let is_hindered = is_open && WORDS.iter().any(|word| low.contains(word));
    (is_hindered && cluster.age(object) > SLOW_START).then(|| format!("phase {phase}: {message}"))
}

/// Seconds in which a delivery of Flux ends, well or not, for all the waits that people set.
const SLOW_DELIVERY: i64 = 30 * 60;

/// What Flux says of a delivery that it has begun and never ends.
fn endless(cluster: &Cluster<'_>, object: &Value) -> Option<String> {
    let is_delivery = object.gvk().group.ends_with("toolkit.fluxcd.io");
    let ready =
        condition(object, "Ready").filter(|_| is_delivery && has_condition(object, "Reconciling", "True"));
    let ready = ready.filter(|it| it.str_at(&["status"]) == Some("Unknown"))?;
    let since = time(ready, &["lastTransitionTime"]).and_then(|time| cluster.seconds_since(time));
    since
        .is_some_and(|since| since > SLOW_DELIVERY)
        .then(|| format!("Ready Unknown: {}", condition_text(ready)))
}

/// The word by which storage systems and databases say that they do not serve: as a colour, or a grade.
pub(crate) fn ill_health(object: &Value) -> Option<&str> {
    let status = object.get("status")?.as_object()?;
    let nested = status.values().filter_map(|part| part.str_at(&["health"]));
    let mut told = status.get("health").and_then(Value::as_str).into_iter().chain(nested);
    told.find(|word| matches!(*word, "red" | "HEALTH_ERR"))
}

/// The word by which a status says that a resource has failed: each operator has a field of its own for it.
pub(crate) fn failed_phase(object: &Value) -> Option<&str> {
    const WORDS: &[&str] = &["fail", "error", "invalid", "degraded", "unavailable", "faulted"];
    // Some operators write a sentence: it may tell of a failure that is being dealt with.
    const SENTENCES: &[&str] = &["unrecoverable", " failed"];
    let status = object.get("status")?.as_object()?;
    let names_state = |name: &str| {
        let name = name.to_ascii_lowercase();
        ["phase", "state", "status"].iter().any(|end| name.ends_with(end))
    };
    let own = status.iter().filter(|(name, _)| names_state(name)).filter_map(|(_, value)| value.as_str());
    let nested = object.str_at(&["status", "applicationState", "state"]);
    own.chain(nested).chain(ill_health(object)).find(|word| {
        if ill_health(object) == Some(word) {
            return true;
        }
        let low = word.to_ascii_lowercase();
        let words = if word.contains(' ') { SENTENCES } else { WORDS };
        words.iter().any(|part| low.contains(part))
    })
}

/// A number of seconds for people.
pub(crate) fn duration(seconds: i64) -> String {
    match seconds {
        ..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        7200..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} days", seconds / 86_400),
    }
}

//! Deletions that do not end: finalizers, namespaces, claims in use, pods on dead nodes.

use tiphys_cause::Cause;
use tiphys_value::{ObjectExt as _, Value};

use crate::{
    Object,
    causes::admission::{self, Refused},
    cluster::{complaint::complaint, condition_text, conditions, items, pods, time},
    finding::Finding,
    search_context::Look,
    symptoms::{SLOW_DELETION, mounts},
};

pub(crate) fn find(look: &Look<'_>) -> Vec<Finding> {
    let hanging = look.cluster.case.objects.iter().filter(|object| {
        let deleted = time(object, &["metadata", "deletionTimestamp"])
            .and_then(|time| look.cluster.seconds_since(time));
        deleted.is_some_and(|age| age > SLOW_DELETION)
    });
    hanging.filter_map(|object| fault(look, object)).collect()
}

fn fault(look: &Look<'_>, live: &Value) -> Option<Finding> {
    let finalizers: Vec<&str> = items(live, &["metadata", "finalizers"]).filter_map(Value::as_str).collect();
    let finding = match live.kind() {
        "Namespace" => namespace(look, live),
        "Pod" if finalizers.is_empty() => pod(look, live)?,
        "PersistentVolumeClaim" if finalizers.contains(&"kubernetes.io/pvc-protection") => claim(look, live),
        "PersistentVolume" if finalizers.contains(&"kubernetes.io/pv-protection") => {
            let reference = |key| live.str_at(&["spec", "claimRef", key]).unwrap_or_default();
            let claim = Object::new("PersistentVolumeClaim", reference("namespace"), reference("name"));
            let object = Object::from_live(live);
            Finding::new(
                Cause::DeleteVolumeInUse,
                object.clone(),
                0.9,
                format!("{object} is bound to {claim}, so its deletion waits"),
            )
            .below(claim)
        }
        _ if finalizers.is_empty() => return None,
        _ => finalizer(look, live, &finalizers),
    };
    Some(finding.since(time(live, &["metadata", "deletionTimestamp"])))
}

/// Finalizers that wait for other objects, and not for a controller of their own.
const OF_GARBAGE: &[&str] = &["foregroundDeletion", "orphan", "kubernetes"];

fn finalizer(look: &Look<'_>, live: &Value, finalizers: &[&str]) -> Finding {
    let object = Object::from_live(live);
    let named = finalizers.join(", ");
    let mut finding = Finding::new(Cause::DeleteFinalizer, object.clone(), 0.9, format!("{object} is not deleted: nobody takes its finalizer off ({named})"))
        .field("metadata.finalizers")
        .evidence(object.to_string(), format!("deletionTimestamp {}, finalizers {named}", live.str_at(&["metadata", "deletionTimestamp"]).unwrap_or_default()))
        .remedy("Bring the finalizer's controller back; take the finalizer off by hand only if nothing is left to clean up.", &[format!("{} -o yaml", object.kubectl("get"))]);
    for said in conditions(live).filter(|it| it.str_at(&["message"]).is_some()).take(2) {
        finding = finding.evidence(
            format!("{object}, condition {}", said.str_at(&["type"]).unwrap_or_default()),
            crate::cluster::condition_text(said),
        );
    }
    // Whoever takes the finalizer off is at work, and says what hinders it.
    let told = complaint(live).map(condition_text).unwrap_or_default();
    if crate::causes::operator::is_denied(&told) {
        finding.cause = Cause::OperatorCloudCredentials;
        finding.summary = format!("the cloud refuses what has to be cleaned up before {object} goes: {told}");
        finding.remedy.text = "Give the operator's identity the rights that the condition names.".to_owned();
        return finding;
    }
    if finalizers.iter().all(|it| OF_GARBAGE.contains(it)) {
        for child in look.cluster.owned(&object) {
            finding = finding.below(Object::from_live(child));
        }
        return finding;
    }
    // What Argo CD deletes in a cascade stays until all that it delivered is gone.
    if live.kind() == "Application" {
        finding = delivered_and_hanging(look, live).into_iter().fold(finding, Finding::below);
    }
    // A node stays until its pods may go.
    finding = crate::causes::budget::of_deleted_node(look, live).into_iter().fold(finding, Finding::below);
    let mut operators = Vec::new();
    for name in finalizers {
        operators.extend(crate::causes::operator::by_words(look, &crate::causes::operator::words(name)));
    }
    if operators.is_empty() {
        operators =
            crate::causes::operator::by_words(look, &crate::causes::operator::words(&live.gvk().group));
    }
    for operator in &operators {
        let state = look.cluster.live(operator);
        match state {
            Some(state) if pods::replicas(state) == 0 && state.kind() != "DaemonSet" => {
                finding = finding.evidence(
                    operator.to_string(),
                    "spec.replicas: 0: the controller of the finalizer is scaled to zero",
                );
            }
            Some(_) => finding = finding.below(operator.clone()),
            None => {}
        }
    }
    // Where pods were saved and what makes them was not, its controller may be among them.
    if operators.is_empty() && !look.cluster.has_kind("Deployment") && look.cluster.has_kind("Pod") {
        finding = finding.not_known();
    }
    if operators.is_empty() && look.cluster.has_kind("Deployment") {
        finding =
            finding.evidence("cluster", "no workload was found that could be the finalizer's controller");
    }
    // What belongs to the network plugin is told with it.
    if live.api_version().contains("tigera.io") || live.api_version().contains("cilium") {
        let nodes = look.red.keys().filter(|object| object.kind == "Node").cloned();
        let set = crate::causes::pod_network::plugin_set(look).map(Object::from_live);
        finding = nodes.chain(set).fold(finding, Finding::below);
    }
    finding
}

/// What an Application delivered, or the namespace that it delivered to, if its own deletion does not end.
fn delivered_and_hanging(look: &Look<'_>, app: &Value) -> Vec<Object> {
    let namespace = app.str_at(&["spec", "destination", "namespace"]).unwrap_or_default();
    let delivered = crate::dependencies::upstream(look.cluster, &Object::from_live(app));
    let all = delivered.into_iter().chain([Object::new("Namespace", "", namespace)]);
    all.filter(|it| look.cluster.live(it).is_some_and(|live| live.is_terminating())).collect()
}

/// What keeps the API server from deleting what a namespace holds: a webhook of the kind, or of the deletion.
fn refused_deletion(look: &Look<'_>, namespace: &Object, source: &str, words: &str) -> Option<Finding> {
    const CAUSES: &[Cause] =
        &[Cause::ApiConversionWebhook, Cause::AdmitWebhookDown, Cause::AdmitWebhookTls, Cause::AdmitPolicy];
    tiphys_cause::refusal(words).cause.filter(|cause| CAUSES.contains(cause))?;
    let refused = Refused {
        writer: namespace.clone(),
        written: None,
        source: source.to_owned(),
        message: words.to_owned(),
    };
    let finding = admission::fault(look, &refused)?;
    Some(finding.suffers(namespace.clone(), "cannot be emptied"))
}

/// What a namespace's conditions say remains.
fn namespace(look: &Look<'_>, live: &Value) -> Finding {
    let object = Object::from_live(live);
    let mut finding =
        Finding::new(Cause::DeleteNamespace, object.clone(), 0.85, format!("{object} cannot be emptied"))
            .remedy(
                "Remove what its conditions name; do not take its own finalizer off.",
                &[format!("kubectl get namespace {} -o yaml", object.name)],
            );
    for told in conditions(live).filter(|it| it.str_at(&["status"]) == Some("True")) {
        let words = condition_text(told);
        let name = told.str_at(&["type"]).unwrap_or_default();
        if name == "NamespaceDeletionDiscoveryFailure" {
            // Which aggregated API does not answer, and why, is told by what was not saved.
            if !look.cluster.has_kind("APIService") {
                finding = finding.not_known();
            }
            for service in look.cluster.all("APIService").iter().filter(|it| {
                let (group, version) = (
                    it.str_at(&["spec", "group"]).unwrap_or_default(),
                    it.str_at(&["spec", "version"]).unwrap_or_default(),
                );
                !group.is_empty() && words.contains(&format!("{group}/{version}"))
            }) {
                finding = finding.below(Object::from_live(service));
            }
        }
        let source = format!("{object}, condition {name}");
        if let Some(refused) = refused_deletion(look, &object, &source, &words) {
            return refused;
        }
        finding = finding.evidence(source, words);
    }
    for inside in look.cluster.case.objects.iter().filter(|it| it.namespace() == object.name) {
        let hangs = inside.is_terminating() && items(inside, &["metadata", "finalizers"]).next().is_some();
        if hangs {
            finding = finding.below(Object::from_live(inside));
        }
    }
    finding
}

fn claim(look: &Look<'_>, live: &Value) -> Finding {
    let object = Object::from_live(live);
    let users: Vec<Object> = look
        .cluster
        .pods_in(live.namespace())
        .iter()
        .filter(|pod| mounts(pod, live.name()) && !pods::has_ended(pod))
        .map(|pod| Object::from_live(pod))
        .collect();
    let told: Vec<String> = users.iter().map(ToString::to_string).collect();
    let finding = Finding::new(
        Cause::DeleteVolumeInUse,
        object.clone(),
        if users.is_empty() { 0.6 } else { 0.93 },
        format!("{object} is not deleted while it is mounted by {}", told.join(", ")),
    )
    .field("metadata.finalizers")
    .evidence(object.to_string(), "finalizer kubernetes.io/pvc-protection")
    .remedy(
        "End the pods that mount it.",
        &[format!("kubectl -n {} describe pvc {}", object.namespace, object.name)],
    );
    users
        .iter()
        .filter(|pod| look.cluster.live(pod).is_some_and(|live| live.is_terminating()))
        .fold(finding, |finding, pod| finding.below(pod.clone()))
}

/// How a pod tells that nobody ends it.
fn lost(pod: &Value) -> String {
    let text = |path: &[&str]| pod.str_at(path).unwrap_or_default().to_owned();
    let deleted = format!("deletionTimestamp {}", text(&["metadata", "deletionTimestamp"]));
    let said = text(&["status", "message"]);
    if said.is_empty() { deleted } else { format!("{deleted}; {said}") }
}

/// Whether the control plane says of a pod that its node does not answer, where the node was not saved.
fn is_given_up(look: &Look<'_>, pod: &Value) -> bool {
    const REASONS: &[&str] = &["NodeLost", "NodeUnreachable"];
    let reason = pod.str_at(&["status", "reason"]).unwrap_or_default();
    let is_evicted = conditions(pod).any(|it| {
        it.str_at(&["type"]) == Some("DisruptionTarget")
            && it.str_at(&["status"]) == Some("True")
            && it.str_at(&["reason"]) == Some("DeletionByTaintManager")
    });
    REASONS.contains(&reason)
        || is_evicted
        || look.cluster.events(&Object::from_live(pod)).any(|event| event.reason == "NodeNotReady")
}

/// A pod that nobody ends.
fn pod(look: &Look<'_>, live: &Value) -> Option<Finding> {
    let object = Object::from_live(live);
    let node = Object::new("Node", "", live.str_at(&["spec", "nodeName"]).unwrap_or_default());
    let state = look.cluster.live(&node);
    let is_unseen = state.is_none() && !look.cluster.has_kind("Node");
    let is_dead = state.is_none() && look.cluster.has_kind("Node")
        || look.is_red(&node)
        || is_unseen && is_given_up(look, live);
    if !is_dead {
        let event = look
            .cluster
            .events(&object)
            .rfind(|event| event.reason == "FailedKillPod" || event.reason == "FailedPreStopHook");
        return event.map(|event| {
            let cause = if event.reason == "FailedPreStopHook" { Cause::RunHook } else { Cause::NodeRuntime };
            Finding::new(
                cause,
                if cause == Cause::RunHook { look.cluster.workload(live) } else { node.clone() },
                0.7,
                format!("{object} cannot be ended"),
            )
            .evidence(format!("Event of {object}"), event.message.clone())
        });
    }
    Some(
        Finding::new(
            Cause::DeletePodOnDeadNode,
            object.clone(),
            if is_unseen { 0.8 } else { 0.9 },
            format!("{object} is not deleted: {node}, which should end it, does not answer"),
        )
        .evidence(object.to_string(), lost(live))
        .below(node)
        .remedy(
            "Bring the node back, or mark it out-of-service, so that its pods are deleted.",
            &[format!("kubectl -n {} delete pod {} --force", object.namespace, object.name)],
        ),
    )
}

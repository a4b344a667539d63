//! What is wrong with an object as a cause of the common vocabulary, so that a story, `tiphys doctor` and
//! `tiphys check` speak of the same things.
//!
//! The words of kubelets, the scheduler, the API server and programs are read by the crate `cause`; what the
//! engine waits for is a value already.

use serde::Serialize;
use tiphys_cause::{
    Cause, Obstacle, ScaleFault, absent, complaints, delivery_fault, failed_calls, mount_fault, placement,
    probe_fault, pull_fault, refusal, sandbox_fault, scale_fault, start_fault, unwrapped,
};
use tiphys_model::{Application, ConditionType, SyncStatusCode, names};
use tiphys_sync::{Wait, WaitKind};
use tiphys_value::{ObjectExt, ResourceKey, Value};

use crate::{
    object_state::{State, closed_gate, running_init, taken_back},
    symptoms::waits_of,
};

/// A cause, and the objects that it is about beside the one that shows it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Mechanism {
    /// The id of the cause.
    pub id: Cause,
    /// What is missing, refuses, or is waited for. It need not be there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub objects: Vec<ResourceKey>,
}

impl From<Cause> for Mechanism {
    fn from(id: Cause) -> Self {
        Self { id, objects: Vec::new() }
    }
}

impl Mechanism {
    fn about(id: Cause, object: ResourceKey) -> Self {
        Self { id, objects: vec![object] }
    }
}

/// Why an object is not well, if the common vocabulary has a word for it.
pub fn mechanism(object: &Value, state: &State) -> Option<Mechanism> {
    if state.is_good() {
        return None;
    }
    let is_argo = object.gvk().group == names::GROUP;
    if object.is_terminating() {
        return going(object);
    }
    match object.kind() {
        "Application" if is_argo => of_application(object, &state.because),
        "Pod" => of_pod(object, state),
        "Node" if object.api_version() == "v1" => of_node(object),
        "Service" => Some(Cause::ServiceLoadBalancer.into()),
        "PersistentVolumeClaim" => of_claim_text(&state.because),
        "HorizontalPodAutoscaler" => of_autoscaler(object),
        _ => refused(object.namespace(), &state.because),
    }
}

/// Why something that is being deleted stays.
fn going(object: &Value) -> Option<Mechanism> {
    if object.kind() == "Namespace" {
        return Some(Cause::DeleteNamespace.into());
    }
    let finalizers = object.at(&["metadata", "finalizers"])?.as_array()?;
    let is_used = finalizers.iter().any(|name| name == "kubernetes.io/pvc-protection");
    match (finalizers.is_empty(), is_used) {
        (true, _) => None,
        (_, true) => Some(Cause::DeleteVolumeInUse.into()),
        _ => Some(Cause::DeleteFinalizer.into()),
    }
}

fn of_application(object: &Value, because: &str) -> Option<Mechanism> {
    let app = Application::from_value(object).ok()?;
    let condition = |kind: ConditionType| app.status.conditions.iter().find(|it| it.kind == kind);
    if let Some(fault) = condition(ConditionType::ComparisonError) {
        return Some(delivery_fault(&fault.message).unwrap_or(Cause::GitopsRender).into());
    }
    if let Some(fault) = condition(ConditionType::InvalidSpecError) {
        return delivery_fault(&fault.message).map(Mechanism::from);
    }
    let own = object.resource_key();
    if let Some(found) = waits_of(&app).iter().find_map(|wait| of_wait(&own, wait)) {
        return Some(found);
    }
    if condition(ConditionType::SharedResourceWarning).is_some() {
        return Some(Cause::GitopsTwoOwners.into());
    }
    if app.status.sync.status == SyncStatusCode::OutOfSync && !taken_back(&app).is_empty() {
        return Some(Cause::GitopsDriftFight.into());
    }
    if condition(ConditionType::PruneProtected).is_some() {
        let held = app.status.resources.iter().filter(|resource| resource.requires_pruning);
        let objects = held.map(|it| ResourceKey::new(&it.group, &it.kind, &it.namespace, &it.name)).collect();
        return Some(Mechanism { id: Cause::GitopsStillNeeded, objects });
    }
    refused(&app.spec.destination.namespace, because)
}

/// The cause that a wait of the engine is.
fn of_wait(own: &ResourceKey, wait: &Wait) -> Option<Mechanism> {
    let object = wait.object.clone();
    let is_own = object.as_ref() == Some(own);
    let id = match wait.kind {
        WaitKind::Health if is_own => Cause::GitopsSelfWait,
        WaitKind::Health => Cause::GitopsDependency,
        WaitKind::Hook => Cause::GitopsHookFailed,
        WaitKind::Deletion => Cause::DeleteFinalizer,
        WaitKind::Blocked | WaitKind::Retry => {
            let namespace = object.as_ref().map_or("", |it| it.namespace.as_str());
            return refused(namespace, &wait.cause);
        }
        WaitKind::PruneConfirmation | WaitKind::WaveDelay => return None,
    };
    Some(Mechanism { id, objects: object.into_iter().collect() })
}

/// Why the API server does not take an object, from its own words.
pub fn refused(namespace: &str, words: &str) -> Option<Mechanism> {
    if words.is_empty() {
        return None;
    }
    let words = unwrapped(words);
    let read = refusal(words);
    let id = read.cause.or_else(|| delivery_fault(words))?;
    let object = match id {
        Cause::GitopsNamespace => Some(ResourceKey::new("", "Namespace", "", &read.subject)),
        Cause::AdmitWebhookDown | Cause::AdmitWebhookTls => {
            let service = read.service.filter(|(namespace, _)| !namespace.is_empty());
            service.map(|(namespace, name)| ResourceKey::new("", "Service", &namespace, &name))
        }
        Cause::AdmitQuota => Some(ResourceKey::new("", "ResourceQuota", namespace, &read.by)),
        Cause::AdmitServiceAccount => Some(ResourceKey::new("", "ServiceAccount", namespace, &read.subject)),
        _ => None,
    };
    Some(Mechanism { id, objects: object.into_iter().filter(|key| !key.name.is_empty()).collect() })
}

fn of_node(node: &Value) -> Option<Mechanism> {
    let is = |kind: &str| {
        crate::object_state::condition(node, kind).and_then(|it| it.str_at(&["status"])).unwrap_or_default()
    };
    match (is("Ready"), is("NetworkUnavailable")) {
        ("True", "True") => Some(Cause::NetCniDown.into()),
        ("True", _) => None,
        _ => Some(Cause::NodeNotReady.into()),
    }
}

/// What a claim's warnings say.
fn of_claim_text(because: &str) -> Option<Mechanism> {
    mount_fault(because).map(|fault| fault.cause.into())
}

/// Why an autoscaler does not scale: what it scales is not there, or requests nothing that it could compare
/// with.
fn of_autoscaler(object: &Value) -> Option<Mechanism> {
    let conditions = object.at(&["status", "conditions"])?.as_array()?;
    let bad = conditions.iter().find(|condition| {
        matches!(condition.str_at(&["type"]), Some("AbleToScale" | "ScalingActive"))
            && condition.str_at(&["status"]) == Some("False")
    })?;
    let text = |field: &str| bad.str_at(&[field]).unwrap_or_default();
    match scale_fault(text("reason"), text("message"))? {
        ScaleFault::NoRequest { .. } => Some(Cause::ScaleNoRequests.into()),
        ScaleFault::TargetAbsent => {
            let target = object.at(&["spec", "scaleTargetRef"])?;
            let name = target.str_at(&["name"]).unwrap_or_default();
            let key = ResourceKey::new(target.gvk().group, target.kind(), object.namespace(), name);
            Some(Mechanism::about(Cause::ScaleTarget, key))
        }
    }
}

fn of_pod(pod: &Value, state: &State) -> Option<Mechanism> {
    let because = state.because.as_str();
    let unplaced = crate::object_state::condition(pod, "PodScheduled")
        .is_some_and(|condition| condition.str_at(&["status"]) == Some("False"));
    if unplaced {
        return unscheduled(pod.namespace(), because);
    }
    if let Some(missing) = absent(because) {
        let id = if missing.key.is_some() { Cause::ConfigKeyMissing } else { Cause::ConfigMissing };
        let object = ResourceKey::new("", missing.kind, pod.namespace(), &missing.name);
        return Some(if missing.name.is_empty() { id.into() } else { Mechanism::about(id, object) });
    }
    if let Some(fault) = held_up(pod, because) {
        return Some(fault.into());
    }
    if let Some(fault) = mount_fault(because) {
        return Some(fault.cause.into());
    }
    if probe_fault(because).is_some() || closed_gate(pod).is_some() {
        return Some(Cause::RunReadiness.into());
    }
    if running_init(pod).is_some() {
        return Some(Cause::RunInitWait.into());
    }
    let ended = crate::object_state::containers(pod).any(|(_, status)| has_ended_badly(status));
    if !ended {
        return sandbox_fault(because).filter(|_| !because.is_empty()).map(Mechanism::from);
    }
    Some(of_exit(pod, because).into())
}

/// Whether a container has ended, and not well.
fn has_ended_badly(status: &Value) -> bool {
    ["state", "lastState"].iter().any(|field| {
        status.int_at(&[field, "terminated", "exitCode"]).is_some_and(|exit_code| exit_code != 0)
    })
}

/// Why a container waits, from the reason of its status.
fn held_up(pod: &Value, because: &str) -> Option<Cause> {
    crate::object_state::containers(pod).find_map(|(_, status)| {
        match status.str_at(&["state", "waiting", "reason"])? {
            "ErrImagePull" | "ImagePullBackOff" => pull_fault(because).cause,
            "InvalidImageName" | "ErrImageNeverPull" => Some(Cause::ImageInvalid),
            // What the environment lacks was read before.
            "CreateContainerConfigError" => start_fault(because),
            "RunContainerError" | "StartError" => start_fault(because).or(Some(Cause::RunCommand)),
            _ => None,
        }
    })
}

/// Why a program ended, from what it said last.
fn of_exit(pod: &Value, because: &str) -> Cause {
    let is_oom = crate::object_state::containers(pod).any(|(_, status)| {
        ["state", "lastState"]
            .iter()
            .any(|field| status.str_at(&[field, "terminated", "reason"]) == Some("OOMKilled"))
    });
    if is_oom {
        return Cause::RunOom;
    }
    if let Some(complaint) = complaints(because).first() {
        return complaint.cause;
    }
    let names_service = |host: &str| host.ends_with(".svc") || host.contains(".svc.");
    let calls = failed_calls(because);
    let missing = calls.iter().flat_map(|call| &call.targets).any(|target| names_service(&target.host));
    if missing { Cause::ServiceMissing } else { Cause::RunExits }
}

/// Why no node takes a pod. What keeps it from most nodes is the cause.
fn unscheduled(namespace: &str, because: &str) -> Option<Mechanism> {
    let mut obstacles = placement(because).obstacles;
    obstacles.sort_by_key(|(nodes, obstacle)| (rank(obstacle), std::cmp::Reverse(*nodes)));
    let (_, obstacle) = obstacles.into_iter().next()?;
    let claim = |name: &str| ResourceKey::new("", "PersistentVolumeClaim", namespace, name);
    Some(match obstacle {
        Obstacle::ClaimMissing(Some(name)) => Mechanism::about(Cause::VolumeClaimMissing, claim(&name)),
        Obstacle::ClaimMissing(None) => Cause::VolumeClaimMissing.into(),
        Obstacle::Taint(taint) => of_taint(&taint).into(),
        Obstacle::Selector => Cause::ScheduleNodeSelector.into(),
        Obstacle::Insufficient(_) | Obstacle::VolumeLimit => Cause::ScheduleCapacity.into(),
        Obstacle::Spread => Cause::ScheduleSpread.into(),
        Obstacle::Cordoned => Cause::ScheduleCordoned.into(),
        Obstacle::HostPort => Cause::ScheduleHostPort.into(),
        Obstacle::VolumeZone => Cause::VolumeZone.into(),
        Obstacle::ClaimUnbound | Obstacle::NoVolume => Cause::VolumeNoMatch.into(),
        Obstacle::Other(_) => return None,
    })
}

/// What tells most comes first: a pod bound to one node by its selector is kept off by the port that is taken
/// there.
fn rank(obstacle: &Obstacle) -> usize {
    match obstacle {
        Obstacle::ClaimMissing(_) => 0,
        Obstacle::ClaimUnbound | Obstacle::NoVolume | Obstacle::VolumeZone => 1,
        Obstacle::HostPort => 2,
        Obstacle::Taint(_) | Obstacle::Cordoned => 3,
        Obstacle::Insufficient(_) | Obstacle::VolumeLimit => 4,
        Obstacle::Spread => 5,
        Obstacle::Selector => 6,
        Obstacle::Other(_) => 7,
    }
}

/// Taints that Kubernetes sets itself tell of the node.
fn of_taint(taint: &str) -> Cause {
    match taint.trim() {
        "node.kubernetes.io/not-ready" | "node.kubernetes.io/unreachable" => Cause::NodeNotReady,
        "node.kubernetes.io/network-unavailable" => Cause::NetCniDown,
        "node.cloudprovider.kubernetes.io/uninitialized" => Cause::NodeUninitialized,
        taint if taint.starts_with("node.kubernetes.io/") && taint.ends_with("-pressure") => {
            Cause::NodePressure
        }
        _ => Cause::ScheduleTaint,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object_state::state_of;
    use tiphys_health::Rules;
    use tiphys_value::json;

    fn from_object(object: &Value) -> Option<Mechanism> {
        let rules = Rules::new(Default::default(), Default::default());
        mechanism(object, &state_of(object, &rules))
    }

    fn pod(status: Value) -> Value {
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "shop"}, "status": status})
    }

    fn waiting(reason: &str, message: &str) -> Value {
        pod(json!({"phase": "Pending", "containerStatuses": [{"name": "c", "state":
            {"waiting": {"reason": reason, "message": message}}}]}))
    }

    #[test]
    fn pods_name_what_they_lack() {
        let missing =
            from_object(&waiting("CreateContainerConfigError", "secret \"database\" not found")).unwrap();
        assert_eq!(missing.id, Cause::ConfigMissing);
        assert_eq!(missing.objects, [ResourceKey::new("", "Secret", "shop", "database")]);
        let pull = from_object(&waiting(
            "ImagePullBackOff",
            "Back-off pulling image \"a\": ErrImagePull: failed to authorize: 401 Unauthorized",
        ));
        assert_eq!(pull.unwrap().id, Cause::ImageUnauthorized);
        let refused = pod(
            json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False",
            "message": "0/3 nodes are available: 1 node(s) didn't have free ports for the requested pod ports, 2 node(s) didn't match Pod's node affinity/selector."}]}),
        );
        assert_eq!(from_object(&refused).unwrap().id, Cause::ScheduleHostPort);
    }

    #[test]
    fn an_autoscaler_names_the_target_that_is_not_there() {
        let scaler = |reason: &str, message: &str| {
            json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "web", "namespace": "shop"},
            "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}},
            "status": {"conditions": [{"type": "AbleToScale", "status": "False", "reason": reason, "message": message}]}})
        };
        let missing = of_autoscaler(&scaler("FailedGetScale", "deployments.apps \"web\" not found")).unwrap();
        assert_eq!(missing.id, Cause::ScaleTarget);
        assert_eq!(missing.objects, [ResourceKey::new("apps", "Deployment", "shop", "web")]);
        let requests =
            of_autoscaler(&scaler("FailedGetResourceMetric", "missing request for cpu in container web"));
        assert_eq!(requests.unwrap().id, Cause::ScaleNoRequests);
        assert_eq!(of_autoscaler(&scaler("BackoffBoth", "the HPA was told to back off")), None);
    }

    #[test]
    fn programs_that_end_are_read_by_their_words() {
        let ended = |message: &str| {
            pod(json!({"phase": "Running", "containerStatuses": [{"name": "c",
            "state": {"waiting": {"reason": "CrashLoopBackOff"}},
            "lastState": {"terminated": {"exitCode": 1, "message": message}}}]}))
        };
        assert_eq!(from_object(&ended("unknown command \"x\" for \"y\"")).unwrap().id, Cause::RunCommand);
        assert_eq!(from_object(&ended("something else")).unwrap().id, Cause::RunExits);
    }

    #[test]
    fn refusals_name_what_is_not_there() {
        let namespace = refused("orders", "namespaces \"orders\" not found").unwrap();
        assert_eq!(namespace.id, Cause::GitopsNamespace);
        assert_eq!(namespace.objects, [ResourceKey::new("", "Namespace", "", "orders")]);
        let hook = refused(
            "web",
            "Internal error occurred: failed calling webhook \"a.b.c\": failed to call webhook: Post \"https://policy.guard.svc:443/validate?timeout=10s\": service \"policy\" not found",
        );
        let hook = hook.unwrap();
        assert_eq!(hook.id, Cause::AdmitWebhookDown);
        assert_eq!(hook.objects, [ResourceKey::new("", "Service", "guard", "policy")]);
    }

    #[test]
    fn what_is_not_pruned_names_what_left_git() {
        let app = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
            "metadata": {"name": "edge", "namespace": "argocd"},
            "spec": {"project": "default", "destination": {"server": "https://kubernetes.default.svc", "namespace": "edge"}},
            "status": {"sync": {"status": "OutOfSync"}, "conditions": [{"type": "PruneProtected", "message": "…"}],
                "resources": [{"version": "v1", "kind": "Service", "namespace": "shop", "name": "web", "requiresPruning": true}]}});
        let held = of_application(&app, "").unwrap();
        assert_eq!(held.id, Cause::GitopsStillNeeded);
        assert_eq!(held.objects, [ResourceKey::new("", "Service", "shop", "web")]);
    }

    #[test]
    fn what_is_well_has_none() {
        assert_eq!(
            from_object(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})),
            None
        );
    }
}

//! Nodes: their conditions, Leases and taints (core/v1 Node; "Node lifecycle controller").

use serde_json::{Map, Value, json};
use tiphys_apiserver::rfc3339_micros;
use tiphys_value::ObjectExt;

use super::workload::is_ready;
use crate::{
    Change, Controller, Event, Key, Outcome, Reporter, View, Write,
    behaviour::NodeState,
    controller::Context,
    object::{condition, resources, set_condition, status_of, time, with_status},
};

const LEASES: &str = "kube-node-lease";
const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
const NOT_READY: &str = "node.kubernetes.io/not-ready";
const NO_NETWORK: &str = "node.kubernetes.io/network-unavailable";
const CORDONED: &str = "node.kubernetes.io/unschedulable";

/// Keeps nodes: what their kubelets say of them, and what follows from it.
pub(super) struct NodeController;

impl Controller for NodeController {
    fn name(&self) -> &'static str {
        "node"
    }

    fn keys(&self, change: &Change, _: &View<'_>) -> Vec<Key> {
        // A pod may be what its node's network depends on.
        let name = if change.resource == resources::nodes() && !change.is_deleted {
            Some(change.object.name())
        } else if change.resource == resources::pods() && change.object.at(&["spec", "hostNetwork"]).is_some()
        {
            change.object.str_at(&["spec", "nodeName"])
        } else {
            None
        };
        let name = name.filter(|name| !name.is_empty());
        name.map(|name| Key { namespace: String::new(), name: name.to_owned() }).into_iter().collect()
    }

    fn reconcile(&self, key: &Key, context: &Context<'_>) -> Outcome {
        let Some(node) = context.view.get(&resources::nodes(), key) else { return Outcome::done() };
        if node.is_terminating() {
            return Outcome::done();
        }
        let state = context.behaviours.node_state(&key.name);
        let is_unreachable = matches!(state, Some(NodeState::Unreachable {}));
        let mut status = status_of(&node);
        let has_network = has_network(&node, context);
        conditions(&mut status, state, has_network, context);
        let mut writes = Vec::new();
        let was = condition(&node, "Ready").map(|condition| condition["status"].clone());
        let updated = with_status(&node, status.into());
        if let Some(object) = updated {
            let is = condition(&object, "Ready").map(|condition| condition["status"].clone());
            writes.extend(readiness_event(&node, was.as_ref(), is.as_ref()));
            if was.is_some_and(|was| was == "True") && is.is_some_and(|is| is != "True") {
                writes.extend(unready_pods(&node, context));
            }
            writes.push(Write::UpdateStatus { resource: resources::nodes(), object });
            return writes.into();
        }
        writes.extend(tainted(&node, is_unreachable, has_network, context));
        let mut outcome = Outcome::from(writes);
        if !is_unreachable {
            let (lease, again) = lease(&node, context);
            outcome.writes.extend(lease);
            outcome.requeue_after = again;
        }
        outcome
    }
}

/// Whether pods get a network: always, or if a pod is there and Ready that provides it.
fn has_network(node: &Value, context: &Context<'_>) -> Option<bool> {
    let pods = context.behaviours.network_of(node.name())?;
    let on_node = context.view.pods_on(node.name());
    Some(on_node.iter().any(|pod| pods.contains(pod) && is_ready(pod)))
}

fn conditions(
    status: &mut Map<String, Value>,
    state: Option<&NodeState>,
    has_network: Option<bool>,
    context: &Context<'_>,
) {
    // What took the network away may be over, and nothing in particular brings it.
    let is_over = has_network.is_none() && lacks_network(status);
    let mut set = |kind: &str, state: &str, reason: &str, message: &str| {
        set_if_other(status, (kind, state, reason, message), context);
    };
    if let Some(has_network) = has_network.or(is_over.then_some(true)) {
        let (state, reason, message) = match has_network {
            true => ("False", "CalicoIsUp", "Calico is running on this node"),
            false => ("True", "NoRouteCreated", "Node created without a route"),
        };
        set("NetworkUnavailable", state, reason, message);
    }
    let is_unreachable = matches!(state, Some(NodeState::Unreachable {}));
    let pressures = [
        ("MemoryPressure", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
        ("DiskPressure", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        ("PIDPressure", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ];
    for (kind, reason, message) in pressures {
        match is_unreachable {
            true => set(kind, "Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status."),
            false => set(kind, "False", reason, message),
        }
    }
    match state {
        Some(NodeState::Unreachable {}) => {
            set("Ready", "Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status.");
        }
        Some(NodeState::NotReady { message }) => set("Ready", "False", "KubeletNotReady", message),
        _ => set("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
    }
}

fn lacks_network(status: &Map<String, Value>) -> bool {
    let conditions = status.get("conditions").and_then(Value::as_array);
    conditions.into_iter().flatten().any(|c| c["type"] == "NetworkUnavailable" && c["status"] == "True")
}

/// Sets a condition: type, status, reason, message. One that says the same keeps its heartbeat.
fn set_if_other(
    status: &mut Map<String, Value>,
    (kind, state, reason, message): (&str, &str, &str, &str),
    context: &Context<'_>,
) {
    let known = status
        .get("conditions")
        .and_then(Value::as_array)
        .and_then(|all| all.iter().find(|c| c["type"] == kind));
    let is_same = known.is_some_and(|c| c["status"] == state && c["message"] == message);
    let heartbeat = known.map(|c| c["lastHeartbeatTime"].clone()).filter(|_| is_same);
    let condition = json!({
        "type": kind, "status": state, "reason": reason, "message": message,
        "lastHeartbeatTime": heartbeat.unwrap_or_else(|| time(context.now)),
    });
    set_condition(status, condition, context.now);
}

/// The pods of a node that has ceased to be Ready: nobody says any longer that they are.
fn unready_pods(node: &Value, context: &Context<'_>) -> Vec<Write> {
    let mut writes = Vec::new();
    for pod in context.view.pods_on(node.name()) {
        let Some(ready) = condition(&pod, "Ready").filter(|ready| ready["status"] == "True") else {
            continue;
        };
        let mut unready = ready.clone();
        unready["status"] = "False".into();
        let mut status = status_of(&pod);
        set_condition(&mut status, unready, context.now);
        let updated = with_status(&pod, status.into());
        writes.extend(updated.map(|object| Write::UpdateStatus { resource: resources::pods(), object }));
        let reporter = Reporter::Controller("node-controller");
        writes.push(Event::warning(&pod, reporter, "NodeNotReady", "Node is not ready").into());
    }
    writes
}

fn readiness_event(node: &Value, was: Option<&Value>, is: Option<&Value>) -> Option<Write> {
    if was == is {
        return None;
    }
    let reporter = || Reporter::Controller("node-controller");
    let name = node.name();
    let event = match (was, is.and_then(Value::as_str)) {
        (None, _) => {
            let message = format!("Node {name} event: Registered Node {name} in Controller");
            Event::normal(node, reporter(), "RegisteredNode", message)
        }
        (_, Some("True")) => {
            let message = format!("Node {name} status is now: NodeReady");
            Event::normal(node, Reporter::Kubelet(name.to_owned()), "NodeReady", message)
        }
        _ => Event::normal(
            node,
            reporter(),
            "NodeNotReady",
            format!("Node {name} status is now: NodeNotReady"),
        ),
    };
    Some(event.into())
}

/// The node with the taints that follow from its state, if they differ. Taints of others stay.
fn tainted(
    node: &Value,
    is_unreachable: bool,
    has_network: Option<bool>,
    context: &Context<'_>,
) -> Option<Write> {
    let is_ready = condition(node, "Ready").is_some_and(|c| c["status"] == "True");
    let is_cordoned = node.at(&["spec", "unschedulable"]) == Some(&Value::Bool(true));
    let down = if is_unreachable { UNREACHABLE } else { NOT_READY };
    let wanted = [
        (down, "NoSchedule", !is_ready),
        (down, "NoExecute", !is_ready),
        (NO_NETWORK, "NoSchedule", has_network == Some(false)),
        (CORDONED, "NoSchedule", is_cordoned),
    ];
    let own = [UNREACHABLE, NOT_READY, NO_NETWORK, CORDONED];
    let present = node.at(&["spec", "taints"]).and_then(Value::as_array).cloned().unwrap_or_default();
    let is_own = |taint: &Value| own.iter().any(|key| taint["key"] == *key);
    // Pods that tolerate a taint for a while have to know since when it is there.
    let dated = |taint: &Value| {
        let mut taint = taint.clone();
        if taint["effect"] == "NoExecute" && taint.get("timeAdded").is_none_or(Value::is_null) {
            taint["timeAdded"] = time(context.now);
        }
        taint
    };
    let mut taints: Vec<_> = present.iter().filter(|taint| !is_own(taint)).map(dated).collect();
    for (key, effect, _) in wanted.iter().filter(|(.., applies)| *applies) {
        let known = present.iter().find(|taint| taint["key"] == *key && taint["effect"] == *effect).cloned();
        taints.push(
            known.unwrap_or_else(|| json!({"key": key, "effect": effect, "timeAdded": time(context.now)})),
        );
    }
    if taints.len() == present.len() && taints.iter().all(|taint| present.contains(taint)) {
        return None;
    }
    let mut object = node.clone();
    match (taints.is_empty(), object["spec"].as_object_mut()) {
        (true, Some(spec)) => drop(spec.remove("taints")),
        _ => object["spec"]["taints"] = taints.into(),
    }
    Some(Write::Update { resource: resources::nodes(), object })
}

/// The node's Lease, renewed if that is due; and when it is due again.
fn lease(node: &Value, context: &Context<'_>) -> (Option<Write>, Option<std::time::Duration>) {
    let key = Key { namespace: LEASES.to_owned(), name: node.name().to_owned() };
    let namespace = Key { namespace: String::new(), name: LEASES.to_owned() };
    if context.view.get(&resources::namespaces(), &namespace).is_none() {
        return (None, None);
    }
    let period = context.settings.lease_renewal;
    let renewed: Value = rfc3339_micros(context.now).into();
    let Some(found) = context.view.get(&resources::leases(), &key) else {
        let object = json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": key.name, "namespace": key.namespace, "ownerReferences": [
                {"apiVersion": "v1", "kind": "Node", "name": node.name(), "uid": node.uid()}]},
            "spec": {"holderIdentity": node.name(), "leaseDurationSeconds": period.as_secs() * 4, "renewTime": renewed},
        });
        return (Some(Write::Create { resource: resources::leases(), object }), Some(period));
    };
    let before: Option<jiff::Timestamp> = found.str_at(&["spec", "renewTime"]).and_then(|at| at.parse().ok());
    let due = before.and_then(|at| at.checked_add(period).ok());
    if let Some(due) = due.filter(|due| *due > context.now) {
        return (None, std::time::Duration::try_from(due.duration_since(context.now)).ok());
    }
    let mut object = found.value().clone();
    object["spec"]["renewTime"] = renewed;
    (Some(Write::Update { resource: resources::leases(), object }), Some(period))
}

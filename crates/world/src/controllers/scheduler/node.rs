//! A node while pods are put on it.

use std::{collections::BTreeSet, sync::Arc};

use serde_json::Value;
use tiphys_apiserver::Object;
use tiphys_value::{ObjectExt, taint};

use super::{
    affinity,
    misfit::Misfit,
    preemption::priority,
    requests::{Amounts, add, amounts, requests},
};
use crate::View;

/// A port that a pod takes on its node: address, protocol, number.
type HostPort = (String, String, i64);

/// A node, and what is on it already.
#[derive(Clone)]
pub(super) struct Candidate {
    /// The node.
    pub node: Arc<Object>,
    /// The pods on it that are not finished.
    pub pods: Vec<Arc<Object>>,
    /// Those of them that keep others away by a rule of their own.
    pub repelling: Vec<Arc<Object>>,
    /// The least important of them counts this much.
    pub lowest_priority: i64,
    allocatable: Amounts,
    used: Amounts,
    ports: BTreeSet<HostPort>,
}

impl Candidate {
    /// A node with its pods.
    pub(super) fn new(node: &Arc<Object>, view: &View<'_>) -> Self {
        let is_over = |pod: &Value| matches!(pod.str_at(&["status", "phase"]), Some("Succeeded" | "Failed"));
        let mut pods = view.pods_on(node.name());
        pods.retain(|pod| !is_over(pod));
        Self::with(node, &pods)
    }

    /// A node as if it had these pods.
    pub(super) fn with(node: &Arc<Object>, pods: &[Arc<Object>]) -> Self {
        let mut candidate = Self {
            node: Arc::clone(node),
            pods: Vec::new(),
            repelling: Vec::new(),
            lowest_priority: i64::MAX,
            allocatable: amounts(node.at(&["status", "allocatable"])),
            used: Amounts::new(),
            ports: BTreeSet::new(),
        };
        for pod in pods {
            candidate.take(pod, &requests(pod));
        }
        candidate
    }

    /// Counts a pod as being here.
    pub(super) fn take(&mut self, pod: &Arc<Object>, wanted: &Amounts) {
        add(&mut self.used, wanted);
        self.ports.extend(host_ports(pod));
        self.lowest_priority = self.lowest_priority.min(priority(pod));
        if affinity::repels(pod) {
            self.repelling.push(Arc::clone(pod));
        }
        self.pods.push(Arc::clone(pod));
    }

    /// Why a pod does not fit here, judged by the node alone. The order is that of the scheduler's plugins:
    /// the first that objects is the one that is named.
    pub(super) fn misfit(&self, pod: &Value, wanted: &Amounts) -> Option<Misfit> {
        let node: &Value = &self.node;
        if !affinity::names_node(pod, node) {
            return Some(Misfit::lasting("node(s) didn't satisfy plugin(s) [NodeAffinity]"));
        }
        if node.at(&["spec", "unschedulable"]) == Some(&Value::Bool(true))
            && taint::toleration(pod, &unschedulable_taint()).is_none()
        {
            return Some(Misfit::lasting("node(s) were unschedulable"));
        }
        if has_untolerated_taint(pod, node) {
            return Some(Misfit::lasting("node(s) had untolerated taint(s)"));
        }
        if !affinity::wants_node(pod, node) {
            return Some(Misfit::lasting("node(s) didn't match Pod's node affinity/selector"));
        }
        if host_ports(pod).any(|port| self.ports.iter().any(|taken| clash(&port, taken))) {
            return Some(Misfit::resolvable("node(s) didn't have free ports for the requested pod ports"));
        }
        self.lacks(wanted)
    }

    fn lacks(&self, wanted: &Amounts) -> Option<Misfit> {
        let mut misfit = Misfit { reasons: Vec::new(), is_resolvable: true };
        let pods = self.allocatable.get("pods").copied().unwrap_or(0);
        if self.pods.len() as i64 + 1 > pods {
            misfit.reasons.push("Too many pods".to_owned());
        }
        for (name, amount) in wanted.iter().filter(|(_, amount)| **amount > 0) {
            let all = self.allocatable.get(name).copied().unwrap_or(0);
            let used = self.used.get(name).copied().unwrap_or(0);
            if *amount > all - used {
                misfit.reasons.push(format!("Insufficient {name}"));
                misfit.is_resolvable &= *amount <= all;
            }
        }
        (!misfit.reasons.is_empty()).then_some(misfit)
    }

    /// How good the node is for a pod, the lower the better: what the pod prefers, few pods of the same
    /// owner, few pods.
    pub(super) fn score(&self, pod: &Value, preference: i64) -> (i64, usize, usize) {
        let preferred = affinity::preference(pod, &self.node) + preference;
        let owner = |pod: &Value| pod.controller_reference()?.str_at(&["uid"]).map(str::to_owned);
        let alike = owner(pod).map_or(0, |own| {
            self.pods.iter().filter(|other| owner(other).as_deref() == Some(own.as_str())).count()
        });
        (-preferred, alike, self.pods.len())
    }
}

fn unschedulable_taint() -> Value {
    serde_json::json!({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"})
}

/// Whether a node has a taint that keeps a pod away.
pub(crate) fn has_untolerated_taint(pod: &Value, node: &Value) -> bool {
    taint::untolerated(pod, node, &taint::KEEPS_AWAY).next().is_some()
}

/// Whether a taint of a node drives a pod away that is there already.
pub(crate) fn is_driven_away(pod: &Value, node: &Value) -> bool {
    taint::untolerated(pod, node, &["NoExecute"]).next().is_some()
}

/// Whether two pods want the same port of their node.
pub(crate) fn share_host_port(pod: &Value, other: &Value) -> bool {
    host_ports(pod).any(|port| host_ports(other).any(|taken| clash(&port, &taken)))
}

/// Whether a pod wants a port of its node.
pub(crate) fn wants_host_port(pod: &Value) -> bool {
    host_ports(pod).next().is_some()
}

fn host_ports(pod: &Value) -> impl Iterator<Item = HostPort> {
    let containers = ["containers", "initContainers"].into_iter();
    let containers = containers.filter_map(|field| pod.at(&["spec", field])?.as_array()).flatten();
    let ports = containers.filter_map(|container| container.get("ports")?.as_array()).flatten();
    let taken = |port: &Value| {
        let number = port.int_at(&["hostPort"]).filter(|number| *number > 0)?;
        let address = port.str_at(&["hostIP"]).filter(|address| !address.is_empty()).unwrap_or("0.0.0.0");
        Some((address.to_owned(), port.str_at(&["protocol"]).unwrap_or("TCP").to_owned(), number))
    };
    ports.filter_map(taken).collect::<Vec<_>>().into_iter()
}

fn clash(a: &HostPort, b: &HostPort) -> bool {
    let any = |port: &HostPort| port.0 == "0.0.0.0";
    a.1 == b.1 && a.2 == b.2 && (any(a) || any(b) || a.0 == b.0)
}

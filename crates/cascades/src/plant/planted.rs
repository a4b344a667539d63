//! A fault that is put in, and what doctor has to find of it.

use std::collections::BTreeMap;

use tiphys_doctor::Root;
use tiphys_value::{GroupVersionKind, ObjectExt as _, Value};

use crate::tree::Tree;

/// What doctor has to find: one of the causes at one of the objects. An object is kind, namespace and name; a
/// name may end with `*`.
#[derive(Clone, Debug, Default)]
pub struct Expected {
    pub causes: Vec<&'static str>,
    pub objects: Vec<(String, String, String)>,
    /// The same in other words: right of these objects where a dump shows no more.
    pub also: Vec<&'static str>,
}

impl Expected {
    /// Whether a root is what was put in.
    #[must_use]
    pub fn is_met_by(&self, root: &Root) -> bool {
        self.causes.contains(&root.cause.id()) && self.is_about(root)
    }

    /// Whether a root is no false one.
    #[must_use]
    pub fn is_allowed(&self, root: &Root) -> bool {
        self.is_met_by(root) || self.also.contains(&root.cause.id()) && self.is_about(root)
    }

    fn is_about(&self, root: &Root) -> bool {
        let object = &root.object;
        self.objects.iter().any(|(kind, namespace, name)| {
            *kind == object.kind
                && *namespace == object.namespace
                && match name.strip_suffix('*') {
                    Some(start) => object.name.starts_with(start),
                    None => *name == object.name,
                }
        })
    }
}

/// A fault that is put in.
#[derive(Clone, Debug, Default)]
pub struct Planted {
    /// The kind of the fault, a row of the table.
    pub kind: &'static str,
    /// What it is put into.
    pub target: String,
    pub expected: Expected,
    /// The files of the repository with the fault, if it is an edit.
    pub tree: Option<Tree>,
    /// Rules of the world that come first.
    pub rules: Value,
    /// Faults of the stage that last from the beginning, in the words of `tiphys rehearse --fault`.
    pub faults: Vec<String>,
    /// What differs in objects of Flux: kind, name, merge patch. Flux then delivers to the cluster.
    pub flux: Vec<(String, String, Value)>,
    /// The fault lies in objects of Argo CD, in a form that Flux's objects do not have.
    pub of_argo_only: bool,
    /// Objects that somebody creates by hand.
    pub objects: Vec<Value>,
    /// Objects that somebody deletes; a name may end with `*`.
    pub deleted: Vec<(GroupVersionKind, String, String)>,
    /// What the programs of a workload that are ill say: namespace, name, line.
    pub lines: Vec<(String, String, String)>,
    /// What kubelets say of the pods of a workload that are ill, and the world does not play: namespace,
    /// name, reason, message.
    pub said: Vec<(String, String, String, String)>,
    /// What a caller says of a Service that is not reached, in place of a refused connection. `*` is any.
    pub unreached: BTreeMap<String, String>,
}

impl Planted {
    pub(super) fn new(kind: &'static str, target: impl Into<String>, causes: &[&'static str]) -> Self {
        let expected = Expected { causes: causes.to_vec(), ..Expected::default() };
        Self { kind, target: target.into(), expected, ..Self::default() }
    }

    pub(super) fn with_object(mut self, kind: &str, namespace: &str, name: &str) -> Self {
        self.expected.objects.push((kind.to_owned(), namespace.to_owned(), name.to_owned()));
        self
    }

    /// At a workload, or at what it made.
    pub(super) fn at_workload(mut self, workload: &Value) -> Self {
        let (namespace, name) = (workload.namespace(), workload.name());
        let networks = ["calico", "cilium", "flannel", "aws-node"];
        if workload.kind() == "DaemonSet" && networks.iter().any(|network| name.contains(network)) {
            self.expected.also.push("net/cni-down");
        }
        if name == "coredns" {
            self.expected.also.push("dns/down");
        }
        self.with_object(workload.kind(), namespace, name)
            .with_object("ReplicaSet", namespace, &format!("{name}-*"))
            .with_object("Pod", namespace, &format!("{name}-*"))
    }

    pub(super) fn edit(mut self, tree: Option<Tree>) -> Option<Self> {
        self.tree = Some(tree?);
        Some(self)
    }

    pub(super) fn rules(mut self, rules: Value) -> Self {
        self.rules = rules;
        self
    }

    pub(super) fn fault(mut self, fault: &str) -> Self {
        self.faults.push(fault.to_owned());
        self
    }

    pub(super) fn by_flux(mut self, kind: &str, name: &str, patch: Value) -> Self {
        self.flux.push((kind.to_owned(), name.to_owned(), patch));
        self
    }

    pub(super) fn of_argo_only(mut self) -> Self {
        self.of_argo_only = true;
        self
    }

    pub(super) fn line(mut self, workload: &Value, line: impl Into<String>) -> Self {
        self.lines.push((workload.namespace().to_owned(), workload.name().to_owned(), line.into()));
        self
    }

    pub(super) fn with_event(mut self, workload: &Value, reason: &str, message: &str) -> Self {
        let [namespace, name, reason, message] =
            [workload.namespace(), workload.name(), reason, message].map(str::to_owned);
        self.said.push((namespace, name, reason, message));
        self
    }

    /// The pods of a workload are deleted, as by an eviction.
    pub(super) fn restart(mut self, workload: &Value) -> Self {
        let pods = format!("{}-*", workload.name());
        self.deleted.push((GroupVersionKind::new("", "v1", "Pod"), workload.namespace().to_owned(), pods));
        self
    }
}

//! Faults that are put in, and what doctor has to say of each.

mod admit;
mod config;
mod edge;
mod gitops;
mod image;
mod platform;
mod run;
mod schedule;
mod service;

use std::collections::BTreeMap;

use tiphys_doctor::Root;
use tiphys_value::{GroupVersionKind, ObjectExt as _, Value, json};

use crate::{repository::Repository, tree::Tree};

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
    /// Objects that somebody creates by hand.
    pub objects: Vec<Value>,
    /// Objects that somebody deletes; a name may end with `*`.
    pub deleted: Vec<(GroupVersionKind, String, String)>,
    /// What the programs of a workload that are ill say: namespace, name, line.
    pub lines: Vec<(String, String, String)>,
    /// What a caller says of a Service that is not reached, in place of a refused connection. `*` is any.
    pub unreached: BTreeMap<String, String>,
}

impl Planted {
    fn new(kind: &'static str, target: impl Into<String>, causes: &[&'static str]) -> Self {
        let expected = Expected { causes: causes.to_vec(), ..Expected::default() };
        Self { kind, target: target.into(), expected, ..Self::default() }
    }

    fn with_object(mut self, kind: &str, namespace: &str, name: &str) -> Self {
        self.expected.objects.push((kind.to_owned(), namespace.to_owned(), name.to_owned()));
        self
    }

    /// At a workload, or at what it made.
    fn at_workload(mut self, workload: &Value) -> Self {
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

    fn edit(mut self, tree: Option<Tree>) -> Option<Self> {
        self.tree = Some(tree?);
        Some(self)
    }

    fn rules(mut self, rules: Value) -> Self {
        self.rules = rules;
        self
    }

    fn line(mut self, workload: &Value, line: impl Into<String>) -> Self {
        self.lines.push((workload.namespace().to_owned(), workload.name().to_owned(), line.into()));
        self
    }

    /// The pods of a workload are deleted, as by an eviction.
    fn restart(mut self, workload: &Value) -> Self {
        let pods = format!("{}-*", workload.name());
        self.deleted.push((GroupVersionKind::new("", "v1", "Pod"), workload.namespace().to_owned(), pods));
        self
    }
}

/// A repository that was brought up.
pub struct Scene<'a> {
    pub repository: &'a Repository,
    /// Every object of the cluster.
    pub live: Vec<Value>,
}

impl Scene<'_> {
    /// The objects of a kind that a plain manifest of the repository declares.
    fn declared(&self, kind: &'static str) -> impl Iterator<Item = &Value> {
        let tree = &self.repository.tree;
        self.live.iter().filter(move |object| {
            object.kind() == kind && tree.file_of(kind, object.namespace(), object.name()).is_some()
        })
    }

    /// Workloads that plain manifests declare.
    fn workloads(&self) -> impl Iterator<Item = &Value> {
        ["Deployment", "StatefulSet", "DaemonSet"].into_iter().flat_map(|kind| self.declared(kind))
    }

    /// Workloads of teams: not the cluster's own.
    fn programs(&self) -> impl Iterator<Item = &Value> {
        let own = ["kube-system", "cert-manager", "external-secrets"];
        self.workloads().filter(move |workload| !own.contains(&workload.namespace()))
    }

    fn all(&self, kind: &'static str) -> impl Iterator<Item = &Value> {
        self.live.iter().filter(move |object| object.kind() == kind)
    }

    /// The repository with an object edited.
    fn edited(&self, object: &Value, edit: impl FnOnce(&mut Value)) -> Option<Tree> {
        self.repository.tree.edited(object.kind(), object.namespace(), object.name(), edit)
    }

    /// Every fault that can be put into it.
    #[must_use]
    pub fn faults(&self) -> Vec<Planted> {
        let mut found = vec![Planted::new("healthy", "nothing", &[])];
        for plant in [
            image::plant,
            run::plant,
            config::plant,
            admit::plant,
            schedule::plant,
            service::plant,
            platform::plant,
            gitops::plant,
            edge::plant,
        ] {
            plant(self, &mut found);
        }
        found
    }
}

/// The name of an object with its namespace.
fn place(object: &Value) -> String {
    format!("{} {}/{}", object.kind(), object.namespace(), object.name())
}

/// The first container of a workload's template.
fn container(workload: &mut Value) -> &mut Value {
    &mut workload["spec"]["template"]["spec"]["containers"][0]
}

/// Mounts one more volume into the first container.
fn mount(workload: &mut Value, volume: Value) {
    let name = volume["name"].clone();
    let pod = &mut workload["spec"]["template"]["spec"];
    let mount = json!({"name": name, "mountPath": format!("/mnt/{}", name.as_str().unwrap_or_default())});
    push(&mut pod["volumes"], volume);
    push(&mut pod["containers"][0]["volumeMounts"], mount);
}

fn push(list: &mut Value, item: Value) {
    match list.as_array_mut() {
        Some(items) => items.push(item),
        None => *list = json!([item]),
    }
}

fn pods_of(workload: &Value) -> Value {
    json!({"namespace": workload.namespace(), "name": format!("{}-*", workload.name())})
}

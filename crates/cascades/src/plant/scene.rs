//! What faults are put into: a repository that was brought up, and how its objects are edited.

use tiphys_value::{ObjectExt as _, Value, json};

use crate::{repository::Repository, tree::Tree};

/// A repository that was brought up.
pub struct Scene<'a> {
    pub repository: &'a Repository,
    /// Every object of the cluster.
    pub live: Vec<Value>,
}

impl Scene<'_> {
    /// The objects of a kind that a plain manifest of the repository declares.
    pub(super) fn declared(&self, kind: &'static str) -> impl Iterator<Item = &Value> {
        let tree = &self.repository.tree;
        self.live.iter().filter(move |object| {
            object.kind() == kind && tree.file_of(kind, object.namespace(), object.name()).is_some()
        })
    }

    /// Workloads that plain manifests declare.
    pub(super) fn workloads(&self) -> impl Iterator<Item = &Value> {
        ["Deployment", "StatefulSet", "DaemonSet"].into_iter().flat_map(|kind| self.declared(kind))
    }

    /// Workloads of teams: not the cluster's own.
    pub(super) fn programs(&self) -> impl Iterator<Item = &Value> {
        let own = ["kube-system", "cert-manager", "external-secrets"];
        self.workloads().filter(move |workload| !own.contains(&workload.namespace()))
    }

    pub(super) fn all(&self, kind: &'static str) -> impl Iterator<Item = &Value> {
        self.live.iter().filter(move |object| object.kind() == kind)
    }

    /// The repository with an object edited.
    pub(super) fn edited(&self, object: &Value, edit: impl FnOnce(&mut Value)) -> Option<Tree> {
        self.repository.tree.edited(object.kind(), object.namespace(), object.name(), edit)
    }
}

/// The folder that is delivered into a namespace, if one is: files may be added to it.
pub(super) fn delivered_folder(scene: &Scene<'_>, namespace: &str) -> Option<String> {
    let text = |app: &Value, path: [&str; 3]| app.str_at(&path).unwrap_or_default().to_owned();
    let mut apps = scene.declared("Application").filter(|app| app.at(&["spec", "source", "helm"]).is_none());
    let app = apps.find(|app| {
        text(app, ["spec", "destination", "namespace"]) == namespace
            && text(app, ["spec", "source", "path"]) == namespace
    })?;
    Some(text(app, ["spec", "source", "path"]))
}

/// The name of an object with its namespace.
pub(super) fn place(object: &Value) -> String {
    format!("{} {}/{}", object.kind(), object.namespace(), object.name())
}

/// The first container of a workload's template.
pub(super) fn container(workload: &mut Value) -> &mut Value {
    &mut workload["spec"]["template"]["spec"]["containers"][0]
}

/// Mounts one more volume into the first container.
pub(super) fn mount(workload: &mut Value, volume: Value) {
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

pub(super) fn pods_of(workload: &Value) -> Value {
    json!({"namespace": workload.namespace(), "name": format!("{}-*", workload.name())})
}

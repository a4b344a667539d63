//! Looking objects up by the cluster they live in.

use std::{collections::HashMap, sync::Arc};

use tiphys_value::{FieldPath, ObjectExt, ResourceKey, Value};

use super::path::path;
use crate::{EnvironmentId, Object, ObjectId, Owner, Survey};

/// Objects by cluster and key.
pub struct Index<'a> {
    /// The repository.
    pub survey: &'a Survey,
    /// The cluster of each object, as a number.
    scopes: Vec<usize>,
    by_key: HashMap<(usize, &'a ResourceKey), Vec<ObjectId>>,
    /// By cluster, kind and name, whatever the namespace.
    by_name: HashMap<(usize, &'a str, &'a str), Vec<ObjectId>>,
    /// The CustomResourceDefinitions by cluster, group and kind.
    definitions: HashMap<(usize, &'a str, &'a str), Vec<ObjectId>>,
    /// What runs pods, by cluster and namespace.
    workloads: HashMap<(usize, &'a str), Vec<ObjectId>>,
    /// The same by a label of the pods.
    labelled: HashMap<(usize, &'a str, &'a str, &'a str), Vec<ObjectId>>,
}

/// What tells one cluster from another.
#[derive(PartialEq, Eq, Hash)]
enum ClusterIdentity {
    Cluster(EnvironmentId, Arc<str>),
    Unit(Owner),
}

impl<'a> Index<'a> {
    /// An index of a survey.
    pub fn from_survey(survey: &'a Survey) -> Self {
        let mut places: HashMap<ClusterIdentity, usize> = HashMap::new();
        let mut index = Self {
            survey,
            scopes: Vec::with_capacity(survey.objects.len()),
            by_key: HashMap::with_capacity(survey.objects.len()),
            by_name: HashMap::with_capacity(survey.objects.len()),
            definitions: HashMap::new(),
            workloads: HashMap::new(),
            labelled: HashMap::new(),
        };
        for object in &survey.objects {
            let place = match object.environment {
                Some(environment) => ClusterIdentity::Cluster(environment, object.cluster.clone()),
                None => ClusterIdentity::Unit(object.owner),
            };
            let next = places.len();
            let scope = *places.entry(place).or_insert(next);
            index.scopes.push(scope);
            index.by_key.entry((scope, &object.key)).or_default().push(object.id);
            let (kind, name) = (object.key.kind.as_str(), object.key.name.as_str());
            index.by_name.entry((scope, kind, name)).or_default().push(object.id);
            if kind == "CustomResourceDefinition"
                && let (Some(group), Some(kind)) = (
                    object.value().str_at(&["spec", "group"]),
                    object.value().str_at(&["spec", "names", "kind"]),
                )
            {
                index.definitions.entry((scope, group, kind)).or_default().push(object.id);
            }
            if let Some((template, _)) = pod_template(object.value()) {
                let namespace = object.key.namespace.as_str();
                index.workloads.entry((scope, namespace)).or_default().push(object.id);
                let labels = template.at(&["metadata", "labels"]).and_then(Value::as_object);
                for (key, value) in labels.into_iter().flatten() {
                    let value = value.as_str().unwrap_or_default();
                    index.labelled.entry((scope, namespace, key, value)).or_default().push(object.id);
                }
            }
        }
        index
    }

    /// The number of an object's cluster: equal for objects that live together.
    pub fn scope(&self, object: ObjectId) -> usize {
        self.scopes[object.0]
    }

    /// The objects of a key in the cluster of `near`.
    pub fn objects_at<'s>(&'s self, near: &Object, key: &'s ResourceKey) -> &'s [ObjectId] {
        self.by_key.get(&(self.scope(near.id), key)).map(Vec::as_slice).unwrap_or_default()
    }

    /// The objects of a kind and name in the cluster of `near`, whatever their namespace.
    pub fn objects_named<'s>(&'s self, near: &Object, kind: &'s str, name: &'s str) -> &'s [ObjectId] {
        self.by_name.get(&(self.scope(near.id), kind, name)).map(Vec::as_slice).unwrap_or_default()
    }

    /// The definitions of a kind in the cluster of `near`.
    pub fn definitions<'s>(&'s self, near: &Object, group: &'s str, kind: &'s str) -> &'s [ObjectId] {
        self.definitions.get(&(self.scope(near.id), group, kind)).map(Vec::as_slice).unwrap_or_default()
    }

    /// What runs pods with a label in a namespace of the cluster of `near`.
    pub fn labelled<'s>(
        &'s self,
        near: &Object,
        namespace: &'s str,
        (key, value): (&'s str, &'s str),
    ) -> &'s [ObjectId] {
        let found = self.labelled.get(&(self.scope(near.id), namespace, key, value));
        found.map(Vec::as_slice).unwrap_or_default()
    }

    /// What runs pods in a namespace of the cluster of `near`.
    pub fn workloads<'s>(&'s self, near: &Object, namespace: &'s str) -> &'s [ObjectId] {
        self.workloads.get(&(self.scope(near.id), namespace)).map(Vec::as_slice).unwrap_or_default()
    }
}

/// The pod template of a kind that runs pods (a Pod is its own), with its path.
pub fn pod_template(object: &Value) -> Option<(&Value, FieldPath)> {
    let keys: &[&str] = match object.kind() {
        "Pod" => &[],
        "CronJob" => &["spec", "jobTemplate", "spec", "template"],
        "Deployment"
        | "StatefulSet"
        | "DaemonSet"
        | "ReplicaSet"
        | "ReplicationController"
        | "Job"
        | "Rollout" => &["spec", "template"],
        _ => return None,
    };
    let template = object.at(keys)?;
    template.at(&["spec", "containers"]).map(|_| (template, path(keys)))
}

/// The pod spec of a kind that runs pods, with its path.
pub fn pod_spec(object: &Value) -> Option<(&Value, FieldPath)> {
    let (template, at) = pod_template(object)?;
    Some((template.get("spec")?, at.key("spec")))
}

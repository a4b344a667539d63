//! The pods that an object makes, and their containers.

use tiphys_graph::Object;
use tiphys_model::hook::is_ignored;
use tiphys_value::{FieldPath, ObjectExt, Value};

use super::field_paths::keys;

/// The pods of an object: a Pod itself, or the template of a workload.
#[derive(Clone)]
pub(crate) struct Pod<'a> {
    /// The object.
    pub object: &'a Object,
    /// Where `metadata` and `spec` of the pods stand in it.
    pub path: FieldPath,
    /// What stands there.
    pub template: &'a Value,
}

/// A container of a pod.
pub(crate) struct Container<'a> {
    /// Its path in the object.
    pub path: FieldPath,
    /// What stands there.
    pub value: &'a Value,
}

impl Container<'_> {
    /// Its name.
    pub(crate) fn name(&self) -> &str {
        text(self.value, "name")
    }

    /// Its image.
    pub(crate) fn image(&self) -> &str {
        text(self.value, "image")
    }
}

/// A text field, or nothing.
pub(crate) fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// A list field, or nothing.
pub(crate) fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// The pods that an object makes. What an Application renders and the engine never applies, such as the tests
/// of a chart, makes none.
pub(crate) fn pod_of(object: &Object) -> Option<Pod<'_>> {
    if object.environment.is_some() && is_ignored(object.value()) {
        return None;
    }
    let path: &[&str] = match (object.key.group.as_str(), object.key.kind.as_str()) {
        ("", "Pod") => &[],
        ("apps" | "extensions", "Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet")
        | ("", "ReplicationController")
        | ("batch", "Job")
        | ("argoproj.io", "Rollout") => &["spec", "template"],
        ("batch", "CronJob") => &["spec", "jobTemplate", "spec", "template"],
        _ => return None,
    };
    let template = object.value().at(path)?;
    template.get("spec")?.is_object().then(|| Pod { object, path: keys(path), template })
}

/// The pods of a Service of Knative. It starts none while nobody asks, and fills in ports and probes: what
/// judges those, asks for [`pod_of`].
pub(crate) fn knative_pod_of(object: &Object) -> Option<Pod<'_>> {
    if object.key.group != "serving.knative.dev" || object.key.kind != "Service" {
        return None;
    }
    let path: &[&str] = &["spec", "template"];
    let template = object.value().at(path)?;
    template.get("spec")?.is_object().then(|| Pod { object, path: keys(path), template })
}

impl<'a> Pod<'a> {
    /// The pod's `spec`.
    pub(crate) fn spec(&self) -> &'a Value {
        &self.template["spec"]
    }

    /// Where the pod's `spec` stands in the object.
    pub(crate) fn spec_path(&self) -> FieldPath {
        self.path.key("spec")
    }

    /// A label of the pods.
    pub(crate) fn label(&self, key: &str) -> Option<&'a str> {
        self.template.str_at(&["metadata", "labels", key])
    }

    /// The labels of the pods.
    pub(crate) fn labels(&self) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        let labels = self.template.at(&["metadata", "labels"]).and_then(Value::as_object);
        labels.into_iter().flatten().filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)))
    }

    /// Its containers, those that start first first.
    pub(crate) fn containers(&self) -> impl Iterator<Item = Container<'a>> + use<'a> {
        let (spec, path) = (self.spec(), self.spec_path());
        ["initContainers", "containers"].into_iter().flat_map(move |field| {
            let path = path.key(field);
            let containers = list(spec, field).iter().enumerate();
            containers.map(move |(at, value)| Container { path: path.index(at), value })
        })
    }

    /// Its service account; `default` unless it says another.
    pub(crate) fn service_account(&self) -> &'a str {
        let spec = self.spec();
        let named = [text(spec, "serviceAccountName"), text(spec, "serviceAccount")];
        named.into_iter().find(|name| !name.is_empty()).unwrap_or("default")
    }
}

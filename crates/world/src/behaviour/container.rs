//! What programs do.

use serde::Deserialize;
use serde_json::Value;
use tiphys_value::ObjectExt;

use super::{Behaviours, Cause, Pattern, Pods, Span, Target};
use crate::{
    Key, View,
    labels::service_key,
    object::{is_condition_true, resources},
};

/// How some containers fare.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ContainerRule {
    /// Containers of these images.
    pub image: Pattern,
    /// Containers of these names.
    pub container: Pattern,
    /// Containers of these pods.
    pub pods: Pods,
    /// What the program cannot do without. While something is missing it ends as `exits` says, or is not
    /// Ready if `exits` is not given.
    pub needs: Vec<Need>,
    /// That it ends by itself: always, or as long as something is missing.
    pub exits: Option<Exit>,
    /// When its probes succeed.
    pub ready: Readiness,
    /// How long it takes to end when it is asked to.
    pub stops: Span,
}

/// How a program ends by itself.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Exit {
    /// Exit code.
    pub code: i32,
    /// After running for this long.
    #[serde(default)]
    pub after: Span,
    /// In place of `Error` or `Completed`, such as `OOMKilled`.
    #[serde(default)]
    pub reason: Option<String>,
    /// What it leaves as its termination message.
    #[serde(default)]
    pub message: Option<String>,
}

/// When the probes of a container succeed.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Readiness {
    /// This long after it started, if not earlier than the probe begins.
    pub after: Span,
    /// Never, and what the probe says.
    pub never: Option<String>,
}

/// Something in the cluster that a program or operator cannot do without.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum Need {
    /// The API server can be reached from the pod.
    Kubernetes {},
    /// A Service has a Ready endpoint and can be reached from the pod.
    Service {
        /// Namespace; the pod's own if not given.
        #[serde(default)]
        namespace: Option<String>,
        /// Name.
        name: String,
    },
    /// An object exists, and its condition is `True` if one is named.
    #[serde(rename_all = "camelCase")]
    Object {
        /// API version.
        api_version: String,
        /// Kind.
        kind: String,
        /// Namespace; the pod's own if not given, empty for objects outside of namespaces.
        #[serde(default)]
        namespace: Option<String>,
        /// Name.
        name: String,
        /// Type of a condition.
        #[serde(default)]
        condition: Option<String>,
    },
}

impl ContainerRule {
    /// Whether the rule is about a container of a pod.
    pub fn is_about(&self, pod: &Value, container: &Value) -> bool {
        let image = container.str_at(&["image"]).unwrap_or_default();
        (self.image.matches(image) || self.image.matches(&super::image::full_name(image)))
            && self.container.matches(container.str_at(&["name"]).unwrap_or_default())
            && self.pods.contains(pod)
    }

    /// The first need that is not met.
    pub fn unmet(&self, pod: &Value, behaviours: &Behaviours, view: &View<'_>) -> Option<Cause> {
        self.needs.iter().find_map(|need| need.unmet(pod, behaviours, view))
    }
}

impl Need {
    /// Why the need of a pod, or of an object, is not met.
    pub fn unmet(&self, subject: &Value, behaviours: &Behaviours, view: &View<'_>) -> Option<Cause> {
        match self {
            Self::Kubernetes {} => behaviours.blocked(subject, &Target::Kubernetes {}),
            Self::Service { namespace, name } => {
                let namespace = namespace.as_deref().unwrap_or_else(|| subject.namespace());
                let target = Target::Service { namespace: namespace.into(), name: name.as_str().into() };
                behaviours.blocked(subject, &target).or_else(|| {
                    let has_endpoint = has_ready_endpoint(namespace, name, view);
                    (!has_endpoint).then(|| Cause::NoEndpoints { service: format!("{namespace}/{name}") })
                })
            }
            Self::Object { api_version, kind, namespace, name, condition } => {
                let missing = || Some(Cause::Missing { kind: kind.to_lowercase(), name: name.clone() });
                let Some(resource) = view.resource_of(api_version, kind) else { return missing() };
                let namespace = namespace.as_deref().unwrap_or_else(|| subject.namespace());
                let found = [namespace, ""].into_iter().find_map(|namespace| {
                    view.get(&resource, &Key { namespace: namespace.to_owned(), name: name.clone() })
                });
                let Some(object) = found else { return missing() };
                let is_ready =
                    condition.as_ref().is_none_or(|condition| is_condition_true(&object, condition));
                (!is_ready).then(|| Cause::NotReady { kind: kind.clone(), name: name.clone() })
            }
        }
    }
}

/// Whether something Ready stands behind a Service.
pub fn has_ready_endpoint(namespace: &str, service: &str, view: &View<'_>) -> bool {
    let slices = view.list(&resources::endpoint_slices(), Some(namespace));
    slices.iter().filter(|slice| service_key(slice) == Some(service)).any(|slice| {
        let endpoints = slice.get("endpoints").and_then(Value::as_array);
        endpoints.into_iter().flatten().any(|e| e.at(&["conditions", "ready"]) != Some(&Value::Bool(false)))
    })
}

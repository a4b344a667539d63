//! What programs do.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use tiphys_diag::similar_names::nearest_slip_beside_numbers;
use tiphys_value::ObjectExt;

use super::{Behaviours, Cause, Pattern, Pods, Span, Target, fill};
use crate::{
    Awaited, Key, View,
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
    /// Containers with this command line: command and arguments with blanks between them.
    pub line: Pattern,
    /// What the program cannot do without. While something is missing it ends as `exits` says, or is not
    /// Ready if `exits` is not given.
    pub needs: Vec<Need>,
    /// That it ends by itself: always, or as long as something is missing.
    pub exits: Option<Exit>,
    /// When its probes succeed.
    pub ready: Readiness,
    /// How long it takes to end when it is asked to.
    pub stops: Span,
    /// Objects that the program makes if they are not there: when it has ended well, or when it starts if it
    /// does not end. Templates of `pod`, of `flags`, which are those of the command line, and of `env`, the
    /// variables that have a value of their own.
    pub makes: Vec<Value>,
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
    /// A name is no slip for that of another object of the kind. What is not there at all may be made by
    /// somebody else.
    NoSlip {
        /// API group.
        group: String,
        /// Kind.
        kind: String,
        /// Name, in the namespace of who needs it or outside of namespaces.
        name: String,
    },
}

impl ContainerRule {
    /// Whether the rule is about a container of a pod.
    pub fn is_about(&self, pod: &Value, container: &Value) -> bool {
        let image = container.str_at(&["image"]).unwrap_or_default();
        (self.image.matches(image) || self.image.matches(&super::image::full_name(image)))
            && self.container.matches(container.str_at(&["name"]).unwrap_or_default())
            && self.pods.contains(pod)
            && self.line.matches(&command_line(container).join(" "))
    }

    /// The objects that the program of a container makes.
    pub fn products(&self, pod: &Value, container: &Value) -> Vec<Value> {
        if self.makes.is_empty() {
            return Vec::new();
        }
        let facts =
            json!({"pod": pod, "flags": flags(&command_line(container)), "env": variables(container)});
        self.makes.iter().map(|template| fill(template, &facts)).collect()
    }

    /// The first need that is not met.
    pub fn unmet(&self, pod: &Value, behaviours: &Behaviours, view: &View<'_>) -> Option<Cause> {
        self.needs.iter().find_map(|need| need.unmet(pod, behaviours, view))
    }
}

/// Command and arguments of a container.
pub fn command_line(container: &Value) -> Vec<&str> {
    let words = |field: &str| container.at(&[field]).and_then(Value::as_array).into_iter().flatten();
    words("command").chain(words("args")).filter_map(Value::as_str).collect()
}

/// The variables whose values stand in the container itself, by name.
fn variables(container: &Value) -> Map<String, Value> {
    let all = container.at(&["env"]).and_then(Value::as_array).into_iter().flatten();
    all.filter_map(|one| Some((one.str_at(&["name"])?.to_owned(), one.get("value")?.clone()))).collect()
}

/// `--name=value` and `--name value`, by name.
fn flags(words: &[&str]) -> Map<String, Value> {
    let next = words.iter().skip(1).map(|word| Some(*word)).chain([None]);
    let flag = |(word, next): (&&str, Option<&str>)| {
        let flag = word.strip_prefix('-')?.trim_start_matches('-').to_owned();
        match flag.split_once('=') {
            Some((name, value)) => Some((name.to_owned(), value.into())),
            None => next.filter(|next| !next.starts_with('-')).map(|value| (flag, value.into())),
        }
    };
    words.iter().zip(next).filter_map(flag).collect()
}

impl Need {
    /// What has to change before it may be met, as far as that is an object.
    pub fn awaited(&self, own_namespace: &str) -> Vec<Awaited> {
        let key =
            |namespace: &str, name: &str| Key { namespace: namespace.to_owned(), name: name.to_owned() };
        match self {
            Self::Kubernetes {} => Vec::new(),
            Self::Service { namespace, name } => {
                vec![Awaited::Endpoints(key(namespace.as_deref().unwrap_or(own_namespace), name))]
            }
            Self::Object { api_version, kind, namespace, name, .. } => {
                let group = api_version.rsplit_once('/').map_or("", |(group, _)| group);
                let namespaces = BTreeSet::from([namespace.as_deref().unwrap_or(own_namespace), ""]);
                let awaited = |namespace: &str| Awaited::Object {
                    group: group.to_owned(),
                    kind: kind.clone(),
                    key: key(namespace, name),
                };
                namespaces.into_iter().map(awaited).collect()
            }
            Self::NoSlip { group, kind, name } => {
                let namespaces = BTreeSet::from([own_namespace, ""]);
                let awaited = |namespace: &str| Awaited::Object {
                    group: group.clone(),
                    kind: kind.clone(),
                    key: key(namespace, name),
                };
                namespaces.into_iter().map(awaited).collect()
            }
        }
    }

    /// The object that has to be there: group, kind and name.
    pub fn object(&self) -> Option<(&str, &str, &str)> {
        match self {
            Self::Object { api_version, kind, name, .. } => {
                Some((api_version.rsplit_once('/').map_or("", |(group, _)| group), kind, name))
            }
            Self::NoSlip { group, kind, name } => Some((group, kind, name)),
            Self::Kubernetes {} | Self::Service { .. } => None,
        }
    }

    /// Why the need of a pod, or of an object, is not met.
    pub fn unmet(&self, subject: &Value, behaviours: &Behaviours, view: &View<'_>) -> Option<Cause> {
        match self {
            Self::Kubernetes {} => behaviours.blocked(subject, &Target::Kubernetes {}, view),
            Self::Service { namespace, name } => {
                let namespace = namespace.as_deref().unwrap_or_else(|| subject.namespace());
                let target = Target::Service { namespace: namespace.into(), name: name.as_str().into() };
                behaviours.blocked(subject, &target, view).or_else(|| {
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
            Self::NoSlip { group, kind, name } => {
                let names = [subject.namespace(), ""]
                    .into_iter()
                    .flat_map(|namespace| view.names_of_kind(group, kind, namespace))
                    .collect::<BTreeSet<String>>();
                let is_slip = !names.contains(name)
                    && nearest_slip_beside_numbers(name, names.iter().map(String::as_str)).is_some();
                is_slip.then(|| Cause::Missing { kind: kind.to_lowercase(), name: name.clone() })
            }
        }
    }
}

/// Whether something Ready stands behind a Service.
pub(super) fn has_ready_endpoint(namespace: &str, service: &str, view: &View<'_>) -> bool {
    let slices = view.list(&resources::endpoint_slices(), Some(namespace));
    slices.iter().filter(|slice| service_key(slice) == Some(service)).any(|slice| {
        let endpoints = slice.get("endpoints").and_then(Value::as_array);
        endpoints.into_iter().flatten().any(|e| e.at(&["conditions", "ready"]) != Some(&Value::Bool(false)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_program_makes_is_told_by_its_flags() {
        let rule: ContainerRule = serde_json::from_value(json!({
            "image": "*certgen*", "line": "create *",
            "makes": [{"kind": "Secret", "metadata": {"name": "{flags.secret-name|none.given}", "namespace": "{pod.metadata.namespace}"}}],
        }))
        .unwrap();
        let pod = json!({"metadata": {"name": "job-x", "namespace": "ingress"}});
        let container = |args: Value| json!({"name": "a", "image": "registry/certgen:v1", "args": args});
        for args in [
            json!(["create", "--host=a,b", "--secret-name=tls"]),
            json!(["create", "--secret-name", "tls", "-v"]),
        ] {
            let container = container(args);
            assert!(rule.is_about(&pod, &container));
            let made = json!({"kind": "Secret", "metadata": {"name": "tls", "namespace": "ingress"}});
            assert_eq!(rule.products(&pod, &container), [made]);
        }
        assert!(!rule.is_about(&pod, &container(json!(["patch", "--secret-name=tls"]))));
    }

    #[test]
    fn what_a_program_makes_is_told_by_its_variables() {
        let rule: ContainerRule = serde_json::from_value(json!({"image": "*controller*",
            "makes": [{"kind": "Secret", "metadata": {"name": "{env.SECRET|members}"}}]}))
        .unwrap();
        let made = |env: Value| rule.products(&json!({}), &json!({"image": "controller", "env": env}));
        let secret = |name: &str| vec![json!({"kind": "Secret", "metadata": {"name": name}})];
        assert_eq!(
            made(json!([{"name": "OTHER", "value": "a"}, {"name": "SECRET", "value": "mine"}])),
            secret("mine")
        );
        assert_eq!(made(json!([{"name": "SECRET", "valueFrom": {}}])), secret("members"));
    }
}

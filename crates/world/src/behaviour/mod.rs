//! What the cluster meets outside of its own API: registries, the programs in its containers, operators,
//! webhooks, nodes and the network. All of it is data with typed causes, so that a fault is a rule more
//! or less: it can be put into a fork, taken out again, and named as the cause of what follows.
//!
//! Rules come from [`Settings`](crate::Settings) and from the ConfigMap `kube-system/tiphys-world`, whose
//! values are YAML documents of this type; those of the ConfigMap are looked at first. The first rule that
//! matches decides.

mod cause;
mod container;
mod image;
mod ingress_class;
mod known_image;
mod load_balancer;
mod network;
mod operator;
mod pattern;
mod storage_driver;
mod template;

use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use tiphys_value::ObjectExt;

pub use cause::Cause;
pub use container::{ContainerRule, Exit, Need, Readiness, command_line};
pub use image::{ImageRule, Pull, host as image_host};
pub(crate) use image::{full_name as full_image_name, reference_fault};
pub use ingress_class::{Server as IngressServer, ingress_server, runs_image};
pub(crate) use known_image::known_image;
pub use known_image::open_ports;
pub use load_balancer::load_balancer_image;
pub use network::{NetworkFault, NodeRule, NodeState, PolicyName, Target, WebhookAnswer, WebhookRule};
pub use operator::{NeedTemplate, Operator, Policy, Product};
pub use pattern::{Pattern, Pods, Span};
pub use storage_driver::storage_driver;
pub(crate) use template::fill;

/// The operators and programs that are known without being told.
const KNOWN: [(&str, &str); 2] = [
    ("operators.yaml", include_str!("../../data/operators.yaml")),
    ("programs.yaml", include_str!("../../data/programs.yaml")),
];

/// A list of `data`.
///
/// # Panics
/// Never: the lists are part of the program, and tests read them.
fn listed<T: serde::de::DeserializeOwned>(text: &str) -> Vec<T> {
    let value = tiphys_yaml::from_yaml(text).expect("the list is part of the program");
    serde_json::from_value(value).expect("the list is part of the program")
}

/// Where rules are read from in a running cluster.
pub(crate) const CONFIG_MAP: (&str, &str) = ("kube-system", "tiphys-world");

/// How everything behaves that is no controller of Kubernetes itself.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Behaviours {
    /// What registries answer.
    pub images: Vec<ImageRule>,
    /// What programs do.
    pub containers: Vec<ContainerRule>,
    /// Controllers of custom resources.
    pub operators: Vec<Operator>,
    /// What admission webhooks answer once they are reached.
    pub webhooks: Vec<WebhookRule>,
    /// How nodes are.
    pub nodes: Vec<NodeRule>,
    /// What does not get through.
    pub network: Vec<NetworkFault>,
}

/// Rules that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{source_name}: {why}")]
pub struct BehaviourError {
    source_name: String,
    why: String,
}

impl Behaviours {
    /// The operators and programs that are known without being told, and nothing else.
    ///
    /// # Panics
    /// Never: the lists are part of the program and a test reads them.
    pub fn builtin() -> Self {
        let mut all = Self::default();
        for (name, text) in KNOWN {
            all.extend(Self::from_yaml(name, text).expect("the list is part of the program"));
        }
        all
    }

    /// Reads rules from a YAML document.
    ///
    /// # Errors
    /// It is no YAML, or not of this shape; `name` is where it stands.
    pub fn from_yaml(name: &str, text: &str) -> Result<Self, BehaviourError> {
        let fault = |why: String| BehaviourError { source_name: name.to_owned(), why };
        let value = tiphys_yaml::from_yaml(text).map_err(|error| fault(error.to_string()))?;
        if value.is_null() {
            return Ok(Self::default());
        }
        serde_json::from_value(value).map_err(|error| fault(error.to_string()))
    }

    /// Reads the rules in a ConfigMap, its keys in order.
    ///
    /// # Errors
    /// As [`Behaviours::from_yaml`], for the first value that cannot be read.
    pub fn from_config_map(config_map: &Value) -> Result<Self, BehaviourError> {
        let data = config_map.at(&["data"]).and_then(Value::as_object);
        let mut keys: Vec<_> = data.into_iter().flatten().collect();
        keys.sort_by_key(|(key, _)| key.as_str());
        let mut all = Self::default();
        for (key, text) in keys {
            all.extend(Self::from_yaml(key, text.as_str().unwrap_or_default())?);
        }
        Ok(all)
    }

    /// Whether a rule is about an object: a node, a pod, or a custom resource with an operator.
    pub fn are_about(&self, object: &Value) -> bool {
        let gvk = object.gvk();
        match (gvk.group.as_str(), object.kind()) {
            ("", "Node") => self.nodes.iter().any(|rule| rule.node.matches(object.name())),
            ("", "Pod") => self.are_about_pod(object),
            (group, kind) => {
                self.operators.iter().any(|it| (it.group.as_str(), it.kind.as_str()) == (group, kind))
            }
        }
    }

    fn are_about_pod(&self, pod: &Value) -> bool {
        let node = pod.str_at(&["spec", "nodeName"]).unwrap_or_default();
        let lists = ["initContainers", "containers"].into_iter();
        let mut containers = lists.filter_map(|list| pod.at(&["spec", list])?.as_array()).flatten();
        self.nodes.iter().any(|rule| !node.is_empty() && rule.node.matches(node))
            || self.network.iter().any(|fault| fault.from.contains(pod))
            || containers.any(|container| {
                let image = container.str_at(&["image"]).unwrap_or_default();
                self.images.iter().any(|rule| rule.is_about(image))
                    || self.containers.iter().any(|rule| rule.is_about(pod, container))
            })
    }

    /// Rules for the ConfigMap `kube-system/tiphys-world` by which the known operators of some kinds, told by
    /// group and kind, work though none of their pods runs. `None` if no operator of them is known.
    ///
    /// # Panics
    /// Never: the list is part of the program and a test reads it.
    pub fn operators_without_pods(is_wanted: impl Fn(&str, &str) -> bool) -> Option<Value> {
        let mut operators = known_operators(is_wanted);
        for operator in operators.iter_mut().filter_map(Value::as_object_mut) {
            operator.remove("image");
        }
        let rules = tiphys_yaml::to_yaml(&serde_json::json!({"operators": operators}));
        let (namespace, name) = CONFIG_MAP;
        let map = serde_json::json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"namespace": namespace, "name": name}, "data": {"stand-ins.yaml": rules}});
        (!operators.is_empty()).then_some(map)
    }

    /// Rules by which the known operators of some kinds, told by group and kind, take so long over each
    /// object. `None` if no operator of them is known.
    ///
    /// # Panics
    /// Never: the list is part of the program and a test reads it.
    pub fn operators_that_take(is_wanted: impl Fn(&str, &str) -> bool, takes: Duration) -> Option<Value> {
        let mut operators = known_operators(is_wanted);
        for operator in operators.iter_mut().filter_map(Value::as_object_mut) {
            operator.insert("takes".into(), format!("{}ms", takes.as_millis()).into());
        }
        (!operators.is_empty()).then(|| serde_json::json!({"operators": operators}))
    }

    /// These rules, and after them others.
    pub fn extend(&mut self, others: Self) {
        self.images.extend(others.images);
        self.containers.extend(others.containers);
        self.operators.extend(others.operators);
        self.webhooks.extend(others.webhooks);
        self.nodes.extend(others.nodes);
        self.network.extend(others.network);
    }
}

/// The known operators of some kinds, as they are written.
fn known_operators(is_wanted: impl Fn(&str, &str) -> bool) -> Vec<Value> {
    let known: Value = tiphys_yaml::from_yaml(KNOWN[0].1).expect("the list is part of the program");
    let mut operators = known.at(&["operators"]).and_then(Value::as_array).cloned().unwrap_or_default();
    let text = |operator: &Value, key: &str| operator.str_at(&[key]).unwrap_or_default().to_owned();
    operators.retain(|operator| is_wanted(&text(operator, "group"), &text(operator, "kind")));
    operators
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_can_be_read() {
        let known = Behaviours::builtin();
        assert!(known.operators.len() >= 3 && !known.containers.is_empty());
    }

    #[test]
    fn operators_can_be_played_without_their_pods() {
        let map = Behaviours::operators_without_pods(|_, kind| kind == "ClusterIssuer").unwrap();
        let rules = Behaviours::from_config_map(&map).unwrap();
        assert_eq!(rules.operators.len(), 1);
        assert!(rules.operators[0].image.is_none() && !rules.operators[0].status.is_empty());
        assert!(Behaviours::operators_without_pods(|_, kind| kind == "Nothing").is_none());
    }

    #[test]
    fn operators_can_be_slow() {
        let rules =
            Behaviours::operators_that_take(|_, kind| kind == "Certificate", Duration::from_secs(300));
        let rules = Behaviours::from_yaml("slow", &rules.unwrap().to_string()).unwrap();
        assert_eq!(rules.operators[0].takes, Span(Duration::from_secs(300)));
        assert!(!rules.operators[0].produces.is_empty(), "it still makes what it makes");
    }

    #[test]
    fn a_mistake_is_named_with_its_place() {
        let error = Behaviours::from_yaml("mine.yaml", "images: [{image: a, pul: works}]").unwrap_err();
        assert!(error.to_string().starts_with("mine.yaml: unknown field `pul`"), "{error}");
    }
}

//! What the policies of a cluster refuse when an object is created: `ClusterPolicy`, `Policy` and
//! `ValidatingPolicy` of Kyverno, constraints of Gatekeeper's library, and the API server's own
//! `ValidatingAdmissionPolicy`.
//!
//! What cannot be decided without the engine (who asks, other objects, registries) refuses nothing here.

#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]

mod cel;
mod cel_policy;
mod gatekeeper;
mod kyverno;
mod request;
mod verdict;
mod wildcard;
mod workload;

use tiphys_value::{FieldPath, ObjectExt, ResourceKey, Value};

pub use request::Namespace;
use request::Request;

/// The enforced policies of one cluster.
#[derive(Debug, Default)]
pub struct Policies<'a> {
    kyverno: Vec<kyverno::Rule<'a>>,
    exceptions: Vec<&'a Value>,
    in_cel: Vec<cel_policy::Policy<'a>>,
    constraints: Vec<gatekeeper::Constraint<'a>>,
}

/// Why a policy refuses an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The policy.
    pub policy: ResourceKey,
    /// The name of its rule.
    pub rule: String,
    /// Where the rule stands in the policy.
    pub asked: FieldPath,
    /// What is refused.
    pub refused: Refused,
    /// The field of the object that does not fit, if the rule compares fields.
    pub field: Option<FieldPath>,
    /// What the policy says to who breaks it; empty if it says nothing.
    pub message: String,
}

/// What a policy refuses of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The object.
    Object,
    /// The pods that its controller makes; the object itself is taken.
    Pods,
}

/// Whether a policy does more than is evaluated here: it changes or makes objects, asks registries, or is a
/// program.
/// `None` if the object is no policy of Kyverno or Gatekeeper.
pub fn does_more(policy: &Value) -> Option<bool> {
    let gvk = policy.gvk();
    Some(match (gvk.group.as_str(), gvk.kind.as_str()) {
        ("kyverno.io", "ClusterPolicy" | "Policy") => kyverno::does_more(policy),
        ("policies.kyverno.io", kind) if kind.ends_with("Policy") => kind != "ValidatingPolicy",
        ("constraints.gatekeeper.sh", kind) => !gatekeeper::is_known(kind),
        ("mutations.gatekeeper.sh", _) => true,
        _ => return None,
    })
}

/// The kinds that Kyverno's webhook is asked about for a policy, as the policy writes them (`Pod`,
/// `apps/v1/Deployment`, `*`), with those to which rules about Pods are extended.
pub fn webhook_kinds(policy: &Value) -> Vec<&str> {
    kyverno::webhook_kinds(policy)
}

impl<'a> Policies<'a> {
    /// Reads the policies among the objects of a cluster.
    pub fn from_objects(objects: impl IntoIterator<Item = &'a Value>) -> Self {
        let mut found = Self::default();
        let (mut policies, mut bindings) = (Vec::new(), Vec::new());
        for object in objects {
            // Nearly all objects are none.
            let group = object.api_version().split_once('/').map_or("", |(group, _)| group);
            match (group, object.kind()) {
                ("kyverno.io", "ClusterPolicy" | "Policy") => found.kyverno.extend(kyverno::rules(object)),
                ("kyverno.io", "PolicyException") => found.exceptions.push(object),
                ("policies.kyverno.io", "ValidatingPolicy") => {
                    found.in_cel.extend(cel_policy::Policy::of_kyverno(object));
                }
                ("constraints.gatekeeper.sh", _) => {
                    found.constraints.extend(gatekeeper::Constraint::from_object(object));
                }
                ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy") => policies.push(object),
                ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding") => bindings.push(object),
                _ => {}
            }
        }
        found.in_cel.extend(policies.into_iter().filter_map(|it| cel_policy::Policy::bound(it, &bindings)));
        found
    }

    /// What Kyverno's webhook answers to who creates an object that it refuses; `None` if it takes it.
    pub fn kyverno_denial(&self, object: &Value, namespace: Namespace<'_>) -> Option<String> {
        let mut refusals = self.refusals(object, namespace);
        refusals.retain(|it| it.refused == Refused::Object && it.policy.group.ends_with("kyverno.io"));
        (!refusals.is_empty()).then(|| kyverno::denial(object, &refusals))
    }

    /// Whether nothing is refused.
    pub fn is_empty(&self) -> bool {
        self.kyverno.is_empty() && self.in_cel.is_empty() && self.constraints.is_empty()
    }

    /// Why an object, or the pods of a workload, would be refused when it is created.
    pub fn refusals(&self, object: &Value, namespace: Namespace<'_>) -> Vec<Refusal> {
        if self.is_empty() {
            return Vec::new();
        }
        let request = Request::create(object, namespace);
        let pods = workload::pod_of(object).map(|(pod, path)| (Request::create(&pod, namespace), path));
        let in_cel = self.in_cel.iter();
        let in_cel = in_cel.filter_map(|policy| policy.refusal(&request, pods.as_ref().map(|(pod, _)| pod)));
        let constraints = self.constraints.iter();
        let constraints =
            constraints.filter_map(|it| it.refusal(&request, pods.as_ref().map(|(pod, path)| (pod, path))));
        let mut found: Vec<Refusal> = in_cel.chain(constraints).collect();
        let rules = if kyverno::is_left_alone(object) { &[] } else { self.kyverno.as_slice() };
        for rule in rules {
            if let Some(refusal) = rule.refusal(&request, &self.exceptions) {
                found.push(refusal);
            } else if let Some((pod, path)) = &pods
                && !rule.is_extended_to(request.kind())
                && let Some(refusal) = rule.refusal(pod, &self.exceptions)
            {
                let field = refusal.field.map(|it| FieldPath([path.0.clone(), it.0].concat()));
                found.push(Refusal { refused: Refused::Pods, field, ..refusal });
            }
        }
        found
    }
}

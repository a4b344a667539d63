//! # A policy refuses an object or its pods
//!
//! A policy that is enforced refuses what an Application brings: an image without a tag, a container without
//! limits, a label that is missing. The policy and what it refuses are often of two Applications: each is
//! right by itself, and the sync of the second one fails.
//!
//! Kyverno's `ClusterPolicy`, `Policy` and `ValidatingPolicy`, the API server's `ValidatingAdmissionPolicy` and
//! the best known constraints of Gatekeeper's library are evaluated. What depends on who asks, on other
//! objects or on a registry is not.
//!
//! People see: `admission webhook "validate.kyverno.svc-fail" denied the request: … validation error: label
//! team is required`, `[require-team] you must provide labels: {"team"}`, `ValidatingAdmissionPolicy 'x' with
//! binding 'x' denied request`, and a Deployment with 0 of 1 pods where only pods are refused.
//!
//! ## Bad
//! ```yaml
//! kind: ClusterPolicy
//! spec: {rules: [{match: {any: [{resources: {kinds: [Pod]}}]}, validate: {failureAction: Enforce, pattern: {spec: {containers: [{image: "!*:latest"}]}}}}]}
//! ---
//! kind: Deployment
//! spec: {template: {spec: {containers: [{name: web, image: nginx:latest}]}}}
//! ```
//! ## Good
//! ```yaml
//! spec: {template: {spec: {containers: [{name: web, image: nginx:1.29.1}]}}}
//! ```
//! ## When to suppress
//! Where an exception that the repository does not show lets the object pass.

use tiphys_diag::Severity;
use tiphys_graph::{App, Object, Survey};
use tiphys_policy::{Namespace, Policies, Refusal, Refused};
use tiphys_value::{FieldPath, ObjectExt, ResourceKey, Segment};

use crate::{
    Context, Report, Rule,
    support::{cluster::Cluster, dedup::Once, field_paths, mutations::Mutations, placeholders},
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "C2-policy-refused",
    incident: "C2",
    severity: Severity::Warning,
    title: "a policy refuses an object or its pods",
    page: page!("c2_policy_refused.rs"),
    check,
};

/// An object that an enforced policy refuses, or whose pods it refuses.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PolicyRefusal {
    /// What is refused.
    pub object: ResourceKey,
    /// Whether the object is taken, and the pods that its controller makes are refused.
    pub is_of_pods: bool,
    /// The policy.
    pub policy: ResourceKey,
    /// The rule of the policy, if it has named ones.
    pub rule: String,
    /// What the policy says; empty if nothing.
    pub message: String,
}

/// The objects of a repository that its enforced policies refuse.
pub fn policy_refusals(survey: &Survey) -> Vec<PolicyRefusal> {
    let mut found = Vec::new();
    // Nearly all repositories have no such policy, and need no clusters for that.
    if Policies::from_objects(survey.objects.iter().map(Object::value)).is_empty() {
        return found;
    }
    each_refusal(&Context::new(survey, None), |_, object, refusal| {
        found.push(PolicyRefusal {
            object: object.key.clone(),
            is_of_pods: refusal.refused == Refused::Pods,
            policy: refusal.policy,
            rule: refusal.rule,
            message: refusal.message,
        });
    });
    found
}

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    each_refusal(context, |cluster, object, refusal| add(context, cluster, object, &refusal, &mut once));
    once.report(report);
}

fn each_refusal<'a>(context: &'a Context<'_>, mut take: impl FnMut(&'a Cluster<'a>, &'a Object, Refusal)) {
    let mut mutations = None;
    for cluster in context.clusters() {
        let policies = Policies::from_objects(cluster.objects.iter().map(|it| it.value()));
        if policies.is_empty() {
            continue;
        }
        let mutations = mutations.get_or_insert_with(|| Mutations::from_survey(context.survey));
        for object in &cluster.objects {
            for refusal in policies.refusals(object.value(), namespace(cluster, object)) {
                if !is_open(cluster, object, &refusal, mutations) {
                    take(cluster, object, refusal);
                }
            }
        }
    }
}

/// What is known of the labels of an object's namespace.
fn namespace<'a>(cluster: &Cluster<'a>, object: &Object) -> Namespace<'a> {
    match cluster.core("Namespace", "", &object.key.namespace) {
        Some(namespace) => Namespace::Labels(namespace.value().at(&["metadata", "labels"])),
        None => Namespace::Unknown,
    }
}

/// Whether something fills in what the policy looks at: another policy, a range of limits, or people.
fn is_open(cluster: &Cluster<'_>, object: &Object, refusal: &Refusal, mutations: &Mutations) -> bool {
    let root = FieldPath::default();
    let field = refusal.field.as_ref().unwrap_or(&root);
    let by_limits = || {
        refusal.refused == Refused::Pods
            && field.to_string().contains(".resources")
            && cluster
                .objects
                .iter()
                .any(|it| it.key.kind == "LimitRange" && it.key.namespace == object.key.namespace)
    };
    mutations.complete(object, field)
        || field_paths::nearest(field.clone(), object.value())
            .get(object.value())
            .is_some_and(placeholders::has_placeholder)
        || by_limits()
}

fn add(context: &Context<'_>, cluster: &Cluster<'_>, object: &Object, refusal: &Refusal, once: &mut Once) {
    let Some(policy) = cluster.find(&refusal.policy) else { return };
    let whose = if refusal.refused == Refused::Pods { "the pods of " } else { "" };
    let verb = if refusal.refused == Refused::Pods { "are" } else { "is" };
    let rule = if refusal.rule.is_empty() { String::new() } else { format!(", rule {}", refusal.rule) };
    let place = refusal.field.clone().unwrap_or_default();
    let fault = match place.0.last() {
        Some(Segment::Key(key)) if place.get(object.value()).is_none() => format!("{key} is missing here"),
        _ => "does not fit".to_owned(),
    };
    let consequence = match refusal.refused {
        Refused::Object => {
            "admission refuses what breaks an enforced policy, and the sync fails at this object"
        }
        Refused::Pods => "the sync succeeds, and the workload gets no pods",
    };
    let said = match refusal.message.as_str() {
        "" => String::new(),
        message => format!("; the policy says: {message}"),
    };
    let diagnostic = RULE
        .diagnostic(format!("{whose}{} {verb} refused by {}{rule}", object.title(), policy.title()))
        .at(context.survey.span(object, &place), fault)
        .see(context.survey.span(policy, &refusal.asked), "asked for here, and enforced")
        .because(format!("{consequence}{said}"))
        .help("change the object so that it fits, or except the Application from the policy");
    let app = context.survey.app_of(object).map(App::name).unwrap_or_default();
    once.add_by(
        format!("{app} {} {}", policy.key.name, refusal.rule),
        RULE.finding(context, object, diagnostic).likely(),
    );
}

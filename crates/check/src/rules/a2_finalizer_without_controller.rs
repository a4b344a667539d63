//! # Finalizers that nobody serves
//!
//! Custom resources have a finalizer that their operator takes away when they are deleted. When the operator
//! goes first, or together with them, the deletion never ends: the operation says
//! `waiting for deletion of operator.tigera.io/Installation/default`, and everything behind it waits.
//!
//! Reported are an operator that a change removes while custom resources of its kinds stay or go with it
//! (with `--diff`), and an Application that deletes its operator before, or together with, resources whose
//! operator is known to set a finalizer.
//!
//! ## Bad
//! ```yaml
//! # Application calico: Deployment tigera-operator and Installation default, both wave 0, prune: true
//! ```
//! ## Good
//! The custom resources have a higher wave than their operator: what is applied last is deleted first. To
//! remove an operator, remove the resources in one change, and the operator in the next.
//!
//! ## When to suppress
//! When the resources are deleted by hand before the change is merged.

use std::collections::{BTreeMap, BTreeSet};

use tiphys_diag::Severity;
use tiphys_graph::{App, Object, Owner, Survey, edges::Edges, order::step_of};
use tiphys_model::Cascade;
use tiphys_value::ObjectExt;

use crate::{Context, Report, Rule, rule_helpers};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "A2-finalizer-without-controller",
    incident: "A2",
    severity: Severity::Error,
    title: "an operator is removed before, or with, resources that only it can let go",
    page: page!("a2_finalizer_without_controller.rs"),
    check,
};

/// Groups and kinds whose operators set a finalizer; no kind means all of the group.
const WITH_FINALIZER: [(&str, &str); 14] = [
    ("operator.tigera.io", "Installation"),
    ("ceph.rook.io", ""),
    ("cluster.x-k8s.io", ""),
    ("elbv2.k8s.aws", "TargetGroupBinding"),
    ("karpenter.sh", "NodePool"),
    ("karpenter.k8s.aws", "EC2NodeClass"),
    ("keda.sh", "ScaledObject"),
    ("kubevirt.io", "KubeVirt"),
    ("longhorn.io", ""),
    ("operator.knative.dev", ""),
    ("rabbitmq.com", "RabbitmqCluster"),
    ("redis.redis.opstreelabs.in", ""),
    ("k8s.mariadb.com", ""),
    ("install.istio.io", "IstioOperator"),
];

fn check(context: &Context<'_>, report: &mut Report) {
    for app in &context.survey.apps {
        together(context, report, app);
    }
    if let Some(base) = context.base {
        removed(context, report, base);
    }
}

fn holds(object: &Object) -> bool {
    let key = &object.key;
    let known = WITH_FINALIZER
        .iter()
        .any(|(group, kind)| key.group == *group && (kind.is_empty() || key.kind == *kind));
    known
        || object
            .value()
            .at(&["metadata", "finalizers"])
            .and_then(|list| list.as_array())
            .is_some_and(|list| !list.is_empty())
}

/// The workload of an Application that serves a kind: that of the definitions' Application.
fn operator<'a>(survey: &'a Survey, edges: &Edges<'_>, resource: &Object, app: &App) -> Option<&'a Object> {
    let definitions = edges.index.definitions(resource, &resource.key.group, &resource.key.kind);
    let here = definitions.iter().any(|id| survey.object(*id).owner == Owner::App(app.id));
    if !here {
        return None;
    }
    survey.objects_of(app.id).find(|object| object.key.kind == "Deployment" && object.hooks.is_empty())
}

/// Resources and their operator in one Application, which deletes the operator first or with them.
fn together(context: &Context<'_>, report: &mut Report, app: &App) {
    if app.application.cascade() == Cascade::Orphan {
        return;
    }
    let (survey, edges) = (context.survey, &context.analyses().edges);
    let custom = survey.objects_of(app.id).filter(|object| object.hooks.is_empty() && holds(object));
    for resource in custom {
        let Some(operator) = operator(survey, edges, resource, app) else { continue };
        let (Some(own), Some(others)) = (step_of(resource), step_of(operator)) else { continue };
        if own > others {
            continue;
        }
        let message = format!(
            "{} has a finalizer, and its operator {} is deleted with it or before: `waiting for deletion of {}/{}/{}`",
            resource.title(),
            operator.title(),
            resource.key.group,
            resource.key.kind,
            resource.key.name
        );
        let mut diagnostic = RULE
            .diagnostic(message)
            .at(rule_helpers::wave(context, resource), format!("applied in {own}"))
            .see(rule_helpers::wave(context, operator), format!("its operator, applied in {others}"))
            .because("objects are deleted in the opposite order of the waves; once the operator is gone, nobody removes the finalizer")
            .help(format!("give {} a wave after {}", resource.title(), others.wave));
        diagnostic.severity = Severity::Warning;
        report.add(RULE.finding(context, resource, diagnostic).likely());
        return;
    }
}

/// Operators that a change removes while their resources stay, or go with them.
fn removed(context: &Context<'_>, report: &mut Report, base: &Survey) {
    let before = Edges::from_survey(base);
    let now: BTreeSet<_> = context.survey.objects.iter().map(identity).collect();
    let mut served: BTreeMap<(String, usize, String), &Object> = BTreeMap::new();
    for app in &base.apps {
        let Some(operator) = base.objects_of(app.id).find(|object| object.key.kind == "Deployment") else {
            continue;
        };
        if now.contains(&identity(operator)) || still_runs(context.survey, operator) {
            continue;
        }
        for definition in base.objects_of(app.id).filter(|it| it.key.kind == "CustomResourceDefinition") {
            let group = definition.value().str_at(&["spec", "group"]).unwrap_or_default().to_owned();
            served.insert((group, before.index.scope(operator.id), environment(base, operator)), operator);
        }
    }
    let mut seen = BTreeSet::new();
    for resource in &base.objects {
        let of = (resource.key.group.clone(), before.index.scope(resource.id), environment(base, resource));
        let Some(operator) = served.get(&of).filter(|_| !resource.key.group.is_empty()) else { continue };
        let stays = context.survey.objects.iter().find(|object| identity(object) == identity(resource));
        if (stays.is_some() || holds(resource)) && seen.insert((operator.id, stays.is_some())) {
            report.add(finding(context, base, operator, resource, stays));
        }
    }
}

/// Whether another Application runs the same workload now.
fn still_runs(survey: &Survey, operator: &Object) -> bool {
    survey.objects.iter().any(|object| {
        object.environment.is_some()
            && object.key.kind == operator.key.kind
            && object.key.name == operator.key.name
    })
}

fn environment(survey: &Survey, object: &Object) -> String {
    object.environment.map(|id| survey.environments[id.0].name.clone()).unwrap_or_default()
}

fn identity(object: &Object) -> (&tiphys_value::ResourceKey, &str, bool) {
    (&object.key, object.cluster.as_ref(), object.environment.is_some())
}

fn finding(
    context: &Context<'_>,
    base: &Survey,
    operator: &Object,
    resource: &Object,
    stays: Option<&Object>,
) -> crate::Finding {
    let app = base.app_of(operator).map(App::name).unwrap_or_default();
    let fate = if stays.is_some() { "stays, and nobody serves it any more" } else { "is deleted with it" };
    let message = format!(
        "the change removes {} (Application {app}), and {} {fate}: `waiting for deletion of {}/{}/{}`",
        operator.title(),
        resource.title(),
        resource.key.group,
        resource.key.kind,
        resource.key.name
    );
    let mut diagnostic = RULE
        .diagnostic(message)
        .because("the operator removes the finalizers of its resources; without it, neither they nor their definitions can be deleted")
        .help("remove the resources in one change, and the operator in the next");
    if let Some(object) = stays {
        diagnostic = diagnostic.at(context.survey.start(object), "stays");
    }
    if stays.is_none() {
        diagnostic.severity = Severity::Warning;
    }
    crate::Finding::new(RULE.incident, diagnostic).app(app).object(resource.title())
}

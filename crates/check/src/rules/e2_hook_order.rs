//! # A hook of Helm needs what the release makes only after it
//!
//! Helm runs the hooks of `pre-install` before it makes anything else, and among hooks those of the lower
//! weight first. A Job among them that runs as a ServiceAccount of the same chart, or mounts a Secret or a
//! ConfigMap of it, has no pod: what it needs comes only after it. On a cluster where an earlier version of
//! the chart left that behind nothing is to be seen; the next new cluster does not come up.
//!
//! People see: `error looking up service account shop/migrate: serviceaccount "migrate" not found`,
//! `pre-install hooks failed: timed out waiting for the condition`, a HelmRelease that is installed again and
//! again.
//!
//! This is told of releases of Flux; of Applications `A1-wave-order` tells it.
//!
//! ## Bad
//! ```yaml
//! kind: Job
//! metadata: {name: migrate, annotations: {helm.sh/hook: pre-install}}
//! spec: {template: {spec: {serviceAccountName: migrate}}}
//! ---
//! kind: ServiceAccount
//! metadata: {name: migrate}
//! ```
//! ## Good
//! ```yaml
//! kind: ServiceAccount
//! metadata: {name: migrate, annotations: {helm.sh/hook: pre-install, helm.sh/hook-weight: "-5"}}
//! ```
//! ## When to suppress
//! Where something else makes it before the first release.

use tiphys_diag::Severity;
use tiphys_graph::Object;
use tiphys_model::names;
use tiphys_value::ObjectExt;

use crate::{
    Context, Report, Rule,
    support::{dedup::Once, placeholders, pod_references, pods},
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "E2-hook-order",
    incident: "E2",
    severity: Severity::Warning,
    title: "a hook of Helm needs what the release makes only after it",
    page: page!("e2_hook_order.rs"),
    check,
};

fn check(context: &Context<'_>, report: &mut Report) {
    let survey = context.survey;
    if !survey.is_of_flux {
        return;
    }
    let mut once = Once::default();
    for object in &survey.objects {
        let (Some(weight), Some(pod)) = (hook_weight(object), pods::pod_of(object)) else { continue };
        let Some(app) = survey.app_of(object) else { continue };
        for reference in pod_references::of_pod(&pod) {
            let key = reference.key(&object.key.namespace);
            let is_same = |it: &&Object| it.key == key && it.world() == object.world();
            let makers: Vec<&Object> = survey.with_key(&key).filter(is_same).collect();
            let [maker] = makers.as_slice() else { continue };
            let is_late = hook_weight(maker).is_none_or(|of_maker| of_maker > weight);
            if maker.owner != object.owner || !is_late || placeholders::is_in(reference.name) {
                continue;
            }
            let when = match hook_weight(maker) {
                Some(of_maker) => format!("as a hook of weight {of_maker}, after this one of {weight}"),
                None => "after the hooks of pre-install".to_owned(),
            };
            let diagnostic = RULE
                .diagnostic(format!(
                    "{} needs {}/{}, which release {} makes only {when}",
                    object.title(),
                    reference.kind,
                    reference.name,
                    app.name()
                ))
                .at(survey.span(object, &reference.path), "needed here")
                .see(survey.start(maker), "made later")
                .because("Helm waits for the hooks of pre-install before it makes anything else")
                .help(format!(
                    "make {} a hook of pre-install of a lower weight, or this one a hook of post-install",
                    reference.kind
                ));
            once.add(reference.name, RULE.finding(context, object, diagnostic));
        }
    }
    once.report(report);
}

/// The weight of a hook that runs before a release is installed; `None` of all else.
fn hook_weight(object: &Object) -> Option<i64> {
    let hooks = object.value().annotation(names::HELM_HOOK)?;
    let is_before = hooks.split(',').any(|it| it.trim() == "pre-install");
    let weight = object.value().annotation(names::HELM_HOOK_WEIGHT).unwrap_or_default();
    is_before.then(|| weight.trim().parse().unwrap_or(0))
}

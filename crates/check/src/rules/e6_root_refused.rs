//! # A container is to run as root and must not
//!
//! `runAsNonRoot: true` makes the kubelet refuse a container that would run as user 0. Both settings may stand
//! at the pod or at the container, where the container's count; so one of them is easily overlooked.
//!
//! People see: `CreateContainerConfigError`, `Error: container's runAsUser breaks non-root policy`.
//!
//! ## Bad
//! ```yaml
//! spec:
//!   securityContext: {runAsNonRoot: true}
//!   containers: [{name: web, securityContext: {runAsUser: 0}}]
//! ```
//! ## Good
//! ```yaml
//! spec:
//!   securityContext: {runAsNonRoot: true}
//!   containers: [{name: web, securityContext: {runAsUser: 1000}}]
//! ```
//! ## When to suppress
//! Where a policy engine changes one of the two when the pod is made.

use tiphys_diag::Severity;
use tiphys_value::{FieldPath, ObjectExt, Value};

use crate::{
    Context, Report, Rule,
    support::{
        dedup::Once,
        pods::{Container, Pod},
    },
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "E6-root-refused",
    incident: "E6",
    severity: Severity::Error,
    title: "a container that is to run as root and must not",
    page: page!("e6_root_refused.rs"),
    check,
};

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    for cluster in context.clusters() {
        for pod in &cluster.pods {
            for container in pod.containers() {
                judge(context, pod, &container, &mut once);
            }
        }
    }
    once.report(report);
}

fn judge(context: &Context<'_>, pod: &Pod<'_>, container: &Container<'_>, once: &mut Once) {
    let (Some((user, user_path)), Some((is_forbidden, path))) =
        (setting(pod, container, "runAsUser"), setting(pod, container, "runAsNonRoot"))
    else {
        return;
    };
    if user.as_i64() != Some(0) || is_forbidden.as_bool() != Some(true) {
        return;
    }
    let text = format!(
        "container {} of {} cannot start: container's runAsUser breaks non-root policy",
        container.name(),
        pod.object.title()
    );
    let diagnostic = RULE
        .diagnostic(text)
        .at(context.survey.span(pod.object, &user_path), "user 0 is root")
        .see(context.survey.span(pod.object, &path), "and root is refused here")
        .because("the kubelet starts no container as root where `runAsNonRoot` is true")
        .help("give another user, or set `runAsNonRoot: false` for this container");
    once.add(container.name(), RULE.finding(context, pod.object, diagnostic));
}

/// A setting of a container's security context, or else of its pod's, and where it stands.
fn setting<'a>(pod: &Pod<'a>, container: &Container<'a>, key: &str) -> Option<(&'a Value, FieldPath)> {
    [(container.value, &container.path), (pod.spec(), &pod.spec_path())].into_iter().find_map(
        |(holder, path)| {
            let value = holder.at(&["securityContext", key]).filter(|value| !value.is_null())?;
            Some((value, path.key("securityContext").key(key)))
        },
    )
}

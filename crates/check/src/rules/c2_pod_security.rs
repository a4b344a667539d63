//! # Pods that their namespace does not admit
//!
//! A namespace is labelled with a level of Pod Security, and pods in it ask for more. The workload is applied
//! and looks right; the API server refuses each of its pods.
//!
//! People see: `Error creating: pods "web-…" is forbidden: violates PodSecurity "restricted:latest":
//! allowPrivilegeEscalation != false …`, a Deployment with 0 of 1 pods and no pod to look at.
//!
//! ## Bad
//! ```yaml
//! kind: Namespace
//! metadata: {name: node-agents, labels: {pod-security.kubernetes.io/enforce: baseline}}
//! # and a DaemonSet in it with hostNetwork: true
//! ```
//! ## Good
//! ```yaml
//! metadata: {name: node-agents, labels: {pod-security.kubernetes.io/enforce: privileged}}
//! ```
//! ## When to suppress
//! Where a policy engine adds the missing settings to each pod.

use tiphys_diag::Severity;
use tiphys_graph::Object;
use tiphys_schema::pod_security::Level;
use tiphys_value::ObjectExt;

use crate::{
    Context, Report, Rule,
    support::{dedup::Once, field_paths::keys, pod_security::violations},
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "C2-pod-security",
    incident: "C2",
    severity: Severity::Error,
    title: "pods that the Pod Security level of their namespace does not admit",
    page: page!("c2_pod_security.rs"),
    check,
};

const LABEL: &str = "pod-security.kubernetes.io/enforce";

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    for cluster in context.clusters() {
        let changes_pods = |it: &&&Object| {
            it.key.group == "kyverno.io"
                || it.key.kind.starts_with("Assign")
                || it.key.kind.starts_with("Mutating")
        };
        let is_mutated = cluster.objects.iter().filter(changes_pods).count() > 0;
        for pod in &cluster.pods {
            let Some(namespace) = cluster.core("Namespace", "", &pod.object.key.namespace) else { continue };
            let label = namespace.value().str_at(&["metadata", "labels", LABEL]);
            let Some(level) = label.and_then(Level::from_label) else { continue };
            let found = violations(pod, level);
            let Some((first, path)) = found.first() else { continue };
            let more =
                if found.len() > 1 { format!(", and {} more", found.len() - 1) } else { String::new() };
            let mut diagnostic = RULE
                .diagnostic(format!(
                    "pods of {} are forbidden: violates PodSecurity \"{}:latest\": {first}{more}",
                    pod.object.title(),
                    level.name()
                ))
                .at(context.survey.span(pod.object, path), "not admitted")
                .see(
                    context.survey.span(namespace, &keys(&["metadata", "labels"]).key(LABEL)),
                    format!("the namespace admits {} pods only", level.name()),
                )
                .because("the API server takes the workload and refuses its pods");
            for (text, _) in found.iter().skip(1) {
                diagnostic = diagnostic.help(format!("also: {text}"));
            }
            let mut finding = RULE.finding(context, pod.object, diagnostic);
            if is_mutated {
                finding.diagnostic.severity = Severity::Warning;
                finding = finding.likely();
            }
            once.add(&first.to_string(), finding);
        }
    }
    once.report(report);
}

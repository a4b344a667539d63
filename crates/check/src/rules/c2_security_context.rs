//! # A security context among values has a field of the other one
//!
//! A pod and its containers each have a `securityContext`, and only some fields are in both. `fsGroup` and
//! `sysctls` are of the pod; `capabilities` and `readOnlyRootFilesystem` are of a container. Charts have a
//! value for each, and hand on what it says.
//!
//! The rule goes by the names: `podSecurityContext` is the pod's, `containerSecurityContext` a container's,
//! and `securityContext` the one of them that has no value of its own beside it.
//!
//! People see: `unknown field "spec.template.spec.containers[0].securityContext.fsGroup"`, `field not
//! declared in schema`, or nothing: the field is dropped, and a volume belongs to root.
//!
//! ## Bad
//! ```yaml
//! podSecurityContext: {}
//! securityContext: {runAsUser: 1000, fsGroup: 1000}
//! ```
//! ## Good
//! ```yaml
//! podSecurityContext: {fsGroup: 1000}
//! securityContext: {runAsUser: 1000}
//! ```
//! ## When to suppress
//! Where the chart takes the fields apart.

use tiphys_diag::{Severity, Span};
use tiphys_value::{Map, Value};

use super::unread_chart_values::place_of;
use crate::{
    Context, Finding, Report, Rule,
    support::{
        chart_uses::ChartUse,
        dedup::Once,
        known_values::KnownValues,
        value_steps::{Step, each_map},
    },
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "C2-security-context",
    incident: "C2",
    severity: Severity::Warning,
    title: "a security context among values has a field of the other one",
    page: page!("c2_security_context.rs"),
    check,
};

const POD: &str = "podSecurityContext";
const CONTAINER: &str = "containerSecurityContext";
const EITHER: &str = "securityContext";

/// Fields that only the context of a pod has, and only that of a container (Kubernetes API reference).
const OF_PODS: [&str; 6] = [
    "fsGroup",
    "fsGroupChangePolicy",
    "seLinuxChangePolicy",
    "supplementalGroups",
    "supplementalGroupsPolicy",
    "sysctls",
];
const OF_CONTAINERS: [&str; 5] =
    ["allowPrivilegeEscalation", "capabilities", "privileged", "procMount", "readOnlyRootFilesystem"];

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    for used in context.chart_uses() {
        for (index, values) in used.values.iter().enumerate() {
            each_map(values, &mut Vec::new(), &mut |path, map| {
                for (key, fields) in misplaced(used, path, map) {
                    let steps = [path, &[Step::Key(key), Step::Key(fields[0])]].concat();
                    let place = place_of(context, used, index, &steps);
                    once.add(fields[0], finding(used, (key, &fields), place));
                }
                true
            });
        }
    }
    once.report(report);
}

/// The security contexts in a map with their fields that are of the other kind.
fn misplaced<'v>(
    used: &ChartUse,
    path: &[Step<'v>],
    map: &'v Map<String, Value>,
) -> Vec<(&'static str, Vec<&'v str>)> {
    let mut found = Vec::new();
    for key in [POD, CONTAINER, EITHER] {
        let Some(fields) = map.get(key).and_then(Value::as_object) else { continue };
        let Some(is_of_pod) = is_of_pod(used, path, key) else { continue };
        let foreign: &[&str] = if is_of_pod { &OF_CONTAINERS } else { &OF_PODS };
        let is_said =
            |(name, value): &(&'v String, &'v Value)| foreign.contains(&name.as_str()) && !value.is_null();
        let wrong: Vec<&str> = fields.iter().filter(is_said).map(|(name, _)| name.as_str()).collect();
        found.push((key, wrong));
    }
    found.retain(|(_, wrong)| !wrong.is_empty());
    found
}

/// Whether a value of a name is the context of the pod; `None` if that is not known.
fn is_of_pod(used: &ChartUse, path: &[Step<'_>], key: &str) -> Option<bool> {
    // Of these two alone charts are sure to mean what they say.
    let known = KnownValues::of_use(used)?;
    let has = |name: &str| known.has_below(path, name);
    match key {
        POD if has(POD) => Some(true),
        CONTAINER if has(CONTAINER) => Some(false),
        EITHER if has(EITHER) && has(POD) && !has(CONTAINER) => Some(false),
        EITHER if has(EITHER) && has(CONTAINER) && !has(POD) => Some(true),
        _ => None,
    }
}

fn finding(used: &ChartUse, (key, fields): (&str, &[&str]), place: Option<Span>) -> Finding {
    let is_of_pods = OF_PODS.contains(&fields[0]);
    let (own, other) = if is_of_pods { ("a pod", "a container") } else { ("a container", "a pod") };
    let all = fields.join(", ");
    let diagnostic = RULE
        .diagnostic(format!(
            "{} gives chart {} {all} in {key}, which is that of {other}",
            used.by, used.chart
        ))
        .at(place.unwrap_or_else(|| used.span.clone()), "no such field there")
        .because(format!("unknown field: only {own} has {all}"))
        .help(format!("put it into the value for the security context of {own}"));
    Finding::new(RULE.incident, diagnostic).likely()
}

//! # A health check that is no program
//!
//! The health of custom resources may be judged by a script in Lua, in `argocd-cm`, in values of the chart,
//! or in the operator's `ArgoCD` resource. Nothing compiles it before it is used. One that does not compile
//! leaves its kind without health: the operation that waits for such an object waits for what can never be
//! Healthy.
//!
//! People see: `<string> line:6(column:62) near 'then': unterminated string`, health `Unknown`, and
//! operations that stay `Running`.
//!
//! ## Bad
//! ```yaml
//! resource.customizations.health.shop.example.com_Cart: |
//!   if obj.status.phase == "Ready then
//!     return {status = "Healthy"}
//!   end
//! ```
//! ## Good
//! ```yaml
//! resource.customizations.health.shop.example.com_Cart: |
//!   if obj.status ~= nil and obj.status.phase == "Ready" then
//!     return {status = "Healthy"}
//!   end
//!   return {status = "Progressing"}
//! ```
//! ## When to suppress
//! Where another tool completes the script.

use tiphys_diag::{Severity, Span};
use tiphys_value::ObjectExt;

use crate::{
    Context, Finding, Report, Rule,
    support::{
        dedup::Once,
        field_paths::keys,
        pods::{list, text},
    },
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "A1-health-script",
    incident: "A1",
    severity: Severity::Error,
    title: "a health check in Lua that does not compile",
    page: page!("a1_health_script.rs"),
    check,
};

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    for setting in &context.analyses().settings.all {
        let read = setting.read();
        for (pattern, entry) in read.customizations.iter() {
            if let Some(why) = fault(&entry.health_lua) {
                let span = setting.span(&context.survey.files, &entry.health_key, pattern);
                once.add(pattern, finding(pattern, &why, span));
            }
        }
    }
    let operators = context.survey.objects.iter();
    for object in operators.filter(|it| it.key.group == "argoproj.io" && it.key.kind == "ArgoCD") {
        let spec = object.value().at(&["spec"]).cloned().unwrap_or_default();
        for (at, entry) in list(&spec, "resourceHealthChecks").iter().enumerate() {
            let kind = format!("{}/{}", text(entry, "group"), text(entry, "kind"));
            if let Some(why) = fault(text(entry, "check")) {
                let path = keys(&["spec", "resourceHealthChecks"]).index(at).key("check");
                once.add(&kind, finding(&kind, &why, context.survey.span(object, &path)));
            }
        }
    }
    once.report(report);
}

/// Why a script does not compile. What templates put in is not known.
fn fault(script: &str) -> Option<String> {
    let is_template = script.contains("{{") || script.contains("${");
    if is_template || script.trim().is_empty() {
        return None;
    }
    tiphys_health::check_script(script).err().map(|error| error.to_string())
}

fn finding(kind: &str, why: &str, span: Span) -> Finding {
    let why = why.lines().next().unwrap_or_default();
    let diagnostic = RULE
        .diagnostic(format!("the health check of {kind} does not compile: {why}"))
        .at(span, "this script")
        .because("its kind has no health, so that an operation that waits for such an object waits for ever");
    Finding::new(RULE.incident, diagnostic)
}

//! # A rule of RBAC that fits nothing
//!
//! A Role lists API groups without their version, and resources by their plural in small letters. The API server takes any
//! text; a rule that is written otherwise grants nothing, and says nothing.
//!
//! People see: `deployments.apps is forbidden: User "system:serviceaccount:shop:web" cannot list resource "deployments" in
//! API group "apps"`.
//!
//! ## Bad
//! ```yaml
//! rules: [{apiGroups: [apps/v1], resources: [Deployment], verbs: [list]}]
//! ```
//! ## Good
//! ```yaml
//! rules: [{apiGroups: [apps], resources: [deployments], verbs: [list]}]
//! ```
//! ## When to suppress
//! Never: such a rule can go.

use tiphys_diag::Severity;
use tiphys_graph::Object;
use tiphys_value::Value;

use crate::{
    Context, Report, Rule,
    support::{fields::keys, once::Once, placeholders, pods::list},
};

/// See the module.
pub const RULE: Rule = Rule {
    id: "C2-rbac-no-effect",
    incident: "C2",
    severity: Severity::Warning,
    title: "a rule of RBAC that fits nothing",
    source: include_str!("c2_rbac_no_effect.rs"),
    check,
};

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    for object in &context.survey.objects {
        let is_role = object.key.group == "rbac.authorization.k8s.io" && object.key.kind.ends_with("Role");
        if !is_role {
            continue;
        }
        for (at, rule) in list(object.value(), "rules").iter().enumerate() {
            look(context, object, rule, at, &mut once);
        }
    }
    once.report(report);
}

fn look(context: &Context<'_>, object: &Object, rule: &Value, at: usize, once: &mut Once) {
    for (field, is_wrong, help) in [
        ("apiGroups", is_versioned as fn(&str) -> bool, "name the group alone, without its version"),
        ("resources", is_kind, "name the resource: the plural, in small letters"),
    ] {
        let texts: Vec<&str> = list(rule, field).iter().filter_map(Value::as_str).collect();
        // Beside a text that is right, another one does no harm.
        let Some(index) = texts.iter().position(|text| is_wrong(text)) else { continue };
        if !texts.iter().all(|text| is_wrong(text)) {
            continue;
        }
        let diagnostic = RULE
            .diagnostic(format!(
                "a rule of {} is for {field} {}, and there is none of this name",
                object.title(),
                texts[index]
            ))
            .at(
                context.survey.span(object, &keys(&["rules"]).index(at).key(field).index(index)),
                "fits nothing",
            )
            .because("the API server compares letter by letter: the rule grants nothing")
            .help(help);
        once.add(field, RULE.finding(context, object, diagnostic));
    }
}

/// `apps/v1`
fn is_versioned(group: &str) -> bool {
    group.split_once('/').is_some_and(|(_, version)| version.starts_with('v')) && !placeholders::is_in(group)
}

/// `Deployment`
fn is_kind(resource: &str) -> bool {
    resource.starts_with(|c: char| c.is_ascii_uppercase())
        && !resource.contains('/')
        && !placeholders::is_in(resource)
}

//! # A rule of RBAC that fits nothing
//!
//! A Role lists API groups without their version, and resources by their plural in small letters, each in the
//! group that has it: Pods and Services are in the group `""`, Deployments in `apps`, Ingresses in
//! `networking.k8s.io`. The API server takes any text; a rule that is written otherwise grants nothing, and
//! says nothing.
//!
//! People see: `deployments.apps is forbidden: User "system:serviceaccount:shop:web" cannot list resource
//! "deployments" in API group "apps"`.
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

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::LazyLock,
};

use tiphys_diag::Severity;
use tiphys_graph::Object;
use tiphys_schema::Catalog;
use tiphys_value::Value;

use crate::{
    Context, Report, Rule,
    support::{dedup::Once, field_paths::keys, placeholders, pods::list},
};

/// The groups of Kubernetes itself that have a resource, by its plural.
static GROUPS: LazyLock<BTreeMap<&str, BTreeSet<&str>>> = LazyLock::new(|| {
    let mut groups: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for kind in Catalog::latest().kinds() {
        groups.entry(&kind.plural).or_default().insert(&kind.gvk.group);
    }
    groups
});

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "C2-rbac-no-effect",
    incident: "C2",
    severity: Severity::Warning,
    title: "a rule of RBAC that fits nothing",
    page: page!("c2_rbac_no_effect.rs"),
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
            check_rule(context, object, rule, at, &mut once);
            look_for_groups(context, object, rule, at, &mut once);
        }
    }
    once.report(report);
}

fn check_rule(context: &Context<'_>, object: &Object, rule: &Value, at: usize, once: &mut Once) {
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

/// Resources that a rule looks for in groups of Kubernetes that do not have them, and that no other rule of
/// the role grants.
fn look_for_groups(context: &Context<'_>, object: &Object, rule: &Value, at: usize, once: &mut Once) {
    let groups: Vec<&str> = list(rule, "apiGroups").iter().filter_map(Value::as_str).collect();
    // Groups of others may have resources of these names: `metrics.k8s.io` has pods. `extensions` had many,
    // once.
    let is_known = |group: &&str| GROUPS.values().any(|own| own.contains(*group));
    if groups.is_empty() || !groups.iter().all(is_known) {
        return;
    }
    for (index, text) in list(rule, "resources").iter().enumerate() {
        let Some(resource) = text.as_str().map(without_subresource) else { continue };
        let Some(own) = GROUPS.get(resource) else { continue };
        if groups.iter().any(|group| own.contains(group)) || is_granted(object, resource, own) {
            continue;
        }
        let named = |group: &str| if group.is_empty() { "\"\"".to_owned() } else { group.to_owned() };
        let asked: Vec<String> = groups.iter().map(|group| named(group)).collect();
        let right: Vec<String> = own.iter().map(|group| named(group)).collect();
        let what = format!(
            "a rule of {} is for {resource} of API group {}, which has none",
            object.title(),
            asked.join(", ")
        );
        let diagnostic = RULE
            .diagnostic(what.clone())
            .at(
                context.survey.span(object, &keys(&["rules"]).index(at).key("resources").index(index)),
                format!("they are of group {}", right.join(", ")),
            )
            .because("the API server compares group and resource letter by letter: the rule grants nothing of them")
            .help(format!("name the group {}", right.join(" or ")));
        once.add(&what, RULE.finding(context, object, diagnostic));
    }
}

/// Whether a rule of a role is for a resource in one of the groups that have it.
fn is_granted(object: &Object, resource: &str, own: &BTreeSet<&str>) -> bool {
    list(object.value(), "rules").iter().any(|rule| {
        let names = |field: &str, is_right: &dyn Fn(&str) -> bool| {
            list(rule, field).iter().filter_map(Value::as_str).any(|text| text == "*" || is_right(text))
        };
        names("resources", &|text| without_subresource(text) == resource)
            && names("apiGroups", &|text| own.contains(text))
    })
}

/// `pods` of `pods/log`.
fn without_subresource(resource: &str) -> &str {
    resource.split('/').next().unwrap_or(resource)
}

/// `apps/v1`, or a version in the place of a group: `v1`
fn is_versioned(group: &str) -> bool {
    let is_version = |text: &str| {
        text.strip_prefix('v').is_some_and(|number| number.starts_with(|c: char| c.is_ascii_digit()))
    };
    let is_wrong = match group.split_once('/') {
        Some((_, version)) => version.starts_with('v'),
        None => is_version(group) && !group.contains('.'),
    };
    is_wrong && !placeholders::is_in(group)
}

/// `Deployment`
fn is_kind(resource: &str) -> bool {
    resource.starts_with(|c: char| c.is_ascii_uppercase())
        && !resource.contains('/')
        && !placeholders::is_in(resource)
}

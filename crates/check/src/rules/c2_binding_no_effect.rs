//! # A binding of RBAC that binds nothing
//!
//! A RoleBinding or ClusterRoleBinding may name a role or a service account that does not exist: the API
//! server takes it, and it grants nothing. So it is where a role was renamed and its binding was not, and
//! where a service account lives in another namespace than its binding says, as after a kustomization has
//! moved the one and not the other.
//!
//! People see: `pods is forbidden: User "system:serviceaccount:shop:web" cannot list resource "pods" in API
//! group ""`, and `RBAC: role.rbac.authorization.k8s.io "reader" not found`.
//!
//! ## Bad
//! ```yaml
//! roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}             # the Role is called readers
//! subjects: [{kind: ServiceAccount, name: web, namespace: default}]                    # it lives in shop
//! ```
//! ## Good
//! ```yaml
//! roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: readers}
//! subjects: [{kind: ServiceAccount, name: web, namespace: shop}]
//! ```
//! ## When to suppress
//! Where the role or the account is made outside of the repository, beside another one that is much like it.

use tiphys_diag::{Diagnostic, Severity, similar_names};
use tiphys_graph::Object;
use tiphys_value::{ObjectExt, ResourceKey, Value};

use crate::{
    Context, Report, Rule,
    support::{
        dedup::Once,
        field_paths::keys,
        placeholders,
        pods::{self, list, text},
        unrendered_files,
    },
};

const GROUP: &str = "rbac.authorization.k8s.io";

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "C2-binding-no-effect",
    incident: "C2",
    severity: Severity::Warning,
    title: "a binding of RBAC that binds nothing",
    page: page!("c2_binding_no_effect.rs"),
    check,
};

fn check(context: &Context<'_>, report: &mut Report) {
    let survey = context.survey;
    let mut once = Once::default();
    for object in survey.objects.iter().filter(|it| it.key.group == GROUP) {
        let is_binding = object.key.kind.ends_with("RoleBinding");
        if is_binding
            && !unrendered_files::may_be_a_patch(survey, object)
            && !placeholders::has_placeholder(object.value())
        {
            role(context, object, &mut once);
            // A chart that is meant for one namespace is rendered into another one here.
            if !unrendered_files::is_from_unused_chart(survey, object) {
                accounts(context, object, &mut once);
            }
        }
    }
    once.report(report);
}

/// A role that nothing makes, where what renders the binding makes one that nobody binds, and that is called
/// nearly so.
fn role(context: &Context<'_>, binding: &Object, once: &mut Once) {
    let survey = context.survey;
    let Some(named) = binding.value().get("roleRef") else { return };
    let (kind, name) = (text(named, "kind"), text(named, "name"));
    let namespace = if kind == "Role" { binding.key.namespace.as_str() } else { "" };
    let is_there = |it: &Object| it.key.kind == kind && it.key.name == name;
    // These come with the cluster.
    let is_built_in = kind == "ClusterRole"
        && (name.starts_with("system:") || matches!(name, "admin" | "cluster-admin" | "edit" | "view"));
    if !matches!(kind, "Role" | "ClusterRole")
        || is_built_in
        || survey.objects.iter().any(|it| it.key.group == GROUP && is_there(it))
    {
        return;
    }
    let others = survey.objects.iter().filter(|it| it.owner == binding.owner && it.key.group == GROUP);
    let bindings = survey.objects.iter().filter(|it| it.key.group == GROUP);
    let bound: Vec<&str> = bindings.filter_map(|it| it.value().str_at(&["roleRef", "name"])).collect();
    let unbound = others.filter(|it| {
        it.key.kind == kind && it.key.namespace == namespace && !bound.contains(&it.key.name.as_str())
    });
    let names = unbound.clone().map(|it| it.key.name.as_str());
    let is_of_kind = |it: &&Object| it.owner == binding.owner && it.key.group == GROUP && it.key.kind == kind;
    let mut all = survey.objects.iter().filter(is_of_kind);
    // The only role beside the binding, which nobody else binds, is the one that is meant, whatever it is
    // called.
    let only =
        all.next().filter(|it| all.next().is_none() && !is_aggregated(it) && has_part(&it.key.name, name));
    let only = only.map(|it| it.key.name.as_str());
    let Some(nearest) = similar_names::nearest_slip(name, names.clone())
        .or_else(|| only.filter(|only| names.clone().any(|it| it == *only)))
    else {
        return;
    };
    let Some(meant) = unbound.clone().find(|it| it.key.name == nearest) else { return };
    let what = format!("{} binds {kind}/{name}, which nothing makes", binding.title());
    let diagnostic = RULE
        .diagnostic(what.clone())
        .at(survey.span(binding, &keys(&["roleRef", "name"])), "named here")
        .see(survey.start(meant), "nobody binds this one")
        .because("a binding of a role that does not exist grants nothing");
    once.add(&what, RULE.finding(context, binding, diagnostic).likely().perhaps(name, Some(nearest)));
}

/// Whether a role is added to others by its labels.
fn is_aggregated(role: &Object) -> bool {
    let labels = role.value().at(&["metadata", "labels"]).and_then(Value::as_object);
    labels.is_some_and(|labels| {
        labels.keys().any(|it| it.starts_with("rbac.authorization.k8s.io/aggregate-to-"))
    })
}

/// Whether one name is the other one with a word more.
fn has_part(one: &str, other: &str) -> bool {
    let (short, long) = if one.len() < other.len() { (one, other) } else { (other, one) };
    long.strip_suffix(short).is_some_and(|rest| rest.ends_with('-'))
        || long.strip_prefix(short).is_some_and(|rest| rest.starts_with('-'))
}

/// Service accounts that nothing makes where the binding looks for them, and that pods have in another
/// namespace.
fn accounts(context: &Context<'_>, binding: &Object, once: &mut Once) {
    let survey = context.survey;
    for (at, subject) in list(binding.value(), "subjects").iter().enumerate() {
        let (name, namespace) = (text(subject, "name"), text(subject, "namespace"));
        if text(subject, "kind") != "ServiceAccount" || namespace.is_empty() || name == "default" {
            continue;
        }
        let Some(own) = account_elsewhere(context, binding, name, namespace) else { continue };
        let what =
            format!("{} is for ServiceAccount/{name} in {namespace}, which nothing makes", binding.title());
        let path = keys(&["subjects"]).index(at).key("namespace");
        let diagnostic: Diagnostic = RULE
            .diagnostic(what.clone())
            .at(survey.span(binding, &path), "looked for here")
            .see(survey.start(own), format!("there is {}, which pods run as", own.title()))
            .because("the pods run as another account than the one that is given the rights")
            .help(format!("say `namespace: {}`", own.key.namespace));
        let finding = RULE.finding(context, binding, diagnostic).likely();
        once.add(&what, finding.with_spelling(namespace, &own.key.namespace));
    }
}

/// The service account of the name that what renders the binding makes in another namespace, for pods of its
/// own, and to which no other binding gives anything; `None` if there may be one where the binding looks.
fn account_elsewhere<'a>(
    context: &'a Context<'_>,
    binding: &Object,
    name: &str,
    namespace: &str,
) -> Option<&'a Object> {
    let survey = context.survey;
    let is_named = |it: &&Object| it.key.kind == "ServiceAccount" && it.key.name == name;
    let all = || survey.objects.iter().filter(|it| it.world() == binding.world());
    if all().filter(is_named).any(|it| it.key.namespace == namespace || it.key.namespace.is_empty())
        || all()
            .filter_map(pods::pod_of)
            .any(|pod| pod.object.key.namespace == namespace && pod.service_account() == name)
    {
        return None;
    }
    let mut own = all().filter(is_named).filter(|it| it.owner == binding.owner);
    let account = own.next().filter(|_| own.next().is_none())?;
    let here = &account.key.namespace;
    let mut pods = all().filter(|it| it.owner == binding.owner).filter_map(pods::pod_of);
    let is_used = pods.any(|pod| pod.service_account() == name && pod.object.key.namespace == *here);
    let is_bound = all()
        .filter(|it| it.key.group == GROUP)
        .any(|it| list(it.value(), "subjects").iter().any(|subject| is_subject(subject, name, here)));
    (is_used && !is_bound).then_some(account)
}

fn is_subject(subject: &Value, name: &str, namespace: &str) -> bool {
    let key = ResourceKey::new("", text(subject, "kind"), text(subject, "namespace"), text(subject, "name"));
    key == ResourceKey::new("", "ServiceAccount", namespace, name)
}

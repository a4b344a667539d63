//! # A service account whose identity in the cloud does not reach its pods
//!
//! A service account stands for an identity of a cloud by an annotation; the cloud, for its part, trusts one
//! service account by namespace and name. On Azure a pod gets a token only if it has the label
//! `azure.workload.identity/use`. Where Terraform trusts a service account of another namespace than the one
//! that has the annotation, every call is refused.
//!
//! People see: `AccessDenied: Not authorized to perform sts:AssumeRoleWithWebIdentity`, `AADSTS700213`,
//! `DefaultAzureCredential failed to retrieve a token`, `Permission 'iam.serviceAccounts.getAccessToken'
//! denied`.
//!
//! ## Bad
//! ```yaml
//! # Terraform: "system:serviceaccount:shop:web"
//! kind: ServiceAccount
//! metadata: {name: web, namespace: store, annotations: {eks.amazonaws.com/role-arn: …}}
//! ```
//! ## Good
//! ```yaml
//! metadata: {name: web, namespace: shop, annotations: {eks.amazonaws.com/role-arn: …}}
//! ```
//! ## When to suppress
//! Where the identity trusts the account by what the repository does not show.

use std::{collections::BTreeSet, sync::LazyLock};

use regex::Regex;
use tiphys_diag::{Severity, Span, similar_names};
use tiphys_graph::{Object, tools::Lines};
use tiphys_value::ObjectExt;

use crate::{
    Context, Report, Rule,
    support::{cluster::Cluster, dedup::Once, field_paths::keys, placeholders},
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "E2-cloud-identity",
    incident: "E2",
    severity: Severity::Warning,
    title: "a service account whose identity in the cloud does not reach its pods",
    page: page!("e2_cloud_identity.rs"),
    check,
};

const AZURE: &str = "azure.workload.identity/client-id";
const USES_AZURE: &str = "azure.workload.identity/use";
/// The annotations by which a cloud that trusts a service account by its name is told the identity.
const TRUSTED: [&str; 2] = ["eks.amazonaws.com/role-arn", "iam.gke.io/gcp-service-account"];

/// The service accounts that a much used module of Terraform is told of: `namespace:name` in a list.
static LISTED: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"namespace_service_accounts\s*=\s*\[([^\]]*)\]").ok());
/// One of them.
static LISTED_ITEM: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new("\"([a-z0-9-]+):([a-z0-9.-]+)\"").ok());

/// A service account that is trusted: `system:serviceaccount:shop:web`, `project.svc.id.goog[shop/web]`.
static SUBJECTS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?:system:serviceaccount:([a-z0-9-]+):([a-z0-9.-]+)|svc\.id\.goog\[([a-z0-9-]+)/([a-z0-9.-]+)\])",
    )
    .ok()
});

/// A service account that an identity of the cloud trusts.
struct Subject {
    namespace: String,
    name: String,
    span: Span,
}

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    let subjects = subjects(context);
    for cluster in context.clusters() {
        for account in
            cluster.objects.iter().filter(|it| it.key.kind == "ServiceAccount" && it.key.group.is_empty())
        {
            unlabelled(context, cluster, account, &mut once);
            if TRUSTED.iter().any(|key| account.value().annotation(key).is_some_and(|it| !it.is_empty())) {
                untrusted(context, account, &subjects, &mut once);
            }
        }
    }
    once.report(report);
}

/// Pods of a service account with an identity of Azure that do not ask for its token.
fn unlabelled(context: &Context<'_>, cluster: &Cluster<'_>, account: &Object, once: &mut Once) {
    let asks = |value: Option<&str>| value == Some("true");
    if account.value().annotation(AZURE).is_none_or(str::is_empty) || asks(account.value().label(USES_AZURE))
    {
        return;
    }
    for pod in &cluster.pods {
        let is_of_it =
            pod.object.key.namespace == account.key.namespace && pod.service_account() == account.key.name;
        if !is_of_it || asks(pod.label(USES_AZURE)) {
            continue;
        }
        let what =
            format!("{} runs as {} and has not the label {USES_AZURE}", pod.object.title(), account.title());
        let diagnostic = RULE
            .diagnostic(what.clone())
            .at(
                context.survey.span(pod.object, &pod.path.key("metadata").key("labels")),
                "the label of the pods is missing",
            )
            .see(context.survey.span(account, &keys(&["metadata", "annotations", AZURE])), "its identity")
            .because("the webhook of workload identity gives a token only to pods with the label")
            .help(format!("add `{USES_AZURE}: \"true\"` to the labels of the pods"));
        once.add(&what, RULE.finding(context, pod.object, diagnostic).likely());
    }
}

/// The service accounts that Terraform names in full.
fn subjects(context: &Context<'_>) -> Vec<Subject> {
    let files = &context.survey.files;
    let mut found = Vec::new();
    let Some(pattern) = SUBJECTS.as_ref() else { return found };
    for path in files.ending(&[".tf", ".tfvars", ".hcl"]) {
        let Some(text) = files.text(path) else { continue };
        for subject in pattern.captures_iter(&text) {
            let part = |one: usize, other: usize| {
                subject.get(one).or_else(|| subject.get(other)).map_or("", |it| it.as_str()).to_owned()
            };
            let range = subject.get(0).map_or(0..0, |it| it.range());
            found.push(Subject {
                namespace: part(1, 3),
                name: part(2, 4),
                span: Lines::new(path, &text).span(range),
            });
        }
        let (Some(lists), Some(items)) = (LISTED.as_ref(), LISTED_ITEM.as_ref()) else { continue };
        for listed in lists.captures_iter(&text).filter_map(|it| it.get(1)) {
            for item in items.captures_iter(listed.as_str()) {
                let range =
                    item.get(0).map_or(0..0, |it| listed.start() + it.start()..listed.start() + it.end());
                found.push(Subject {
                    namespace: item[1].to_owned(),
                    name: item[2].to_owned(),
                    span: Lines::new(path, &text).span(range),
                });
            }
        }
    }
    found
}

/// An account that no identity trusts, beside one that is trusted and that nothing makes: of the same name in
/// another namespace, or of nearly the same name.
fn untrusted(context: &Context<'_>, account: &Object, subjects: &[Subject], once: &mut Once) {
    let key = &account.key;
    let is_it = |it: &Subject| it.namespace == key.namespace && it.name == key.name;
    if subjects.is_empty() || subjects.iter().any(is_it) || placeholders::is_in(&key.namespace) {
        return;
    }
    let known: BTreeSet<(&str, &str)> = context
        .survey
        .objects
        .iter()
        .filter(|it| it.key.kind == "ServiceAccount")
        .map(|it| (it.key.namespace.as_str(), it.key.name.as_str()))
        .collect();
    let is_free = |it: &&Subject| !known.contains(&(it.namespace.as_str(), it.name.as_str()));
    let is_near = |it: &&Subject| {
        let is_slip = || similar_names::nearest_slip(&key.name, [it.name.as_str()].into_iter()).is_some();
        it.name == key.name || it.namespace == key.namespace && is_slip()
    };
    let Some(meant) = subjects.iter().filter(is_free).find(is_near) else { return };
    let annotation =
        TRUSTED.into_iter().find(|key| account.value().annotation(key).is_some()).unwrap_or(TRUSTED[0]);
    let diagnostic = RULE
        .diagnostic(format!("no identity of the cloud trusts {}", account.title()))
        .at(context.survey.span(account, &keys(&["metadata", "annotations", annotation])), "stands for this identity")
        .see(meant.span.clone(), format!("this trusts {} in {}, which nothing makes", meant.name, meant.namespace))
        .because("the cloud compares namespace and name of the account with what it trusts, and refuses every other")
        .help("write the same namespace and name in both places");
    once.add(&key.name, RULE.finding(context, account, diagnostic).likely());
}

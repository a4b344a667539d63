//! # An issuer of the whole cluster has its Secret in another namespace
//!
//! A ClusterIssuer lives in no namespace. cert-manager looks for the Secrets that it names in its cluster
//! resource namespace, which is the one that cert-manager itself runs in, unless it is told another. A Secret
//! beside the certificates is not found.
//!
//! People see: `error getting cloudflare secret: secrets "cloudflare" not found`, `Error getting keypair for
//! CA issuer: secret "root-ca" not found`, `Referenced issuer does not have a Ready status condition`,
//! certificates that stay `False`.
//!
//! ## Bad
//! ```yaml
//! kind: ClusterIssuer
//! spec: {ca: {secretName: root-ca}}
//! ---
//! kind: Certificate
//! metadata: {name: root-ca, namespace: shop}          # cert-manager runs in cert-manager
//! spec: {secretName: root-ca, isCA: true}
//! ```
//! ## Good
//! ```yaml
//! metadata: {name: root-ca, namespace: cert-manager}
//! ```
//! ## When to suppress
//! Where something copies the Secret, or cert-manager is told another namespace by a flag that is not seen.

use std::collections::BTreeSet;

use tiphys_diag::Severity;
use tiphys_graph::{Object, tools::Component};
use tiphys_value::{FieldPath, Value};

use crate::{
    Context, Report, Rule,
    support::{dedup::Once, field_paths::keys, placeholders, pods, sync_options},
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "E2-issuer-secret",
    incident: "E2",
    severity: Severity::Warning,
    title: "an issuer of the whole cluster has its Secret in another namespace",
    page: page!("e2_issuer_secret.rs"),
    check,
};

fn check(context: &Context<'_>, report: &mut Report) {
    let survey = context.survey;
    let is_issuer = |it: &&Object| it.key.kind == "ClusterIssuer" && it.key.group == "cert-manager.io";
    let issuers: Vec<&Object> = survey.objects.iter().filter(is_issuer).collect();
    if issuers.is_empty() || is_told_another(context) {
        return;
    }
    let [home] = &homes(context).into_iter().collect::<Vec<_>>()[..] else { return };
    let mut once = Once::default();
    for issuer in issuers {
        let mut found = Vec::new();
        walk(&issuer.value()["spec"], &keys(&["spec"]), 0, &mut found);
        for (path, name) in found {
            check_secret(context, issuer, home, name, &path, &mut once);
        }
    }
    once.report(report);
}

/// Whether a flag or a value names another namespace, or something copies Secrets between namespaces.
fn is_told_another(context: &Context<'_>) -> bool {
    const MARKS: [&str; 6] = [
        "cluster-resource-namespace",
        "clusterResourceNamespace",
        "emberstack",
        "replicator.v1.mittwald.de",
        "kubernetes-replicator",
        "kubed",
    ];
    // A policy of Kyverno's that makes Secrets from others.
    let copies = |it: &Object| {
        it.key.group.ends_with("kyverno.io") && {
            let text = it.value().to_string();
            text.contains("\"generate\"") && text.contains("\"Secret\"")
        }
    };
    MARKS.iter().any(|mark| sync_options::mentions(context.survey, mark))
        || context.survey.objects.iter().any(copies)
}

/// The namespaces that cert-manager is installed into.
fn homes(context: &Context<'_>) -> BTreeSet<String> {
    let survey = context.survey;
    let is_own = |component: Option<&Component>| component.is_some_and(|it| it.name == "cert-manager");
    let of_charts = survey.apps.iter().filter(|app| {
        app.application.spec.effective_sources().iter().any(|it| is_own(Component::of_chart(&it.chart)))
    });
    let mut found: BTreeSet<String> =
        of_charts.map(|app| app.application.spec.destination.namespace.clone()).collect();
    let of_pods = survey
        .objects
        .iter()
        .filter_map(pods::pod_of)
        .filter(|pod| pod.containers().any(|container| is_own(Component::of_image(container.image()))));
    found.extend(of_pods.map(|pod| pod.object.key.namespace.clone()));
    found.retain(|namespace| !namespace.is_empty() && !placeholders::is_in(namespace));
    found
}

/// The Secrets that an issuer reads: `…SecretRef: {name: …}` and `secretName`; not the one that it keeps its
/// own key in.
fn walk<'a>(value: &'a Value, path: &FieldPath, depth: usize, found: &mut Vec<(FieldPath, &'a str)>) {
    const MAX_DEPTH: usize = 24;
    if depth > MAX_DEPTH {
        return;
    }
    for (at, item) in value.as_array().into_iter().flatten().enumerate() {
        walk(item, &path.index(at), depth + 1, found);
    }
    for (key, below) in value.as_object().into_iter().flatten() {
        if key == "privateKeySecretRef" {
            continue;
        }
        if key.to_lowercase().ends_with("secretref") {
            // Solvers of others may read one of another namespace, and are told which.
            let is_told = below.get("namespace").is_some();
            let name = below["name"].as_str().filter(|_| !is_told);
            found.extend(name.map(|name| (path.key(key).key("name"), name)));
        } else if key == "secretName" {
            found.extend(below.as_str().map(|name| (path.key(key), name)));
        } else {
            walk(below, &path.key(key), depth + 1, found);
        }
    }
}

fn check_secret(
    context: &Context<'_>,
    issuer: &Object,
    home: &str,
    name: &str,
    path: &FieldPath,
    once: &mut Once,
) {
    let survey = context.survey;
    let made = survey.objects.iter().filter(|it| it.key.kind == "Secret" && it.key.group.is_empty());
    let own = made.filter(|it| it.key.name == name).map(|it| (it, it.key.namespace.as_str()));
    let products = context.analyses().edges.all_products();
    let by_others = products
        .filter(|it| it.key.kind == "Secret" && it.key.name == name)
        .map(|it| (survey.object(it.from), it.key.namespace.as_str()));
    let makers: Vec<(&Object, &str)> = own.chain(by_others).collect();
    // One whose namespace is not known may be the right one, and so may one for a cluster of its own.
    let is_elsewhere = |(maker, namespace): &&(&Object, &str)| {
        !namespace.is_empty() && *namespace != home && maker.lives_with(issuer)
    };
    let Some((maker, namespace)) = makers.first().filter(|_| makers.iter().all(|it| is_elsewhere(&it)))
    else {
        return;
    };
    if placeholders::is_in(name) {
        return;
    }
    let what = format!("{} looks for Secret/{name} in {home}, and it is in {namespace}", issuer.title());
    let diagnostic = RULE
        .diagnostic(what.clone())
        .at(survey.span(issuer, path), "named here")
        .see(survey.start(maker), format!("this makes it in {namespace}"))
        .because("what an issuer of the whole cluster names is looked for where cert-manager runs")
        .help(format!("put it into {home}, or use an Issuer in {namespace}"));
    once.add(&what, RULE.finding(context, issuer, diagnostic).likely());
}

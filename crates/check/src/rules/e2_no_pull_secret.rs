//! # A private image, and no credentials to pull it
//!
//! A registry that asks for credentials gets them from `imagePullSecrets` of the pod or of its
//! ServiceAccount; the Secret has to be in the pod's own namespace. A workload that pulls from where others
//! need a Secret, but has none, does not start; nor does one whose Secret is only in another namespace.
//! Images of a GitHub owner in its registry are private until somebody makes them public.
//!
//! People see: `Failed to pull image "ghcr.io/shop/web:v1": … 401 Unauthorized`, `ImagePullBackOff`. (`403
//! Forbidden` means that there are credentials, but without `read:packages`.)
//!
//! ## Bad
//! ```yaml
//! spec: {containers: [{name: web, image: ghcr.io/shop/web:v1}]}
//! ```
//! ## Good
//! ```yaml
//! spec: {imagePullSecrets: [{name: ghcr}], containers: [{name: web, image: ghcr.io/shop/web:v1}]}
//! ```
//! ## When to suppress
//! Where the image is public, or the nodes have the credentials.

use std::collections::{BTreeMap, BTreeSet};

use tiphys_diag::Severity;
use tiphys_graph::Object;

use crate::{
    Context, Finding, Report, Rule,
    support::{
        cluster::Cluster,
        dedup::Once,
        images::Image,
        pods::{Container, Pod, list, text},
    },
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "E2-no-pull-secret",
    incident: "E2",
    severity: Severity::Warning,
    title: "a private image, and no credentials to pull it",
    page: page!("e2_no_pull_secret.rs"),
    check,
};

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    let owners = owners(context);
    for cluster in context.clusters() {
        let protected = protected(cluster);
        for pod in &cluster.pods {
            let secrets = secrets(cluster, pod);
            if secrets.is_empty() {
                without(context, pod, &protected, &owners, &mut once);
            }
            report_wrong_namespace(context, cluster, pod, &mut once);
        }
    }
    once.report(report);
}

/// The names of the Secrets that a pod pulls with: its own, else those of its ServiceAccount.
fn secrets<'a>(cluster: &Cluster<'a>, pod: &Pod<'a>) -> Vec<&'a str> {
    let names = |value| list(value, "imagePullSecrets").iter().map(|it| text(it, "name"));
    let own: Vec<&str> = names(pod.spec()).filter(|name| !name.is_empty()).collect();
    if !own.is_empty() {
        return own;
    }
    let account = cluster.core("ServiceAccount", &pod.object.key.namespace, pod.service_account());
    account.map(|account| names(account.value()).collect()).unwrap_or_default()
}

/// The publishers from whom most workloads pull with a Secret, and one such workload.
fn protected<'a>(cluster: &Cluster<'a>) -> BTreeMap<(&'a str, &'a str), &'a Object> {
    let (mut with, mut without): (BTreeMap<_, Vec<&Object>>, BTreeMap<_, usize>) = Default::default();
    for pod in &cluster.pods {
        let images = publishers(pod);
        if secrets(cluster, pod).is_empty() {
            images.into_iter().for_each(|publisher| *without.entry(publisher).or_default() += 1);
        } else if images.len() == 1 {
            // With images of several publishers it cannot be told whose Secret it is.
            images.into_iter().for_each(|publisher| with.entry(publisher).or_default().push(pod.object));
        }
    }
    // Where many do without, the publisher has public images too.
    with.retain(|publisher, pods| {
        without.get(publisher).is_none_or(|forgotten| *forgotten <= (pods.len() / 3).max(1))
    });
    with.into_iter().map(|(publisher, pods)| (publisher, pods[0])).collect()
}

/// The registries and publishers of a pod's images.
fn publishers<'a>(pod: &Pod<'a>) -> BTreeSet<(&'a str, &'a str)> {
    let images = pod.containers().filter_map(|container| Image::parse(text(container.value, "image")));
    images.map(|image| image.publisher()).filter(|(_, publisher)| !publisher.is_empty()).collect()
}

/// The owners of the repositories on GitHub that Applications read.
fn owners(context: &Context<'_>) -> BTreeSet<String> {
    let sources = context.survey.apps.iter().filter(|app| app.is_rendered());
    let urls = sources.flat_map(|app| app.application.spec.effective_sources());
    urls.filter_map(|source| {
        let (_, rest) = source.repo_url.split_once("github.com")?;
        Some(rest.trim_start_matches([':', '/']).split('/').next()?.to_lowercase())
    })
    .collect()
}

fn without(
    context: &Context<'_>,
    pod: &Pod<'_>,
    protected: &BTreeMap<(&str, &str), &Object>,
    owners: &BTreeSet<String>,
    once: &mut Once,
) {
    for container in pod.containers() {
        let Some(image) = Image::parse(container.image()) else { continue };
        let publisher = image.publisher();
        if let Some(other) = protected.get(&publisher) {
            let diagnostic = unauthorized(context, pod, &container).see(
                context.survey.start(other),
                format!("{} pulls from there with a Secret", other.title()),
            );
            once.add(container.image(), RULE.finding(context, pod.object, diagnostic).likely());
        } else if publisher.0 == "ghcr.io" && owners.contains(&publisher.1.to_lowercase()) {
            let mut diagnostic = unauthorized(context, pod, &container);
            diagnostic.severity = Severity::Info;
            diagnostic.mechanism =
                "images of a GitHub owner are private until somebody makes them public; then no credentials are needed".into();
            let key = format!("{}/{}", publisher.0, publisher.1);
            once.add_by(key, RULE.finding(context, pod.object, diagnostic).likely());
        }
    }
}

fn unauthorized(context: &Context<'_>, pod: &Pod<'_>, container: &Container<'_>) -> crate::Diagnostic {
    let text = format!(
        "{} pulls {} without credentials: neither the pod nor its ServiceAccount has imagePullSecrets",
        pod.object.title(),
        container.image()
    );
    RULE.diagnostic(text)
        .at(context.survey.span(pod.object, &container.path.key("image")), "this image")
        .because("the registry answers 401 Unauthorized to who shows no credentials, and the pod stays in ImagePullBackOff")
        .help("name the Secret in spec.imagePullSecrets of the pod, or in its ServiceAccount")
}

/// Secrets that are made, but in another namespace than the pod's.
fn report_wrong_namespace(context: &Context<'_>, cluster: &Cluster<'_>, pod: &Pod<'_>, once: &mut Once) {
    let namespace = pod.object.key.namespace.as_str();
    for (at, reference) in list(pod.spec(), "imagePullSecrets").iter().enumerate() {
        let name = text(reference, "name");
        if name.is_empty()
            || cluster.is_partly_hidden(namespace)
            || cluster.core("Secret", namespace, name).is_some()
            || cluster.may_be_made(namespace, name)
        {
            continue;
        }
        let Some(other) = elsewhere(cluster, name) else { continue };
        let place = pod.spec_path().key("imagePullSecrets").index(at).key("name");
        let diagnostic = RULE
            .diagnostic(format!(
                "{} pulls with Secret/{name}, which is not made in {namespace}",
                pod.object.title()
            ))
            .at(context.survey.span(pod.object, &place), "named here")
            .see(context.survey.start(other), format!("made in {}", other.key.namespace))
            .because("a pod sees only the Secrets of its own namespace; without one it pulls anonymously")
            .help(format!("make the Secret in {namespace} too"));
        let finding: Finding = RULE.finding(context, pod.object, diagnostic);
        once.add(name, finding.likely());
    }
}

/// What makes a Secret of a name in some namespace: itself, or a resource that names it as its target.
fn elsewhere<'a>(cluster: &Cluster<'a>, name: &str) -> Option<&'a Object> {
    const MAKERS: [&str; 3] = ["Secret", "ExternalSecret", "SealedSecret"];
    cluster.objects.iter().copied().find(|object| {
        let target = text(&object.value()["spec"]["target"], "name");
        let is_named = if target.is_empty() { object.key.name == name } else { target == name };
        MAKERS.contains(&object.key.kind.as_str()) && is_named
    })
}

//! # A TLS Secret that nothing makes
//!
//! An Ingress and the listeners of a Gateway name the Secret with their certificate. Where it is not there,
//! the controller of an Ingress serves a certificate of its own making, which every browser refuses, and a
//! Gateway does not serve the listener. A Secret may be made by hand, so that this is told only where Git
//! shows what was meant: the certificate is similarly named, for the same host, or in another namespace;
//! another environment has it; or all other Ingresses ask cert-manager for theirs, and this one does not.
//!
//! People see: `Kubernetes Ingress Controller Fake Certificate`, `TRAEFIK DEFAULT CERT`,
//! `InvalidCertificateRef` at a listener, `secret "web-tls" not found`.
//!
//! ## Bad
//! ```yaml
//! kind: Certificate
//! spec: {secretName: web-tls}
//! ---
//! kind: Ingress
//! spec: {tls: [{hosts: [web.example.com], secretName: web-cert}]}
//! ```
//! ## Good
//! ```yaml
//! spec: {tls: [{hosts: [web.example.com], secretName: web-tls}]}
//! ```
//! ## When to suppress
//! Where the Secret is made by hand, in every cluster.

use tiphys_diag::{Severity, similar_names};
use tiphys_graph::{
    Object,
    edges::{EdgeKind, Target},
};
use tiphys_value::{FieldPath, ObjectExt, ResourceKey};

use crate::{
    Context, Report, Rule,
    support::{
        cluster::Cluster,
        dedup::Once,
        field_paths::keys,
        made_secrets::COPIERS,
        placeholders,
        pods::{list, text},
        scripted_objects::is_scripted,
    },
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "E2-no-certificate",
    incident: "E2",
    severity: Severity::Warning,
    title: "a TLS Secret that nothing makes",
    page: page!("e2_no_certificate.rs"),
    check,
};

/// A Secret that something makes, and what makes it.
struct Made<'a> {
    key: ResourceKey,
    by: &'a Object,
}

/// What Git shows of a Secret that is missing.
enum Hint<'c, 'a> {
    /// One of the namespace is similarly named.
    Similar(&'c Made<'a>),
    /// A certificate of the namespace is for the host, and goes into a Secret that nothing names.
    ForHost(&'c Made<'a>),
    /// One of another namespace has the name.
    Elsewhere(&'c Made<'a>),
    /// This is one of several that ask for their certificates, and this one does not.
    Unasked(usize, &'a Object),
}

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    for cluster in context.clusters() {
        let made = secrets(context, cluster);
        for object in cluster.objects.iter().copied() {
            for (field, namespace, name) in tls_secrets(object) {
                missing(context, cluster, (object, &field), (namespace, name), &made, &mut once);
            }
        }
    }
    once.report(report);
}

/// The Secrets that the Applications of a cluster bring, or from which a controller makes them.
fn secrets<'a>(context: &Context<'a>, cluster: &Cluster<'a>) -> Vec<Made<'a>> {
    let mut made = Vec::new();
    for by in cluster.objects.iter().copied() {
        if by.key.kind == "Secret" && by.key.group.is_empty() {
            made.push(Made { key: by.key.clone(), by });
        }
        for edge in context.analyses().edges.from(by.id).iter().filter(|it| it.kind == EdgeKind::Produces) {
            let key = match &edge.to {
                Target::Named(key) => key.clone(),
                Target::Object(id) => context.survey.object(*id).key.clone(),
            };
            if key.kind == "Secret" {
                made.push(Made { key, by });
            }
        }
    }
    made
}

/// Whether an object asks cert-manager for its certificates.
fn asks(object: &Object) -> bool {
    let annotations = object.value()["metadata"]["annotations"].as_object();
    annotations.into_iter().flat_map(|map| map.keys()).any(|key| {
        key.starts_with("cert-manager.io/") || key.contains("acme") || key.starts_with("certmanager.k8s.io/")
    })
}

/// The Secrets that an object names for TLS: the field, the namespace and the name.
fn tls_secrets(object: &Object) -> Vec<(FieldPath, &str, &str)> {
    let spec = &object.value()["spec"];
    let own = object.key.namespace.as_str();
    let mut found = Vec::new();
    match (object.key.group.as_str(), object.key.kind.as_str()) {
        ("networking.k8s.io", "Ingress") => {
            for (at, tls) in list(spec, "tls").iter().enumerate() {
                found.push((
                    keys(&["spec", "tls"]).index(at).key("secretName"),
                    own,
                    text(tls, "secretName"),
                ));
            }
        }
        ("gateway.networking.k8s.io", "Gateway") => {
            for (at, listener) in list(spec, "listeners").iter().enumerate() {
                let place = keys(&["spec", "listeners"]).index(at).key("tls").key("certificateRefs");
                let references =
                    listener.get("tls").map(|tls| list(tls, "certificateRefs")).unwrap_or_default();
                for (number, reference) in references.iter().enumerate() {
                    let namespace = reference.str_at(&["namespace"]).unwrap_or(own);
                    if matches!(text(reference, "kind"), "" | "Secret") {
                        found.push((place.index(number).key("name"), namespace, text(reference, "name")));
                    }
                }
            }
        }
        _ => {}
    }
    found.retain(|(_, _, name)| !name.is_empty());
    found
}

fn missing<'a>(
    context: &Context<'a>,
    cluster: &Cluster<'a>,
    (object, field): (&'a Object, &FieldPath),
    (namespace, name): (&str, &str),
    made: &[Made<'a>],
    once: &mut Once,
) {
    let is_there = made.iter().any(|it| it.key.namespace == namespace && it.key.name == name);
    if is_there
        || asks(object)
        || placeholders::is_in(name)
        || placeholders::is_in(namespace)
        || cluster.is_partly_hidden(namespace)
        || cluster.may_be_made(namespace, name)
        || is_scripted(context, name)
    {
        return;
    }
    let Some(hint) = hint(cluster, object, (namespace, name), made) else { return };
    let mut diagnostic = RULE
        .diagnostic(format!(
            "{} needs Secret/{name} in {namespace} for TLS, and nothing makes it",
            object.title()
        ))
        .at(context.survey.span(object, field), "no such Secret")
        .because("without the Secret clients get a certificate that nobody trusts, or no answer at all");
    let start = |it: &Object| context.survey.start(it);
    let mut meant = None;
    diagnostic = match hint {
        Hint::Similar(other) => {
            meant = Some(other.key.name.as_str());
            diagnostic.see(start(other.by), format!("this makes {}", other.key.name))
        }
        Hint::ForHost(other) => {
            meant = Some(other.key.name.as_str());
            diagnostic
                .see(start(other.by), format!("this is for the same host, and makes {}", other.key.name))
                .help(format!("perhaps {} is meant", other.key.name))
        }
        Hint::Elsewhere(other) => diagnostic
            .see(start(other.by), format!("this makes it in {}", other.key.namespace))
            .help("a Secret is used in its own namespace alone: have it made there, too"),
        Hint::Unasked(number, other) => diagnostic
            .see(start(other), format!("this and {} more ask cert-manager for theirs", number - 1))
            .help("add the annotation `cert-manager.io/cluster-issuer`, or a Certificate for the Secret"),
    };
    once.add(name, RULE.finding(context, object, diagnostic).likely().perhaps(name, meant));
}

fn hint<'c, 'a>(
    cluster: &Cluster<'a>,
    object: &Object,
    (namespace, name): (&str, &str),
    made: &'c [Made<'a>],
) -> Option<Hint<'c, 'a>> {
    const LEAST: usize = 3;
    let is_certificate = |it: &&Made<'_>| it.by.key.kind == "Certificate";
    let near = similar_names::nearest_slip(
        name,
        made.iter().filter(|it| it.key.namespace == namespace).map(|it| it.key.name.as_str()),
    );
    if let Some(near) = near {
        return made
            .iter()
            .find(|it| it.key.namespace == namespace && it.key.name == near)
            .map(Hint::Similar);
    }
    if let Some(other) = for_host(cluster, object, (namespace, name), made) {
        return Some(Hint::ForHost(other));
    }
    // A copy in other namespaces is asked for by annotations of the Secret, or by a policy.
    let is_copied = |it: &Made<'_>| {
        let text = it.by.value().to_string();
        COPIERS.iter().chain(&["sync"]).any(|mark| text.contains(mark))
    };
    let clones = || {
        cluster.objects.iter().any(|it| matches!(it.key.kind.as_str(), "ClusterPolicy" | "ClusterPushSecret"))
    };
    if let Some(other) = made.iter().filter(is_certificate).find(|it| it.key.name == name) {
        let is_plain = object.key.kind == "Ingress" || namespace == object.key.namespace;
        return (is_plain && !is_copied(other) && !clones()).then_some(Hint::Elsewhere(other));
    }
    let with_tls = |it: &&&Object| it.key.kind == "Ingress" && !list(&it.value()["spec"], "tls").is_empty();
    let others: Vec<&'a Object> =
        cluster.objects.iter().filter(with_tls).copied().filter(|it| it.id != object.id).collect();
    let is_alone = object.key.kind == "Ingress" && others.len() >= LEAST && others.iter().all(|it| asks(it));
    is_alone.then(|| Hint::Unasked(others.len(), others[0]))
}

/// The certificate of a namespace that is for a host for which a Secret is named, where nothing names the
/// Secret that it makes.
fn for_host<'c, 'a>(
    cluster: &Cluster<'a>,
    object: &Object,
    (namespace, name): (&str, &str),
    made: &'c [Made<'a>],
) -> Option<&'c Made<'a>> {
    let spec = &object.value()["spec"];
    let named_hosts: Vec<&str> = match object.key.kind.as_str() {
        "Ingress" => {
            let own = list(spec, "tls").iter().filter(|it| text(it, "secretName") == name);
            own.flat_map(|it| list(it, "hosts")).filter_map(|it| it.as_str()).collect()
        }
        _ => {
            let names_it = |it: &&tiphys_value::Value| {
                let references = it.get("tls").map(|tls| list(tls, "certificateRefs")).unwrap_or_default();
                references.iter().any(|reference| text(reference, "name") == name)
            };
            list(spec, "listeners").iter().filter(names_it).map(|it| text(it, "hostname")).collect()
        }
    };
    let is_used = |secret: &str| {
        let mut users = cluster.objects.iter().filter(|it| it.key.kind != "Certificate");
        users.any(|it| tls_secrets(it).iter().any(|(_, of, it)| *of == namespace && *it == secret))
    };
    let is_for = |it: &&Made<'_>| {
        it.by.key.kind == "Certificate"
            && it.key.namespace == namespace
            && list(&it.by.value()["spec"], "dnsNames")
                .iter()
                .any(|host| host.as_str().is_some_and(|host| named_hosts.contains(&host)))
    };
    let mut all = made.iter().filter(is_for).filter(|it| !is_used(&it.key.name));
    all.next().filter(|_| all.next().is_none())
}

//! # A name that is nearly that of an object beside it
//!
//! A pod names the Secrets, ConfigMaps, claims and service accounts that it needs, an Ingress or route its
//! Service and its Gateway. Where no object of the repository has the name, and one of the same namespace has
//! nearly the same, one of the two is misspelt; so it is where a generator of the kustomization makes one
//! that nothing names, where the one Service beside a route has a word more or less and nothing names it, or
//! where the only one of this very name says that it is of another namespace. This is told of what no
//! Application reaches, such as the manifests of Flux; of Applications `E2-dangling-reference`,
//! `F4-no-backend` and `F4-route-refused` tell more. A name that no object can have, such as one with a slash,
//! is told everywhere.
//!
//! Of issuers, stores of secrets and Gateways it is also told where the one that is there, and that others
//! name, has a word more or less, or goes on where the name ends: `letsencrypt-prod` for `letsencrypt-production`.
//!
//! People see: `secret "postges" not found`, `persistentvolumeclaim "data" not found`,
//! `CreateContainerConfigError`, a route without a parent.
//!
//! ## Bad
//! ```yaml
//! secretKeyRef: {name: postges, key: password}     # the Secret is called postgres
//! ```
//! ## Good
//! ```yaml
//! secretKeyRef: {name: postgres, key: password}
//! ```
//! ## When to suppress
//! Where both exist, and one of them is made outside of the repository.

use std::collections::{BTreeMap, BTreeSet};

use tiphys_diag::{Severity, similar_names};
use tiphys_graph::{Object, Owner};
use tiphys_value::{FieldPath, ObjectExt, Value};

use super::e2_dangling_reference::is_copied;
use crate::{
    Context, Report, Rule,
    support::{
        dedup::Once,
        field_paths::keys,
        misspelled_names::Misnamed,
        placeholders, pod_references,
        pods::{self, list, text},
        unrendered_files,
    },
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "E2-misspelt-name",
    incident: "E2",
    severity: Severity::Warning,
    title: "a name that is nearly that of an object beside it",
    page: page!("e2_misspelt_name.rs"),
    check,
};

/// A name that an object gives to another.
struct Named<'a> {
    kind: &'static str,
    name: &'a str,
    namespace: Option<&'a str>,
    path: FieldPath,
}

fn check(context: &Context<'_>, report: &mut Report) {
    let survey = context.survey;
    let mut known: BTreeMap<&str, Vec<&Object>> = BTreeMap::new();
    for object in &survey.objects {
        known.entry(object.key.kind.as_str()).or_default().push(object);
    }
    let mut once = Once::default();
    for object in &survey.objects {
        impossible(context, object, object.value(), &FieldPath::default(), &mut once, 0);
    }
    for object in survey.objects.iter().filter(|it| matches!(it.owner, Owner::Unit(_))) {
        if unrendered_files::is_from_unused_chart(survey, object)
            || unrendered_files::may_be_a_patch(survey, object)
        {
            continue;
        }
        for named in names(object) {
            let others = known.get(named.kind).map(Vec::as_slice).unwrap_or_default();
            if let Some(other) = only_elsewhere(context, object, &named, others) {
                add_elsewhere(context, object, &named, other, &mut once);
                continue;
            }
            let meant =
                nearest_object(object, &named, others).or_else(|| unused(context, object, &named, others));
            if let Some(meant) = meant {
                if !is_made(context, named.name) {
                    add(context, object, &named, meant, &mut once);
                }
            } else if let Some(meant) = longer_or_shorter(context, object, &named, others) {
                add(context, object, &named, meant, &mut once);
            }
        }
    }
    word_twins(context, &known, &mut once);
    once.report(report);
}

/// A reference by kind and name.
struct KindReference<'a> {
    object: &'a Object,
    kind: &'a str,
    name: &'a str,
    namespace: Option<&'a str>,
    path: FieldPath,
}

/// Tells of references to shared objects that nothing makes, where one that is there and that others name
/// differs in one word.
fn word_twins(context: &Context<'_>, known: &BTreeMap<&str, Vec<&Object>>, once: &mut Once) {
    const ENOUGH: usize = 3;
    let mut all = Vec::new();
    for object in context.survey.objects.iter().filter(|it| matches!(it.owner, Owner::Unit(_))) {
        if !unrendered_files::is_from_unused_chart(context.survey, object) {
            gather_references(object, object.value(), &FieldPath::default(), &mut all, 0);
        }
    }
    let mut named: BTreeMap<(&str, &str), BTreeSet<&str>> = BTreeMap::new();
    for it in &all {
        named.entry((it.kind, it.name)).or_default().insert(it.object.rendered.location.file.as_ref());
    }
    for it in &all {
        let others = known.get(it.kind).map(Vec::as_slice).unwrap_or_default();
        let is_there = |other: &&Object| other.key.name == it.name || placeholders::is_in(&other.key.name);
        let is_once = named.get(&(it.kind, it.name)).is_some_and(|files| files.len() == 1);
        if placeholders::is_in(it.name) || !is_once || others.iter().any(is_there) {
            continue;
        }
        let is_beside = |other: &&&Object| match (stated_namespace(other), it.namespace) {
            (Some(own), Some(wanted)) => own == wanted || it.kind.starts_with("Cluster"),
            _ => true,
        };
        let near = others.iter().filter(is_beside).filter(|other| differs_by_word(it.name, &other.key.name));
        let near: Vec<&Object> = near.copied().collect();
        let Some(meant) = near.first().filter(|first| near.iter().all(|it| it.key.name == first.key.name))
        else {
            continue;
        };
        let used = named.get(&(it.kind, meant.key.name.as_str())).map_or(0, BTreeSet::len);
        if used < ENOUGH || it.name.contains('-') && is_made(context, it.name) {
            continue;
        }
        let misnamed = Misnamed { kind: it.kind, name: it.name, path: &it.path, meant };
        let why = "what names it waits for it, or leads nowhere";
        once.add(it.name, misnamed.finding(&RULE, context, it.object, "nothing makes", why));
    }
}

/// The references of an object to issuers, stores of secrets and Gateways.
fn gather_references<'a>(
    object: &'a Object,
    value: &'a Value,
    path: &FieldPath,
    found: &mut Vec<KindReference<'a>>,
    depth: usize,
) {
    const MAX_DEPTH: usize = 32;
    const KINDS: [&str; 5] = ["ClusterIssuer", "ClusterSecretStore", "Gateway", "Issuer", "SecretStore"];
    if depth > MAX_DEPTH {
        return;
    }
    let mut note = |reference: &'a Value, path: &FieldPath, usual: &'a str| {
        let kind = Some(text(reference, "kind")).filter(|kind| !kind.is_empty()).unwrap_or(usual);
        let name = text(reference, "name");
        if KINDS.contains(&kind) && !name.is_empty() {
            let namespace = reference.str_at(&["namespace"]).or_else(|| stated_namespace(object));
            found.push(KindReference { object, kind, name, namespace, path: path.key("name") });
        }
    };
    match value {
        Value::Object(map) => {
            for (key, below) in map {
                let place = path.key(key);
                match key.as_str() {
                    "issuerRef" => note(below, &place, "Issuer"),
                    "secretStoreRef" => note(below, &place, "SecretStore"),
                    "parentRefs" => {
                        for (at, parent) in below.as_array().into_iter().flatten().enumerate() {
                            note(parent, &place.index(at), "Gateway");
                        }
                    }
                    _ => {}
                }
            }
            for (key, below) in map {
                gather_references(object, below, &path.key(key), found, depth + 1);
            }
        }
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                gather_references(object, item, &path.index(at), found, depth + 1);
            }
        }
        _ => {}
    }
}

/// Whether one of two names has a word more than the other, or goes on where the other one ends.
fn differs_by_word(one: &str, other: &str) -> bool {
    const SHORTEST: usize = 8;
    let (short, long) = if one.len() < other.len() { (one, other) } else { (other, one) };
    let words: Vec<&str> = long.split('-').collect();
    let is_word_less = (0..words.len()).any(|at| {
        let rest: Vec<&str> =
            words.iter().enumerate().filter(|(index, _)| *index != at).map(|(_, word)| *word).collect();
        !rest.is_empty() && rest.join("-") == short
    });
    let goes_on = short.len() >= SHORTEST
        && long.strip_prefix(short).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_alphabetic()));
    is_word_less || goes_on
}

/// Tells of references by kind and name whose name no object of the kind can have: names are those of hosts
/// (Kubernetes docs, "Object Names and IDs").
fn impossible(
    context: &Context<'_>,
    object: &Object,
    value: &Value,
    path: &FieldPath,
    once: &mut Once,
    depth: usize,
) {
    const MAX_DEPTH: usize = 32;
    const KINDS: [&str; 18] = [
        "Bucket",
        "ClusterIssuer",
        "ClusterSecretStore",
        "ConfigMap",
        "Deployment",
        "Gateway",
        "GitRepository",
        "HelmChart",
        "HelmRelease",
        "HelmRepository",
        "Issuer",
        "Kustomization",
        "OCIRepository",
        "PersistentVolumeClaim",
        "Secret",
        "SecretStore",
        "Service",
        "StatefulSet",
    ];
    if depth > MAX_DEPTH {
        return;
    }
    match value {
        Value::Object(map) => {
            for (key, below) in map {
                let place = path.key(key);
                let (kind, name) = (text(below, "kind"), text(below, "name"));
                let is_odd = |c: char| matches!(c, '/' | '_' | ':' | ' ') || c.is_ascii_uppercase();
                // What is in capitals alone waits for somebody to fill it in.
                let is_name = name.contains(|c: char| c.is_ascii_lowercase());
                let is_reference =
                    key.to_ascii_lowercase().ends_with("ref") && KINDS.contains(&kind) && is_name;
                if is_reference && name.contains(is_odd) && !placeholders::is_in(name) && !name.contains('$')
                {
                    let what =
                        format!("{} names {kind} {name}, and no object can be called so", object.title());
                    let diagnostic = RULE
                        .diagnostic(&what)
                        .at(context.survey.span(object, &place.key("name")), "no name of an object")
                        .because("a name has lower-case letters, digits, dashes and dots alone");
                    once.add(&what, RULE.finding(context, object, diagnostic).likely());
                }
                impossible(context, object, below, &place, once, depth + 1);
            }
        }
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                impossible(context, object, item, &path.index(at), once, depth + 1);
            }
        }
        _ => {}
    }
}

/// The names in an object.
fn names(object: &Object) -> Vec<Named<'_>> {
    if let Some(pod) = pods::pod_of(object).or_else(|| pods::knative_pod_of(object)) {
        let all = pod_references::of_pod(&pod).into_iter();
        return all
            .map(|it| Named {
                kind: it.kind,
                name: it.name,
                namespace: stated_namespace(object),
                path: it.path,
            })
            .collect();
    }
    let spec = &object.value()["spec"];
    match (object.key.group.as_str(), object.key.kind.as_str()) {
        ("gateway.networking.k8s.io", kind) if kind.ends_with("Route") => route(object, spec),
        ("networking.k8s.io", "Ingress") => ingress(object, spec),
        ("projectcontour.io", "HTTPProxy") | ("traefik.io", "IngressRoute" | "IngressRouteTCP") => {
            services_of_routes(object, spec)
        }
        _ => Vec::new(),
    }
}

fn route<'a>(object: &'a Object, spec: &'a Value) -> Vec<Named<'a>> {
    let mut found = Vec::new();
    let namespace = |of: &'a Value| of.str_at(&["namespace"]).or_else(|| stated_namespace(object));
    for (at, parent) in list(spec, "parentRefs").iter().enumerate() {
        if matches!(text(parent, "kind"), "" | "Gateway") {
            let path = keys(&["spec", "parentRefs"]).index(at).key("name");
            found.push(Named {
                kind: "Gateway",
                name: text(parent, "name"),
                namespace: namespace(parent),
                path,
            });
        }
    }
    found
}

fn ingress<'a>(object: &'a Object, spec: &'a Value) -> Vec<Named<'a>> {
    let mut found = Vec::new();
    for (rule, value) in list(spec, "rules").iter().enumerate() {
        let paths = value.get("http").map(|http| list(http, "paths")).unwrap_or_default();
        for (at, path) in paths.iter().enumerate() {
            let Some(name) = path.str_at(&["backend", "service", "name"]) else { continue };
            let place = keys(&["spec", "rules"]).index(rule).key("http").key("paths").index(at);
            let path = place.key("backend").key("service").key("name");
            found.push(Named { kind: "Service", name, namespace: stated_namespace(object), path });
        }
    }
    found
}

/// The Services of a route of Contour or Traefik.
fn services_of_routes<'a>(object: &'a Object, spec: &'a Value) -> Vec<Named<'a>> {
    let mut found = Vec::new();
    for (route, value) in list(spec, "routes").iter().enumerate() {
        for (at, service) in list(value, "services").iter().enumerate() {
            let name = text(service, "name");
            if matches!(text(service, "kind"), "" | "Service") && !name.contains('@') {
                let namespace = service.str_at(&["namespace"]).or_else(|| stated_namespace(object));
                let path = keys(&["spec", "routes"]).index(route).key("services").index(at).key("name");
                found.push(Named { kind: "Service", name, namespace, path });
            }
        }
    }
    found
}

/// The namespace that an object says itself.
fn stated_namespace(object: &Object) -> Option<&str> {
    object.value().str_at(&["metadata", "namespace"]).filter(|it| !it.is_empty())
}

/// Whether one of the objects has a name, or has one that is not filled in yet.
fn may_be_there(named: &Named<'_>, others: &[&Object]) -> bool {
    others.iter().any(|it| it.key.name == named.name || placeholders::is_in(&it.key.name))
}

/// The object that a name nearly is; `None` if one has it, or none does nearly.
fn nearest_object<'a>(object: &Object, named: &Named<'_>, others: &[&'a Object]) -> Option<&'a Object> {
    const SHORTEST: usize = 5;
    if named.name.len() < SHORTEST || placeholders::is_in(named.name) || may_be_there(named, others) {
        return None;
    }
    let is_beside = |it: &&&Object| match (stated_namespace(it), named.namespace) {
        (Some(own), Some(wanted)) => own == wanted,
        _ => it.owner == object.owner || it.folder() == object.folder(),
    };
    let beside: Vec<&Object> = others.iter().filter(is_beside).copied().collect();
    let nearest = similar_names::nearest_slip(named.name, beside.iter().map(|it| it.key.name.as_str()))?;
    if differs_by_digits(named.name, nearest) {
        return None;
    }
    beside.into_iter().find(|it| it.key.name == nearest)
}

/// The object of a name beside the one that names it, if it is the only one and says that it is of another
/// namespace.
fn only_elsewhere<'a>(
    context: &Context<'_>,
    object: &Object,
    named: &Named<'_>,
    others: &[&'a Object],
) -> Option<&'a Object> {
    let wanted = named.namespace.filter(|it| !placeholders::is_in(it))?;
    let is_of_pods =
        matches!(named.kind, "ConfigMap" | "PersistentVolumeClaim" | "Secret" | "ServiceAccount");
    let same: Vec<&Object> = others.iter().filter(|it| it.key.name == named.name).copied().collect();
    let [other] = same.as_slice() else { return None };
    let own = stated_namespace(other).filter(|it| *it != wanted && !placeholders::is_in(it))?;
    let is_beside = matches!(other.owner, Owner::Unit(_)) && other.folder() == object.folder();
    // Something else of the name, such as what makes a Secret, may be the one that is meant.
    let may_be_meant = |it: &&Object| {
        it.key.name == named.name && it.id != other.id && stated_namespace(it).is_none_or(|it| it != own)
    };
    let is_open = context.survey.objects.iter().filter(|it| it.id != object.id).any(|it| may_be_meant(&it));
    (is_of_pods && is_beside && !is_open && !is_copied(other)).then_some(*other)
}

/// What the kustomization of an object generates of the kind and nothing in it names, if that is one thing: a
/// generator that was copied with its old name.
fn unused<'a>(
    context: &Context<'_>,
    object: &Object,
    named: &Named<'_>,
    others: &[&'a Object],
) -> Option<&'a Object> {
    if !matches!(named.kind, "ConfigMap" | "Secret") || may_be_there(named, others) {
        return None;
    }
    let is_generated = |it: &&&Object| {
        let file = it.rendered.location.file.as_ref();
        let is_of_generator = file.rsplit('/').next().is_some_and(|base| base.starts_with("kustomization."));
        is_of_generator && it.owner == object.owner && it.folder() == object.folder()
    };
    let beside: Vec<&Object> = context.survey.objects.iter().filter(|it| it.owner == object.owner).collect();
    let is_unused =
        |it: &&&Object| !beside.iter().any(|other| other.id != it.id && says(other.value(), &it.key.name));
    let mut all = others.iter().filter(is_generated).filter(is_unused);
    all.next().copied().filter(|_| all.next().is_none())
}

/// Whether a text of a value is a name, or an address whose host begins with it.
fn says(value: &Value, name: &str) -> bool {
    let is_host = |part: &str| {
        part.contains(['.', ':']) && part.split(['.', ':', '/']).next().is_some_and(|host| host == name)
    };
    match value {
        Value::String(text) => {
            **text == *name
                || text
                    .split(['@', ',', ' ', '='])
                    .any(|part| is_host(part.rsplit("//").next().unwrap_or(part)))
        }
        Value::Array(items) => items.iter().any(|it| says(it, name)),
        Value::Object(map) => map.iter().any(|(key, it)| key == name || says(it, name)),
        _ => false,
    }
}

/// The one Service in the folder of a route whose name has more words at its end, or fewer, than the one
/// that the route names, where nothing else names it and no other lies there.
fn longer_or_shorter<'a>(
    context: &Context<'_>,
    object: &Object,
    named: &Named<'_>,
    others: &[&'a Object],
) -> Option<&'a Object> {
    const SHORTEST: usize = 5;
    if named.kind != "Service" || named.name.len() < SHORTEST || may_be_there(named, others) {
        return None;
    }
    let mut beside = others.iter().filter(|it| it.folder() == object.folder());
    let only = beside.next().copied().filter(|_| beside.next().is_none())?;
    let goes_on = |long: &str, short: &str| long.strip_prefix(short).is_some_and(|it| it.starts_with('-'));
    let is_near = goes_on(&only.key.name, named.name) || goes_on(named.name, &only.key.name);
    let is_of_place = stated_namespace(only).is_none_or(|own| named.namespace.is_none_or(|it| it == own));
    let is_named = || {
        let objects = context.survey.objects.iter().filter(|it| it.folder() == object.folder());
        objects.filter(|it| it.id != only.id).any(|it| says(it.value(), &only.key.name))
    };
    // What operators and releases of the name make, nobody sees.
    let is_operated = || {
        let of_name = context.survey.objects.iter().filter(|it| it.key.name == named.name);
        of_name.map(|it| it.key.group.as_str()).any(|it| it.contains('.') && !it.ends_with(".k8s.io"))
    };
    (is_near && is_of_place && !is_named() && !is_operated()).then_some(only)
}

/// Whether two names differ in digits, or in one letter at the end: the second of several, as a rule.
fn differs_by_digits(one: &str, other: &str) -> bool {
    let stem = |text: &str| text.rsplit_once('-').map(|(stem, _)| stem.to_owned());
    similar_names::differ_in_digits_only(one, other) || (stem(one).is_some() && stem(one) == stem(other))
}

/// Whether something else in the repository makes an object of the name: it stands as a whole word where no
/// pod names it, such as in a custom resource, a script or values.
fn is_made(context: &Context<'_>, name: &str) -> bool {
    let mut seen: BTreeSet<String> = BTreeSet::new();
    let files = &context.survey.files;
    for path in files.paths() {
        let Some(text) = files.text(path) else { continue };
        for line in text.lines().filter(|line| has_word(line, name)) {
            let said = line.trim().trim_start_matches("- ");
            let is_reference = REFERENCES.iter().any(|key| said.starts_with(key));
            if !is_reference {
                return true;
            }
            seen.insert(said.to_owned());
        }
    }
    seen.is_empty()
}

/// How the lines begin in which objects name others.
const REFERENCES: [&str; 6] =
    ["name:", "secretName:", "claimName:", "serviceAccountName:", "serviceAccount:", "backend:"];

fn has_word(line: &str, name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    line.match_indices(name)
        .any(|(at, _)| !line[..at].ends_with(is_part) && !line[at + name.len()..].starts_with(is_part))
}

fn add(context: &Context<'_>, object: &Object, named: &Named<'_>, meant: &Object, once: &mut Once) {
    let misnamed = Misnamed { kind: named.kind, name: named.name, path: &named.path, meant };
    let why = "what names it waits for it, or leads nowhere";
    once.add(named.name, misnamed.finding(&RULE, context, object, "nothing makes", why));
}

fn add_elsewhere(context: &Context<'_>, object: &Object, named: &Named<'_>, other: &Object, once: &mut Once) {
    let (wanted, own) = (named.namespace.unwrap_or_default(), other.key.namespace.as_str());
    let diagnostic = RULE
        .diagnostic(format!(
            "{} names {}/{} in {wanted}, and there is only one in {own}",
            object.title(),
            named.kind,
            named.name
        ))
        .at(context.survey.span(object, &named.path), format!("looked for in {wanted}"))
        .see(context.survey.start(other), format!("this one is in {own}"))
        .because("a pod takes Secrets, ConfigMaps, claims and accounts from its own namespace alone")
        .help(format!("put it into {wanted}"));
    once.add(named.name, RULE.finding(context, object, diagnostic).likely());
}

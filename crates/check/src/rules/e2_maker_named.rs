//! # A Secret is called for by the name of the ExternalSecret that makes it
//!
//! An ExternalSecret makes a Secret of its own name, unless its `target` has another. Where it has, the name
//! of the ExternalSecret is that of no Secret: what needs the Secret has to name the target. The other way
//! round, the target has no ending that the name has, or lacks one.
//!
//! People see: `Error: secret "web" not found`, `CreateContainerConfigError`, beside an ExternalSecret that
//! says `SecretSynced`.
//!
//! ## Bad
//! ```yaml
//! kind: ExternalSecret
//! metadata: {name: web}
//! spec: {target: {name: web-secret}}
//! ---
//! kind: HelmRelease
//! spec: {values: {envFrom: [{secretRef: {name: web}}]}}
//! ```
//! ## Good
//! ```yaml
//! spec: {values: {envFrom: [{secretRef: {name: web-secret}}]}}
//! ```
//! ## When to suppress
//! Where the chart, or somebody by hand, makes a Secret of the ExternalSecret's name.

use std::collections::HashMap;

use tiphys_diag::{Severity, similar_names};
use tiphys_graph::{Object, Owner};
use tiphys_value::{FieldPath, ObjectExt, ResourceKey, Value};

use crate::{
    Context, Report, Rule,
    support::{
        cluster,
        dedup::Once,
        field_paths::keys,
        placeholders, pod_references,
        pods::{self, text},
        unrendered_files,
    },
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "E2-maker-named",
    incident: "E2",
    severity: Severity::Warning,
    title: "a Secret is called for by the name of the ExternalSecret that makes it",
    page: page!("e2_maker_named.rs"),
    check,
};

/// Shorter names are near to each other by chance.
const SHORTEST: usize = 8;

/// An ExternalSecret and the Secret that it makes.
struct Maker<'a> {
    object: &'a Object,
    target: &'a str,
}

fn check(context: &Context<'_>, report: &mut Report) {
    let survey = context.survey;
    let of_units = || survey.objects.iter().filter(|it| matches!(it.owner, Owner::Unit(_)));
    let mut makers: HashMap<&str, Vec<Maker<'_>>> = HashMap::new();
    for maker in of_units().filter(|it| it.key.kind == "ExternalSecret").filter_map(maker) {
        makers.entry(folder(maker.object)).or_default().push(maker);
    }
    if makers.is_empty() {
        return;
    }
    let made = MadeNames::from_objects(&survey.objects);
    let mut once = Once::default();
    for object in of_units() {
        let Some(beside) = makers.get(folder(object)) else { continue };
        for (name, path) in names(object) {
            if placeholders::is_in(name) || made.has(name, object) {
                continue;
            }
            let Some(maker) = beside.iter().find(|it| is_meant(it, name)) else { continue };
            if unrendered_files::is_from_unused_chart(survey, object)
                || unrendered_files::may_be_a_patch(survey, object)
            {
                break;
            }
            let what = format!("{} names Secret/{name}, which nothing makes", object.title());
            let diagnostic = RULE
                .diagnostic(what.clone())
                .at(survey.span(object, &path), "named here")
                .see(survey.start(maker.object), format!("makes Secret/{}", maker.target))
                .because(
                    "the container waits for a Secret of that name, and the ExternalSecret is satisfied",
                );
            let finding = RULE.finding(context, object, diagnostic).likely();
            once.add_by(what, finding.perhaps(name, Some(maker.target)));
        }
    }
    once.report(report);
}

/// The folder that an object's file lies in.
fn folder(object: &Object) -> &str {
    tiphys_vfs::parent(&object.rendered.location.file).unwrap_or_default()
}

fn maker(object: &Object) -> Option<Maker<'_>> {
    let target = object.value().str_at(&["spec", "target", "name"]).filter(|it| !it.is_empty());
    let target = target.unwrap_or(&object.key.name);
    (!placeholders::is_in(target)).then_some(Maker { object, target })
}

/// Whether a name is that of the ExternalSecret, or that of its Secret with or without the usual ending.
fn is_meant(maker: &Maker<'_>, name: &str) -> bool {
    let has_ending = |long: &str, short: &str| {
        long.strip_suffix(short).is_none() && matches!(long.strip_prefix(short), Some("-secret" | "-secrets"))
    };
    let is_named =
        maker.object.key.name == name || has_ending(name, maker.target) || has_ending(maker.target, name);
    // A slip, unless it is in the digits: the second of several.
    let is_slip = name.len() >= SHORTEST
        && !similar_names::differ_in_digits_only(name, maker.target)
        && similar_names::nearest_slip(name, std::iter::once(maker.target)).is_some();
    (is_named || is_slip) && name != maker.target
}

/// The Secrets that a pod, or the values of a release of Flux, cannot do without.
fn names(object: &Object) -> Vec<(&str, FieldPath)> {
    if let Some(pod) = pods::pod_of(object) {
        let all = pod_references::of_pod(&pod).into_iter();
        return all.filter(|it| it.kind == "Secret").map(|it| (it.name, it.path)).collect();
    }
    let mut found = Vec::new();
    if let Some(values) = object.value().at(&["spec", "values"]).filter(|_| object.key.kind == "HelmRelease")
    {
        let name = text(&object.value()["metadata"], "name");
        gather(values, &keys(&["spec", "values"]), &mut found, 0);
        // Many charts make a Secret that is called like the release; of this one it is known when.
        let is_plain = object.value().str_at(&["spec", "chart", "spec", "chart"]) == Some("app-template")
            || object.value().str_at(&["spec", "chartRef", "name"]) == Some("app-template");
        let makes_own = !is_plain || values.get("secrets").is_some();
        found.retain(|(it, _)| !(makes_own && it.starts_with(name)));
    }
    found
}

/// References of containers in values: `secretRef` and `secretKeyRef`, that are not optional.
fn gather<'a>(value: &'a Value, path: &FieldPath, found: &mut Vec<(&'a str, FieldPath)>, depth: usize) {
    const DEEPEST: usize = 24;
    if depth > DEEPEST {
        return;
    }
    match value {
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                gather(item, &path.index(at), found, depth + 1);
            }
        }
        Value::Object(fields) => {
            for (key, inner) in fields {
                let path = path.key(key);
                let is_reference = matches!(key.as_str(), "secretRef" | "secretKeyRef");
                match text(inner, "name") {
                    name if is_reference && !name.is_empty() && inner["optional"] != true => {
                        found.push((name, path.key("name")));
                    }
                    _ => gather(inner, &path, found, depth + 1),
                }
            }
        }
        _ => {}
    }
}

/// The names of Secrets that something in the repository makes, or may make. They are gathered once: a
/// repository has thousands of objects, and each may ask.
struct MadeNames<'a> {
    names: HashMap<&'a str, Namers<'a>>,
    /// Whether a target has still to be filled in, so that any name may be made.
    is_open: bool,
}

/// Who gives a Secret its name: the first, and whether an object with another key does so, too.
struct Namers<'a> {
    first: &'a ResourceKey,
    has_others: bool,
}

impl<'a> MadeNames<'a> {
    /// What is called so, whatever it is, but for an ExternalSecret that has another target; and what
    /// controllers make Secrets from, such as a Service of OpenShift with the name of its certificate.
    fn from_objects(objects: &'a [Object]) -> Self {
        let mut names: HashMap<&'a str, Namers<'a>> = HashMap::new();
        for object in objects {
            for name in secrets_made_by(object) {
                let namers = names.entry(name).or_insert(Namers { first: &object.key, has_others: false });
                namers.has_others |= *namers.first != object.key;
            }
        }
        let is_open = objects.iter().any(|it| it.key.kind == "ExternalSecret" && maker(it).is_none());
        Self { names, is_open }
    }

    /// Whether anything but the object itself, and its copies in other environments, makes the name.
    fn has(&self, name: &str, by: &Object) -> bool {
        let is_by_another = |namers: &Namers<'_>| namers.has_others || *namers.first != by.key;
        self.is_open || self.names.get(name).is_some_and(is_by_another)
    }
}

/// The names of Secrets that an object may be the cause of.
fn secrets_made_by(object: &Object) -> Vec<&str> {
    match object.key.kind.as_str() {
        "ExternalSecret" => maker(object).map(|it| it.target).into_iter().collect(),
        "Certificate" => object.value().str_at(&["spec", "secretName"]).into_iter().collect(),
        "Secret"
        | "SealedSecret"
        | "SopsSecret"
        | "OnePasswordItem"
        | "PushSecret"
        | "VaultStaticSecret"
        | "InfisicalSecret"
        | "ClusterExternalSecret"
        | "BitwardenSecret"
        | "DopplerSecret" => vec![&object.key.name],
        // A release only asks for it.
        "HelmRelease" => Vec::new(),
        _ => cluster::names_from(object).into_iter().collect(),
    }
}

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

use tiphys_diag::Severity;
use tiphys_graph::{Object, Owner};
use tiphys_value::{FieldPath, ObjectExt, Value};

use crate::{
    Context, Report, Rule,
    support::{
        cluster,
        dedup::Once,
        field_paths::keys,
        nearest_name, placeholders, pod_references,
        pods::{self, text},
        unrendered_files,
    },
};

/// See the module.
pub const RULE: Rule = Rule {
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
    let makers: Vec<Maker<'_>> =
        of_units().filter(|it| it.key.kind == "ExternalSecret").filter_map(maker).collect();
    if makers.is_empty() {
        return;
    }
    let mut once = Once::default();
    for object in of_units() {
        if unrendered_files::is_from_unused_chart(survey, object)
            || unrendered_files::may_be_a_patch(survey, object)
        {
            continue;
        }
        for (name, path) in names(object) {
            if placeholders::is_in(name) || is_made(context, object, name) {
                continue;
            }
            let Some(maker) = makers.iter().find(|it| is_meant(it, object, name)) else { continue };
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

fn maker(object: &Object) -> Option<Maker<'_>> {
    let target = object.value().str_at(&["spec", "target", "name"]).filter(|it| !it.is_empty());
    let target = target.unwrap_or(&object.key.name);
    (!placeholders::is_in(target)).then_some(Maker { object, target })
}

/// Whether a name is that of the ExternalSecret, or that of its Secret with or without the usual ending.
fn is_meant(maker: &Maker<'_>, by: &Object, name: &str) -> bool {
    let folder =
        |of: &Object| of.rendered.location.file.rsplit_once('/').map(|(folder, _)| folder.to_owned());
    let has_ending = |long: &str, short: &str| {
        long.strip_suffix(short).is_none() && matches!(long.strip_prefix(short), Some("-secret" | "-secrets"))
    };
    let is_named =
        maker.object.key.name == name || has_ending(name, maker.target) || has_ending(maker.target, name);
    // A slip, unless it is in the digits: the second of several.
    let letters = |text: &str| text.chars().filter(|c| !c.is_ascii_digit()).collect::<String>();
    let is_slip = name.len() >= SHORTEST
        && letters(name) != letters(maker.target)
        && nearest_name::nearest(name, std::iter::once(maker.target)).is_some();
    (is_named || is_slip) && name != maker.target && folder(maker.object) == folder(by)
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

/// Whether anything in the repository makes a Secret of the name, or may: what is called so, whatever it is,
/// but for an ExternalSecret that has another target, and what controllers make Secrets from, such as a
/// Service of OpenShift with the name of its certificate.
fn is_made(context: &Context<'_>, by: &Object, name: &str) -> bool {
    context.survey.objects.iter().filter(|it| it.key != by.key).any(|it| match it.key.kind.as_str() {
        "ExternalSecret" => maker(it).is_none_or(|it| it.target == name),
        "Certificate" => it.value().str_at(&["spec", "secretName"]) == Some(name),
        "Secret"
        | "SealedSecret"
        | "SopsSecret"
        | "OnePasswordItem"
        | "PushSecret"
        | "VaultStaticSecret"
        | "InfisicalSecret"
        | "ClusterExternalSecret"
        | "BitwardenSecret"
        | "DopplerSecret" => it.key.name == name,
        // A release only asks for it.
        "HelmRelease" => false,
        _ => cluster::may_make(it, name),
    })
}

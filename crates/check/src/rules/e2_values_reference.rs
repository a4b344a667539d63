//! # Values of a chart name an object that nothing makes
//!
//! Charts take the names of what is there already: `existingSecret`, `existingClaim`, `secretRef`, the
//! Gateway of a route. Where all others that the repository names are made in it, and this one alone is made
//! by nothing and spoken of nowhere else, the pod does not start, or the route has no Gateway.
//!
//! People see: `secret "shop-secrets" not found`, `persistentvolumeclaim "shop" not found`,
//! `CreateContainerConfigError`, a HelmRelease that times out.
//!
//! ## Bad
//! ```yaml
//! values: {envFrom: [{secretRef: {name: shop-secrets}}]}       # the ExternalSecret makes shop-secret
//! ```
//! ## Good
//! ```yaml
//! values: {envFrom: [{secretRef: {name: shop-secret}}]}
//! ```
//! ## When to suppress
//! Where somebody makes the object by hand.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use tiphys_diag::{Diagnostic, Severity, Span, similar_names};
use tiphys_graph::{Object, ObjectScope, Survey};
use tiphys_value::{FieldPath, ObjectExt, Value};

use super::unread_chart_values::place_of;
use crate::{
    Context, Finding, Report, Rule,
    support::{
        app_template, chart_classes,
        dedup::Once,
        made_secrets::made_secret,
        placeholders,
        pods::text,
        scripted_objects::is_spoken_of,
        unused_files,
        value_steps::{Step, path_below},
    },
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "E2-values-reference",
    incident: "E2",
    severity: Severity::Warning,
    title: "values of a chart name an object that nothing makes",
    page: page!("e2_values_reference.rs"),
    check,
};

/// How many names of a kind have to be made in the repository, for each that is not.
const ENOUGH: usize = 5;

/// A name among values.
struct Named<'a> {
    kind: &'static str,
    namespace: &'a str,
    name: &'a str,
    who: String,
    span: Span,
    /// Whether the chart is told that it exists, and so does not make it itself.
    is_existing: bool,
}

/// Whether steps lead to a value that says that something exists.
fn says_existing(steps: &[Step<'_>]) -> bool {
    steps.iter().any(|it| matches!(it, Step::Key(key) if key.starts_with("existing")))
}

fn check(context: &Context<'_>, report: &mut Report) {
    let survey = context.survey.flux.as_deref().unwrap_or(context.survey);
    let mut by_scope: BTreeMap<ObjectScope, Vec<Named<'_>>> = BTreeMap::new();
    if survey.is_of_flux {
        for release in survey.objects.iter().filter(|it| it.key.kind == "HelmRelease") {
            of_release(survey, release, by_scope.entry(release.world()).or_default());
        }
    } else {
        of_applications(context, &mut by_scope);
    }
    let mut once = Once::default();
    nameless(context, &mut once);
    for (scope, named) in &by_scope {
        let made = MadeNames::in_scope(survey, scope);
        named.iter().for_each(|it| of_other_namespace(survey, scope, named, &made, it, &mut once));
        named.iter().for_each(|it| gateway(survey, scope, &made, it, &mut once));
        named.iter().for_each(|it| of_template(survey, &made, it, &mut once));
    }
    for (scope, named) in by_scope.iter().filter(|(scope, _)| matches!(scope, ObjectScope::Cluster(..))) {
        let made = MadeNames::in_scope(survey, scope);
        for kind in ["ConfigMap", "Gateway", "PersistentVolumeClaim"] {
            of_kind(context, kind, named, &made, &mut once);
        }
        if !of_kind(context, "Secret", named, &made, &mut once) {
            unclaimed(context, survey, scope, named, &made, &mut once);
        }
        issuers(context, survey, scope, named, &mut once);
        classes(context, survey, scope, named, &mut once);
    }
    once.report(report);
}

/// Tells of the few objects of a kind that nothing makes, where all others that values name are made.
fn of_kind(
    context: &Context<'_>,
    kind: &str,
    named: &[Named<'_>],
    made: &MadeNames<'_>,
    once: &mut Once,
) -> bool {
    let of_kind = || named.iter().filter(|it| it.kind == kind);
    let are_made: BTreeSet<(&str, &str)> =
        of_kind().filter(|it| made.has(it)).map(|it| (it.namespace, it.name)).collect();
    let lacking: Vec<&Named<'_>> = of_kind().filter(|it| !made.has(it) && !made.may_have(it)).collect();
    let names: BTreeSet<(&str, &str)> = lacking.iter().map(|it| (it.namespace, it.name)).collect();
    if names.is_empty() || are_made.len() < ENOUGH * names.len() {
        return false;
    }
    for it in lacking.into_iter().filter(|it| !is_spoken_of(context, it.name)) {
        let beside = made.names(kind, it.namespace);
        let nearest = similar_names::nearest_slip(it.name, beside.iter().copied());
        let (count, all) =
            (are_made.len(), if names.len() == 1 { "this one alone is not" } else { "this one is not" });
        let diagnostic: Diagnostic = RULE
            .diagnostic(format!(
                "{} names {kind}/{} in {}, which nothing makes",
                it.who, it.name, it.namespace
            ))
            .at(it.span.clone(), "nothing has this name")
            .because(format!("{count} others that values name are made in the repository, {all}"));
        let finding = Finding::new(RULE.incident, diagnostic).likely();
        once.add(it.name, finding.perhaps(it.name, nearest));
    }
    true
}

/// References among values whose name is null: an anchor without a value, a name that was taken out.
fn nameless(context: &Context<'_>, once: &mut Once) {
    for used in context.chart_uses() {
        for (index, values) in used.values.iter().enumerate() {
            each_nameless(values, &mut Vec::new(), &mut |steps| {
                let span = place_of(context, used, index, steps).unwrap_or_else(|| used.span.clone());
                let field = steps.iter().rev().find_map(|step| match step {
                    Step::Key(key) => Some(*key),
                    Step::Index(_) => None,
                });
                let diagnostic: Diagnostic = RULE
                    .diagnostic(format!(
                        "the values of {} have a {} whose name is null",
                        used.by,
                        field.unwrap_or_default()
                    ))
                    .at(span, "names nothing")
                    .because("the API server refuses a pod that takes a key without saying from what");
                once.add(field.unwrap_or_default(), Finding::new(RULE.incident, diagnostic).likely());
            });
        }
    }
}

fn each_nameless<'a>(value: &'a Value, steps: &mut Vec<Step<'a>>, found: &mut dyn FnMut(&[Step<'a>])) {
    const MAX_DEPTH: usize = 32;
    match value {
        _ if steps.len() > MAX_DEPTH => {}
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                steps.push(Step::Index(at));
                each_nameless(item, steps, found);
                steps.pop();
            }
        }
        Value::Object(map) if map.get("enabled") != Some(&Value::Bool(false)) => {
            for (key, below) in map {
                steps.push(Step::Key(key));
                let is_reference = matches!(key.as_str(), "secretKeyRef" | "configMapKeyRef");
                if is_reference && below.get("name") == Some(&Value::Null) && below.get("key").is_some() {
                    found(steps);
                }
                each_nameless(below, steps, found);
                steps.pop();
            }
        }
        _ => {}
    }
}

/// A name that only an object of another namespace has, which nobody there names.
fn of_other_namespace(
    survey: &Survey,
    scope: &ObjectScope,
    named: &[Named<'_>],
    made: &MadeNames<'_>,
    it: &Named<'_>,
    once: &mut Once,
) {
    if matches!(it.kind, "Gateway" | "ClusterIssuer" | "IngressClass" | "StorageClass")
        || it.namespace.is_empty()
        || made.has(it)
        || made.may_make(it)
    {
        return;
    }
    let is_same = |other: &&(&str, &str, &str)| other.0 == it.kind && other.2 == it.name;
    let [(_, other, _)] = made.made.iter().filter(is_same).collect::<Vec<_>>()[..] else { return };
    let is_plain = |text: &str| !text.is_empty() && !placeholders::is_in(text);
    let is_used_there = named.iter().any(|user| user.namespace == *other && user.name == it.name)
        || survey.objects_in(scope).any(|object| {
            object.key.namespace == *other
                && object.key.name != it.name
                && object.value()["spec"].to_string().contains(it.name)
        });
    let Some(maker) = survey
        .objects_in(scope)
        .find(|object| object.key.namespace == *other && made_name(object) == Some((it.kind, it.name)))
        .filter(|_| !is_used_there && is_plain(other) && is_plain(it.namespace))
    else {
        return;
    };
    let diagnostic: Diagnostic = RULE
        .diagnostic(format!(
            "{} names {}/{} in {}, and there is only one in {other}",
            it.who, it.kind, it.name, it.namespace
        ))
        .at(it.span.clone(), format!("looked for in {}", it.namespace))
        .see(survey.start(maker), format!("this one is in {other}, where nobody names it"))
        .because("a pod takes Secrets, ConfigMaps and claims from its own namespace alone")
        .help(format!("put it into {}", it.namespace));
    once.add(it.name, Finding::new(RULE.incident, diagnostic).likely());
}

/// A name that begins as a release of app-template does which makes such an object and calls it otherwise.
fn of_template(survey: &Survey, made: &MadeNames<'_>, it: &Named<'_>, once: &mut Once) {
    if made.has(it) || made.may_have(it) {
        return;
    }
    let makers = made.makers.get(it.namespace).into_iter().flatten();
    let meant = makers.filter(|maker| {
        it.name.strip_prefix(maker.name).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    });
    let Some(maker) = meant.max_by_key(|maker| maker.name.len()) else { return };
    let (Some(names), Some(object)) = (maker.names(it.kind), maker.object) else { return };
    if names.is_empty() {
        return;
    }
    let all: Vec<&str> = names.iter().map(String::as_str).collect();
    let only = names.first().filter(|_| names.len() == 1);
    let diagnostic: Diagnostic = RULE
        .diagnostic(format!("{} names {}/{} in {}, which nothing makes", it.who, it.kind, it.name, it.namespace))
        .at(it.span.clone(), "nothing has this name")
        .see(survey.start(object), format!("this makes {}", all.join(", ")))
        .because("since version 4, app-template calls the only one as the release, and each of several after its key, too");
    let finding = Finding::new(RULE.incident, diagnostic).likely();
    once.add(it.name, finding.perhaps(it.name, only.map(String::as_str)));
}

/// A Gateway of a namespace that nothing is in, where one of the name is in another.
fn gateway(survey: &Survey, scope: &ObjectScope, made: &MadeNames<'_>, it: &Named<'_>, once: &mut Once) {
    if it.kind != "Gateway" || made.has(it) || placeholders::is_in(it.namespace) || it.namespace.is_empty() {
        return;
    }
    let is_in = |object: &Object| {
        let spec = &object.value()["spec"];
        object.key.namespace == it.namespace
            || object.key.namespace.contains("${")
            || object.key.kind == "Namespace" && object.key.name == it.namespace
            || text(spec, "targetNamespace") == it.namespace
    };
    let is_of_app = survey.apps.iter().any(|app| app.application.spec.destination.namespace == it.namespace);
    if is_of_app || survey.objects_in(scope).any(is_in) {
        return;
    }
    let is_same = |object: &&Object| object.key.kind == "Gateway" && object.key.name == it.name;
    let others: Vec<&Object> = survey.objects_in(scope).filter(is_same).collect();
    let [other] = others[..] else { return };
    let diagnostic: Diagnostic = RULE
        .diagnostic(format!(
            "{} names Gateway/{} in {}, and there is only one in {}",
            it.who, it.name, it.namespace, other.key.namespace
        ))
        .at(it.span.clone(), format!("looked for in {}, where nothing is", it.namespace))
        .see(survey.start(other), "this one has the name")
        .because("the route is stored and has no effect: no Gateway serves its hosts")
        .help(format!("write namespace: {}", other.key.namespace));
    once.add(it.name, Finding::new(RULE.incident, diagnostic).likely());
}

/// What an object makes, by kind and name: itself, or the Secret that is made of it.
fn made_name(object: &Object) -> Option<(&str, &str)> {
    match made_secret(object.value()) {
        Some(name) => Some(("Secret", name)),
        None => Some((object.key.kind.as_str(), object.key.name.as_str())),
    }
}

fn of_release<'a>(survey: &'a Survey, release: &'a Object, found: &mut Vec<Named<'a>>) {
    let spec = &release.value()["spec"];
    let Some(values) = spec.get("values") else { return };
    if unused_files::is_in_unused_folder(&release.rendered.location.file) {
        return;
    }
    let target = text(spec, "targetNamespace");
    let namespace = if target.is_empty() { release.key.namespace.as_str() } else { target };
    let mut steps = vec![Step::Key("spec"), Step::Key("values")];
    walk(values, &mut steps, &mut |kind, of, name, steps| {
        let span = survey.span(release, &path_below(FieldPath::default(), steps));
        let namespace = if of.is_empty() { namespace } else { of };
        let is_existing = says_existing(steps);
        found.push(Named { kind, namespace, name, who: release.title(), span, is_existing });
    });
}

fn of_applications<'a>(context: &'a Context<'_>, by_scope: &mut BTreeMap<ObjectScope, Vec<Named<'a>>>) {
    for used in context.chart_uses() {
        let Some(release) = &used.release else { continue };
        let found = by_scope.entry(release.scope.clone()).or_default();
        for (index, values) in used.values.iter().enumerate() {
            walk(values, &mut Vec::new(), &mut |kind, of, name, steps| {
                let span = place_of(context, used, index, steps).unwrap_or_else(|| used.span.clone());
                let namespace = if of.is_empty() { release.namespace.as_str() } else { of };
                let (who, is_existing) = (used.by.clone(), says_existing(steps));
                found.push(Named { kind, namespace, name, who, span, is_existing });
            });
        }
    }
}

/// Is told of a name among values: its kind, its namespace if it has one of its own, itself, where it stands.
type FoundName<'f, 'a> = dyn FnMut(&'static str, &'a str, &'a str, &[Step<'a>]) + 'f;

/// Calls back for each name among values: its kind, its namespace if it has one of its own, itself.
fn walk<'a>(value: &'a Value, steps: &mut Vec<Step<'a>>, found: &mut FoundName<'_, 'a>) {
    const MAX_DEPTH: usize = 32;
    match value {
        Value::Array(items) if steps.len() < MAX_DEPTH => {
            for (at, item) in items.iter().enumerate() {
                steps.push(Step::Index(at));
                walk(item, steps, found);
                steps.pop();
            }
        }
        // What is switched off names nothing.
        Value::Object(map) if steps.len() < MAX_DEPTH && map.get("enabled") != Some(&Value::Bool(false)) => {
            for (key, below) in map {
                steps.push(Step::Key(key));
                named_by(key, below, steps, found);
                walk(below, steps, found);
                steps.pop();
            }
        }
        _ => {}
    }
}

/// The annotation that names the issuer of a certificate.
const ISSUER: &str = "cert-manager.io/cluster-issuer";

/// An issuer that nothing makes, where values name others, which are all made.
fn issuers(
    context: &Context<'_>,
    survey: &Survey,
    scope: &ObjectScope,
    named: &[Named<'_>],
    once: &mut Once,
) {
    const ENOUGH_PLACES: usize = 3;
    let made: BTreeSet<&str> = survey
        .objects_in(scope)
        .filter(|it| it.key.kind == "ClusterIssuer")
        .map(|it| it.key.name.as_str())
        .collect();
    let (known, lacking): (Vec<&Named<'_>>, Vec<&Named<'_>>) =
        named.iter().filter(|it| it.kind == "ClusterIssuer").partition(|it| made.contains(it.name));
    let names: BTreeSet<&str> = lacking.iter().map(|it| it.name).collect();
    if made.is_empty() || made.iter().any(|name| placeholders::is_in(name)) {
        return;
    }
    let is_exception = known.len() >= ENOUGH_PLACES * names.len();
    // A name that goes on as one that is made does is that one, in another form.
    let is_form_of = |name: &str| {
        let is_one = |made: &&&str| name.starts_with(**made) || made.starts_with(name);
        made.iter().any(|it| is_one(&it)) || similar_names::nearest_slip(name, made.iter().copied()).is_some()
    };
    let lacking = lacking.into_iter().filter(|it| is_exception || is_form_of(it.name));
    for it in lacking.filter(|it| !is_spoken_of(context, it.name)) {
        let diagnostic: Diagnostic = RULE
            .diagnostic(format!("{} names ClusterIssuer/{}, which nothing makes", it.who, it.name))
            .at(it.span.clone(), "no issuer has this name")
            .because(
                "without the issuer no certificate is asked for, and the Secret of the Ingress never comes",
            )
            .help(format!("there is {}", made.iter().copied().collect::<Vec<_>>().join(", ")));
        once.add(it.name, Finding::new(RULE.incident, diagnostic).likely());
    }
}

/// The one Secret of a namespace that values name and nothing makes, where exactly one is made in it that
/// nothing names.
fn unclaimed(
    context: &Context<'_>,
    survey: &Survey,
    scope: &ObjectScope,
    named: &[Named<'_>],
    made: &MadeNames<'_>,
    once: &mut Once,
) {
    let secrets = || named.iter().filter(|it| it.kind == "Secret");
    let namespaces: BTreeSet<&str> = secrets().map(|it| it.namespace).collect();
    for namespace in namespaces {
        let here = secrets().filter(|it| it.namespace == namespace);
        let lacking: Vec<&Named<'_>> = here.filter(|it| !made.has(it) && !made.may_have(it)).collect();
        let names: BTreeSet<&str> = lacking.iter().map(|it| it.name).collect();
        let ([name], false) = (&names.iter().copied().collect::<Vec<_>>()[..], made.are_copied) else {
            continue;
        };
        let is_named = |secret: &str| {
            let by_values = named.iter().any(|it| it.name == secret);
            by_values || survey.files.paths().any(|path| speaks_of(survey, path, secret))
        };
        let makers: Vec<(&Object, &str)> = survey
            .objects_in(scope)
            .filter(|it| it.key.namespace == namespace)
            .filter(|it| matches!(it.key.kind.as_str(), "ExternalSecret" | "SealedSecret"))
            .filter_map(|it| Some((it, made_secret(it.value())?)))
            .filter(|(_, secret)| !is_named(secret))
            .collect();
        let (maker, other) = match makers[..] {
            [only] => only,
            _ => {
                let nearest = similar_names::nearest_slip(name, makers.iter().map(|(_, secret)| *secret));
                let Some(near) = makers.iter().find(|(_, secret)| Some(*secret) == nearest) else { continue };
                *near
            }
        };
        if is_spoken_of(context, name) {
            continue;
        }
        for it in lacking {
            let diagnostic: Diagnostic = RULE
                .diagnostic(format!(
                    "{} names Secret/{} in {namespace}, which nothing makes",
                    it.who, it.name
                ))
                .at(it.span.clone(), "nothing has this name")
                .see(survey.start(maker), format!("this makes {other}, which nothing names"))
                .because("a pod that takes a Secret waits for it: CreateContainerConfigError")
                .help(format!("perhaps {other} is meant"));
            once.add(it.name, Finding::new(RULE.incident, diagnostic).likely());
        }
    }
}

/// Whether a file says the name of a Secret otherwise than as that of what makes it.
fn speaks_of(survey: &Survey, path: &str, secret: &str) -> bool {
    let Some(text) = survey.files.text(path).filter(|text| text.contains(secret)) else { return false };
    let is_maker = text.contains("kind: SealedSecret") || text.contains("kind: ExternalSecret");
    let is_about_it = [".sh", ".md", ".txt"].iter().any(|end| path.ends_with(end));
    !is_maker && !is_about_it
}

/// Whether steps lead through the settings of an Ingress.
fn is_below_ingress(steps: &[Step<'_>]) -> bool {
    steps
        .iter()
        .rev()
        .skip(1)
        .any(|it| matches!(it, Step::Key(key) if key.to_ascii_lowercase().contains("ingress")))
}

/// Classes that nothing declares: of Ingresses, where all controllers of the cluster are known and others
/// name theirs; of storage, where one that is declared has a similar name.
fn classes(
    context: &Context<'_>,
    survey: &Survey,
    scope: &ObjectScope,
    named: &[Named<'_>],
    once: &mut Once,
) {
    const ENOUGH_PLACES: usize = 2;
    let of_kind = |kind: &'static str| named.iter().filter(move |it| it.kind == kind);
    let mut tell = |it: &Named<'_>, why: String, near: Option<&str>| {
        if is_spoken_of(context, it.name) {
            return;
        }
        let diagnostic: Diagnostic = RULE
            .diagnostic(format!("{} names {}/{}, which nothing declares", it.who, it.kind, it.name))
            .at(it.span.clone(), "no class has this name")
            .because("what names a class that does not exist waits for it, or is served by nobody")
            .help(why);
        let finding = Finding::new(RULE.incident, diagnostic).likely();
        once.add(it.name, finding.perhaps(it.name, near));
    };
    if of_kind("IngressClass").next().is_some()
        && let Some(known) = chart_classes::of_ingress(context, scope)
    {
        let others = of_kind("IngressClass").filter(|it| known.contains(it.name)).count();
        for it in of_kind("IngressClass").filter(|it| !known.contains(it.name)) {
            let near = similar_names::nearest_slip(it.name, known.iter().map(String::as_str));
            if others >= ENOUGH_PLACES || near.is_some() {
                let all: Vec<&str> = known.iter().map(String::as_str).collect();
                tell(it, format!("the controllers of this cluster have {}", all.join(", ")), near);
            }
        }
    }
    let declared: BTreeSet<&str> = survey
        .objects_in(scope)
        .filter(|it| it.key.kind == "StorageClass")
        .map(|it| it.key.name.as_str())
        .collect();
    for it in of_kind("StorageClass").filter(|it| !declared.contains(it.name)) {
        let near = similar_names::nearest_slip_beside_numbers(it.name, declared.iter().copied());
        if let Some(near) = near {
            tell(it, format!("there is {near}"), Some(near));
        }
    }
}

fn named_by<'a>(key: &str, value: &'a Value, steps: &mut Vec<Step<'a>>, found: &mut FoundName<'_, 'a>) {
    let is_name = |text: &&str| {
        !text.is_empty()
            && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.'))
            && !placeholders::is_in(text)
    };
    let kind = match key {
        "existingSecret" | "existingSecretName" | "secretRef" | "secretKeyRef" => "Secret",
        ISSUER => "ClusterIssuer",
        "existingClaim" => "PersistentVolumeClaim",
        "storageClass" | "storageClassName" => "StorageClass",
        "className" | "ingressClassName" if is_below_ingress(steps) => "IngressClass",
        "configMapKeyRef" | "configMapRef" | "existingConfigMap" | "existingConfigmap" => "ConfigMap",
        "persistence" => {
            for (volume, of) in value.as_object().into_iter().flatten() {
                let kind = match text(of, "type") {
                    "configMap" => "ConfigMap",
                    "secret" => "Secret",
                    _ => continue,
                };
                let is_on = of.get("enabled") != Some(&Value::Bool(false));
                if is_on && is_name(&text(of, "name")) && of.get("optional") != Some(&Value::Bool(true)) {
                    steps.extend([Step::Key(volume), Step::Key("name")]);
                    found(kind, "", text(of, "name"), steps);
                    steps.truncate(steps.len() - 2);
                }
            }
            return;
        }
        "parentRefs" => {
            for (at, parent) in value.as_array().into_iter().flatten().enumerate() {
                let is_gateway = matches!(text(parent, "kind"), "" | "Gateway");
                let (name, of) = (text(parent, "name"), text(parent, "namespace"));
                if is_gateway && is_name(&name) && is_name(&of) {
                    steps.extend([Step::Index(at), Step::Key("name")]);
                    found("Gateway", of, name, steps);
                    steps.truncate(steps.len() - 2);
                }
            }
            return;
        }
        _ => return,
    };
    if value.get("optional") == Some(&Value::Bool(true)) {
        return;
    }
    match value {
        Value::String(name) if is_name(&name.as_str()) => found(kind, "", name, steps),
        Value::Object(_) if is_name(&text(value, "name")) => {
            steps.push(Step::Key("name"));
            found(kind, "", text(value, "name"), steps);
            steps.pop();
        }
        _ => {}
    }
}

/// What the objects of a cluster have, and what they speak of.
struct MadeNames<'a> {
    made: HashSet<(&'a str, &'a str, &'a str)>,
    /// Texts of objects, without the values of releases.
    texts: HashSet<&'a str>,
    /// What makes objects that are not seen, by namespace: it calls them after itself.
    makers: BTreeMap<&'a str, Vec<Maker<'a>>>,
    /// Whether something copies objects from namespace to namespace.
    are_copied: bool,
}

impl<'a> MadeNames<'a> {
    fn in_scope(survey: &'a Survey, scope: &ObjectScope) -> Self {
        let mut all =
            Self { made: HashSet::new(), texts: HashSet::new(), makers: BTreeMap::new(), are_copied: false };
        let versions = app_template::oci_versions(survey);
        for object in survey.objects_in(scope) {
            let key = &object.key;
            all.made.insert((&key.kind, &key.namespace, &key.name));
            let target = made_secret(object.value());
            all.made.extend(target.map(|name| ("Secret", key.namespace.as_str(), name)));
            let maker = maker(object, &versions);
            all.makers.entry(&key.namespace).or_default().extend(maker);
            // What names the release names what its values do.
            if !matches!(key.kind.as_str(), "HelmRelease" | "Application" | "ApplicationSet") {
                gather(object.value(), &mut all.texts, 0);
            }
            let annotations = object.value().at(&["metadata", "annotations"]).and_then(Value::as_object);
            let mut annotations = annotations.into_iter().flat_map(|map| map.keys());
            all.are_copied |= annotations.any(|it| it.contains("reflector") || it.contains("replicat"))
                || matches!(key.kind.as_str(), "ClusterExternalSecret" | "ClusterPolicy");
        }
        // Those of Flux are there as HelmReleases.
        for app in survey.apps.iter().filter(|app| !app.is_rendered() && !survey.is_of_flux) {
            let namespace = app.application.spec.destination.namespace.as_str();
            all.makers.entry(namespace).or_default().push(Maker::of_anything(app.name()));
        }
        all
    }

    fn has(&self, named: &Named<'_>) -> bool {
        let mut makers = self.makers.get(named.namespace).into_iter().flatten();
        self.made.contains(&(named.kind, named.namespace, named.name))
            || makers.any(|maker| maker.names(named.kind).is_some_and(|names| names.contains(named.name)))
    }

    /// Whether something that is not seen may make an object.
    fn may_have(&self, named: &Named<'_>) -> bool {
        // A release may bring the Gateway of a namespace of which none is seen.
        let is_unseen = named.kind == "Gateway" && self.names("Gateway", named.namespace).is_empty();
        is_unseen || self.texts.contains(named.name) || self.may_make(named)
    }

    /// Whether a copier, a release or an operator may make an object in the namespace in which it is looked
    /// for.
    fn may_make(&self, named: &Named<'_>) -> bool {
        let is_begun = |maker: &Maker<'_>| {
            let rest = named.name.strip_prefix(maker.name);
            let titles = [format!("Application {}", maker.name), format!("HelmRelease/{} in", maker.name)];
            let is_itself = named.is_existing && titles.iter().any(|title| named.who.starts_with(title));
            !is_itself
                && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
                && maker.kinds.as_ref().is_none_or(|kinds| kinds.contains(&named.kind))
                && maker.names(named.kind).is_none_or(|names| names.contains(named.name))
        };
        let of_namespace = self.makers.get(named.namespace);
        let is_open =
            |(_, namespace, name): &(&str, &str, &str)| *namespace == named.namespace && name.contains("${");
        self.are_copied && matches!(named.kind, "ConfigMap" | "Secret")
            || of_namespace.is_some_and(|makers| named.kind != "Gateway" && makers.iter().any(is_begun))
            || self.made.iter().any(is_open)
    }

    /// The names of a kind in a namespace.
    fn names(&self, kind: &str, namespace: &str) -> BTreeSet<&'a str> {
        let of_kind = self.made.iter().filter(|(of, at, _)| *of == kind && *at == namespace);
        of_kind.map(|(_, _, name)| *name).collect()
    }
}

/// What makes objects that are not seen.
struct Maker<'a> {
    name: &'a str,
    /// The kinds of what it makes; `None` if nobody knows.
    kinds: Option<Vec<&'static str>>,
    /// The kinds of which it is known what it calls what it makes, and those names.
    names: Vec<(&'static str, BTreeSet<String>)>,
    /// Itself.
    object: Option<&'a Object>,
}

impl<'a> Maker<'a> {
    /// One of which nobody knows what it makes.
    fn of_anything(name: &'a str) -> Self {
        Self { name, kinds: None, names: Vec::new(), object: None }
    }

    /// What it calls its objects of a kind, if that is known.
    fn names(&self, kind: &str) -> Option<&BTreeSet<String>> {
        self.names.iter().find(|(of, _)| *of == kind).map(|(_, names)| names)
    }
}

/// An object as a maker of others, if it is one: a release, or a custom resource of an operator.
fn maker<'a>(object: &'a Object, versions: &BTreeMap<(&str, &str), &'a str>) -> Option<Maker<'a>> {
    // What these make has the name that they say.
    const PRECISE: [&str; 6] = [
        "bitnami.com",
        "cert-manager.io",
        "external-secrets.io",
        "gateway.networking.k8s.io",
        "kustomize.toolkit.fluxcd.io",
        "source.toolkit.fluxcd.io",
    ];
    let name = object.key.name.as_str();
    if object.key.kind != "HelmRelease" {
        let is_operated = object.key.group.contains('.')
            && !object.key.group.ends_with(".k8s.io")
            && !PRECISE.contains(&object.key.group.as_str());
        return is_operated.then_some(Maker::of_anything(name));
    }
    let spec = &object.value()["spec"];
    let chart = spec.str_at(&["chart", "spec", "chart"]).or(spec.str_at(&["chartRef", "name"]));
    if !chart.is_some_and(|chart| chart.ends_with("app-template")) {
        return Some(Maker::of_anything(name));
    }
    // This chart makes what its values have.
    let of = |key: &str| spec.at(&["values", key]).and_then(Value::as_object);
    let makes_claims = of("persistence").is_some_and(|map| map.values().any(app_template::makes_claim));
    let makes = [
        ("ConfigMap", of("configMaps").is_some()),
        ("PersistentVolumeClaim", makes_claims),
        ("Secret", of("secrets").is_some()),
    ];
    let kinds = makes.into_iter().filter(|(_, is_made)| *is_made).map(|(kind, _)| kind).collect();
    let mut names = Vec::new();
    if let (Some(version), Some(values)) = (app_template::version_of(object, versions), spec.get("values")) {
        let of_key = |key: &str, is_made: &dyn Fn(&Value) -> bool| {
            app_template::part_names(app_template::release_name(object), values, version, key, is_made)
        };
        let known = [
            ("ConfigMap", of_key("configMaps", &|_| true)),
            ("PersistentVolumeClaim", of_key("persistence", &app_template::makes_claim)),
            ("Secret", of_key("secrets", &|_| true)),
        ];
        names.extend(known.into_iter().filter_map(|(kind, names)| Some((kind, names?))));
    }
    Some(Maker { name, kinds: Some(kinds), names, object: Some(object) })
}

fn gather<'a>(value: &'a Value, texts: &mut HashSet<&'a str>, depth: usize) {
    const MAX_DEPTH: usize = 48;
    match value {
        _ if depth > MAX_DEPTH => {}
        Value::String(text) => drop(texts.insert(text)),
        Value::Array(items) => items.iter().for_each(|item| gather(item, texts, depth + 1)),
        Value::Object(map) => map.values().for_each(|below| gather(below, texts, depth + 1)),
        _ => {}
    }
}

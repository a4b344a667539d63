//! # Two Applications render one object
//!
//! Two Applications of one cluster want the same object. Each applies its own version and marks the
//! object as its own, so that the other is OutOfSync for ever; with self-heal they overwrite each other
//! without end, and where one of them prunes, the object is deleted under the other.
//!
//! People see: `SharedResourceWarning: ConfigMap/settings is part of applications argocd/a and b`.
//!
//! Hooks are left out (each run makes its own), and so are Namespaces with the same content that neither
//! Application prunes, definitions (`C5-crd-twice`), and Applications of clusters that the repository does
//! not name. Where two Applications come from different roots in different folders, or are themselves roots
//! that declare the same Applications or sync one source in two ways, it is a warning: one of them may be of
//! a generation that is not applied any more, or people choose one of them for each cluster. Two
//! Kustomizations or HelmReleases of Flux in one cluster are told of, too, as a warning, where the two
//! differ; Namespaces are left out there, and what says `kustomize.toolkit.fluxcd.io/ssa`.
//!
//! ## Bad
//! ```yaml
//! # apps/a.yaml and apps/b.yaml
//! spec: {source: {path: shared}}
//! ```
//! ## Good
//! One Application renders the object; the other one comes in a later wave and relies on it.
//!
//! ## When to suppress
//! Never for objects with content. Two Applications may both declare an empty Namespace when neither prunes
//! it.

use std::collections::{BTreeMap, BTreeSet};

use tiphys_diag::{Diagnostic, Severity};
use tiphys_gocompat::time::Duration;
use tiphys_graph::{App, AppId, Declaration, Object, Owner, Survey};
use tiphys_value::{ObjectExt, ResourceKey, Value};

use super::d2_cannot_render;
use crate::{Context, Report, Rule};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "B3-two-owners",
    incident: "B3",
    severity: Severity::Error,
    title: "one object in the rendered sets of two Applications",
    page: page!("b3_two_owners.rs"),
    check,
};

/// The objects that two Applications share.
type Pairs<'a> = BTreeMap<(AppId, AppId), Vec<(&'a Object, &'a Object)>>;

fn check(context: &Context<'_>, report: &mut Report) {
    let survey = context.survey;
    let mut first: BTreeMap<(usize, &str, &ResourceKey), &Object> = BTreeMap::new();
    let mut pairs: Pairs<'_> = BTreeMap::new();
    for object in survey.objects.iter().filter(|object| is_relevant(object)) {
        let (Some(environment), Owner::App(own)) = (object.environment, object.owner) else { continue };
        let place = (environment.0, object.cluster.as_ref(), &object.key);
        let earlier = *first.entry(place).or_insert(object);
        let Owner::App(other) = earlier.owner else { continue };
        let is_shared = survey.is_of_flux && is_shared(earlier, object);
        if other != own && !is_shared && !is_harmless(survey, earlier, object) {
            pairs.entry((other, own)).or_default().push((earlier, object));
        }
    }
    let choices = choices(survey, &pairs);
    for ((one, other), shared) in &pairs {
        let (one, other) = (survey.app(*one), survey.app(*other));
        let roots = (survey.root_of(one).id, survey.root_of(other).id);
        let is_sure = survey.is_side_by_side(one, other) && !choices.contains(&roots);
        if one.name() != other.name() && !survey.is_symbolic(one) && !survey.is_symbolic(other) {
            add(context, report, (one, other), shared, is_sure);
        }
    }
}

/// The pairs of Applications that nothing renders and that declare the same Applications, or are one but for
/// their name and for how they are synced: each may be meant for another cluster, and what is below them as
/// well.
fn choices(survey: &Survey, pairs: &Pairs<'_>) -> BTreeSet<(AppId, AppId)> {
    let is_root =
        |app: &AppId| matches!(survey.app(*app).declaration, Declaration::File | Declaration::Unit(_));
    let is_app =
        |object: &Object| object.key.group == tiphys_model::names::GROUP && object.key.kind == "Application";
    let spec = |app: &AppId| &survey.app(*app).application.spec;
    let both = pairs.iter().filter(|((one, other), shared)| {
        // One source twice, to be synced in two ways.
        let is_variant = || {
            spec(one).effective_sources() == spec(other).effective_sources()
                && spec(one).sync_policy != spec(other).sync_policy
        };
        let is_choice = || shared.iter().any(|(object, _)| is_app(object)) || is_variant();
        is_root(one) && is_root(other) && is_choice()
    });
    both.flat_map(|((one, other), _)| [(*one, *other), (*other, *one)]).collect()
}

fn is_relevant(object: &Object) -> bool {
    object.hooks.is_empty()
        && !object.key.name.is_empty()
        && object.key.kind != "CustomResourceDefinition"
        && object.value().annotation(tiphys_model::names::HELM_HOOK).is_none()
}

/// Whether Flux is told, or used, to have an object from several: a namespace that each brings, and what is
/// merged or only made where it is missing (Flux docs, "Controlling the apply behavior of resources").
fn is_shared(one: &Object, other: &Object) -> bool {
    const MARKS: [&str; 2] = ["kustomize.toolkit.fluxcd.io/ssa", "kustomize.toolkit.fluxcd.io/reconcile"];
    let is_marked = |object: &Object| {
        let value = object.value();
        MARKS.iter().any(|mark| value.annotation(mark).is_some() || value.label(mark).is_some())
    };
    one.key.kind == "Namespace"
        || is_marked(one)
        || is_marked(other)
        || one.key.name.contains("${")
        || says_the_same(one, other)
}

/// Whether two objects differ in no more than labels and annotations: a component that several bring.
fn says_the_same(one: &Object, other: &Object) -> bool {
    let (Some(own), Some(others)) = (one.value().as_object(), other.value().as_object()) else {
        return false;
    };
    let is_of_flux = one.key.group.ends_with("fluxcd.io");
    let is_equal = |one: &Value, other: &Value| if is_of_flux { is_same(one, other) } else { one == other };
    own.len() == others.len()
        && own
            .iter()
            .all(|(key, value)| key == "metadata" || others.get(key).is_some_and(|it| is_equal(value, it)))
}

/// Whether two values are one to Flux: `1h` and `1h0m0s` are one duration.
fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Object(own), Value::Object(others)) => {
            own.len() == others.len()
                && own.iter().all(|(key, value)| others.get(key).is_some_and(|it| is_same(value, it)))
        }
        (Value::Array(own), Value::Array(others)) => {
            own.len() == others.len() && own.iter().zip(others).all(|(one, other)| is_same(one, other))
        }
        (Value::String(one), Value::String(other)) if one != other => {
            let duration = |text: &str| Duration::parse(text).ok();
            duration(one).is_some_and(|it| Some(it) == duration(other))
        }
        (one, other) => one == other,
    }
}

/// A namespace that both declare alike and neither deletes.
fn is_harmless(survey: &Survey, one: &Object, other: &Object) -> bool {
    let prunes = |object: &Object| {
        let automated = survey.app_of(object).and_then(|app| app.application.automated_policy());
        automated.is_some_and(|automated| automated.prune == Some(true))
    };
    let alike = ["labels", "annotations"]
        .iter()
        .all(|field| one.value().at(&["metadata", field]) == other.value().at(&["metadata", field]));
    one.key.kind == "Namespace" && alike && !prunes(one) && !prunes(other)
}

fn add(
    context: &Context<'_>,
    report: &mut Report,
    (one, other): (&App, &App),
    shared: &[(&Object, &Object)],
    is_sure: bool,
) {
    const SHOWN: usize = 3;
    let (earlier, object) = shared[0];
    let verb = if shared.len() == 1 { "is" } else { "are" };
    let more = match shared.len() - 1 {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let is_of_flux = context.survey.is_of_flux;
    let kind = |app: &App| match (
        is_of_flux,
        app.application.spec.source.as_ref().and_then(|it| it.helm.as_ref()),
    ) {
        (false, _) => "Application",
        (true, None) => "Kustomization",
        (true, Some(_)) => "HelmRelease",
    };
    let message = format!(
        "{}{more} {verb} rendered by {} {} and by {} {}",
        object.title(),
        kind(one),
        one.name(),
        kind(other),
        other.name()
    );
    let mut diagnostic = RULE
        .diagnostic(message)
        .at(context.survey.start(object), format!("{} renders it here", other.name()))
        .see(context.survey.start(earlier), format!("{} renders it here", one.name()));
    for (_, also) in shared.iter().skip(1).take(SHOWN) {
        diagnostic = diagnostic.see(context.survey.start(also), format!("both render {} too", also.title()));
    }
    if is_of_flux {
        let diagnostic = diagnostic
            .because("each of the two applies it again after the other, and where one prunes it, it is gone for both")
            .help("render it in one of the two only");
        let diagnostic = Diagnostic { severity: Severity::Warning, ..diagnostic };
        report.add(RULE.finding(context, object, diagnostic).likely());
        return;
    }
    let diagnostic = diagnostic
        .because("each of the two marks the object as its own, and finds it OutOfSync once the other has applied it")
        .help("render it in one of the two only");
    if is_sure {
        report.add(RULE.finding(context, object, diagnostic));
        return;
    }
    let diagnostic = diagnostic.help("or, if one of the two is not applied any more, remove its file");
    // Of two that other Applications lead past, one is most often not applied.
    let is_aside = [one, other].iter().any(|app| d2_cannot_render::is_set_aside(context, app));
    let severity = if is_aside { Severity::Info } else { Severity::Warning };
    let diagnostic = Diagnostic { severity, ..diagnostic };
    report.add(RULE.finding(context, object, diagnostic).likely());
}

//! # A Secret has two makers, or looks like a member of an Application that it is none of
//!
//! A controller makes a Secret from another object, and something else makes it too, or deletes it:
//!
//! - The ExternalSecret's labels are copied to the Secret. Where Argo CD tracks by label, its tracking label
//!   is among them. With `creationPolicy: Merge` or `Orphan` the Secret has no owner reference, so that it
//!   looks like an object of the Application that has left Git: it is pruned, again and again.
//! - `creationPolicy: Merge` writes only into a Secret that is there, and nothing in the repository makes it.
//! - Two ExternalSecrets have one target, two Certificates one Secret, or two controllers make it; only one
//!   may own it.
//! - A chart or manifest renders the Secret, and a controller makes the same one: each overwrites the other.
//!
//! People see: a Secret that disappears within seconds, `secrets "argocd-secret" not found`, an
//! ExternalSecret with `SecretSyncedError`, an Application that is OutOfSync for ever.
//!
//! ## Bad
//! ```yaml
//! kind: ExternalSecret
//! spec: {target: {name: argocd-secret, creationPolicy: Merge}}
//! # argocd-cm: application.resourceTrackingMethod: label
//! ```
//! ## Good
//! `application.resourceTrackingMethod: annotation`, or a `target.template.metadata.labels` of its own; one
//! maker for each Secret.
//!
//! ## When to suppress
//! When an installer outside of the repository makes the Secret.

use tiphys_diag::Severity;
use tiphys_graph::{
    App, Object, Owner,
    edges::{CreationPolicy, Product},
};
use tiphys_model::TrackingMethod;
use tiphys_value::ObjectExt;

use crate::{Context, Report, Rule};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "B4-copied-tracking-label",
    incident: "B4",
    severity: Severity::Error,
    title: "a Secret with two makers, or that bears a copied tracking label",
    page: page!("b4_copied_tracking_label.rs"),
    check,
};

fn check(context: &Context<'_>, report: &mut Report) {
    let analyses = context.analyses();
    let mut products: Vec<&Product> = analyses.edges.all_products().collect();
    products.sort_by_key(|product| (product.from, product.field.clone()));
    for product in products.into_iter().filter(|product| product.key.kind == "Secret") {
        let maker = context.survey.object(product.from);
        if !matches!(maker.owner, Owner::App(_)) {
            continue;
        }
        let rendered: Vec<&Object> = analyses
            .edges
            .index
            .objects_at(maker, &product.key)
            .iter()
            .map(|id| context.survey.object(*id))
            .collect();
        match product.policy {
            CreationPolicy::Merged | CreationPolicy::Orphaned => {
                let labelled = add_labelled(context, report, product, maker, &rendered);
                let made = !rendered.is_empty() || analyses.edges.products(maker, &product.key).len() > 1;
                if !labelled && !made && product.policy == CreationPolicy::Merged {
                    add_missing(context, report, product, maker);
                }
            }
            CreationPolicy::Owned if adds_only(maker) => {}
            CreationPolicy::Owned => {
                if let Some(other) = rendered.first() {
                    add_twice(context, report, product, maker, other);
                }
                add_twin(context, report, product, maker);
                add_of_argocd(context, report, product, maker);
            }
        }
    }
}

/// Whether a SealedSecret only adds its keys to a Secret that may be another's (sealed-secrets, "Patching
/// existing secrets").
fn adds_only(maker: &Object) -> bool {
    const PATCHES: &str = "sealedsecrets.bitnami.com/patch";
    let annotation = maker.value().at(&["spec", "template", "metadata", "annotations", PATCHES]);
    annotation.and_then(|it| it.as_str()) == Some("true")
}

fn name(product: &Product) -> String {
    format!("Secret/{} in {}", product.key.name, product.key.namespace)
}

/// Reports a copied tracking label, if tracking is by label.
fn add_labelled(
    context: &Context<'_>,
    report: &mut Report,
    product: &Product,
    maker: &Object,
    rendered: &[&Object],
) -> bool {
    let survey = context.survey;
    let template = maker.value().at(&["spec", "target", "template", "metadata"]);
    let Some(environment) = maker.environment.filter(|_| template.is_none() && rendered.is_empty()) else {
        return false;
    };
    let settings = context.analyses().settings.of_environment(survey, environment);
    const KEY: &str = "application.resourceTrackingMethod";
    let setting = settings.into_iter().find(|setting| setting.data.contains_key(KEY));
    let Some(setting) = setting.filter(|it| it.read().tracking.method == TrackingMethod::Label) else {
        return false;
    };
    let prunes = survey.app_of(maker).and_then(|app| app.application.automated_policy());
    let prunes = prunes.is_some_and(|automated| automated.prune == Some(true));
    let message = format!(
        "{} gets the tracking label of {} and no owner: it {}",
        name(product),
        maker.title(),
        if prunes { "is pruned as soon as it is made" } else { "keeps its Application OutOfSync" }
    );
    let mut diagnostic = RULE
        .diagnostic(message)
        .at(survey.span(maker, &product.field), "its labels are copied, and no owner reference is set")
        .see(setting.span(&survey.files, KEY, KEY), "objects are tracked by a label")
        .because("the Secret bears the label of an Application that does not render it, like an object that has left Git")
        .help("set `application.resourceTrackingMethod: annotation`")
        .help("or give the Secret labels of its own: `target.template.metadata.labels`");
    if !prunes {
        diagnostic.severity = Severity::Warning;
    }
    report.add(RULE.finding(context, maker, diagnostic));
    true
}

fn add_missing(context: &Context<'_>, report: &mut Report, product: &Product, maker: &Object) {
    // What was not seen may make it.
    let is_hidden = context.survey.apps.iter().any(|app| {
        !app.is_rendered()
            && Some(app.environment) == maker.environment
            && app.application.spec.destination.namespace == maker.key.namespace
    });
    if is_hidden {
        return;
    }
    let message =
        format!("{} merges into {}, which nothing in the repository makes", maker.title(), name(product));
    let mut diagnostic = RULE
        .diagnostic(message)
        .at(context.survey.span(maker, &product.field.key("creationPolicy")), "writes only into a Secret that is there")
        .because("without the Secret the ExternalSecret stays at SecretSyncedError; if it is ever deleted, nothing makes it again")
        .help("use `creationPolicy: Owner`, or render the Secret");
    diagnostic.severity = Severity::Info;
    report.add(RULE.finding(context, maker, diagnostic).likely());
}

/// Reports two objects that each make one Secret and own it.
fn add_twin(context: &Context<'_>, report: &mut Report, product: &Product, maker: &Object) {
    const MAKERS: [&str; 3] = ["Certificate", "ExternalSecret", "SealedSecret"];
    let makers = context.analyses().edges.products(maker, &product.key).iter();
    let mut others =
        makers.filter(|it| it.policy == CreationPolicy::Owned).map(|it| context.survey.object(it.from));
    let is_maker = |object: &Object| MAKERS.contains(&object.key.kind.as_str());
    let is_twin = |other: &&Object| is_maker(maker) && is_maker(other) && maker.key != other.key;
    let Some(other) = others.find(is_twin).filter(|other| maker.id < other.id) else { return };
    let why = match (maker.key.kind.as_str(), other.key.kind.as_str()) {
        ("ExternalSecret", "ExternalSecret") => {
            "the controller lets one of them own the Secret and refuses the other: `target is owned by another ExternalSecret`"
        }
        ("Certificate", "Certificate") => {
            "each finds that the certificate in the Secret is not its own, and has a new one issued, until the issuer's limit is reached"
        }
        _ => {
            "each controller owns the Secret that it makes, and refuses or overwrites the other's: `already exists and is not managed by …`"
        }
    };
    let message = format!("{} and {} both make {}", maker.title(), other.title(), name(product));
    let mut diagnostic = RULE
        .diagnostic(message)
        .at(context.survey.span(other, &product.field), "made from this")
        .see(context.survey.span(maker, &product.field), "and from this")
        .because(why)
        .help("give each a target of its own, or make the Secret from one of them");
    if (maker.key.kind.as_str(), other.key.kind.as_str()) != ("ExternalSecret", "ExternalSecret") {
        diagnostic.severity = Severity::Warning;
    }
    report.add(RULE.finding(context, other, diagnostic));
}

/// Reports the Secret of Argo CD itself where its chart makes it, too, and so does something else.
fn add_of_argocd(context: &Context<'_>, report: &mut Report, product: &Product, maker: &Object) {
    if product.key.name != "argocd-secret" {
        return;
    }
    let is_of_maker = |app: &App| {
        Some(app.environment) == maker.environment
            && app.application.spec.destination.namespace == product.key.namespace
    };
    let mut charts = context.chart_uses().iter().filter(|chart| chart.chart == "argo-cd");
    let both = charts.find(|chart| {
        let is_left_out = chart.text(&["configs", "secret", "createSecret"]).is_some_and(|it| it == "false");
        !is_left_out && chart.app.is_some_and(|id| is_of_maker(context.survey.app(id)))
    });
    let Some(chart) = both else { return };
    let message =
        format!("{} is made by {} and by chart argo-cd of {}", name(product), maker.title(), chart.by);
    let mut diagnostic = RULE
        .diagnostic(message)
        .at(context.survey.span(maker, &product.field), "made from this")
        .see(chart.span.clone(), "the chart makes it, unless configs.secret.createSecret is false")
        .because("Argo CD keeps its own keys in this Secret: whoever replaces or deletes it takes them away, and the server does not start")
        .help("set configs.secret.createSecret: false and creationPolicy: Merge with a Secret that is there, or leave it to the chart");
    diagnostic.severity = Severity::Warning;
    report.add(RULE.finding(context, maker, diagnostic));
}

fn add_twice(context: &Context<'_>, report: &mut Report, product: &Product, maker: &Object, other: &Object) {
    // A template of the controller's product, as kubeseal leaves it beside, has nothing in it to fight over.
    let filled = ["data", "stringData"].iter().any(|field| {
        other.value().at(&[field]).and_then(|data| data.as_object()).is_some_and(|data| !data.is_empty())
    });
    if !filled || !other.hooks.is_empty() {
        return;
    }
    let message = format!("{} is rendered, and made by {} too", name(product), maker.title());
    let mut diagnostic = RULE
        .diagnostic(message)
        .at(context.survey.start(other), "rendered here")
        .see(context.survey.span(maker, &product.field), "made from this")
        .because("the engine and the controller overwrite each other's data")
        .help("leave it to one of the two");
    diagnostic.severity = Severity::Warning;
    report.add(RULE.finding(context, other, diagnostic));
}

//! # Two Applications bring one definition
//!
//! The same CustomResourceDefinition comes with a chart and with a central folder, or with two charts. If the
//! two differ, each Application puts its own version in place of the other's, without end; and when one of
//! the two is deleted or prunes it, all custom resources of that kind are deleted, also those of the other.
//!
//! People see: `SharedResourceWarning: CustomResourceDefinition/… is part of applications argocd/a and b`,
//! and an Application that is never Synced.
//!
//! ## Bad
//! ```yaml
//! # Application crds renders certificates.cert-manager.io
//! # Application cert-manager renders it too: crds.enabled=true
//! ```
//! ## Good
//! One of the two leaves the definitions out: `helm.skipCrds: true`, `crds.enabled: false`.
//!
//! ## When to suppress
//! When both come from one source at one revision, and neither prunes.

use std::collections::BTreeMap;

use tiphys_diag::Severity;
use tiphys_graph::{App, AppId, Object, Outcome, Owner};
use tiphys_model::ApplicationSource;
use tiphys_value::{FieldPath, Location, ObjectExt, Value};

use crate::{
    Context, Finding, Report, Rule,
    support::{chart_crds::Defining, known_charts},
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "C5-crd-twice",
    incident: "C5",
    severity: Severity::Error,
    title: "one CustomResourceDefinition in the rendered sets of two Applications",
    page: page!("c5_crd_twice.rs"),
    check,
};

fn check(context: &Context<'_>, report: &mut Report) {
    rendered(context, report);
    report_unseen_charts(context, report);
}

/// Charts that were not seen but are known to bring definitions that another Application brings too.
fn report_unseen_charts(context: &Context<'_>, report: &mut Report) {
    for app in context.survey.apps.iter().filter(|app| matches!(app.outcome, Outcome::Unseen(_))) {
        for source in app.application.spec.effective_sources() {
            let Some(known) = Defining::find(chart_name(&source)) else { continue };
            if known_charts::leaves_out_crds(&source) || !known.brings(&known_charts::inline_values(&source))
            {
                continue;
            }
            let others =
                context.survey.apps.iter().filter(|other| other.id != app.id && other.is_beside(app));
            if let Some((other, place)) =
                others.into_iter().find_map(|other| Some((other, definitions_in(context, other, known)?)))
            {
                report.add(of_chart(context, app, known, other, &place));
            }
        }
    }
}

/// The chart that a source installs: its name in a chart repository, or the folder of a repository of its
/// own.
fn chart_name(source: &ApplicationSource) -> &str {
    let named = if source.chart.is_empty() { source.path.trim_end_matches('/') } else { &source.chart };
    named.rsplit('/').next().unwrap_or_default()
}

/// Where an Application brings definitions of a chart's group: as objects, or by an address that a
/// kustomization of it names.
fn definitions_in(context: &Context<'_>, app: &App, known: &Defining) -> Option<Location> {
    let survey = context.survey;
    let defines = |object: &&Object| {
        let text = |keys: &[&str]| object.value().str_at(keys).unwrap_or_default();
        object.key.kind == "CustomResourceDefinition"
            && known.defines(text(&["spec", "group"]), text(&["spec", "names", "kind"]))
    };
    if let Some(object) = survey.objects_of(app.id).find(defines) {
        return Some(object.rendered.location.clone());
    }
    let kustomizations =
        app.read.iter().filter(|path| tiphys_kustomize::FILE_NAMES.contains(&tiphys_vfs::base_name(path)));
    kustomizations.into_iter().find_map(|path| {
        let text = survey.files.text(path)?;
        let content = survey.files.value(path)?;
        let entries = content.get("resources").and_then(Value::as_array)?;
        let entry = entries.iter().filter_map(Value::as_str).find(|entry| {
            entry.contains("://")
                && entry.to_lowercase().contains("crd")
                && (entry.contains(known.address) || entry.contains(known.group()))
        })?;
        let line = text.lines().position(|line| line.contains(entry))?;
        Some(Location::new(path.clone(), u32::try_from(line + 1).unwrap_or(u32::MAX), 0))
    })
}

fn of_chart(context: &Context<'_>, app: &App, known: &Defining, other: &App, place: &Location) -> Finding {
    let spec = FieldPath::default().key("spec");
    let field =
        if app.application.spec.has_multiple_sources() { spec.key("sources") } else { spec.key("source") };
    let (chart, group) = (known.chart, known.group());
    let message = format!(
        "definitions of {group} are brought by chart {chart} of Application {} and by Application {}",
        app.name(),
        other.name()
    );
    let mut diagnostic = RULE
        .diagnostic(message)
        .at(context.survey.app_span(app, &field), "the chart brings its definitions unless it is told not to")
        .see(context.survey.files.span(place), format!("{} brings them here", other.name()))
        .because("each puts its version in place of the other's; when one is deleted, all resources of the kind go with it")
        .help("leave the definitions out in one of the two, such as with `helm.skipCrds: true`");
    diagnostic.severity = Severity::Warning;
    Finding::new(RULE.incident, diagnostic).app(app.name()).likely()
}

fn rendered(context: &Context<'_>, report: &mut Report) {
    let index = &context.analyses().edges.index;
    let mut first: BTreeMap<(usize, &str), &Object> = BTreeMap::new();
    let mut pairs: BTreeMap<(AppId, AppId), Vec<(&Object, &Object)>> = BTreeMap::new();
    let definitions = context.survey.objects.iter().filter(|it| it.key.kind == "CustomResourceDefinition");
    for object in definitions {
        let Owner::App(own) = object.owner else { continue };
        let earlier = *first.entry((index.scope(object.id), &object.key.name)).or_insert(object);
        match earlier.owner {
            Owner::App(other) if other != own => {
                pairs.entry((other, own)).or_default().push((earlier, object))
            }
            _ => {}
        }
    }
    for ((one, other), twice) in pairs {
        let (earlier, object) = twice[0];
        let (one, other) = (context.survey.app(one), context.survey.app(other));
        let is_sure = context.survey.is_side_by_side(one, other);
        let (one, other) = (one.name(), other.name());
        // One of the two is declared a second time, in another way.
        if one == other {
            continue;
        }
        let more = match twice.len() - 1 {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let message = format!(
            "definition {}{more} is brought by Application {one} and by Application {other}",
            object.key.name
        );
        let same = twice.iter().all(|(one, other)| one.value() == other.value());
        let mut diagnostic = RULE
            .diagnostic(message)
            .at(context.survey.start(object), format!("{other} renders it here"))
            .see(context.survey.start(earlier), format!("{one} renders it here"))
            .because("each puts its version in place of the other's; when one is deleted, all resources of the kind go with it")
            .help("leave the definitions out in one of the two, such as with `helm.skipCrds: true`");
        if same || !is_sure {
            diagnostic.severity = Severity::Warning;
        }
        report.add(RULE.finding(context, object, diagnostic));
    }
}

//! # A custom resource comes before the chart that defines its kind
//!
//! An Application has custom resources whose definition comes with a chart of another Application, in a later
//! wave or in no order at all. The API server does not know the kind yet and refuses them. Where the
//! Application that installs the chart is declared beside the resource itself, in one sync, it is worse: the
//! engine asks the API server about every object before it applies the first, so that the sync fails, the
//! Application is not created, and the definition never comes. This rule speaks where the chart could not be
//! looked at and is known for its definitions; what could be rendered is judged by `C5-cr-before-crd`.
//!
//! People see: `no matches for kind "ClusterIssuer" in version "cert-manager.io/v1"`, `The Kubernetes API
//! could not find cert-manager.io/ClusterIssuer for requested resource … Make sure the "ClusterIssuer" CRD is
//! installed on the destination cluster.`, `one or more synchronization tasks are not valid`.
//!
//! ## Bad
//! ```yaml
//! # wave 0: Application shop with an ExternalSecret
//! # wave 5: Application external-secrets with the chart
//! ```
//! ## Good
//! The Application with the chart has the earlier wave; and what stands beside it says
//! ```yaml
//! metadata: {annotations: {argocd.argoproj.io/sync-options: SkipDryRunOnMissingResource=true}}
//! ```
//! ## When to suppress
//! When the definitions are there before the first sync, from outside of the repository.

use std::collections::{BTreeMap, HashSet};

use tiphys_diag::Severity;
use tiphys_graph::{
    App, AppId, Declaration, Object, ObjectId,
    order::{Meeting, Relation},
    tools::{Action, Component},
    waits::retries,
};
use tiphys_model::names;
use tiphys_value::ObjectExt;

use crate::{
    Context, Finding, Report, Rule, rule_helpers,
    support::{chart_crds::Defining, chart_uses::ChartUse, sync_options},
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "C5-cr-before-chart",
    incident: "C5",
    severity: Severity::Warning,
    title: "custom resources are synced before or beside the chart that defines their kind",
    page: page!("c5_cr_before_chart.rs"),
    check,
};

/// An Application whose chart defines kinds.
struct Provider<'a> {
    app: &'a App,
    /// Its declaration in what another Application renders.
    declared: Option<ObjectId>,
    /// Whether that is an ApplicationSet, which yields it later.
    is_of_set: bool,
    /// What it defines; nothing where it may be everything.
    chart: Option<&'static Defining>,
    used: Option<&'a ChartUse>,
}

/// How an object comes too early.
#[derive(Clone, Copy)]
enum Early {
    /// One operation brings both.
    Beside(Meeting),
    /// In the order of an operation above.
    Before(Meeting),
    /// Nothing orders the two, and the sync is not repeated.
    Unordered(Meeting),
}

fn check(context: &Context<'_>, report: &mut Report) {
    let providers = providers(context);
    if providers.is_empty() {
        return;
    }
    let defined = defined(context);
    let mut found: BTreeMap<(AppId, AppId), (&Object, &Provider<'_>, Early, usize)> = BTreeMap::new();
    for object in &context.survey.objects {
        let Some(app) = context.survey.app_of(object) else { continue };
        let kind = (object.key.group.as_str(), object.key.kind.as_str());
        let is_known = |it: &Provider<'_>| it.chart.is_some_and(|chart| chart.defines(kind.0, kind.1));
        // The engine that syncs is there, with its own definitions.
        if is_engines(kind)
            || !object.hooks.is_empty()
            || defined.contains(&kind)
            || !providers.iter().any(is_known)
        {
            continue;
        }
        if let Some((provider, early)) = first(context, &providers, object, app) {
            found.entry((app.id, provider.app.id)).or_insert((object, provider, early, 0)).3 += 1;
        }
    }
    for ((app, _), (object, provider, early, count)) in found {
        report.add(finding(context, context.survey.app(app), object, provider, early, count - 1));
    }
}

/// The Applications that bring definitions nobody has seen.
fn providers<'a>(context: &'a Context<'_>) -> Vec<Provider<'a>> {
    let order = &context.analyses().order;
    let of = |app: &'a App, chart, used| {
        let parent = order.parent(app.id).map(|(_, object)| object);
        let set = set_of(context, app).filter(|_| parent.is_none());
        Provider { app, declared: parent.or(set), is_of_set: set.is_some(), chart, used }
    };
    let mut found = Vec::new();
    for used in context.chart_uses() {
        let Some(app) = used.app.map(|app| context.survey.app(app)).filter(|app| !app.is_rendered()) else {
            continue;
        };
        // What distributions of Kubernetes bring themselves may be there before any sync.
        let is_of_distribution = used.chart == "traefik";
        let chart = Defining::find(&used.chart)
            .filter(|it| !is_of_distribution && used.brings_definitions && it.brings(&used.values));
        let is_elsewhere = || installed_elsewhere(context, &used.chart);
        if let Some(chart) = chart.filter(|_| !is_elsewhere()) {
            found.push(of(app, Some(chart), Some(used)));
        }
    }
    // What else could not be seen and is called after definitions may bring any of them.
    let unseen = context.survey.apps.iter().filter(|app| !app.is_rendered() && says_definitions(app));
    let named: Vec<AppId> = found.iter().map(|it: &Provider<'_>| it.app.id).collect();
    found.extend(unseen.filter(|app| !named.contains(&app.id)).map(|app| of(app, None, None)));
    if found.iter().all(|it| it.chart.is_none()) { Vec::new() } else { found }
}

/// The ApplicationSet, as another Application renders it, that yields an Application: before it is applied
/// there is no Application.
fn set_of(context: &Context<'_>, app: &App) -> Option<ObjectId> {
    let Declaration::Set(id) = app.declaration else { return None };
    let declared = &context.survey.sets[id.0].declared;
    let is_it = |it: &&Object| {
        it.environment == Some(app.environment)
            && it.rendered.location.file == declared.location.file
            && it.value().name() == declared.value.name()
    };
    context.survey.of_kind(names::GROUP, "ApplicationSet").find(is_it).map(|it| it.id)
}

fn says_definitions(app: &App) -> bool {
    let sources = app.application.spec.effective_sources();
    let mut texts = sources.iter().flat_map(|it| [it.chart.as_str(), &it.path]).chain([app.name()]);
    texts.any(|text| text.to_lowercase().contains("crd"))
}

/// Whether a playbook, Terraform or a script installs the component, perhaps before the first sync.
fn installed_elsewhere(context: &Context<'_>, chart: &str) -> bool {
    let Some(component) = Component::of_chart(chart) else { return false };
    let mut writers = context.survey.tools().writers.iter().filter(|writer| writer.action == Action::Apply);
    writers.any(|writer| writer.component().is_some_and(|it| it.name == component.name))
}

fn is_engines((group, kind): (&str, &str)) -> bool {
    group == names::GROUP && matches!(kind, "Application" | "ApplicationSet" | "AppProject")
}

/// The kinds that something defines that was seen.
fn defined<'a>(context: &Context<'a>) -> HashSet<(&'a str, &'a str)> {
    let definitions = context.survey.objects.iter().filter(|it| it.key.kind == "CustomResourceDefinition");
    let kind = |it: &'a Object| {
        let text = |keys: &[&str]| it.value().str_at(keys);
        Some((text(&["spec", "group"])?, text(&["spec", "names", "kind"])?))
    };
    definitions.filter_map(kind).collect()
}

/// The nearest of those that define an object's kind, where none of them is sure to come in time.
fn first<'p, 'a>(
    context: &Context<'_>,
    providers: &'p [Provider<'a>],
    object: &Object,
    app: &App,
) -> Option<(&'p Provider<'a>, Early)> {
    let here = providers.iter().filter(|it| {
        Some(it.app.environment) == object.environment && it.app.cluster() == object.cluster.as_ref()
    });
    let mine =
        here.filter(|it| it.chart.is_none_or(|chart| chart.defines(&object.key.group, &object.key.kind)));
    let mut nearest: Option<(&Provider<'_>, Early)> = None;
    for provider in mine {
        let early = early(context, provider, object, app)?;
        if provider.chart.is_some() && nearest.is_none() {
            nearest = Some((provider, early));
        }
    }
    nearest
}

/// How an object comes before what defines its kind; nothing if it does not, or nobody knows.
fn early(context: &Context<'_>, provider: &Provider<'_>, object: &Object, app: &App) -> Option<Early> {
    if provider.app.id == app.id {
        return None;
    }
    let declaration = context.survey.object(provider.declared?);
    let skips = sync_options::is_on(context.survey, object, "SkipDryRunOnMissingResource");
    let is_beside = |meeting: &Meeting| meeting.first == object.id;
    let relation = context.analyses().order.relation(object, declaration);
    if let Relation::Before(meeting) | Relation::Same(meeting) = relation
        && !is_near(context, &meeting, app, declaration)
    {
        return None;
    }
    if provider.is_of_set && !matches!(relation, Relation::Before(_)) {
        return None;
    }
    match relation {
        Relation::Before(meeting) if is_beside(&meeting) => Some(Early::Beside(meeting)),
        Relation::Same(meeting) | Relation::After(meeting) if is_beside(&meeting) => {
            (!skips).then_some(Early::Beside(meeting))
        }
        Relation::Before(meeting) => Some(Early::Before(meeting)),
        Relation::Same(meeting) => (!skips && retries(app) == 0).then_some(Early::Unordered(meeting)),
        Relation::After(_) | Relation::None => None,
    }
}

/// Whether the order of the two is that of their own declarations, one operation's, and holds when they are
/// synced. What comes further down takes more syncs than one; and what is not synced by itself comes when
/// somebody says so.
fn is_near(context: &Context<'_>, meeting: &Meeting, app: &App, provider: &Object) -> bool {
    let is_beside = meeting.app == app.id;
    let is_declared_here =
        context.analyses().order.parent(app.id).is_some_and(|(_, declared)| declared == meeting.first);
    meeting.second == provider.id
        && (is_beside || (is_declared_here && app.application.automated_policy().is_some()))
}

fn finding(
    context: &Context<'_>,
    app: &App,
    object: &Object,
    provider: &Provider<'_>,
    early: Early,
    others: usize,
) -> Finding {
    let survey = context.survey;
    let chart = provider.chart.map_or("", |chart| chart.chart);
    let (Early::Beside(meeting) | Early::Before(meeting) | Early::Unordered(meeting)) = early;
    let (one, other) = (meeting.first_step, meeting.second_step);
    let (one, other) = (rule_helpers::step(one, other), rule_helpers::step(other, one));
    let second = survey.object(meeting.second);
    let when = match early {
        Early::Beside(_) => format!("is applied by the same sync as Application {}", provider.app.name()),
        Early::Before(_) => {
            format!(
                "of Application {} is synced in {one}, before {other} with Application {}",
                app.name(),
                provider.app.name()
            )
        }
        Early::Unordered(_) => {
            format!(
                "of Application {} is synced in the same {one} as Application {}",
                app.name(),
                provider.app.name()
            )
        }
    };
    let kind = object.key.group_kind();
    let message = format!("{} {when}, whose chart {chart} brings the definition of {kind}", object.title());
    let label = match others {
        0 => "this kind is not known yet".to_owned(),
        more => format!("this kind is not known yet; nor is that of {more} more objects"),
    };
    let because = match (early, retries(app)) {
        (Early::Beside(_), _) => "the engine asks the API server about every object before it applies the first: the sync fails, and what would bring the definition is not created".to_owned(),
        (_, 0) => format!("the API server refuses a kind that it does not know: the sync of {} fails and is not repeated", app.name()),
        (_, below) if below < 0 => format!("the API server refuses a kind that it does not know: the sync of {} fails and is repeated without end", app.name()),
        (_, times) => format!("the API server refuses a kind that it does not know: the sync of {} fails and is repeated {times} times", app.name()),
    };
    let help = match early {
        Early::Beside(meeting) if meeting.first_step < meeting.second_step => format!(
            "give {} a later wave than {}, and the annotation `argocd.argoproj.io/sync-options: SkipDryRunOnMissingResource=true`; or put it into an Application of its own",
            object.title(),
            second.title()
        ),
        Early::Beside(_) => "add the annotation `argocd.argoproj.io/sync-options: SkipDryRunOnMissingResource=true`, or put it into an Application of its own with a later wave".to_owned(),
        _ => format!("give {} a wave before {}", second.title(), meeting.first_step.wave),
    };
    let mut diagnostic = RULE.diagnostic(message).at(survey.start(object), label);
    if let Some(used) = provider.used {
        diagnostic = diagnostic.see(used.span.clone(), "its definition comes with this chart");
    }
    let diagnostic = diagnostic
        .see(rule_helpers::wave(context, second), format!("{} is applied in {other}", second.title()))
        .because(because)
        .help(help);
    RULE.finding(context, object, diagnostic).likely()
}

//! # A version of a custom resource that the installed operator does not serve
//!
//! An operator's chart brings the definitions of its kinds, and each release serves some versions of them. An
//! object of another version is refused, and with it the sync of its Application, though both lie in one
//! repository.
//!
//! People see: `no matches for kind "ExternalSecret" in version "external-secrets.io/v1beta1"`, `The
//! Kubernetes API could not find version "v1beta1" of external-secrets.io/ExternalSecret … Version "v1" … is
//! installed on the destination cluster`.
//!
//! ## Bad
//! ```yaml
//! source: {chart: external-secrets, targetRevision: 0.18.2}    # of the operator; elsewhere:
//! apiVersion: external-secrets.io/v1beta1
//! ```
//! ## Good
//! ```yaml
//! apiVersion: external-secrets.io/v1
//! ```
//! ## When to suppress
//! Where the chart leaves the definitions to somebody else.

use tiphys_diag::{Severity, Span};
use tiphys_graph::{App, Object};
use tiphys_model::ApplicationSource;
use tiphys_value::ObjectExt;

use crate::{
    Context, Report, Rule,
    support::{
        dedup::Once,
        field_paths::{keys, rewrite},
        known_charts,
        sync_options::mentions,
        unrendered_files,
    },
};

/// See the module.
pub const RULE: Rule = Rule {
    id: "C2-unserved-version",
    incident: "C2",
    severity: Severity::Warning,
    title: "a version of a custom resource that the installed operator does not serve",
    page: page!("c2_unserved_version.rs"),
    check,
};

const KNOWN: &str = include_str!("../../data/versions-of-charts.txt");

/// Since when, and until when, charts serve a version.
struct Served {
    chart: &'static str,
    version: &'static str,
    kinds: &'static str,
    first: &'static str,
    end: &'static str,
    instead: &'static str,
}

impl Served {
    fn all() -> impl Iterator<Item = Self> {
        KNOWN.lines().filter(|line| !line.starts_with('#')).filter_map(|line| {
            let mut words = line.split_whitespace();
            let mut word = || words.next();
            Some(Self {
                chart: word()?,
                version: word()?,
                kinds: word()?,
                first: word()?,
                end: word()?,
                instead: word()?,
            })
        })
    }

    /// Whether a release of the chart does without it; `false` where the release is not told.
    fn is_missing_in(&self, release: &str) -> bool {
        let is_told =
            release.trim_start_matches('v').split('.').take(2).all(|part| part.parse::<u32>().is_ok());
        let is_before = self.first != "0" && known_charts::is_older(release, self.first);
        let is_after = self.end != "-" && !known_charts::is_older(release, self.end);
        is_told && release.contains('.') && (is_before || is_after)
    }
}

fn check(context: &Context<'_>, report: &mut Report) {
    let known: Vec<Served> = Served::all().collect();
    let mut once = Once::default();
    for object in &context.survey.objects {
        let of_object = |it: &&Served| {
            it.version == object.value().api_version()
                && it.kinds.split(',').any(|kind| kind == object.key.kind)
        };
        let Some(served) = known.iter().find(of_object) else { continue };
        let Some((app, release)) = installed(context, object, served) else { continue };
        if served.is_missing_in(&release) && !unrendered_files::may_be_a_patch(context.survey, object) {
            once.add(object.key.kind.as_str(), finding(context, object, served, (app, &release)));
        }
    }
    // A value of the chart with which the old version is served on.
    if !once.is_empty() && !mentions(context.survey, "unsafeServeV1Beta1") {
        once.report(report);
    }
}

/// The Application that installs the operator in an object's cluster, and the release, if there is one only.
fn installed<'a>(context: &Context<'a>, object: &Object, served: &Served) -> Option<(&'a App, String)> {
    let own = context.survey.app_of(object)?;
    let is_chart = |source: &ApplicationSource| {
        source.chart.rsplit('/').next() == Some(served.chart) && !known_charts::leaves_out_crds(source)
    };
    let mut found = context.survey.apps.iter().filter_map(|app| {
        let is_near = app.environment == own.environment && app.cluster() == own.cluster();
        let source = app.application.spec.effective_sources().into_iter().find(|source| is_chart(source));
        Some((app, source.filter(|_| is_near)?.target_revision))
    });
    let only = found.next()?;
    found.all(|(_, release)| release == only.1).then_some(only)
}

fn finding(
    context: &Context<'_>,
    object: &Object,
    served: &Served,
    (app, release): (&App, &str),
) -> crate::Finding {
    let field = keys(&["apiVersion"]);
    let span: Span = context.survey.span(object, &field);
    let kind = object.key.kind.as_str();
    let diagnostic = RULE
        .diagnostic(format!("no matches for kind \"{kind}\" in version \"{}\"", served.version))
        .at(span.clone(), format!("not served by {} {release}", served.chart))
        .see(
            context.survey.app_span(app, &keys(&["spec", "source", "targetRevision"])),
            format!("Application {} installs it here", app.name()),
        )
        .because("the API server has no such resource, so that the sync of the whole Application fails")
        .help(format!("served is {}", served.instead));
    let finding = RULE.finding(context, object, diagnostic).likely();
    let edit = rewrite(object, &field, span, served.instead);
    match edit.filter(|_| served.chart == "external-secrets") {
        Some(edit) => finding.fix(format!("ask for {}", served.instead), vec![edit]),
        None => finding,
    }
}

//! # A version of a custom resource that the installed operator does not serve
//!
//! An operator's chart brings the definitions of its kinds, and each release serves some versions of them. An
//! object of another version is refused, and with it the sync of its Application, though both lie in one
//! repository. The chart may be named by an Application, a HelmRelease, or a chart that depends on it.
//!
//! So it is with a field that a release takes out of the definition: `schedule` of a CronWorkflow.
//!
//! A command that installs the chart without `--version` takes the newest release.
//!
//! Where nothing in the repository installs the operator, the other objects of its kinds tell what it serves:
//! if nearly all of them ask for the newer version, the few that ask for the older one were forgotten.
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

use std::{cell::LazyCell, sync::Arc};

use tiphys_diag::{Severity, Span};
use tiphys_graph::{
    App, Object,
    tools::{Tool, What},
};
use tiphys_kustomize::FILE_NAMES;
use tiphys_model::ApplicationSource;
use tiphys_value::{Location, ObjectExt};
use tiphys_vfs::base_name;

use crate::{
    Context, Report, Rule,
    support::{
        chart_uses::{self, ChartUse},
        dedup::Once,
        field_paths::{self, keys, rewrite},
        known_charts,
        sync_options::mentions,
        unrendered_files,
    },
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "C2-unserved-version",
    incident: "C2",
    severity: Severity::Warning,
    title: "a version of a custom resource that the installed operator does not serve",
    page: page!("c2_unserved_version.rs"),
    check,
};

const KNOWN: &str = include_str!("../../data/versions-of-charts.txt");

/// The chart whose definitions people also take from its repository.
const OF_BUNDLE: &str = "external-secrets";

/// The release that a command takes which names none.
const NEWEST: &str = "newest";

/// Since when, and until when, charts serve a version.
struct Served {
    chart: &'static str,
    version: &'static str,
    kinds: &'static str,
    first: &'static str,
    end: &'static str,
    instead: &'static str,
    /// The field that it is about; nothing if it is the version as a whole.
    field: Option<&'static str>,
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
                field: word(),
            })
        })
    }

    /// Whether a release of the chart does without it; `false` where the release is not told.
    fn is_missing_in(&self, release: &str) -> bool {
        if matches!(release, "main" | "master" | "HEAD" | NEWEST) {
            return self.end != "-";
        }
        let is_told =
            release.trim_start_matches('v').split('.').take(2).all(|part| part.parse::<u32>().is_ok());
        let is_before = self.first != "0" && known_charts::is_older(release, self.first);
        let is_after = self.end != "-" && !known_charts::is_older(release, self.end);
        is_told && release.contains('.') && (is_before || is_after)
    }
}

fn check(context: &Context<'_>, report: &mut Report) {
    let known: Vec<Served> = Served::all().collect();
    let is_of_group = |object: &&Object| {
        known.iter().any(|it| it.version.split('/').next() == Some(object.key.group.as_str()))
    };
    let objects: Vec<&Object> = context.survey.objects.iter().filter(is_of_group).collect();
    let uses = LazyCell::new(|| chart_uses::all(context));
    let bundle = LazyCell::new(|| bundle(context));
    let mut once = Once::default();
    for object in objects.iter().copied() {
        let of_object = |it: &&Served| {
            it.version == object.value().api_version()
                && it.kinds.split(',').any(|kind| kind == object.key.kind)
                && it
                    .field
                    .is_none_or(|field| object.value().at(&field.split('.').collect::<Vec<_>>()).is_some())
        };
        let Some(served) = known.iter().find(of_object) else { continue };
        if unrendered_files::may_be_a_patch(context.survey, object) {
            continue;
        }
        let finding = match installed(context, object, served, &uses, &bundle) {
            Installed::By(install) if served.is_missing_in(&install.release) => {
                finding(context, object, served, &install)
            }
            Installed::Nowhere if served.field.is_some() => continue,
            Installed::Nowhere => match outvoted(context, object, served, &objects) {
                Some(others) => outlier(context, object, served, others),
                None => continue,
            },
            Installed::By(_) | Installed::Unclear => continue,
        };
        once.add(object.key.kind.as_str(), finding);
    }
    // A value of the chart with which the old version is served on.
    if !once.is_empty() && !mentions(context.survey, "unsafeServeV1Beta1") {
        once.report(report);
    }
}

/// What installs the operator in a cluster.
enum Installed {
    By(Install),
    /// Several releases, or definitions that come from somewhere else.
    Unclear,
    Nowhere,
}

/// A chart that installs it.
#[derive(Clone)]
struct Install {
    release: String,
    by: String,
    span: Span,
}

/// What installs the operator in an object's cluster.
fn installed(
    context: &Context<'_>,
    object: &Object,
    served: &Served,
    uses: &[ChartUse],
    bundle: &LazyCell<Option<Install>, impl FnOnce() -> Option<Install>>,
) -> Installed {
    let own = context.survey.app_of(object);
    if own.is_none() && !is_without_apps(context) {
        return Installed::Unclear;
    }
    let is_near = |app: &App| own.is_none_or(|own| app.is_beside(own));
    let is_chart = |source: &ApplicationSource| source.chart.rsplit('/').next() == Some(served.chart);
    let mut found = Vec::new();
    let mut is_left_out = false;
    for app in context.survey.apps.iter().filter(|app| is_near(app)) {
        let sources = app.application.spec.effective_sources();
        let Some((at, source)) = sources.iter().enumerate().find(|(_, source)| is_chart(source)) else {
            continue;
        };
        if known_charts::leaves_out_crds(source) {
            is_left_out = true;
            continue;
        }
        let field = field_paths::source(&app.application.spec, at).key("targetRevision");
        let release = source.target_revision.clone();
        let by = format!("Application {}", app.name());
        found.push(Install { release, by, span: context.survey.app_span(app, &field) });
    }
    let names_it = |app: &App| app.application.spec.effective_sources().iter().any(is_chart);
    for used in uses.iter().filter(|used| used.chart == served.chart) {
        // Those that an Application names itself were looked at.
        let is_beside = match used.app.map(|app| context.survey.app(app)) {
            Some(app) => is_near(app) && !app.is_rendered() && !names_it(app),
            None => is_without_apps(context),
        };
        if !is_beside {
            continue;
        }
        if used.leaves_out_definitions() {
            is_left_out = true;
            continue;
        }
        found.push(Install { release: used.version.clone(), by: used.by.clone(), span: used.span.clone() });
    }
    let is_one = found.iter().all(|it| it.release == found[0].release);
    let bundle = if served.chart == OF_BUNDLE { LazyCell::force(bundle).clone() } else { None };
    match (found.into_iter().next(), bundle) {
        (Some(first), _) if is_one && !is_left_out => Installed::By(first),
        (_, Some(bundle)) => Installed::By(bundle),
        (None, None) if !is_left_out => match by_command(context, served) {
            Some(install) => Installed::By(install),
            None => Installed::Nowhere,
        },
        _ => Installed::Unclear,
    }
}

/// What commands of scripts and pipelines install, if none of them says which release: that is the newest.
fn by_command(context: &Context<'_>, served: &Served) -> Option<Install> {
    let files = &context.survey.files;
    let mut found = Vec::new();
    for writer in &context.survey.tools().writers {
        let What::Release { chart, .. } = &writer.what else { continue };
        if chart.rsplit('/').next() != Some(served.chart) {
            continue;
        }
        // The command goes on in the next line while this one ends in a backslash.
        let text = files.text(&writer.span.file)?;
        let mut is_going_on = true;
        let lines = text.lines().skip(writer.span.start.line.max(1) as usize - 1);
        let mut command =
            lines.take_while(|line| std::mem::replace(&mut is_going_on, line.trim_end().ends_with('\\')));
        let is_pinned = command.any(|line| line.contains("--version"));
        let is_command = matches!(writer.tool, Tool::Script | Tool::GitHubActions | Tool::GitLabCi);
        if is_pinned || !is_command {
            return None;
        }
        let by = format!("a command in {}", writer.span.file);
        found.push(Install { release: NEWEST.to_owned(), by, span: writer.span.clone() });
    }
    found.into_iter().next()
}

/// The definitions of external-secrets as they lie in its own repository, where an Application or one
/// kustomization takes them from there.
fn bundle(context: &Context<'_>) -> Option<Install> {
    const REPOSITORY: &str = "external-secrets/external-secrets";
    const FOLDER: &str = "deploy/crds";
    let mut found = Vec::new();
    for app in &context.survey.apps {
        let spec = &app.application.spec;
        for (at, source) in spec.effective_sources().iter().enumerate() {
            if source.repo_url.trim_end_matches(".git").ends_with(REPOSITORY)
                && source.path.starts_with(FOLDER)
            {
                let span = context.survey.app_span(app, &field_paths::source(spec, at).key("targetRevision"));
                found.push(Install {
                    release: source.target_revision.clone(),
                    by: format!("Application {}", app.name()),
                    span,
                });
            }
        }
    }
    let files = &context.survey.files;
    for path in files.paths().filter(|path| FILE_NAMES.contains(&base_name(path))) {
        let Some(text) = files.text(path).filter(|text| text.contains(REPOSITORY)) else { continue };
        for (line, entry) in (1..).zip(text.lines()) {
            let entry = entry.trim_start().strip_prefix("- ").filter(|entry| entry.contains(FOLDER));
            let Some((_, below)) = entry.and_then(|entry| entry.split_once(REPOSITORY)) else { continue };
            let release = match below.split_once("ref=") {
                Some((_, revision)) => revision.trim(),
                None => below.trim_start_matches('/').split('/').next().unwrap_or_default(),
            };
            let span = files.span(&Location::new(Arc::clone(path), line, 0));
            found.push(Install { release: release.to_owned(), by: format!("kustomization {path}"), span });
        }
    }
    let is_one = found.iter().all(|it| it.release == found[0].release);
    found.into_iter().next().filter(|_| is_one)
}

/// Whether nothing in the repository is an Application: Flux fills its clusters, which are taken as one.
fn is_without_apps(context: &Context<'_>) -> bool {
    context.survey.apps.is_empty()
}

/// How many other objects of the same kinds and cluster ask for the version that is served instead, where
/// they are so many that the operator surely serves it. Definitions in the repository would tell that, too.
fn outvoted(context: &Context<'_>, object: &Object, served: &Served, objects: &[&Object]) -> Option<usize> {
    const FEWEST: usize = 8;
    const TIMES: usize = 4;
    if served.end == "-" {
        return None;
    }
    let own = context.survey.app_of(object);
    let is_near = |it: &Object| match (own, context.survey.app_of(it)) {
        (Some(own), Some(app)) => app.is_beside(own),
        (own, app) => own.is_none() && app.is_none(),
    };
    let count = |version: &str| {
        let asks = |it: &&&Object| {
            it.value().api_version() == version
                && served.kinds.split(',').any(|kind| kind == it.key.kind)
                && is_near(it)
        };
        objects.iter().filter(asks).count()
    };
    let defines = |it: &Object| {
        let group = served.version.split('/').next().unwrap_or_default();
        it.key.kind == "CustomResourceDefinition" && it.key.name.ends_with(&format!(".{group}"))
    };
    let (others, same) = (count(served.instead), count(served.version));
    let is_clear = others >= FEWEST && others >= same * TIMES;
    (is_clear && !context.survey.objects.iter().any(defines)).then_some(others)
}

fn outlier(context: &Context<'_>, object: &Object, served: &Served, others: usize) -> crate::Finding {
    let field = keys(&["apiVersion"]);
    let kind = object.key.kind.as_str();
    let text = format!("perhaps no matches for kind \"{kind}\" in version \"{}\"", served.version);
    let diagnostic = RULE
        .diagnostic(text)
        .at(
            context.survey.span(object, &field),
            format!("{others} other objects of this operator in the cluster ask for {}", served.instead),
        )
        .because(format!(
            "{} serves it no longer from release {} on; nothing in the repository tells which one is installed",
            served.chart, served.end
        ))
        .help(format!("ask for {} here, too", served.instead));
    RULE.finding(context, object, diagnostic).likely()
}

fn finding(context: &Context<'_>, object: &Object, served: &Served, install: &Install) -> crate::Finding {
    if let Some(field) = served.field {
        let path = keys(&field.split('.').collect::<Vec<_>>());
        let diagnostic = RULE
            .diagnostic(format!("{} sets {field}, which {} {} does not have", object.title(), served.chart, install.release))
            .at(context.survey.span(object, &path), format!("gone since release {} of the chart", served.end))
            .see(install.span.clone(), format!("{} installs it here", install.by))
            .because("the definition has no such field: server-side apply refuses the object, and else it is dropped")
            .help(format!("write {}", served.instead));
        return RULE.finding(context, object, diagnostic).likely();
    }
    let field = keys(&["apiVersion"]);
    let span: Span = context.survey.span(object, &field);
    let kind = object.key.kind.as_str();
    let diagnostic = RULE
        .diagnostic(format!("no matches for kind \"{kind}\" in version \"{}\"", served.version))
        .at(
            span.clone(),
            match install.release.as_str() {
                NEWEST => {
                    format!("not served by {} from {} on, and no release is named", served.chart, served.end)
                }
                release => format!("not served by {} {release}", served.chart),
            },
        )
        .see(install.span.clone(), format!("{} installs it here", install.by))
        .because("the API server has no such resource, so that the sync of the whole Application fails")
        .help(format!("served is {}", served.instead));
    let finding = RULE.finding(context, object, diagnostic).likely();
    let edit = rewrite(object, &field, span, served.instead);
    match edit.filter(|_| served.chart == "external-secrets") {
        Some(edit) => finding.fix(format!("ask for {}", served.instead), vec![edit]),
        None => finding,
    }
}

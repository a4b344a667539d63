//! # An Application that renders nothing, or nothing but hooks
//!
//! Of a folder without a chart or kustomization the engine takes the manifests that lie in it, and none that
//! lie deeper unless it is told to (`directory.recurse`). A path that ends one folder too early is no fault
//! to anybody: the Application is Synced and Healthy, and has no objects. So it is where `directory.include`
//! fits no file.
//!
//! Hooks count as nothing, too. They are run by a sync, and are no part of what is compared: an Application
//! that renders hooks alone is Synced from the start, and automated sync never begins.
//!
//! People see: an Application that is green and empty, and, with `prune`, objects that are gone; a Job under a
//! hook that never ran, until somebody pressed Sync.
//!
//! ## Bad
//! ```yaml
//! source: {path: infrastructure/cert-manager}             # the kustomization is in infrastructure/cert-manager/base
//! ```
//! ## Good
//! ```yaml
//! source: {path: infrastructure/cert-manager/base}
//! ```
//! ## When to suppress
//! Where the folder is still to be filled.

use std::collections::BTreeSet;

use tiphys_diag::Severity;
use tiphys_graph::{App, Outcome};
use tiphys_model::SourceType;
use tiphys_vfs::{base_name, is_below, join, parent};

use crate::{
    Context, Finding, Report, Rule,
    support::{dedup::Once, field_paths},
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "D2-renders-nothing",
    incident: "D2",
    severity: Severity::Warning,
    title: "an Application that renders nothing, or nothing but hooks",
    page: page!("d2_renders_nothing.rs"),
    check,
};

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    for app in &context.survey.apps {
        let is_plain = matches!(app.tools.as_slice(), [Some(SourceType::Directory)]);
        if is_plain
            && app.objects.is_empty()
            && matches!(app.outcome, Outcome::Rendered)
            && !context.survey.is_symbolic(app)
        {
            empty(context, app, &mut once);
        }
        hooks_alone(context, app, &mut once);
    }
    once.report(report);
}

/// An Application that automated sync is to bring in, and that is never out of sync.
fn hooks_alone(context: &Context<'_>, app: &App, once: &mut Once) {
    let survey = context.survey;
    let is_automated = app.application.automated_policy().is_some();
    let mut objects = survey.objects_of(app.id).peekable();
    let is_seen = matches!(app.outcome, Outcome::Rendered) && !survey.is_symbolic(app);
    if !is_automated || !is_seen || app.application.operation.is_some() {
        return;
    }
    let Some(first) = objects.peek().copied() else { return };
    if objects.any(|object| object.hooks.is_empty()) {
        return;
    }
    let what = format!("Application {} renders nothing but hooks, and is never synced by itself", app.name());
    let diagnostic = RULE
        .diagnostic(what.clone())
        .at(survey.start(first), "run by a sync")
        .see(survey.app_span(app, &field_paths::keys(&["spec", "syncPolicy", "automated"])), "automated sync begins where something is out of sync")
        .because("hooks are not compared: without anything else the Application is Synced from the start")
        .help("bring something with it that is compared, such as a ConfigMap")
        .help("or take the hook annotation away, and let the engine replace the Job (`sync-options: Replace=true,Force=true`)");
    once.add(&what, Finding::new(RULE.incident, diagnostic).app(app.name()).likely());
}

fn empty(context: &Context<'_>, app: &App, once: &mut Once) {
    let spec = &app.application.spec;
    let sources = spec.effective_sources();
    let [only] = sources.as_slice() else { return };
    let Ok(folder) = join("", &only.path) else { return };
    let options = only.directory.as_ref();
    let include = options.map_or("", |it| it.include.as_str());
    let deeper = deeper(context, &folder);
    let (what, help) = if !include.is_empty() {
        (format!("no file of {folder} fits include: {include}"), vec!["name files that are there".to_owned()])
    } else if options.is_some_and(|it| it.recurse || !it.exclude.is_empty()) || deeper.is_empty() {
        return;
    } else {
        let shown: Vec<&str> = deeper.iter().take(3).map(String::as_str).collect();
        let mut help = match shown.as_slice() {
            [one] => vec![format!("name {one}")],
            _ => Vec::new(),
        };
        help.push("or let the folders below be read, too: `directory: {recurse: true}`".to_owned());
        (format!("{folder} itself holds no manifest; there are some in {}", shown.join(", ")), help)
    };
    let place = field_paths::source(spec, 0).key("path");
    let mut diagnostic = RULE
        .diagnostic(format!("Application {} renders nothing: {what}", app.name()))
        .at(context.survey.app_span(app, &place), "nothing is read from here")
        .because("the engine takes what lies in the folder itself, and is content with nothing: Synced and Healthy");
    diagnostic.help = help;
    once.add(&what, Finding::new(RULE.incident, diagnostic).app(app.name()).likely());
}

/// The folders below one that hold manifests, kustomizations or charts, each without those below it.
fn deeper(context: &Context<'_>, folder: &str) -> BTreeSet<String> {
    let survey = context.survey;
    let marks = survey.files.paths().filter(|path| {
        base_name(path) == "Chart.yaml" || tiphys_kustomize::FILE_NAMES.contains(&base_name(path))
    });
    let manifests = survey.objects.iter().map(|object| &object.rendered.location.file);
    let is_inside = |path: &&str| *path != folder && is_below(path, folder);
    let all: BTreeSet<&str> =
        marks.chain(manifests).filter_map(|path| parent(path)).filter(is_inside).collect();
    let is_top = |path: &&str| !all.iter().any(|other| other != path && is_below(path, other));
    all.iter().copied().filter(|path| is_top(path)).map(str::to_owned).collect()
}

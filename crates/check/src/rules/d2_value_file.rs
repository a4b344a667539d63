//! # A file of values that is looked for in a chart
//!
//! A source that names a chart of a chart repository takes files of values from that chart alone. A file that
//! lies in the Git repository beside the Application is not there: the chart cannot be rendered, or, with
//! `ignoreMissingValueFiles`, is rendered without these values. A second source with a `ref` reaches it.
//!
//! A file may also be named by its whole address. Where the rest of several addresses with one beginning are
//! files of this repository, that beginning stands for the repository, and has no other files below it.
//!
//! `$values/…` needs a source with `ref: values` in the same Application.
//!
//! People see: `open /tmp/…/web/envs/prod.yaml: no such file or directory`, a chart with its default values;
//! `failed to fetch …/envs/prod.yaml : 404 Not Found`.
//!
//! ## Bad
//! ```yaml
//! sources:
//! - {repoURL: https://charts.example.com, chart: web, targetRevision: 1.2.3, helm: {valueFiles: [envs/prod.yaml]}}
//! - {repoURL: https://git.example.com/shop.git, targetRevision: main, ref: values}
//! ```
//! ## Good
//! ```yaml
//! sources:
//! - {repoURL: https://charts.example.com, chart: web, targetRevision: 1.2.3, helm: {valueFiles: [$values/envs/prod.yaml]}}
//! - {repoURL: https://git.example.com/shop.git, targetRevision: main, ref: values}
//! ```
//! ## When to suppress
//! Where the chart has a file of that path, too.

use std::collections::{BTreeMap, BTreeSet};

use tiphys_diag::{Severity, similar_names};
use tiphys_graph::{App, Files, Outcome};
use tiphys_model::ApplicationSource;
use tiphys_vfs::{join, parent};

use crate::{
    Context, Finding, Report, Rule,
    support::{dedup::Once, field_paths, placeholders},
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "D2-value-file",
    incident: "D2",
    severity: Severity::Warning,
    title: "a file of values that is looked for in a chart, and lies in the repository",
    page: page!("d2_value_file.rs"),
    check,
};

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    for app in &context.survey.apps {
        let spec = &app.application.spec;
        let sources = spec.effective_sources();
        let reference = sources.iter().map(|it| it.reference.as_str()).find(|it| !it.is_empty());
        for (at, source) in sources.iter().enumerate().filter(|(_, it)| !it.chart.is_empty()) {
            let Some(helm) = &source.helm else { continue };
            for (index, entry) in helm.value_files.iter().enumerate() {
                // Where the engine came so far, it says so itself.
                let is_unsaid = matches!(app.outcome, Outcome::Unseen(_));
                if let Some(name) = missing_reference(entry, &sources).filter(|_| is_unsaid) {
                    let field = field_paths::source(spec, at).key("helm").key("valueFiles").index(index);
                    let diagnostic = RULE
                        .diagnostic(format!("Application {} has no source with ref: {name}, which {entry} names", app.name()))
                        .at(context.survey.app_span(app, &field), "of which source?")
                        .because("a value file that begins with `$` lies in the source that has this name as its `ref`")
                        .help(format!("add a source with the address of the repository and `ref: {name}`"));
                    once.add(entry, Finding::new(RULE.incident, diagnostic).app(app.name()));
                    continue;
                }
                let Some(here) = lies_here(&context.survey.files, app, entry) else { continue };
                let field = field_paths::source(spec, at).key("helm").key("valueFiles").index(index);
                let mut diagnostic = RULE
                    .diagnostic(format!(
                        "value file {entry} of Application {} is looked for in chart {}",
                        app.name(),
                        source.chart
                    ))
                    .at(context.survey.app_span(app, &field), format!("the file of this repository is {here}"))
                    .because("files of values come from the source itself, and this source is a chart: it knows nothing of the repository");
                let name = reference.unwrap_or("values");
                if reference.is_none() {
                    diagnostic = diagnostic.help(
                        "add a source with the address of this repository and `ref: values`, and no path",
                    );
                }
                let meant = format!("${name}/{here}");
                diagnostic = diagnostic.help(format!("name it as {meant}"));
                let mut finding = Finding::new(RULE.incident, diagnostic).app(app.name()).likely();
                if reference.is_some() {
                    finding = finding.with_spelling(entry.as_str(), meant);
                }
                once.add(entry, finding);
            }
        }
    }
    fetched(context, &mut once);
    once.report(report);
}

/// The name of a source that a value file begins with, if no source has it.
fn missing_reference<'a>(entry: &'a str, sources: &[ApplicationSource]) -> Option<&'a str> {
    let (name, _) = entry.strip_prefix('$')?.split_once('/')?;
    let is_name =
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    // Argo CD fills in variables of its own.
    let is_known = name.starts_with("ARGOCD_") || sources.iter().any(|it| it.reference == name);
    (is_name && !is_known).then_some(name)
}

/// Judges files of values that are named by an address within this repository.
fn fetched(context: &Context<'_>, once: &mut Once) {
    let files = &context.survey.files;
    let beginnings = beginnings(context);
    for app in &context.survey.apps {
        let spec = &app.application.spec;
        for (at, source) in spec.effective_sources().iter().enumerate() {
            let Some(helm) = source.helm.as_ref().filter(|it| !it.ignore_missing_value_files) else {
                continue;
            };
            for (index, entry) in helm.value_files.iter().enumerate() {
                let missing = beginnings.iter().find_map(|beginning| entry.strip_prefix(beginning));
                let Some(path) = missing.filter(|path| !files.contains(path)) else { continue };
                if placeholders::is_in(entry) || path.contains('?') {
                    continue;
                }
                let field = field_paths::source(spec, at).key("helm").key("valueFiles").index(index);
                let diagnostic = RULE
                    .diagnostic(format!(
                        "failed to fetch {entry} for Application {}: 404 Not Found",
                        app.name()
                    ))
                    .at(context.survey.app_span(app, &field), format!("this repository has no file {path}"))
                    .because("other addresses with this beginning name files of this repository");
                let nearest = similar_names::nearest_slip(path, files.paths().map(AsRef::as_ref));
                let finding = Finding::new(RULE.incident, diagnostic).app(app.name()).likely();
                once.add(entry, finding.perhaps(path, nearest));
            }
        }
    }
}

/// What addresses of files of this repository begin with: at least two different files are named by it.
fn beginnings(context: &Context<'_>) -> Vec<String> {
    let mut named: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for app in &context.survey.apps {
        for source in app.application.spec.effective_sources().iter() {
            for entry in source.helm.iter().flat_map(|helm| &helm.value_files) {
                if let Some((beginning, path)) = split(context, entry) {
                    named.entry(beginning.to_owned()).or_default().insert(path.to_owned());
                }
            }
        }
    }
    named.into_iter().filter(|(_, paths)| paths.len() > 1).map(|(beginning, _)| beginning).collect()
}

/// An address, split before the path of a file of this repository in a folder.
fn split<'a>(context: &Context<'_>, address: &'a str) -> Option<(&'a str, &'a str)> {
    let host = address.find("://")? + "://".len();
    let ends = address.match_indices('/').map(|(at, _)| at + 1).filter(|at| *at > host);
    ends.map(|at| address.split_at(at))
        .find(|(_, path)| path.contains('/') && context.survey.files.contains(path))
}

/// The file of the repository that an entry means, if it means one.
fn lies_here(files: &Files, app: &App, entry: &str) -> Option<String> {
    if entry.starts_with(['$', '/']) || entry.contains("://") || placeholders::is_in(entry) {
        return None;
    }
    let plain = entry.trim_start_matches("./");
    if plain.contains('/') && files.contains(plain) {
        return Some(plain.to_owned());
    }
    // Charts have a `values.yaml` of their own.
    let folder = parent(&app.declared.location.file).unwrap_or_default();
    let beside = join(folder, entry).ok().filter(|path| plain.contains('/') && files.contains(path));
    beside.or_else(|| {
        let mut ends = files.paths().filter(|path| plain.matches('/').count() > 1 && ends_alike(path, plain));
        let only = ends.next()?.to_string();
        ends.next().is_none().then_some(only)
    })
}

/// Whether the last two steps of two paths are the same.
fn ends_alike(one: &str, other: &str) -> bool {
    let last = |path: &str| -> Vec<String> { path.rsplit('/').take(2).map(str::to_owned).collect() };
    one.matches('/').count() > 0 && last(one) == last(other)
}

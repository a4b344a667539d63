//! # An Application still says what the one says from which it was copied
//!
//! A new Application is most often a copy of its neighbour. Where the copy keeps the neighbour's folder, the
//! neighbour's objects are deployed twice and its own never; where it keeps the name, one of the two takes
//! the other's place. Where it keeps both, the file says nothing new.
//!
//! People see: `SharedResourceWarning`, an Application whose source changes by itself, a folder that nobody
//! deploys.
//!
//! The rule speaks where the copy's own folder or name is there and nobody uses it.
//!
//! ## Bad
//! ```yaml
//! metadata: {name: navidrome}
//! spec: {source: {path: media/lidarr}}        # as Application lidarr; media/navidrome is there
//! ```
//! ## Good
//! ```yaml
//! metadata: {name: navidrome}
//! spec: {source: {path: media/navidrome}}
//! ```
//! ## When to suppress
//! Where two Applications deploy one folder on purpose, such as to two clusters.

use std::collections::BTreeMap;

use tiphys_diag::{Diagnostic, Severity};
use tiphys_graph::{App, Declaration, Survey};
use tiphys_value::{FieldPath, ObjectExt};
use tiphys_vfs::{base_name, is_below, parent};

use crate::{
    Context, Finding, Report, Rule,
    support::{field_paths, field_paths::keys, placeholders, unused_files},
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "D2-copied-application",
    incident: "D2",
    severity: Severity::Warning,
    title: "an Application still says what the one says from which it was copied",
    page: page!("d2_copied_application.rs"),
    check,
};

/// An Application that reads one folder of the repository, with this folder.
struct Reader<'a> {
    app: &'a App,
    path: String,
    field: FieldPath,
    /// Whether it has values or parameters of its own for a chart.
    has_helm: bool,
}

fn check(context: &Context<'_>, report: &mut Report) {
    let survey = context.survey;
    let readers: Vec<Reader<'_>> = survey.apps.iter().filter_map(|app| reader(survey, app)).collect();
    let mut by_path: BTreeMap<&str, Vec<&Reader<'_>>> = BTreeMap::new();
    let mut by_name: BTreeMap<&str, Vec<&Reader<'_>>> = BTreeMap::new();
    for reader in &readers {
        by_path.entry(reader.path.as_str()).or_default().push(reader);
        by_name.entry(reader.app.name()).or_default().push(reader);
    }
    for of_path in by_path.values() {
        if let [one, other] = of_path[..]
            && let Some(finding) = other_folder(context, one, other, &by_path)
        {
            report.add(finding);
        }
    }
    for finding in named_as_another(context) {
        report.add(finding);
    }
    for of_name in by_name.values() {
        if let [one, other] = of_name[..]
            && let Some(finding) =
                other_name(survey, one, other, &by_name).or_else(|| whole_copy(survey, one, other, &by_path))
        {
            report.add(finding);
        }
    }
}

/// An Application that reads a folder of this repository, alone or beside others.
fn reader<'a>(survey: &Survey, app: &'a App) -> Option<Reader<'a>> {
    let is_aside = unused_files::is_in_unused_folder(&app.declared.location.file);
    let is_of_set = matches!(app.declaration, Declaration::Set(_));
    if is_aside || is_of_set || survey.is_symbolic(app) || placeholders::has_placeholder(&app.declared.value)
    {
        return None;
    }
    let spec = &app.application.spec;
    let sources = spec.effective_sources();
    let [source] = sources.as_slice() else { return None };
    let path = source.path.trim_start_matches("./").trim_matches('/').to_owned();
    let is_here = source.chart.is_empty() && survey.files.has_folder(&path);
    let (field, has_helm) = (field_paths::source(spec, 0).key("path"), source.helm.is_some());
    (is_here && path.contains('/')).then_some(Reader { app, path, field, has_helm })
}

/// Of two Applications that read one folder, the one whose own folder lies beside it and is read by nobody.
fn other_folder(
    context: &Context<'_>,
    one: &Reader<'_>,
    other: &Reader<'_>,
    by_path: &BTreeMap<&str, Vec<&Reader<'_>>>,
) -> Option<Finding> {
    let survey = context.survey;
    let (copy, original) = match base_name(&one.path) {
        of if of == other.app.name() => (one, other),
        of if of == one.app.name() => (other, one),
        _ => return None,
    };
    let beside = parent(&copy.path)?;
    let own = format!("{beside}/{}", copy.app.name());
    let is_free = is_free(survey, &own, by_path);
    // What several Applications make of one chart is distinguished by their values.
    if one.has_helm || other.has_helm {
        return None;
    }
    let is_of_cluster =
        one.app.cluster() == other.app.cluster() && one.app.environment == other.app.environment;
    if !is_free || !is_of_cluster {
        return None;
    }
    let diagnostic: Diagnostic = RULE
        .diagnostic(format!(
            "Application {} reads {}, the folder of Application {}, and nobody reads {own}",
            copy.app.name(),
            copy.path,
            original.app.name()
        ))
        .at(survey.app_span(copy.app, &copy.field), "the folder of another Application")
        .see(survey.app_span(original.app, &original.field), "which reads it, too")
        .because("its objects belong to two Applications, and those of its own folder to none")
        .help(format!("write path: {own}"));
    Some(Finding::new(RULE.incident, diagnostic).app(copy.app.name()).likely())
}

/// Applications that are declared in a folder of their own, which is called after another one, and have the
/// name of the one whose folder lies beside it; where the others are called as their folders are. Those that
/// read folders of the repository are told of by these.
fn named_as_another(context: &Context<'_>) -> Vec<Finding> {
    const FEWEST: usize = 3;
    let survey = context.survey;
    let folder = |app: &'_ App| parent(&app.declared.location.file).unwrap_or_default().to_owned();
    let is_at_home = |app: &App| base_name(&folder(app)) == app.name();
    let is_own = |app: &&App| !matches!(app.declaration, Declaration::Set(_)) && !survey.is_symbolic(app);
    let apps: Vec<&App> = survey.apps.iter().filter(is_own).collect();
    let at_home: Vec<&App> = apps.iter().copied().filter(|app| is_at_home(app)).collect();
    if at_home.len() < FEWEST {
        return Vec::new();
    }
    let mut found = Vec::new();
    for copy in apps.iter().copied().filter(|app| !is_at_home(app)) {
        let home = folder(copy);
        let is_original = |it: &&&App| {
            it.name() == copy.name()
                && it.declared.value.namespace() == copy.declared.value.namespace()
                && parent(&folder(it)) == parent(&home)
                && it.cluster() == copy.cluster()
        };
        let Some(original) = at_home.iter().find(is_original) else { continue };
        let of = |app: &App| app.declared.value["spec"]["source"].clone();
        let own = base_name(&home).to_owned();
        let is_called_so = base_name(&copy.declared.location.file).contains(&own);
        if of(original) == of(copy)
            || !is_called_so
            || apps.iter().any(|it| it.name() == own)
            || [*original, copy].iter().all(|app| reader(survey, app).is_some())
            || placeholders::has_placeholder(&copy.declared.value)
        {
            continue;
        }
        let name = copy.name();
        let place = |app: &App| survey.app_span(app, &keys(&["metadata", "name"]));
        let diagnostic: Diagnostic = RULE
            .diagnostic(format!(
                "two Applications are called {name}, and none {own}, as the folder of this one is"
            ))
            .at(place(copy), "the name of another Application")
            .see(place(original), "which is declared here")
            .because(
                "the name is unique in the engine's namespace, so that one of the two overwrites the other",
            )
            .help(format!("call it {own}"));
        found.push(Finding::new(RULE.incident, diagnostic).app(name).likely());
    }
    found
}

/// Of two Applications of one name the one whose folder is called otherwise, as no Application is.
fn other_name(
    survey: &Survey,
    one: &Reader<'_>,
    other: &Reader<'_>,
    by_name: &BTreeMap<&str, Vec<&Reader<'_>>>,
) -> Option<Finding> {
    let name = one.app.name();
    let (copy, original) = match (base_name(&one.path) == name, base_name(&other.path) == name) {
        (true, false) => (other, one),
        (false, true) => (one, other),
        _ => return None,
    };
    let own = base_name(&copy.path);
    let is_beside = parent(&copy.path) == parent(&original.path);
    let namespace = |reader: &Reader<'_>| reader.app.declared.value.namespace().to_owned();
    // Folders with Applications of one name are taken for environments, unless these lie in what they read.
    let lies_there =
        |reader: &Reader<'_>| parent(&reader.app.declared.location.file) == Some(reader.path.as_str());
    let is_one_place = one.app.environment == other.app.environment || lies_there(one) && lies_there(other);
    let is_same_place = is_one_place && namespace(one) == namespace(other);
    // What one root renders twice is told by D2-duplicate-name.
    let is_told = matches!(one.app.declaration, Declaration::App(_)) && one.app.above == other.app.above;
    if !is_beside || !is_same_place || is_told || by_name.contains_key(own) {
        return None;
    }
    let diagnostic: Diagnostic = RULE
        .diagnostic(format!(
            "two Applications are called {name}, and none {own}, as the folder of this one is"
        ))
        .at(survey.app_span(copy.app, &keys(&["metadata", "name"])), "the name of another Application")
        .see(survey.app_span(original.app, &keys(&["metadata", "name"])), "which is declared here")
        .because("the name is unique in the engine's namespace, so that one of the two overwrites the other")
        .help(format!("call it {own}"));
    Some(Finding::new(RULE.incident, diagnostic).app(name).likely())
}

/// Whether a folder is there that no Application reads.
fn is_free(survey: &Survey, folder: &str, by_path: &BTreeMap<&str, Vec<&Reader<'_>>>) -> bool {
    survey.files.has_folder(folder)
        && !by_path.contains_key(folder)
        && survey.apps.iter().all(|app| !app.read.iter().any(|file| is_below(file, folder)))
}

/// A file that declares the Application of another file once more, though it is called as a folder that
/// nobody reads.
fn whole_copy(
    survey: &Survey,
    one: &Reader<'_>,
    other: &Reader<'_>,
    by_path: &BTreeMap<&str, Vec<&Reader<'_>>>,
) -> Option<Finding> {
    let name = one.app.name();
    let file = |reader: &'_ Reader<'_>| reader.app.declared.location.file.clone();
    let stem = |file: &str| base_name(file).split('.').next().unwrap_or_default().to_owned();
    let stems = (stem(&file(one)), stem(&file(other)));
    let (copy, own) = match (stems.0 == name, stems.1 == name) {
        (true, false) => (other, stems.1),
        (false, true) => (one, stems.0),
        _ => return None,
    };
    let beside = format!("{}/{own}", parent(&one.path)?);
    let is_beside = parent(&file(one)) == parent(&file(other));
    if one.path != other.path || !is_beside || !is_free(survey, &beside, by_path) {
        return None;
    }
    let diagnostic: Diagnostic = RULE
        .diagnostic(format!("this file declares Application {name} once more, and nobody reads {beside}"))
        .at(survey.app_span(copy.app, &keys(&["metadata", "name"])), "the name of another Application")
        .because("what lies in the folder that the file is called after is never deployed")
        .help(format!("call it {own}, and write path: {beside}"));
    Some(Finding::new(RULE.incident, diagnostic).app(name).likely())
}

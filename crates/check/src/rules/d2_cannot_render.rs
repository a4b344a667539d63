//! # An Application cannot be rendered
//!
//! A folder or values file that does not exist, a `ref` that no source has, a template that fails, a
//! kustomization or manifest that does not parse: the engine cannot tell what the Application wants. It
//! applies nothing, and the last state stays.
//!
//! People see: `ComparisonError`, `Failed to load target state: failed to generate manifest for source 1
//! of 1`, `app path does not exist`, `open …/values-prod.yaml: no such file or directory`.
//!
//! ## Bad
//! ```yaml
//! source: {path: charts/web, helm: {valueFiles: [values-production.yaml]}}   # the file is values-prod.yaml
//! ```
//! ## Good
//! ```yaml
//! source: {path: charts/web, helm: {valueFiles: [values-prod.yaml]}}
//! ```
//! ## When to suppress
//! Where another tool writes the missing file before the engine looks.

use std::sync::Arc;

use tiphys_diag::{Edit, Severity, Span, similar_names};
use tiphys_graph::{App, Declaration, Outcome, Revision, UnitKind, UnreadableFile as Unread};
use tiphys_model::ApplicationSource;
use tiphys_render::{Cause, RenderError, Subject};
use tiphys_value::{Location, ObjectExt, Value};
use tiphys_vfs::{FileTree, base_name, join, parent};

use super::d2_revision;
use crate::{
    Context, Finding, Report, Rule,
    support::{
        dedup::Once,
        field_paths::{self, keys},
        kustomization_entries, placeholders,
        pods::list,
        render_fault::RenderFault,
        sparse_checkout, unrendered_files, unused_files,
    },
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "D2-cannot-render",
    incident: "D2",
    severity: Severity::Error,
    title: "an Application, kustomization or manifest that cannot be rendered",
    page: page!("d2_cannot_render.rs"),
    check,
};

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    for app in &context.survey.apps {
        if let Outcome::Failed(error) = &app.outcome
            && error.cause() != Cause::LoadRestricted
            && submodule(context, app).is_none()
            && !is_template(app)
            && !is_open(context, app)
            && !is_about_assumed_values(context, app, error)
        {
            once.add(error.headline(), of_app(context, app, error));
        }
    }
    for app in context.survey.apps.iter().filter(|app| app.objects.is_empty()) {
        if let Some((of, finding)) = submodule(context, app) {
            once.add(&of, finding);
        }
    }
    for app in context.survey.apps.iter().filter(|app| matches!(app.outcome, Outcome::Unseen(_))) {
        if let Some((what, finding)) = values(context, app) {
            once.add(&what, finding);
        }
    }
    let is_reach_known = unrendered_files::is_reach_known(context.survey);
    let left_to_others = kustomization_entries::left_to_others(&context.survey.files);
    for unit in context.survey.units.iter().filter(|unit| unit.kind == UnitKind::Kustomization) {
        if let Outcome::Failed(error) = &unit.outcome
            && error.cause() == Cause::Other
            && !is_made_later(context, error)
            && !fails_in_flux(context, error)
            && !placeholders::is_skeleton(&unit.path)
            && !is_written_later(context, &unit.path, error)
        {
            let text = "the kustomization does not build";
            let file = kustomization_entries::of_folder(&context.survey.files, &unit.path).next();
            let file = file.unwrap_or_else(|| unit.path.clone());
            let mut finding = warning(context, &file, text, error);
            if is_reach_known
                || left_to_others.iter().any(|entry| error.headline().contains(&format!("'{entry}'")))
                || kustomization_entries::is_moved(&context.survey.files, &file)
            {
                finding.diagnostic.severity = Severity::Info;
            }
            once.add(error.headline(), finding);
        }
    }
    templates(context, &mut once);
    dangling(context, &mut once);
    unparsed(context, &mut once);
    values_files(context, &mut once);
    for fault in context.survey.faults.iter().filter(|fault| fault.is_manifest) {
        let text = context.survey.files.text(&fault.file);
        let is_skeleton = placeholders::is_skeleton(&fault.file);
        let is_template = |text: &str| {
            placeholders::has_bracketed_name(text) || placeholders::is_template(text) || has_open_block(text)
        };
        if is_skeleton || text.is_some_and(|text| is_template(&text)) {
            continue;
        }
        let is_twice = fault.error.diagnostic().is_some_and(|diagnostic| diagnostic.rule == "duplicate-key");
        let finding = if is_twice { twice(context, fault) } else { unreadable(context, fault) };
        once.add(fault.error.headline(), finding);
    }
    once.report(report);
}

/// Whether the path of a source says little: it has a placeholder, or what only the clusters of an
/// installation tell.
fn is_open(context: &Context<'_>, app: &App) -> bool {
    let is_symbolic = context.survey.is_symbolic(app);
    let sources = app.application.spec.effective_sources();
    // Whose repository it is, an address that is filled in later does not say.
    if sources.iter().any(|it| !it.repo_url.is_empty() && placeholders::is_in(&it.repo_url)) {
        return true;
    }
    // That the template of a set has no source, the API server says of the set.
    if is_symbolic && sources.iter().all(|it| it.repo_url.is_empty()) {
        return true;
    }
    // A sample that generators of operators leave, to be filled in by hand.
    if app.declaration == Declaration::File && app.declared.value.get("spec").is_none_or(Value::is_null) {
        return true;
    }
    let value_files = sources.iter().filter_map(|it| it.helm.as_ref()).flat_map(|helm| &helm.value_files);
    let mut paths = sources.iter().map(|it| it.path.as_str()).chain(value_files.map(String::as_str));
    paths.any(|path| placeholders::is_in(path) || (is_symbolic && path.contains("<no value>")))
}

/// Whether a chart may only refuse values that stand in for labels and annotations of a cluster. That a path
/// is missing does not depend on them.
fn is_about_assumed_values(context: &Context<'_>, app: &App, error: &RenderError) -> bool {
    let spec = app.declared.value.get("spec");
    let sources = ["source", "sources"].into_iter().filter_map(|key| spec?.get(key));
    context.survey.is_symbolic(app)
        && error.cause() != Cause::Missing
        && sources.into_iter().any(placeholders::has_placeholder)
}

/// Charts that no Application reaches, with a template that does not parse, whatever the values.
fn templates(context: &Context<'_>, once: &mut Once) {
    for unit in context.survey.units.iter().filter(|unit| unit.kind == UnitKind::Chart) {
        let Outcome::Failed(error) = &unit.outcome else { continue };
        let Some(Subject::Template { name, line, is_syntax: true }) = error.subject() else { continue };
        if placeholders::is_skeleton(&unit.path) {
            continue;
        }
        let below = name.split_once('/').map_or("", |(_, below)| below);
        let file = join(&unit.path, below).unwrap_or_default();
        let mut finding = warning(context, &file, "the chart cannot be rendered", error);
        let span = context.survey.files.span(&Location::new(file, (*line).max(1), 0));
        if let Some(label) = &mut finding.diagnostic.primary {
            label.span = span;
        }
        once.add(error.headline(), finding);
    }
}

/// What the builds of a repository failed on.
fn failures<'a>(context: &Context<'a>) -> Vec<&'a str> {
    let survey = context.survey;
    let outcomes = survey.apps.iter().map(|app| &app.outcome);
    let outcomes = outcomes.chain(survey.units.iter().map(|unit| &unit.outcome));
    let failed = outcomes.filter_map(|outcome| match outcome {
        Outcome::Failed(error) => Some(error.headline()),
        _ => None,
    });
    failed.collect()
}

/// Kustomizations that are no YAML, where no build told of them: components, and what is behind something out
/// of reach.
fn unparsed(context: &Context<'_>, once: &mut Once) {
    let told = failures(context);
    for fault in context.survey.faults.iter().filter(|fault| !fault.is_manifest) {
        let (folder, name) = fault.file.rsplit_once('/').unwrap_or(("", &fault.file));
        let is_told = told.iter().any(|text| !folder.is_empty() && text.contains(folder));
        if !tiphys_kustomize::FILE_NAMES.contains(&name) || is_told || placeholders::is_skeleton(&fault.file)
        {
            continue;
        }
        // A kustomization needs none of what a manifest does.
        let files = &context.survey.files;
        if files.text(&fault.file).is_none() || files.value(&fault.file).is_some() {
            continue;
        }
        let text = "the kustomization cannot be read";
        once.add(fault.error.headline(), warning(context, &fault.file, text, &fault.error));
    }
}

/// Entries of kustomizations that lead nowhere, where no build told of them.
fn dangling(context: &Context<'_>, once: &mut Once) {
    let survey = context.survey;
    let told = failures(context);
    let failed: Vec<&str> = survey
        .units
        .iter()
        .filter(|unit| matches!(unit.outcome, Outcome::Failed(_)))
        .map(|unit| unit.path.as_str())
        .collect();
    let mut last = String::new();
    for it in kustomization_entries::dangling(&survey.files) {
        // One entry of a file is enough to look at it; so is what its build says.
        let folder = it.file.rsplit_once('/').map_or("", |(folder, _)| folder);
        if last == it.file || failed.contains(&folder) {
            continue;
        }
        let is_left_out = placeholders::is_skeleton(&it.file)
            || unused_files::is_git_ignored(&survey.files, &it.path)
            || sparse_checkout::is_sparse(&survey.files)
            || sparse_checkout::empty_submodule(&survey.files, &it.path).is_some();
        let quoted = format!("'{}'", it.entry);
        if is_left_out || told.iter().any(|text| text.contains(&quoted) || text.contains(&it.path)) {
            continue;
        }
        last.clone_from(&it.file);
        let why = if it.is_bare { "is a folder without a kustomization" } else { "is not there" };
        let mut diagnostic = RULE
            .diagnostic(format!(
                "the kustomization does not build: accumulating resources from '{}': {} {why}",
                it.entry, it.path
            ))
            .at(survey.files.span(&Location::new(it.file.clone(), it.line, 0)), "this entry")
            .because("whatever builds it fails here, once what it names before is there");
        let is_moved = kustomization_entries::is_moved(&survey.files, &it.file);
        diagnostic.severity = if is_moved { Severity::Info } else { Severity::Warning };
        let (above, last) = it.path.rsplit_once('/').unwrap_or(("", &it.path));
        let beside = survey.files.tree().read_dir(above).unwrap_or_default();
        let names: Vec<String> = beside.into_iter().map(|entry| entry.name).collect();
        let nearest = similar_names::nearest_slip(last, names.iter().map(String::as_str));
        diagnostic.help.extend(nearest.map(|nearest| format!("there is {nearest} beside it")));
        let mut finding = Finding::new(RULE.incident, diagnostic).likely();
        if let Some(nearest) = nearest {
            finding = finding.with_spelling(last, nearest);
        }
        once.add(&it.path, finding);
    }
}

/// An Application whose manifests are in a submodule that is not checked out, so that nothing is seen of it.
fn submodule(context: &Context<'_>, app: &App) -> Option<(String, Finding)> {
    let sources = app.application.spec.effective_sources();
    let of = sources.iter().find_map(|it| {
        let path = it.path.trim_start_matches("./").trim_end_matches('/');
        sparse_checkout::empty_submodule(&context.survey.files, path)
    })?;
    let mut diagnostic = RULE
        .diagnostic(format!("Application {} was not seen: its submodule {of} is not checked out", app.name()))
        .at(source(context, app), "this source")
        .because("what is not there is not checked; the engine checks submodules out itself")
        .help("run `git submodule update --init` before the check");
    diagnostic.severity = Severity::Warning;
    Some((of, Finding::new(RULE.incident, diagnostic).app(app.name()).likely()))
}

/// Values of a chart out of reach that no chart could read: no YAML, or no mapping.
fn values(context: &Context<'_>, app: &App) -> Option<(String, Finding)> {
    let spec = &app.application.spec;
    let sources = spec.effective_sources();
    let texts =
        sources.iter().enumerate().filter_map(|(at, it)| Some((at, it.helm.as_ref()?.values.as_str())));
    for (at, text) in texts.filter(|(_, text)| !text.trim().is_empty() && !text.contains("{{")) {
        if has_gap(text) || placeholders::has_bracketed_name(text) {
            continue;
        }
        let what = match tiphys_yaml::from_yaml(text) {
            Ok(value) if value.is_object() || value.is_null() => continue,
            Ok(_) => "they are no mapping of names to values".to_owned(),
            Err(error) => error.to_string(),
        };
        let place = field_paths::source(spec, at);
        let diagnostic = RULE
            .diagnostic(format!("Application {} cannot be rendered: its values cannot be read: {what}", app.name()))
            .at(context.survey.app_span(app, &place.key("helm").key("values")), "these values")
            .because("without its manifests the engine applies nothing of the Application; what runs stays as it is");
        return Some((what, Finding::new(RULE.incident, diagnostic).app(app.name())));
    }
    None
}

/// Whether another tool, such as Terraform's `templatefile`, writes the values of an Application before it is
/// applied.
fn is_template(app: &App) -> bool {
    let sources = app.application.spec.effective_sources();
    let mut values = sources.iter().filter_map(|it| it.helm.as_ref()).map(|helm| helm.values.as_str());
    let is_template = values.any(|values| has_gap(values) || placeholders::has_bracketed_name(values));
    is_template || sources.iter().any(is_filled_in)
}

/// Whether a source waits for a tool that fills in `{{ name }}`: what the engine itself fills in, it has
/// filled in.
fn is_filled_in(source: &ApplicationSource) -> bool {
    let Some(helm) = &source.helm else { return false };
    let object = helm.values_object.as_ref().map(|object| object.to_string()).unwrap_or_default();
    let mut texts = [source.repo_url.as_str(), &source.target_revision, &source.path].into_iter();
    texts.any(|text| text.contains("{{")) && (object.contains("{{") || helm.values.contains("{{"))
}

/// Whether a line of values is nothing but `${…}` or a directive: what takes its place is no single value.
fn has_gap(text: &str) -> bool {
    text.lines().map(str::trim).any(|line| {
        (line.starts_with("${") || line.starts_with("%{")) && line.ends_with('}') && !line.contains("}:")
    })
}

/// Whether a line of a manifest is nothing but `${NAME}`, without indent: `envsubst` puts a whole block in
/// its place.
fn has_open_block(text: &str) -> bool {
    text.lines().any(|line| line.starts_with("${") && line.trim_end().ends_with('}') && !line.contains(':'))
}

/// Whether another tool, such as Terraform's `templatefile`, writes the files of a kustomization before it is
/// built.
fn is_written_later(context: &Context<'_>, folder: &str, error: &RenderError) -> bool {
    let files = &context.survey.files;
    let beside = files.tree().read_dir(folder).unwrap_or_default();
    let mut texts = beside.iter().filter_map(|entry| files.text(&format!("{folder}/{}", entry.name)));
    error.headline().contains("'${") || texts.any(|text| placeholders::is_template(&text))
}

/// Whether Flux builds what fails, which `D2-flux-build` tells.
fn fails_in_flux(context: &Context<'_>, error: &RenderError) -> bool {
    let mut apps = context.survey.flux.iter().flat_map(|flux| &flux.apps);
    apps.any(|app| match &app.outcome {
        Outcome::Failed(own) => match (own.place(), error.place()) {
            (Some(own), Some(place)) => own == place,
            _ => own.headline() == error.headline(),
        },
        _ => false,
    })
}

/// Values files that are no YAML, where no build told of them: those beside a chart, and those that somebody
/// gives to a chart from elsewhere.
fn values_files(context: &Context<'_>, once: &mut Once) {
    let files = &context.survey.files;
    let told = failures(context);
    for path in files.ending(&[".yaml"]).filter(|path| is_called_values(path)) {
        let is_told = told.iter().any(|text| text.contains(&**path));
        if is_told || placeholders::is_skeleton(path) || files.value(path).is_some() {
            continue;
        }
        let Some(text) = files.text(path) else { continue };
        // Of several documents Helm reads the first; what another tool fills in is no YAML yet.
        let is_beside =
            join(parent(path).unwrap_or_default(), "Chart.yaml").is_ok_and(|it| files.contains(&it));
        let is_open = placeholders::is_template(&text)
            || placeholders::has_bracketed_name(&text)
            || !is_beside && text.contains("{{")
            || text.lines().skip(1).any(|line| line.trim_end() == "---");
        let Some(error) = tiphys_yaml::from_yaml(&text).err().filter(|_| !is_open) else { continue };
        let error = tiphys_render::manifest::yaml_error(path, &text, &error);
        once.add(error.headline(), warning(context, path, "the values cannot be read", &error));
    }
}

/// Whether a file is called as values for charts are, and is no template of one.
fn is_called_values(path: &str) -> bool {
    let name = base_name(path);
    let is_named =
        name.starts_with("values") || name.ends_with("-values.yaml") || name.ends_with(".values.yaml");
    is_named && !path.contains("templates/")
}

/// Whether what is missing is a file that Git is told to ignore: something makes it before it is read.
fn is_made_later(context: &Context<'_>, error: &RenderError) -> bool {
    error.missing_path().is_some_and(|path| unused_files::is_git_ignored(&context.survey.files, path))
}

/// Whether a values file is missing that Git is told to ignore, while a form of it is there: who runs the
/// Application fills it in, and has to have it committed somewhere.
fn is_given_later(context: &Context<'_>, error: &RenderError) -> bool {
    const FORMS: [&str; 4] = ["example", "template", "sample", "dist"];
    let Some(path) = error.missing_path() else { return false };
    let files = &context.survey.files;
    unused_files::is_git_ignored(files, path)
        && FORMS.iter().any(|form| files.tree().exists(&format!("{path}.{form}")))
}

fn unreadable(context: &Context<'_>, fault: &Unread) -> Finding {
    warning(context, &fault.file, "the manifest cannot be read", &fault.error)
}

/// A key that a mapping has twice: not all readers mind.
fn twice(context: &Context<'_>, fault: &Unread) -> Finding {
    let mut finding = warning(context, &fault.file, "one of two is lost", &fault.error);
    finding.diagnostic.mechanism =
        "kubectl and Argo CD take the last and say nothing; kustomize and strict readers refuse the file"
            .into();
    finding
}

fn of_app(context: &Context<'_>, app: &App, error: &RenderError) -> Finding {
    let fault = RenderFault::from_error(context, error, Some(app));
    let text = format!("Application {} cannot be rendered: {}", app.name(), fault.text);
    let mut diagnostic = RULE.diagnostic(text);
    diagnostic.related = fault.related;
    diagnostic.help = fault.help;
    let entry = value_file(context, app, error);
    let named = entry.as_ref().map_or_else(|| source(context, app), |(span, _)| span.clone());
    diagnostic = match fault.span {
        Some(span) => diagnostic.at(span, fault.label).see(named, "the source is named here"),
        None => diagnostic
            .at(named, if error.cause() == Cause::Missing { "it does not exist" } else { "this source" }),
    };
    diagnostic = diagnostic.because(
        "without its manifests the engine applies nothing of the Application; what runs stays as it is",
    );
    let mut finding = Finding::new(RULE.incident, diagnostic).app(app.name());
    if let Some((span, name)) = entry
        && let Some((known, edit)) = renamed(context, app, span, &name)
    {
        finding = finding.fix(format!("name the file {known}, which exists"), edit);
    }
    let is_doubtful =
        is_set_aside(context, app) || is_adopted(context, app, error) || is_given_later(context, error);
    let is_left_out = error.cause() == Cause::Missing && sparse_checkout::is_sparse(&context.survey.files);
    if is_left_out {
        finding
            .diagnostic
            .help
            .push("the checkout is sparse: what is missing here may be in the repository".into());
    }
    let is_elsewhere = is_elsewhere(context, app, error);
    if is_elsewhere {
        finding.diagnostic.help.push("it may exist in the revision that the Application reads".into());
    }
    if is_left_out || is_elsewhere || is_part(context, app, error) || waits_for_values(context, app, error) {
        finding.diagnostic.severity = Severity::Info;
        return finding.likely();
    }
    if is_doubtful { weaken(finding) } else { finding }
}

/// Whether what is missing is missing in a repository that is only taken to be this one.
fn is_adopted(context: &Context<'_>, app: &App, error: &RenderError) -> bool {
    let sources = app.application.spec.effective_sources();
    let mut adopted =
        sources.iter().map(|it| &it.repo_url).filter(|url| context.survey.adopted.contains(*url));
    error.cause() == Cause::Missing && adopted.next().is_some()
}

/// Whether a file is but a part of an Application: a kustomization beside it completes it, or one above it
/// gives the address of its sources.
fn is_part(context: &Context<'_>, app: &App, error: &RenderError) -> bool {
    let file = app.declared.location.file.as_ref();
    let mut folders = file.match_indices('/').map(|(at, _)| &file[..at]);
    let is_below_one =
        |folder: &str| kustomization_entries::of_folder(&context.survey.files, folder).next().is_some();
    app.declaration == Declaration::File
        && (unrendered_files::is_listed_resource(context.survey, file)
            || (error.subject() == Some(&Subject::Address) && folders.any(is_below_one)))
}

/// Whether a chart that nothing applies renders the Application from its default values, and a name in it is
/// empty because everybody has to give a part of it: `values-.yaml`.
fn waits_for_values(context: &Context<'_>, app: &App, error: &RenderError) -> bool {
    let mut top = app;
    while let Declaration::App(parent) = top.declaration {
        top = context.survey.app(parent);
    }
    let Declaration::Unit(unit) = top.declaration else { return false };
    let text = error.headline();
    // What is no YAML is none with any values.
    let is_file = |file: &str| context.survey.files.contains(file) && !file.contains("/templates/");
    let is_broken =
        error.diagnostic().and_then(|it| it.primary.as_ref()).is_some_and(|it| is_file(&it.span.file));
    if error.diagnostic().is_some_and(|it| it.rule == "yaml") && is_broken {
        return false;
    }
    context.survey.units[unit.0].kind == UnitKind::Chart
        && (error.cause() != Cause::Missing
            || text.contains("-.")
            || text.contains("//")
            || text.contains("/.yaml"))
}

/// Whether nobody may have applied an Application: it stands in a file that nothing renders, while others
/// are rendered by Applications.
pub(super) fn is_set_aside(context: &Context<'_>, app: &App) -> bool {
    let mut apps = context.survey.apps.iter();
    matches!(app.declaration, Declaration::File | Declaration::Unit(_))
        && apps.any(|other| matches!(other.declaration, Declaration::App(_)))
}

/// The entry of `valueFiles` that an error names: where it stands, and its text.
fn value_file(context: &Context<'_>, app: &App, error: &RenderError) -> Option<(Span, String)> {
    let spec = &app.declared.value["spec"];
    let single = spec.get("source").is_some().then(|| keys(&["spec", "source"]));
    let several = (0..list(spec, "sources").len()).map(|at| keys(&["spec", "sources"]).index(at));
    for source in single.into_iter().chain(several) {
        let files = source.key("helm").key("valueFiles");
        let entries = files.get(&app.declared.value).and_then(|it| it.as_array()).into_iter().flatten();
        for (at, entry) in entries.enumerate() {
            let name = entry.as_str().unwrap_or_default();
            let is_it = matches!(error.subject(), Some(Subject::ValueFile(file)) if file == name);
            if !name.is_empty() && is_it {
                return Some((context.survey.app_span(app, &files.index(at)), name.to_owned()));
            }
        }
    }
    None
}

/// The existing file that a missing one is nearly called like, and the edit that names it.
fn renamed(context: &Context<'_>, app: &App, span: Span, name: &str) -> Option<(String, Vec<Edit>)> {
    let source = app.application.spec.effective_sources().into_iter().next()?;
    let (folder, file) = name.rsplit_once('/').unwrap_or(("", name));
    let folder = join(&source.path, folder).ok()?;
    let entries = context.survey.files.tree().read_dir(&folder).ok()?;
    let names: Vec<String> = entries.into_iter().map(|entry| entry.name).collect();
    let nearest = similar_names::nearest_slip(file, names.iter().map(String::as_str))?.to_owned();
    let text = context.survey.files.text(&span.file)?;
    let line = text.lines().nth(span.start.line as usize - 1)?;
    if line.matches(file).count() != 1 {
        return Some((nearest, Vec::new()));
    }
    let column = |byte: usize| line[..byte].chars().count() as u32 + 1;
    let start = line.find(file)?;
    let mut place = Span::point(span.file.clone(), span.start.line, column(start));
    place.end.column = column(start + file.len());
    Some((nearest.clone(), vec![Edit { span: place, replacement: nearest }]))
}

fn weaken(mut finding: Finding) -> Finding {
    finding.diagnostic.severity = Severity::Warning;
    finding.likely()
}

/// Whether what is missing may exist on the branch that the Application reads: one that few others read.
fn is_elsewhere(context: &Context<'_>, app: &App, error: &RenderError) -> bool {
    const USUAL: [&str; 5] = ["", "HEAD", "main", "master", "develop"];
    if error.cause() != Cause::Missing {
        return false;
    }
    // What is not here and is there, the engine finds.
    let has_it = |source: &ApplicationSource| {
        let path = source.path.trim_start_matches("./").trim_end_matches('/');
        let is_there = |tree: &Arc<dyn FileTree>| !path.is_empty() && tree.is_dir(path);
        matches!(d2_revision::state(context, source), Some(Revision::Other(tree)) if is_there(tree))
    };
    if app.application.spec.effective_sources().iter().any(has_it) {
        return true;
    }
    let branches = |app: &App| -> Vec<String> {
        app.application.spec.effective_sources().iter().map(|it| it.target_revision.clone()).collect()
    };
    branches(app).iter().any(|branch| {
        // The branch that is checked out is the one that is read.
        if context.survey.branch.as_ref() == Some(branch) {
            return false;
        }
        let others = context.survey.apps.iter().filter(|other| branches(other).contains(branch));
        !USUAL.contains(&branch.as_str()) && others.count() * 2 <= context.survey.apps.len()
    })
}

fn warning(context: &Context<'_>, path: &str, what: &str, error: &RenderError) -> Finding {
    let fault = RenderFault::from_error(context, error, None);
    let mut diagnostic = RULE.diagnostic(format!("{what}: {}", fault.text));
    diagnostic.severity = Severity::Warning;
    diagnostic.related = fault.related;
    diagnostic.help = fault.help;
    let span = fault.span.unwrap_or_else(|| context.survey.files.span(&Location::new(path, 1, 0)));
    let diagnostic = diagnostic
        .at(span, fault.label)
        .because("no Application of the repository reads it; whatever does will fail on it");
    Finding::new(RULE.incident, diagnostic).likely()
}

/// Where an Application names its source.
pub(super) fn source(context: &Context<'_>, app: &App) -> Span {
    let spec = &app.declared.value["spec"];
    let field = if spec.get("source").is_some() {
        let path = keys(&["spec", "source", "path"]);
        if spec.str_at(&["source", "path"]).is_some() { path } else { keys(&["spec", "source"]) }
    } else {
        keys(&["spec", "sources"])
    };
    context.survey.app_span(app, &field)
}

/// What the repository says of `kustomize.buildOptions`, wherever `argocd-cm` is made.
pub(super) fn build_options(context: &Context<'_>) -> String {
    let files = &context.survey.files;
    let mut found = String::new();
    for path in files.ending(&[".yaml", ".yml"]) {
        let Some(text) = files.text(path).filter(|text| text.contains("uildOptions")) else { continue };
        let lines = text.lines().filter(|line| line.contains("uildOptions"));
        lines.for_each(|line| found.push_str(line));
    }
    found
}

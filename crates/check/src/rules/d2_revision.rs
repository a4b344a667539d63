//! # A revision that does not have what is wanted of it
//!
//! An Application reads its repository at a branch, a tag or a commit. A branch that was deleted or misspelt,
//! and a folder or file of values that is on another branch only, are there for whoever looks at the files at
//! hand, and not for the engine.
//!
//! People see: `unable to resolve 'relase' to a commit SHA`, `app path does not exist`, `no such file or
//! directory`.
//!
//! The rule speaks where the default branch is checked out, of what the clone has: one that was fetched in
//! part says nothing of other branches. A colon is in no name of a branch or tag, wherever that is looked
//! for: most often an address got into the wrong field.
//!
//! ## Bad
//! ```yaml
//! source: {repoURL: https://git.example.com/shop.git, targetRevision: relase, path: web}     # the branch is release
//! ```
//! ## Good
//! ```yaml
//! source: {repoURL: https://git.example.com/shop.git, targetRevision: release, path: web}
//! ```
//! ## When to suppress
//! Where the branch is pushed, or gets the folder, before the Application is synced.

use tiphys_diag::Severity;
use tiphys_graph::{App, Declaration, Revision};
use tiphys_model::ApplicationSource;
use tiphys_value::FieldPath;
use tiphys_vfs::{FileTree, join};

use crate::{
    Context, Finding, Report, Rule,
    support::{dedup::Once, field_paths, kustomization_entries, placeholders, unrendered_files},
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "D2-revision",
    incident: "D2",
    severity: Severity::Warning,
    title: "a branch or tag that is not there, or does not have what is wanted of it",
    page: page!("d2_revision.rs"),
    check,
};

/// What is not there: where it is named, and what it is.
struct Lack {
    field: FieldPath,
    what: String,
}

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    for app in context.survey.apps.iter().filter(|app| !is_completed(context, app)) {
        let spec = &app.application.spec;
        let sources = spec.effective_sources();
        for (at, source) in sources.iter().enumerate() {
            if placeholders::is_in(&source.target_revision) || placeholders::is_in(&source.path) {
                continue;
            }
            // Neither a folder nor a chart: what generates it has still to say which, and with it whether
            // the revision is one of Git or the version of a chart.
            if source.path.is_empty() && source.reference.is_empty() {
                continue;
            }
            let place = field_paths::source(spec, at);
            if source.chart.is_empty() && is_no_name(&source.target_revision) {
                malformed(context, app, &place, source, &mut once);
                continue;
            }
            match state(context, source) {
                Some(Revision::None(why)) => no_revision(context, app, &place, (source, why), &mut once),
                Some(Revision::Other(tree)) => {
                    for lack in missing_at_revision(context, tree.as_ref(), source, &place) {
                        add(context, app, source, lack, &mut once);
                    }
                }
                None => {}
            }
            referred(context, app, &sources, (source, &place), &mut once);
        }
    }
    once.report(report);
}

/// Whether the file of an Application is not what is applied: a kustomization beside it lists it, and changes
/// what it lists.
fn is_completed(context: &Context<'_>, app: &App) -> bool {
    const CHANGES: [&str; 4] = ["patch", "replacements:", "transformers:", "vars:"];
    let files = &context.survey.files;
    let file = app.declared.location.file.as_ref();
    let folder = tiphys_vfs::parent(file).unwrap_or_default();
    let changes = |text: &str| CHANGES.iter().any(|word| text.contains(word));
    app.declaration == Declaration::File
        && unrendered_files::is_listed_resource(context.survey, file)
        && kustomization_entries::of_folder(files, folder)
            .any(|it| files.text(&it).is_some_and(|text| changes(&text)))
}

/// The state of the repository that a source is read at, where that is not the one at hand.
pub(super) fn state<'a>(context: &'a Context<'_>, source: &ApplicationSource) -> Option<&'a Revision> {
    let key = (source.repo_url.clone(), source.target_revision.clone());
    context.survey.revisions.get(&key).filter(|_| source.chart.is_empty())
}

/// Whether Git lets nothing be called so, and it is no range of versions either (git-check-ref-format(1)).
fn is_no_name(revision: &str) -> bool {
    revision.contains(':') && !revision.contains('<')
}

fn malformed(
    context: &Context<'_>,
    app: &App,
    place: &FieldPath,
    source: &ApplicationSource,
    once: &mut Once,
) {
    let revision = &source.target_revision;
    let help = if *revision == source.repo_url {
        "this is the address of the repository again: write the branch, tag or commit"
    } else {
        "write a branch, tag or commit"
    };
    let diagnostic = RULE
        .diagnostic(format!(
            "Application {} reads revision {revision:?}, which is no name of a branch, tag or commit",
            app.name()
        ))
        .at(context.survey.app_span(app, &place.key("targetRevision")), "a colon is in none of them")
        .because("the engine cannot resolve it to a commit: nothing is rendered")
        .help(help);
    once.add(revision, Finding::new(RULE.incident, diagnostic).app(app.name()));
}

fn no_revision(
    context: &Context<'_>,
    app: &App,
    place: &FieldPath,
    (source, why): (&ApplicationSource, &str),
    once: &mut Once,
) {
    let hint = Some(why.trim_start_matches("; ").to_owned()).filter(|hint| !hint.is_empty());
    let diagnostic = RULE
        .diagnostic(format!(
            "Application {} reads revision {:?}, and the repository has no such branch, tag or commit",
            app.name(),
            source.target_revision
        ))
        .at(context.survey.app_span(app, &place.key("targetRevision")), "no such revision")
        .because(
            "the engine cannot resolve it to a commit: nothing is rendered, and what runs stays as it is",
        );
    let diagnostic = hint.into_iter().fold(diagnostic, |diagnostic, hint| diagnostic.help(hint));
    once.add(&source.target_revision, Finding::new(RULE.incident, diagnostic).app(app.name()).likely());
}

/// What is here and not there: the folder of a source, or files of values in it.
fn missing_at_revision(
    context: &Context<'_>,
    tree: &dyn FileTree,
    source: &ApplicationSource,
    place: &FieldPath,
) -> Vec<Lack> {
    let files = &context.survey.files;
    let path = source.path.trim_start_matches("./").trim_end_matches('/');
    if path.is_empty() || path == "." {
        return Vec::new();
    }
    if !tree.is_dir(path) {
        let what = format!("folder {path}");
        return files.has_folder(path).then(|| Lack { field: place.key("path"), what }).into_iter().collect();
    }
    let Some(helm) = source.helm.as_ref().filter(|helm| !helm.ignore_missing_value_files) else {
        return Vec::new();
    };
    let entries = helm.value_files.iter().enumerate();
    let own = entries.filter(|(_, entry)| !entry.starts_with('$') && !entry.contains("://"));
    own.filter_map(|(index, entry)| {
        let file = join(path, entry).ok().filter(|file| files.contains(file) && !tree.is_file(file))?;
        let field = place.key("helm").key("valueFiles").index(index);
        Some(Lack { field, what: format!("value file {file}") })
    })
    .collect()
}

/// Files of values that a source takes from another one, which is read at a revision of its own.
fn referred(
    context: &Context<'_>,
    app: &App,
    sources: &[ApplicationSource],
    (source, place): (&ApplicationSource, &FieldPath),
    once: &mut Once,
) {
    let Some(helm) = source.helm.as_ref().filter(|helm| !helm.ignore_missing_value_files) else { return };
    for (index, entry) in helm.value_files.iter().enumerate() {
        let Some((name, file)) = entry.strip_prefix('$').and_then(|rest| rest.split_once('/')) else {
            continue;
        };
        let Some(of) = sources.iter().find(|it| it.reference == name) else { continue };
        if let Some(Revision::Other(tree)) = state(context, of)
            && context.survey.files.contains(file)
            && !tree.is_file(file)
        {
            let field = place.key("helm").key("valueFiles").index(index);
            add(context, app, of, Lack { field, what: format!("value file {file}") }, once);
        }
    }
}

fn add(context: &Context<'_>, app: &App, source: &ApplicationSource, lack: Lack, once: &mut Once) {
    let Lack { field, what } = lack;
    let revision = &source.target_revision;
    let diagnostic = RULE
        .diagnostic(format!("Application {} reads {revision}, which has no {what}", app.name()))
        .at(context.survey.app_span(app, &field), format!("it is here, and not at {revision}"))
        .because(
            "the engine looks at the revision that is named, and not at the files that are checked out here",
        )
        .help(format!("bring it to {revision}, or name the revision that has it"));
    once.add(&what, Finding::new(RULE.incident, diagnostic).app(app.name()).likely());
}

//! # A chart depends on one that is not in the repository
//!
//! A dependency whose repository is `file://…` is a folder of the same repository, told from the folder of
//! the chart. Where the folder has moved, was never added, or is no chart, `helm dependency build` fails, and
//! so does every Application that renders the chart.
//!
//! People see: `Error: directory /…/charts/cache not found`, `Error: Chart.yaml file is missing`.
//!
//! ## Bad
//! ```yaml
//! # apps/web/Chart.yaml, and there is no charts/cache
//! dependencies:
//!   - {name: cache, version: 1.0.0, repository: "file://../../charts/cache"}
//! ```
//! ## Good
//! The path leads to the folder of the chart.
//!
//! ## When to suppress
//! Where something puts the chart there before it is rendered.

use tiphys_diag::{Severity, similar_names};
use tiphys_value::Location;
use tiphys_vfs::{base_name, join, parent};

use crate::{
    Context, Finding, Report, Rule,
    support::{
        placeholders,
        pods::{list, text},
        sparse_checkout, unused_files,
    },
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "D2-missing-chart",
    incident: "D2",
    severity: Severity::Warning,
    title: "a chart depends on a folder that holds no chart",
    page: page!("d2_missing_chart.rs"),
    check,
};

fn check(context: &Context<'_>, report: &mut Report) {
    let files = &context.survey.files;
    for path in files.paths().filter(|path| matches!(base_name(path), "Chart.yaml" | "requirements.yaml")) {
        if placeholders::is_skeleton(path) {
            continue;
        }
        let Some(chart) = files.value(path) else { continue };
        for dependency in list(&chart, "dependencies") {
            if let Some(finding) =
                finding(context, path, text(dependency, "name"), text(dependency, "repository"))
            {
                report.add(finding);
            }
        }
    }
}

fn finding(context: &Context<'_>, path: &str, name: &str, repository: &str) -> Option<Finding> {
    let files = &context.survey.files;
    let below = repository.strip_prefix("file://").filter(|below| !below.starts_with('/'))?;
    let folder = parent(path).unwrap_or_default();
    let wanted = join(folder, below).ok().filter(|wanted| !wanted.is_empty())?;
    let chart = join(&wanted, "Chart.yaml").ok()?;
    // What was put beside the chart before is taken as it is.
    let vendored = format!(
        "{}{name}",
        if folder.is_empty() { "charts/".to_owned() } else { format!("{folder}/charts/") }
    );
    let is_vendored = files
        .paths()
        .any(|it| it.strip_prefix(vendored.as_str()).is_some_and(|rest| rest.starts_with(['/', '-'])));
    let is_left_out = placeholders::is_in(repository)
        || unused_files::is_git_ignored(files, &chart)
        || unused_files::is_git_ignored(files, &wanted)
        || sparse_checkout::is_sparse(files)
        || sparse_checkout::empty_submodule(files, &wanted).is_some();
    if files.contains(&chart) || is_vendored || is_left_out {
        return None;
    }
    let content = files.text(path)?;
    let line = content.lines().position(|line| line.contains(repository))?;
    let at = Location::new(path.to_owned(), u32::try_from(line + 1).unwrap_or(u32::MAX), 0);
    let why = if files.has_folder(&wanted) { "holds no Chart.yaml" } else { "is not there" };
    let mut diagnostic = RULE
        .diagnostic(format!(
            "the chart cannot be rendered: its dependency {name} is to be {wanted}, which {why}"
        ))
        .at(files.span(&at), "this dependency")
        .because("Helm copies the folder into the chart before it renders it");
    let (above, last) = wanted.rsplit_once('/').unwrap_or(("", &wanted));
    let beside = files.tree().read_dir(above).unwrap_or_default();
    let names: Vec<String> = beside.into_iter().map(|entry| entry.name).collect();
    let nearest = similar_names::nearest_slip(last, names.iter().map(String::as_str));
    if let Some(nearest) = nearest {
        diagnostic = diagnostic.help(format!("there is {nearest} beside it"));
    }
    let finding = Finding::new(RULE.incident, diagnostic).likely();
    Some(match nearest {
        Some(nearest) => finding.with_spelling(last, nearest),
        None => finding,
    })
}

//! # One Application of an environment reads another branch than all the others
//!
//! While a change is tried out, an Application is pointed at the branch of the change. When the branch is
//! merged, the Application stays behind: it reads what nobody changes any more, until the branch is deleted
//! and it cannot be rendered at all.
//!
//! People see: an Application that does not follow the main branch, and later `unable to resolve
//! 'feature/new-ingress' to a commit SHA`.
//!
//! The rule speaks where at least five Applications of one environment read one branch of a repository and
//! exactly one reads another. Tags, versions and commits are pins, and no branch; a branch of a stage is for
//! the Application of that stage. It is a warning where the branch is called as one for a change is, else an
//! information.
//!
//! ## Bad
//! ```yaml
//! source: {repoURL: https://git.example.com/shop.git, targetRevision: feature/new-ingress, path: web}
//! # nine others: targetRevision: main
//! ```
//! ## Good
//! ```yaml
//! source: {repoURL: https://git.example.com/shop.git, targetRevision: main, path: web}
//! ```
//! ## When to suppress
//! While the change is tried out, or where the Application is meant to be ahead of the others.

use std::collections::BTreeMap;

use tiphys_diag::Severity;
use tiphys_graph::App;
use tiphys_model::repository;
use tiphys_value::FieldPath;

use crate::{
    Context, Finding, Report, Rule,
    support::{dedup::Once, field_paths, placeholders, unused_files},
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "D2-odd-branch",
    incident: "D2",
    severity: Severity::Warning,
    title: "one Application of an environment reads another branch than all the others",
    page: page!("d2_odd_branch.rs"),
    check,
};

/// How many Applications make a rule of a branch.
const ENOUGH: usize = 5;
/// The branch that is read where none is named, and names that it often has.
const DEFAULTS: [&str; 4] = ["", "HEAD", "main", "master"];

/// An Application that reads a branch, and where it says so.
type Reader<'a> = (&'a App, FieldPath);

fn check(context: &Context<'_>, report: &mut Report) {
    let survey = context.survey;
    let mut branches: BTreeMap<(usize, String), BTreeMap<String, Vec<Reader<'_>>>> = BTreeMap::new();
    for app in survey.apps.iter().filter(|app| !survey.is_symbolic(app)) {
        let spec = &app.application.spec;
        for (at, source) in spec.effective_sources().iter().enumerate() {
            let revision = source.target_revision.as_str();
            let is_read = is_branch(revision) || is_line_of_releases(revision);
            if !source.chart.is_empty() || source.repo_url.is_empty() || !is_read {
                continue;
            }
            let branch = if DEFAULTS.contains(&revision) { DEFAULTS[2] } else { revision };
            let field = field_paths::source(spec, at).key("targetRevision");
            let of_repository =
                branches.entry((app.environment.0, repository::normalize(&source.repo_url))).or_default();
            let readers = of_repository.entry(branch.to_owned()).or_default();
            // One Application counts once, however many of its sources read the branch.
            if readers.last().is_none_or(|(last, _)| last.id != app.id) {
                readers.push((app, field));
            }
        }
    }
    let mut once = Once::default();
    for of_repository in branches.values() {
        let Some((branch, usual)) = of_repository.iter().max_by_key(|(_, readers)| readers.len()) else {
            continue;
        };
        let mut others = of_repository.iter().filter(|(other, _)| *other != branch);
        let (Some((odd, readers)), None) = (others.next(), others.next()) else { continue };
        let [(app, field)] = &readers[..] else { continue };
        // Who reads both reads one of them on purpose.
        let reads_both = usual.iter().any(|(other, _)| other.id == app.id);
        let is_aside = unused_files::is_in_unused_folder(&app.declared.location.file);
        let is_meant = is_of_a_stage(odd) && !is_for_production(app);
        let is_pin = !is_branch(odd);
        if usual.len() >= ENOUGH && !reads_both && !is_aside && !is_meant && !is_pin {
            once.add(odd, finding(context, app, field, (odd, branch), usual.len()));
        }
    }
    once.report(report);
}

fn finding(
    context: &Context<'_>,
    app: &App,
    field: &FieldPath,
    (odd, usual): (&str, &str),
    count: usize,
) -> Finding {
    let mut diagnostic = RULE
        .diagnostic(format!(
            "Application {} reads branch {odd}, and {count} others of the environment read {usual}",
            app.name()
        ))
        .at(context.survey.app_span(app, field), format!("the only one that reads {odd}"))
        .because("what is changed on the other branch does not reach it, and once this branch is deleted it cannot be rendered")
        .help(format!("name {usual}, if the change is merged"));
    if !is_for_a_change(odd) && !is_of_a_stage(odd) {
        diagnostic.severity = Severity::Info;
    }
    Finding::new(RULE.incident, diagnostic).app(app.name()).likely()
}

/// Whether a revision can be a branch: no version, commit, reference or placeholder.
fn is_branch(revision: &str) -> bool {
    const SHORTEST_COMMIT: usize = 7;
    let is_version = revision
        .rsplit(['v', '-', '/'])
        .next()
        .is_some_and(|last| last.contains('.') && last.starts_with(|c: char| c.is_ascii_digit()));
    let is_commit = revision.len() >= SHORTEST_COMMIT && revision.chars().all(|c| c.is_ascii_hexdigit());
    let is_range = revision.contains(['*', '>', '<', '=', '^', '~', ' ', '{', '$']);
    !is_version && !is_commit && !is_range && !revision.starts_with("refs/") && !placeholders::is_in(revision)
}

/// Whether a revision is a branch on which releases are made, such as `release-1.4`.
fn is_line_of_releases(revision: &str) -> bool {
    revision.starts_with("release") && !placeholders::is_in(revision) && !revision.contains(['*', '$', '{'])
}

/// Whether an Application lies in a folder for what users see, where no branch of a stage before belongs.
fn is_for_production(app: &App) -> bool {
    const WORDS: [&str; 4] = ["live", "prd", "prod", "production"];
    let file = app.declared.location.file.as_ref();
    file.split(['/', '-', '_', '.']).any(|word| WORDS.contains(&word))
}

/// Whether a branch is that of a stage, which its Application may be the only one of.
fn is_of_a_stage(branch: &str) -> bool {
    const STAGES: [&str; 13] = [
        "dev",
        "develop",
        "development",
        "prod",
        "production",
        "qa",
        "release",
        "sandbox",
        "stage",
        "staging",
        "stg",
        "test",
        "uat",
    ];
    branch.split(['/', '-', '_']).any(|word| STAGES.contains(&word))
}

/// Whether a branch is called as one is on which a change is made.
fn is_for_a_change(branch: &str) -> bool {
    const WORDS: [&str; 17] = [
        "feature",
        "feat",
        "fix",
        "bugfix",
        "hotfix",
        "chore",
        "wip",
        "tmp",
        "temp",
        "poc",
        "try",
        "experiment",
        "refactor",
        "patch",
        "debug",
        "revert",
        "add",
    ];
    branch.split(['/', '-', '_']).next().is_some_and(|first| WORDS.contains(&first))
}

#[cfg(test)]
mod tests {
    use super::{is_branch, is_for_a_change, is_of_a_stage};

    #[test]
    fn pins_are_no_branches() {
        for revision in ["v1.2.3", "1.2.0", "release-1.2", "0123abc", "refs/tags/x", "1.*", "$BRANCH"] {
            assert!(!is_branch(revision), "{revision}");
        }
        for revision in ["main", "", "HEAD", "feature/x", "develop", "release"] {
            assert!(is_branch(revision), "{revision}");
        }
        assert!(is_for_a_change("fix/a") && is_for_a_change("feat-a") && !is_for_a_change("develop"));
        assert!(is_of_a_stage("develop") && !is_of_a_stage("feature/device"));
    }
}

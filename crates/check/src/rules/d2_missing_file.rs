//! # A template reads a file that the chart does not have
//!
//! `.Files.Get` gives the text of a file of the chart, and nothing, silently, for one that is not there: a
//! ConfigMap with an empty entry, a Secret without a key. So it is with files that were moved, or that lie
//! outside of the chart, which Helm never reads.
//!
//! People see: nothing at all until the pod reads an empty file.
//!
//! ## Bad
//! ```yaml
//! data: {nginx.conf: {{ .Files.Get "conf/nginx.conf" | quote }}}     # the file is files/nginx.conf
//! ```
//! ## Good
//! ```yaml
//! data: {nginx.conf: {{ .Files.Get "files/nginx.conf" | quote }}}
//! ```
//! ## When to suppress
//! Where something puts the file there before the chart is packed.

use std::{collections::BTreeSet, sync::LazyLock};

use regex::Regex;
use tiphys_diag::Severity;
use tiphys_graph::{Files, tools::Lines};
use tiphys_vfs::{base_name, is_below, join};

use crate::{
    Context, Finding, Report, Rule,
    support::{chart_templates, placeholders, unused_files},
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "D2-missing-file",
    incident: "D2",
    severity: Severity::Warning,
    title: "a template reads a file that the chart does not have",
    page: page!("d2_missing_file.rs"),
    check,
};

/// A file that is read by its name as it is written.
static READ: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"\.Files\.(?:Get|GetBytes|Lines)\s+"([^"{}%<>$]+)""#).expect("the expression is right")
});

fn check(context: &Context<'_>, report: &mut Report) {
    let files = &context.survey.files;
    for folder in chart_templates::charts(files).filter(|folder| !unused_files::is_in_unused_folder(folder)) {
        let of_templates =
            if folder.is_empty() { "templates".to_owned() } else { format!("{folder}/templates") };
        for path in files.paths().filter(|path| is_below(path, &of_templates)) {
            let Some(text) = files.text(path).filter(|text| text.contains(".Files.")) else { continue };
            let asked = asked_for(&text);
            for read in READ.captures_iter(&text) {
                let Some(name) = read.get(1).filter(|it| !asked.contains(it.as_str())) else { continue };
                if let Some(help) = missing_file_help(files, folder, name.as_str()) {
                    let diagnostic = RULE
                        .diagnostic(format!("the chart in {folder:?} has no file {:?}", name.as_str()))
                        .at(Lines::new(path, &text).span(name.range()), "read as empty")
                        .because(
                            "Helm gives an empty text for a file that is not in the chart, and renders on",
                        );
                    let diagnostic = help.into_iter().fold(diagnostic, |it, help| it.help(help));
                    report.add(Finding::new(RULE.incident, diagnostic).likely());
                }
            }
        }
    }
}

/// The files that a template asks for first, or has something in place of.
fn asked_for(text: &str) -> BTreeSet<&str> {
    const WORDS: [&str; 6] = ["if ", "with ", "default", "required", "empty", "or "];
    let actions = chart_templates::ACTION.find_iter(text).map(|it| it.as_str());
    let asking = actions.filter(|action| WORDS.iter().any(|word| action.contains(word)));
    asking.flat_map(|action| READ.captures_iter(action)).filter_map(|it| Some(it.get(1)?.as_str())).collect()
}

/// What to do about a file that a chart lacks; `None` if it has it, or something may make it.
fn missing_file_help(files: &Files, folder: &str, name: &str) -> Option<Vec<String>> {
    // A path that leads out of the chart is none of its files.
    let is_inside = |path: &str| folder.is_empty() || is_below(path, folder);
    let inside = join(folder, name).ok().filter(|path| is_inside(path));
    if let Some(path) = &inside
        && (files.contains(path)
            || unused_files::is_git_ignored(files, path)
            || placeholders::is_skeleton(name))
    {
        return None;
    }
    let same = files.paths().filter(|path| base_name(path) == base_name(name) && is_inside(path));
    let found: Vec<&str> = same.map(AsRef::as_ref).collect();
    Some(match (inside, found.as_slice()) {
        (None, _) => vec!["put the file into the chart's folder: Helm reads no other".to_owned()],
        (_, [only]) => {
            vec![format!("the chart has {}", only.trim_start_matches(folder).trim_start_matches('/'))]
        }
        _ => Vec::new(),
    })
}

//! # Values name a folder that is not there
//!
//! A chart that makes Applications takes their folders from its values. Where the chart itself is out of
//! reach, its Applications are not seen; but the values are here, and so are the folders that nearly all
//! entries of the list name. An entry whose folder is not there was misspelt, moved, or lacks the address of
//! the repository that it is in.
//!
//! It speaks where at least three other entries of the same list name folders of this repository, and at
//! least three of four do.
//!
//! People see: `ComparisonError: … app path does not exist` for one Application of many.
//!
//! ## Bad
//! ```yaml
//! applications:
//!   db: {source: {path: components/db}}
//!   queue: {source: {path: components/queue}}
//!   cache: {source: {path: components/cache}}
//!   web: {source: {path: components/wbe}}        # the folder is components/web
//! ```
//! ## Good
//! ```yaml
//! applications:
//!   db: {source: {path: components/db}}
//!   queue: {source: {path: components/queue}}
//!   cache: {source: {path: components/cache}}
//!   web: {source: {path: components/web}}
//! ```
//! ## When to suppress
//! Where the chart puts the path below a folder of its own for this entry alone.

use std::sync::Arc;

use tiphys_diag::{Severity, Span, similar_names};
use tiphys_graph::{Files, tools::node_span};
use tiphys_vfs::base_name;
use tiphys_yaml::{Content, Node, Profile};

use crate::{
    Context, Finding, Report, Rule,
    support::{placeholders, unused_files},
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "D2-values-path",
    incident: "D2",
    severity: Severity::Warning,
    title: "values name a folder for an Application that is not there",
    page: page!("d2_values_path.rs"),
    check,
};

/// How many other entries have to name folders that are there.
const FEWEST: usize = 3;

/// Keys with which an entry takes its folder from elsewhere.
const FROM_ELSEWHERE: [&str; 8] =
    ["repoURL", "repoUrl", "repo", "repository", "url", "chart", "targetRevision", "ref"];

fn check(context: &Context<'_>, report: &mut Report) {
    let files = &context.survey.files;
    for path in files.ending(&[".yaml", ".yml"]).filter(|path| is_values(path)) {
        let Some(text) = files.text(path) else { continue };
        if text.matches("path:").count() <= FEWEST
            || !text.contains("project:") && !text.contains("namespace:")
        {
            continue;
        }
        let Ok(documents) = tiphys_yaml::parse_documents(&text, Profile::Go3) else { continue };
        for document in &documents {
            lists(&document.root, 0, &mut |entries| judge(files, path, entries, report));
        }
    }
}

fn is_values(path: &str) -> bool {
    base_name(path).contains("values")
        && !path.contains("/templates/")
        && !unused_files::is_in_unused_folder(path)
}

/// Calls for the entries of each mapping and list of mappings below a node.
fn lists<'n>(node: &'n Node, depth: usize, look: &mut impl FnMut(&[&'n Node])) {
    const DEEPEST: usize = 12;
    let entries: Vec<&Node> = match &node.content {
        _ if depth > DEEPEST => return,
        Content::Mapping(pairs) => pairs.iter().map(|(_, value)| value).collect(),
        Content::Sequence(items) => items.iter().collect(),
        Content::Scalar(_) | Content::Alias(_) => return,
    };
    if entries.len() > FEWEST {
        look(&entries);
    }
    entries.into_iter().for_each(|entry| lists(entry, depth + 1, look));
}

/// The folder that an entry is for an Application from, if it takes one from this repository.
fn folder(entry: &Node) -> Option<(&Node, &str)> {
    // Only what says where its objects go is an Application.
    let goes_somewhere = ["project", "namespace", "destination"].iter().any(|key| entry.get(key).is_some());
    let source = entry.get("source").unwrap_or(entry);
    let is_elsewhere =
        [entry, source].iter().any(|it| FROM_ELSEWHERE.iter().any(|key| it.get(key).is_some()));
    let node = source.get("path")?;
    let path = node.as_str()?.trim_start_matches("./").trim_end_matches('/');
    let is_plain = path.contains('/') && !path.starts_with('/') && !placeholders::is_in(path);
    (goes_somewhere && !is_elsewhere && is_plain).then_some((node, path))
}

fn judge(files: &Files, file: &Arc<str>, entries: &[&Node], report: &mut Report) {
    let named: Vec<(&Node, &str)> = entries.iter().filter_map(|entry| folder(entry)).collect();
    let (there, missing): (Vec<_>, Vec<_>) = named.into_iter().partition(|(_, path)| files.has_folder(path));
    if there.len() < FEWEST || missing.len() * 3 > there.len() {
        return;
    }
    for (node, path) in missing {
        if !unused_files::is_git_ignored(files, path) {
            report.add(finding(files, node_span(files, file, node), path, there.len()));
        }
    }
}

fn finding(files: &Files, span: Span, path: &str, others: usize) -> Finding {
    let mut diagnostic = RULE
        .diagnostic(format!("these values name the folder {path}, which is not in the repository"))
        .at(span, "there is no such folder")
        .because(format!(
            "{others} other entries beside it name folders of this repository; the Application of this one has nothing to render"
        ));
    let (above, last) = path.rsplit_once('/').unwrap_or(("", path));
    let beside: Vec<String> =
        files.tree().read_dir(above).unwrap_or_default().into_iter().map(|entry| entry.name).collect();
    let Some(nearest) = similar_names::nearest_slip(last, beside.iter().map(String::as_str)) else {
        diagnostic = diagnostic.help("name the folder, or the address of the repository that has it");
        return Finding::new(RULE.incident, diagnostic).likely();
    };
    diagnostic = diagnostic.help(format!("there is {nearest} beside it"));
    Finding::new(RULE.incident, diagnostic).likely().with_spelling(last, nearest)
}

//! # A key is set twice, and one of the two is lost
//!
//! A YAML mapping holds a key once. Helm reads values files, and Kustomize its own file, so that the last of
//! two counts and nobody is told: a whole generator, a list of resources, the settings of a component are
//! gone. (A manifest with a key twice is refused; see `D2-cannot-render`.) It mostly comes from merging two
//! branches.
//!
//! People see: nothing, but for a ConfigMap that is not generated or a value that has no effect. Linters say
//! `duplication of key "configMapGenerator" in mapping`.
//!
//! ## Bad
//! ```yaml
//! # kustomization.yaml
//! configMapGenerator: [{name: info, files: [info.json]}]
//! configMapGenerator: [{name: banner, files: [banner.yaml]}]   # info is not generated
//! ```
//! ## Good
//! ```yaml
//! configMapGenerator:
//!   - {name: info, files: [info.json]}
//!   - {name: banner, files: [banner.yaml]}
//! ```
//! ## When to suppress
//! Never: take one of the two out.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use tiphys_diag::{Edit, Severity, Span};
use tiphys_graph::{Files, Survey};
use tiphys_value::Location;
use tiphys_yaml::{Content, Node, Position, Profile};

use crate::{
    Context, Finding, Report, Rule,
    support::{dedup::Once, field_paths},
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "D2-duplicate-key",
    incident: "D2",
    severity: Severity::Warning,
    title: "a key that is set twice in values or in a kustomization",
    page: page!("d2_duplicate_key.rs"),
    check,
};

/// How many findings one file is worth.
const MOST: usize = 5;

fn check(context: &Context<'_>, report: &mut Report) {
    for path in files(context.survey) {
        let Some(text) = context.survey.files.text(&path) else { continue };
        let Ok(documents) = tiphys_yaml::parse_documents(&text, Profile::Go2) else { continue };
        let mut found = Vec::new();
        documents.iter().for_each(|document| collect(&document.root, &mut found, 0));
        for twice in found.into_iter().take(MOST) {
            report.add(finding(context, &path, &twice));
        }
    }
    of_applications(context, report);
}

/// Values that Applications hold as a text.
fn of_applications(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    for app in &context.survey.apps {
        let spec = &app.application.spec;
        for (at, source) in spec.effective_sources().iter().enumerate() {
            let values = source.helm.as_ref().map(|helm| helm.values.as_str()).unwrap_or_default();
            let Ok(documents) = tiphys_yaml::parse_documents(values, Profile::Go2) else { continue };
            let mut found = Vec::new();
            documents.iter().for_each(|document| collect(&document.root, &mut found, 0));
            for twice in found.into_iter().filter(|twice| !twice.is_same).take(MOST) {
                let place = field_paths::source(spec, at).key("helm").key("values");
                let diagnostic = RULE
                    .diagnostic(format!(
                        "the values of Application {} set the key {:?} twice in one mapping, in lines {} and {}: the first is lost",
                        app.name(), twice.key, twice.first.line, twice.second.line
                    ))
                    .at(context.survey.app_span(app, &place), "in these values")
                    .because("Helm reads the last of two and says nothing")
                    .help("put the two together, or take one out");
                once.add(&twice.key, Finding::new(RULE.incident, diagnostic).app(app.name()));
            }
        }
    }
    once.report(report);
}

/// The files in which a key that is set twice is lost silently.
fn files(survey: &Survey) -> BTreeSet<Arc<str>> {
    let is_yaml = |path: &str| path.ends_with(".yaml") || path.ends_with(".yml");
    let is_meant = |path: &str| {
        let base = path.rsplit('/').next().unwrap_or(path);
        let stem = base.trim_end_matches(".yaml").trim_end_matches(".yml");
        tiphys_kustomize::FILE_NAMES.contains(&base)
            || matches!(base, "Chart.yaml" | "helmfile.yaml")
            || (is_yaml(path) && (stem.starts_with("values") || stem.ends_with("values")))
    };
    let mut found: BTreeSet<Arc<str>> = survey
        .files
        .paths()
        .filter(|path| is_meant(path) && !path.contains("/templates/"))
        .cloned()
        .collect();
    // What cannot be read as an object, or is behind something out of reach, is a release nevertheless.
    let is_release =
        |path: &str| survey.files.text(path).is_some_and(|text| text.contains("kind: HelmRelease"));
    let others = survey.files.paths().filter(|path| is_yaml(path) && !path.contains("/templates/"));
    found.extend(others.filter(|path| is_workflow(path) || is_release(path)).cloned());
    let manifests = survey.objects.iter().map(|object| &object.rendered.location.file);
    found.extend(manifests.filter(|path| is_yaml(path) && !path.contains("/templates/")).cloned());
    for app in &survey.apps {
        for source in app.application.spec.effective_sources() {
            for file in source.helm.iter().flat_map(|helm| &helm.value_files) {
                let name = file.rsplit('/').next().unwrap_or(file);
                found.extend(app.read.iter().filter(|path| path.rsplit('/').next() == Some(name)).cloned());
            }
        }
    }
    found
}

fn is_workflow(path: &str) -> bool {
    path.starts_with(".github/workflows/") || path.contains("/.github/workflows/")
}

/// A key that a mapping has twice.
struct Twice {
    key: String,
    first: Position,
    second: Position,
    is_same: bool,
}

fn collect(node: &Node, found: &mut Vec<Twice>, depth: usize) {
    const MAX_DEPTH: usize = 200;
    if depth > MAX_DEPTH {
        return;
    }
    match &node.content {
        Content::Mapping(pairs) => {
            let mut seen: HashMap<&str, (&Node, &Node)> = HashMap::new();
            for (key, value) in pairs {
                if let Content::Scalar(name) = &key.content
                    && name != "<<"
                    && let Some((first, other)) = seen.insert(name, (key, value))
                {
                    found.push(Twice {
                        key: name.to_string(),
                        first: first.span.start,
                        second: key.span.start,
                        is_same: same_content(value, other, depth),
                    });
                }
                collect(value, found, depth + 1);
            }
        }
        Content::Sequence(items) => items.iter().for_each(|item| collect(item, found, depth + 1)),
        Content::Scalar(_) | Content::Alias(_) => {}
    }
}

/// Whether two nodes say the same, wherever they stand.
fn same_content(one: &Node, other: &Node, depth: usize) -> bool {
    const MAX_DEPTH: usize = 400;
    match (&one.content, &other.content) {
        _ if depth > MAX_DEPTH => false,
        (Content::Mapping(one), Content::Mapping(other)) => {
            one.len() == other.len()
                && one.iter().zip(other).all(|((key, value), (of_other, other))| {
                    key.content == of_other.content && same_content(value, other, depth + 1)
                })
        }
        (Content::Sequence(one), Content::Sequence(other)) => {
            one.len() == other.len()
                && one.iter().zip(other).all(|(one, other)| same_content(one, other, depth + 1))
        }
        (one, other) => one == other,
    }
}

fn finding(context: &Context<'_>, path: &Arc<str>, twice: &Twice) -> Finding {
    let files = &context.survey.files;
    let span = |at: Position| files.span(&Location::new(path.clone(), at.line, at.column));
    let mut diagnostic = RULE
        .diagnostic(format!("the key {:?} is set twice in one mapping: the first is lost", twice.key))
        .at(span(twice.second), "this one counts")
        .see(span(twice.first), "this one has no effect")
        .because(match is_workflow(path) {
            true => "GitHub refuses the whole workflow: no job of it runs",
            false => {
                "Helm and Kustomize read the last of two and say nothing; strict readers refuse the file"
            }
        })
        .help("put the two together, or take one out");
    if twice.is_same && !is_workflow(path) {
        diagnostic.severity = Severity::Info;
    }
    let finding = Finding::new(RULE.incident, diagnostic);
    match without(files, path, twice.first) {
        // What has no effect can go; that the second one is meant is sure only where both say the same.
        Some(edit) if twice.is_same => finding.fix("take the first one out", vec![edit]),
        Some(edit) => finding.guess("take the first one out", vec![edit]),
        None => finding,
    }
}

/// The edit that takes a key of a mapping with a line for each key out of a file, with all that stands below
/// it.
fn without(files: &Files, path: &Arc<str>, key: Position) -> Option<Edit> {
    let text = files.text(path).filter(|text| !text.contains("{{"))?;
    let lines: Vec<&str> = text.lines().collect();
    let (first, indent) = (key.line.checked_sub(1)? as usize, key.column.checked_sub(1)? as usize);
    let depth = |line: &str| line.len() - line.trim_start().len();
    if depth(lines.get(first)?) != indent {
        return None;
    }
    let is_below = |line: &&&str| {
        let inner = line.trim_start();
        inner.is_empty() || depth(line) > indent || depth(line) == indent && inner.starts_with("- ")
    };
    let mut end = first + 1 + lines[first + 1..].iter().take_while(is_below).count();
    // Blank lines belong to what comes next.
    while lines[end - 1].trim().is_empty() {
        end -= 1;
    }
    // What others stand for must stay.
    if lines[first..end].iter().any(|line| line.contains('&')) {
        return None;
    }
    let at = |line: usize| u32::try_from(line + 1).ok().map(|line| tiphys_diag::Position { line, column: 1 });
    let span = Span { file: path.clone(), start: at(first)?, end: at(end)? };
    Some(Edit { span, replacement: String::new() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repeats(text: &str) -> bool {
        let mut found = Vec::new();
        let documents = tiphys_yaml::parse_documents(text, Profile::Go2).expect("it is YAML");
        documents.iter().for_each(|document| collect(&document.root, &mut found, 0));
        !found.is_empty()
    }

    #[test]
    fn a_key_that_is_there_twice_is_found() {
        for text in [
            "a: 1\nb: 2\na: 3\n",
            "a:\n  b: 1\n  c: 2\n  b: 3\n",
            "- a: 1\n  b: 2\n  a: 3\n",
            "- - a: 1\n    a: 2\n",
            "a:\n- b: 1\n  c:\n    d: 1\n  b: 2\n",
            "a:\n  - b\n  - c\na: 1\n",
            "'a': 1\n\"a\": 2\n",
            "a: {b: 1, b: 2}\n",
            "a: {\n  b: 1,\n  b: 2\n}\n",
            "a: |\n  b: 1\nc: 1\na: 2\n",
            "a: {\n  b: 1, b: 2}\n",
            "x:\n  a: \"one\n two: three\"\n  a: 2\n",
            "a:   # why\n\n  b: 1\n# more\n  b: 2\n",
            "? a\n: 1\n? a\n: 2\n",
            "&x a: 1\na: 2\n",
            "---\na: 1\n---\nb: 1\nb: 2\n",
        ] {
            assert!(repeats(text), "{text}");
        }
    }

    #[test]
    fn what_has_each_key_once_is_no_fault() {
        for text in [
            "a: 1\nb: 2\n",
            "- a: 1\n  b: 2\n- a: 3\n  b: 4\n",
            "a:\n  x: 1\nb:\n  x: 1\n",
            "a:\n- x: 1\n- x: 2\nb: 1\n",
            "a: 1\n---\na: 1\n",
            "image: registry.example.com/web:1\nurl: http://x.example.com:80\n",
        ] {
            assert!(!repeats(text), "{text}");
        }
    }
}

//! # A package lacks the script, or the lock file, that its pipeline asks for
//!
//! `npm run NAME` ends the build when `package.json` has no such script – nearly always after one was
//! renamed. The action `setup-node` with `cache` ends it when the repository has no lock file to make the key
//! of.
//!
//! People see: `npm error Missing script: "start:prod"`, `Dependencies lock file is not found in …`.
//!
//! ## Bad
//! ```dockerfile
//! CMD ["npm", "run", "start:prod"]
//! # package.json: "scripts": {"start": "node server.js"}
//! ```
//! ## Good
//! ```dockerfile
//! CMD ["npm", "run", "start"]
//! ```
//! ## When to suppress
//! Where something writes the script or the file before.

use std::{collections::BTreeMap, sync::Arc};

use tiphys_diag::{Diagnostic, Severity, Span, similar_names};
use tiphys_graph::{
    Files,
    tools::{
        docker,
        node::{self, Package, upwards},
        node_span, parse_shell,
        pipelines::{self, Format, Pipeline},
    },
};
use tiphys_yaml::Node;

use crate::{Context, Finding, Report, Rule};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "G6-missing-script",
    incident: "G6",
    severity: Severity::Error,
    title: "a package lacks the script or lock file that a build asks for",
    page: page!("g6_missing_script.rs"),
    check,
};

fn check(context: &Context<'_>, report: &mut Report) {
    let files = &context.survey.files;
    let packages = node::packages(files);
    for path in files.paths().filter(|path| docker::is_dockerfile(path)) {
        let found = image(files, path, &packages);
        found.into_iter().for_each(|it| report.add(it));
    }
    for pipeline in &context.survey.tools().pipelines {
        for (script, folder) in pipeline.scripts() {
            for (line, name, folder) in called_scripts(&script.text, &folder) {
                let Some(package) = packages.get(&folder) else { continue };
                let span = script.span(files, line);
                let found = missing_script(files, package, &name, span);
                found.into_iter().for_each(|it| report.add(it));
            }
        }
        if let Some(diagnostic) = cache(files, pipeline, &packages) {
            report.add(Finding::new(RULE.incident, diagnostic).likely());
        }
    }
}

/// The script that a command runs, if it says so and leaves no way out.
fn script_of(words: &[String]) -> Option<&str> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let is_open = |word: &&str| {
        word.starts_with("--if-present")
            || word.starts_with("--prefix")
            || word.starts_with("--workspace")
            || word.starts_with("--filter")
            || matches!(*word, "-w" | "-C" | "-F" | "-r" | "--recursive" | "--dir")
            || word.contains(['$', '{', '*'])
    };
    match words.as_slice() {
        ["npm" | "pnpm", "run" | "run-script", name, ..]
            if !words.iter().any(is_open) && !name.starts_with('-') =>
        {
            Some(name)
        }
        _ => None,
    }
}

/// The scripts that a text calls, each with its line and the folder that it is called in.
fn called_scripts(text: &str, start: &str) -> Vec<(u32, String, String)> {
    let mut found = Vec::new();
    let mut folder = Some(start.to_owned());
    for command in parse_shell(text) {
        if let [cd, to] = command.words.as_slice()
            && cd == "cd"
        {
            let is_plain = !to.starts_with('/') && !to.contains(['$', '~', '-']);
            folder = folder.filter(|_| is_plain).and_then(|folder| tiphys_vfs::join(&folder, to).ok());
        }
        // Where it is, after a subshell or another tool's folder, is not followed.
        if let (Some(name), Some(folder)) = (script_of(&command.words), &folder)
            && !text.contains("pushd")
            && !text.contains("||")
        {
            let line = text.lines().position(|line| line.contains(name)).unwrap_or_default();
            found.push((u32::try_from(line).unwrap_or_default() + 1, name.to_owned(), folder.clone()));
        }
    }
    found
}

/// What an image starts with, of the package that is copied into it.
fn image(files: &Files, path: &Arc<str>, packages: &BTreeMap<String, Package>) -> Option<Finding> {
    let image = docker::image(files, path)?;
    let start = image.start.as_ref()?;
    let program = start.program()?;
    let name = script_of(&program)?;
    let folder = tiphys_vfs::parent(path).unwrap_or_default();
    // A package of any folder that may be the context counts, and so does what other stages bring.
    let mut meant = upwards(folder).filter_map(|above| packages.get(above));
    let first = meant.next()?;
    let has = |package: &Package| package.scripts().any(|(known, _)| known == name);
    let others = packages.values().filter(|package| package.folder != first.folder);
    let is_copied = image.copies.iter().any(|copy| {
        copy.from.iter().any(|from| matches!(from.as_str(), "" | ".") || from.starts_with("package"))
    });
    if !is_copied || has(first) || others.into_iter().any(has) {
        return None;
    }
    missing_script(files, first, name, start.span.clone())
}

fn missing_script(files: &Files, package: &Package, name: &str, span: Span) -> Option<Finding> {
    if package.scripts().any(|(known, _)| known == name) {
        return None;
    }
    let mut diagnostic = RULE
        .diagnostic(format!("Missing script: {name:?}"))
        .at(span, "runs this script")
        .see(package.span(files, "{"), "this package does not have it")
        .because("npm runs only what the scripts of package.json name");
    let nearest = similar_names::nearest_slip(name, package.scripts().map(|(known, _)| known));
    diagnostic.help.extend(nearest.map(|nearest| format!("there is {nearest}")));
    let finding = Finding::new(RULE.incident, diagnostic).likely();
    Some(match nearest {
        Some(nearest) => finding.with_spelling(name, nearest),
        None => finding,
    })
}

/// A step that wants a key for its cache, in a repository without any lock file.
fn cache(files: &Files, pipeline: &Pipeline, packages: &BTreeMap<String, Package>) -> Option<Diagnostic> {
    const LOCKS: [&str; 5] =
        ["package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml", "bun.lockb"];
    let has_lock = LOCKS.iter().any(|lock| files.contains(lock));
    if pipeline.format != Format::Workflow || has_lock || !packages.contains_key("") {
        return None;
    }
    let jobs = pipeline.roots().iter().filter_map(|root| root.get("jobs")?.pairs()).flatten();
    let steps = jobs.map(|(_, job)| pipelines::steps(job)).filter(|steps| !steps.is_empty());
    for steps in steps {
        let uses = |step: &Node, action: &str| {
            step.get("uses").and_then(Node::as_str).is_some_and(|it| it.starts_with(action))
        };
        // The tree of another repository, or what a step writes, is not seen.
        let own = steps.iter().find(|step| uses(step, "actions/checkout@"))?;
        if own.get("with").is_some_and(|with| with.get("repository").is_some() || with.get("path").is_some())
        {
            continue;
        }
        let wants = |step: &&Node| {
            uses(step, "actions/setup-node@")
                && step.get("with").is_some_and(|with| {
                    with.get("cache")
                        .and_then(Node::as_str)
                        .is_some_and(|it| matches!(it, "npm" | "yarn" | "pnpm"))
                        && with.get("cache-dependency-path").is_none()
                })
        };
        if let Some(step) = steps.iter().copied().find(wants) {
            let diagnostic = RULE
                .diagnostic("Dependencies lock file is not found")
                .at(node_span(files, &pipeline.file, step), "makes a key of the lock file")
                .because("setup-node looks for the lock file in the root of the repository, and ends the job where there is none")
                .help("commit the lock file, name it in cache-dependency-path, or leave out cache");
            return Some(diagnostic);
        }
    }
    None
}

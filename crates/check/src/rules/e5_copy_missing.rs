//! # A Dockerfile copies what is not there
//!
//! `COPY` takes files from the build context. Where the context that has the others lacks one of them, the
//! build ends at that line, and the image that the cluster is to pull is never made: a file was renamed or
//! moved, or never committed.
//!
//! People see: `ERROR: failed to compute cache key: failed to calculate checksum of ref …:
//! "/requirements.txt": not found`, `COPY failed: file not found in build context or excluded by
//! .dockerignore`.
//!
//! Which folder the context is, a workflow may say. Where none does, the rule speaks only if the file is
//! missing in every folder that may be it, and is none that a build makes.
//!
//! ## Bad
//! ```dockerfile
//! COPY requirement.txt ./       # the file is requirements.txt
//! COPY src ./src
//! ```
//! ## Good
//! ```dockerfile
//! COPY requirements.txt ./
//! COPY src ./src
//! ```
//! ## When to suppress
//! Where a step before the build writes the file, in a way that the repository does not show.

use std::{collections::BTreeSet, sync::Arc};

use tiphys_diag::{Severity, Span, similar_names};
use tiphys_graph::{
    Files,
    tools::{
        docker,
        node::{inside, upwards},
        pipelines::{self, Format},
    },
};
use tiphys_vfs::{base_name, parent};
use tiphys_yaml::Node;

use crate::{
    Context, Finding, Report, Rule,
    support::{placeholders, unused_files},
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "E5-copy-missing",
    incident: "E5",
    severity: Severity::Warning,
    title: "a Dockerfile copies what is not there",
    page: page!("e5_copy_missing.rs"),
    check,
};

/// Endings of files that people write and commit.
const WRITTEN: [&str; 22] = [
    ".txt",
    ".toml",
    ".json",
    ".lock",
    ".sh",
    ".conf",
    ".py",
    ".js",
    ".mjs",
    ".ts",
    ".go",
    ".mod",
    ".sum",
    ".xml",
    ".yaml",
    ".yml",
    ".cfg",
    ".ini",
    ".properties",
    ".gradle",
    ".kts",
    ".template",
];

/// Folders of sources, by the names that they nearly always have.
const SOURCES: [&str; 10] =
    ["app", "cmd", "config", "internal", "lib", "migrations", "pkg", "scripts", "src", "templates"];

fn check(context: &Context<'_>, report: &mut Report) {
    let files = &context.survey.files;
    for path in files.paths().filter(|path| docker::is_dockerfile(path) && !placeholders::is_skeleton(path)) {
        let sources = docker::sources(files, path);
        if let Some(finding) = missing(context, path, &sources) {
            report.add(finding);
        }
    }
}

fn missing(context: &Context<'_>, path: &Arc<str>, sources: &[(String, Span)]) -> Option<Finding> {
    let files = &context.survey.files;
    let folder = parent(path).unwrap_or_default();
    let lacked = |at: &str| -> Vec<&(String, Span)> {
        sources.iter().filter(|(source, _)| !is_there(files, at, source)).collect()
    };
    if sources.iter().any(|(source, _)| source.starts_with("..")) {
        return None;
    }
    let declared = declared(context, path);
    // The nearest folder that has anything of what is copied by name; failing that, the Dockerfile's own if
    // all of it is copied.
    let has_some =
        |at: &&str| sources.iter().any(|(source, _)| !is_all(source) && is_there(files, at, source));
    let copies_all = sources.iter().any(|(source, _)| is_all(source));
    let likely = match &declared {
        Some(at) => at.as_str(),
        None => upwards(folder).find(has_some).or_else(|| Some(folder).filter(|_| copies_all))?,
    };
    let absent = lacked(likely);
    // Where nobody says which folder it is, one that lacks much is none.
    let (source, span) = match absent[..] {
        [one] => one,
        [one, ..] if declared.is_some() => one,
        _ => return None,
    };
    // Any folder may be the context: one that has all of it is.
    let elsewhere = files.paths().filter_map(|it| it.strip_suffix(source.as_str())?.strip_suffix('/'));
    let candidates = upwards(folder).chain(elsewhere).filter(|_| declared.is_none());
    if candidates.into_iter().any(|at| lacked(at).is_empty())
        || !is_written(files, likely, source)
        || is_made(context, path, &inside(likely, source))
    {
        return None;
    }
    let mut diagnostic = RULE
        .diagnostic(format!(
            "\"/{source}\": not found: {path} copies it, and the build context does not have it"
        ))
        .at(span.clone(), "this is not there")
        .because(
            "the build ends at an instruction that copies what is not in its context, and no image is made",
        );
    let wanted = inside(likely, source);
    let (above, name) = (parent(&wanted).unwrap_or_default(), base_name(&wanted));
    let beside = files.tree().read_dir(above).unwrap_or_default();
    let beside: Vec<String> = beside.into_iter().map(|entry| entry.name).collect();
    let nearest = similar_names::nearest_slip(name, beside.iter().map(String::as_str));
    diagnostic.help.extend(nearest.map(|nearest| format!("there is {nearest}")));
    let finding = Finding::new(RULE.incident, diagnostic).likely();
    Some(match nearest {
        Some(nearest) => finding.with_spelling(name, nearest),
        None => finding,
    })
}

fn is_all(source: &str) -> bool {
    matches!(source, "" | ".")
}

/// The build context that a workflow says, if all that build the image say the same one.
fn declared(context: &Context<'_>, dockerfile: &str) -> Option<String> {
    let pipelines = context.survey.tools().pipelines.iter().filter(|it| it.format == Format::Workflow);
    let jobs = pipelines.flat_map(|it| it.roots()).filter_map(|root| root.get("jobs")?.pairs()).flatten();
    let steps = jobs.flat_map(|(_, job)| pipelines::steps(job));
    let plain = |text: &str| match text.trim_start_matches("./").trim_matches('/') {
        "." => String::new(),
        text => text.to_owned(),
    };
    let of_step = |step: &Node| {
        let is_build = step.get("uses")?.as_str()?.starts_with("docker/build-push-action@");
        let with = step.get("with").filter(|_| is_build)?;
        let at = plain(with.get("context")?.as_str()?);
        let file = match with.get("file").and_then(Node::as_str) {
            Some(file) => plain(file),
            None => inside(&at, "Dockerfile"),
        };
        (file == dockerfile && !at.contains(['$', ':'])).then_some(at)
    };
    let found: BTreeSet<String> = steps.filter_map(of_step).collect();
    let [only] = found.into_iter().collect::<Vec<_>>().try_into().ok()?;
    Some(only)
}

/// Whether a context has a file or folder.
fn is_there(files: &Files, at: &str, source: &str) -> bool {
    let path = inside(at, source);
    is_all(source) || files.contains(&path) || files.has_folder(&path) || files.tree().exists(&path)
}

/// Whether people write a file or folder of this name, and Git is not told to ignore it.
fn is_written(files: &Files, at: &str, source: &str) -> bool {
    const BUILT: [&str; 9] =
        ["dist", "build", "target", "out", "bin", "public", "vendor", "node_modules", ".next"];
    let name = base_name(source).to_lowercase();
    (WRITTEN.iter().any(|ending| name.ends_with(ending)) || SOURCES.contains(&name.as_str()))
        && !source.split('/').any(|step| BUILT.contains(&step))
        && !unused_files::is_git_ignored(files, &inside(at, source))
}

/// Whether a script, pipeline or task speaks of a file, and may make it.
fn is_made(context: &Context<'_>, dockerfile: &str, wanted: &str) -> bool {
    let files = &context.survey.files;
    // Names of folders of sources are words of which scripts are full.
    let name = if SOURCES.contains(&base_name(wanted)) { wanted } else { base_name(wanted) };
    let speaks = |path: &str| files.text(path).is_some_and(|text| text.contains(name));
    let is_script = |path: &str| {
        let base = base_name(path);
        path.starts_with(".github/")
            || [".sh", ".mk", ".ps1"].iter().any(|ending| base.ends_with(ending))
            || [
                "Makefile",
                "Taskfile",
                "justfile",
                "Justfile",
                "skaffold",
                "Jenkinsfile",
                ".gitlab-ci",
                "cloudbuild",
                "buildspec",
            ]
            .iter()
            .any(|start| base.starts_with(start))
    };
    let scripts: BTreeSet<&str> =
        files.paths().map(AsRef::as_ref).filter(|path| is_script(path) && *path != dockerfile).collect();
    scripts.into_iter().any(speaks)
}

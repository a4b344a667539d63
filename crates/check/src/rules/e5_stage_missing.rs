//! # A Dockerfile goes on from a stage that it does not have
//!
//! `COPY --from=builder` and `FROM base` take a stage of the same file by its name, or by its number. Where
//! no stage has the name, the builder takes it for the name of an image, and asks Docker Hub for it.
//!
//! People see: `pull access denied for builder, repository does not exist or may require authorization`,
//! `failed to resolve source metadata for docker.io/library/builder:latest`, `invalid from flag value`.
//!
//! ## Bad
//! ```dockerfile
//! FROM golang:1.24 AS build
//! FROM alpine:3.22
//! COPY --from=builder /out/app /app
//! ```
//! ## Good
//! ```dockerfile
//! FROM golang:1.24 AS build
//! FROM alpine:3.22
//! COPY --from=build /out/app /app
//! ```
//! ## When to suppress
//! Where an image of this name is on the machine that builds, or the builder is given a context of this name.

use regex::Regex;
use tiphys_diag::{Severity, Span, similar_names};
use tiphys_graph::{
    Files,
    tools::docker::{self, Stage},
};
use tiphys_vfs::base_name;

use crate::{Context, Finding, Report, Rule, support::placeholders};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "E5-stage-missing",
    incident: "E5",
    severity: Severity::Warning,
    title: "a Dockerfile goes on from a stage that it does not have",
    page: page!("e5_stage_missing.rs"),
    check,
};

/// What people call stages, and no image of Docker's library is called.
const STAGES: [&str; 16] = [
    "app",
    "assets",
    "base",
    "build",
    "build-env",
    "builder",
    "compile",
    "deps",
    "dependencies",
    "development",
    "final",
    "install",
    "prod",
    "production",
    "release",
    "runtime",
];

fn check(context: &Context<'_>, report: &mut Report) {
    let files = &context.survey.files;
    for path in files.paths().filter(|path| docker::is_dockerfile(path) && !placeholders::is_skeleton(path)) {
        let stages = docker::stages(files, path);
        if has_named_contexts(&stages) {
            continue;
        }
        for (at, stage) in stages.iter().enumerate() {
            let before = &stages[..at];
            let copied = stage.copied.iter().filter_map(|(from, span)| missing(from, before, span));
            let based = missing(&stage.base, before, &stage.span).filter(|_| at > 0);
            for (name, finding) in copied.chain(based) {
                if is_handed_over(files, name) {
                    continue;
                }
                report.add(finding.likely());
            }
        }
    }
}

/// Whether a builder hands contexts of their own to the file (`--build-context`), which are called like
/// stages: an image without registry, publisher and tag is hardly ever one of Docker's library.
fn has_named_contexts(stages: &[Stage]) -> bool {
    const LIBRARY: [&str; 14] = [
        "alpine", "busybox", "caddy", "composer", "debian", "golang", "maven", "nginx", "node", "php",
        "python", "rust", "scratch", "ubuntu",
    ];
    let first = stages.first().map(|stage| stage.base.as_str());
    first.is_some_and(|base| !base.contains(['/', ':', '.', '$', '@']) && !LIBRARY.contains(&base))
}

/// What is told of a name that none of the stages before has, and no image either.
fn missing<'n>(name: &'n str, before: &[Stage], span: &Span) -> Option<(&'n str, Finding)> {
    let known = || before.iter().filter_map(|stage| stage.name.as_deref());
    // An image of another registry, publisher or version is none of the stages.
    if name.contains(['/', ':', '.', '$', '@']) || known().any(|it| it.eq_ignore_ascii_case(name)) {
        return None;
    }
    if let Ok(number) = name.parse::<usize>() {
        let is_there = number < before.len();
        let diagnostic = || {
            RULE.diagnostic(format!("invalid from flag value {name}: there is no such stage before this one"))
                .at(span.clone(), "copies from this stage")
                .because("stages are counted from 0, and only those above can be copied from")
        };
        return (!is_there).then(|| (name, Finding::new(RULE.incident, diagnostic())));
    }
    let nearest = similar_names::nearest_slip(name, known());
    if nearest.is_none() && !STAGES.contains(&name.to_ascii_lowercase().as_str()) {
        return None;
    }
    let mut diagnostic = RULE
        .diagnostic(format!("pull access denied for {name}: no stage above is called so"))
        .at(span.clone(), "goes on from this stage")
        .because(
            "what no stage is called is taken for an image of Docker Hub, and there is none of this name",
        );
    let names: Vec<&str> = known().collect();
    if nearest.is_none() && !names.is_empty() {
        diagnostic = diagnostic.help(format!("the stages are {}", names.join(", ")));
    }
    Some((name, Finding::new(RULE.incident, diagnostic).perhaps(name, nearest)))
}

/// Whether a script or a file of a builder hands over a context of a name (`--build-context base=…`, or a
/// list of contexts), or builds an image that is called so (`-t base`).
fn is_handed_over(files: &Files, name: &str) -> bool {
    let is_of_builder = |path: &str| {
        let ends = [".sh", ".hcl", ".mk", ".yml", ".yaml", ".json", "file"];
        ends.iter().any(|end| base_name(path).ends_with(end)) && !docker::is_dockerfile(path)
    };
    let name = regex::escape(name);
    let tag = format!(r"(?:-t|--tag)[ =]+{name}(?::|\s|$)");
    let flag = format!(r"-context[ =]+{name}=");
    let entry = format!(r#"^[\s-]*"?{name}"?\s*[:=]\s*"?(?:docker-image:|target:|service:|https?:|\.)"#);
    let pattern = Regex::new(&format!("(?m){tag}|{flag}|{entry}")).expect("the name is escaped");
    let mut texts = files.paths().filter(|path| is_of_builder(path)).filter_map(|path| files.text(path));
    texts.any(|text| pattern.is_match(&text))
}

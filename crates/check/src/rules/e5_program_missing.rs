//! # An image starts a program that nothing brings
//!
//! The last stage of a Dockerfile has what its base image has, and what its instructions bring. Where it
//! starts a file by its full path, no `COPY` or `ADD` brings anything to that path or to a folder above it,
//! no `RUN` speaks of it, and the base is an empty image or one of Docker's library, the file is not there.
//!
//! People see: `exec /app: no such file or directory`, `stat /app: no such file or directory: unknown`,
//! `Error: Unable to access jarfile /app.jar`, `CrashLoopBackOff`.
//!
//! ## Bad
//! ```dockerfile
//! FROM scratch
//! COPY --from=build /out/server /server
//! ENTRYPOINT ["/app"]
//! ```
//! ## Good
//! ```dockerfile
//! FROM scratch
//! COPY --from=build /out/server /server
//! ENTRYPOINT ["/server"]
//! ```
//! ## When to suppress
//! Where the base image of this name is one of your own.

use std::sync::Arc;

use tiphys_diag::{Diagnostic, Severity};
use tiphys_graph::{
    Files,
    tools::docker::{self, Image},
};
use tiphys_vfs::base_name;

use crate::{Context, Finding, Report, Rule, support::placeholders};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "E5-program-missing",
    incident: "E5",
    severity: Severity::Warning,
    title: "an image starts a program that nothing brings",
    page: page!("e5_program_missing.rs"),
    check,
};

fn check(context: &Context<'_>, report: &mut Report) {
    let files = &context.survey.files;
    for path in files.paths().filter(|path| docker::is_dockerfile(path) && !placeholders::is_skeleton(path)) {
        if let Some(diagnostic) = missing(files, path) {
            report.add(Finding::new(RULE.incident, diagnostic).likely());
        }
    }
}

/// Commands that may bring a file to any place: they run what is not seen.
const ANYWHERE: [&str; 9] =
    ["./", ".sh", "| sh", "| bash", "|sh", "|bash", "make ", "go install", "cargo install"];

fn missing(files: &Files, path: &Arc<str>) -> Option<Diagnostic> {
    let image = docker::image(files, path)?;
    let start = image.start.as_ref()?;
    let program = started(&start.program()?)?;
    // A variable in the text of the file may be part of any path.
    if !is_plain_base(&image.base) || may_be_there(&image, &program) {
        return None;
    }
    let message = if program.ends_with(".jar") {
        format!("Error: Unable to access jarfile {program}")
    } else {
        format!("exec {program}: no such file or directory")
    };
    let brought: Vec<&str> = targets(&image).filter(|to| to.len() > 1).collect();
    let mut diagnostic = RULE
        .diagnostic(message)
        .at(start.span.clone(), "starts this file")
        .because("the last stage has only what its base image has and what its instructions bring, and none of them brings this file");
    if !brought.is_empty() {
        diagnostic = diagnostic.help(format!("what is brought is {}", brought.join(", ")));
    }
    Some(diagnostic)
}

/// The file that is started by its full path, where it is none that every system has.
fn started(words: &[String]) -> Option<String> {
    const SYSTEM: [&str; 9] =
        ["/bin/", "/sbin/", "/usr/", "/opt/", "/lib", "/etc/", "/proc/", "/busybox/", "/nodejs/"];
    let [program, rest @ ..] = words else { return None };
    if words.iter().any(|word| word.contains('$')) {
        return None;
    }
    let named = if base_name(program) == "java" {
        let at = rest.iter().position(|word| word == "-jar")?;
        rest.get(at + 1)?
    } else {
        program
    };
    let is_full = named.starts_with('/') && named.len() > 1;
    // The scripts of the library's own images are called so.
    let is_of_base = SYSTEM.iter().any(|folder| named.starts_with(folder)) && !named.ends_with(".jar")
        || base_name(named).contains("entrypoint")
        || base_name(named).contains("tini")
        || base_name(named).starts_with("init");
    (is_full && !is_of_base).then(|| named.clone())
}

/// Whether an image is empty, or one of Docker's library of which people know what is in it.
fn is_plain_base(base: &str) -> bool {
    const PLAIN: [&str; 16] = [
        "scratch",
        "alpine",
        "amazoncorretto",
        "busybox",
        "debian",
        "eclipse-temurin",
        "fedora",
        "golang",
        "ibm-semeru-runtimes",
        "maven",
        "node",
        "openjdk",
        "python",
        "rust",
        "sapmachine",
        "ubuntu",
    ];
    let name = base.split([':', '@']).next().unwrap_or(base);
    PLAIN.contains(&name) || base.starts_with("gcr.io/distroless/")
}

/// Where the instructions bring something.
fn targets(image: &Image) -> impl Iterator<Item = &str> {
    let own = image.copies.iter().map(|copy| copy.to.as_str());
    own.chain(image.foreign.iter().map(String::as_str))
}

fn may_be_there(image: &Image, program: &str) -> bool {
    let is_at = |to: &str| {
        let to = to.trim_end_matches('/');
        to.is_empty() || to == program || program.starts_with(&format!("{to}/")) || to.contains('$')
    };
    // A command in a folder may bring it by a pattern, or as what it builds; a program of the repository's
    // own, or an installer from elsewhere, may bring it to any place.
    let brings = |text: &str| {
        text.contains(base_name(program))
            || text.contains('*')
            || ANYWHERE.iter().any(|mark| text.contains(mark))
    };
    let folder = program.rsplit_once('/').map_or("", |(folder, _)| folder);
    let above = std::iter::successors(Some(folder), |it| it.rsplit_once('/').map(|(above, _)| above));
    // `python -m venv /venv` brings `/venv/bin/gunicorn`.
    let says_folder = |text: &str, folder: &str| {
        let mut words = text.split(|c: char| c.is_whitespace() || matches!(c, '=' | '"' | '\'' | ';' | ':'));
        words.any(|word| word.trim_end_matches('/') == folder || word.starts_with(&format!("{folder}/")))
    };
    let runs = |(at, text): &(String, String)| {
        let folders = above.clone().filter(|it| !it.is_empty());
        brings(text)
            || folders.clone().any(|it| says_folder(text, it) || at == it)
            || at.starts_with(folder) && !folder.is_empty()
    };
    targets(image).any(is_at) || image.runs.iter().any(runs)
}

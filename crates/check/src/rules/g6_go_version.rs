//! # A module needs a newer Go than its image has
//!
//! The `go` line of go.mod names the oldest Go that may build the module. The images of Docker's library set
//! `GOTOOLCHAIN=local`: they do not fetch a newer one, and the build ends. Before 1.21 the line was a hint;
//! but those versions cannot read one with a patch number, such as `go 1.22.1`.
//!
//! People see: `go: go.mod requires go >= 1.24.0 (running go 1.22.12; GOTOOLCHAIN=local)`,
//! `go: errors parsing go.mod: invalid go version '1.22.1': must match format 1.23`.
//!
//! ## Bad
//! ```dockerfile
//! FROM golang:1.22            # go.mod says: go 1.24.0
//! ```
//! ## Good
//! ```dockerfile
//! FROM golang:1.24
//! ```
//! ## When to suppress
//! Where the module is not what this image builds.

use std::sync::Arc;

use tiphys_diag::{Diagnostic, Severity};
use tiphys_graph::{
    Files,
    tools::{
        docker,
        node::{inside, upwards},
    },
};
use tiphys_value::Location;
use tiphys_vfs::parent;

use crate::{Context, Finding, Report, Rule, support::placeholders};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "G6-go-version",
    incident: "G6",
    severity: Severity::Warning,
    title: "a module needs a newer Go than its image has",
    page: page!("g6_go_version.rs"),
    check,
};

/// Major and minor number, and the patch number if there is one.
type Version = (u32, u32, Option<u32>);

fn check(context: &Context<'_>, report: &mut Report) {
    let files = &context.survey.files;
    for path in files.paths().filter(|path| docker::is_dockerfile(path) && !placeholders::is_skeleton(path)) {
        if let Some(diagnostic) = check_image(files, path) {
            report.add(Finding::new(RULE.incident, diagnostic).likely());
        }
    }
}

fn check_image(files: &Files, path: &Arc<str>) -> Option<Diagnostic> {
    let text = files.text(path)?;
    // An image may be told to fetch what it needs, and a variable may stand for anything.
    if !text.contains("go.mod") && !text.contains("go build") || text.contains("GOTOOLCHAIN") {
        return None;
    }
    let stages = docker::stages(files, path);
    let of_go: Vec<_> = stages.iter().filter(|stage| is_of_go(&stage.base)).collect();
    let [stage] = of_go[..] else { return None };
    let image = version(stage.base.split_once(':')?.1)?;
    let module = module(files, path)?;
    let content = files.text(&module)?;
    let (at, line) = content
        .lines()
        .enumerate()
        .find(|(_, line)| line.trim_start().starts_with("go ") && !content.contains("\ntoolchain local"))?;
    let said = line.trim_start().trim_start_matches("go ").split_whitespace().next()?;
    let wanted = version(said)?;
    let message = version_conflict(image, wanted, said)?;
    let line = u32::try_from(at).unwrap_or_default() + 1;
    let diagnostic = RULE
        .diagnostic(message)
        .at(stage.span.clone(), format!("this image has Go {}.{}", image.0, image.1))
        .see(files.span(&Location::new(module, line, 0)), format!("the module asks for Go {said}"))
        .because("Go builds no module that asks for a newer version, and the images of Go fetch none")
        .help(format!("build from golang:{}.{} or newer", wanted.0, wanted.1));
    Some(diagnostic)
}

/// What Go of an image says of what a module wants; `None` if it is content.
fn version_conflict(image: Version, wanted: Version, said: &str) -> Option<String> {
    let is_new = (image.0, image.1) >= (1, 21);
    let is_older = match image.2 {
        Some(_) => image < (wanted.0, wanted.1, Some(wanted.2.unwrap_or_default())),
        // A tag without a patch number is the newest of its line.
        None => (image.0, image.1) < (wanted.0, wanted.1),
    };
    if is_new {
        let running = format!("{}.{}", image.0, image.1);
        return is_older
            .then(|| format!("go: go.mod requires go >= {said} (running go {running}; GOTOOLCHAIN=local)"));
    }
    wanted
        .2
        .map(|_| format!("go: errors parsing go.mod: invalid go version '{said}': must match format 1.23"))
}

fn is_of_go(base: &str) -> bool {
    let name = base.split([':', '@']).next().unwrap_or(base);
    matches!(name, "golang" | "docker.io/golang" | "docker.io/library/golang" | "library/golang")
}

/// The module that a Dockerfile builds: the one beside it, or the nearest above.
fn module(files: &Files, path: &Arc<str>) -> Option<Arc<str>> {
    let folder = parent(path).unwrap_or_default();
    let mut candidates = upwards(folder).map(|above| inside(above, "go.mod"));
    candidates.find(|it| files.contains(it)).map(Into::into)
}

/// `1.22`, `1.22.3` or `1.22-alpine` of a tag or a line.
fn version(text: &str) -> Option<Version> {
    let plain = text.split(['-', '@']).next()?;
    let mut parts = plain.split('.').map(|part| {
        let digits: String = part.chars().take_while(char::is_ascii_digit).collect();
        digits.parse::<u32>().ok()
    });
    let (major, minor) = (parts.next()??, parts.next()??);
    Some((major, minor, parts.next().flatten()))
}

#[cfg(test)]
mod tests {
    use super::{version, version_conflict};

    #[test]
    fn versions_are_compared_as_go_compares_them() {
        let told = |tag: &str, line: &str| {
            version_conflict(version(tag).expect("a version"), version(line).expect("a version"), line)
                .is_some()
        };
        for (tag, line) in
            [("1.22", "1.23"), ("1.22.3-alpine", "1.22.4"), ("1.20-alpine3.18", "1.22.1"), ("1.21", "1.23.0")]
        {
            assert!(told(tag, line), "{tag} {line}");
        }
        for (tag, line) in [
            ("1.23", "1.23.4"),
            ("1.24", "1.22.1"),
            ("1.20", "1.22"),
            ("1.22.3", "1.22"),
            ("1.22.0", "1.22.0"),
        ] {
            assert!(!told(tag, line), "{tag} {line}");
        }
        assert_eq!(version("alpine"), None);
    }
}

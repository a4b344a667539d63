//! # A program imports a file that its image does not have
//!
//! A Dockerfile that copies file by file has to be told of each new one. The program runs on the developer's machine,
//! where the module lies beside it; in the image it is not, and the container ends at once.
//!
//! People see: `ModuleNotFoundError: No module named 'bridge'`, `Error: Cannot find module './lib/log'`.
//!
//! ## Bad
//! ```dockerfile
//! COPY main.py ./          # which says: from bridge import connect
//! COPY routers ./routers
//! ```
//! ## Good
//! ```dockerfile
//! COPY main.py ./
//! COPY routers ./routers
//! COPY bridge ./bridge
//! ```
//! ## When to suppress
//! Where a package of the same name is installed and meant.

use std::sync::Arc;

use tiphys_diag::{Diagnostic, Severity};
use tiphys_graph::{
    Files,
    tools::{
        docker::{self, Image},
        node::{inside, upwards},
    },
};
use tiphys_value::Location;
use tiphys_vfs::parent;

use super::e5_entrypoint_module::{is_there, source_of};
use crate::{Context, Finding, Report, Rule, support::placeholders};

/// See the module.
pub const RULE: Rule = Rule {
    id: "E5-import-missing",
    incident: "E5",
    severity: Severity::Warning,
    title: "a program imports a file that its image does not have",
    source: include_str!("e5_import_missing.rs"),
    check,
};

/// A file of the context that a program imports.
struct Import {
    /// The line, from 1.
    line: u32,
    /// Paths in the context, of which those that are there count.
    files: Vec<String>,
    /// What people will read.
    message: String,
}

fn check(context: &Context<'_>, report: &mut Report) {
    let files = &context.survey.files;
    for path in files.paths().filter(|path| docker::is_dockerfile(path) && !placeholders::is_skeleton(path)) {
        let found = docker::image(files, path).and_then(|image| missing(files, path, &image));
        found.into_iter().for_each(|it| report.add(Finding::new(RULE.incident, it).likely()));
    }
}

fn missing(files: &Files, path: &Arc<str>, image: &Image) -> Option<Diagnostic> {
    let start = image.start.as_ref()?;
    let folder = image.folder.as_deref().filter(|folder| !folder.contains('$'))?;
    let program = start.program()?;
    let name = program.first()?.rsplit('/').next()?;
    let is_known = matches!(name, "python" | "python3" | "uvicorn" | "gunicorn" | "hypercorn" | "node");
    if !is_known || may_have_more(image, folder) {
        return None;
    }
    let fits =
        |at: &&str| image.copies.iter().all(|copy| copy.from.iter().all(|from| is_there(files, at, from)));
    let mut contexts = upwards(parent(path).unwrap_or_default()).filter(fits);
    let at = contexts.next()?;
    // Where two folders may be the context, neither is sure.
    if contexts.next().is_some() {
        return None;
    }
    let copies =
        image.copies.iter().flat_map(|copy| copy.from.iter().map(move |from| (inside(at, from), &copy.to)));
    for (source, to) in copies.filter(|(source, _)| files.contains(source)) {
        let base = source.rsplit('/').next().unwrap_or(&source);
        let target = to.trim_end_matches('/');
        let lands = if to.ends_with('/') { format!("{target}/{base}") } else { target.to_owned() };
        let (Some(beside), Some(text)) = (parent(&lands), files.text(&source)) else { continue };
        for import in imports(&source, &text) {
            let known: Vec<&String> = import.files.iter().filter(|it| files.contains(it)).collect();
            let own = parent(&source).unwrap_or_default();
            let in_image = |file: &String| {
                let below = file.strip_prefix(own).unwrap_or(file).trim_start_matches('/');
                source_of(files, image, at, &format!("{beside}/{below}")).is_some()
            };
            let Some(absent) = known.first().filter(|_| !known.iter().any(|file| in_image(file))) else {
                continue;
            };
            let line = files.span(&Location::new(source.clone(), import.line, 0));
            return Some(
                RULE.diagnostic(import.message)
                    .at(start.span.clone(), format!("{source} is started from a copy of some files"))
                    .see(line, "imported here")
                    .see(files.span(&Location::new(absent.as_str(), 1, 0)), "no instruction copies this")
                    .because("the image has what its last stage copies, and nothing beside it")
                    .help(format!("copy {absent} too")),
            );
        }
    }
    None
}

/// Whether something other than copies of single files may bring a module: all of the context, a stage, a build.
fn may_have_more(image: &Image, folder: &str) -> bool {
    const MAKES: [&str; 9] = [
        "git clone",
        "pip install .",
        "pip install -e",
        "npm run",
        "yarn build",
        "mv ",
        "cp ",
        "uv sync",
        "poetry install",
    ];
    let is_near = |place: &String| {
        let place = place.trim_end_matches('/');
        place.is_empty() || folder.starts_with(place) || place.starts_with(folder)
    };
    let is_all = |from: &String| from.is_empty() || from == "." || from.contains('*');
    image.copies.iter().any(|copy| copy.from.iter().any(is_all))
        || image.foreign.iter().any(is_near)
        || image.environment.iter().any(|text| text.contains("PYTHONPATH") || text.contains("NODE_PATH"))
        || image.runs.iter().any(|(_, text)| MAKES.iter().any(|made| text.contains(made)))
}

/// What a program imports from beside itself, at the left margin: what stands deeper may never be reached.
fn imports(source: &str, text: &str) -> Vec<Import> {
    let folder = parent(source).unwrap_or_default();
    let lines = text.lines().enumerate();
    let number = |at: usize| u32::try_from(at + 1).unwrap_or(u32::MAX);
    if source.ends_with(".py") {
        return lines
            .filter_map(|(at, line)| {
                python(folder, line).map(|(files, message)| Import { line: number(at), files, message })
            })
            .collect();
    }
    if [".js", ".mjs", ".cjs"].iter().any(|ending| source.ends_with(ending)) {
        return lines
            .filter_map(|(at, line)| {
                node(folder, line).map(|(files, message)| Import { line: number(at), files, message })
            })
            .collect();
    }
    Vec::new()
}

/// `import a.b` and `from a.b import c`.
fn python(folder: &str, line: &str) -> Option<(Vec<String>, String)> {
    let rest = line.strip_prefix("import ").or_else(|| line.strip_prefix("from "))?;
    let module = rest.split([' ', ',', ';']).next()?;
    let is_name = module.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.'));
    if !is_name || module.is_empty() || module.starts_with('.') {
        return None;
    }
    let top = module.split('.').next()?;
    let path = inside(folder, &module.replace('.', "/"));
    // A folder without a module in it may be anything.
    let files = if module.contains('.') {
        vec![format!("{path}.py"), format!("{path}/__init__.py")]
    } else {
        vec![format!("{path}.py"), format!("{path}/__init__.py"), format!("{path}/__main__.py")]
    };
    Some((files, format!("ModuleNotFoundError: No module named '{top}'")))
}

/// `require("./a")` and `import … from "./a"`.
fn node(folder: &str, line: &str) -> Option<(Vec<String>, String)> {
    if line.starts_with([' ', '\t', '/', '*']) {
        return None;
    }
    let after = line.split_once("require(").map(|(_, rest)| rest).or_else(|| {
        let rest = line.strip_prefix("import ")?;
        Some(rest.rsplit_once(" from ").map_or(rest, |(_, rest)| rest))
    })?;
    let quote = after.trim_start().chars().next().filter(|c| matches!(c, '"' | '\''))?;
    let named = after.trim_start()[1..].split(quote).next()?;
    let below = named.strip_prefix("./")?;
    let path = tiphys_vfs::join(folder, below).ok()?;
    let endings = ["", ".js", ".mjs", ".cjs", ".json", "/index.js"];
    Some((
        endings.map(|ending| format!("{path}{ending}")).to_vec(),
        format!("Error: Cannot find module '{named}'"),
    ))
}

#[cfg(test)]
mod tests {
    use super::{node, python};

    #[test]
    fn imports_are_read() {
        let (files, message) = python("svc", "from bridge.client import connect").expect("an import");
        assert_eq!(files[0], "svc/bridge/client.py");
        assert_eq!(message, "ModuleNotFoundError: No module named 'bridge'");
        assert!(python("svc", "    import late").is_none() && python("svc", "from . import near").is_none());
        let (files, _) = node("", "const log = require('./lib/log');").expect("an import");
        assert!(files.contains(&"lib/log.js".to_owned()));
        assert!(node("", "import { a } from './a.mjs'").is_some_and(|(files, _)| files[0] == "a.mjs"));
        assert!(node("", "import fs from 'fs'").is_none() && node("", "// require('./x')").is_none());
    }
}

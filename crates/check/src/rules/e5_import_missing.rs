//! # A program imports a file that its image does not have
//!
//! A Dockerfile that copies file by file has to be told of each new one. The program runs on the developer's
//! machine, where the module lies beside it; in the image it is not, and the container ends at once.
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

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use tiphys_diag::{Diagnostic, Severity};
use tiphys_gocompat::glob::path_match;
use tiphys_graph::{
    Files,
    tools::{
        docker::{self, Image},
        node::{inside, upwards},
    },
};
use tiphys_value::Location;
use tiphys_vfs::{base_name, parent};

use super::e5_entrypoint_module::{is_module_with_app, module_exists};
use crate::{Context, Finding, Report, Rule, support::placeholders};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "E5-import-missing",
    incident: "E5",
    severity: Severity::Warning,
    title: "a program imports a file that its image does not have",
    page: page!("e5_import_missing.rs"),
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

/// The files of the context that an image has, by the path of each in the image.
struct Placed {
    /// The folder whose files land in the working directory.
    root: String,
    /// The working directory.
    folder: String,
    files: BTreeMap<String, String>,
}

impl Placed {
    /// What the copies bring, where one folder of the context is the working directory.
    fn from_copies(files: &Files, image: &Image, at: &str, folder: &str) -> Option<Self> {
        let folder = folder.trim_end_matches('/').to_owned();
        let mut placed = BTreeMap::new();
        for copy in &image.copies {
            let target = copy.to.trim_end_matches('/');
            for from in &copy.from {
                let source = inside(at, from);
                if files.contains(&source) && !copy.to.ends_with('/') {
                    placed.insert(target.to_owned(), source);
                } else if files.contains(&source) || from.contains('*') {
                    let of_pattern = files.paths().filter(|path| path_match(&source, path) == Ok(true));
                    placed.extend(
                        of_pattern.map(|path| (format!("{target}/{}", base_name(path)), path.to_string())),
                    );
                } else {
                    let below = files
                        .paths()
                        .filter_map(|path| Some((path, path.strip_prefix(&source)?.strip_prefix('/')?)));
                    placed.extend(below.map(|(path, rest)| (format!("{target}/{rest}"), path.to_string())));
                }
            }
        }
        let direct = placed.iter().filter(|(path, _)| parent(path) == Some(&folder));
        let roots: BTreeSet<&str> = direct.map(|(_, source)| parent(source).unwrap_or_default()).collect();
        let [root] = roots.into_iter().collect::<Vec<_>>()[..] else { return None };
        Some(Self { root: root.to_owned(), folder, files: placed })
    }

    /// Where in the image a file of the context is, or would be, that lies in or below the root.
    fn place(&self, source: &str) -> Option<String> {
        let below =
            if self.root.is_empty() { source } else { source.strip_prefix(&self.root)?.strip_prefix('/')? };
        Some(format!("{}/{below}", self.folder))
    }
}

fn missing(files: &Files, path: &Arc<str>, image: &Image) -> Option<Diagnostic> {
    let start = image.start.as_ref()?;
    let folder = image.folder.as_deref().filter(|folder| !folder.contains('$'))?;
    let program = start.program()?;
    if may_have_more(image, folder) {
        return None;
    }
    let fits = |at: &&str| {
        image.copies.iter().all(|copy| copy.from.iter().all(|from| module_exists(files, at, from)))
    };
    let mut contexts = upwards(parent(path).unwrap_or_default()).filter(fits);
    let at = contexts.next()?;
    // Where two folders may be the context, neither is sure.
    if contexts.next().is_some() {
        return None;
    }
    let placed = Placed::from_copies(files, image, at, folder)?;
    let mut open: Vec<String> =
        entry(&program, &placed.root)?.into_iter().filter(|it| files.contains(it)).collect();
    let mut seen: BTreeSet<String> = BTreeSet::new();
    // From what is started to what it imports, as far as the image has it.
    while let Some(source) = open.pop() {
        let is_in_image = placed.place(&source).is_some_and(|place| placed.files.contains_key(&place));
        if !is_in_image || !seen.insert(source.clone()) {
            continue;
        }
        let Some(text) = files.text(&source) else { continue };
        for import in imports(&source, &placed.root, &text) {
            let known: Vec<&String> = import.files.iter().filter(|it| files.contains(it)).collect();
            let has =
                |file: &&String| placed.place(file).is_some_and(|place| placed.files.contains_key(&place));
            match known.first() {
                Some(absent) if !known.iter().any(has) => {
                    let line = files.span(&Location::new(source.clone(), import.line, 0));
                    return Some(
                        RULE.diagnostic(import.message)
                            .at(start.span.clone(), "the image starts from a copy of some files")
                            .see(line, "imported here")
                            .see(
                                files.span(&Location::new(absent.as_str(), 1, 0)),
                                "no instruction copies this",
                            )
                            .because("the image has what its last stage copies, and nothing beside it")
                            .help(format!("copy {absent} too")),
                    );
                }
                _ => open.extend(known.into_iter().cloned()),
            }
        }
    }
    None
}

/// The files that a command starts with, of which those that are there count.
fn entry(program: &[String], root: &str) -> Option<Vec<String>> {
    let words: Vec<&str> = program.iter().map(String::as_str).collect();
    let of_module = |module: &str| {
        let path = inside(root, &module.replace('.', "/"));
        vec![format!("{path}.py"), format!("{path}/__init__.py"), format!("{path}/__main__.py")]
    };
    match (words.first()?.rsplit('/').next()?, &words[1..]) {
        ("uvicorn" | "gunicorn" | "hypercorn", rest) => {
            let named = rest.iter().find(|word| is_module_with_app(word))?;
            Some(of_module(named.split(':').next()?))
        }
        ("python" | "python3", ["-m", module @ ("uvicorn" | "gunicorn" | "hypercorn"), rest @ ..]) => {
            let again: Vec<String> = std::iter::once(module).chain(rest).map(ToString::to_string).collect();
            entry(&again, root)
        }
        ("python" | "python3", ["-m", module, ..]) => Some(of_module(module)),
        ("python" | "python3", ["-u" | "-B" | "-O", file, ..] | [file, ..]) if file.ends_with(".py") => {
            Some(vec![inside(root, file.trim_start_matches("./"))])
        }
        ("node", [file, ..]) if !file.starts_with('-') => {
            Some(vec![inside(root, file.trim_start_matches("./"))])
        }
        _ => None,
    }
}

/// Whether something other than copies of single files may bring a module: all of the context, a stage, a
/// build.
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
    let is_all = |from: &String| matches!(from.as_str(), "" | "." | "*") || from.contains("**");
    image.copies.iter().any(|copy| copy.from.iter().any(is_all))
        || image.foreign.iter().any(is_near)
        || image.environment.iter().any(|text| text.contains("PYTHONPATH") || text.contains("NODE_PATH"))
        || image.runs.iter().any(|(_, text)| MAKES.iter().any(|made| text.contains(made)))
}

/// What a file imports of the context, at the left margin: what stands deeper may never be reached.
fn imports(source: &str, root: &str, text: &str) -> Vec<Import> {
    let own = parent(source).unwrap_or_default();
    let read = |line: &str| {
        if source.ends_with(".py") {
            python(root, line)
        } else if [".js", ".mjs", ".cjs"].iter().any(|ending| source.ends_with(ending)) {
            node(own, line)
        } else {
            None
        }
    };
    let lines = text.lines().enumerate();
    let found = lines.filter_map(|(at, line)| {
        let (files, message) = read(line)?;
        Some(Import { line: u32::try_from(at + 1).unwrap_or(u32::MAX), files, message })
    });
    found.collect()
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

//! # An image starts a module that is not where it is looked for
//!
//! The command of a Dockerfile names a Python module, a script or an archive that is not at that place in the
//! image: `uvicorn main:app` in a folder where `main.py` lies one folder deeper. The image is built and
//! pushed; the container ends at once.
//!
//! People see: `Error loading ASGI app. Could not import module "main".`, `ModuleNotFoundError: No module
//! named`, `can't open file`, `Cannot find module '/app/server.js'`, `Unable to access jarfile`.
//!
//! ## Bad
//! ```dockerfile
//! WORKDIR /app
//! COPY . .
//! CMD ["uvicorn", "main:app"]   # the file is app/main.py
//! ```
//! ## Good
//! ```dockerfile
//! CMD ["uvicorn", "app.main:app"]
//! ```
//! ## When to suppress
//! Where the file is generated, or installed as a package, in a way that the Dockerfile does not show.

use std::{collections::BTreeSet, sync::Arc};

use tiphys_diag::{Diagnostic, Severity, similar_names};
use tiphys_graph::{
    Files,
    tools::{
        docker::{self, Image},
        node::{inside, upwards},
    },
};

use crate::{Context, Finding, Report, Rule};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "E5-entrypoint-module",
    incident: "E5",
    severity: Severity::Error,
    title: "an image starts a module that is not where it is looked for",
    page: page!("e5_entrypoint_module.rs"),
    check,
};

/// What a command looks for.
struct Wanted {
    /// As the command names it.
    named: String,
    /// Paths in the image of which one has to exist.
    paths: Vec<String>,
    /// What people will read when there is none.
    message: String,
    /// Whether it is a Python module.
    is_module: bool,
}

fn check(context: &Context<'_>, report: &mut Report) {
    let files = &context.survey.files;
    for path in files.paths().filter(|path| docker::is_dockerfile(path)) {
        if let Some(diagnostic) = docker::image(files, path).and_then(|image| missing(files, path, &image)) {
            report.add(Finding::new(RULE.incident, diagnostic));
        }
    }
}

fn missing(files: &Files, path: &Arc<str>, image: &Image) -> Option<Diagnostic> {
    let start = image.start.as_ref()?;
    let folder = image.folder.as_deref().filter(|folder| !folder.contains('$'))?;
    let wanted = required_module(&start.program()?, folder)?;
    if may_come_from_elsewhere(image, folder, &wanted) {
        return None;
    }
    let contexts: Vec<&str> = upwards(tiphys_vfs::parent(path).unwrap_or_default())
        .filter(|context| {
            image.copies.iter().all(|copy| copy.from.iter().all(|from| module_exists(files, context, from)))
        })
        .collect();
    // A path that is there in any context that fits is there.
    if contexts.is_empty()
        || contexts
            .iter()
            .any(|context| wanted.paths.iter().any(|path| in_image(files, image, context, path)))
    {
        return None;
    }
    let others: BTreeSet<String> = contexts
        .iter()
        .take(1)
        .flat_map(|context| elsewhere(files, image, context, folder, &wanted))
        .collect();
    let Some(other) = others.first().filter(|_| others.len() == 1) else {
        return contexts
            .first()
            .and_then(|context| not_in_package(files, image, context, folder, &wanted))
            .filter(|_| others.is_empty());
    };
    let inner = other.strip_prefix(folder).unwrap_or(other).trim_start_matches('/');
    let right =
        if wanted.is_module { inner.trim_end_matches(".py").replace('/', ".") } else { inner.to_owned() };
    let source = contexts.first().and_then(|context| source_of(files, image, context, other))?;
    let diagnostic = RULE
        .diagnostic(wanted.message.clone())
        .at(start.span.clone(), format!("`{}` is looked for in {folder}", wanted.named))
        .see(files.span(&tiphys_value::Location::new(source, 1, 0)), format!("this is {other} in the image"));
    Some(diagnostic.because("the working directory and the copies of the last stage decide where the file is in the image").help(format!("name it `{right}`")))
}

/// A module that is in no folder, though the package that it is asked of is in the image.
fn not_in_package(
    files: &Files,
    image: &Image,
    context: &str,
    folder: &str,
    wanted: &Wanted,
) -> Option<Diagnostic> {
    let (package, module) = wanted.named.rsplit_once('.').filter(|_| wanted.is_module)?;
    let inside = format!("{}/{}", folder.trim_end_matches('/'), package.replace('.', "/"));
    let initial = source_of(files, image, context, &format!("{inside}/__init__.py"))?;
    let above = tiphys_vfs::parent(&initial).unwrap_or_default();
    let entries = files.tree().read_dir(above).unwrap_or_default();
    let modules: Vec<&str> = entries
        .iter()
        .filter_map(|entry| entry.name.strip_suffix(".py"))
        .filter(|name| *name != "__init__")
        .collect();
    let start = image.start.as_ref()?;
    let near = similar_names::nearest_slip(module, modules.iter().copied());
    let near = near.or(modules.first().copied().filter(|_| modules.len() == 1));
    let help = near.map_or_else(
        || format!("name a module of {package} that is there"),
        |near| format!("name it `{package}.{near}`, which is there"),
    );
    let diagnostic = RULE
        .diagnostic(wanted.message.clone())
        .at(start.span.clone(), format!("`{}` is looked for in {folder}", wanted.named))
        .see(
            files.span(&tiphys_value::Location::new(initial, 1, 0)),
            format!("{package} is this, and has no {module}"),
        );
    Some(diagnostic.because("the server ends at once, and the pod is in CrashLoopBackOff").help(help))
}

/// What a command looks for, of the commands that are known.
fn required_module(words: &[String], folder: &str) -> Option<Wanted> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    if words.iter().any(|word| word.contains('$')) {
        return None;
    }
    let program = words.first()?.rsplit('/').next()?;
    let rest = &words[1..];
    let path = |name: &str| {
        if name.starts_with('/') {
            name.to_owned()
        } else {
            format!("{}/{name}", folder.trim_end_matches('/'))
        }
    };
    match program {
        "uvicorn" | "gunicorn" | "hypercorn" => {
            if rest.iter().any(|word| {
                ["--app-dir", "--chdir", "--pythonpath", "-c", "--config", "--factory-dir"]
                    .iter()
                    .any(|it| word.starts_with(it))
            }) {
                return None;
            }
            let module = rest.iter().find(|word| !word.starts_with('-') && is_module_with_app(word))?;
            let module = module.split(':').next()?;
            Some(Wanted {
                message: format!("Error loading ASGI app. Could not import module \"{module}\"."),
                ..of_module(module, &path)
            })
        }
        "python" | "python3" => match rest {
            ["-u" | "-B" | "-O", rest @ ..] => required_module(
                &[&["python"], rest].concat().iter().map(ToString::to_string).collect::<Vec<_>>(),
                folder,
            ),
            ["-m", "uvicorn" | "gunicorn" | "hypercorn", ..] => {
                required_module(&rest[1..].iter().map(ToString::to_string).collect::<Vec<_>>(), folder)
            }
            ["-m", module, ..] => Some(Wanted {
                message: format!("ModuleNotFoundError: No module named '{module}'"),
                ..of_module(module, &path)
            }),
            [file, ..] if file.ends_with(".py") => {
                Some(of_file(file, &path, format!("python: can't open file '{}'", path(file))))
            }
            _ => None,
        },
        "node" => match rest {
            [file, ..] if file.ends_with(".js") || file.ends_with(".mjs") || file.ends_with(".cjs") => {
                Some(of_file(file, &path, format!("Error: Cannot find module '{}'", path(file))))
            }
            _ => None,
        },
        "java" => {
            let at = rest.iter().position(|word| *word == "-jar")?;
            let file = rest.get(at + 1)?;
            Some(of_file(file, &path, format!("Error: Unable to access jarfile {file}")))
        }
        "celery" => {
            let at = rest.iter().position(|word| matches!(*word, "-A" | "--app"))?;
            let module = rest.get(at + 1)?.split(':').next()?;
            let mut wanted = of_module(module, &path);
            // The last step may be the application in the module.
            let above = module.rsplit_once('.').map(|(above, _)| of_module(above, &path).paths);
            wanted.paths.extend(above.into_iter().flatten());
            Some(Wanted {
                message: format!(
                    "Error: Invalid value for '-A' / '--app': Unable to load celery application. The module {module} was not found."
                ),
                ..wanted
            })
        }
        // A script of the repository, told by its path.
        _ if program.ends_with(".sh") && words[0].contains('/') => {
            Some(of_file(words[0], &path, format!("exec {}: no such file or directory", words[0])))
        }
        _ => None,
    }
}

/// `module:application`, as servers take it.
pub(super) fn is_module_with_app(word: &str) -> bool {
    let Some((module, app)) = word.split_once(':') else { return false };
    let is_name = |text: &str| {
        !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '.' | '(' | ')'))
    };
    is_name(module) && is_name(app) && !module.starts_with(|c: char| c.is_ascii_digit())
}

fn of_module(module: &str, path: &impl Fn(&str) -> String) -> Wanted {
    let file = module.replace('.', "/");
    let paths = vec![
        path(&format!("{file}.py")),
        path(&format!("{file}/__init__.py")),
        path(&format!("{file}/__main__.py")),
    ];
    Wanted { named: module.to_owned(), paths, message: String::new(), is_module: true }
}

fn of_file(file: &str, path: &impl Fn(&str) -> String, message: String) -> Wanted {
    Wanted {
        named: file.to_owned(),
        paths: vec![path(file.trim_start_matches("./"))],
        message,
        is_module: false,
    }
}

/// Whether something other than a copy from the context may bring it: another stage, a build, a package.
fn may_come_from_elsewhere(image: &Image, folder: &str, wanted: &Wanted) -> bool {
    let is_over = |place: &String| {
        let place = place.trim_end_matches('/');
        place.is_empty()
            || wanted.paths.iter().any(|path| path.starts_with(&format!("{place}/")) || path == place)
            || place.starts_with(folder)
    };
    const MAKES: [&str; 14] = [
        "git clone",
        "curl ",
        "wget ",
        "mv ",
        "cp ",
        "tar ",
        "unzip",
        "npm run",
        "yarn build",
        "pnpm ",
        "pip install .",
        "pip install -e",
        "make",
        "ln ",
    ];
    image.foreign.iter().any(is_over)
        || image.environment.iter().any(|text| text.contains("PYTHONPATH"))
        || image.runs.iter().any(|(_, text)| {
            MAKES.iter().any(|made| text.contains(made))
                || text.contains("uv sync")
                || text.contains("poetry install")
                || text.contains("yarn run")
        })
}

/// Whether a source of a copy is there in a context; patterns are taken to match.
pub(super) fn module_exists(files: &Files, context: &str, from: &str) -> bool {
    if from.contains(['*', '?', '[']) {
        return true;
    }
    let path = if from.is_empty() || from == "." { context.to_owned() } else { inside(context, from) };
    path.is_empty() || files.contains(&path) || files.has_folder(&path)
}

/// Whether a path of the image comes from a file of the context.
fn in_image(files: &Files, image: &Image, context: &str, path: &str) -> bool {
    source_of(files, image, context, path).is_some()
}

/// The file of the context that a path of the image comes from.
fn source_of(files: &Files, image: &Image, context: &str, path: &str) -> Option<Arc<str>> {
    image.copies.iter().flat_map(|copy| copy.from.iter().map(move |from| (from, &copy.to))).find_map(
        |(from, to)| {
            let target = to.trim_end_matches('/');
            let source =
                if from == "." || from.is_empty() { context.to_owned() } else { inside(context, from) };
            let candidate = if files.contains(&source) {
                let base = source.rsplit('/').next().unwrap_or(&source);
                let lands = if to.ends_with('/') { format!("{target}/{base}") } else { target.to_owned() };
                (lands == path).then_some(source)
            } else {
                path.strip_prefix(&format!("{target}/")).map(|rest| inside(&source, rest))
            };
            candidate.filter(|it| files.contains(it)).map(Into::into)
        },
    )
}

/// Where in the image a file of the wanted name lies instead, at most two folders deeper.
fn elsewhere(files: &Files, image: &Image, context: &str, folder: &str, wanted: &Wanted) -> Vec<String> {
    let Some(first) = wanted.paths.first() else { return Vec::new() };
    let tail = first.strip_prefix(&format!("{}/", folder.trim_end_matches('/'))).unwrap_or(first);
    let prefix = if context.is_empty() { String::new() } else { format!("{context}/") };
    let ending = format!("/{tail}");
    let found = files.paths().filter(|path| path.starts_with(&prefix) && path.ends_with(&ending));
    found
        .filter_map(|path| {
            let places =
                image.copies.iter().flat_map(|copy| copy.from.iter().map(move |from| (from, &copy.to)));
            let mut places = places.filter_map(|(from, to)| {
                let source =
                    if from == "." || from.is_empty() { context.to_owned() } else { inside(context, from) };
                let rest = if source.is_empty() { path } else { path.strip_prefix(&format!("{source}/"))? };
                Some(format!("{}/{rest}", to.trim_end_matches('/')))
            });
            places.next()
        })
        .filter(|place| {
            let depth = place.strip_prefix(folder).map_or(9, |rest| rest.matches('/').count());
            depth <= tail.matches('/').count() + 3
        })
        .collect()
}

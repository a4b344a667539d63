//! # A Node.js build lacks a file that its tools insist on
//!
//! `npm ci` refuses to run without `package-lock.json`. TypeScript knows `import.meta.env` only where the
//! types of Vite are referred to, usually from `vite-env.d.ts`. ESLint from version 9 on reads
//! `eslint.config.js` and no longer `.eslintrc`. `tsc -p FILE` needs the file. The action that sets up pnpm
//! wants its version from one place, `packageManager` or its own input. Each of them ends the image build or
//! the pipeline.
//!
//! People see: `npm ci can only install with an existing package-lock.json`, `Property 'env' does not exist
//! on type 'ImportMeta'`, `ESLint couldn't find an eslint.config.(js|mjs|cjs) file`, `error TS5058: The
//! specified path does not exist: 'tsconfig.build.json'`, `Error: Multiple versions of pnpm specified`, `Error:
//! No pnpm version is specified`.
//!
//! ## Bad
//! A `Dockerfile` with `RUN npm ci` in a folder with `package.json` and no `package-lock.json`.
//! ## Good
//! The file that `npm install` writes is committed.
//!
//! ## When to suppress
//! Where a step of the build writes the file.

use std::{collections::BTreeMap, sync::Arc};

use tiphys_diag::{Diagnostic, Severity, Span};
use tiphys_graph::{
    Files,
    tools::{
        docker,
        node::{self, Package, inside, upwards},
        node_span, parse_shell,
        pipelines::{self, Format, Pipeline},
    },
};
use tiphys_value::{ObjectExt, Value};
use tiphys_yaml::Node;

use crate::{Context, Finding, Report, Rule, support::unused_files};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "G6-node-build",
    incident: "G6",
    severity: Severity::Error,
    title: "a Node.js build lacks a file that its tools insist on",
    page: page!("g6_node_build.rs"),
    check,
};

const LOCKS: [&str; 2] = ["package-lock.json", "npm-shrinkwrap.json"];

fn check(context: &Context<'_>, report: &mut Report) {
    let files = &context.survey.files;
    let packages = node::packages(files);
    if packages.is_empty() {
        return;
    }
    let mut add = |diagnostic: Option<Diagnostic>| {
        if let Some(diagnostic) = diagnostic {
            report.add(Finding::new(RULE.incident, diagnostic));
        }
    };
    for (folder, span) in clean_installs(context, &packages) {
        add(lock(files, &packages, &folder, span));
    }
    for package in packages.values() {
        add(flat_config(files, package));
        add(vite_types(files, package));
        add(project(files, package));
    }
    for pipeline in context.survey.tools().pipelines.iter().filter(|it| it.format == Format::Workflow) {
        let jobs = pipeline.roots().iter().filter_map(|root| root.get("jobs")?.pairs()).flatten();
        for step in jobs.flat_map(|(_, job)| pipelines::steps(job)) {
            add(pnpm_version(files, pipeline, step));
        }
    }
}

/// A step that sets up pnpm in a version that `package.json` says otherwise, or in none at all.
fn pnpm_version(files: &Files, pipeline: &Pipeline, step: &Node) -> Option<Diagnostic> {
    // Since this version the action compares the two.
    const COMPARES_SINCE: u32 = 4;
    let uses = step.get("uses")?;
    let release = uses.as_str()?.strip_prefix("pnpm/action-setup@v")?;
    let release: u32 = release.split('.').next()?.parse().ok()?;
    let given = step.get("with").and_then(|with| with.get("version"));
    if step.get("with").is_some_and(|with| with.get("package_json_file").is_some()) {
        return None;
    }
    let package = files.value("package.json")?;
    let declared = package.get("packageManager").and_then(Value::as_str);
    let at = |node: &Node| node_span(files, &pipeline.file, node);
    let Some(given) = given else {
        let is_missing = declared.is_none() && package.at(&["devEngines", "packageManager"]).is_none();
        return is_missing.then(|| {
            RULE.diagnostic("Error: No pnpm version is specified")
                .at(at(uses), "which version?")
                .because(
                    "the action takes the version from its own input or from packageManager in package.json",
                )
                .help("write `packageManager: pnpm@…` into package.json, or `version` below `with`")
        });
    };
    let (version, declared) = (given.as_str()?, declared?.strip_prefix("pnpm@")?);
    let declared = declared.split('+').next().unwrap_or(declared);
    if release < COMPARES_SINCE || version == declared || version.contains("${{") {
        return None;
    }
    let diagnostic = RULE
        .diagnostic(format!(
            "Error: Multiple versions of pnpm specified: version {version} in the step, pnpm@{declared} in package.json"
        ))
        .at(at(given), "another version than in package.json")
        .because("the action refuses to choose between the two, and the job ends")
        .help("leave `version` out: the action reads packageManager");
    Some(diagnostic)
}

/// The places that run `npm ci`, with the folder of the package that they mean.
fn clean_installs(context: &Context<'_>, packages: &BTreeMap<String, Package>) -> Vec<(String, Span)> {
    let files = &context.survey.files;
    let mut found = Vec::new();
    for path in files.paths().filter(|path| docker::is_dockerfile(path)) {
        let Some(folder) = copied_package(files, path, packages) else { continue };
        for (text, span) in docker::runs(files, path) {
            if runs_clean_install(&text) == Some(String::new()) {
                found.push((folder.clone(), span));
            }
        }
    }
    for pipeline in &context.survey.tools().pipelines {
        for (script, folder) in pipeline.scripts() {
            let Some(inner) = runs_clean_install(&script.text) else { continue };
            let Ok(folder) = tiphys_vfs::join(&folder, &inner) else { continue };
            if packages.contains_key(&folder) {
                let line = script.text.lines().position(|line| line.contains("npm ci")).unwrap_or_default();
                found.push((folder, script.span(files, u32::try_from(line).unwrap_or_default() + 1)));
            }
        }
    }
    found
}

/// The package that a Dockerfile copies, if no lock may be meant: the build context is the Dockerfile's
/// folder or one above it.
fn copied_package(files: &Files, path: &Arc<str>, packages: &BTreeMap<String, Package>) -> Option<String> {
    let text = files.text(path)?;
    let copies =
        text.lines().map(str::trim).filter(|line| line.starts_with("COPY ") && !line.contains("--from"));
    let mut sources =
        copies.flat_map(|line| line.split_whitespace().skip(1)).map(|word| word.trim_start_matches("./"));
    let source = sources.find(|word| {
        matches!(*word, "." | "") || word.rsplit('/').next().is_some_and(|base| base.starts_with("package"))
    })?;
    let below = source.rsplit_once('/').map_or("", |(folder, _)| folder);
    let folder = tiphys_vfs::parent(path).unwrap_or_default();
    let meant = upwards(folder).filter_map(|context| tiphys_vfs::join(context, below).ok());
    let meant: Vec<String> = meant.filter(|folder| packages.contains_key(folder)).collect();
    let has_lock = |folder: &String| LOCKS.iter().any(|lock| files.contains(&inside(folder, lock)));
    if meant.iter().any(has_lock) { None } else { meant.into_iter().next() }
}

/// The folder, from where the script starts, in which it calls `npm ci` without looking for the lock first.
fn runs_clean_install(text: &str) -> Option<String> {
    if !text.contains("npm ci") || LOCKS.iter().any(|lock| text.contains(lock)) || text.contains("||") {
        return None;
    }
    let mut folder = String::new();
    for command in parse_shell(text) {
        match command.words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
            ["cd", to] => {
                folder = tiphys_vfs::join(&folder, to)
                    .ok()
                    .filter(|_| !to.starts_with('/') && !to.contains('$'))?
            }
            ["npm", "ci", rest @ ..] => {
                let elsewhere = rest.iter().any(|word| {
                    word.starts_with("--prefix") || *word == "-C" || word.starts_with("--workspace")
                });
                return (!elsewhere).then_some(folder);
            }
            _ => {}
        }
    }
    None
}

fn lock(files: &Files, packages: &BTreeMap<String, Package>, folder: &str, span: Span) -> Option<Diagnostic> {
    let has_lock = |folder: &str| LOCKS.iter().any(|lock| files.contains(&inside(folder, lock)));
    let in_workspace = upwards(folder).skip(1).any(|above| {
        has_lock(above)
            && packages.get(above).is_some_and(|package| package.value.get("workspaces").is_some())
    });
    if has_lock(folder) || in_workspace {
        return None;
    }
    let package = packages.get(folder)?;
    let wanted = inside(folder, "package-lock.json");
    let message =
        format!("npm ci can only install with an existing package-lock.json, and there is no {wanted}");
    let diagnostic = RULE.diagnostic(message).at(span, "this installs from the lock file");
    Some(diagnostic.see(package.span(files, "{"), "of this package").help(format!(
        "run `npm install --package-lock-only` in {} and commit the file",
        if folder.is_empty() { "the root" } else { folder }
    )))
}

fn flat_config(files: &Files, package: &Package) -> Option<Diagnostic> {
    if node::major(package.dependency("eslint")?)? < 9 {
        return None;
    }
    let call = package.scripts().find_map(|(name, text)| {
        let commands = parse_shell(text);
        let command =
            commands.iter().find(|command| command.words.first().is_some_and(|word| word == "eslint"))?;
        let chosen = command
            .words
            .iter()
            .any(|word| word == "-c" || word.starts_with("--config") || word == "--no-config-lookup");
        (!chosen && !text.contains("ESLINT_USE_FLAT_CONFIG")).then_some(name)
    })?;
    let has_config = upwards(&package.folder).any(|folder| {
        ["js", "mjs", "cjs", "ts", "mts", "cts"]
            .iter()
            .any(|end| files.contains(&inside(folder, &format!("eslint.config.{end}"))))
    });
    if has_config {
        return None;
    }
    let message = "ESLint couldn't find an eslint.config.(js|mjs|cjs) file";
    let old = [".eslintrc.js", ".eslintrc.cjs", ".eslintrc.json", ".eslintrc.yml", ".eslintrc"];
    let old = old.iter().map(|base| inside(&package.folder, base)).find(|path| files.contains(path));
    let mut diagnostic = RULE
        .diagnostic(message)
        .at(package.span(files, "\"eslint\":"), "from version 9 on only the flat configuration is read")
        .see(package.span(files, &format!("\"{call}\":")), "this script runs it");
    if let Some(old) = old {
        diagnostic =
            diagnostic.see(files.span(&tiphys_value::Location::new(old, 1, 0)), "this is not read any more");
    }
    Some(diagnostic.help(format!("add {}", inside(&package.folder, "eslint.config.js"))))
}

/// Dependencies that bring the types of `import.meta.env` themselves.
const BRING_TYPES: [&str; 7] =
    ["astro", "@sveltejs/kit", "nuxt", "@nuxt/kit", "vite-plugin-checker", "@remix-run/dev", "wxt"];

fn is_tsconfig(path: &str) -> bool {
    path.rsplit('/').next().is_some_and(|base| base.starts_with("tsconfig"))
}

/// Whether a configuration goes on from one outside of its folder.
fn shares(text: &str) -> bool {
    text.split("\"extends\"").skip(1).any(|rest| {
        let value = rest.trim_start_matches([':', ' ', '[', '\n', '\t']).trim_start_matches('"');
        !value.starts_with("./")
    })
}

/// A configuration of TypeScript that a script names and that is not there.
fn project(files: &Files, package: &Package) -> Option<Diagnostic> {
    let named = |text: &str| {
        parse_shell(text).into_iter().find_map(|command| {
            let words = command.words;
            if !matches!(words.first().map(String::as_str), Some("tsc" | "vue-tsc")) {
                return None;
            }
            let at = words.iter().position(|word| matches!(word.as_str(), "-p" | "--project"))?;
            words.get(at + 1).cloned()
        })
    };
    // A script that goes elsewhere first, or makes what it names, is not followed.
    let is_plain = |text: &str| !text.contains("cd ") && !text.contains(['$', '%', '>']);
    let (script, wanted) = package
        .scripts()
        .filter(|(_, text)| is_plain(text))
        .find_map(|(name, text)| Some((name, named(text)?)))?;
    let path = tiphys_vfs::join(&package.folder, &wanted).ok()?;
    let is_config = wanted.ends_with(".json") && path.starts_with(&inside(&package.folder, ""));
    if !is_config
        || files.contains(&path)
        || files.tree().exists(&path)
        || unused_files::is_git_ignored(files, &path)
    {
        return None;
    }
    let mut diagnostic = RULE
        .diagnostic(format!("error TS5058: The specified path does not exist: '{wanted}'"))
        .at(package.span(files, &format!("\"{script}\":")), "this script names it")
        .because("TypeScript reads no other configuration where it is told of one");
    diagnostic.severity = Severity::Warning;
    Some(diagnostic)
}

fn vite_types(files: &Files, package: &Package) -> Option<Diagnostic> {
    package.dependency("vite").or(package.dependency("vitest"))?;
    package.dependency("typescript")?;
    if BRING_TYPES.iter().any(|name| package.dependency(name).is_some()) {
        return None;
    }
    let (script, _) = package.scripts().find(|(_, text)| {
        parse_shell(text)
            .iter()
            .any(|command| matches!(command.words.first().map(String::as_str), Some("tsc" | "vue-tsc")))
    })?;
    let prefix = inside(&package.folder, "");
    let own = files
        .ending(&[".ts", ".tsx", ".mts", ".vue", ".json"])
        .filter(|path| path.starts_with(&prefix) && (!path.ends_with(".json") || is_tsconfig(path)));
    let mut used: Option<(Arc<str>, u32)> = None;
    for path in own {
        let Some(text) = files.text(path) else { continue };
        // A configuration that another package shares may name the types.
        let is_shared = path.ends_with(".json") && shares(&text);
        if is_shared || text.contains("vite/client") || text.contains("interface ImportMeta") {
            return None;
        }
        let is_source = path.ends_with(".ts") || path.ends_with(".tsx");
        if used.is_none()
            && is_source
            && !path.ends_with(".d.ts")
            && path.starts_with(&inside(&package.folder, "src/"))
        {
            let line = text
                .lines()
                .position(|line| line.contains("import.meta.env.") && !line.trim_start().starts_with("//"));
            used = line.map(|line| (path.clone(), u32::try_from(line).unwrap_or_default() + 1));
        }
    }
    let (path, line) = used?;
    let span = files.span(&tiphys_value::Location::new(path, line, 0));
    let types = inside(&package.folder, "src/vite-env.d.ts");
    let mut diagnostic = RULE.diagnostic("Property 'env' does not exist on type 'ImportMeta'");
    // A file of the build's own configuration may bring the types along.
    diagnostic.severity = Severity::Warning;
    Some(
        diagnostic
            .at(span, "TypeScript does not know this property")
            .see(package.span(files, &format!("\"{script}\":")), "this script type-checks it")
            .because("the property is declared by the types of Vite, which no file of the package refers to")
            .help(format!("add {types} with `/// <reference types=\"vite/client\" />`")),
    )
}

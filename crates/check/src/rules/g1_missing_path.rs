//! # A workflow works in a folder or with a file that is not there
//!
//! A step begins in its `working-directory`, an image is built from a Dockerfile, a language is set up in the
//! version that a file names. A path that the repository does not have, and that nothing makes on the way,
//! ends the job. So does a folder that is given to an action or a workflow of the repository itself, whose
//! commands run in it.
//!
//! People see: `An error occurred trying to start process '/usr/bin/bash' with working directory '…'. No such
//! file or directory`, `failed to read dockerfile: open Dockerfile: no such file or directory`, `unable to
//! prepare context: path "./api" not found`, `The specified go version file at: go.mod does not exist`.
//!
//! ## Bad
//! ```yaml
//! - uses: actions/checkout@v4
//! - run: npm ci
//!   working-directory: front-end        # the folder is called frontend
//! ```
//! ## Good
//! ```yaml
//! - uses: actions/checkout@v4
//! - run: npm ci
//!   working-directory: frontend
//! ```
//! ## When to suppress
//! Where a step makes the folder, and does not name it.

use tiphys_diag::{Severity, similar_names};
use tiphys_graph::{
    Files,
    tools::{
        node::inside,
        node_span,
        pipelines::{self, Format, Pipeline},
    },
};
use tiphys_vfs::{base_name, parent};
use tiphys_yaml::Node;

use crate::{
    Context, Finding, Report, Rule,
    support::{unused_files, workflow::folder_inputs},
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "G1-missing-path",
    incident: "G1",
    severity: Severity::Warning,
    title: "a workflow works in a folder or with a file that is not there",
    page: page!("g1_missing_path.rs"),
    check,
};

/// A path that a step needs.
struct Needed<'n> {
    /// From the root of the repository.
    path: String,
    node: &'n Node,
    message: String,
}

fn check(context: &Context<'_>, report: &mut Report) {
    let files = &context.survey.files;
    let all = &context.survey.tools().pipelines;
    for pipeline in all.iter().filter(|it| it.format == Format::Workflow) {
        for root in pipeline.roots().iter().filter(|root| !is_called(root)) {
            for (_, job) in root.get("jobs").and_then(Node::pairs).unwrap_or_default() {
                let folder = default_folder(job).or_else(|| default_folder(root));
                of_job(files, all, pipeline, job, folder)
                    .into_iter()
                    .chain(of_call(files, all, pipeline, job))
                    .for_each(|finding| report.add(finding));
            }
        }
    }
}

/// The folders that a job gives to a workflow of this repository, whose commands run in them.
fn of_call(files: &Files, all: &[Pipeline], pipeline: &Pipeline, job: &Node) -> Vec<Finding> {
    let called = job.get("uses").and_then(Node::as_str).and_then(|uses| uses.strip_prefix("./"));
    let (Some(called), Some(given)) = (called, job.get("with")) else { return Vec::new() };
    let roots = all.iter().filter(|it| *it.file == *called).flat_map(|it| it.roots());
    let mut found = Vec::new();
    for root in roots {
        for (_, job) in root.get("jobs").and_then(Node::pairs).unwrap_or_default() {
            let steps = pipelines::steps(job);
            let Some(start) = own_tree(&steps) else { continue };
            for (input, at) in folder_inputs::of_job(root, job) {
                let Some(node) = given.get(input).filter(|_| at > start) else { continue };
                let Some(path) = node.as_str().and_then(plain) else { continue };
                if !is_there(files, &path) && !may_be_made(files, &steps[..at], &path) {
                    let needed = Needed { message: no_folder(&path), path, node };
                    found.push(path_finding(files, pipeline, &needed));
                }
            }
        }
    }
    found.truncate(1);
    found
}

/// The step that fetches this repository as it is, if no other brings another tree.
fn own_tree(steps: &[&Node]) -> Option<usize> {
    let start = steps.iter().position(|step| uses(step).starts_with("actions/checkout@"))?;
    // Another repository, or a part of this one, or one in another folder.
    let is_other = |step: &&Node| {
        uses(step).starts_with("actions/checkout@")
            && step.get("with").is_some_and(|with| {
                ["repository", "path", "ref", "sparse-checkout"].iter().any(|key| with.get(key).is_some())
            })
    };
    (!steps.iter().any(is_other)).then_some(start)
}

fn uses(step: &Node) -> &str {
    step.get("uses").and_then(Node::as_str).unwrap_or_default()
}

fn no_folder(path: &str) -> String {
    format!(
        "An error occurred trying to start process with working directory '{path}'. No such file or directory"
    )
}

/// Whether other repositories may call a workflow, and it works in their trees.
fn is_called(root: &Node) -> bool {
    let Some(on) = root.get("on") else { return true };
    let named = on.items().unwrap_or_default().iter().chain([on]).filter_map(Node::as_str);
    on.get("workflow_call").is_some() || named.into_iter().any(|event| event == "workflow_call")
}

fn default_folder(owner: &Node) -> Option<&Node> {
    owner.get("defaults")?.get("run")?.get("working-directory")
}

fn of_job(
    files: &Files,
    all: &[Pipeline],
    pipeline: &Pipeline,
    job: &Node,
    folder: Option<&Node>,
) -> Vec<Finding> {
    let steps = pipelines::steps(job);
    let Some(start) = own_tree(&steps) else { return Vec::new() };
    let mut found: Vec<Finding> = Vec::new();
    for (at, step) in steps.iter().enumerate().skip(start) {
        for needed in of_step(step, folder).into_iter().chain(of_action(all, step)) {
            let before = &steps[..at];
            if is_there(files, &needed.path) || may_be_made(files, before, &needed.path) {
                continue;
            }
            let finding = path_finding(files, pipeline, &needed);
            if found.iter().all(|other| other.diagnostic.message != finding.diagnostic.message) {
                found.push(finding);
            }
            // What lies in a folder that is not there is not there either.
            break;
        }
    }
    found
}

/// The folders that a step gives to an action of this repository, whose commands run in them.
fn of_action<'n>(all: &[Pipeline], step: &'n Node) -> Vec<Needed<'n>> {
    let Some(action) = uses(step).strip_prefix("./").map(|path| path.trim_end_matches('/')) else {
        return Vec::new();
    };
    let is_it = |it: &&Pipeline| it.format == Format::Action && parent(&it.file) == Some(action);
    let inputs = all.iter().filter(is_it).flat_map(|it| it.roots()).flat_map(folder_inputs::of_action);
    let given = inputs.filter_map(|input| step.get("with")?.get(input));
    given
        .filter_map(|node| {
            let path = node.as_str().and_then(plain)?;
            Some(Needed { message: no_folder(&path), path, node })
        })
        .collect()
}

/// The paths that a step needs.
fn of_step<'n>(step: &'n Node, folder: Option<&'n Node>) -> Vec<Needed<'n>> {
    let mut found = Vec::new();
    let mut add = |node: &'n Node, path: Option<String>, message: &dyn Fn(&str) -> String| {
        if let Some(path) = path {
            found.push(Needed { message: message(&path), path, node });
        }
    };
    if step.get("run").is_some()
        && let Some(node) = step.get("working-directory").or(folder)
    {
        add(node, node.as_str().and_then(plain), &no_folder);
    }
    if let Some(node) = step.get("run")
        && let Some(at) = working_folder(step, folder)
        && let Some(file) = node.as_str().and_then(|script| dockerfile(script, &at))
    {
        add(node, Some(file), &|path| {
            format!("failed to read dockerfile: open {path}: no such file or directory")
        });
    }
    let (Some(uses), Some(with)) = (step.get("uses").and_then(Node::as_str), step.get("with")) else {
        return found;
    };
    let version_file = |it: &str| format!("The specified version file at: {it} does not exist");
    for (action, key) in [
        ("actions/setup-go@", "go-version-file"),
        ("actions/setup-node@", "node-version-file"),
        ("actions/setup-python@", "python-version-file"),
        ("actions/setup-java@", "java-version-file"),
    ] {
        if let Some(node) = with.get(key).filter(|_| uses.starts_with(action)) {
            add(node, node.as_str().and_then(plain), &version_file);
        }
    }
    if uses.starts_with("docker/build-push-action@") {
        let context = with.get("context");
        let file = with.get("file");
        let from = context.and_then(Node::as_str).and_then(plain);
        if let Some((node, from)) = context.zip(from.clone()).filter(|(_, from)| !from.is_empty()) {
            add(node, Some(from), &|path| format!("unable to prepare context: path {path:?} not found"));
        }
        let of_dockerfile =
            |path: &str| format!("failed to read dockerfile: open {path}: no such file or directory");
        match (file, context.zip(from)) {
            (Some(node), _) => add(node, node.as_str().and_then(plain), &of_dockerfile),
            (None, Some((node, from))) => add(node, Some(inside(&from, "Dockerfile")), &of_dockerfile),
            (None, None) => {}
        }
    }
    found
}

/// Where a step's commands run, if it is written out.
fn working_folder(step: &Node, folder: Option<&Node>) -> Option<String> {
    match step.get("working-directory").or(folder) {
        Some(node) => node.as_str().and_then(plain),
        None => Some(String::new()),
    }
}

/// The Dockerfile that the first `docker build` of a script reads, if nothing before it goes elsewhere or may
/// write one.
fn dockerfile(script: &str, folder: &str) -> Option<String> {
    const WITH_VALUE: [&str; 22] = [
        "-t",
        "--tag",
        "-f",
        "--file",
        "--build-arg",
        "--platform",
        "--target",
        "--cache-from",
        "--cache-to",
        "--label",
        "--secret",
        "--network",
        "-o",
        "--output",
        "--progress",
        "--build-context",
        "--provenance",
        "--ssh",
        "--metadata-file",
        "--iidfile",
        "--builder",
        "--sbom",
    ];
    const ALONE: [&str; 10] = [
        "--no-cache",
        "--push",
        "--load",
        "--pull",
        "-q",
        "--quiet",
        "--rm",
        "--force-rm",
        "--squash",
        "--compress",
    ];
    let script = script.replace("\\\n", " ");
    let mut lines = script.lines().map(str::trim);
    let mut before = lines.by_ref().take_while(|line| command_of(line).is_none());
    const ELSEWHERE: [&str; 6] = ["cd ", "pushd ", "Dockerfile", "git ", "cp ", "mv "];
    if before.by_ref().any(|line| ELSEWHERE.iter().any(|mark| line.contains(mark))) {
        return None;
    }
    let rest = script.lines().map(str::trim).find_map(command_of)?;
    let (mut contexts, mut file) = (Vec::new(), None);
    let mut words = rest.split_whitespace();
    while let Some(word) = words.next() {
        match word {
            "&&" | "||" | "|" | ";" | ">" | "2>&1" => break,
            "-f" | "--file" => file = Some(words.next()?),
            word if word.starts_with("--file=") => file = word.strip_prefix("--file="),
            word if WITH_VALUE.contains(&word) => drop(words.next()?),
            word if ALONE.contains(&word) || word.starts_with("--") && word.contains('=') => {}
            word if word.starts_with('-') => return None,
            word => contexts.push(word),
        }
    }
    let [context] = contexts.as_slice() else { return None };
    let from = if *context == "." { Some(String::new()) } else { plain(context) };
    let path = match file {
        Some(file) => plain(file.trim_matches(['"', '\'']))?,
        None => inside(&from?, "Dockerfile"),
    };
    Some(if folder.is_empty() { path } else { inside(folder, &path) })
}

/// What follows `docker build` in a line that begins with it.
fn command_of(line: &str) -> Option<&str> {
    let commands = ["docker build ", "docker buildx build ", "docker image build "];
    commands.iter().find_map(|command| line.strip_prefix(command))
}

/// A path below the root of the repository, if it is written out.
fn plain(text: &str) -> Option<String> {
    let text = text.trim().trim_start_matches("${{ github.workspace }}/");
    let is_open =
        text.contains(['$', '{', '*', ':', '~', '#']) || text.starts_with('/') || text.contains("..");
    let steps = text.split('/').filter(|step| !matches!(*step, "" | "."));
    (!is_open && !text.is_empty()).then(|| steps.collect::<Vec<_>>().join("/"))
}

fn is_there(files: &Files, path: &str) -> bool {
    path.is_empty() || files.contains(path) || files.has_folder(path) || files.tree().exists(path)
}

/// Whether a step before may bring a path, or a submodule does, or Git is told to leave out what is made
/// there.
fn may_be_made(files: &Files, before: &[&Node], path: &str) -> bool {
    let top = path.split('/').next().unwrap_or(path);
    let is_module = files.text(".gitmodules").is_some_and(|text| text.contains(top));
    // Artifacts and caches of other jobs, and programs that are not seen, may make any folder.
    const BRING: [&str; 4] = ["download-artifact", "cache", "clone", "checkout-"];
    let brings = |step: &&Node| {
        let uses = uses(step);
        let run = step.get("run").and_then(Node::as_str).unwrap_or_default();
        BRING.iter().any(|mark| uses.contains(mark))
            || uses.strip_prefix("./").is_some_and(|action| may_action_make(files, action, path))
            || run.contains(base_name(path))
            || run.contains(top) && !is_there(files, top)
            || run.contains("git ")
            || step.get("with").and_then(Node::pairs).unwrap_or_default().iter().any(|(_, value)| {
                value.as_str().is_some_and(|text| text.contains(base_name(path)))
                    && !uses.starts_with("docker/")
            })
    };
    // What builds call what they make; which command makes it, a name alone does not tell.
    const MADE: [&str; 9] =
        ["_site", "bin", "build", "dist", "node_modules", "out", "public", "site", "target"];
    let is_made = path.split('/').any(|step| MADE.contains(&step))
        && before.iter().any(|step| step.get("run").is_some() || !is_of_setup(step));
    is_module || is_made || unused_files::is_git_ignored(files, path) || before.iter().any(brings)
}

/// Whether an action of this repository may make a path: it fetches something, or speaks of it.
fn may_action_make(files: &Files, action: &str, path: &str) -> bool {
    const FETCH: [&str; 5] = ["git ", "clone", "download", "checkout", "cache"];
    let texts = ["action.yml", "action.yaml"].map(|file| files.text(&inside(action, file)));
    let Some(text) = texts.into_iter().flatten().next() else { return true };
    FETCH.iter().any(|mark| text.contains(mark)) || text.contains(base_name(path))
}

/// Whether a step only fetches the tree or sets up a language.
fn is_of_setup(step: &Node) -> bool {
    let uses = step.get("uses").and_then(Node::as_str).unwrap_or_default();
    uses.starts_with("actions/checkout@") || uses.starts_with("actions/setup-")
}

fn path_finding(files: &Files, pipeline: &Pipeline, needed: &Needed<'_>) -> Finding {
    let mut diagnostic = RULE
        .diagnostic(needed.message.clone())
        .at(node_span(files, &pipeline.file, needed.node), "this is not in the repository")
        .because("the job has the tree of the repository, and nothing before this step makes the path");
    let above = parent(&needed.path).unwrap_or_default();
    let beside: Vec<String> =
        files.tree().read_dir(above).unwrap_or_default().into_iter().map(|entry| entry.name).collect();
    let name = base_name(&needed.path);
    let nearest = similar_names::nearest_slip(name, beside.iter().map(String::as_str));
    diagnostic.help.extend(nearest.map(|nearest| format!("there is {}", inside(above, nearest))));
    let finding = Finding::new(RULE.incident, diagnostic).likely();
    match nearest {
        Some(nearest) => finding.with_spelling(name, nearest),
        None => finding,
    }
}

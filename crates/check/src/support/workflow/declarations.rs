//! What a workflow declares, by which is told what its expressions ask for without effect.

use std::collections::{BTreeMap, BTreeSet};

use tiphys_yaml::Node;

use tiphys_diag::similar_names;

/// What the context `github` has (GitHub docs, "Contexts reference").
const OF_GITHUB: [&str; 49] = [
    "action",
    "action_path",
    "action_ref",
    "action_repository",
    "action_status",
    "actor",
    "actor_id",
    "api_url",
    "artifact_cache_size_limit",
    "base_ref",
    "env",
    "event",
    "event_name",
    "event_path",
    "graphql_url",
    "head_ref",
    "job",
    "job_workflow_sha",
    "output",
    "path",
    "ref",
    "ref_name",
    "ref_protected",
    "ref_type",
    "repositoryurl",
    "repository",
    "repository_id",
    "repository_owner",
    "repository_owner_id",
    "repository_visibility",
    "retention_days",
    "run_attempt",
    "run_id",
    "run_number",
    "secret_source",
    "server_url",
    "sha",
    "state",
    "step_summary",
    "token",
    "triggering_actor",
    "workflow",
    "workflow_ref",
    "workflow_sha",
    "workspace",
    "enterprise",
    "oidc_request_url",
    "check_run_id",
    "custom_properties",
];
/// What is looked for in the context `github`, and stands elsewhere.
const ELSEWHERE: [(&str, &str); 13] = [
    ("base_sha", "github.event.pull_request.base.sha"),
    ("branch", "github.ref_name"),
    ("commit", "github.sha"),
    ("event_type", "github.event_name or github.event.action"),
    ("head_commit", "github.event.head_commit"),
    ("head_sha", "github.event.pull_request.head.sha"),
    ("inputs", "inputs or github.event.inputs"),
    ("issue", "github.event.issue"),
    ("pr_number", "github.event.number"),
    ("pull_request", "github.event.pull_request"),
    ("release", "github.event.release"),
    ("repo", "github.repository"),
    ("tag", "github.ref_name"),
];
const OF_RUNNER: [&str; 7] = ["arch", "debug", "environment", "name", "os", "temp", "tool_cache"];

/// Runners that GitHub had and has no more (GitHub changelog, "Actions", up to November 2026). A runner of
/// one's own may have the label all the same.
pub(super) const RETIRED: [&str; 11] = [
    "ubuntu-16.04",
    "ubuntu-18.04",
    "ubuntu-20.04",
    "macos-10.15",
    "macos-11",
    "macos-11.0",
    "macos-12",
    "macos-13",
    "windows-2016",
    "windows-2019",
    "vs2017-win2016",
];

/// The labels by which a job chooses its runner, be it through its matrix.
pub(super) fn runners(job: &Node) -> Vec<&Node> {
    let Some(wanted) = job.get("runs-on") else { return Vec::new() };
    let row = wanted.as_str().and_then(|text| {
        let name = text.trim().strip_prefix("${{")?.strip_suffix("}}")?.trim().strip_prefix("matrix.")?;
        job.get("strategy")?.get("matrix")?.get(name)
    });
    super::one_or_many(row.unwrap_or(wanted)).collect()
}

/// What a workflow declares. Names of inputs and outputs are distinguished without regard to case.
#[derive(Default)]
pub(super) struct WorkflowDeclarations<'n> {
    inputs: BTreeSet<String>,
    /// The outputs of each job that has steps of its own.
    outputs: BTreeMap<&'n str, BTreeSet<String>>,
    /// The first line of each job, and what its matrix has; `None` if that is known only when it runs.
    matrices: Vec<(u32, Option<BTreeSet<String>>)>,
}

impl<'n> WorkflowDeclarations<'n> {
    pub(super) fn from_workflow(root: &'n Node) -> Self {
        let events = ["workflow_dispatch", "workflow_call"];
        let inputs = events.iter().filter_map(|event| root.get("on")?.get(event)?.get("inputs"));
        let jobs = root.get("jobs").and_then(Node::pairs).unwrap_or_default();
        let own = jobs.iter().filter(|(_, job)| job.get("steps").is_some() && job.get("<<").is_none());
        let outputs = own.filter_map(|(name, job)| Some((name.as_str()?, names(job.get("outputs"))?)));
        Self {
            inputs: inputs.filter_map(|inputs| names(Some(inputs))).flatten().collect(),
            outputs: outputs.collect(),
            matrices: jobs.iter().map(|(name, job)| (name.span.start.line, matrix(job))).collect(),
        }
    }

    /// Why a context has nothing under a path, if that is sure. A part of a text may be meant to be empty in
    /// some jobs; so of a matrix a name is told only where the value is nothing else (`is_all`), or where it
    /// is a slip.
    pub(super) fn missing(&self, at: &Node, context: &str, path: &[&str], is_all: bool) -> Option<String> {
        match (context.to_lowercase().as_str(), path) {
            ("inputs", [input, ..]) if *input != "*" && !self.inputs.contains(&input.to_lowercase()) => {
                Some(format!("the workflow has no input {input}"))
            }
            ("needs", [job, "outputs", output, ..]) if *output != "*" => {
                let of_job = self.outputs.get(job)?;
                (!of_job.contains(&output.to_lowercase()))
                    .then(|| format!("job {job} has no output {output}"))
            }
            ("matrix", [name, ..]) if *name != "*" => {
                let line = at.span.start.line;
                let of_job = self.matrices.iter().rfind(|(first, _)| *first <= line)?.1.as_ref()?;
                let is_meant = || {
                    is_all || similar_names::nearest_slip(name, of_job.iter().map(String::as_str)).is_some()
                };
                (!of_job.contains(&name.to_lowercase()) && is_meant())
                    .then(|| format!("the matrix of the job has no {name}"))
            }
            ("github", [name, ..]) => unknown_of_github(&name.to_lowercase()),
            ("runner", [name, ..]) if !OF_RUNNER.contains(&name.to_lowercase().as_str()) => {
                let meant = similar_names::nearest_slip(name, OF_RUNNER.into_iter())?;
                Some(format!("the context runner has no {name}: {meant} is meant"))
            }
            _ => None,
        }
    }
}

/// What is wrong with a name of the context `github`, if it is a slip or stands elsewhere. What GitHub may
/// have learnt since is left alone.
fn unknown_of_github(name: &str) -> Option<String> {
    if OF_GITHUB.contains(&name) {
        return None;
    }
    let elsewhere = ELSEWHERE.iter().find(|(wrong, _)| *wrong == name).map(|(_, meant)| (*meant).to_owned());
    let meant = elsewhere.or_else(|| {
        let nearest = similar_names::nearest_slip(name, OF_GITHUB.into_iter())?;
        Some(format!("github.{nearest}"))
    })?;
    Some(format!("the context github has no {name}: {meant} is meant"))
}

/// What the matrix of a job has, if it is written out.
fn matrix(job: &Node) -> Option<BTreeSet<String>> {
    let is_merged = |node: &Node| node.get("<<").is_some();
    if is_merged(job) || job.get("uses").is_some() {
        return None;
    }
    let Some(strategy) = job.get("strategy") else { return Some(BTreeSet::new()) };
    let matrix = strategy.get("matrix").filter(|_| !is_merged(strategy))?;
    let mut found = names(Some(matrix))?;
    for item in matrix.get("include").map_or(Some(&[][..]), Node::items)? {
        found.extend(names(Some(item))?);
    }
    Some(found)
}

/// The keys of a mapping, in lower case; none if it is not there, and `None` if it is known only later.
fn names(mapping: Option<&Node>) -> Option<BTreeSet<String>> {
    let Some(mapping) = mapping else { return Some(BTreeSet::new()) };
    let pairs = mapping.pairs().filter(|_| mapping.get("<<").is_none())?;
    Some(pairs.iter().filter_map(|(name, _)| name.as_str()).map(str::to_lowercase).collect())
}

//! What a workflow declares, by which is told what its expressions ask for without effect.

use std::collections::{BTreeMap, BTreeSet};

use tiphys_yaml::Node;

use crate::support::nearest_name;

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
                let is_meant =
                    || is_all || nearest_name::nearest(name, of_job.iter().map(String::as_str)).is_some();
                (!of_job.contains(&name.to_lowercase()) && is_meant())
                    .then(|| format!("the matrix of the job has no {name}"))
            }
            _ => None,
        }
    }
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

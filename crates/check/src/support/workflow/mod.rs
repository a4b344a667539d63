//! The language of workflows of GitHub Actions: what GitHub refuses in a file that is good YAML.

pub(crate) mod action;
mod declarations;
mod events;
pub(crate) mod expression;
mod expression_checks;
pub(crate) mod folder_inputs;
mod jobs;
mod sections;
mod shape;

use tiphys_diag::similar_names;
use tiphys_yaml::Node;

use self::{
    declarations::WorkflowDeclarations,
    sections::{JOB, STEP, Shape, WORKFLOW},
};

/// What is wrong with a workflow.
#[derive(Debug)]
pub(crate) struct WorkflowFault<'n> {
    pub(crate) node: &'n Node,
    /// The line of the node's text, from 1.
    pub(crate) line: u32,
    pub(crate) message: String,
    pub(crate) label: String,
    pub(crate) effect: Effect,
}

/// What comes of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// GitHub refuses the whole file.
    Refused,
    /// A condition holds always.
    AlwaysTrue,
    /// A comparison holds never.
    NeverTrue,
    /// GitHub takes no notice of it.
    Ignored,
    /// An expression is always empty.
    AlwaysEmpty,
    /// A job waits for a runner that does not come.
    NeverRuns,
}

impl<'n> WorkflowFault<'n> {
    pub(crate) fn refusal(node: &'n Node, message: impl Into<String>, label: impl Into<String>) -> Self {
        Self { node, line: 1, message: message.into(), label: label.into(), effect: Effect::Refused }
    }
}

/// What is wrong with a workflow, in the order of the file.
pub(crate) fn faults(root: &Node) -> Vec<WorkflowFault<'_>> {
    let mut walker = Walker { faults: Vec::new(), known: WorkflowDeclarations::from_workflow(root) };
    walker.shape(root, WORKFLOW, None);
    if let Some(on) = root.get("on") {
        events::check(on, &mut walker);
    }
    if let Some(jobs) = root.get("jobs").and_then(Node::pairs) {
        walker.circle(jobs);
        for (_, job) in jobs {
            walker.job(job);
        }
    }
    let mut faults = walker.faults;
    faults.sort_by_key(|fault| fault.node.span.start.line);
    faults
}

/// The keys of a job.
pub(crate) fn keys_of_job() -> impl Iterator<Item = &'static str> + Clone {
    keys(JOB)
}

/// The keys of a step.
pub(crate) fn keys_of_step() -> impl Iterator<Item = &'static str> + Clone {
    keys(STEP)
}

fn keys(shape: Shape) -> impl Iterator<Item = &'static str> + Clone {
    let keys = if let Shape::Mapping(keys) = shape { keys } else { &[] };
    keys.iter().map(|key| key.name)
}

/// A text, or each text of a list.
pub(crate) fn one_or_many(node: &Node) -> impl Iterator<Item = &Node> {
    let all = std::iter::once(node).chain(node.items().unwrap_or_default());
    all.filter(|node| node.as_str().is_some_and(|text| !text.is_empty()))
}

struct Walker<'n> {
    faults: Vec<WorkflowFault<'n>>,
    known: WorkflowDeclarations<'n>,
}

impl<'n> Walker<'n> {
    fn refuse(&mut self, node: &'n Node, message: impl Into<String>, label: impl Into<String>) {
        self.faults.push(WorkflowFault::refusal(node, message, label));
    }

    /// A word that GitHub does not know. What it may have learnt since is left alone: only a slip is told.
    fn unexpected(&mut self, node: &'n Node, text: &str, known: impl Iterator<Item = &'static str>) {
        /// Keys of workflows, jobs and steps. New keys come with the years; these belong where they are
        /// known.
        const OF_OTHERS: [&str; 9] =
            ["env", "jobs", "needs", "outputs", "permissions", "runs-on", "steps", "strategy", "uses"];
        if let Some(meant) = similar_names::nearest_slip(text, known) {
            self.refuse(node, format!("Unexpected value '{text}'"), format!("{meant} is meant"));
        } else if OF_OTHERS.contains(&text) {
            self.refuse(node, format!("Unexpected value '{text}'"), "this key belongs to another part");
        }
    }
}

#[cfg(test)]
mod tests;

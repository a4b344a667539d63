//! What the runner refuses in an action that is made of steps (GitHub docs, "Metadata syntax for GitHub
//! Actions").

use tiphys_graph::tools::pipelines::Pipeline;
use tiphys_yaml::Node;

use super::WorkflowFault;

/// What is wrong with the steps of an action.
pub(crate) fn faults(pipeline: &Pipeline) -> Vec<WorkflowFault<'_>> {
    let [root] = pipeline.roots() else { return Vec::new() };
    let Some(runs) = root.get("runs") else { return Vec::new() };
    let is_composite = runs.get("using").and_then(Node::as_str) == Some("composite");
    let steps = runs.get("steps").and_then(Node::items).unwrap_or_default();
    let whole = |step: &&Node| is_composite && step.pairs().is_some() && step.get("<<").is_none();
    steps.iter().filter(whole).filter_map(of_step).collect()
}

fn of_step(step: &Node) -> Option<WorkflowFault<'_>> {
    match (step.get("run"), step.get("uses")) {
        (Some(run), None) if step.get("shell").is_none() => Some(WorkflowFault::refusal(
            run,
            "Required property is missing: shell",
            "in which shell this runs is missing",
        )),
        (Some(_), Some(uses)) => Some(WorkflowFault::refusal(
            uses,
            "a step of the action has both `uses` and `run`",
            "a step does one of the two",
        )),
        (None, None) => Some(WorkflowFault::refusal(
            step,
            "a step of the action has neither `uses` nor `run`",
            "it does nothing",
        )),
        _ => None,
    }
}

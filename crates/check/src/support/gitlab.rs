//! What GitLab refuses in a `.gitlab-ci.yml` that is good YAML (GitLab docs, "CI/CD YAML syntax reference").

use std::collections::BTreeSet;

use tiphys_diag::similar_names;
use tiphys_graph::tools::pipelines::Pipeline;
use tiphys_yaml::Node;

use super::workflow::{WorkflowFault, one_or_many};

/// Keys at the top that are no jobs.
const GLOBALS: [&str; 12] = [
    "default",
    "include",
    "stages",
    "variables",
    "workflow",
    "image",
    "services",
    "cache",
    "before_script",
    "after_script",
    "spec",
    "types",
];

/// The stages of a file that names none.
const STAGES: [&str; 3] = ["build", "test", "deploy"];

/// The stage of a job that names none.
const DEFAULT_STAGE: &str = "test";

/// What is wrong with the file of the repository's own pipeline. What an included file brings is not known,
/// and whoever includes a file knows more than the file says.
pub(crate) fn faults(pipeline: &Pipeline) -> Vec<WorkflowFault<'_>> {
    let [root] = pipeline.roots() else { return Vec::new() };
    if pipeline.file.as_ref() != ".gitlab-ci.yml" || root.get("include").is_some() {
        return Vec::new();
    }
    let pairs = root.pairs().unwrap_or_default();
    let file = File {
        root,
        names: pairs.iter().filter_map(|(name, _)| name.as_str()).collect(),
        stages: stages(root),
    };
    let jobs = pairs.iter().filter(|(name, job)| {
        name.as_str().is_some_and(|name| !GLOBALS.contains(&name) && !name.starts_with('.'))
            && job.pairs().is_some()
    });
    jobs.flat_map(|(name, job)| file.job(name, job)).collect()
}

/// The stages in their order; `None` if the file does not tell.
fn stages(root: &Node) -> Option<Vec<&str>> {
    let own = match root.get("stages").or_else(|| root.get("types")) {
        None => STAGES.to_vec(),
        Some(list) => {
            let items = list.items()?;
            let names: Vec<&str> = items.iter().filter_map(Node::as_str).collect();
            if names.len() != items.len() || names.iter().any(|name| name.contains('$')) {
                return None;
            }
            names
        }
    };
    Some([&[".pre"], own.as_slice(), &[".post"]].concat())
}

struct File<'n> {
    root: &'n Node,
    names: BTreeSet<&'n str>,
    stages: Option<Vec<&'n str>>,
}

impl<'n> File<'n> {
    fn job(&self, name: &'n Node, job: &'n Node) -> Vec<WorkflowFault<'n>> {
        let title = name.as_str().unwrap_or_default();
        let mut faults = Vec::new();
        for other in self.needed_jobs(job).chain(job.get("extends").into_iter().flat_map(one_or_many)) {
            let text = other.as_str().unwrap_or_default();
            if !self.names.contains(text) && !text.contains('$') {
                let message = format!("job {title} refers to job {text}, which does not exist");
                faults.push(WorkflowFault::refusal(other, message, "no job has that name"));
            }
        }
        if ["script", "trigger", "extends", "run", "<<"].iter().all(|key| job.get(key).is_none()) {
            let message = format!("job {title} has no `script`");
            faults.push(WorkflowFault::refusal(name, message, "expected `script`, `run` or `trigger`"));
        }
        faults.extend(self.unknown_stage(name, job));
        faults.extend(self.later(title, job));
        faults
    }

    /// The jobs that a job waits for.
    fn needed_jobs(&self, job: &'n Node) -> impl Iterator<Item = &'n Node> + use<'n> {
        let needs = job.get("needs").and_then(Node::items).unwrap_or_default().iter();
        let needs = needs.filter_map(|need| match need.as_str() {
            Some(_) => Some(need),
            None if ["pipeline", "project", "optional"].iter().any(|key| need.get(key).is_some()) => None,
            None => need.get("job"),
        });
        needs.chain(job.get("dependencies").and_then(Node::items).unwrap_or_default())
    }

    /// The stage of a job, if nothing else may give it one.
    fn stage(&self, job: &'n Node) -> Option<&'n str> {
        let stage = match job.get("stage") {
            Some(stage) => stage.as_str().filter(|stage| !stage.contains('$'))?,
            None if job.get("extends").is_some() || job.get("<<").is_some() => return None,
            None => DEFAULT_STAGE,
        };
        Some(stage)
    }

    fn unknown_stage(&self, name: &'n Node, job: &'n Node) -> Option<WorkflowFault<'n>> {
        let (stage, stages) = (self.stage(job)?, self.stages.as_ref()?);
        if stages.contains(&stage) {
            return None;
        }
        let title = name.as_str().unwrap_or_default();
        let available = stages.join(", ");
        let message =
            format!("{title} job: chosen stage {stage} does not exist; available stages are {available}");
        let label = match similar_names::nearest_slip(stage, stages.iter().copied()) {
            Some(meant) => format!("{meant} is meant"),
            None if job.get("stage").is_none() => format!("a job without a stage is one of {DEFAULT_STAGE}"),
            None => "no such stage".to_owned(),
        };
        Some(WorkflowFault::refusal(job.get("stage").unwrap_or(name), message, label))
    }

    /// Jobs of later stages that a job waits for.
    fn later(&self, title: &str, job: &'n Node) -> Vec<WorkflowFault<'n>> {
        let place = |job: &'n Node| {
            let (stage, stages) = (self.stage(job)?, self.stages.as_ref()?);
            stages.iter().position(|known| *known == stage)
        };
        let Some(own) = place(job) else { return Vec::new() };
        let is_later = |need: &&'n Node| {
            let other = need.as_str().and_then(|name| self.root.get(name));
            other.and_then(place).is_some_and(|other| other > own)
        };
        let fault = |need: &'n Node| {
            let name = need.as_str().unwrap_or_default();
            let message = format!("{title} job: need {name} is not defined in current or prior stages");
            WorkflowFault::refusal(need, message, "this job is of a later stage")
        };
        self.needed_jobs(job).filter(is_later).map(fault).collect()
    }
}

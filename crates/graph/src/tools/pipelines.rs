//! Files of pipelines: GitHub Actions and GitLab CI.

use std::sync::Arc;

use tiphys_yaml::{Error, Node, Profile, parse_documents};

use super::{Script, Tool, Variables, Writer, commands};
use crate::Files;

/// The format of a pipeline's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `.github/workflows/*.yml`.
    Workflow,
    /// `action.yml` of a GitHub action.
    Action,
    /// `.gitlab-ci.yml` and what lies in `.gitlab/` or `.gitlab-ci/`.
    GitLab,
}

/// A file of a pipeline.
#[derive(Clone, Debug)]
pub struct Pipeline {
    /// The file.
    pub file: Arc<str>,
    /// Its format.
    pub format: Format,
    /// Its documents, or why it cannot be read.
    pub documents: Result<Vec<Node>, Error>,
}

/// The files of pipelines of a repository.
pub fn pipelines(files: &Files) -> Vec<Pipeline> {
    let candidates = files.ending(&[".yml", ".yaml"]).filter_map(|file| Some((file, format(file)?)));
    candidates
        .filter_map(|(file, format)| {
            let text = files.text(file)?;
            let documents = parse_documents(&text, Profile::Go3);
            let documents = documents.map(|all| all.into_iter().map(|document| document.root).collect());
            Some(Pipeline { file: file.clone(), format, documents })
        })
        .collect()
}

/// The format of a file, by its path. Only the repository's own top folder holds workflows that run.
fn format(file: &str) -> Option<Format> {
    let base = file.rsplit('/').next().unwrap_or(file);
    if file.strip_prefix(".github/workflows/").is_some_and(|rest| !rest.contains('/')) {
        Some(Format::Workflow)
    } else if matches!(base, "action.yml" | "action.yaml")
        && (!file.contains('/') || file.starts_with(".github/"))
    {
        Some(Format::Action)
    } else if base == ".gitlab-ci.yml" || file.starts_with(".gitlab/ci/") || file.starts_with(".gitlab-ci/") {
        Some(Format::GitLab)
    } else {
        None
    }
}

impl Pipeline {
    /// The top nodes, if the file can be read.
    pub fn roots(&self) -> &[Node] {
        self.documents.as_deref().unwrap_or_default()
    }

    /// The shell text of its steps, each with the folder that it runs in.
    pub fn scripts(&self) -> Vec<(Script, String)> {
        let mut found = Vec::new();
        for root in self.roots() {
            match self.format {
                Format::Workflow => {
                    let default = working_directory(root);
                    for (_, job) in root.get("jobs").and_then(Node::pairs).unwrap_or_default() {
                        let default = working_directory(job).or(default);
                        self.steps(job, default, &mut found);
                    }
                }
                Format::Action => {
                    if let Some(runs) = root.get("runs") {
                        self.steps(runs, None, &mut found);
                    }
                }
                Format::GitLab => {
                    for (_, job) in root.pairs().unwrap_or_default() {
                        for key in ["before_script", "script", "after_script"] {
                            let script = job.get(key);
                            let lines = script
                                .and_then(Node::items)
                                .unwrap_or_else(|| script.map_or(&[], std::slice::from_ref));
                            let scripts = lines.iter().filter_map(|line| Script::of_node(&self.file, line));
                            found.extend(scripts.map(|script| (script, String::new())));
                        }
                    }
                }
            }
        }
        found
    }

    fn steps(&self, owner: &Node, default: Option<&str>, found: &mut Vec<(Script, String)>) {
        for step in steps(owner) {
            let Some(script) = step.get("run").and_then(|run| Script::of_node(&self.file, run)) else {
                continue;
            };
            let folder = step.get("working-directory").and_then(Node::as_str).or(default);
            found.push((script, folder.unwrap_or_default().to_owned()));
        }
    }

    /// What its steps write to the cluster.
    pub fn writers(&self, files: &Files) -> Vec<Writer> {
        let tool = if self.format == Format::GitLab { Tool::GitLabCi } else { Tool::GitHubActions };
        let mut variables = Variables::default();
        for root in self.roots() {
            for (name, value) in
                root.get("env").or_else(|| root.get("variables")).and_then(Node::pairs).unwrap_or_default()
            {
                if let (Some(name), Some(value)) = (name.as_str(), value.as_str()) {
                    variables.add(name, value);
                }
            }
        }
        let scripts = self.scripts().into_iter();
        scripts
            .flat_map(|(script, folder)| {
                let folders = vec![folder, String::new()];
                commands::writers(&script, &commands::Setting { files, tool, variables: &variables, folders })
            })
            .collect()
    }
}

/// The steps of a job or of an action, with those of each group that runs at once (`parallel`).
pub fn steps(owner: &Node) -> Vec<&Node> {
    let listed = owner.get("steps").and_then(Node::items).unwrap_or_default();
    // A group holds steps, and no groups.
    let with_group = |step| {
        std::iter::once(step).chain(Node::get(step, "parallel").and_then(Node::items).unwrap_or_default())
    };
    listed.iter().flat_map(with_group).collect()
}

fn working_directory(owner: &Node) -> Option<&str> {
    owner.get("defaults")?.get("run")?.get("working-directory")?.as_str()
}

//! What the other tools of a repository do to the cluster: Ansible, Terraform, scripts and pipelines,
//! each as a list of typed [`Writer`]s, with the files that they were read from.

pub mod ansible;
mod commands;
mod component;
pub mod docker;
mod helmfile;
pub mod node;
pub mod pipelines;
mod scripts;
mod shell;
pub mod terraform;
mod text_lines;
mod variables;

use std::sync::{Arc, OnceLock};

use tiphys_diag::Span;
use tiphys_value::ResourceKey;

use crate::Files;

pub use component::Component;
pub use shell::{Command, commands as parse_shell};
pub use text_lines::{Lines, Script, node_span};
pub use variables::Variables;

/// A tool that writes to a cluster beside the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tool {
    /// A task of a playbook or role.
    Ansible,
    /// A resource of a Terraform module.
    Terraform,
    /// A line of a shell script or Makefile.
    Script,
    /// A step of a GitHub Actions workflow.
    GitHubActions,
    /// A line of a GitLab CI job.
    GitLabCi,
    /// A release of a helmfile.
    Helmfile,
}

impl Tool {
    /// Its name, as its makers write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ansible => "Ansible",
            Self::Terraform => "Terraform",
            Self::Script => "a script",
            Self::GitHubActions => "GitHub Actions",
            Self::GitLabCi => "GitLab CI",
            Self::Helmfile => "helmfile",
        }
    }
}

/// What a tool does with something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Action {
    /// Creates or updates it.
    Apply,
    /// Changes fields of what is there.
    Patch,
    /// Deletes it.
    Delete,
    /// Reads it, or waits for it: it has to be there.
    Ask,
}

/// What is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// A Helm release.
    Release {
        /// Its name; empty if the repository does not say.
        name: String,
        /// The chart: a name, `repository/name`, an address, or a folder.
        chart: String,
        /// The address of the chart's repository; empty if not named.
        repository: String,
    },
    /// The manifests at an address outside of the repository.
    Address(String),
    /// The manifests of a file or folder of the repository.
    Path {
        /// The file or folder, from the root of the repository.
        path: String,
        /// What it holds; the namespace is empty where the manifest names none.
        objects: Vec<ResourceKey>,
    },
    /// A file or folder that a command names, that nothing before it makes, and that is not there.
    Absent {
        /// As the command names it, without the variable that stands for a folder.
        path: String,
        /// The folders that the path may be meant from.
        folders: Vec<String>,
    },
    /// One object. The group is empty where the tool names only the kind.
    Object(ResourceKey),
}

/// One place at which a tool writes to a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Writer {
    /// The tool.
    pub tool: Tool,
    /// What it does.
    pub action: Action,
    /// What it does it to.
    pub what: What,
    /// Whether it has kubectl do it: what that writes looks as if a person had.
    pub is_by_kubectl: bool,
    /// The namespace that it names.
    pub namespace: Option<String>,
    /// The place that says so.
    pub span: Span,
}

impl Writer {
    /// The well-known component that it installs, such as `calico`.
    pub fn component(&self) -> Option<&'static Component> {
        match &self.what {
            What::Release { chart, .. } => Component::of_chart(chart),
            What::Address(address) => Component::of_address(address),
            What::Path { .. } | What::Absent { .. } | What::Object(_) => None,
        }
    }

    /// Whether it installs Argo CD, which something else has to.
    pub fn installs_argo_cd(&self) -> bool {
        self.component().is_some_and(|component| component.name == "argo-cd")
    }

    /// Whether its file is for trying things out.
    pub fn is_for_trials(&self) -> bool {
        const FOLDERS: [&str; 7] = ["test", "tests", "e2e", "hack", "kind", "local", "examples"];
        self.span.file.split('/').any(|step| FOLDERS.contains(&step))
    }

    /// The objects that it is known to write.
    pub fn objects(&self) -> &[ResourceKey] {
        match &self.what {
            What::Path { objects, .. } => objects,
            What::Object(key) => std::slice::from_ref(key),
            What::Release { .. } | What::Address(_) | What::Absent { .. } => &[],
        }
    }

    /// What it writes, for messages: `chart calico`, `https://…/calico.yaml`, `Installation/default`.
    pub fn subject(&self) -> String {
        match &self.what {
            What::Release { chart, .. } => format!("chart {chart}"),
            What::Address(address) => address.clone(),
            What::Path { path, .. } | What::Absent { path, .. } => path.clone(),
            What::Object(key) => format!("{}/{}", key.kind, key.name),
        }
    }
}

/// What the other tools of a repository say.
#[derive(Debug)]
pub struct Tools {
    /// Every place at which one of them writes to a cluster.
    pub writers: Vec<Writer>,
    /// Every place at which one of them asks for one object of a cluster, the kind as it is written.
    pub asks: Vec<Writer>,
    /// Playbooks, task files and roles.
    pub ansible: ansible::Ansible,
    /// Terraform files.
    pub terraform: terraform::Terraform,
    /// Files of pipelines.
    pub pipelines: Vec<pipelines::Pipeline>,
}

/// What the other tools of a repository say, read when it is first asked for. All clones read it once.
#[derive(Clone)]
pub struct LazyTools {
    pub(crate) files: Arc<Files>,
    pub(crate) read: Arc<OnceLock<Tools>>,
}

impl LazyTools {
    /// What they say.
    pub fn get(&self) -> &Tools {
        self.read.get_or_init(|| Tools::from_files(&self.files))
    }
}

impl Tools {
    /// Reads the files of a repository.
    pub fn from_files(files: &Files) -> Self {
        let (ansible, terraform) =
            (ansible::Ansible::from_files(files), terraform::Terraform::from_files(files));
        let pipelines = pipelines::pipelines(files);
        let mut writers = ansible.writers(files);
        writers.extend(terraform.writers());
        writers.extend(terraform.provisioners(files));
        writers.extend(pipelines.iter().flat_map(|pipeline| pipeline.writers(files)));
        writers.extend(scripts::writers(files));
        writers.extend(helmfile::writers(files));
        let (asks, writers) = writers.into_iter().partition(|writer| writer.action == Action::Ask);
        Self { writers, asks, ansible, terraform, pipelines }
    }
}

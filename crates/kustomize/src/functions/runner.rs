//! What a program is run with, and what it answers.

use tiphys_vfs::FileTree;

/// What a configuration asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FunctionProgram {
    /// `exec.path` of a function annotation.
    Executable(String),
    /// `container.image` of a function annotation.
    Image(String),
    /// An exec plugin, by `apiVersion` and `kind` of its configuration.
    Plugin {
        /// `apiVersion`, group and version.
        api_version: String,
        /// `kind`, which is the name of the plugin's file.
        kind: String,
    },
}

/// One run of a program.
#[derive(Clone, Copy)]
pub struct FunctionCall<'a> {
    /// What the configuration asks for.
    pub program: &'a FunctionProgram,
    /// Its arguments.
    pub args: &'a [String],
    /// Variables that the configuration sets for it.
    pub env: &'a [(String, String)],
    /// What it reads on stdin.
    pub input: &'a str,
    /// The configuration's text, for plugins that get it as a file, named by their first argument.
    pub config_file: Option<&'a str>,
    /// The files that the kustomization's folder stands in.
    pub tree: &'a dyn FileTree,
    /// The kustomization's folder in it, in a copy of which the program runs.
    pub folder: &'a str,
    /// Whether the tree was fetched because a kustomization names its address.
    pub is_remote: bool,
}

/// What a program did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FunctionOutput {
    /// What it printed.
    pub output: String,
    /// The beginning of what it printed on stderr.
    pub complaints: String,
    /// How it ended, unless it succeeded, as Go says it: `exit status 3`.
    pub failure: Option<String>,
}

/// Runs the programs that are allowed. Implemented by the `source` crate.
pub trait FunctionRunner: Send + Sync {
    /// The executable that stands for what a configuration asks for; `None` if it is not allowed.
    fn find(&self, program: &FunctionProgram) -> Option<String>;

    /// Runs a program that is allowed.
    ///
    /// # Errors
    /// It cannot be started, takes too long or prints too much.
    fn run(&self, call: &FunctionCall<'_>) -> Result<FunctionOutput, String>;
}

impl FunctionProgram {
    /// What has to be allowed for it to run.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Executable(path) => path.clone(),
            Self::Image(image) => format!("{image}=EXECUTABLE"),
            Self::Plugin { api_version, kind } => format!("{api_version}/{kind}=EXECUTABLE"),
        }
    }
}

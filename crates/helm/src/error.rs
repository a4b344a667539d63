//! Why a chart could not be rendered.

use tiphys_gocompat::unicode::is_space;
use tiphys_vfs::VfsError;

/// What Helm prints behind every error that comes after the values are put together.
const DEBUG_HINT: &str = "\n\nUse --debug flag to render out invalid YAML";

/// Why a chart could not be rendered; prints what `helm template` prints after `Error: `.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HelmError {
    /// A feature of Helm that Tiphys does not have.
    #[error("{0} is not supported")]
    Unsupported(String),
    /// A limit of Tiphys was exceeded.
    #[error("{0}")]
    Limit(String),
    /// A file of the chart could not be read.
    #[error(transparent)]
    File(#[from] VfsError),
    /// The chart is not well-formed.
    #[error("{0}")]
    Load(String),
    /// A link in the chart's folder leads nowhere.
    #[error("{text}")]
    BrokenLink {
        /// Which link, and where to.
        text: String,
        /// What Helm logs of the links that it followed before.
        logged: Vec<String>,
    },
    /// The repository has only a pointer to a file of the chart, which Git LFS keeps.
    #[error("{0}")]
    KeptElsewhere(String),
    /// Values cannot be read or put together.
    #[error("{0}")]
    Values(String),
    /// Charts that `Chart.yaml` names are not in `charts/`.
    #[error(
        "an error occurred while checking for chart dependencies. You may need to run 'helm dependency build' to fetch missing dependencies: found in Chart.yaml, but missing in charts/ directory: {}",
        .0.join(", ")
    )]
    MissingDependencies(Vec<String>),
    /// As [`HelmError::MissingDependencies`], in Helm 3's words.
    #[error(
        "An error occurred while checking for chart dependencies. You may need to run `helm dependency build` to fetch missing dependencies: found in Chart.yaml, but missing in charts/ directory: {}",
        .0.join(", ")
    )]
    MissingDependencies3(Vec<String>),
    /// A dependency could not be fetched.
    #[error("{0}")]
    Fetch(String),
    /// Values do not fit `values.schema.json`.
    #[error("values don't meet the specifications of the schema(s) in the following chart(s):\n{0}")]
    Schema(String),
    /// An option does not make sense (release name, Kubernetes version, `--show-only`).
    #[error("{0}")]
    Option(String),
    /// The chart does not allow the Kubernetes version.
    #[error("{0}{DEBUG_HINT}")]
    KubeVersion(String),
    /// A template does not parse or fails.
    #[error("{0}{DEBUG_HINT}")]
    Template(TemplateError),
    /// What templates rendered to is no YAML; as Helm prints it without `--debug`.
    #[error("{reason}{DEBUG_HINT}")]
    InvalidYaml {
        /// The template, by chart and path.
        template: String,
        /// Which file, and what is wrong with it.
        reason: String,
        /// What all templates rendered to.
        rendered: String,
    },
}

/// A template that does not parse, or that fails.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct TemplateError {
    /// What Helm says.
    pub message: String,
    /// The outermost template at fault, by chart and path: `web/templates/app.yaml`.
    pub template: String,
    /// Its line, from 1; 0 if there is none.
    pub line: usize,
    /// Its column, as Go counts it; 0 if there is none.
    pub column: usize,
    /// Whether it does not parse, which no values could mend.
    pub is_syntax: bool,
}

impl HelmError {
    /// The template that is at fault, if one is: its name by chart and path, and the line; 0 if that is not
    /// known.
    #[must_use]
    pub fn template(&self) -> Option<(&str, usize)> {
        match self {
            Self::Template(error) => Some((error.template.as_str(), error.line)),
            Self::InvalidYaml { template, .. } => Some((template, 0)),
            _ => None,
        }
    }

    /// What `helm template --debug` prints to standard output, and the text of the failure, if that flag
    /// changes anything.
    #[must_use]
    pub fn debug_output(&self) -> Option<(String, String)> {
        let text = self.to_string();
        let reason = text.strip_suffix(DEBUG_HINT)?.to_owned();
        let rendered = match self {
            Self::InvalidYaml { rendered, .. } => rendered,
            _ => "",
        };
        Some((format!("{}\n", rendered.trim_matches(is_space)), reason))
    }
}

//! The command line of `tiphys check`.

use std::path::PathBuf;

use clap::ValueEnum;
use tiphys_apiserver::KubernetesVersion;
use tiphys_check::Severity;

/// Tell from a repository alone what will break: no cluster and no configuration is needed.
///
/// Reads the repository as the engine would: finds the Applications, renders every source, follows what they
/// declare in turn, and looks at the whole. What could not be had is listed.
///
/// Exit codes: 0 nothing found; 1 findings at or above --severity; 2 the check could not run.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:\n  tiphys check\n  tiphys check examples/storefront --offline\n  \
    tiphys check --diff origin/main --output markdown\n  tiphys check --rule C --severity error\n  \
    tiphys check --explain B3-two-owners")]
pub(crate) struct Args {
    /// The repository: a folder, or an address that Git takes.
    #[arg(default_value = ".", value_name = "PATH_OR_GIT_URL")]
    pub place: String,
    /// Check this branch, tag or commit in place of the files as they are.
    #[arg(long, alias = "rev", value_name = "REV")]
    pub revision: Option<String>,
    /// Only one of several environments that stand side by side: its name, or the end of that.
    #[arg(long, value_name = "NAME")]
    pub environment: Option<String>,
    /// Only what hits the Application of this name.
    #[arg(long, value_name = "NAME")]
    pub app: Option<String>,
    /// The verdict, and each cause in one line.
    #[arg(long)]
    pub brief: bool,
    /// A table of the Applications in place of the findings: whether each renders, applies, starts and is
    /// reached.
    #[arg(long, conflicts_with = "brief")]
    pub applications: bool,
    /// Say nothing of where Tiphys behaves otherwise than Argo CD, by whose rules all is judged.
    #[arg(long)]
    pub argo_cd: bool,
    /// Show also what no Application reaches, the table of the Applications, and one by one what was not
    /// seen.
    #[arg(long)]
    pub all: bool,
    /// Show only what the change since this branch, tag or commit brings.
    #[arg(long, value_name = "BASE", conflicts_with = "watch")]
    pub diff: Option<String>,
    /// A folder that holds nothing to check is no error.
    #[arg(long)]
    pub allow_empty: bool,
    /// Fetch nothing: charts and repositories that are not in the cache are not seen.
    #[arg(long)]
    pub offline: bool,
    /// The Kubernetes minor version that the objects are for, such as 1.34: APIs that it serves are not told
    /// of as removed, and charts are rendered for it.
    #[arg(long, value_name = "VERSION")]
    pub kubernetes_version: Option<KubernetesVersion>,
    /// The form of the output.
    #[arg(long, value_enum, default_value_t = Output::Text)]
    pub output: Output,
    /// Only these rules: an id (A1-self-wait), an incident (A1) or a family (A). May be repeated.
    #[arg(long = "rule", value_name = "RULE")]
    pub rules: Vec<String>,
    /// The least severity that is shown and makes the check fail; by default that of tiphys.toml, or warning.
    #[arg(long, value_enum, value_name = "SEVERITY")]
    pub severity: Option<Least>,
    /// Leave out the findings that this file lists.
    #[arg(long, value_name = "FILE")]
    pub baseline: Option<PathBuf>,
    /// Write the findings into the file of --baseline, which later runs leave out.
    #[arg(long, requires = "baseline")]
    pub write_baseline: bool,
    /// A file with the clusters that ApplicationSets may name: their Secrets, or a YAML list of {name,
    /// server, labels}.
    #[arg(long, value_name = "FILE")]
    pub clusters: Option<PathBuf>,
    /// Apply the fixes that are proven: with them the finding is gone and no other has come.
    #[arg(long, conflicts_with_all = ["revision", "watch"])]
    pub fix: bool,
    /// Apply also those of findings that are likely, not certain: look at what they changed.
    #[arg(long, conflicts_with_all = ["revision", "watch"])]
    pub fix_likely: bool,
    /// Stay, and check again whenever a file changes.
    #[arg(long, conflicts_with = "revision")]
    pub watch: bool,
    /// Show the values of Secrets in the lines that are pointed at.
    #[arg(long)]
    pub show_secrets: bool,
    /// Print what a rule is about, and end.
    #[arg(long, value_name = "RULE")]
    pub explain: Option<String>,
}

/// The form of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// For people: the line, the caret, why, and what to do.
    Text,
    /// One JSON object; docs/check-json.md describes it.
    Json,
    /// SARIF 2.1.0, for code hosts.
    Sarif,
    /// Annotations of GitHub Actions.
    Github,
    /// For a comment on a pull request.
    Markdown,
    /// JUnit's XML, for test reporters.
    Junit,
    /// One page for a browser, which loads nothing else.
    Html,
}

/// A severity on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Least {
    /// Everything.
    Info,
    /// What may fail, and what fails.
    Warning,
    /// What fails.
    Error,
}

impl From<Least> for Severity {
    fn from(least: Least) -> Self {
        match least {
            Least::Info => Self::Info,
            Least::Warning => Self::Warning,
            Least::Error => Self::Error,
        }
    }
}

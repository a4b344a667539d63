//! What a rendering depends on besides the chart.

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::Mutex;

pub use tiphys_gotemplate::FixedClock;

use crate::{ClusterLookup, SchemaLoader};

/// Which Helm to equal where versions differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compat {
    /// Helm 4.2.
    #[default]
    Helm4,
    /// Helm 3.19.
    Helm3,
}

/// A path, and the content of its file, or why there is none.
pub type FileRead = (String, Result<Arc<[u8]>, String>);

/// One source of values, in the order of Helm's flags. Sources of one kind are applied in their
/// order; kinds in the order files, `--set-json`, `--set`, `--set-string`, `--set-file`,
/// `--set-literal`, whatever the order of the list.
#[derive(Clone, Debug)]
pub enum ValuesSource {
    /// `-f`: name to print in errors and origins, and content.
    File(String, Arc<[u8]>),
    /// `--set-json`.
    SetJson(String),
    /// `--set`.
    Set(String),
    /// `--set-string`.
    SetString(String),
    /// `--set-file`: `key=path`, and the contents of the paths that it names ([`crate::set_file_paths`]), or
    /// why there are none.
    SetFile(String, Vec<FileRead>),
    /// `--set-literal`.
    SetLiteral(String),
}

/// What a cluster says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Served {
    /// Version of Kubernetes, such as `v1.36.1`.
    pub kube_version: String,
    /// `group/version` and `group/version/Kind` of everything served.
    pub api_versions: Vec<String>,
}

/// What a rendering depends on besides the chart: the flags of `helm template`.
#[derive(Clone, Default)]
pub struct RenderOptions {
    /// `.Release.Name`; Helm's default is `release-name`.
    pub release_name: String,
    /// `.Release.Namespace`.
    pub namespace: String,
    /// Values, see [`ValuesSource`].
    pub values: Vec<ValuesSource>,
    /// `--kube-version`.
    pub kube_version: Option<String>,
    /// `--api-versions`, added to the built-in ones.
    pub api_versions: Vec<String>,
    /// `--include-crds`.
    pub include_crds: bool,
    /// `--skip-tests`.
    pub skip_tests: bool,
    /// `--no-hooks`.
    pub no_hooks: bool,
    /// `--is-upgrade`.
    pub is_upgrade: bool,
    /// `--skip-schema-validation`.
    pub skip_schema_validation: bool,
    /// `--show-only`.
    pub show_only: Vec<String>,
    /// Which Helm to equal.
    pub compat: Compat,
    /// Whether to find out where every field came from.
    pub origins: bool,
    /// Seed of random functions; `None` for real randomness.
    pub seed: Option<String>,
    /// With a seed: whether keys and hashes of passwords only have to be of the right form, because nobody is
    /// going to apply the output. They are slow to make.
    pub mock_secrets: bool,
    /// The time that `now` and certificates see; `None` for the machine's clock.
    pub clock: Option<FixedClock>,
    /// Whether a missing value fails, which `helm template` has no flag for.
    pub strict: bool,
    /// What a cluster is and serves, in place of `kube_version`, `api_versions` and the built-in ones, as
    /// with `helm template --dry-run=server`.
    pub served: Option<Served>,
    /// Answers `lookup`; without it lookups find nothing.
    pub lookup: Option<Arc<dyn ClusterLookup>>,
    /// Fetches schemas that a `values.schema.json` refers to by address; without it such a chart fails,
    /// naming them.
    pub schemas: Option<Arc<dyn SchemaLoader>>,
    /// Notes what templates ask of [`Self::api_versions`].
    pub questions: Questions,
}

/// What templates asked of the API versions beyond the built-in ones: another answer may lead to another
/// output. Cheap to clone; clones note in one place.
#[derive(Clone, Debug, Default)]
pub struct Questions(Arc<Mutex<BTreeMap<String, bool>>>);

impl Questions {
    /// Stands for the whole list, which a template went through.
    pub const ALL: &str = "*";

    /// What was asked for, with the answers. [`Self::ALL`] is always answered with `true`.
    pub fn answers(&self) -> BTreeMap<String, bool> {
        self.0.lock().clone()
    }

    /// Notes what others hold.
    pub(crate) fn note_all(&self, others: &Self) {
        others.answers().iter().for_each(|(version, answer)| self.record(version, *answer));
    }

    pub(crate) fn record(&self, version: &str, answer: bool) {
        self.0.lock().insert(version.to_owned(), answer);
    }
}

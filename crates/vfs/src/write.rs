//! Writing into a checkout, for the commands that mend files and keep baselines. What stands there was made
//! by somebody else, so nothing in it may decide where bytes go.

use std::{
    fs,
    io::{ErrorKind, Write as _},
    path::Path,
};

use tempfile::NamedTempFile;

use crate::{VfsError, VfsErrorKind, disk::io_error, normalize, parent};

/// Writes a file below `root`, in a folder that is there; nobody ever sees half of it. The permissions of a
/// file that is replaced stay.
///
/// The new content goes into a file of an unpredictable name, which is created exclusively in the same folder
/// and then renamed: no symbolic or hard link in the tree leads the bytes elsewhere.
///
/// # Errors
/// The path leaves the tree or leads through a link, something else than a regular file stands there, or the
/// system refuses.
pub fn write_file(root: &Path, path: &str, content: &[u8]) -> Result<(), VfsError> {
    let failed = |error| io_error(path, error);
    let relative = normalize(path)?;
    let root = root.canonicalize().map_err(failed)?;
    let folder = root.join(parent(&relative).unwrap_or_default());
    // A link on the way is refused even if it stays in the tree: what is mended is the file that it names.
    if folder.canonicalize().map_err(failed)? != folder {
        return Err(VfsError::new(path, VfsErrorKind::WriteThroughLink));
    }
    let file = root.join(&relative);
    let before = match fs::symlink_metadata(&file) {
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        found => Some(found.map_err(failed)?),
    };
    match &before {
        Some(found) if found.is_symlink() => {
            return Err(VfsError::new(path, VfsErrorKind::WriteThroughLink));
        }
        Some(found) if found.is_dir() => return Err(VfsError::new(path, VfsErrorKind::IsDir)),
        Some(found) if !found.is_file() => return Err(VfsError::new(path, VfsErrorKind::Special)),
        _ => {}
    }
    let mut new = new_file(&folder).map_err(failed)?;
    new.write_all(content).map_err(failed)?;
    if let Some(before) = before {
        new.as_file().set_permissions(before.permissions()).map_err(failed)?;
    }
    new.as_file().sync_all().map_err(failed)?;
    new.persist(&file).map_err(|error| failed(error.error))?;
    Ok(())
}

fn new_file(folder: &Path) -> std::io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".tiphys-");
    // As any program creates files: the user's mask takes away from it.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    builder.tempfile_in(folder)
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn a_file_is_replaced_with_its_permissions_or_created() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("a")).unwrap();
        let file = dir.path().join("a/b.yaml");
        fs::write(&file, "old").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        write_file(dir.path(), "a/b.yaml", b"new").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
        write_file(dir.path(), "a/c.yaml", b"first").unwrap();
        assert_eq!(fs::read_to_string(dir.path().join("a/c.yaml")).unwrap(), "first");
        assert_eq!(fs::read_dir(dir.path().join("a")).unwrap().count(), 2);
        assert!(write_file(dir.path(), "absent/c.yaml", b"").unwrap_err().is_not_found());
    }

    #[test]
    fn links_lead_no_bytes_elsewhere() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("root");
        fs::create_dir_all(root.join("real")).unwrap();
        let victim = dir.path().join("victim");
        fs::write(&victim, "precious").unwrap();
        fs::write(root.join("real/a.yaml"), "a").unwrap();
        symlink(&victim, root.join("file.yaml")).unwrap();
        symlink(dir.path(), root.join("folder")).unwrap();
        symlink("real", root.join("inside")).unwrap();
        symlink(&victim, root.join("real/.a.yaml.tiphys-new")).unwrap();
        fs::hard_link(&victim, root.join("hard.yaml")).unwrap();
        for path in ["file.yaml", "folder/victim", "inside/a.yaml"] {
            let error = write_file(&root, path, b"evil").unwrap_err();
            assert!(matches!(error.kind, VfsErrorKind::WriteThroughLink), "{path}: {error}");
        }
        assert!(matches!(
            write_file(&root, "../victim", b"evil").unwrap_err().kind,
            VfsErrorKind::OutsideTree
        ));
        assert!(matches!(write_file(&root, "real", b"evil").unwrap_err().kind, VfsErrorKind::IsDir));
        write_file(&root, "real/a.yaml", b"mended").unwrap();
        write_file(&root, "hard.yaml", b"mended").unwrap();
        assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
        assert_eq!(fs::read_to_string(root.join("hard.yaml")).unwrap(), "mended");
    }
}

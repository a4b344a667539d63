//! The state holds every Secret of the cluster: nobody but its owner reads it.

use std::{
    fs::{DirBuilder, File},
    io,
    path::Path,
};

/// Makes a folder that only its owner enters. One that is there already is made so if it holds nothing but
/// the state.
pub(super) fn make_folder(folder: &Path, state: &str) -> io::Result<()> {
    let is_new = !folder.exists();
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)?;
    let is_ours = |entry: io::Result<std::fs::DirEntry>| {
        entry.is_ok_and(|entry| entry.file_name().to_string_lossy().starts_with(state))
    };
    if is_new || std::fs::read_dir(folder)?.all(is_ours) {
        restrict(folder, 0o700)?;
    }
    Ok(())
}

/// Creates a file that only its owner reads.
pub(super) fn create_file(file: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.read(true).write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(file)
}

/// Writes a file that only its owner reads, in place of one that is there.
pub(super) fn replace_file(file: &Path, text: &str) -> io::Result<()> {
    match std::fs::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => io::Write::write_all(&mut create_file(file)?, text.as_bytes()),
    }
}

/// Takes from others what they may do with a file.
pub(super) fn keep_file(file: &Path) -> io::Result<()> {
    restrict(file, 0o600)
}

#[cfg(unix)]
fn restrict(path: &Path, mode: u32) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    let now = std::fs::metadata(path)?.permissions().mode() & 0o777;
    if now & !mode == 0 {
        return Ok(());
    }
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(now & mode))
}

#[cfg(not(unix))]
fn restrict(_path: &Path, _mode: u32) -> io::Result<()> {
    Ok(())
}

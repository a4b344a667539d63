//! New files and folders that nobody but their owner reads.

use std::{
    fs::{DirBuilder, File, OpenOptions},
    io,
    path::Path,
};

/// A file that was not there before. A link that is there is not followed.
///
/// # Errors
/// Something is there already, or it cannot be made.
pub(crate) fn new_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// A folder that was not there before.
///
/// # Errors
/// Something is there already, or it cannot be made.
pub(crate) fn new_folder(path: &Path) -> io::Result<()> {
    #[cfg_attr(not(unix), expect(unused_mut, reason = "only systems with modes set one"))]
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

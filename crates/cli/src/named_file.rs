//! Files that somebody names on the command line. What stands there is often of a repository that nobody
//! knows: a link to a device has no end, and a pipe waits for ever.

use std::path::Path;

use anyhow::{Context as _, anyhow};
use tiphys_vfs::{DiskTree, FileTree as _};

/// The text of a regular file that is no larger than a file of a repository may be.
///
/// # Errors
/// It is not there, no regular file, too large, or no UTF-8.
pub(crate) fn read_text(path: &Path) -> anyhow::Result<String> {
    let read = || -> anyhow::Result<String> {
        let whole = path.canonicalize()?;
        let folder = whole.parent().context("it is a folder")?;
        let name = whole.file_name().and_then(|name| name.to_str()).context("its name is no UTF-8")?;
        let bytes = DiskTree::open(folder)?.read(name).map_err(|error| anyhow!("{}", error.kind))?;
        Ok(String::from_utf8(bytes.to_vec())?)
    };
    read().with_context(|| format!("cannot read {}", path.display()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn only_regular_files_are_read() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        std::fs::write(at("plain"), "a: b\n").unwrap();
        symlink("plain", at("link")).unwrap();
        symlink("/dev/zero", at("zero")).unwrap();
        let made = std::process::Command::new("mkfifo").arg(at("pipe")).status();
        assert!(made.unwrap().success());
        assert_eq!(read_text(&at("link")).unwrap(), "a: b\n");
        for (name, why) in [
            ("zero", "only regular files are read"),
            ("pipe", "only regular files are read"),
            (".", "directory"),
            ("none", "No such file"),
        ] {
            let fault = format!("{:#}", read_text(&at(name)).unwrap_err());
            assert!(fault.starts_with("cannot read ") && fault.contains(why), "{fault}");
        }
    }
}

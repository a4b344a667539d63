//! What a folder of Git may consist of, before it is opened: files, folders and links to these. Whoever opens
//! a pipe waits for somebody to write into it, and a device may never end. Files that are read whole have a
//! size that no repository in use comes near.

use std::{
    collections::BTreeSet,
    fs,
    io::Read,
    path::{Path, PathBuf},
};

use super::error::SourceError;

/// How much of a file is read that names another folder.
const POINTER: u64 = 64 << 10;
/// The largest list of branches and tags, index of the working tree, and other file that is read whole, in
/// bytes. A million branches take 80 MiB.
const LISTS: u64 = 256 << 20;
const SETTINGS: u64 = 16 << 20;

/// Refuses the Git folder of a folder, or of one above it, that holds something else.
///
/// # Errors
/// The first that is neither file nor folder.
pub(crate) fn check(folder: &Path) -> Result<(), SourceError> {
    let mut found = Walk { seen: BTreeSet::new() };
    for above in folder.ancestors() {
        // A repository without a work tree has these in the folder itself.
        if ["objects", "refs"].iter().all(|name| above.join(name).is_dir()) {
            found.folder(above)?;
        }
        let git = above.join(".git");
        found.git_folder(&git)?;
        if git.exists() {
            break;
        }
    }
    Ok(())
}

/// The folders that were gone through.
struct Walk {
    seen: BTreeSet<PathBuf>,
}

impl Walk {
    /// `.git`: a folder, or a file that names one.
    fn git_folder(&mut self, git: &Path) -> Result<(), SourceError> {
        check_kind(git)?;
        let named = read_pointer(git).and_then(|text| Some(text.strip_prefix("gitdir:")?.trim().to_owned()));
        let folder = match named {
            Some(named) => git.with_file_name("").join(named),
            None => git.to_owned(),
        };
        self.folder(&folder)?;
        if let Some(common) = read_pointer(&folder.join("commondir")) {
            self.folder(&folder.join(common.trim()))?;
        }
        Ok(())
    }

    /// A folder with all below it, and those from which it borrows objects.
    fn folder(&mut self, folder: &Path) -> Result<(), SourceError> {
        let mut open = vec![folder.to_owned()];
        while let Some(folder) = open.pop() {
            let Ok(entries) = fs::read_dir(&folder) else { continue };
            if !self.seen.insert(folder.canonicalize().unwrap_or(folder)) {
                continue;
            }
            for entry in entries.flatten() {
                let path = entry.path();
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() => open.push(path),
                    Ok(kind) if kind.is_file() => {
                        check_size(&path)?;
                        if path.ends_with("info/alternates") {
                            open.extend(borrowed(&path));
                        }
                    }
                    _ => check_kind(&path)?,
                }
            }
        }
        Ok(())
    }
}

/// The folders of objects that `objects/info/alternates` names.
fn borrowed(alternates: &Path) -> Vec<PathBuf> {
    let objects = alternates.ancestors().nth(2).unwrap_or(alternates);
    let text = read_pointer(alternates).unwrap_or_default();
    text.lines().map(|line| objects.join(line.trim())).filter(|folder| folder.is_dir()).collect()
}

/// The text of a small file, if it is one.
fn read_pointer(path: &Path) -> Option<String> {
    if !fs::metadata(path).ok()?.is_file() {
        return None;
    }
    let mut text = String::new();
    fs::File::open(path).ok()?.take(POINTER).read_to_string(&mut text).ok()?;
    Some(text)
}

/// Refuses a file that is read whole, and is too large for that.
fn check_size(path: &Path) -> Result<(), SourceError> {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let is_ref = || path.iter().any(|step| step == "refs") && !path.iter().any(|step| step == "logs");
    let longest = match name {
        "packed-refs" | "index" => LISTS,
        "HEAD" | "config" | "config.worktree" | "commondir" | "gitdir" | "shallow" | "alternates"
        | "grafts" => SETTINGS,
        "attributes" | "exclude" | "sparse-checkout" => SETTINGS,
        _ if is_ref() => SETTINGS,
        _ => return Ok(()),
    };
    match fs::metadata(path) {
        Ok(file) if file.is_file() && file.len() > longest => {
            Err(SourceError::LargeGitFile { path: path.to_owned(), limit: longest })
        }
        _ => Ok(()),
    }
}

/// Refuses what is there, and is neither file nor folder, nor a link to one.
fn check_kind(path: &Path) -> Result<(), SourceError> {
    match fs::metadata(path) {
        Ok(kind) if !kind.is_file() && !kind.is_dir() => {
            Err(SourceError::SpecialFile { path: path.to_owned() })
        }
        _ => check_size(path),
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use crate::WorkingTree;

    fn pipe(path: &Path) {
        let made = std::process::Command::new("mkfifo").arg(path).status().expect("mkfifo runs");
        assert!(made.success());
    }

    #[test]
    fn pipes_and_devices_in_a_git_folder_are_refused_and_not_waited_for() {
        for place in ["HEAD", "config", "refs/heads/main", "objects/info/alternates", "info/sparse-checkout"]
        {
            let folder = tempfile::tempdir().unwrap();
            gix::init(folder.path()).unwrap();
            assert!(WorkingTree::open(folder.path()).is_ok(), "{place}");
            let path = folder.path().join(".git").join(place);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let _ = fs::remove_file(&path);
            pipe(&path);
            let told = WorkingTree::open(folder.path()).err().unwrap().to_string();
            assert!(told.contains(place) && told.contains("pipe"), "{told}");
            assert_eq!(WorkingTree::git_root(folder.path()), None);
        }
        let folder = tempfile::tempdir().unwrap();
        gix::init(folder.path()).unwrap();
        std::os::unix::fs::symlink("/dev/zero", folder.path().join(".git/packed-refs")).unwrap();
        assert!(WorkingTree::open(folder.path()).is_err());
    }

    #[test]
    fn files_that_are_read_whole_have_a_limit() {
        for (place, size) in
            [("HEAD", SETTINGS), ("refs/heads/x", SETTINGS), ("config", SETTINGS), ("packed-refs", LISTS)]
        {
            let folder = tempfile::tempdir().unwrap();
            gix::init(folder.path()).unwrap();
            let path = folder.path().join(".git").join(place);
            fs::File::create(&path).unwrap().set_len(size + 1).unwrap();
            let told = WorkingTree::open(folder.path()).err().unwrap().to_string();
            assert!(told.contains(place) && told.contains("larger"), "{told}");
        }
        let folder = tempfile::tempdir().unwrap();
        gix::init(folder.path()).unwrap();
        // Objects are read piece by piece, and so is what Git does not read at all.
        for place in ["objects/pack/large", "ORIG_NOTES"] {
            fs::File::create(folder.path().join(".git").join(place)).unwrap().set_len(1 << 40).unwrap();
        }
        assert!(WorkingTree::open(folder.path()).is_ok());
    }

    #[test]
    fn what_a_git_folder_points_to_is_looked_at() {
        let folder = tempfile::tempdir().unwrap();
        let (work, other) = (folder.path().join("work"), folder.path().join("other"));
        fs::create_dir_all(&work).unwrap();
        fs::create_dir_all(&other).unwrap();
        fs::write(work.join(".git"), "gitdir: ../other\n").unwrap();
        assert!(check(&work).is_ok());
        pipe(&other.join("index"));
        assert!(check(&work).is_err());
        let borrower = folder.path().join("borrower");
        gix::init(&borrower).unwrap();
        fs::write(borrower.join(".git/objects/info/alternates"), format!("{}\n", other.display())).unwrap();
        assert!(check(&borrower).is_err());
    }
}

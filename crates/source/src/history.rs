//! Which commits changed a file, the newest first.

use gix::{ObjectId, Repository, bstr::ByteSlice};

use crate::{WorkingTree, git_objects};

/// How many commits are looked at: beyond them a change is too old to matter.
const MOST_COMMITS: usize = 2000;

/// A commit that changed one of some files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileChange {
    /// The commit's id.
    pub commit: String,
    /// When it was committed, in seconds since 1970.
    pub at: i64,
    /// Who wrote it.
    pub author: String,
    /// The first line of its message.
    pub subject: String,
}

impl WorkingTree {
    /// The newest commits, at most `most`, that changed one of some files and are not newer than `until`.
    /// Empty outside of Git. A merge counts only if it differs from all that it merges.
    pub fn changes(&self, files: &[&str], until: Option<i64>, most: usize) -> Vec<FileChange> {
        let Some(repository) = self.local() else { return Vec::new() };
        let paths: Vec<String> = files.iter().map(|file| self.path_in_git(file)).collect();
        changes(&repository, &paths, until, most).unwrap_or_default()
    }
}

fn changes(
    repository: &Repository,
    paths: &[String],
    until: Option<i64>,
    most: usize,
) -> gix::Result<Vec<FileChange>> {
    let mut found = Vec::new();
    let head = repository.head_id()?.detach();
    let newest_first = gix::revision::walk::Sorting::ByCommitTime(Default::default());
    for info in repository.rev_walk([head]).sorting(newest_first).all()?.take(MOST_COMMITS) {
        let info = info?;
        let commit = repository.find_commit(info.id)?;
        let at = commit.time()?.seconds;
        if until.is_some_and(|until| at > until) {
            continue;
        }
        let now = blobs(repository, info.id, paths)?;
        let mut is_changed = true;
        for parent in &info.parent_ids {
            // The parent of a shallow history is not there.
            is_changed &= blobs(repository, *parent, paths).is_ok_and(|before| before != now);
        }
        let is_first = info.parent_ids.is_empty();
        if is_changed && (!is_first || now.iter().any(Option::is_some)) {
            found.push(FileChange {
                commit: info.id.to_string(),
                at,
                author: commit.author()?.name.to_str_lossy().into_owned(),
                subject: commit.message()?.title.trim().to_str_lossy().into_owned(),
            });
            if found.len() >= most {
                break;
            }
        }
    }
    Ok(found)
}

/// What some paths hold in a commit.
fn blobs(repository: &Repository, commit: ObjectId, paths: &[String]) -> gix::Result<Vec<Option<ObjectId>>> {
    let tree = git_objects::tree_of(repository, commit)?;
    paths.iter().map(|path| Ok(tree.lookup_entry_by_path(path)?.map(|entry| entry.object_id()))).collect()
}

#[cfg(test)]
mod tests {
    use std::{path::Path, process::Command};

    use super::*;

    /// 2026-01-03T12:00:00Z.
    const NOON_OF_DAY_3: i64 = 1_767_441_600;

    fn git(folder: &Path, time: &str, args: &[&str]) {
        let mut command = Command::new("git");
        command.current_dir(folder).args(args);
        for key in ["GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"] {
            command.env(key, time);
        }
        for key in ["GIT_AUTHOR", "GIT_COMMITTER"] {
            command.env(format!("{key}_NAME"), "Ada").env(format!("{key}_EMAIL"), "ada@example.com");
        }
        assert!(command.output().unwrap().status.success(), "{args:?}");
    }

    #[test]
    fn commits_that_changed_a_file_before_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        git(folder, "2026-01-01T00:00:00Z", &["init", "--quiet"]);
        for (day, file, text) in
            [(1, "a.yaml", "a: 1"), (2, "b.yaml", "b: 1"), (3, "a.yaml", "a: 2"), (4, "a.yaml", "a: 3")]
        {
            std::fs::write(folder.join(file), text).unwrap();
            let time = format!("2026-01-0{day}T00:00:00Z");
            git(folder, &time, &["add", "."]);
            git(folder, &time, &["commit", "--quiet", "-m", &format!("{file} on day {day}\n\nmore")]);
        }
        let tree = WorkingTree::open(folder).unwrap();
        let subjects = |files: &[&str], until: Option<i64>| -> Vec<String> {
            let changes = tree.changes(files, until, 9);
            changes.into_iter().map(|change| change.subject).collect()
        };
        assert_eq!(subjects(&["a.yaml"], None), ["a.yaml on day 4", "a.yaml on day 3", "a.yaml on day 1"]);
        assert_eq!(subjects(&["a.yaml"], Some(NOON_OF_DAY_3)), ["a.yaml on day 3", "a.yaml on day 1"]);
        assert_eq!(subjects(&["b.yaml", "none.yaml"], None), ["b.yaml on day 2"]);
        let newest = tree.changes(&["a.yaml"], None, 1);
        assert_eq!((newest.len(), newest[0].author.as_str()), (1, "Ada"));
    }
}

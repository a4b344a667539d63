//! Symbolic links that lead nowhere.

use std::{
    collections::VecDeque,
    ffi::OsString,
    fs,
    io::ErrorKind,
    path::{Component, Path, PathBuf},
};

use crate::VfsErrorKind;

/// How many links are followed from one, as Go has it (`path/filepath.EvalSymlinks`).
const MAX_FOLLOWED: usize = 255;

/// Why a symbolic link leads nowhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BrokenLink {
    /// The first path on its way where nothing stands; absolute if that lies outside the tree.
    Missing(String),
    /// It leads through a file as if that were a folder.
    NotDir,
    /// It leads in a circle.
    Circle,
    /// It leads somewhere, but the path to it has more links than one path may have.
    TooDeep,
}

/// Why the link `name` leads nowhere, both paths absolute and without links; what is missing is told from
/// `root` on.
pub(crate) fn on_disk(folder: &Path, name: &str, root: &Path) -> BrokenLink {
    let mut at = folder.to_path_buf();
    let mut ahead = VecDeque::from([OsString::from(name)]);
    let mut followed = 0;
    while let Some(step) = ahead.pop_front() {
        if step == ".." {
            at.pop();
            continue;
        }
        at.push(&step);
        let target = match fs::symlink_metadata(&at) {
            Ok(metadata) if metadata.is_symlink() => fs::read_link(&at),
            Ok(metadata) if metadata.is_dir() || ahead.is_empty() => continue,
            Ok(_) => return BrokenLink::NotDir,
            Err(error) => Err(error),
        };
        match target {
            Ok(target) => {
                followed += 1;
                if followed > MAX_FOLLOWED {
                    return BrokenLink::Circle;
                }
                at.pop();
                follow(&mut at, &mut ahead, &target);
            }
            Err(error) if error.kind() == ErrorKind::NotADirectory => return BrokenLink::NotDir,
            Err(_) => return BrokenLink::Missing(relative_path(&at, root)),
        }
    }
    BrokenLink::TooDeep
}

/// Takes the way that a link points.
fn follow(at: &mut PathBuf, ahead: &mut VecDeque<OsString>, target: &Path) {
    if target.is_absolute() {
        *at = PathBuf::from(std::path::MAIN_SEPARATOR_STR);
    }
    let steps = target.components().filter_map(|part| match part {
        Component::Normal(step) => Some(step.to_owned()),
        Component::ParentDir => Some(OsString::from("..")),
        _ => None,
    });
    for step in steps.collect::<Vec<_>>().into_iter().rev() {
        ahead.push_front(step);
    }
}

fn relative_path(missing: &Path, root: &Path) -> String {
    missing.strip_prefix(root).unwrap_or(missing).to_string_lossy().replace(std::path::MAIN_SEPARATOR, "/")
}

impl BrokenLink {
    /// Why a link leads nowhere in a tree that follows links itself: `error` says why it stopped, `wanted` is
    /// the path that it looked for last, and `is_dir` answers what stands at a path.
    pub fn in_tree(wanted: &str, error: &VfsErrorKind, is_dir: impl Fn(&str) -> Option<bool>) -> Self {
        if matches!(error, VfsErrorKind::TooManyLinks) {
            return Self::Circle;
        }
        let ends = wanted.match_indices('/').map(|(at, _)| at).chain([wanted.len()]);
        for end in ends {
            match is_dir(&wanted[..end]) {
                None => return Self::Missing(wanted[..end].to_owned()),
                Some(false) => return Self::NotDir,
                Some(true) => {}
            }
        }
        Self::Missing(wanted.to_owned())
    }
}

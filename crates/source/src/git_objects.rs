//! Objects of a repository that anybody may have made: a commit or tag that is none is an error here, where
//! gix itself panics when it follows one.

use std::path::Path;

use gix::{ObjectId, Repository, object::Kind, open::Options};

use crate::{SourceError, git_folder};

/// Bytes that one object may have in memory. A few of them declare, or are packed from next to nothing into,
/// more than any machine has.
const MAX_OBJECT_BYTES: usize = 512 * 1024 * 1024;

/// As `options`, with a limit for what one object may take.
pub(crate) fn with_object_limit(options: Options) -> Options {
    options.config_overrides([format!("gitoxide.objects.allocLimit={MAX_OBJECT_BYTES}")])
}

/// Opens the repository at a folder or above it, whoever owns it: nothing that it is configured to run is run
/// here, and in a container the files often belong to another user.
///
/// # Errors
/// Its Git folder holds what is no file.
pub(crate) fn discover(folder: &Path) -> Result<Option<Repository>, SourceError> {
    git_folder::check(folder)?;
    let options = with_object_limit(Options::default().filter_config_section(|_| true));
    Ok(gix::discover_opts(folder, Default::default(), options).ok())
}

/// The commit that an object is, or that a tag points to.
///
/// # Errors
/// It is neither, cannot be read, or a tag is malformed.
pub(crate) fn commit_of(repository: &Repository, id: ObjectId) -> gix::Result<ObjectId> {
    let mut object = repository.find_object(id)?;
    while object.kind == Kind::Tag {
        let target = object.try_into_tag()?.target_id()?.detach();
        object = repository.find_object(target)?;
    }
    Ok(object.try_into_commit()?.id)
}

/// The tree of a commit.
///
/// # Errors
/// The commit or its tree cannot be read, or is malformed.
pub(crate) fn tree_of(repository: &Repository, commit: ObjectId) -> gix::Result<gix::Tree<'_>> {
    let tree = repository.find_commit(commit)?.tree_id()?.detach();
    repository.find_tree(tree)
}

/// What to do if something is missed in a checkout that was made without its history; empty if it has it.
pub(crate) fn without_history(repository: &Repository) -> &'static str {
    match repository.is_shallow().unwrap_or(false) && repository.workdir().is_some() {
        true => {
            "; the checkout is shallow: `git fetch --unshallow` brings its history (`fetch-depth: 0` where a workflow checks out)"
        }
        false => "",
    }
}

/// Whether files are missing that Git would fetch from a remote when it needs them.
pub(crate) fn is_partial(repository: &Repository) -> bool {
    let config = repository.config_snapshot();
    let promises = |name: &str| config.boolean(format!("remote.{name}.promisor").as_str()) == Some(true);
    repository.remote_names().iter().any(|name| promises(&name.to_string()))
}

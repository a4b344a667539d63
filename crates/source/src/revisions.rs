//! What revisions of a repository mean.

use gix::{ObjectId, ThreadSafeRepository, bstr::ByteSlice};
use tiphys_diag::{Panicked, catch_panic};
use tiphys_gocompat::semver::{Constraints, Version};

use crate::{SourceError, git_objects};

/// What is named if gix panics: at files of a repository that Git would not have written.
pub(crate) const REPOSITORY: &str = "the Git repository";

/// The revision that means the highest tag of which what follows a prefix satisfies a SemVer constraint
/// (`tagPrefix` of a source). No name in Git holds a colon. A text that is no constraint is a revision by
/// itself.
pub fn tag_revision(prefix: &str, constraint: &str) -> String {
    let is_plain = Version::parse(constraint).is_ok() || Constraints::parse(constraint).is_err();
    if prefix.is_empty() || is_plain { constraint.to_owned() } else { format!("{prefix}:{constraint}") }
}

/// The commit that a revision means.
///
/// # Errors
/// There is no such.
pub(crate) fn resolve(
    repository: &ThreadSafeRepository,
    url: &str,
    revision: &str,
) -> Result<ObjectId, SourceError> {
    parse_revision(&repository.to_thread_local(), url, revision).map(|named| named.commit)
}

/// The commit that a revision means to who works in a repository: `HEAD`, and what is counted from it, is
/// what is checked out there. In a copy of a host's repository it is the host's default branch.
///
/// # Errors
/// There is no such.
pub(crate) fn resolve_locally(
    repository: &ThreadSafeRepository,
    url: &str,
    revision: &str,
) -> Result<ObjectId, SourceError> {
    let name = if revision.is_empty() { "HEAD" } else { revision };
    let local = repository.to_thread_local();
    let after = name.strip_prefix("HEAD");
    if !after.is_some_and(|after| after.is_empty() || after.starts_with(['~', '^', '@'])) {
        return parse_revision(&local, url, name).map(|named| named.commit);
    }
    let parse =
        || local.rev_parse_single(name).ok().and_then(|id| git_objects::commit_of(&local, id.detach()).ok());
    let found = catch_panic(REPOSITORY, parse).map_err(|panicked| unreadable(url, &panicked))?;
    found.ok_or_else(|| SourceError::UnknownRevision {
        url: url.to_owned(),
        revision: name.to_owned(),
        hint: hint(&local, name),
    })
}

/// What a revision means.
pub(crate) struct Named {
    /// The revision, or the tag that a SemVer range chose.
    pub name: String,
    /// The commit, or an annotated tag of it.
    pub object: ObjectId,
    /// The commit.
    pub commit: ObjectId,
}

impl Named {
    /// `None` if the object is not one of a commit.
    fn new(repository: &gix::Repository, name: &str, object: ObjectId) -> Option<Self> {
        let commit = git_objects::commit_of(repository, object).ok()?;
        Some(Self { name: name.to_owned(), object, commit })
    }
}

/// What a revision means: a branch, a tag, a commit, or the highest tag that satisfies a SemVer range.
///
/// # Errors
/// There is no such.
pub(crate) fn parse_revision(
    local: &gix::Repository,
    url: &str,
    revision: &str,
) -> Result<Named, SourceError> {
    catch_panic(REPOSITORY, || find_revision(local, url, revision))
        .unwrap_or_else(|panicked| Err(unreadable(url, &panicked)))
}

fn unreadable(url: &str, panicked: &Panicked) -> SourceError {
    SourceError::Read { url: url.to_owned(), reason: panicked.to_string() }
}

fn find_revision(local: &gix::Repository, url: &str, revision: &str) -> Result<Named, SourceError> {
    let name = if revision.is_empty() { "HEAD" } else { revision };
    if let Some((prefix, constraint)) = name.split_once(':') {
        let unknown =
            |hint| SourceError::UnknownRevision { url: url.to_owned(), revision: name.to_owned(), hint };
        return highest_tag(local, prefix, constraint).ok_or_else(|| unknown(hint(local, prefix)));
    }
    let candidates = [
        format!("refs/remotes/origin/{name}"),
        format!("refs/heads/{name}"),
        format!("refs/tags/{name}"),
        name.to_owned(),
    ];
    let found = candidates.iter().find_map(|candidate| {
        Named::new(local, name, local.rev_parse_single(candidate.as_str()).ok()?.detach())
    });
    found.or_else(|| highest_tag(local, "", name)).ok_or_else(|| SourceError::UnknownRevision {
        url: url.to_owned(),
        revision: name.to_owned(),
        hint: hint(local, name),
    })
}

/// The highest tag of which what follows the prefix satisfies a SemVer constraint.
fn highest_tag(repository: &gix::Repository, prefix: &str, constraint: &str) -> Option<Named> {
    let constraint = Constraints::parse(constraint).ok()?;
    let references = repository.references().ok()?;
    let tags = references.tags().ok()?.filter_map(Result::ok);
    let (_, tag) = tags
        .filter_map(|tag| {
            Some((Version::parse(tag.name().shorten().to_str().ok()?.strip_prefix(prefix)?).ok()?, tag))
        })
        .filter(|(version, _)| constraint.check(version))
        .max_by(|a, b| a.0.cmp(&b.0))?;
    let name = tag.name().shorten().to_str_lossy().into_owned();
    Named::new(repository, &name, tag.target().try_id()?.to_owned())
}

/// What to do about a revision that is not there: of a repository without its history it may be there, and
/// otherwise some branches and tags are named, those that resemble the wanted one first.
fn hint(repository: &gix::Repository, wanted: &str) -> String {
    let references = repository.references().ok();
    let all = references.as_ref().and_then(|references| references.all().ok());
    let mut names: Vec<String> = all
        .into_iter()
        .flatten()
        .filter_map(Result::ok)
        .map(|reference| reference.name().shorten().to_str_lossy().into_owned())
        .map(|name| name.strip_prefix("origin/").unwrap_or(&name).to_owned())
        .filter(|name| name != "HEAD")
        .collect();
    names.sort_by_key(|name| (!name.contains(wanted) && !wanted.contains(name.as_str()), name.clone()));
    names.dedup();
    names.truncate(5);
    let names = if names.is_empty() { String::new() } else { format!("; it has {}", names.join(", ")) };
    format!("{names}{}", git_objects::without_history(repository))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repository_at_which_gix_panics_is_told_as_unreadable() {
        let folder = tempfile::tempdir().unwrap();
        let repository = gix::init(folder.path()).unwrap();
        let tree = repository.empty_tree().id;
        let author = gix::actor::SignatureRef { name: "a".into(), email: "a@b".into(), time: "0 +0000" };
        let none: [ObjectId; 0] = [];
        let first = repository.commit_as(author, author, "HEAD", "1", tree, none).unwrap().detach();
        repository.commit_as(author, author, "HEAD", "2", tree, [first]).unwrap();
        let local = || gix::open(folder.path()).unwrap().into_sync();
        assert_eq!(resolve_locally(&local(), "x", "HEAD~1").unwrap(), first);
        std::fs::write(folder.path().join(".git/shallow"), "zzz\n").unwrap();
        let told = resolve_locally(&local(), "x", "HEAD~1").unwrap_err().to_string();
        assert!(told.starts_with("cannot read repository x: the Git repository"), "{told}");
        assert!(resolve_locally(&local(), "x", "HEAD").is_ok());
    }
}

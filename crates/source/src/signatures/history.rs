//! Which commits and tags a revision stands by, and their signatures.

use std::collections::BTreeSet;

use gix::{ObjectId, Repository, bstr::ByteSlice, object::Kind, revision::walk::Sorting};
use pgp::types::Timestamp;
use tiphys_model::SignatureExtent;

use super::{Keyring, Signed, Verdict};

/// The trailer of a commit that answers for what is before it (Argo CD docs, "Commit seal-signing with
/// `strict` mode").
const SEAL: &[u8] = b"argocd-gpg-seal:";

/// How signatures of OpenPGP, X.509 and SSH begin in a tag.
const BEGINNINGS: [&[u8]; 4] = [
    b"-----BEGIN PGP SIGNATURE-----",
    b"-----BEGIN PGP MESSAGE-----",
    b"-----BEGIN SIGNED MESSAGE-----",
    b"-----BEGIN SSH SIGNATURE-----",
];

/// The signatures that count for a revision, the newest first: that of the annotated tag, which is enough
/// where only the head counts, and those of commits.
///
/// # Errors
/// An object cannot be read.
pub(crate) fn signatures(
    repository: &Repository,
    (name, object): (&str, ObjectId),
    extent: SignatureExtent,
    keyring: &Keyring,
) -> gix::Result<Vec<Signed>> {
    let now = Timestamp::now();
    let mut all = Vec::new();
    if repository.find_header(object)?.kind() == Kind::Tag {
        all.push(of_tag(repository, name, object, keyring, now)?);
        if extent == SignatureExtent::Head {
            return Ok(all);
        }
    }
    let head = crate::git_objects::commit_of(repository, object)?;
    let commits = match extent {
        SignatureExtent::Head => vec![head],
        SignatureExtent::History => up_to_seals(repository, head, keyring, now)?,
    };
    for commit in commits {
        all.push(of_commit(repository, commit, keyring, now)?);
    }
    Ok(all)
}

fn of_commit(
    repository: &Repository,
    id: ObjectId,
    keyring: &Keyring,
    now: Timestamp,
) -> gix::Result<Signed> {
    let commit = repository.find_commit(id)?;
    let author = commit.author()?;
    let (verdict, key_id) = match commit.signature()? {
        Some((signature, data)) => keyring.judge(&signature, &data.to_bstring(), now),
        None => (Verdict::Unsigned, String::new()),
    };
    Ok(Signed { revision: id.to_string(), author: person(&author), verdict, key_id })
}

fn of_tag(
    repository: &Repository,
    name: &str,
    id: ObjectId,
    keyring: &Keyring,
    now: Timestamp,
) -> gix::Result<Signed> {
    let tag = repository.find_tag(id)?;
    let tagger = tag.tagger()?;
    let (signed, signature) = tag.data.split_at(begin_of_signature(&tag.data));
    let (verdict, key_id) = match signature.is_empty() {
        true => (Verdict::Unsigned, String::new()),
        false => keyring.judge(signature, signed, now),
    };
    let author = tagger.map(|tagger| person(&tagger)).unwrap_or_default();
    Ok(Signed { revision: name.to_owned(), author, verdict, key_id })
}

fn person(signature: &gix::actor::SignatureRef<'_>) -> String {
    format!("{} <{}>", signature.name.to_str_lossy(), signature.email.to_str_lossy())
}

/// Where the last signature in the text of a tag begins; its end without one.
fn begin_of_signature(text: &[u8]) -> usize {
    let mut at = 0;
    let mut found = text.len();
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        if BEGINNINGS.iter().any(|beginning| line.starts_with(beginning)) {
            found = at;
        }
        at += line.len();
    }
    found
}

/// The commits that can be reached from one, without what lies before those that rightly seal it.
fn up_to_seals(
    repository: &Repository,
    head: ObjectId,
    keyring: &Keyring,
    now: Timestamp,
) -> gix::Result<Vec<ObjectId>> {
    let newest_first = Sorting::ByCommitTime(Default::default());
    let mut all = Vec::new();
    let mut seals = Vec::new();
    for info in repository.rev_walk([head]).sorting(newest_first).all()? {
        let info = info?;
        if is_seal(repository, info.id)?
            && of_commit(repository, info.id, keyring, now)?.verdict == Verdict::Good
        {
            seals.push(info.id);
        }
        all.push((info.id, info.parent_ids));
    }
    if seals.is_empty() {
        return Ok(all.into_iter().map(|(id, _)| id).collect());
    }
    if seals.contains(&head) {
        return Ok(vec![head]);
    }
    let mut sealed = BTreeSet::new();
    for info in repository.rev_walk(seals).all()? {
        sealed.insert(info?.id);
    }
    // The seals themselves are looked at, as far as something follows them.
    let open = all.iter().filter(|(id, _)| !sealed.contains(id));
    let bounds: BTreeSet<ObjectId> = open.flat_map(|(_, parents)| parents.iter().copied()).collect();
    let counts = |id: &ObjectId| !sealed.contains(id) || bounds.contains(id);
    Ok(all.into_iter().map(|(id, _)| id).filter(counts).collect())
}

fn is_seal(repository: &Repository, id: ObjectId) -> gix::Result<bool> {
    let commit = repository.find_commit(id)?;
    let message = commit.message_raw()?.to_ascii_lowercase();
    Ok(message.contains_str(SEAL))
}

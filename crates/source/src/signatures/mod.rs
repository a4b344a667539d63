//! Signatures of commits and tags (gitformat-signature; Argo CD docs, "Git GnuPG signature verification").

mod history;
mod keyring;

pub(crate) use history::signatures;
pub use keyring::{Keyring, Verdict};

use tiphys_model::SignatureExtent;

/// A revision whose signatures are asked for.
#[derive(Clone, Copy, Debug)]
pub struct SignedRevision<'a> {
    /// The repository.
    pub url: &'a str,
    /// The revision, as it was asked for.
    pub revision: &'a str,
    /// The commit that was checked out for it.
    pub commit: &'a str,
    /// How much of its history counts.
    pub extent: SignatureExtent,
}

/// What the signature of a commit or tag is worth.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signed {
    /// The commit, or the name of the tag.
    pub revision: String,
    /// Who made it, as it says itself: `Name <address>`.
    pub author: String,
    /// What its signature is worth.
    pub verdict: Verdict,
    /// The id of the key, 16 upper-case hexadecimal digits; empty without a signature.
    pub key_id: String,
}

#[cfg(test)]
mod tests;

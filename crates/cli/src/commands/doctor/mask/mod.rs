//! Takes credentials out of what is saved or shown of a cluster.
//!
//! People attach a saved state to an issue, and paste a diagnosis into a channel. Nothing in either may let
//! anybody log in. What a diagnosis needs stays: names of Secrets, their keys, hosts and ports of addresses,
//! public certificates.

mod names;
mod object;
mod secret;
mod text;

pub(crate) use object::mask_object;
pub(super) use secret::strip_secret;
pub(super) use text::mask_text;

/// What stands where a credential stood.
pub(crate) const MASKED: &str = "***";

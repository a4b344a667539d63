//! `tiphys version`.

use crate::output::say;

/// Prints the version.
///
/// # Errors
/// stdout cannot be written.
pub(crate) fn run() -> anyhow::Result<()> {
    Ok(say(concat!("tiphys ", env!("CARGO_PKG_VERSION")))?)
}

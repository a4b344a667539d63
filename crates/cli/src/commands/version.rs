//! `tiphys version`.

use crate::output::say;

/// Prints the version.
///
/// # Errors
/// stdout cannot be written.
pub fn run() -> anyhow::Result<()> {
    Ok(say(concat!("tiphys ", env!("CARGO_PKG_VERSION")))?)
}

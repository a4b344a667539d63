//! Versions and constraints as Masterminds/semver v3 reads them.

mod constraint;
mod plain;
mod version;

pub use constraint::{ConstraintError, Constraints};
pub use version::{Version, VersionError};

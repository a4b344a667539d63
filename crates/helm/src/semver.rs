//! SemVer constraints as Helm applies them.

use tiphys_gocompat::semver::{Constraints, Version};

/// Whether a version fits a constraint; `false` if either is malformed.
pub(crate) fn is_compatible(constraint: &str, version: &str) -> bool {
    let (Ok(constraint), Ok(version)) = (Constraints::parse(constraint), Version::parse(version)) else {
        return false;
    };
    constraint.check(&version)
}

/// Whether a text is a version.
pub(crate) fn is_version(text: &str) -> bool {
    Version::parse(text).is_ok()
}

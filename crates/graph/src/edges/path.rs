//! Paths of nested keys.

use tiphys_value::FieldPath;

/// The path of nested keys.
pub(crate) fn path(keys: &[&str]) -> FieldPath {
    keys.iter().fold(FieldPath::default(), |path, key| path.key(*key))
}

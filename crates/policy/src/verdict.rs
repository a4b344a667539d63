//! What a rule says of an object.

use tiphys_value::FieldPath;

/// What a rule says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It has no objection, or is not about the object.
    Passes,
    /// It refuses, for a field if it compares fields, with what it says to people.
    Refuses(Option<FieldPath>, String),
    /// What decides is not known here.
    Unknown,
}

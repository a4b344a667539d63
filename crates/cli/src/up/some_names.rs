//! Lists of names that fit into a line.

/// Names of a list, the first of it if it is long.
pub(super) fn some_of<T: std::borrow::Borrow<str>>(names: &[T]) -> String {
    const NAMED: usize = 6;
    match names.len().saturating_sub(NAMED) {
        0 => names.join(", "),
        more => format!("{} and {more} more", names[..NAMED].join(", ")),
    }
}

//! What an error advises for a name that is not there.

use tiphys_diag::similar_names::nearest;

/// The most names that one advice lists.
const MOST_LISTED: usize = 5;

/// Some of a list of names.
pub(crate) fn some_of<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.collect();
    let shown = names[..names.len().min(MOST_LISTED)].join(", ");
    if names.len() > MOST_LISTED { format!("{shown}, …") } else { shown }
}

/// The advice for a name that is none of a few.
pub(crate) fn one_of<'a>(text: &str, candidates: impl Iterator<Item = &'a str> + Clone) -> String {
    match nearest(text, candidates.clone()) {
        Some(nearest) => format!("did you mean `{nearest}`?"),
        None => format!("there is {}", some_of(candidates)),
    }
}

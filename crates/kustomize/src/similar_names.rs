//! What a user may have meant by a name that is not there.

/// The most names that one advice lists.
const MOST_LISTED: usize = 5;

/// The candidate most like a text: at most a third of its letters differ, or one is the beginning or end of
/// the other.
pub(crate) fn nearest_of<'a>(text: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (text.chars().count() / 3).clamp(1, 4);
    let text = text.to_lowercase();
    let distance = |candidate: &str| {
        let candidate = candidate.to_lowercase();
        let (short, long) =
            if text.len() < candidate.len() { (&text, &candidate) } else { (&candidate, &text) };
        let part = short.len() >= 4 && (long.starts_with(short.as_str()) || long.ends_with(short.as_str()));
        let edits = strsim::osa_distance(&text, &candidate);
        // A part of a name is worse than any misspelling.
        if edits <= limit { Some(edits) } else { part.then_some(limit + edits) }
    };
    let found = candidates.filter_map(|candidate| Some((distance(candidate)?, candidate)));
    found.min_by_key(|(distance, _)| *distance).map(|(_, candidate)| candidate)
}

/// Some of a list of names.
pub(crate) fn some_of<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.collect();
    let shown = names[..names.len().min(MOST_LISTED)].join(", ");
    if names.len() > MOST_LISTED { format!("{shown}, …") } else { shown }
}

/// The advice for a name that is none of a few.
pub(crate) fn one_of<'a>(text: &str, candidates: impl Iterator<Item = &'a str> + Clone) -> String {
    match nearest_of(text, candidates.clone()) {
        Some(nearest) => format!("did you mean `{nearest}`?"),
        None => format!("there is {}", some_of(candidates)),
    }
}

#[cfg(test)]
mod tests {
    use super::nearest_of;

    #[test]
    fn the_nearest_name_is_the_one_with_fewest_edits() {
        let rows = [
            ("resource", &["resources", "replicas"][..], Some("resources")),
            ("nmaespace", &["name", "namespace"], Some("namespace")),
            ("web", &["api", "db"], None),
            ("commonLabel", &["labels", "commonLabels"], Some("commonLabels")),
            ("shop", &["shop-frontend"], Some("shop-frontend")),
        ];
        for (text, candidates, expected) in rows {
            assert_eq!(nearest_of(text, candidates.iter().copied()), expected, "{text}");
        }
    }
}

//! Names that somebody may have meant.

/// How many are named.
const MOST: usize = 3;

/// The names most like a word, the likeliest first: those that it is a part of, and those a few letters away.
pub(crate) fn similar<'a>(word: &str, names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let word = word.to_lowercase();
    let mut found: Vec<(usize, &str)> = names
        .filter_map(|name| {
            let lower = name.to_lowercase();
            let letters = strsim::osa_distance(&word, &lower);
            let is_part = !word.is_empty() && (lower.contains(&word) || word.contains(&lower));
            (is_part || letters <= word.chars().count() / 3).then_some((letters, name))
        })
        .collect();
    found.sort_unstable();
    found.into_iter().take(MOST).map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_and_slips_are_found_and_nothing_else() {
        let names = ["shop", "prod.shop", "shop-api", "billing", "shop-web", "other"];
        assert_eq!(similar("shp", names.into_iter()), ["shop"]);
        assert_eq!(similar("Shop", names.into_iter()), ["shop", "shop-api", "shop-web"]);
        assert_eq!(similar("biling", names.into_iter()), ["billing"]);
        assert!(similar("x", names.into_iter()).is_empty() && similar("", names.into_iter()).is_empty());
    }
}

//! Names that are nearly the same: what somebody meant by a name that is not there.
//!
//! Two questions are asked. Is one name a slip of the pen for another ([`nearest_slip`])? A finding rests on
//! the answer, so few letters may differ. And which names shall an error offer ([`nearest`], [`similar`])?
//! An offer may be wider, because a person chooses.

/// The most names that [`similar`] offers.
const MOST_OFFERED: usize = 3;

/// From how many letters on the beginning or end of a name is offered for the whole.
const SHORTEST_PART: usize = 3;

/// Longer names, in letters, are not compared: the time grows with the square.
const LONGEST: usize = 128;

/// The candidate that a name is a slip for: at most a quarter of its letters, and never more than three, are
/// changed, added, removed or exchanged with their neighbours. Upper and lower case differ. The name itself
/// is no slip.
pub fn nearest_slip<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let most = (name.chars().count() / 4).clamp(1, 3);
    let others = candidates.filter(|candidate| *candidate != name);
    let slips = others.filter_map(|candidate| Some((edits(name, candidate, most)?, candidate)));
    slips.min().map(|(_, candidate)| candidate)
}

/// The candidate that a name is a slip for, where names are also numbered or lettered: `gp2` is none for
/// `gp3`, and `team-a` none for `team-b`, as these are names of their own. The same words in another order are
/// one.
pub fn nearest_slip_beside_numbers<'a>(
    name: &str,
    candidates: impl Iterator<Item = &'a str>,
) -> Option<&'a str> {
    let others: Vec<&str> =
        candidates.filter(|candidate| long_words(name) != long_words(candidate)).collect();
    let exchanged = || others.iter().copied().find(|candidate| have_same_words(name, candidate));
    nearest_slip(name, others.iter().copied()).or_else(exchanged)
}

/// Whether two names are the same words in another order: `internal-nginx` and `nginx-internal`.
fn have_same_words(name: &str, other: &str) -> bool {
    let words = |name: &str| {
        let mut words: Vec<String> = name.split(['-', '_', '.']).map(str::to_owned).collect();
        words.sort();
        words
    };
    name != other && words(name).len() > 1 && words(name) == words(other)
}

/// Whether two names are the same but for digits: `db-1` and `db-2` are two of several, and no slip.
pub fn differ_in_digits_only(one: &str, other: &str) -> bool {
    let letters = |name: &str| name.chars().filter(|c| !c.is_ascii_digit()).collect::<String>();
    letters(one) == letters(other)
}

/// The words of a name without digits, those of one or two letters left out.
fn long_words(name: &str) -> Vec<String> {
    let words = name.split(|c: char| !c.is_alphanumeric());
    let letters = words.map(|word| word.chars().filter(|c| !c.is_ascii_digit()).collect::<String>());
    letters.filter(|word| word.chars().count() > 2 || word.len() == name.len()).collect()
}

/// The candidate most like a name, the first of several that are: see [`similar`].
pub fn nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    ranked(name, candidates).min_by_key(|(rank, _)| *rank).map(|(_, candidate)| candidate)
}

/// The candidates most like a name, the likeliest first, at most three: those of which at most a third of the
/// letters differ, and then those that begin or end with the name, or it with them. Upper and lower case are
/// the same.
pub fn similar<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut found: Vec<(usize, &str)> = ranked(name, candidates).collect();
    found.sort_by_key(|(rank, _)| *rank);
    found.into_iter().take(MOST_OFFERED).map(|(_, candidate)| candidate).collect()
}

/// The candidates like a name, each with its rank: the lower, the likelier.
fn ranked<'a>(
    name: &str,
    candidates: impl Iterator<Item = &'a str>,
) -> impl Iterator<Item = (usize, &'a str)> {
    let name = name.to_lowercase();
    let most = match name.chars().count() {
        // Every other letter is one change away.
        0 | 1 => 0,
        letters => (letters / 3).clamp(1, 4),
    };
    candidates.filter_map(move |candidate| {
        let other = candidate.to_lowercase();
        if let Some(edits) = edits(&name, &other, most) {
            return Some((edits, candidate));
        }
        let (short, long) = if name.len() < other.len() { (&name, &other) } else { (&other, &name) };
        let is_part = short.chars().count() >= SHORTEST_PART
            && (long.starts_with(short.as_str()) || long.ends_with(short.as_str()));
        // A part of a name is less likely than any misspelling, and the likelier the more of it is there.
        is_part.then(|| (most + 1 + long.chars().count() - short.chars().count(), candidate))
    })
}

/// How many letters differ between two names, if they are at most `most`.
fn edits(a: &str, b: &str, most: usize) -> Option<usize> {
    let (long_a, long_b) = (a.chars().count(), b.chars().count());
    if long_a.max(long_b) > LONGEST || long_a.abs_diff(long_b) > most {
        return None;
    }
    Some(strsim::osa_distance(a, b)).filter(|edits| *edits <= most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_recognised_and_other_names_are_not() {
        let names = ["values-prod.yaml", "values-dev.yaml", "Chart.yaml"];
        assert_eq!(nearest_slip("values-prd.yaml", names.into_iter()), Some("values-prod.yaml"));
        assert_eq!(nearest_slip("cart", ["card", "shop"].into_iter()), Some("card"));
        assert_eq!(nearest_slip("cart", ["shop", "cart"].into_iter()), None);
        assert_eq!(nearest_slip_beside_numbers("fast-sdd", ["fast-ssd"].into_iter()), Some("fast-ssd"));
        for (name, other) in [("gp2", "gp3"), ("team-a", "team-b"), ("eu-vault", "us-vault")] {
            assert_eq!(nearest_slip_beside_numbers(name, [other].into_iter()), None, "{name}");
        }
        assert_eq!(nearest_slip_beside_numbers("valut", ["eu", "vault"].into_iter()), Some("vault"));
        let classes = ["nginx", "nginx-internal", "nginx-external"];
        assert_eq!(
            nearest_slip_beside_numbers("internal-nginx", classes.into_iter()),
            Some("nginx-internal")
        );
        assert_eq!(nearest_slip_beside_numbers("a-b", ["b-a"].into_iter()), None);
        // Two letters in the wrong order are one slip.
        assert_eq!(nearest_slip("oredrs", ["orders"].into_iter()), Some("orders"));
        let long = "a".repeat(LONGEST + 1);
        assert_eq!(nearest_slip(&long, [format!("{long}b").as_str()].into_iter()), None);
    }

    #[test]
    fn digits_number_what_is_called_alike() {
        assert!(differ_in_digits_only("db-1", "db-20") && differ_in_digits_only("db", "db2"));
        assert!(!differ_in_digits_only("db-1", "dc-1"));
    }

    #[test]
    fn the_nearest_name_is_the_one_with_fewest_edits() {
        let rows = [
            ("resource", &["resources", "replicas"][..], Some("resources")),
            ("nmaespace", &["name", "namespace"], Some("namespace")),
            ("web", &["api", "db"], None),
            ("commonLabel", &["labels", "commonLabels"], Some("commonLabels")),
            ("shop", &["shop-frontend"], Some("shop-frontend")),
            ("ap", &["app"], Some("app")),
            ("x", &["a"], None),
        ];
        for (text, candidates, expected) in rows {
            assert_eq!(nearest(text, candidates.iter().copied()), expected, "{text}");
        }
    }

    #[test]
    fn parts_and_slips_are_offered_and_nothing_else() {
        let names = ["shop", "prod.shop", "shop-api", "billing", "shop-web", "other"];
        assert_eq!(similar("shp", names.into_iter()), ["shop"]);
        assert_eq!(similar("Shop", names.into_iter()), ["shop", "shop-api", "shop-web"]);
        assert_eq!(similar("biling", names.into_iter()), ["billing"]);
        assert!(similar("x", names.into_iter()).is_empty() && similar("", names.into_iter()).is_empty());
    }
}

//! Names that are nearly the same: what somebody who mistyped one meant.

/// The candidate that is nearest to a name, if it is near enough for a slip.
pub(crate) fn nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let most = (name.chars().count() / 4).clamp(1, 3);
    let known = candidates.filter(|candidate| *candidate != name);
    let distances = known.map(|candidate| (distance(name, candidate), candidate));
    let best = distances.filter(|(distance, _)| *distance <= most).min()?;
    Some(best.1)
}

/// How many characters have to be changed, added, removed or exchanged with their neighbours; long texts
/// count as far apart.
fn distance(a: &str, b: &str) -> usize {
    const LONGEST: usize = 128;
    match [a, b].iter().any(|text| text.chars().count() > LONGEST) {
        true => LONGEST,
        false => strsim::osa_distance(a, b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_recognised_and_other_names_are_not() {
        let names = ["values-prod.yaml", "values-dev.yaml", "Chart.yaml"];
        assert_eq!(nearest("values-prd.yaml", names.into_iter()), Some("values-prod.yaml"));
        assert_eq!(nearest("cart", ["card", "shop"].into_iter()), Some("card"));
        assert_eq!(nearest("cart", ["shop", "cart"].into_iter()), None);
        // Two letters in the wrong order are one slip.
        assert_eq!(nearest("oredrs", ["orders"].into_iter()), Some("orders"));
    }
}

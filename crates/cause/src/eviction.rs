//! What those who drain nodes say about pods that they may not evict: kubectl, Karpenter, the cluster
//! autoscaler, Cluster API, OpenShift, the services of clouds.

use crate::pattern::{has_any, pattern};

/// An eviction that a disruption budget does not allow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EvictionRefusal {
    /// The budget's namespace and name; the namespace is empty if it is not told.
    pub budget: Option<(String, String)>,
    /// The pod's namespace and name.
    pub pod: Option<(String, String)>,
    /// Several budgets select the pod, which the API does not support.
    pub is_of_several: bool,
}

pattern!(
    BUDGET,
    r#"(?i)\b(?:pdb|poddisruptionbudgets?)s?\b[\s=:]*[\[("]*([a-z0-9][a-z0-9.-]*)/([a-z0-9][a-z0-9.-]*)"#
);
pattern!(NAMED, r"(?i)\bdisruption budget ([a-z0-9][a-z0-9.-]*) (?:needs|does|is|has)\b");
pattern!(
    POD,
    r#"(?i)\bpods?[\s/]+\\?"?([a-z0-9][a-z0-9.-]*)\\?"? -n \\?"?([a-z0-9][a-z0-9-]*)|\bpods? \\?"?([a-z0-9][a-z0-9-]*)/([a-z0-9][a-z0-9.-]*)"#
);

/// Reads that a pod may not be evicted; `None` if the words tell of something else.
#[must_use]
pub fn eviction_refusal(text: &str) -> Option<EvictionRefusal> {
    let low = text.to_ascii_lowercase();
    let is_of_budget =
        low.contains("disruption budget") || low.contains("disruptionbudget") || low.contains("pdb");
    let is_refused = has_any(
        &low,
        &[
            "cannot evict",
            "can't evict",
            "violate",
            "not allowed",
            "prevent",
            "blocking",
            "when evicting",
            "can't drain",
        ],
    );
    let is_of_several = low.contains("more than one poddisruptionbudget");
    // The API answers a refused eviction as it answers too many requests.
    let is_answered = low.contains("too many requests") && low.contains("evict");
    if !(is_of_budget && is_refused || is_answered || is_of_several) {
        return None;
    }
    let pair = |one: &str, two: &str| (one.to_owned(), two.trim_end_matches(['.', ':']).to_owned());
    let budget = BUDGET.captures(text).map(|it| pair(&it[1], &it[2]));
    let named = || NAMED.captures(text).map(|it| pair("", &it[1]));
    let pod = POD.captures(text).and_then(|it| match (it.get(1), it.get(2), it.get(3), it.get(4)) {
        (Some(name), Some(namespace), ..) => Some(pair(namespace.as_str(), name.as_str())),
        (.., Some(namespace), Some(name)) => Some(pair(namespace.as_str(), name.as_str())),
        _ => None,
    });
    Some(EvictionRefusal { budget: budget.or_else(named), pod, is_of_several })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_those_who_drain() {
        let pair = |one: &str, two: &str| Some((one.to_owned(), two.to_owned()));
        for (text, budget, pod) in [
            (
                "Cannot evict pod as it would violate the pod's disruption budget. The disruption budget web needs 2 healthy pods and has 2 currently",
                pair("", "web"),
                None,
            ),
            ("Cannot disrupt Node: PDB \"shop/web\" prevents pod evictions", pair("shop", "web"), None),
            ("Pdb prevents pod evictions (PodDisruptionBudget=[shop/web])", pair("shop", "web"), None),
            (
                "* Pod data/pg-0: cannot evict pod as it would violate the pod's disruption budget.",
                None,
                pair("data", "pg-0"),
            ),
            (
                "error when evicting pods/\"pg-0\" -n \"data\" (will retry after 5s): Cannot evict pod as it would violate the pod's disruption budget.",
                None,
                pair("data", "pg-0"),
            ),
        ] {
            let refusal = EvictionRefusal { budget, pod, is_of_several: false };
            assert_eq!(eviction_refusal(text), Some(refusal), "{text}");
        }
        let several = "This pod has more than one PodDisruptionBudget, which eviction does not support.";
        assert!(eviction_refusal(several).is_some_and(|it| it.is_of_several));
        assert_eq!(eviction_refusal("evicting pod data/pg-0"), None);
        assert_eq!(eviction_refusal("the budget of the project is used up"), None);
    }
}

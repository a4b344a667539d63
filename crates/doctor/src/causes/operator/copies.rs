//! Resources that repeat what another one says: owners that quote what they made, and siblings that fail alike.

use tiphys_cause::Cause;
use tiphys_value::ObjectExt as _;

use super::condition_words::own_words;
use crate::{
    Object,
    cluster::{controller, is_workload},
    dependencies,
    finding::Finding,
    search_context::Look,
};

/// Causes that are told by the words of a resource itself.
const TOLD: &[Cause] = &[
    Cause::OperatorRejected,
    Cause::OperatorReference,
    Cause::OperatorCloudCredentials,
    Cause::ScheduleAutoscaler,
    Cause::GitopsSourceAuth,
    Cause::ExternalDown,
];
/// Words that are too few to tell whether two resources mean the same.
const FEWEST: usize = 3;
/// Letters and digits from which on a word is an identity, and differs from one request to the next.
const IDENTITY: usize = 8;
/// How far owners are followed.
const FARTHEST: usize = 6;

/// Lets what only repeats another resource follow from it.
pub(super) fn fold(look: &Look<'_>, mut found: Vec<Finding>) -> Vec<Finding> {
    let told: Vec<Option<String>> = found.iter().map(|finding| told_words(look, finding)).collect();
    // Who quotes what it has made has no fault of its own.
    for above in 0..found.len() {
        let quoted = (0..found.len()).find(|below| {
            told[above].is_some() && told[above] == told[*below] && owns(look, &found[above], &found[*below])
        });
        if let Some(below) = quoted {
            let (owner, made) = (found[above].object.clone(), found[below].object.clone());
            found[above].upstream = vec![made];
            found[below].upstream.retain(|it| *it != owner);
        }
    }
    // Of siblings that fail alike one tells it all.
    let mut kept: Vec<(Finding, Option<String>)> = Vec::new();
    for (finding, words) in found.into_iter().zip(told) {
        let known = kept.iter_mut().find(|(known, told)| {
            words.is_some()
                && *told == words
                && known.cause == finding.cause
                && known.object.kind == finding.object.kind
                && are_siblings(look, &known.object, &finding.object)
        });
        match known {
            Some((known, _)) => known.absorb(finding, "fails alike"),
            None => kept.push((finding, words)),
        }
    }
    kept.into_iter().map(|(finding, _)| finding).collect()
}

/// What a resource says of itself, without its own name and what differs from one request to the next.
fn told_words(look: &Look<'_>, finding: &Finding) -> Option<String> {
    let live = look.cluster.live(&finding.object)?;
    if !TOLD.contains(&finding.cause) || !finding.is_asserted() {
        return None;
    }
    let words = own_words(live);
    let masked: Vec<&str> = words
        .split_whitespace()
        .map(|word| if word.contains(live.name()) || is_identity(word) { "*" } else { word })
        .collect();
    (masked.len() >= FEWEST).then(|| masked.join(" "))
}

/// Whether a word is the identity of a request.
fn is_identity(word: &str) -> bool {
    let word = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    word.len() >= IDENTITY && word.chars().all(|c| c.is_ascii_hexdigit() || c == '-')
}

/// Whether one resource has made the other.
fn owns(look: &Look<'_>, above: &Finding, below: &Finding) -> bool {
    let owner = look.cluster.live(&below.object).and_then(controller);
    owner.is_some_and(|owner| owner == above.object)
}

/// What a resource belongs to in the end.
fn top(look: &Look<'_>, object: &Object) -> Object {
    let mut top = object.clone();
    for _ in 0..FARTHEST {
        match look.cluster.live(&top).and_then(controller) {
            Some(owner) => top = owner,
            None => break,
        }
    }
    top
}

/// Whether two resources belong to the same one, or name the same one.
fn are_siblings(look: &Look<'_>, one: &Object, two: &Object) -> bool {
    let (first, second) = (top(look, one), top(look, two));
    if first == second && first != *one {
        return true;
    }
    let named = |object: &Object| {
        let named = dependencies::upstream(look.cluster, object).into_iter();
        let is_shared = |it: &Object| {
            !is_workload(&it.kind) && !matches!(it.kind.as_str(), "Pod" | "ServiceAccount" | "Namespace")
        };
        named.filter(|it| is_shared(it)).collect::<Vec<_>>()
    };
    let others = named(two);
    named(one).iter().any(|it| others.contains(it)) || share_login(look, one, two)
}

/// Whether two resources of a namespace name the same Secret by its name alone, as `clientSecretName`.
fn share_login(look: &Look<'_>, one: &Object, two: &Object) -> bool {
    let logins = |object: &Object| {
        let spec = look.cluster.live(object).and_then(|live| live.get("spec")?.as_object());
        let fields = spec.into_iter().flatten().filter(|(key, _)| key.ends_with("SecretName"));
        fields.filter_map(|(_, value)| value.as_str()).collect::<Vec<_>>()
    };
    let others = logins(two);
    one.namespace == two.namespace && logins(one).iter().any(|it| others.contains(it))
}

#[cfg(test)]
mod tests {
    use super::is_identity;

    #[test]
    fn identities_of_requests() {
        for word in ["3a5f-77e0-9bc1", "8f1dc0ffee,", "(1f7d6a3b)"] {
            assert!(is_identity(word), "{word}");
        }
        for word in ["ami-0dead", "rejected", "postgres", "3a"] {
            assert!(!is_identity(word), "{word}");
        }
    }
}
